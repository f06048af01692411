//! Counting with a vocabulary.
//!
//! Invariant: text → pieces (`scan`) → for each piece the number of tokens that byte pair encoding
//! leaves of it (`trie`, then `merge` and `windows`). The vocabulary is read where it lies in the
//! program; a first use adds about half a megabyte of look-up sums on the heap, once.

mod classes;
mod counter;
mod memo;
mod merge;
mod queue;
mod scan;
mod trie;
mod tried;
mod windows;

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use super::{Counted, Encoding, WorkBudget};
use trie::Trie;

#[cfg(feature = "o200k")]
static O200K: (&[u8], OnceLock<Option<Trie>>) = (include_bytes!("../data/o200k.bin"), OnceLock::new());
#[cfg(feature = "cl100k")]
static CL100K: (&[u8], OnceLock<Option<Trie>>) = (include_bytes!("../data/cl100k.bin"), OnceLock::new());

/// Counts `text` as far as `budget` reaches; `None` if the build leaves the vocabulary out.
pub(super) fn count(encoding: Encoding, text: &str, budget: &mut WorkBudget) -> Option<Counted> {
    Some(counter::count(encoding, vocabulary(encoding)?, text, budget))
}

/// The vocabulary of an encoding, prepared on first use.
fn vocabulary(encoding: Encoding) -> Option<&'static Trie> {
    let (file, cell) = match encoding {
        #[cfg(feature = "o200k")]
        Encoding::O200k => &O200K,
        #[cfg(feature = "cl100k")]
        Encoding::Cl100k => &CL100K,
        #[cfg(not(all(feature = "o200k", feature = "cl100k")))]
        _ => return None,
    };
    cell.get_or_init(|| Trie::new(file)).as_ref()
}
