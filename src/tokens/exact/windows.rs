//! Byte pair encoding of a long piece, one window at a time.
//!
//! Invariant: the result is exact, whatever the windows are. Every token of both vocabularies is
//! what encoding its own bytes gives and ranks above the parts it is made of; therefore a row of
//! tokens is the encoding of its bytes exactly if every two neighbours are the encoding of theirs.
//! Within a window that holds. Across windows it holds because the next one starts with the last
//! token that is kept of this one and has to find it again. If it does not, the guess was wrong and
//! a larger window starts further back: that costs time, never exactness.

use super::super::WorkBudget;
use super::merge::Merger;
use super::trie::Trie;

/// Pieces up to this length are encoded in one go.
pub(super) const WINDOW: usize = 256;
/// Runs of white space or signs have the longest tokens and get larger windows.
pub(super) const WIDE_WINDOW: usize = 512;

/// A token that ends one window and starts the next.
#[derive(Clone, Copy, Debug, Default)]
struct Joint {
    start: usize,
    /// Its length; 0 at the start of the piece, where nothing is expected.
    length: usize,
    /// The number of tokens before it.
    before: u64,
}

/// What a window came to, by offsets from its start.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    first_end: usize,
    tokens: u64,
    /// The last token that is kept, and how many come before it.
    last: Joint,
}

/// A walk along one piece.
pub(super) struct Walk<'a> {
    pub(super) trie: &'a Trie,
    pub(super) piece: &'a [u8],
    pub(super) merger: &'a mut Merger,
}

impl Walk<'_> {
    /// The tokens of the piece, with windows of `size`; `None` if the budget runs out.
    pub(super) fn count(&mut self, mut size: usize, budget: &mut WorkBudget) -> Option<u64> {
        let mut here = Joint::default();
        let mut previous = Joint::default();
        let mut done: Option<(&[u8], Window)> = None;
        loop {
            size = size.min(self.piece.len());
            let rest = self.piece.get(here.start..)?;
            let bytes = rest.get(..size).unwrap_or(rest);
            let window = match done {
                Some((same, window)) if same == bytes => {
                    budget.spend(bytes.len() as u64 / 8);
                    window
                }
                _ => self.window(bytes, budget)?,
            };
            let found = here.length == 0 || here.length == window.first_end;
            if found && bytes.len() == rest.len() {
                return Some(here.before + window.tokens);
            }
            if found && window.last.start > 0 {
                done = Some((bytes, window));
                previous = here;
                here = here.advanced(window.last);
                continue;
            }
            if !found {
                // With the whole piece for a window there is nothing left but its start.
                here = if size < self.piece.len() { previous } else { Joint::default() };
                previous = Joint::default();
            }
            size = size.saturating_mul(2);
            done = None;
        }
    }

    /// Encodes one window. A window that the budget surely cannot pay is not begun.
    fn window(&mut self, bytes: &[u8], budget: &mut WorkBudget) -> Option<Window> {
        if budget.left() < bytes.len() as u64 {
            return None;
        }
        self.merger.merge(self.trie, bytes);
        budget.spend(self.merger.take_steps());
        // What stands close to the end may still change with what follows.
        let keep = bytes.len() - bytes.len() / 8;
        let mut window = Window::default();
        let mut start = 0;
        for end in self.merger.ends() {
            if start == 0 {
                window.first_end = end;
            }
            if end <= keep {
                window.last = Joint { start, length: end - start, before: window.tokens };
            }
            window.tokens += 1;
            start = end;
        }
        Some(window)
    }
}

impl Joint {
    /// The joint that lies at `offset` from this one.
    fn advanced(self, offset: Self) -> Self {
        Self { start: self.start + offset.start, before: self.before + offset.before, ..offset }
    }
}
