//! What providers say that a call used.
//!
//! Invariant: a count is what was said or nothing. Zero is zero; what is negative, or no number, is no count; and of a
//! stream nothing is added up, since some providers repeat a running total on every event.
//!
//! Where providers differ in what a count includes, these rules decide:
//!
//! - Cache counts are inside of the input, unless only Anthropic's names are used (`input_tokens` beside
//!   `cache_*_input_tokens`), or they are more than it.
//! - Output is at least what the total has beyond the input: some leave reasoning out of it. But where sound is counted
//!   in seconds, what the total has beyond is the sound.
//! - Reasoning is inside of the output, unless it is more than it, or citations are counted: then the provider bills a
//!   research, whose citations are input and whose reasoning is output of their own.
//! - A usage in seconds alone is whole: such a model is billed by no token.
//! - Text is what the other kinds leave.

mod number;
mod places;
mod read;

pub use places::UsagePlaces;

use number::Count;

use crate::limit::{NanoUsd, Tokens};
use crate::pricing::{Quantities, Tier};

/// A provider's usage, as it was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    input: Option<Count>,
    /// Tokens of pages that a search found and the model read; outside of `input`.
    citations: Option<Count>,
    cached: Option<Count>,
    /// All that was written to the cache, for however long.
    cache_write: Option<Count>,
    cache_write_short: Option<Count>,
    cache_write_long: Option<Count>,
    audio_input: Option<Count>,
    image_input: Option<Count>,
    output: Option<Count>,
    reasoning: Option<Count>,
    audio_output: Option<Count>,
    image_output: Option<Count>,
    total: Option<Count>,
    /// Sound that the call is billed by, instead of tokens.
    duration_ms: Option<Count>,
    /// Sound that was read beside tokens.
    heard_ms: Option<Count>,
    tool_calls: Option<Count>,
    service_tier: Option<Tier>,
    speed: Option<Tier>,
    /// In billionths of a dollar.
    cost: Option<Count>,
    names: Names,
    /// It is that of a call which has only begun.
    opening: bool,
}

/// Whose names were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Names {
    /// Those of OpenAI's two APIs: `prompt_tokens`, or details of the input. The input then includes what was cached.
    openai: bool,
    /// Anthropic's for the cache. Without the former, the input then leaves out what was cached.
    anthropic: bool,
}

/// What was read from and written to the provider's cache.
#[derive(Clone, Copy)]
struct Cache {
    read: u64,
    write: u64,
    write_long: u64,
}

