//! What holds for every usage, whatever a provider sends, and for every price.
//!
//! `FUZZ_CASES=100000 cargo test --test usage_properties` makes a long run.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::value::RawValue;
use tollgate::dialect::usage::{Usage, UsagePlaces};
use tollgate::limit::NanoUsd;
use tollgate::pricing::{PerMillion, Price, Quantities, Tier};

const CASES: u32 = 300;

fn config() -> ProptestConfig {
    let asked = std::env::var("FUZZ_CASES").ok().and_then(|number| number.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(CASES), failure_persistence: None, ..ProptestConfig::default() }
}

/// Names that are read, at the top or inside, and some that are not.
const NAMES: [&str; 48] = [
    "prompt_tokens",
    "input_tokens",
    "citation_tokens",
    "completion_tokens",
    "output_tokens",
    "total_tokens",
    "reasoning_tokens",
    "prompt_tokens_details",
    "input_tokens_details",
    "prompt_token_details",
    "input_token_details",
    "completion_tokens_details",
    "output_tokens_details",
    "completion_token_details",
    "output_token_details",
    "cached_tokens",
    "num_cached_tokens",
    "prompt_cache_hit_tokens",
    "cache_write_tokens",
    "cache_write_tokens_details",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "ephemeral_5m_input_tokens",
    "ephemeral_1h_input_tokens",
    "ttl_30m_tokens",
    "ttl_12h_tokens",
    "audio_tokens",
    "image_tokens",
    "server_tool_use",
    "web_search_requests",
    "num_search_queries",
    "server_side_tool_usage_details",
    "web_search_calls",
    "x_search_calls",
    "seconds",
    "prompt_audio_seconds",
    "service_tier",
    "speed",
    "cost",
    "total_cost",
    "cost_in_usd_ticks",
    "is_byok",
    "cost_details",
    "upstream_inference_cost",
    "usage",
    "prompt\\u005ftokens",
    "\\ud800",
];

/// A value as JSON text: mostly counts, and everything that stands where a count should.
fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0_u64..5_000).prop_map(|count| count.to_string()),
        2 => any::<u64>().prop_map(|count| count.to_string()),
        1 => any::<i64>().prop_map(|count| count.to_string()),
        1 => "-?[0-9]{1,30}(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,25})?".prop_filter("JSON", |text| {
            serde_json::from_str::<&RawValue>(text).is_ok()
        }),
        1 => "[0-9.eE+ -]{0,12}".prop_map(|text| format!("\"{text}\"")),
        1 => prop::sample::select(vec!["null", "true", "false", "\"\"", "[]", "{}", "[[1]]", "\"\\ud800\""])
            .prop_map(str::to_owned),
        1 => prop::sample::select(vec!["\"flex\"", "\"default\"", "\"priority\"", "\"fast\"", "\"batch\""])
            .prop_map(str::to_owned),
    ]
}

type Member = (&'static str, String);

fn written(members: &[Member]) -> String {
    let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\" : {value}")).collect();
    format!("{{{}}}", members.join(","))
}

/// Any JSON of names that are read, some of them more than once, in no order.
fn json() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 40, 12, |inner| {
        vec((prop::sample::select(NAMES.to_vec()), inner), 0..14).prop_map(|members| written(&members))
    })
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    vec((prop::sample::select(NAMES.to_vec()), json()), 0..14)
}

fn object() -> impl Strategy<Value = String> {
    members().prop_map(|members| written(&members))
}

fn usage() -> impl Strategy<Value = Usage> {
    object().prop_map(|json| Usage::read(&json).unwrap_or_default())
}

/// A price at which every kind costs something else.
fn price() -> Price {
    let price = |dollars: u64| PerMillion(NanoUsd(dollars * 1_000_000_000));
    Price {
        input: price(4),
        cached_input: Some(price(1)),
        cache_write: Some(price(5)),
        cache_write_long: Some(price(8)),
        audio_input: Some(price(40)),
        image_input: Some(price(2)),
        output: price(10),
        reasoning: Some(price(3)),
        audio_output: Some(price(80)),
        image_output: Some(price(9)),
        minute: NanoUsd(6_000_000),
        tool_call: NanoUsd(10_000_000),
        ..Price::default()
    }
}

