//! What providers say that a call used.
//!
//! Invariant: a count is what was said or nothing. Zero is zero; what is negative, or no number, is no count; and
//! nothing is ever added up, since some providers repeat a running total on every event.

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use serde_json::value::RawValue;

use super::json::object;
use crate::limit::{NanoUsd, Tokens};
use crate::pricing::{Quantities, Tier};

/// A provider's usage, by the names that providers use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Usage {
    prompt_tokens: Count,
    input_tokens: Count,
    completion_tokens: Count,
    output_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Details,
    input_tokens_details: Details,
    prompt_cache_hit_tokens: Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Details {
    cached_tokens: Count,
}

/// A number of tokens, if that is what was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count(Option<u64>);

impl Usage {
    /// Tokens read, cached ones included, if said.
    #[must_use]
    pub fn input(&self) -> Option<Tokens> {
        self.prompt_tokens.0.or(self.input_tokens.0).map(Tokens)
    }

    /// Tokens written, if said. Some providers leave reasoning out of it and only in the total, so it is at least the
    /// total less what was read.
    #[must_use]
    pub fn output(&self) -> Option<Tokens> {
        let said = self.completion_tokens.0.or(self.output_tokens.0);
        let rest = self.total_tokens.0.zip(self.input()).map(|(total, input)| total.saturating_sub(input.0));
        said.max(rest).map(Tokens)
    }

    /// Tokens read from the provider's cache.
    #[must_use]
    pub fn cached_input(&self) -> Tokens {
        let details = self.prompt_tokens_details.cached_tokens.0.or(self.input_tokens_details.cached_tokens.0);
        Tokens(details.or(self.prompt_cache_hit_tokens.0).unwrap_or(0))
    }

    /// Whether it says anything at all; an empty one must not replace what was said before.
    #[must_use]
    pub fn says_something(&self) -> bool {
        self.input().is_some() || self.output().is_some()
    }

    /// What the parts say that are there, zero for the others.
    #[must_use]
    pub fn partial(&self) -> Quantities {
        let (input, output) = (self.input().unwrap_or_default(), self.output().unwrap_or_default());
        Quantities { input, cached_input: self.cached_input(), output, ..Quantities::default() }
    }

    /// The later one of two.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        later
    }

    /// The tier of service that was used, if said.
    #[must_use]
    pub fn tier(&self) -> Option<Tier> {
        None
    }

    /// What the provider itself says that it costs.
    #[must_use]
    pub fn reported_cost(&self) -> Option<NanoUsd> {
        None
    }

    /// All counts, if both what was read and what was written was said.
    #[must_use]
    pub fn quantities(&self) -> Option<Quantities> {
        let (input, output) = (self.input()?, self.output()?);
        Some(Quantities { input, cached_input: self.cached_input(), output, ..Quantities::default() })
    }
}

/// Where an answer or an event may have its usage.
#[derive(Default)]
#[expect(missing_docs, reason = "each is the member of its name")]
pub struct UsagePlaces<'b> {
    pub usage: Option<&'b RawValue>,
    pub x_groq: Option<&'b RawValue>,
    pub response: Option<&'b RawValue>,
    pub message: Option<&'b RawValue>,
    pub result: Option<&'b RawValue>,
    pub service_tier: Option<&'b RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'b"))]
struct Nested<'b> {
    usage: Option<&'b RawValue>,
}

impl UsagePlaces<'_> {
    /// The usage, wherever it is.
    #[must_use]
    pub fn find(&self) -> Option<Usage> {
        let nested = |outer: Option<&RawValue>| {
            let inner: Nested<'_> = object(outer?.get())?;
            object(inner.usage?.get())
        };
        let own = self.usage.and_then(|usage| object(usage.get()));
        let found =
            own.or_else(|| nested(self.x_groq)).or_else(|| nested(self.response)).or_else(|| nested(self.message));
        found.or_else(|| nested(self.result)).filter(Usage::says_something)
    }
}

/// Reads a count from whatever stands there: a number, a number with a fraction, or either one in a string.
struct AnyCount;

impl<'de> Visitor<'de> for AnyCount {
    type Value = Count;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a count")
    }

    fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<Count, E> {
        Ok(Count(Some(count)))
    }

    fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<Count, E> {
        Ok(Count(u64::try_from(count).ok()))
    }

    fn visit_f64<E: serde::de::Error>(self, count: f64) -> Result<Count, E> {
        self.visit_str(&count.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Count, E> {
        let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let more = u64::from(fraction.bytes().any(|digit| digit != b'0'));
        let digits = fraction.bytes().all(|digit| digit.is_ascii_digit());
        Ok(Count(whole.parse::<u64>().ok().filter(|_| digits).map(|whole| whole.saturating_add(more))))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Count, A::Error> {
        while list.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
        while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyCount)
    }
}

impl<'de> Deserialize<'de> for Details {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Fields {
            cached_tokens: Count,
        }
        // Details that are no object, `null` above all, are no details.
        let fields: Fields = object(<&RawValue>::deserialize(deserializer)?.get()).unwrap_or_default();
        Ok(Self { cached_tokens: fields.cached_tokens })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(usage: &str) -> (Option<u64>, Option<u64>, u64) {
        let usage: Usage = serde_json::from_str(usage).unwrap();
        (usage.input().map(|tokens| tokens.0), usage.output().map(|tokens| tokens.0), usage.cached_input().0)
    }

    #[test]
    fn the_shapes_that_providers_send_are_read() {
        let shapes = [
            (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}"#, (Some(10), Some(5), 0)),
            (r#"{"input_tokens":9,"output_tokens":20,"total_tokens":29}"#, (Some(9), Some(20), 0)),
            (
                r#"{"prompt_tokens":100,"completion_tokens":0,"total_tokens":100,
                    "prompt_tokens_details":{"cached_tokens":80,"audio_tokens":0},"completion_tokens_details":null}"#,
                (Some(100), Some(0), 80),
            ),
            (r#"{"prompt_tokens":20,"completion_tokens":151,"total_tokens":553}"#, (Some(20), Some(533), 0)),
            (r#"{"prompt_tokens":"10","completion_tokens":5.5,"total_tokens":null}"#, (Some(10), Some(6), 0)),
            (r#"{"prompt_tokens":10,"completion_tokens":-50,"total_tokens":-40}"#, (Some(10), None, 0)),
            (r#"{"prompt_tokens":5,"total_tokens":5}"#, (Some(5), Some(0), 0)),
            (
                r#"{"prompt_tokens":7,"completion_tokens":[],"prompt_tokens_details":null,"prompt_cache_hit_tokens":3}"#,
                (Some(7), None, 3),
            ),
            ("{}", (None, None, 0)),
        ];
        for (usage, want) in shapes {
            assert_eq!(counts(usage), want, "{usage}");
        }
    }
}