impl Usage {
    /// What a stream says in all: of every count the last value, never a sum.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            input: later.input.or(self.input),
            citations: later.citations.or(self.citations),
            cached: later.cached.or(self.cached),
            cache_write: later.cache_write.or(self.cache_write),
            cache_write_short: later.cache_write_short.or(self.cache_write_short),
            cache_write_long: later.cache_write_long.or(self.cache_write_long),
            audio_input: later.audio_input.or(self.audio_input),
            image_input: later.image_input.or(self.image_input),
            output: later.output.or(self.output),
            reasoning: later.reasoning.or(self.reasoning),
            audio_output: later.audio_output.or(self.audio_output),
            image_output: later.image_output.or(self.image_output),
            total: later.total.or(self.total),
            duration_ms: later.duration_ms.or(self.duration_ms),
            heard_ms: later.heard_ms.or(self.heard_ms),
            tool_calls: later.tool_calls.or(self.tool_calls),
            service_tier: later.service_tier.or(self.service_tier),
            speed: later.speed.or(self.speed),
            cost: later.cost.or(self.cost),
            names: Names {
                openai: self.names.openai || later.names.openai,
                anthropic: self.names.anthropic || later.names.anthropic,
            },
            opening: self.opening && later.opening,
        }
    }

    /// All tokens read, cached ones included, if said.
    #[must_use]
    pub fn input(&self) -> Option<Tokens> {
        self.input_tokens().or(self.duration_ms.map(|_| 0)).map(Tokens)
    }

    /// All tokens written, reasoning included, if said.
    #[must_use]
    pub fn output(&self) -> Option<Tokens> {
        self.output_tokens().or(self.duration_ms.map(|_| 0)).map(Tokens)
    }

    /// Whether it says what the call used or cost. An empty one says nothing, nor does one of times and tiers.
    #[must_use]
    pub fn says_something(&self) -> bool {
        self.input().is_some() || self.output().is_some() || self.cost.is_some()
    }

    /// All quantities, if both what was read and what was written is known.
    #[must_use]
    pub fn quantities(&self) -> Option<Quantities> {
        self.input().zip(self.output()).map(|_| self.partial())
    }

    /// What is known, and zero for what is not. No part is more than what it is a part of.
    #[must_use]
    pub fn partial(&self) -> Quantities {
        let (input, output) = (self.input_tokens().unwrap_or(0), self.output_tokens().unwrap_or(0));
        let cache = self.cache();
        let [cached, cache_write_long, cache_write] = parts(input, [cache.read, cache.write_long, cache.write]);
        let [audio_input, image_input] = parts(input, [self.audio_input, self.image_input].map(known));
        let [audio_output, image_output] = parts(output, [self.audio_output, self.image_output].map(known));
        Quantities {
            input: Tokens(input),
            cached_input: cached,
            cache_write,
            cache_write_long,
            audio_input,
            image_input,
            output: Tokens(output),
            reasoning: Tokens(known(self.reasoning).min(output)),
            audio_output,
            image_output,
            audio_ms: known(self.duration_ms.max(self.heard_ms)),
            tool_calls: known(self.tool_calls),
            ..Quantities::default()
        }
    }

    /// The tier of service that the call got, if a known one was named. A speed of its own goes before.
    #[must_use]
    pub fn tier(&self) -> Option<Tier> {
        self.speed.filter(|speed| *speed != Tier::Standard).or(self.service_tier).or(self.speed)
    }

    /// What the provider says that the call cost, rounded up.
    #[must_use]
    pub fn reported_cost(&self) -> Option<NanoUsd> {
        self.cost.map(|cost| NanoUsd(cost.get()))
    }

    /// The same with a tier, if it has none.
    /// Whether it is only what a provider says before it has written anything: if the call then fails, that is no cost.
    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.opening
    }

    fn or_tier(self, tier: Option<Tier>) -> Self {
        Self { service_tier: self.service_tier.or(tier), ..self }
    }

    fn cache(&self) -> Cache {
        let write_long = known(self.cache_write_long);
        let by_time = known(self.cache_write_short).saturating_add(write_long);
        let written = known(self.cache_write).max(by_time);
        Cache { read: known(self.cached), write: written.saturating_sub(write_long), write_long }
    }

    fn input_tokens(&self) -> Option<u64> {
        let (said, cache) = (self.input?.get(), self.cache());
        let cached = cache.read.saturating_add(cache.write).saturating_add(cache.write_long);
        let apart = cached > said || self.names.anthropic && !self.names.openai;
        let input = if apart { said.saturating_add(cached) } else { said };
        Some(input.saturating_add(known(self.citations)))
    }

    fn output_tokens(&self) -> Option<u64> {
        let said = self.output.map(Count::get).max(self.beyond_input())?;
        let reasoning = known(self.reasoning);
        let apart = reasoning > said || self.citations.is_some();
        Some(if apart { said.saturating_add(reasoning) } else { said })
    }

    /// What the total has beyond the input, if that is output.
    fn beyond_input(&self) -> Option<u64> {
        let is_more_than_output = known(self.heard_ms) > 0 || self.citations.is_some();
        let (total, said) =
            (self.total.filter(|_| self.output.is_none() || !is_more_than_output)?.get(), self.input?.get());
        // A total that has no room for what was cached apart leaves it out too.
        let input = self.input_tokens()?;
        let has_all = total >= input.saturating_add(known(self.output));
        Some(total.saturating_sub(if has_all { input } else { said }))
    }
}

