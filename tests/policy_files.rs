//! The policy as a whole: its tables, its secrets, and the file that is shipped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use support::policy::{Written, digest};
use tollgate::policy::VARIABLE_BYTES_MAX;

mod support {
    pub(crate) mod policy;
}

/// All that is said of the good policy with one variable written anew.
fn faults(variable: &str, value: Value) -> Vec<String> {
    let mut written = Written::good();
    if value.is_null() {
        written.0.remove(variable)
    } else {
        written.0.insert(variable.to_owned(), value)
    };
    written.read().map_or_else(|faults| faults.0, |_| Vec::new())
}

fn policy_with(table: &str, fields: Value) -> Vec<String> {
    let mut policy = Written::good().0.remove("POLICY").unwrap();
    policy.as_object_mut().unwrap().insert(table.to_owned(), fields);
    faults("POLICY", policy)
}

#[test]
fn every_table_has_to_be_there_and_to_fit_a_variable() {
    assert_eq!(faults("POLICY", Value::Null), ["POLICY: variable, got nothing, want a table [vars.POLICY]"]);
    assert_eq!(faults("POLICY", json!("[1")), ["POLICY: table, got null, want a table"]);
    let models: BTreeMap<_, _> =
        (0..120).map(|n| (format!("m{n}"), json!({"input": "1", "output": "1", "max_output": 9}))).collect();
    let mut models = json!(models);
    models["alpha"] = json!({"input": "1", "output": "1"});
    let size = models.to_string().len();
    assert_eq!(
        faults("MODELS", models),
        [format!("MODELS: size, got {size} bytes, want at most {VARIABLE_BYTES_MAX}")]
    );
}

#[test]
fn a_faulty_bound_origin_place_or_way_of_counting_is_told() {
    let cases = [
        (
            "bounds",
            json!({"idle_ms": 0}),
            "POLICY.bounds.idle_ms: number, got 0, want a whole number from 1 to 3600000",
        ),
        (
            "bounds",
            json!({"hold_ms": 300_000}),
            "POLICY.bounds.hold_ms: hold, got 300000, want more than first_byte_ms = 300000",
        ),
        (
            "bounds",
            json!({"background_ms": 604_800_001}),
            "POLICY.bounds.background_ms: number, got 604800001, want a whole number from 1 to 604800000",
        ),
        ("bounds", json!({"idle": 1}), "POLICY.bounds.idle: unknown field, got 1, want no such field"),
        (
            "counting",
            json!({"method": "guess"}),
            "POLICY.counting.method: word, got \"guess\", want \"exact\" or \"bounds\" or \"bytes\"",
        ),
        (
            "counting",
            json!({"per_message": 1_001}),
            "POLICY.counting.per_message: number, got 1001, want a whole number from 0 to 1000",
        ),
        (
            "cors",
            json!({"origins": ["https://app.example/"]}),
            "POLICY.cors.origins: origin, got \"https://app.example/\", want \"*\" or an origin such as \"https://app.example\", without a path",
        ),
        (
            "placement",
            json!({"jurisdiction": "us"}),
            "POLICY.placement.jurisdiction: word, got \"us\", want \"eu\" or \"fedramp\"",
        ),
        (
            "placement",
            json!({"location_hint": "moon"}),
            "POLICY.placement.location_hint: word, got \"moon\", want \"wnam\" or \"enam\" or \"sam\" or \"weur\" or \"eeur\" or \"apac\" or \"oc\" or \"afr\" or \"me\"",
        ),
        ("plans", json!({}), "POLICY.plans: unknown field, got {}, want no such field"),
    ];
    for (table, fields, want) in cases {
        assert_eq!(policy_with(table, fields), [want]);
    }
}

