//! What was seen of an answer's output.
//!
//! Invariant: what was written is known at least by its length, so an answer without usage is never free.

use super::texts::{TextSink, walk};
use crate::limit::Tokens;
use crate::tokens::{Encoding, WorkBudget, count_within};

/// Bytes to a token where no vocabulary counts: between English (4) and what is dense (2).
const BYTES_PER_TOKEN: u64 = 3;
/// How much work counting one answer may be.
const STEPS_MAX: u64 = 400_000;

/// Counts the output of one answer, in case its provider does not.
#[derive(Clone, Debug)]
pub struct OutputCounter {
    encoding: Option<Encoding>,
    budget: WorkBudget,
}

impl OutputCounter {
    /// A counter by a vocabulary, or by bytes.
    #[must_use]
    pub fn new(encoding: Option<Encoding>) -> Self {
        Self { encoding, budget: WorkBudget::new(STEPS_MAX) }
    }

    fn count(&mut self, text: &str) -> u64 {
        let counted = self.encoding.and_then(|encoding| count_within(encoding, text, &mut self.budget).exact());
        counted.unwrap_or((text.len() as u64).div_ceil(BYTES_PER_TOKEN))
    }
}

/// What was seen of an answer's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Tokens of text, tool calls and reasoning.
    tokens: u64,
    /// Pieces that had any: at least a token each.
    pieces: u64,
}

impl Seen {
    #[cfg(test)]
    pub(super) const fn of(tokens: u64) -> Self {
        Self { tokens, pieces: 1 }
    }

    /// Whether any output was seen.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.pieces > 0
    }

    /// Adds a piece of `bytes` that could not be read.
    pub fn add_unread(&mut self, bytes: usize) {
        self.add(Self { tokens: (bytes as u64).div_ceil(BYTES_PER_TOKEN), pieces: 1 });
    }

    /// How many tokens that is; at least one for each piece.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        Tokens(self.tokens.max(self.pieces))
    }

    /// Adds what another piece has.
    pub fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.pieces += other.pieces;
    }
}

/// A piece of output that is being read.
struct Reading<'c> {
    seen: Seen,
    counter: &'c mut OutputCounter,
}

impl TextSink for Reading<'_> {
    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.seen.tokens = self.seen.tokens.saturating_add(self.counter.count(text));
            self.seen.pieces = 1;
        }
    }

    fn skips(&self, key: &str) -> bool {
        const FRAMING: [&str; 9] = [
            "role",
            "id",
            "type",
            "index",
            "status",
            "finish_reason",
            "logprobs",
            "content_filter_results",
            "signature",
        ];
        FRAMING.contains(&key)
    }

    fn skipped(&mut self, _: &str, _: &str) {}
}

/// The output in a piece of JSON.
pub(super) fn seen_in(json: &str, counter: &mut OutputCounter) -> Seen {
    let mut reading = Reading { seen: Seen::default(), counter };
    if walk(json, &mut reading).is_err() {
        // Half of a surrogate pair is what a character cut in two is sent as; the piece counts by its length.
        reading.seen = Seen::default();
        reading.seen.add_unread(json.len());
    }
    reading.seen
}
