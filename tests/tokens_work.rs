//! Work grows with the length of a text and with nothing else.
//!
//! Steps are counted, not time, so that the guard gives the same verdict on every machine.
//! `TOLLGATE_SEARCH=4000 cargo test --release --test tokens_work -- --nocapture` looks through so
//! many shapes for the worst and prints a table.

#[path = "support/shapes.rs"]
mod shapes;

use shapes::Dice;
use tollgate::tokens::{Encoding, WorkBudget, count_within};

const ENCODINGS: [Encoding; 2] = [Encoding::O200k, Encoding::Cl100k];

/// No text may cost more steps per byte than this; the worst shape known takes 6.4.
const MOST_STEPS_PER_BYTE: u64 = 12;

fn steps(encoding: Encoding, text: &str) -> u64 {
    let mut budget = WorkBudget::unlimited();
    let _ = count_within(encoding, text, &mut budget);
    u64::MAX - budget.left()
}

/// The shapes of the published measurements, cut to a length in bytes.
fn adversarial(length: usize) -> Vec<(&'static str, String)> {
    let cycle = |unit: &str| unit.chars().cycle().take(length / unit.len() * unit.chars().count()).collect();
    let mut dice = Dice::new(6);
    let mut drawn = |letters: &str| {
        let letters: Vec<char> = letters.chars().collect();
        let width = letters.iter().map(|letter| letter.len_utf8()).sum::<usize>() / letters.len();
        (0..length / width).map(|_| dice.pick(&letters)).collect()
    };
    vec![
        ("letters a", cycle("a")),
        ("blanks", cycle(" ")),
        ("newlines", cycle("\n")),
        ("dashes", cycle("-")),
        ("newline and 999 blanks", cycle(&format!("\n{}", " ".repeat(999)))),
        ("ideograph", cycle("漢")),
        ("random letters", drawn("abcdefghijklmnopqrstuvwxyz")),
        ("random ideographs", drawn("的一是不了在人有我他这个们中来上大为和国")),
        ("random white space", drawn(" \t\n\r")),
        ("random signs", drawn("-=*_#./!()[]{};:,<>")),
        ("random capitals and marks", drawn("ABC\u{301}")),
        ("random emoji", drawn("😀😁😂🤣😃😄👍❤")),
        ("contractions", cycle("'s")),
        ("apostrophes", cycle("'")),
    ]
}

#[test]
fn known_shapes_take_few_steps_per_byte() {
    for (name, text) in adversarial(100_000) {
        for encoding in ENCODINGS {
            let steps = steps(encoding, &text);
            let most = MOST_STEPS_PER_BYTE * text.len() as u64;
            assert!(steps <= most, "{encoding:?} {name}: {steps} steps for {} bytes", text.len());
        }
    }
}

#[test]
fn four_times_the_text_takes_about_four_times_the_steps() {
    let (small, large) = (adversarial(16_384), adversarial(65_536));
    for ((name, small), (_, large)) in small.iter().zip(&large) {
        for encoding in ENCODINGS {
            let (few, many) = (steps(encoding, small), steps(encoding, large));
            assert!(many <= few * 5 + 4_096, "{encoding:?} {name}: {few} steps, then {many}");
        }
    }
}

#[test]
fn a_small_budget_gives_bounds_for_every_shape() {
    for (name, text) in adversarial(100_000) {
        for encoding in ENCODINGS.into_iter().filter(|encoding| encoding.is_included()) {
            let mut budget = WorkBudget::new(5_000);
            let counted = count_within(encoding, &text, &mut budget);
            assert!(counted.exact().is_none(), "{encoding:?} {name} needs more than the budget");
            let bounds = counted.bounds();
            assert!(bounds.lower <= bounds.upper && bounds.upper <= text.len() as u64, "{name}: {bounds:?}");
        }
    }
}

/// What the search found: steps per thousand bytes, and the seed that builds the text.
type Found = (u64, u64);

fn search(encoding: Encoding, shapes: u64, length: usize) -> Vec<Found> {
    let mut worst: Vec<Found> = (0..shapes)
        .map(|seed| {
            let text = shapes::text(&mut Dice::new(seed), length);
            (1_000 * steps(encoding, &text) / text.len().max(1) as u64, seed)
        })
        .collect();
    worst.sort_unstable_by(|left, right| right.cmp(left));
    worst
}

#[expect(clippy::print_stdout, reason = "the table is what the search is for")]
fn print(encoding: Encoding, worst: &[Found], length: usize) {
    println!("{encoding:?}, worst of {} shapes:", worst.len());
    println!("{:>12} {:>9}  beginning", "steps/KB", "seed");
    for (steps, seed) in worst.iter().take(12) {
        let text: String = shapes::text(&mut Dice::new(*seed), length).chars().take(40).collect();
        println!("{steps:>12} {seed:>9}  {text:?}");
    }
}

#[test]
fn a_search_over_shapes_finds_no_worse_one() {
    let asked = std::env::var("TOLLGATE_SEARCH").ok().and_then(|number| number.parse().ok());
    let (shapes, length) = asked.map_or((150, 3_000), |shapes| (shapes, 60_000));
    for encoding in ENCODINGS.into_iter().filter(|encoding| encoding.is_included()) {
        let worst = search(encoding, shapes, length);
        if asked.is_some() {
            print(encoding, &worst, length);
        }
        for (steps, seed) in worst {
            assert!(steps <= 1_000 * MOST_STEPS_PER_BYTE, "{encoding:?}, seed {seed}: {steps} steps per KB");
        }
    }
}
