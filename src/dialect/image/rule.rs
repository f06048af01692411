//! The formulas that providers publish, as upper bounds.
//!
//! Sources: OpenAI's guide "Images and vision" (2026), Anthropic's "Vision" and "How Claude resizes and pads images"
//! (2026). Both only ever shrink an image. Where a formula rounds, the bound is above every way to round.

use super::{Detail, Pixels};
use crate::limit::Tokens;

/// What an image of one model counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageRule {
    /// The same for every image.
    Fixed(Tokens),
    /// By the squares that cover it: OpenAI's newer models, Anthropic's.
    Patches(Patches),
    /// By large tiles on top of a base: OpenAI's older models.
    Tiles(Tiles),
}

impl Default for ImageRule {
    fn default() -> Self {
        Self::Fixed(Tokens(0))
    }
}

/// Small squares, each a token, times a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patches {
    /// A square's side in pixels, at least 1: 32 at OpenAI, 28 at Anthropic.
    pub square: u32,
    /// The most squares of one image. A model without a budget has one all the same: what the provider refuses
    /// (OpenAI: more than 30,000), or the model's context.
    pub budget: u64,
    /// Tokens for a square, in hundredths: 120 for most OpenAI models, 162 for `gpt-4.1-mini`.
    pub percent: u64,
    /// The longest side in pixels, at least 1; a longer one is shrunk to it.
    pub side: u32,
    /// The same for an image in low detail. A model that does not know low detail has the same number.
    pub low_side: u32,
}

/// Large tiles on top of a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Tokens for every image, and all of one in low detail.
    pub base: u64,
    /// Tokens for each tile.
    pub tile: u64,
}

/// A tile's side in pixels.
const TILE: u64 = 512;
/// The sides, in pixels, that an image is shrunk to before it is cut into tiles.
const TILED_LONG: u64 = 2_048;
const TILED_SHORT: u64 = 768;

impl ImageRule {
    /// The most that an image can count; without its size, the most that any image can.
    #[must_use]
    pub fn tokens(&self, pixels: Option<Pixels>, detail: Detail) -> Tokens {
        Tokens(match self {
            Self::Fixed(tokens) => tokens.0,
            Self::Patches(patches) => patches.tokens(pixels, detail),
            Self::Tiles(tiles) => tiles.tokens(pixels, detail),
        })
    }

    /// The most that any image can count.
    #[must_use]
    pub fn max(&self) -> Tokens {
        self.tokens(None, Detail::High).max(self.tokens(None, Detail::Low))
    }
}

/// An image's longer side and its shorter one; which of them is the width does not matter, so neither does a
/// camera's note that the image lies on its side.
fn sides(pixels: Pixels) -> (u64, u64) {
    let (width, height) = (u64::from(pixels.width), u64::from(pixels.height));
    (width.max(height), width.min(height))
}

impl Patches {
    fn tokens(&self, pixels: Option<Pixels>, detail: Detail) -> u64 {
        let limit = u64::from(if detail == Detail::Low { self.low_side } else { self.side }).max(1);
        let (long, short) = pixels.map_or((limit, limit), sides);
        let (long, short) = if long > limit { (limit, (short * limit).div_ceil(long)) } else { (long, short) };
        let square = u64::from(self.square).max(1);
        // Shrinking to the budget may leave fewer than the budget (1,452 of 1,536 for 1800x2400), never more.
        let patches = long.div_ceil(square).saturating_mul(short.div_ceil(square)).min(self.budget);
        // One above what is whole: OpenAI multiplies in floating point and says that it may come out one higher.
        (patches.saturating_mul(self.percent) / 100).saturating_add(1)
    }
}

impl Tiles {
    fn tokens(&self, pixels: Option<Pixels>, detail: Detail) -> u64 {
        let tiles = if detail == Detail::Low { 0 } else { tiles(pixels) };
        self.base.saturating_add(self.tile.saturating_mul(tiles))
    }
}

