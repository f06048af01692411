//! What a model's price may say, and what an operator is told of one that no price list has.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::messages::{check, set};
use support::policy::Written;
use tollgate::limit::{NanoUsd, Tokens};
use tollgate::policy::Policy;
use tollgate::pricing::{LongContext, PerMillion, Price, Tiers};

mod support {
    pub(crate) mod messages;
    pub(crate) mod policy;
}

fn at(field: &str) -> String {
    format!("MODELS/alpha/{field}")
}

fn price_of(policy: &Policy, name: &str) -> Price {
    policy.model(policy.plans.get("plain").unwrap(), name).unwrap().model.price
}

fn dollars(text: &str) -> NanoUsd {
    NanoUsd::from_decimal(text).unwrap()
}

fn million(text: &str) -> PerMillion {
    PerMillion(dollars(text))
}

#[test]
fn every_field_of_a_price_is_read_into_its_own_place() {
    let written = json!({
        "input": "1", "cached_input": "0.1", "cache_write": "1.25", "cache_write_long": "2.5", "audio_input": "3",
        "image_input": "4", "output": "5", "reasoning": "6", "audio_output": "7", "image_output": "8",
        "per_million_characters": "9", "per_minute": "0.006", "per_image": "0.04", "per_call": "0.01",
        "per_tool_call": "0.025", "flex_percent": 50, "priority_percent": 182, "ultrafast_percent": 600,
        "long_context": {"above": 272_000, "input_percent": 200, "output_percent": 150},
    });
    let mut policy = Written::good();
    set(&mut policy, "MODELS/alpha", written);
    let price = Price {
        input: million("1"),
        cached_input: Some(million("0.1")),
        cache_write: Some(million("1.25")),
        cache_write_long: Some(million("2.5")),
        audio_input: Some(million("3")),
        image_input: Some(million("4")),
        output: million("5"),
        reasoning: Some(million("6")),
        audio_output: Some(million("7")),
        image_output: Some(million("8")),
        character: million("9"),
        minute: dollars("0.006"),
        image: dollars("0.04"),
        call: dollars("0.01"),
        tool_call: dollars("0.025"),
        tiers: Tiers { flex: Some(50), priority: Some(182), ultrafast: Some(600) },
        long_context: Some(LongContext { above: Tokens(272_000), input_percent: 200, output_percent: 150 }),
    };
    assert_eq!(price_of(&policy.read().unwrap(), "alpha"), price);
}

#[test]
fn a_price_that_is_no_decimal_text_or_absurd_is_told() {
    let million = [
        "input",
        "cached_input",
        "cache_write",
        "cache_write_long",
        "audio_input",
        "image_input",
        "output",
        "reasoning",
        "audio_output",
        "image_output",
        "per_million_characters",
    ];
    let each = ["per_minute", "per_image", "per_call", "per_tool_call"];
    let decimal = "a decimal number of dollars such as \"0.15\", at most nine places, below 9007199";
    for (field, max) in million.map(|field| (field, "10000")).into_iter().chain(each.map(|field| (field, "1000"))) {
        let path = format!("MODELS.alpha.{field}");
        for (value, got, want) in [
            (json!(1), "1", "money as a decimal text, such as \"0.15\""),
            (json!("-1"), "\"-1\"", decimal),
            (json!("1e-3"), "\"1e-3\"", decimal),
        ] {
            check(&at(field), value, &[&format!("{path}: money, got {got}, want {want}")]);
        }
        let mut policy = Written::good();
        set(&mut policy, &at(field), json!(format!("{max}.1")));
        let faults = policy.read().map(|_| ()).unwrap_err().0;
        let want = format!("{path}: money, got \"{max}.1\", want at most \"{max}\"");
        assert!(faults.contains(&want), "{faults:?}");
    }
}

#[test]
fn what_no_price_list_says_is_told() {
    check(&at("cached_input"), "1.01", &["MODELS.alpha.cached_input: price, got \"1.01\", want at most input = \"1\""]);
    check(&at("cached_input"), "1", &[]);
    let write = |write: &str| json!({"input": "1", "output": "1", "cache_write": write, "cache_write_long": "2"});
    check(
        "MODELS/alpha",
        write("2.5"),
        &["MODELS.alpha.cache_write_long: price, got \"2\", want at least cache_write = \"2.5\""],
    );
    check("MODELS/alpha", write("2"), &[]);
    check(
        "POLICY/default_model",
        json!({"input": "1", "cached_input": "2", "output": "1"}),
        &["POLICY.default_model.cached_input: price, got \"2\", want at most input = \"1\""],
    );
    let percent = |field: &str, value: Value, range: &str| {
        let want = format!("MODELS.alpha.{field}: number, got {value}, want a whole number from {range}");
        check(&at(field), value, &[&want]);
    };
    percent("flex_percent", json!(0), "1 to 100");
    percent("flex_percent", json!(101), "1 to 100");
    percent("flex_percent", json!("50"), "1 to 100");
    percent("priority_percent", json!(99), "100 to 10000");
    percent("ultrafast_percent", json!(10_001), "100 to 10000");
}

#[test]
fn a_step_for_long_prompts_is_stated_whole() {
    let step = |value: Value, faults: &[&str]| check(&at("long_context"), value, faults);
    step(json!({"above": 1, "input_percent": 100, "output_percent": 100}), &[]);
    step(
        json!(5),
        &[
            "MODELS.alpha.long_context: table, got 5, want a table",
            "MODELS.alpha.long_context.above: missing, got nothing, want the longest prompt at the plain price, in tokens",
            "MODELS.alpha.long_context.input_percent: missing, got nothing, want hundredths of the plain price",
            "MODELS.alpha.long_context.output_percent: missing, got nothing, want hundredths of the plain price",
        ],
    );
    step(
        json!({"above": 0, "input_percent": 99, "output_percent": 150, "percent": 2}),
        &[
            "MODELS.alpha.long_context.above: number, got 0, want a whole number from 1 to 9007199254740991",
            "MODELS.alpha.long_context.input_percent: number, got 99, want a whole number from 100 to 10000",
            "MODELS.alpha.long_context.percent: unknown field, got 2, want no such field",
        ],
    );
}
