//! How many tokens a text is, known before any model sees it.
//!
//! Invariant: an answer never falls short. [`Counted::Exact`] is the number that the
//! vendor's own tokenizer gives for ordinary text; [`Counted::Between`] holds two numbers that are certain to
//! enclose it. Nothing here panics, and the work is linear in the text whatever the text is.
//!
//! ```
//! use tollgate::tokens::{Counted, Encoding, WorkBudget, bounds, count_within};
//!
//! let prompt = "How many tokens is this?";
//! // Free, and often enough: at least 6 tokens, at most 24.
//! assert_eq!((bounds(prompt).lower, bounds(prompt).upper), (6, 24));
//! // All texts of a request share one budget.
//! let mut budget = WorkBudget::new(100_000);
//! # if !Encoding::O200k.is_included() { return }
//! let counted = count_within(Encoding::O200k, prompt, &mut budget);
//! assert_eq!(counted, Counted::Exact(6));
//! ```
//!
//! Out of scope: chat framing, images, tools, and other vendors' vocabularies. This module counts
//! one string at a time and knows nothing of requests.

mod bounds;
mod budget;
#[cfg(any(feature = "o200k", feature = "cl100k"))]
mod exact;
mod models;

pub use bounds::{Bounds, bounds};
pub use budget::WorkBudget;

/// A public vocabulary together with the rule that cuts text into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `o200k_base`: the GPT-4o family and everything after it.
    O200k,
    /// `cl100k_base`: GPT-4, GPT-3.5 and the embedding models.
    Cl100k,
}

impl Encoding {
    /// The encoding of a model by its public name; `None` if it is not known to use one of these.
    #[must_use]
    pub fn for_model(name: &str) -> Option<Self> {
        models::encoding(name)
    }

    /// Whether this build carries the vocabulary. If not, counting gives bounds only.
    #[must_use]
    pub const fn is_included(self) -> bool {
        match self {
            Self::O200k => cfg!(feature = "o200k"),
            Self::Cl100k => cfg!(feature = "cl100k"),
        }
    }
}

/// What counting came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// The number of tokens.
    Exact(u64),
    /// The budget ran out, or the build has no vocabulary for the encoding.
    Between(Bounds),
}

impl Counted {
    /// The exact number, if that is what came out.
    #[must_use]
    pub const fn exact(self) -> Option<u64> {
        match self {
            Self::Exact(tokens) => Some(tokens),
            Self::Between(_) => None,
        }
    }

    /// The range that certainly holds the number; a single value if it is exact.
    #[must_use]
    pub const fn bounds(self) -> Bounds {
        match self {
            Self::Exact(tokens) => Bounds { lower: tokens, upper: tokens },
            Self::Between(bounds) => bounds,
        }
    }
}

/// Counts `text` to the end, however much work that is.
///
/// The answer is [`Counted::Exact`] unless the build leaves the encoding out, see
/// [`Encoding::is_included`]. The first call for an encoding prepares its tables.
#[must_use]
pub fn count(encoding: Encoding, text: &str) -> Counted {
    count_within(encoding, text, &mut WorkBudget::unlimited())
}

/// Counts `text` as far as `budget` reaches; several texts can share one budget.
///
/// When the budget is spent, what is finished still counts: the bounds are exact up to that point
/// and those of [`bounds()`] beyond it. An empty budget thus costs no more than [`bounds()`] does.
#[must_use]
pub fn count_within(encoding: Encoding, text: &str, budget: &mut WorkBudget) -> Counted {
    #[cfg(any(feature = "o200k", feature = "cl100k"))]
    if let Some(counted) = exact::count(encoding, text, budget) {
        return counted;
    }
    // Without a vocabulary neither of these has a say.
    let _ = (encoding, budget);
    Counted::Between(bounds(text))
}