/// How many tiles cover an image after it was shrunk.
fn tiles(pixels: Option<Pixels>) -> u64 {
    let (long, short) = pixels.map_or((TILED_LONG, TILED_SHORT), sides);
    // The short side after the first step, between its two ways to round: the lower one makes the second step's
    // long side longer.
    let (long, lower, upper) = if long > TILED_LONG {
        (TILED_LONG, short * TILED_LONG / long, (short * TILED_LONG).div_ceil(long))
    } else {
        (long, short, short)
    };
    let (long, short) = if upper > TILED_SHORT {
        ((long * TILED_SHORT).div_ceil(lower.max(TILED_SHORT)), TILED_SHORT)
    } else {
        (long, upper)
    };
    long.div_ceil(TILE) * short.div_ceil(TILE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::*;

    const GPT_5_5: Patches = Patches { square: 32, budget: 10_000, percent: 120, side: 6_000, low_side: 512 };
    const GPT_5_4_HIGH: Patches = Patches { square: 32, budget: 2_500, percent: 120, side: 2_048, low_side: 2_048 };
    const O4_MINI: Patches = Patches { square: 32, budget: 1_536, percent: 172, side: 2_048, low_side: 2_048 };
    const GPT_5_6: Patches = Patches { square: 32, budget: 30_000, percent: 120, side: 65_535, low_side: 512 };
    const CLAUDE: Patches = Patches { square: 28, budget: 1_568, percent: 100, side: 1_568, low_side: 1_568 };
    const CLAUDE_FINE: Patches = Patches { square: 28, budget: 4_784, percent: 100, side: 2_576, low_side: 2_576 };
    const PATCHED: [Patches; 6] = [GPT_5_5, GPT_5_4_HIGH, O4_MINI, GPT_5_6, CLAUDE, CLAUDE_FINE];
    const GPT_4O: ImageRule = ImageRule::Tiles(Tiles { base: 85, tile: 170 });
    const GPT_4O_MINI: ImageRule = ImageRule::Tiles(Tiles { base: 2_833, tile: 5_667 });

    fn patched(rule: Patches, width: u32, height: u32) -> u64 {
        ImageRule::Patches(rule).tokens(Some(Pixels { width, height }), Detail::High).0
    }

    fn tiled(width: u32, height: u32) -> u64 {
        GPT_4O.tokens(Some(Pixels { width, height }), Detail::High).0
    }

    #[test]
    fn a_fixed_rule_does_not_look() {
        let rule = ImageRule::Fixed(Tokens(1_445));
        for pixels in [None, Some(Pixels { width: 1, height: 1 }), Some(Pixels { width: u32::MAX, height: u32::MAX })] {
            assert_eq!(rule.tokens(pixels, Detail::Low), Tokens(1_445));
            assert_eq!(rule.tokens(pixels, Detail::High), Tokens(1_445));
        }
        assert_eq!(rule.max(), Tokens(1_445));
    }

    #[test]
    fn patches_are_the_guides_examples() {
        // 1024 × 1.2 is 1228.8, rounded up; 2500 × 1.2 is whole, and one may come on top.
        assert_eq!(patched(GPT_5_4_HIGH, 1_024, 1_024), 1_229);
        assert_eq!(patched(GPT_5_4_HIGH, 2_048, 2_048), 3_000 + 1);
        assert_eq!(patched(GPT_5_4_HIGH, 1, 1), 2);
        assert_eq!(patched(GPT_5_4_HIGH, 33, 32), 2 * 120 / 100 + 1);
        // The guide has 1452 patches here; the bound is the budget, which is all that may be seen.
        assert_eq!(patched(O4_MINI, 1_800, 2_400), 1_536 * 172 / 100 + 1);
        // 100×3 patches of 3200×96, but 2048 is the longest side: 64×2.
        assert_eq!(patched(GPT_5_4_HIGH, 3_200, 96), 64 * 2 * 120 / 100 + 1);
        assert_eq!(patched(GPT_5_5, 4_032, 3_024), 12_000 + 1);
        assert_eq!(patched(GPT_5_6, 4_032, 3_024), 126 * 95 * 120 / 100 + 1);
    }

    #[test]
    fn patches_are_anthropics_examples() {
        // A4 at 130 dpi: 39×55 squares, over the budget of the standard tier and not of the other.
        assert_eq!(patched(CLAUDE, 1_075, 1_520), 1_568 + 1);
        assert_eq!(patched(CLAUDE_FINE, 1_075, 1_520), 39 * 55 + 1);
        assert_eq!(patched(CLAUDE, 1_000, 1_000), 36 * 36 + 1);
        assert_eq!(patched(CLAUDE, 200, 200), 64 + 1);
    }

    #[test]
    fn low_detail_is_a_shorter_side() {
        let low = |rule, pixels| ImageRule::Patches(rule).tokens(pixels, Detail::Low).0;
        assert_eq!(low(GPT_5_5, None), 16 * 16 * 120 / 100 + 1);
        // 512×384.
        assert_eq!(low(GPT_5_5, Some(Pixels { width: 640, height: 480 })), 231);
        assert_eq!(low(GPT_5_5, Some(Pixels { width: 64, height: 64 })), 5);
        assert_eq!(low(O4_MINI, None), ImageRule::Patches(O4_MINI).max().0);
        assert_eq!(GPT_4O.tokens(None, Detail::Low), Tokens(85));
        assert_eq!(GPT_4O_MINI.tokens(Some(Pixels { width: 9_000, height: 9_000 }), Detail::Low), Tokens(2_833));
    }

    #[test]
    fn tiles_are_the_guides_examples() {
        assert_eq!(tiled(1_024, 1_024), 765);
        assert_eq!(tiled(2_048, 4_096), 1_105);
        // Nothing is enlarged: one tile (measured by users, too: 128×64 is 85 + 170).
        assert_eq!(tiled(128, 64), 255);
        assert_eq!(tiled(512, 512), 255);
        assert_eq!(tiled(513, 512), 85 + 2 * 170);
        assert_eq!(tiled(1_920, 1_080), 85 + 3 * 2 * 170);
        assert_eq!(tiled(10_000, 10), 85 + 4 * 170);
        assert_eq!(tiled(5_000, 2_000), 85 + 4 * 2 * 170);
        // 2048×1023.5, so, by how that is rounded, 1536 or 1537.5 wide: three tiles or four.
        assert_eq!(tiled(4_096, 2_047), 85 + 4 * 2 * 170);
        // 1024.7 wide. The guide rounds down now and did not say so before.
        assert_eq!(tiled(1_026, 769), 85 + 3 * 2 * 170);
    }

    #[test]
    fn an_image_of_unknown_size_is_the_dearest() {
        let max = |patches| ImageRule::Patches(patches).max().0;
        assert_eq!(max(GPT_5_5), 12_001);
        assert_eq!(max(GPT_5_6), 36_001);
        assert_eq!(max(CLAUDE), 1_569);
        // A budget of 6,144 that a longest side of 2048 never reaches.
        assert_eq!(max(Patches { budget: 6_144, side: 2_048, ..GPT_5_5 }), 64 * 64 * 120 / 100 + 1);
        assert_eq!(max(Patches { side: 512, low_side: 2_048, ..GPT_5_5 }), 64 * 64 * 120 / 100 + 1);
        assert_eq!((GPT_4O.max(), GPT_4O_MINI.max()), (Tokens(1_445), Tokens(48_169)));
    }

    #[test]
    fn numbers_that_are_absurd_stay_numbers() {
        let all = Patches { square: 0, budget: u64::MAX, percent: u64::MAX, side: u32::MAX, low_side: 0 };
        assert_eq!(patched(all, u32::MAX, u32::MAX), u64::MAX / 100 + 1);
        assert_eq!(ImageRule::Patches(all).tokens(None, Detail::Low), Tokens(u64::MAX / 100 + 1));
        let all = ImageRule::Tiles(Tiles { base: u64::MAX, tile: u64::MAX });
        assert_eq!(all.max(), Tokens(u64::MAX));
    }

    /// The formulas as they are published, in floating point.
    #[expect(
        clippy::float_arithmetic,
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "so they are published, and these are only compared with"
    )]
    mod published {
        use super::{Patches, Pixels};

        fn cover(width: f64, height: f64, square: f64) -> u64 {
            ((width / square).ceil() * (height / square).ceil()) as u64
        }

        /// OpenAI's, with every way to round the first step.
        pub(super) fn patches(rule: &Patches, pixels: Pixels, round: fn(f64) -> f64) -> u64 {
            let (mut width, mut height) = (f64::from(pixels.width), f64::from(pixels.height));
            let (square, side) = (f64::from(rule.square), f64::from(rule.side));
            let budget = f64::from(u32::try_from(rule.budget).unwrap_or(u32::MAX));
            let scale = side / width.max(height);
            if scale < 1.0 {
                (width, height) = (round(width * scale).max(1.0), round(height * scale).max(1.0));
            }
            let mut count = cover(width, height, square);
            if count > rule.budget {
                let shrink = (square * square * budget / (width * height)).sqrt();
                let fits = |length: f64| (length * shrink / square).floor() / (length * shrink / square);
                let shrink = shrink * fits(width).min(fits(height));
                count = cover((width * shrink).floor(), (height * shrink).floor(), square).min(rule.budget);
            }
            (count as f64 * (rule.percent as f64 / 100.0)).ceil() as u64
        }

        /// Anthropic's: the largest size of the same shape that fits.
        pub(super) fn squares(rule: &Patches, pixels: Pixels) -> u64 {
            let (square, side) = (f64::from(rule.square), f64::from(rule.side));
            let fits = |width: f64, height: f64| {
                (width / square).ceil() * square <= side
                    && (height / square).ceil() * square <= side
                    && cover(width, height, square) <= rule.budget
            };
            let (width, height) = (f64::from(pixels.width), f64::from(pixels.height));
            if fits(width, height) {
                return cover(width, height, square);
            }
            let (width, height) = (width.max(height), width.min(height));
            let short = |long: f64| (long * height / width).round_ties_even().max(1.0);
            let (mut low, mut high) = (1.0, width);
            while low + 1.0 < high {
                let middle = f64::midpoint(low, high).floor();
                if fits(middle, short(middle)) { low = middle } else { high = middle }
            }
            cover(low, short(low), square)
        }

        /// OpenAI's older one, with every way to round.
        pub(super) fn tiles(pixels: Pixels, round: fn(f64) -> f64) -> u64 {
            let (mut width, mut height) = (f64::from(pixels.width), f64::from(pixels.height));
            for (limit, longer) in [(2_048.0, true), (768.0, false)] {
                let scale = limit / if longer { width.max(height) } else { width.min(height) };
                if scale < 1.0 {
                    (width, height) = (round(width * scale).max(1.0), round(height * scale).max(1.0));
                }
            }
            cover(width, height, 512.0)
        }
    }

    fn sizes() -> impl Strategy<Value = Pixels> {
        let side =
            || prop_oneof![1..3_000_u32, 1..70_000_u32, any::<u32>().prop_map(|side| side.max(1)), Just(u32::MAX)];
        (side(), side()).prop_map(|(width, height)| Pixels { width, height })
    }

    proptest! {
        #[test]
        fn a_bound_is_never_below_the_formula(pixels in sizes()) {
            for round in [f64::floor, f64::round, f64::ceil, |exact| exact] {
                for rule in &PATCHED[..4] {
                    let (bound, told) = (rule.tokens(Some(pixels), Detail::High), published::patches(rule, pixels, round));
                    prop_assert!(bound >= told, "{rule:?}: {bound} < {told}");
                }
                let (bound, told) = (tiles(Some(pixels)), published::tiles(pixels, round));
                prop_assert!(bound >= told, "{bound} tiles < {told}");
            }
            for rule in [CLAUDE, CLAUDE_FINE] {
                let (bound, told) = (rule.tokens(Some(pixels), Detail::High), published::squares(&rule, pixels));
                prop_assert!(bound >= told, "{rule:?}: {bound} < {told}");
            }
        }

        #[test]
        fn no_image_is_dearer_than_one_of_unknown_size(pixels in sizes()) {
            let turned = Pixels { width: pixels.height, height: pixels.width };
            for rule in PATCHED.map(ImageRule::Patches).into_iter().chain([GPT_4O, GPT_4O_MINI]) {
                for detail in [Detail::Low, Detail::High] {
                    let tokens = rule.tokens(Some(pixels), detail);
                    prop_assert!(tokens <= rule.tokens(None, detail) && rule.tokens(None, detail) <= rule.max());
                    prop_assert_eq!(tokens, rule.tokens(Some(turned), detail));
                }
            }
        }
    }
}
