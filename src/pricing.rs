//! Money, prices, and what tokens cost.
//!
//! Invariant: integers only, and every rounding is up, once, at the end: a call is never charged less than it cost.

use serde::{Deserialize, Serialize};

use crate::limit::{AMOUNT_MAX, Cost, Estimate, Tokens};

/// Money in billionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

/// Billionths of a dollar per dollar, as decimal places.
const NANO_PLACES: usize = 9;
const MILLION: u128 = 1_000_000;

impl NanoUsd {
    /// Reads a decimal number of dollars: digits, with at most nine behind the point.
    ///
    /// # Errors
    /// If the text is anything else, or more than 2^53 billionths; the message says what is wanted.
    pub fn from_decimal(text: &str) -> Result<Self, &'static str> {
        const WANT: &str = "a decimal number of dollars such as \"0.15\", at most nine places, below 9007199";
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > NANO_PLACES {
            return Err(WANT);
        }
        let nano = format!("{whole}{fraction:0<NANO_PLACES$}").parse::<u64>().map_err(|_| WANT)?;
        if nano <= AMOUNT_MAX { Ok(Self(nano)) } else { Err(WANT) }
    }
}

impl core::fmt::Display for NanoUsd {
    /// Dollars with as many places as needed: `0.00021`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (whole, fraction) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        let fraction = format!("{fraction:09}");
        write!(f, "{whole}.{}", fraction.trim_end_matches('0'))
    }
}

/// The price of one kind of token: money per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerMillion(pub NanoUsd);

/// A model's prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Of a token read.
    pub input: PerMillion,
    /// Of a token read from the provider's cache.
    pub cached_input: PerMillion,
    /// Of a token written.
    pub output: PerMillion,
}

/// Tokens by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCount {
    /// All tokens read, the cached ones included.
    pub input: Tokens,
    /// Those of them that came from the provider's cache.
    pub cached_input: Tokens,
    /// All tokens written, over all candidates.
    pub output: Tokens,
}

impl Price {
    /// The most that a call with these bounds can cost: nothing is counted on to be cached.
    #[must_use]
    pub fn estimate(&self, input: Tokens, output: Tokens) -> Estimate {
        let dearest = Self { input: self.input.max(self.cached_input), ..*self };
        Estimate(dearest.cost(TokenCount { input, cached_input: Tokens(0), output }))
    }

    /// What these tokens cost, rounded up to a billionth of a dollar.
    #[must_use]
    pub fn cost(&self, tokens: TokenCount) -> Cost {
        let cached = tokens.cached_input.min(tokens.input);
        let fresh = Tokens(tokens.input.0 - cached.0);
        let part = |tokens: Tokens, price: PerMillion| u128::from(tokens.0) * u128::from(price.0.0);
        let sum = part(fresh, self.input)
            .saturating_add(part(cached, self.cached_input))
            .saturating_add(part(tokens.output, self.output));
        let usd = NanoUsd(u64::try_from(sum.div_ceil(MILLION)).unwrap_or(u64::MAX));
        Cost { requests: 1, input: tokens.input, output: tokens.output, usd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_million(dollars: &str) -> PerMillion {
        PerMillion(NanoUsd::from_decimal(dollars).unwrap())
    }

    #[test]
    fn dollars_are_read_and_shown_exactly() {
        for text in ["0", "1", "0.15", "0.000000001", "9007199.254740991"] {
            assert_eq!(NanoUsd::from_decimal(text).unwrap().to_string(), text);
        }
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "0.0000000001", "9007199.254740992", "ten", "1 "] {
            assert!(NanoUsd::from_decimal(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_price_of_one_dollar_a_million_is_a_thousand_billionths_a_token() {
        let price = Price { input: per_million("1"), cached_input: per_million("0.1"), output: per_million("2") };
        let tokens = TokenCount { input: Tokens(100), cached_input: Tokens(80), output: Tokens(10) };
        assert_eq!(price.cost(tokens).usd, NanoUsd(20_000 + 8_000 + 20_000));
        assert_eq!(price.estimate(Tokens(100), Tokens(10)).0.usd, NanoUsd(120_000));
    }

    #[test]
    fn fractions_round_up_once() {
        let price = Price { input: per_million("0.0000005"), ..Price::default() };
        let count = |input| TokenCount { input: Tokens(input), ..TokenCount::default() };
        assert_eq!(price.cost(count(1)).usd, NanoUsd(1));
        assert_eq!(price.cost(count(2_000)).usd, NanoUsd(1));
        assert_eq!(price.cost(count(2_001)).usd, NanoUsd(2));
    }

    #[test]
    fn more_cached_than_read_is_read_as_all_cached() {
        let price = Price { input: per_million("1"), cached_input: per_million("0.5"), ..Price::default() };
        let tokens = TokenCount { input: Tokens(10), cached_input: Tokens(99), output: Tokens(0) };
        assert_eq!(price.cost(tokens).usd, NanoUsd(5_000));
    }
}