#[test]
fn a_fault_of_a_key_shows_neither_key_nor_digest() {
    let keys = "JSON: {\"<SHA-256 of the key in hex>\": {\"user\": \"…\", \"plan\": \"…\"}}";
    let good = json!({"user": "ann", "plan": "plain"});
    let cases = [
        (Value::Null, format!("API_KEYS: secret, got nothing, want {keys}")),
        (json!("key-plain"), format!("API_KEYS: secret, got something else, want {keys}")),
        (json!({"key-plain": good}), "API_KEYS[0]: digest, got 9 characters, want 64 hex digits".to_owned()),
        (
            json!({digest("a"): {"plan": "plain"}}),
            "API_KEYS[0].user: missing, got nothing, want a user's name".to_owned(),
        ),
        (
            json!({digest("a"): {"user": "ann"}}),
            "API_KEYS[0].plan: missing, got nothing, want a plan's name".to_owned(),
        ),
        (
            json!({digest("a"): {"user": "ann", "plan": "gold"}}),
            "API_KEYS[0].plan: plan, got \"gold\", want a plan of PLANS".to_owned(),
        ),
        (
            json!({digest("a"): {"user": "", "plan": "plain"}}),
            "API_KEYS[0].user: text, got \"\", want a user's name".to_owned(),
        ),
    ];
    for (keys, want) in cases {
        assert_eq!(faults("API_KEYS", keys), [want]);
    }
}

#[test]
fn all_faults_are_told_at_once_and_a_long_value_is_cut() {
    let mut written = Written::good();
    written.0.insert("POLICY".to_owned(), json!({"x": "a".repeat(100), "cors": {"origins": 1}}));
    written.0.insert("MODELS".to_owned(), json!({"alpha": {"input": "1"}}));
    written.0.remove("LLM_API_KEY");
    let faults = written.read().map(|_| ()).unwrap_err().0;
    assert_eq!(
        faults,
        [
            "UPSTREAMS.default.secret: LLM_API_KEY, got no usable secret, want the name of a secret of printable ASCII",
            "MODELS.alpha.output: missing, got nothing, want dollars per million tokens as a decimal text",
            "POLICY.cors.origins: list, got 1, want a list of texts",
            &format!("POLICY.x: unknown field, got \"{}…, want no such field", "a".repeat(59)),
        ]
    );
}

/// The tables of the shipped file, as the Worker gets them.
fn shipped() -> BTreeMap<String, Value> {
    let file: toml::Table = include_str!("../wrangler.toml").parse().unwrap();
    let variables = file.get("vars").unwrap().as_table().unwrap();
    variables.iter().map(|(name, value)| (name.clone(), serde_json::to_value(value).unwrap())).collect()
}

#[test]
fn the_shipped_policy_is_valid() {
    let mut variables = shipped();
    let plan = "standard";
    variables.insert("API_KEYS".to_owned(), json!({digest("key"): {"user": "ann", "plan": plan}}));
    variables.insert("LLM_API_KEY".to_owned(), json!("sk-1"));
    let policy = Written(variables).read();
    let policy = policy.map_err(|faults| faults.0.join("\n")).unwrap();
    let plan = policy.plans.get(plan).unwrap();
    assert!(policy.model(plan, "gpt-4o-mini").is_some());
}

#[test]
fn what_the_shipped_file_shows_as_an_example_is_valid() {
    let lines = include_str!("../wrangler.toml").lines().filter(|line| line.starts_with("# \""));
    let examples: Vec<&str> = lines.map(|line| line.trim_start_matches("# ")).collect();
    let examples: toml::Table = examples.join("\n").parse().unwrap();
    assert_eq!(examples.keys().collect::<Vec<_>>(), ["gpt-5.5", "my-model"]);
    let mut models = Written::good().0.remove("MODELS").unwrap();
    for (name, model) in examples {
        models[name] = serde_json::to_value(model).unwrap();
    }
    assert_eq!(faults("MODELS", models), Vec::<String>::new());
}

#[test]
fn every_shipped_table_fits_a_variable() {
    let sizes: BTreeMap<_, _> = shipped().iter().map(|(name, table)| (name.clone(), table.to_string().len())).collect();
    assert!(sizes.values().all(|size| *size < VARIABLE_BYTES_MAX), "of {VARIABLE_BYTES_MAX} bytes: {sizes:?}");
    assert_eq!(sizes.keys().collect::<Vec<_>>(), ["MODELS", "PLANS", "POLICY", "UPSTREAMS"]);
}
