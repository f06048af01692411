//! Prices, and what tokens cost.
//!
//! Invariant: integers only, and every rounding is up, once, at the end: a call is never charged less than it cost.

use crate::limit::{Cost, Estimate, NanoUsd, Tokens};

const MILLION: u128 = 1_000_000;

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
