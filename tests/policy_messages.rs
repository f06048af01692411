//! What an operator is told of a policy that is not valid: every fault, with its path, what is there and what is wanted.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::messages::{check, set};
use support::policy::Written;

mod support {
    pub(crate) mod messages;
    pub(crate) mod policy;
}

#[test]
fn the_good_policy_is_good() {
    assert_eq!(Written::good().read().map(|_| ()), Ok(()));
}

#[test]
fn what_is_wrong_with_a_plan_is_told() {
    let at = |field: &str| format!("PLANS/plain/{field}");
    let one_key = json!({"00".repeat(32): {"user": "ann", "plan": "plain"}});
    let mut none = Written::good();
    set(&mut none, "PLANS", json!({}));
    set(&mut none, "API_KEYS", one_key);
    assert_eq!(
        none.read().map(|_| ()).unwrap_err().0,
        ["PLANS: plans, got none, want at least one", "API_KEYS[0].plan: plan, got \"plain\", want a plan of PLANS"]
    );
    check(
        &at("models"),
        Value::Null,
        &["PLANS.plain.models: missing, got nothing, want a list of models, or [\"*\"] for all"],
    );
    check(&at("models"), json!("alpha"), &["PLANS.plain.models: list, got \"alpha\", want a list of texts"]);
    check(
        &at("models"),
        json!(["beta"]),
        &["PLANS.plain.models: model, got \"beta\", want a model of MODELS, or a shipped one whose upstream is there"],
    );
    check(
        &at("output_max"),
        json!(0),
        &["PLANS.plain.output_max: number, got 0, want a whole number from 1 to 9007199254740991"],
    );
    check(
        &at("output_above_max"),
        json!("cut"),
        &["PLANS.plain.output_above_max: word, got \"cut\", want \"lower\" or \"refuse\""],
    );
    check(&at("n_max"), json!(129), &["PLANS.plain.n_max: number, got 129, want a whole number from 1 to 128"]);
    check(
        &at("body_max"),
        json!(26_214_401),
        &["PLANS.plain.body_max: number, got 26214401, want a whole number from 1 to 26214400"],
    );
    check(
        &at("on_disconnect"),
        json!("wait"),
        &["PLANS.plain.on_disconnect: word, got \"wait\", want \"cancel\" or \"drain\""],
    );
    check(
        &at("on_unavailable"),
        json!("open"),
        &["PLANS.plain.on_unavailable_per_minute: missing, got nothing, want the most calls per isolate and minute"],
    );
    check(
        &at("on_unavailable_per_minute"),
        json!(5),
        &["PLANS.plain.on_unavailable_per_minute: bound, got a number, want on_unavailable = \"open\" beside it"],
    );
    check(&at("price"), json!("1"), &["PLANS.plain.price: unknown field, got \"1\", want no such field"]);
}

#[test]
fn what_is_wrong_with_a_model_is_told() {
    let at = |field: &str| format!("MODELS/alpha/{field}");
    check(
        &at("input"),
        Value::Null,
        &["MODELS.alpha.input: missing, got nothing, want dollars per million tokens as a decimal text"],
    );
    check(
        &at("output"),
        json!(0.6),
        &["MODELS.alpha.output: money, got 0.6, want money as a decimal text, such as \"0.15\""],
    );
    check(
        &at("max_output"),
        json!(0),
        &["MODELS.alpha.max_output: number, got 0, want a whole number from 1 to 9007199254740991"],
    );
    check(
        &at("encoding"),
        json!("gpt2"),
        &["MODELS.alpha.encoding: word, got \"gpt2\", want \"o200k\" or \"cl100k\" or \"none\""],
    );
    check(
        &at("count_percent"),
        json!(99),
        &["MODELS.alpha.count_percent: number, got 99, want a whole number from 100 to 10000"],
    );
    check(
        &at("output_field"),
        json!("max"),
        &["MODELS.alpha.output_field: word, got \"max\", want \"max_completion_tokens\" or \"max_tokens\""],
    );
    check(
        &at("upstream"),
        json!("other"),
        &["MODELS.alpha.upstream: upstream, got \"other\", want an upstream of UPSTREAMS"],
    );
    check(&at("maxoutput"), json!(1), &["MODELS.alpha.maxoutput: unknown field, got 1, want no such field"]);
    let aliases = "POLICY/aliases";
    check(aliases, json!({"a": "b", "b": "alpha"}), &[]);
    check(
        aliases,
        json!({"alpha": "alpha"}),
        &["POLICY.aliases.alpha: alias, got a model's name, want a name of its own: one name cannot have two prices"],
    );
    check(
        aliases,
        json!({"a": "beta"}),
        &["POLICY.aliases.a: alias, got \"beta\", want a model that has a price at its end"],
    );
    check(
        aliases,
        json!({"a": "a"}),
        &["POLICY.aliases.a: alias, got a circle, want a model that has a price at its end"],
    );
    check(aliases, json!({"a": 1}), &["POLICY.aliases.a: text, got 1, want a text"]);
}

