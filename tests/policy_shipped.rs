//! The price table that ships with the Worker, and what an operator makes of it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use support::messages::{check, set};
use support::policy::Written;
use tollgate::limit::{NanoUsd, Tokens};
use tollgate::policy::{Model, Policy};
use tollgate::pricing::{PerMillion, Quantities, Tier};

mod support {
    pub(crate) mod messages;
    pub(crate) mod policy;
}

#[derive(Deserialize)]
struct Table {
    version: String,
    aliases: BTreeMap<String, String>,
    models: BTreeMap<String, BTreeMap<String, Value>>,
}

fn table() -> Table {
    serde_json::from_str(include_str!("../src/policy/prices.json")).unwrap()
}

/// The upstream that a model of the table names.
fn upstream_of(model: &BTreeMap<String, Value>) -> &str {
    model.get("upstream").map_or("default", |upstream| upstream.as_str().unwrap())
}

/// The good policy with what is written at these paths; the plan `open` may call everything.
fn read(changes: &[(&str, Value)]) -> Result<Policy, String> {
    let mut written = Written::good();
    set(&mut written, "PLANS/open/models", json!(["*"]));
    for (path, value) in changes {
        set(&mut written, path, value.clone());
    }
    written.read().map_err(|faults| faults.0.join("\n"))
}

fn policy(changes: &[(&str, Value)]) -> Policy {
    read(changes).unwrap()
}

fn model<'p>(policy: &'p Policy, name: &str) -> Option<&'p Model> {
    policy.model(policy.plans.get("open").unwrap(), name).map(|named| named.model)
}

fn million(text: &str) -> PerMillion {
    PerMillion(NanoUsd::from_decimal(text).unwrap())
}

#[test]
fn every_model_of_the_table_is_valid_where_its_upstream_is_there() {
    let table = table();
    let there = json!({"base_url": "https://up.test/v1"});
    let upstreams: BTreeMap<&str, &Value> = table.models.values().map(|model| (upstream_of(model), &there)).collect();
    let policy = policy(&[("UPSTREAMS", json!(upstreams))]);
    assert!(table.models.len() >= 60, "only {} models", table.models.len());
    for name in table.models.keys() {
        let model = model(&policy, name).unwrap_or_else(|| panic!("{name} is not there"));
        let price = &model.price;
        assert!(price.cached_input.is_none_or(|cached| cached <= price.input), "{name}: what is cached is dearer");
        assert!(price.cache_write.is_none_or(|write| write >= price.input), "{name}: what is written is cheaper");
        assert!(
            price.cache_write_long.is_none_or(|long| Some(long) >= price.cache_write),
            "{name}: what is kept for longer is cheaper"
        );
        assert!(
            price.long_context.is_none_or(|step| step.above < model.count.context),
            "{name}: its step is never met"
        );
    }
    for (alias, target) in &table.aliases {
        assert_eq!(model(&policy, alias).unwrap().name, *target);
        assert!(!table.models.contains_key(alias), "{alias} is a model and an alias");
    }
    assert!(table.version.split('-').map(str::len).eq([4, 2, 2]), "{}", table.version);
}

#[test]
fn a_model_whose_upstream_is_not_there_is_left_out() {
    let is_there = |policy: &Policy| model(policy, "claude-haiku-4-5").is_some();
    assert!(!is_there(&policy(&[])));
    assert!(is_there(&policy(&[("UPSTREAMS/anthropic", json!({"base_url": "https://api.test/v1"}))])));
    let listed = |policy: &Policy| policy.models_of(policy.plans.get("open").unwrap()).len();
    let default = table().models.values().filter(|model| upstream_of(model) == "default").count();
    assert_eq!(listed(&policy(&[])), default + 1);
    assert_eq!(
        read(&[("PLANS/plain/models", json!(["claude-haiku-4-5"]))]).map(|_| ()).unwrap_err(),
        "PLANS.plain.models: model, got \"claude-haiku-4-5\", want a model of MODELS, or a shipped one whose upstream is there"
    );
    assert!(read(&[("PLANS/plain/models", json!(["gpt-4o-mini"]))]).is_ok());
}