fn known(count: Option<Count>) -> u64 {
    count.map_or(0, Count::get)
}

/// Each part as far as the whole still has room for it.
fn parts<const N: usize>(whole: u64, counts: [u64; N]) -> [Tokens; N] {
    let mut left = whole;
    counts.map(|count| {
        let part = count.min(left);
        left -= part;
        Tokens(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(usage: &str) -> Usage {
        Usage::read(usage).unwrap()
    }

    fn counts(usage: &str) -> (Option<u64>, Option<u64>, u64) {
        let usage = read(usage);
        let tokens = |tokens: Option<Tokens>| tokens.map(|tokens| tokens.0);
        (tokens(usage.input()), tokens(usage.output()), usage.partial().cached_input.0)
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
            (
                r#"{"prompt_tokens":7,"prompt_tokens":8,"completion_tokens":1,"prompt_tokens_details":[]}"#,
                (Some(8), Some(1), 0),
            ),
            (
                r#"{"prompt_tokens":12,"input_tokens":0,"completion_tokens":1,"output_tokens":0}"#,
                (Some(12), Some(1), 0),
            ),
            ("{}", (None, None, 0)),
        ];
        for (usage, want) in shapes {
            assert_eq!(counts(usage), want, "{usage}");
        }
    }

    #[test]
    fn cache_counts_are_inside_of_the_input_unless_the_names_or_the_numbers_say_otherwise() {
        let shapes = [
            (r#"{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}"#, (Some(14), Some(1), 4)),
            (
                r#"{"input_tokens":10,"cache_creation":{"ephemeral_1h_input_tokens":4},"cache_creation_input_tokens":4,"cache_read_input_tokens":0,"output_tokens":1}"#,
                (Some(14), Some(1), 0),
            ),
            (r#"{"prompt_tokens":10,"cache_read_input_tokens":4,"completion_tokens":1}"#, (Some(10), Some(1), 4)),
            (
                r#"{"input_tokens":10,"cache_read_input_tokens":4,"input_tokens_details":{"cached_tokens":4},"output_tokens":1}"#,
                (Some(10), Some(1), 4),
            ),
            (
                r#"{"prompt_tokens":10,"cache_read_input_tokens":4000,"completion_tokens":1}"#,
                (Some(4010), Some(1), 4000),
            ),
            (
                r#"{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":12},"completion_tokens":3,"total_tokens":15}"#,
                (Some(22), Some(5), 12),
            ),
            (
                r#"{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1,"total_tokens":20}"#,
                (Some(14), Some(6), 4),
            ),
        ];
        for (usage, want) in shapes {
            assert_eq!(counts(usage), want, "{usage}");
        }
    }

    #[test]
    fn what_was_written_to_the_cache_is_told_apart_by_its_time() {
        let written = |usage| {
            let quantities = read(usage).partial();
            (quantities.cache_write.0, quantities.cache_write_long.0)
        };
        assert_eq!(written(r#"{"input_tokens":1,"cache_creation_input_tokens":100}"#), (100, 0));
        let both = r#"{"input_tokens":1,"cache_creation_input_tokens":100,
            "cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":70}}"#;
        assert_eq!(written(both), (30, 70));
        let by_time_only =
            r#"{"input_tokens":500,"input_tokens_details":{"cache_write_tokens_details":{"ttl_12h_tokens":70}}}"#;
        assert_eq!(written(by_time_only), (0, 70));
        assert_eq!(written(r#"{"prompt_tokens":500,"prompt_tokens_details":{"cache_write_tokens":9}}"#), (9, 0));
        let short_only = r#"{"input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":30}}"#;
        assert_eq!((written(short_only), read(short_only).input()), ((30, 0), Some(Tokens(130))));
    }

    #[test]
    fn of_a_stream_the_last_value_counts() {
        let start =
            read(r#"{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":1,"service_tier":"standard"}"#);
        let delta = read(r#"{"output_tokens":42,"input_tokens":null}"#);
        let whole = start.then(delta).then(Usage::default());
        assert_eq!((whole.input(), whole.output()), (Some(Tokens(100)), Some(Tokens(42))));
        assert_eq!((whole.partial().cached_input, whole.tier()), (Tokens(90), Some(Tier::Standard)));
        assert_eq!(whole.then(read(r#"{"output_tokens":0}"#)).output(), Some(Tokens(0)));
        let all = |count: &str, tier: &str| {
            let kinds =
                "{'cached_tokens':N,'cache_write_tokens':N,'audio_tokens':N,'image_tokens':N,'reasoning_tokens':N}";
            let text = "{'input_tokens':N,'output_tokens':N,'total_tokens':N,'citation_tokens':N,'seconds':N,
                'prompt_audio_seconds':N,'num_search_queries':N,'cost':N,'service_tier':'T','speed':'T',
                'cache_creation':{'ephemeral_5m_input_tokens':N,'ephemeral_1h_input_tokens':N},
                'input_tokens_details':K,'output_tokens_details':K}";
            let text = text.replace('K', kinds).replace('N', count).replace('T', tier);
            read(&text.replace('\'', "\""))
        };
        let (more, less) = (all("9", "flex"), all("1", "priority"));
        assert_eq!((more.then(less), less.then(more)), (less, more));
    }

    #[test]
    fn seconds_searches_tiers_and_costs_are_read() {
        let duration = read(r#"{"type":"duration","seconds":12.3456}"#);
        let want = Quantities { audio_ms: 12_346, ..Quantities::default() };
        assert_eq!(duration.quantities(), Some(want));
        let sound =
            read(r#"{"prompt_audio_seconds":203,"prompt_tokens":4,"completion_tokens":635,"total_tokens":3264}"#);
        assert_eq!((sound.output(), sound.partial().audio_ms), (Some(Tokens(635)), 203_000));
        let searches = [
            (r#"{"server_tool_use":{"web_search_requests":3}}"#, 3),
            (r#"{"num_search_queries":21}"#, 21),
            (r#"{"server_side_tool_usage_details":{"web_search_calls":2,"x_search_calls":1,"other":[]}}"#, 3),
            (r#"{"server_tool_use":7,"num_search_queries":-1}"#, 0),
        ];
        for (usage, want) in searches {
            assert_eq!(read(usage).partial().tool_calls, want, "{usage}");
        }
        let tiers = [
            (r#"{"service_tier":"standard","speed":"fast"}"#, Some(Tier::Priority)),
            (r#"{"service_tier":"priority","speed":"standard"}"#, Some(Tier::Priority)),
            (r#"{"service_tier":"batch"}"#, Some(Tier::Flex)),
            (r#"{"speed":"standard"}"#, Some(Tier::Standard)),
            (r#"{"service_tier":7,"speed":null}"#, None),
        ];
        for (usage, want) in tiers {
            assert_eq!(read(usage).tier(), want, "{usage}");
        }
    }

    #[test]
    fn the_providers_own_cost_is_exact() {
        let costs = [
            (r#"{"cost":0.00014}"#, Some(140_000)),
            (r#"{"cost":1.4e-4,"is_byok":false,"cost_details":{"upstream_inference_cost":0.002}}"#, Some(140_000)),
            (r#"{"cost":0.0001,"is_byok":true,"cost_details":{"upstream_inference_cost":0.002}}"#, Some(2_100_000)),
            (r#"{"cost":{"input_tokens_cost":0.001,"total_cost":"0.0060000001"}}"#, Some(6_000_001)),
            (r#"{"cost_in_usd_ticks":37756001}"#, Some(3_775_601)),
            (r#"{"cost":0}"#, Some(0)),
            (r#"{"cost":-1}"#, None),
            (r#"{"cost":null}"#, None),
        ];
        for (usage, want) in costs {
            assert_eq!(read(usage).reported_cost(), want.map(NanoUsd), "{usage}");
        }
        assert!(read(r#"{"cost":0}"#).says_something() && !read(r#"{"queue_time":1,"speed":"fast"}"#).says_something());
    }
}
