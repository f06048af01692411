//! Prices, and what a call costs by them.
//!
//! Invariant: integers only, and every rounding is up, once, at the end: a call is never charged less than it cost. A
//! kind of token without a price of its own has that of the kind that it belongs to.

mod tier;

pub use tier::{Tier, Tiers};

use core::cmp::Reverse;

use crate::limit::{Cost, Estimate, NanoUsd, Tokens};

const MILLION: u128 = 1_000_000;
/// Factors are in hundredths.
const HUNDRED: u128 = 100;
const PLAIN_PERCENT: u64 = 100;
const MILLIS_PER_MINUTE: u128 = 60_000;

/// The price of one kind of token, or of a character: money per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerMillion(pub NanoUsd);

/// A model's prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Of a token read.
    pub input: PerMillion,
    /// Of a token read from the provider's cache.
    pub cached_input: Option<PerMillion>,
    /// Of a token written to the provider's cache, instead of `input`.
    pub cache_write: Option<PerMillion>,
    /// The same for the longer of the times that a cache can be kept; without it that is `cache_write`.
    pub cache_write_long: Option<PerMillion>,
    /// Of a token of sound read.
    pub audio_input: Option<PerMillion>,
    /// Of a token of an image read.
    pub image_input: Option<PerMillion>,
    /// Of a token written.
    pub output: PerMillion,
    /// Of a token of reasoning.
    pub reasoning: Option<PerMillion>,
    /// Of a token of sound written.
    pub audio_output: Option<PerMillion>,
    /// Of a token of an image written.
    pub image_output: Option<PerMillion>,
    /// Of a character read aloud.
    pub character: PerMillion,
    /// Of a minute of sound, billed by the millisecond.
    pub minute: NanoUsd,
    /// Of an image made.
    pub image: NanoUsd,
    /// Of any call.
    pub call: NanoUsd,
    /// Of one use of a tool that the provider runs, such as a search.
    pub tool_call: NanoUsd,
    /// What the provider's tiers of service cost.
    pub tiers: Tiers,
    /// What long prompts cost.
    pub long_context: Option<LongContext>,
}

/// A step in the price: of a call that reads more than so much, every token costs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongContext {
    /// The longest prompt at the plain price.
    pub above: Tokens,
    /// What input then costs, in hundredths of its plain price.
    pub input_percent: u64,
    /// What output then costs, in hundredths of its plain price.
    pub output_percent: u64,
}

impl LongContext {
    /// The same, but never below the plain price.
    fn without_discount(self) -> Self {
        let at_least_plain = |percent: u64| percent.max(PLAIN_PERCENT);
        Self {
            input_percent: at_least_plain(self.input_percent),
            output_percent: at_least_plain(self.output_percent),
            ..self
        }
    }
}

/// What a call takes, by what it costs. Of a bound, a kind that is not zero is one that may occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantities {
    /// All tokens read, those of the kinds below included.
    pub input: Tokens,
    /// Those of them that came from the provider's cache.
    pub cached_input: Tokens,
    /// Those that were written to it.
    pub cache_write: Tokens,
    /// Those that were written to it to be kept for the longer time; not part of `cache_write`.
    pub cache_write_long: Tokens,
    /// Those of sound.
    pub audio_input: Tokens,
    /// Those of images.
    pub image_input: Tokens,
    /// All tokens written, over all candidates, those of the kinds below included.
    pub output: Tokens,
    /// Those of them that are reasoning.
    pub reasoning: Tokens,
    /// Those of sound.
    pub audio_output: Tokens,
    /// Those of images.
    pub image_output: Tokens,
    /// Characters read aloud.
    pub characters: u64,
    /// Sound transcribed, in milliseconds.
    pub audio_ms: u64,
    /// Images made.
    pub images: u64,
    /// Uses of tools that the provider runs.
    pub tool_calls: u64,
}