#[test]
fn a_field_that_the_operator_states_holds_and_the_others_stay() {
    let plain = policy(&[]);
    let changed = policy(&[("MODELS/gpt-5.5", json!({"output": "31", "max_output": 5}))]);
    let (was, is) = (model(&plain, "gpt-5.5").unwrap(), model(&changed, "gpt-5.5").unwrap());
    assert_eq!((is.price.output, is.output_max), (million("31"), Tokens(5)));
    assert_eq!((is.price.input, is.price.long_context), (was.price.input, was.price.long_context));
    assert!(was.price.long_context.is_some());
    // A price far below the shipped one is the operator's to state.
    let cheap = policy(&[("MODELS/gpt-5.5", json!({"input": "0.01"}))]);
    assert_eq!(model(&cheap, "gpt-5.5").unwrap().price.cached_input, was.price.cached_input);
}

#[test]
fn a_shipped_model_of_a_vendor_that_is_not_there_may_be_served_by_the_default() {
    let here = policy(&[("MODELS/claude-haiku-4-5", json!({"max_output": 9}))]);
    let model = model(&here, "claude-haiku-4-5").unwrap();
    assert_eq!((model.upstream.as_str(), model.price.input), ("default", million("1")));
}

#[test]
fn a_name_that_the_operator_uses_keeps_the_operators_meaning() {
    let aliased = policy(&[("POLICY/aliases", json!({"gpt-5.5": "alpha"}))]);
    assert_eq!(model(&aliased, "gpt-5.5").unwrap().name, "alpha");
    let grok = ("UPSTREAMS/xai", json!({"base_url": "https://api.test/v1"}));
    let own = json!({"input": "3", "output": "3"});
    let named = policy(&[grok.clone(), ("MODELS/grok-4.5-latest", own)]);
    assert_eq!(model(&named, "grok-4.5-latest").unwrap().price.input, million("3"));
    let redirected = policy(&[grok, ("POLICY/aliases", json!({"grok-4.5-latest": "alpha"}))]);
    assert_eq!(model(&redirected, "grok-4.5-latest").unwrap().name, "alpha");
}

#[test]
fn the_version_tells_whose_prices_hold() {
    let version = |changes: &[(&str, Value)]| policy(changes).price_version;
    let date = table().version;
    let default = json!({"input": "1", "output": "1"});
    let plans = ["plain", "drain", "tight"].map(|plan| format!("PLANS/{plan}/models"));
    let mut none: Vec<(&str, Value)> = plans.iter().map(|path| (path.as_str(), json!(["*"]))).collect();
    none.push(("MODELS", Value::Null));
    assert_eq!(version(&none), date, "no MODELS at all");
    none.push(("POLICY/default_model", default));
    assert_eq!(version(&none), format!("{date}+policy"));
    assert_eq!(version(&[]), format!("{date}+policy"));
}

#[test]
fn the_table_can_be_left_out() {
    let policy = policy(&[("POLICY/shipped_prices", json!(false))]);
    assert_eq!(policy.price_version, "policy");
    assert_eq!(policy.models_of(policy.plans.get("open").unwrap()), ["alpha"]);
    let nothing = read(&[("POLICY/shipped_prices", json!(false)), ("MODELS", Value::Null)]).map(|_| ()).unwrap_err();
    assert!(nothing.starts_with("MODELS: variable, got nothing, want a table [vars.MODELS]\n"), "{nothing}");
    check("POLICY/shipped_prices", "no", &["POLICY.shipped_prices: flag, got \"no\", want true or false"]);
}

#[test]
fn a_long_prompt_costs_what_the_table_says() {
    let policy = policy(&[]);
    let price = &model(&policy, "gpt-5.4").unwrap().price;
    let cost = |input: u64| {
        let read = Quantities { input: Tokens(input), ..Quantities::default() };
        price.cost(&read, Tier::Standard).usd.0 / input
    };
    assert_eq!((cost(272_000), cost(300_000)), (2_500, 5_000));
}
