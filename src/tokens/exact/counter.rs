//! Counts the tokens of a text piece by piece, as far as the budget reaches.
//!
//! Invariant: the count of finished pieces is exact, and what is not finished starts with a piece,
//! so that the cheap bounds of the rest can be added to it. Most pieces are one token and cost one
//! walk down the trie; the others are merged, once each.

use super::super::{Bounds, Counted, Encoding, WorkBudget, bounds};
use super::memo::Memo;
use super::merge::Merger;
use super::scan::piece_end;
use super::trie::Trie;
use super::windows::{WIDE_WINDOW, WINDOW, Walk};

/// Counts `text`, or as much of it as `budget` allows.
pub(super) fn count(encoding: Encoding, trie: &Trie, text: &str, budget: &mut WorkBudget) -> Counted {
    let mut counter = Counter { trie, text: text.as_bytes(), memo: Memo::default(), merger: Merger::default() };
    let mut tokens = 0;
    let mut at = 0;
    while at < text.len() {
        if budget.is_spent() {
            return unfinished(tokens, text.get(at..).unwrap_or_default());
        }
        let end = piece_end(encoding, counter.text, at);
        let Some(more) = counter.piece(at, end, budget) else {
            return unfinished(tokens, text.get(at..).unwrap_or_default());
        };
        tokens += more;
        at = end;
    }
    Counted::Exact(tokens)
}

/// `tokens` for what is finished, and the bounds of the rest.
fn unfinished(tokens: u64, rest: &str) -> Counted {
    let rest = bounds(rest);
    Counted::Between(Bounds { lower: tokens + rest.lower, upper: tokens + rest.upper })
}

struct Counter<'a> {
    trie: &'a Trie,
    text: &'a [u8],
    memo: Memo,
    merger: Merger,
}

impl Counter<'_> {
    /// The tokens of the piece at `start..end`; `None` if the budget runs out.
    #[inline]
    fn piece(&mut self, start: usize, end: usize, budget: &mut WorkBudget) -> Option<u64> {
        let piece = self.text.get(start..end)?;
        budget.spend(1 + piece.len() as u64 / 4);
        let node = self.trie.find(piece);
        if node.is_some_and(|node| self.trie.is_token(node)) {
            return Some(1);
        }
        if let Some(tokens) = self.memo.get(self.text, piece) {
            return Some(tokens);
        }
        let tokens = self.merged(piece, budget)?;
        self.memo.put(self.text, start, end, tokens);
        Some(tokens)
    }

    /// The tokens of a piece that is not one token.
    fn merged(&mut self, piece: &[u8], budget: &mut WorkBudget) -> Option<u64> {
        let alphabetic = piece.get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte >= 128);
        let size = if alphabetic { WINDOW } else { WIDE_WINDOW };
        let mut walk = Walk { trie: self.trie, piece, merger: &mut self.merger };
        walk.count(size, budget)
    }
}
