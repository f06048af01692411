//! What an image counts, at most, before the provider has seen it.
//!
//! Invariant: an image never counts less than its provider's public formula makes of it. What cannot be read for
//! certain has no size, and what has no size counts the most that one image can.

mod pixels;
mod rule;

pub use pixels::{Pixels, pixels, pixels_of_base64};
pub use rule::{ImageRule, Patches, Tiles};

/// How closely a model is to look at an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// `low`.
    Low,
    /// `high`, `auto`, `original`, no word and unknown words: whatever of them is dearest.
    #[default]
    High,
}

impl Detail {
    /// What a request's `detail` says.
    #[must_use]
    pub fn of(word: &str) -> Self {
        if word == "low" { Self::Low } else { Self::High }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_low_is_low() {
        assert_eq!(Detail::of("low"), Detail::Low);
        for word in ["high", "auto", "original", "", "Low", "LOW", "low ", "lowest"] {
            assert_eq!(Detail::of(word), Detail::High, "{word}");
        }
        assert_eq!(Detail::default(), Detail::High);
    }
}