impl Price {
    /// The most that a call within these bounds can cost if it is served in this tier or in the standard one: nothing is
    /// counted on to be cheaper than the dearest kind that may occur, no tier that was asked for to be the one that is
    /// got, and no prompt to be long enough for a discount. A provider may write any prompt to its cache.
    #[must_use]
    pub fn estimate(&self, bound: &Quantities, tier: Tier) -> Estimate {
        let dearest = |plain: PerMillion, kinds: &[(bool, Option<PerMillion>)]| {
            let may_occur = kinds.iter().filter(|(occurs, _)| *occurs).filter_map(|(_, price)| *price);
            may_occur.fold(plain, PerMillion::max)
        };
        let input = [
            (true, self.cached_input),
            (true, self.cache_write),
            (bound.cache_write_long > Tokens(0), self.cache_write_long),
            (bound.audio_input > Tokens(0), self.audio_input),
            (bound.image_input > Tokens(0), self.image_input),
        ];
        let output = [
            (true, self.reasoning),
            (bound.audio_output > Tokens(0), self.audio_output),
            (bound.image_output > Tokens(0), self.image_output),
        ];
        let price = Self {
            input: dearest(self.input, &input),
            output: dearest(self.output, &output),
            long_context: self.long_context.map(LongContext::without_discount),
            ..*self
        };
        let tier = price.tiers.unless_cheaper(tier);
        let nothing = Tokens(0);
        let plain = Quantities {
            cached_input: nothing,
            cache_write: nothing,
            cache_write_long: nothing,
            audio_input: nothing,
            image_input: nothing,
            reasoning: nothing,
            audio_output: nothing,
            image_output: nothing,
            ..*bound
        };
        Estimate(price.cost(&plain, tier))
    }

    /// What this costs, rounded up to a billionth of a dollar.
    #[must_use]
    pub fn cost(&self, quantities: &Quantities, tier: Tier) -> Cost {
        let long = self.long_context.filter(|long| quantities.input > long.above);
        let (input_percent, output_percent) =
            long.map_or((HUNDRED, HUNDRED), |long| (long.input_percent.into(), long.output_percent.into()));
        // Millionths of hundredths of hundredths.
        let tokens = self
            .input_sum(quantities)
            .saturating_mul(input_percent)
            .saturating_add(self.output_sum(quantities).saturating_mul(output_percent))
            .saturating_mul(self.tiers.percent(tier).into());
        let characters = product(quantities.characters, self.character.0);
        let minutes = product(quantities.audio_ms, self.minute);
        let whole = product(quantities.images, self.image)
            .saturating_add(product(quantities.tool_calls, self.tool_call))
            .saturating_add(self.call.0.into());
        let sum = tokens
            .div_ceil(MILLION * HUNDRED * HUNDRED)
            .saturating_add(characters.div_ceil(MILLION))
            .saturating_add(minutes.div_ceil(MILLIS_PER_MINUTE))
            .saturating_add(whole);
        let usd = NanoUsd(u64::try_from(sum).unwrap_or(u64::MAX));
        Cost { requests: 1, input: quantities.input, output: quantities.output, usd }
    }

    fn input_sum(&self, quantities: &Quantities) -> u128 {
        let write = self.cache_write;
        let kinds = [
            (quantities.audio_input, self.audio_input),
            (quantities.cache_write_long, self.cache_write_long.or(write)),
            (quantities.cache_write, write),
            (quantities.image_input, self.image_input),
            (quantities.cached_input, self.cached_input),
        ];
        sum_of(quantities.input, self.input, kinds)
    }

    fn output_sum(&self, quantities: &Quantities) -> u128 {
        let kinds = [
            (quantities.audio_output, self.audio_output),
            (quantities.image_output, self.image_output),
            (quantities.reasoning, self.reasoning),
        ];
        sum_of(quantities.output, self.output, kinds)
    }
}

