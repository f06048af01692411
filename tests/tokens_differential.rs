//! The same count as `tiktoken-rs`, an independent implementation, on strings nobody wrote down.
//!
//! A small part always runs; `TOLLGATE_FUZZ=1000000 cargo test --release --test
//! tokens_differential` runs as many strings as it says.

#[path = "support/shapes.rs"]
mod shapes;

use shapes::Dice;
use tollgate::tokens::{Encoding, count};

/// Strings per encoding that always run.
const ALWAYS: u64 = 1_500;

fn oracle(encoding: Encoding, text: &str) -> u64 {
    let bpe = match encoding {
        Encoding::O200k => tiktoken_rs::o200k_base_singleton(),
        Encoding::Cl100k => tiktoken_rs::cl100k_base_singleton(),
    };
    bpe.count_ordinary(text) as u64
}

/// Mostly short mixtures; one in four a long piece, where windows and their joints matter.
fn string(seed: u64) -> String {
    let mut dice = Dice::new(seed);
    let length = if dice.throw(4) == 0 { 200 + dice.throw(2_800) } else { dice.throw(250) };
    shapes::text(&mut dice, length)
}

fn compare(encoding: Encoding, strings: u64) {
    if !encoding.is_included() {
        return;
    }
    let mut bytes = 0;
    for seed in 0..strings {
        let text = string(seed);
        bytes += text.len();
        let (found, wanted) = (count(encoding, &text).exact(), oracle(encoding, &text));
        assert_eq!(found, Some(wanted), "{encoding:?}, seed {seed}: {text:?}");
    }
    report(&format!("{encoding:?}: {strings} strings, {bytes} bytes, no difference"));
}

#[expect(clippy::print_stdout, reason = "the figures of a long run are its result")]
fn report(line: &str) {
    println!("{line}");
}

fn strings() -> u64 {
    let wanted = std::env::var("TOLLGATE_FUZZ").ok();
    wanted.and_then(|number| number.parse().ok()).unwrap_or(ALWAYS)
}

#[test]
fn o200k_agrees_with_tiktoken_rs() {
    compare(Encoding::O200k, strings());
}

#[test]
fn cl100k_agrees_with_tiktoken_rs() {
    compare(Encoding::Cl100k, strings());
}
