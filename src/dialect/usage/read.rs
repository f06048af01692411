//! From a provider's usage object to a [`Usage`]: every name that stands for the same thing.

use serde_json::value::RawValue;

use super::Usage;
use super::number::{Count, quoted, scaled};
use crate::dialect::members::members;
use crate::pricing::Tier;

/// Billionths in a dollar, as a power of ten.
const NANO: i64 = 9;
/// xAI counts money in ticks, of which a dollar has ten to the tenth.
const NANO_FROM_TICKS: i64 = -1;
/// Milliseconds in a second, as a power of ten.
const MILLI: i64 = 3;

type Value<'b> = Option<&'b RawValue>;

impl Usage {
    /// Reads a usage object, which may be empty; `None` if it is no object.
    #[must_use]
    pub fn read(json: &str) -> Option<Self> {
        let mut usage = Self::default();
        usage.read_input(json)?;
        usage.read_cache(json)?;
        usage.read_output(json)?;
        usage.read_others(json)?;
        usage.read_cost(json)?;
        Some(usage)
    }

    fn read_input(&mut self, json: &str) -> Option<()> {
        let names = [
            "prompt_tokens",
            "input_tokens",
            "citation_tokens",
            "prompt_tokens_details",
            "input_tokens_details",
            "prompt_token_details",
            "input_token_details",
        ];
        let [prompt, input, citations, details @ ..] = members(json, names)?;
        self.input = largest([prompt, input]);
        self.citations = largest([citations]);
        self.names.openai = largest([prompt]).is_some();
        let names =
            ["cached_tokens", "cache_write_tokens", "cache_write_tokens_details", "audio_tokens", "image_tokens"];
        for [cached, write, times, audio, image] in inside(details, names) {
            self.names.openai = true;
            self.cached = self.cached.max(largest([cached]));
            self.cache_write = self.cache_write.max(largest([write]));
            self.read_cache_times([times]);
            self.audio_input = self.audio_input.max(largest([audio]));
            self.image_input = self.image_input.max(largest([image]));
        }
        Some(())
    }

    fn read_cache(&mut self, json: &str) -> Option<()> {
        let names = [
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "cache_creation",
            "cached_tokens",
            "num_cached_tokens",
            "prompt_cache_hit_tokens",
            "cache_write_tokens",
            "cache_write_tokens_details",
        ];
        let [read, created, creation, cached, num_cached, hit, write, times] = members(json, names)?;
        self.names.anthropic = largest([read, created]).is_some() || inside([creation], []).next().is_some();
        self.cached = self.cached.max(largest([read, cached, num_cached, hit]));
        self.cache_write = self.cache_write.max(largest([created, write]));
        self.read_cache_times([creation, times]);
        Some(())
    }

    /// How much was written to the cache for how long.
    fn read_cache_times<const N: usize>(&mut self, places: [Value<'_>; N]) {
        let names = ["ephemeral_5m_input_tokens", "ttl_30m_tokens", "ephemeral_1h_input_tokens", "ttl_12h_tokens"];
        for [minutes_5, minutes_30, hours_1, hours_12] in inside(places, names) {
            self.cache_write_short = self.cache_write_short.max(largest([minutes_5, minutes_30]));
            self.cache_write_long = self.cache_write_long.max(largest([hours_1, hours_12]));
        }
    }

    fn read_output(&mut self, json: &str) -> Option<()> {
        let names = [
            "completion_tokens",
            "output_tokens",
            "total_tokens",
            "reasoning_tokens",
            "completion_tokens_details",
            "output_tokens_details",
            "completion_token_details",
            "output_token_details",
        ];
        let [completion, output, total, reasoning, details @ ..] = members(json, names)?;
        self.output = largest([completion, output]);
        self.total = largest([total]);
        self.reasoning = largest([reasoning]);
        for [reasoning, audio, image] in inside(details, ["reasoning_tokens", "audio_tokens", "image_tokens"]) {
            self.reasoning = self.reasoning.max(largest([reasoning]));
            self.audio_output = self.audio_output.max(largest([audio]));
            self.image_output = self.image_output.max(largest([image]));
        }
        Some(())
    }

    fn read_others(&mut self, json: &str) -> Option<()> {
        let names = [
            "server_tool_use",
            "num_search_queries",
            "num_server_side_tools_used",
            "num_sources_used",
            "server_side_tool_usage_details",
            "seconds",
            "prompt_audio_seconds",
            "service_tier",
            "speed",
        ];
        let [tools, queries, used, sources, details, seconds, heard, service_tier, speed] = members(json, names)?;
        let requests = inside([tools], ["web_search_requests"]).find_map(largest);
        let calls = inside([details], XAI_TOOLS).find_map(sum);
        self.tool_calls = largest([queries, used, sources]).max(requests).max(calls);
        self.duration_ms = count(seconds, MILLI);
        self.heard_ms = count(heard, MILLI);
        self.service_tier = tier(service_tier);
        self.speed = tier(speed);
        Some(())
    }

    fn read_cost(&mut self, json: &str) -> Option<()> {
        let [cost, ticks, own_key, details] = members(json, ["cost", "cost_in_usd_ticks", "is_byok", "cost_details"])?;
        let total = inside([cost], ["total_cost"]).find_map(|[total]| count(total, NANO));
        let said = count(cost, NANO).max(total).max(count(ticks, NANO_FROM_TICKS));
        // OpenRouter with the operator's own key at the provider: its fee, and what the provider takes.
        let details = details.filter(|_| own_key.is_some_and(|own| own.get() == "true"));
        let upstream = inside([details], ["upstream_inference_cost"]).find_map(|[upstream]| count(upstream, NANO));
        self.cost = said.map(|said| upstream.map_or(said, |upstream| plus(said, upstream)));
        Some(())
    }
}

/// The tools that xAI counts one by one and bills by the call.
const XAI_TOOLS: [&str; 6] = [
    "web_search_calls",
    "x_search_calls",
    "code_interpreter_calls",
    "file_search_calls",
    "document_search_calls",
    "mcp_calls",
];

/// A tier by its name; `None` if none is named that is known.
pub(super) fn tier(name: Value<'_>) -> Option<Tier> {
    Tier::named(quoted(name?.get())?)
}

/// The members called `names` of each of `places` that is an object.
fn inside<'b, const N: usize, const M: usize>(
    places: [Value<'b>; N],
    names: [&'static str; M],
) -> impl Iterator<Item = [Value<'b>; M]> {
    places.into_iter().flatten().filter_map(move |place| members(place.get(), names))
}

/// A number times ten to the power of `shift`, if there is one.
fn count(value: Value<'_>, shift: i64) -> Option<Count> {
    scaled(value?.get(), shift).map(Count::new)
}

/// The largest count among names for the same thing: who fills in a name that he does not use writes 0.
fn largest<const N: usize>(values: [Value<'_>; N]) -> Option<Count> {
    values.into_iter().filter_map(|value| count(value, 0)).max()
}

/// All counts together; `None` if there is none.
fn sum<const N: usize>(values: [Value<'_>; N]) -> Option<Count> {
    values.into_iter().filter_map(|value| count(value, 0)).reduce(plus)
}

fn plus(one: Count, other: Count) -> Count {
    Count::new(one.get().saturating_add(other.get()))
}