/// What `all` tokens cost, some of which are of other kinds. The kinds may overlap (cached sound), so the dearest takes
/// its tokens first and the others what is left. A kind without a price of its own takes none: it costs what it would
/// as a part of the others.
fn sum_of<const N: usize>(all: Tokens, plain: PerMillion, mut kinds: [(Tokens, Option<PerMillion>); N]) -> u128 {
    kinds.sort_unstable_by_key(|(_, price)| Reverse(*price));
    let mut left = all.0;
    let mut sum = 0_u128;
    for (tokens, price) in kinds {
        let Some(price) = price else { continue };
        let part = tokens.0.min(left);
        left -= part;
        sum = sum.saturating_add(product(part, price.0));
    }
    sum.saturating_add(product(left, plain.0))
}

fn product(count: u64, price: NanoUsd) -> u128 {
    u128::from(count) * u128::from(price.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_million(dollars: &str) -> PerMillion {
        PerMillion(NanoUsd::from_decimal(dollars).unwrap())
    }

    #[test]
    fn a_price_of_one_dollar_a_million_is_a_thousand_billionths_a_token() {
        let price = Price {
            input: per_million("1"),
            cached_input: Some(per_million("0.1")),
            output: per_million("2"),
            ..Price::default()
        };
        let tokens =
            Quantities { input: Tokens(100), cached_input: Tokens(80), output: Tokens(10), ..Quantities::default() };
        assert_eq!(price.cost(&tokens, Tier::Standard).usd, NanoUsd(20_000 + 8_000 + 20_000));
        assert_eq!(price.estimate(&tokens, Tier::Standard).0.usd, NanoUsd(120_000));
    }

    #[test]
    fn fractions_round_up_once() {
        let price = Price { input: per_million("0.0000005"), ..Price::default() };
        let cost =
            |input| price.cost(&Quantities { input: Tokens(input), ..Quantities::default() }, Tier::Standard).usd;
        assert_eq!(cost(1), NanoUsd(1));
        assert_eq!(cost(2_000), NanoUsd(1));
        assert_eq!(cost(2_001), NanoUsd(2));
    }

    #[test]
    fn more_cached_than_read_is_read_as_all_cached() {
        let price = Price { input: per_million("1"), cached_input: Some(per_million("0.5")), ..Price::default() };
        let tokens = Quantities { input: Tokens(10), cached_input: Tokens(99), ..Quantities::default() };
        assert_eq!(price.cost(&tokens, Tier::Standard).usd, NanoUsd(5_000));
    }

    #[test]
    fn kinds_that_overlap_are_charged_at_the_dearest_that_has_a_price() {
        let mut price = Price {
            input: per_million("1"),
            cached_input: Some(per_million("0.1")),
            audio_input: Some(per_million("10")),
            ..Price::default()
        };
        let tokens =
            Quantities { input: Tokens(10), cached_input: Tokens(6), audio_input: Tokens(6), ..Quantities::default() };
        assert_eq!(price.cost(&tokens, Tier::Standard).usd, NanoUsd(6 * 10_000 + 4 * 100));
        price.audio_input = Some(per_million("0.01"));
        assert_eq!(price.cost(&tokens, Tier::Standard).usd, NanoUsd(6 * 100 + 4 * 10));
        price.audio_input = None;
        assert_eq!(price.cost(&tokens, Tier::Standard).usd, NanoUsd(6 * 100 + 4 * 1_000));
    }

    #[test]
    fn no_discount_is_counted_on() {
        let price = Price {
            input: per_million("1"),
            output: per_million("2"),
            tiers: Tiers { flex: Some(50), priority: Some(200), ultrafast: None },
            long_context: Some(LongContext { above: Tokens(10), input_percent: 50, output_percent: 150 }),
            ..Price::default()
        };
        let bound = Quantities { input: Tokens(11), output: Tokens(2), ..Quantities::default() };
        let held = |tier| price.estimate(&bound, tier).0.usd.0;
        assert_eq!([Tier::Standard, Tier::Flex, Tier::Priority].map(held), [17_000, 17_000, 34_000]);
        // The bound is long, the call may be shorter.
        let shorter = Quantities { input: Tokens(10), ..bound };
        assert_eq!(price.cost(&shorter, Tier::Standard).usd.0, 14_000);
        assert_eq!(price.cost(&bound, Tier::Flex).usd.0, 5_750);
    }
}