#[test]
fn what_is_wrong_with_an_upstream_is_told() {
    let at = |field: &str| format!("UPSTREAMS/default/{field}");
    let url = |value: &str, want: &str| {
        check(
            &at("base_url"),
            json!(value),
            &[&format!("UPSTREAMS.default.base_url: address, got \"{value}\", want {want}")],
        );
    };
    url("up.test/v1", "https://…");
    url("http://up.test/v1", "https://…: a credential does not travel in the clear, except to this machine");
    url("http://127.0.0.1.evil.test", "https://…: a credential does not travel in the clear, except to this machine");
    url("https://up.test/v1?key=1", "a host and a path, without query, fragment or user");
    url("https:///v1", "a host and a path, without query, fragment or user");
    url("https://up.test/v1/chat/completions", "an address without the operation at its end; Tollgate adds it");
    for good in ["http://127.0.0.1:9/v1", "http://localhost/v1", "http://[::1]:9/v1", "https://up.test/v1/"] {
        check(&at("base_url"), json!(good), &[]);
    }
    check(
        &at("secret"),
        json!("OTHER"),
        &["UPSTREAMS.default.secret: OTHER, got no usable secret, want the name of a secret of printable ASCII"],
    );
    check(
        "LLM_API_KEY",
        json!("sk-1\n"),
        &["UPSTREAMS.default.secret: LLM_API_KEY, got no usable secret, want the name of a secret of printable ASCII"],
    );
    check("LLM_API_BASE", json!("up.test"), &["LLM_API_BASE: address, got \"up.test\", want https://…"]);
    check(
        &at("request_headers"),
        json!([1]),
        &["UPSTREAMS.default.request_headers: list, got [1], want a list of texts"],
    );
    check(
        &at("stream_usage"),
        json!("yes"),
        &["UPSTREAMS.default.stream_usage: flag, got \"yes\", want true or false"],
    );
    check(&at("timeout"), json!(1), &["UPSTREAMS.default.timeout: unknown field, got 1, want no such field"]);
}

#[test]
fn what_may_be_a_secret_is_not_shown_and_none_may_pass() {
    let at = |field: &str| format!("UPSTREAMS/default/{field}");
    // What may be a password is not shown: the faults stand at /healthz for everybody to read.
    check(
        &at("base_url"),
        "https://me:pass@up.test/v1?key=1",
        &[
            "UPSTREAMS.default.base_url: address, got \"up.test/v1?key=1\", want a host and a path, without query, fragment or user",
        ],
    );
    check(
        &at("secret"),
        "sk-the-key-itself",
        &["UPSTREAMS.default.secret: name, got no usable secret, want the name of a secret of printable ASCII"],
    );
    for (list, header) in
        [("request_headers", "x-api-key"), ("request_headers", "Cookie"), ("response_headers", "set-cookie")]
    {
        let want = "one that is no credential, cookie, address, limit or part of the connection";
        let got = header.to_ascii_lowercase();
        check(
            &at(list),
            json!(["x-route", header]),
            &[&format!("UPSTREAMS.default.{list}: header, got \"{got}\", want {want}")],
        );
    }
}
