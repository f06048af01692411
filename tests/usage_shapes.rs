//! Every shape of usage that providers are known to send, from the answer to the charge.
//!
//! `usage/shapes.jsonl` has one shape a line: who sends it and where, the prices (dollars, per million where that is
//! meant), the whole answer or the events of a stream, and what it comes to. `how` is the sum in billionths of a
//! dollar, made by hand.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use tollgate::dialect::usage::{Usage, UsagePlaces};
use tollgate::limit::{NanoUsd, Tokens};
use tollgate::pricing::{LongContext, PerMillion, Price, Quantities, Tier, Tiers};

/// Who sends usage, and where. Each has a shape at least.
const ROWS: [(&str, &[&str]); 14] = [
    (
        "OpenAI",
        &[
            "chat",
            "chat stream",
            "legacy completions",
            "responses",
            "responses background",
            "responses/compact",
            "responses/input_tokens",
            "decisions",
            "embeddings",
            "images",
            "transcription",
            "speech",
            "errors mid-stream",
        ],
    ),
    ("Azure", &["chat stream"]),
    ("Groq", &["chat", "chat stream"]),
    ("xAI", &["chat", "responses"]),
    ("Gemini", &["chat", "chat stream"]),
    ("DeepSeek", &["chat"]),
    ("Mistral", &["chat", "chat stream", "transcription"]),
    ("Perplexity", &["chat", "chat stream"]),
    ("OpenRouter", &["chat", "chat stream", "errors mid-stream"]),
    ("Workers AI", &["native", "native stream", "chat", "responses"]),
    ("Anthropic", &["messages", "messages stream"]),
    ("Anthropic OpenAI-compat", &["chat"]),
    ("Fireworks", &["chat stream"]),
    ("vLLM", &["chat", "chat stream"]),
];
const SHAPES_MIN: usize = 45;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape<'b> {
    id: &'b str,
    provider: &'b str,
    endpoint: &'b str,
    #[serde(rename = "remark")]
    _remark: &'b str,
    prices: BTreeMap<&'b str, &'b RawValue>,
    #[serde(borrow)]
    body: Option<&'b RawValue>,
    events: Option<Vec<&'b RawValue>>,
    expect: Expect,
    how: &'b str,
}

/// How much of the usage is said.
#[derive(Deserialize, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Said {
    None,
    Partial,
    Whole,
}

/// What it comes to. Quantities that are not named are zero.
#[derive(Deserialize)]
struct Expect {
    usage: Said,
    tier: Option<String>,
    /// Billionths of a dollar by our prices.
    charge: Option<u64>,
    /// Billionths of a dollar by the provider's own word.
    reported: Option<u64>,
    #[serde(flatten)]
    quantities: BTreeMap<String, u64>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'b"))]
struct Event<'b> {
    usage: Option<&'b RawValue>,
    x_groq: Option<&'b RawValue>,
    response: Option<&'b RawValue>,
    message: Option<&'b RawValue>,
    result: Option<&'b RawValue>,
    service_tier: Option<&'b RawValue>,
}

fn found(event: &RawValue) -> Option<Usage> {
    let Event { usage, x_groq, response, message, result, service_tier } = serde_json::from_str(event.get()).unwrap();
    UsagePlaces { usage, x_groq, response, message, result, service_tier }.find()
}

fn price(prices: &BTreeMap<&str, &RawValue>) -> Price {
    let mut price = Price::default();
    for (name, value) in prices {
        let money = || NanoUsd::from_decimal(value.get().trim_matches('"')).unwrap();
        let tokens = || PerMillion(money());
        let percents = || serde_json::from_str::<BTreeMap<&str, u64>>(value.get()).unwrap();
        match *name {
            "input" => price.input = tokens(),
            "cached_input" => price.cached_input = Some(tokens()),
            "cache_write" => price.cache_write = Some(tokens()),
            "cache_write_long" => price.cache_write_long = Some(tokens()),
            "audio_input" => price.audio_input = Some(tokens()),
            "image_input" => price.image_input = Some(tokens()),
            "output" => price.output = tokens(),
            "reasoning" => price.reasoning = Some(tokens()),
            "audio_output" => price.audio_output = Some(tokens()),
            "image_output" => price.image_output = Some(tokens()),
            "minute" => price.minute = money(),
            "call" => price.call = money(),
            "tool_call" => price.tool_call = money(),
            "tiers" => {
                let percents = percents();
                let [flex, priority] = ["flex", "priority"].map(|tier| percents.get(tier).copied());
                price.tiers = Tiers { flex, priority, ultrafast: None };
            }
            "long_context" => {
                let long = percents();
                price.long_context = Some(LongContext {
                    above: Tokens(long["above"]),
                    input_percent: long["input_percent"],
                    output_percent: long["output_percent"],
                });
            }
            other => panic!("no price is called {other}"),
        }
    }
    price
}

