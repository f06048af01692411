//! How long the tests run whose inputs nobody wrote down.

use std::time::Duration;

/// How many inputs a test makes: `always`, or what `TOLLGATE_FUZZ` asks for.
pub(crate) fn cases(always: u32) -> u32 {
    asked().unwrap_or(always)
}

fn asked() -> Option<u32> {
    std::env::var("TOLLGATE_FUZZ").ok()?.parse().ok()
}

/// In a long run: whether `work` on an input of 240 KB takes about as long as on its parts of 15 KB. What is quadratic
/// takes 16 times as long; the bound is generous, since other programs run as well.
pub(crate) fn assert_linear(name: &str, make: impl Fn(usize) -> Vec<u8>, work: impl Fn(&[u8])) {
    const PART: usize = 15_000;
    const PARTS: usize = 16;
    if asked().is_none() {
        return;
    }
    let (part, whole) = (make(PART), make(PART * PARTS));
    let parts = fastest(|| (0..PARTS).for_each(|_| work(&part)));
    let whole = fastest(|| work(&whole));
    assert!(whole < parts * 5, "{name}: {parts:?} in parts, {whole:?} as a whole");
}

#[expect(clippy::disallowed_methods, reason = "what is measured here is time")]
fn fastest(mut work: impl FnMut()) -> Duration {
    let times = (0..5).map(|_| {
        let start = std::time::Instant::now();
        work();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}