/// What holds for a usage, wherever it comes from.
fn check(usage: &Usage) {
    let known = usage.partial();
    let Quantities { input, output, .. } = known;
    let cache =
        u128::from(known.cached_input.0) + u128::from(known.cache_write.0) + u128::from(known.cache_write_long.0);
    assert!(cache <= input.0.into(), "{known:?}");
    assert!(u128::from(known.audio_input.0) + u128::from(known.image_input.0) <= input.0.into(), "{known:?}");
    assert!(u128::from(known.audio_output.0) + u128::from(known.image_output.0) <= output.0.into(), "{known:?}");
    assert!(known.reasoning <= output, "{known:?}");
    assert_eq!(input, usage.input().unwrap_or_default());
    assert_eq!(output, usage.output().unwrap_or_default());
    let both = usage.input().is_some() && usage.output().is_some();
    assert_eq!(usage.quantities(), both.then_some(known));
    let any = usage.input().is_some() || usage.output().is_some() || usage.reported_cost().is_some();
    assert_eq!(usage.says_something(), any);
    let (cost, tier) = (price().cost(&known, Tier::Standard), usage.tier().unwrap_or_default());
    assert!(price().estimate(&known, tier).0.usd >= cost.usd, "{known:?}");
}

fn places(texts: &[Option<Box<RawValue>>]) -> Option<Usage> {
    let [usage, x_groq, response, message, result, service_tier] = texts else { return None };
    let [usage, x_groq, response, message, result, service_tier] =
        [usage, x_groq, response, message, result, service_tier].map(|place| place.as_deref());
    UsagePlaces { usage, x_groq, response, message, result, service_tier }.find()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_object_is_read_whatever_its_members_are(json in prop_oneof![4 => object(), 1 => json()]) {
        let usage = Usage::read(&json);
        prop_assert_eq!(usage.is_some(), json.starts_with('{'), "{}", json);
        check(&usage.unwrap_or_default());
    }

    #[test]
    fn any_bytes_are_read_or_left(bytes in vec(any::<u8>(), 0..200), cut in 0_usize..400, json in object()) {
        check(&Usage::read(&String::from_utf8_lossy(&bytes)).unwrap_or_default());
        let cut: String = json.chars().take(cut).collect();
        prop_assert_eq!(Usage::read(&cut).is_some(), cut.len() == json.len());
        let noisy: Vec<u8> = json.bytes().zip(bytes.iter().cycle()).map(|(a, b)| if b % 16 == 0 { *b } else { a }).collect();
        check(&Usage::read(&String::from_utf8_lossy(&noisy)).unwrap_or_default());
    }

    #[test]
    fn places_may_hold_anything(texts in vec(option::of(prop_oneof![object(), json()]), 6)) {
        let texts: Vec<_> = texts.into_iter().map(|text| text.and_then(|text| RawValue::from_string(text).ok())).collect();
        if let Some(usage) = places(&texts) {
            prop_assert!(usage.says_something());
            check(&usage);
        }
    }

    #[test]
    fn a_stream_is_the_same_however_it_is_taken_together(a in usage(), b in usage(), c in usage()) {
        prop_assert_eq!(a.then(b).then(c), a.then(b.then(c)));
        prop_assert_eq!(a.then(a), a);
        prop_assert_eq!(a.then(Usage::default()), a);
        prop_assert_eq!(Usage::default().then(a), a);
        check(&a.then(b).then(c));
    }

    #[test]
    fn of_a_repeated_name_the_last_counts(first in members(), last in members()) {
        let plain = |name: &str| name.replace("\\u005f", "_");
        let again = |name: &str| last.iter().any(|(other, _)| plain(other) == plain(name));
        let once: Vec<_> = first.iter().filter(|(name, _)| !again(name)).chain(&last).cloned().collect();
        let all: Vec<_> = first.into_iter().chain(last.clone()).collect();
        prop_assert_eq!(Usage::read(&written(&all)), Usage::read(&written(&once)), "{}", written(&all));
    }

    #[test]
    fn a_number_is_rounded_up_exactly(whole in 0_u64..1_000_000_000, nano in 0_u64..1_000_000_000, beyond in 0_u32..1000, place in 1_usize..24) {
        // The same number with its point at another place.
        let digits = format!("{whole:012}{nano:09}{beyond:03}");
        let (left, right) = digits.split_at(place);
        let json = format!("{{\"cost\":\"{left}.{right}e{}\"}}", 12 - i64::try_from(place)?);
        let want = whole * 1_000_000_000 + nano + u64::from(beyond > 0);
        let read = Usage::read(&json).and_then(|usage| usage.reported_cost());
        prop_assert_eq!(read, Some(NanoUsd(want)), "{}", json);
    }
}