fn quantities(named: &BTreeMap<String, u64>) -> Quantities {
    let mut quantities = Quantities::default();
    for (name, count) in named {
        let tokens = Tokens(*count);
        match name.as_str() {
            "input" => quantities.input = tokens,
            "cached_input" => quantities.cached_input = tokens,
            "cache_write" => quantities.cache_write = tokens,
            "cache_write_long" => quantities.cache_write_long = tokens,
            "audio_input" => quantities.audio_input = tokens,
            "image_input" => quantities.image_input = tokens,
            "output" => quantities.output = tokens,
            "reasoning" => quantities.reasoning = tokens,
            "audio_output" => quantities.audio_output = tokens,
            "image_output" => quantities.image_output = tokens,
            "audio_ms" => quantities.audio_ms = *count,
            "tool_calls" => quantities.tool_calls = *count,
            other => panic!("nothing is expected that is called {other}"),
        }
    }
    quantities
}

fn check(shape: &Shape<'_>) {
    let (id, expect) = (shape.id, &shape.expect);
    let events = match (shape.body, &shape.events) {
        (Some(body), None) => vec![body],
        (None, Some(events)) => events.clone(),
        _ => panic!("{id} has to have a body or events"),
    };
    let usage = events.into_iter().filter_map(found).reduce(Usage::then);
    let said = match usage {
        None => Said::None,
        Some(usage) if usage.quantities().is_none() => Said::Partial,
        Some(_) => Said::Whole,
    };
    assert_eq!(said, expect.usage, "{id}");
    let Some(usage) = usage else {
        assert_eq!((expect.charge, expect.reported, expect.quantities.len()), (None, None, 0), "{id}");
        return;
    };
    let want = quantities(&expect.quantities);
    assert_eq!(usage.partial(), want, "{id}");
    assert_eq!(usage.quantities().unwrap_or(want), want, "{id}");
    assert_eq!(usage.tier(), expect.tier.as_deref().map(|tier| Tier::named(tier).unwrap()), "{id}");
    assert_eq!(usage.reported_cost().map(|cost| cost.0), expect.reported, "{id}");
    let (price, tier) = (price(&shape.prices), usage.tier().unwrap_or_default());
    let charge = price.cost(&want, tier).usd.0;
    assert_eq!(Some(charge), expect.charge, "{id}: {}", shape.how);
    assert!(shape.how.ends_with(&format!("= {charge}")), "{id} does not say how it comes to {charge}");
    assert!(price.estimate(&want, tier).0.usd.0 >= charge, "{id}");
}

#[test]
fn every_shape_comes_to_what_it_should() {
    let lines = include_str!("usage/shapes.jsonl").lines();
    let shapes: Vec<Shape<'_>> =
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|fault| panic!("{fault}: {line}"))).collect();
    shapes.iter().for_each(check);

    let ids: BTreeSet<_> = shapes.iter().map(|shape| shape.id).collect();
    assert_eq!(ids.len(), shapes.len(), "an id stands twice");
    assert!(shapes.len() >= SHAPES_MIN, "only {} shapes", shapes.len());
    let known: BTreeSet<_> = shapes.iter().map(|shape| (shape.provider, shape.endpoint)).collect();
    let rows = ROWS.iter().flat_map(|(provider, endpoints)| endpoints.iter().map(|endpoint| (*provider, *endpoint)));
    let missing: Vec<_> = rows.filter(|row| !known.contains(row)).collect();
    assert!(missing.is_empty(), "no shape of {missing:?}");
}
