//! Which model a name means, and under what name it is sent.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::messages::{check, set};
use support::policy::Written;
use tollgate::policy::Policy;

mod support {
    pub(crate) mod messages;
    pub(crate) mod policy;
}

/// The good policy with what is written at these paths; `plain` may call `alpha`, `open` everything.
fn policy(changes: &[(&str, Value)]) -> Policy {
    let mut written = Written::good();
    set(&mut written, "PLANS/open/models", json!(["*"]));
    for (path, value) in changes {
        set(&mut written, path, value.clone());
    }
    written.read().map_err(|faults| faults.0.join("\n")).unwrap()
}

/// The name that is sent, and the price of a million tokens read.
fn sent(policy: &Policy, plan: &str, name: &str) -> Option<String> {
    let named = policy.model(policy.plans.get(plan).unwrap(), name)?;
    Some(format!("{} at {}", named.sent_as, named.model.price.input.0))
}

/// What a name is sent as under a plan, or that it is no model there.
fn is(policy: &Policy, plan: &str, name: &str, want: Option<&str>) {
    assert_eq!(sent(policy, plan, name).as_deref(), want, "{name} under {plan}");
}

#[test]
fn a_model_may_have_another_name_upstream_and_a_snapshot_keeps_its_date() {
    let policy = policy(&[
        ("MODELS/alpha/upstream_model", json!("vendor/alpha")),
        ("MODELS/alpha-2031-01-15", json!({"input": "7", "output": "7"})),
        ("POLICY/aliases", json!({"first": "alpha"})),
    ]);
    for name in ["alpha", "first"] {
        is(&policy, "plain", name, Some("vendor/alpha at 1"));
    }
    is(&policy, "plain", "alpha-20310116", Some("vendor/alpha-20310116 at 1"));
    is(&policy, "open", "alpha-2031-01-15", Some("alpha-2031-01-15 at 7"));
    is(&policy, "plain", "alpha-2031-01-15", None);
    check(
        "MODELS/alpha/upstream_model",
        "",
        &["MODELS.alpha.upstream_model: text, got \"\", want the model's name there"],
    );
}

#[test]
fn a_name_that_is_not_known_has_the_default_price_in_plans_that_allow_everything() {
    let default = json!({"input": "9", "output": "9", "max_output": 50});
    let policy = policy(&[("POLICY/default_model", default.clone()), ("POLICY/aliases", json!({"first": "alpha"}))]);
    is(&policy, "open", "never-heard-of", Some("never-heard-of at 9"));
    is(&policy, "open", "first", Some("alpha at 1"));
    is(&policy, "plain", "never-heard-of", None);
    let longest = "x".repeat(100);
    is(&policy, "open", &longest, Some(&format!("{longest} at 9")));
    for name in ["", "two words", "tab\t", "é", &"x".repeat(101)] {
        is(&policy, "open", name, None);
    }
    assert!(!policy.models_of(policy.plans.get("open").unwrap()).contains(&"default_model"));

    let mut named = default;
    named["upstream_model"] = json!("beta");
    let policy = self::policy(&[("POLICY/default_model", named)]);
    is(&policy, "open", "never-heard-of", Some("beta at 9"));
}

#[test]
fn without_a_default_an_unknown_name_is_no_model() {
    is(&policy(&[]), "open", "never-heard-of", None);
    let missing = "missing, got nothing, want dollars per million tokens as a decimal text";
    check("POLICY/default_model", json!({"input": "1"}), &[&format!("POLICY.default_model.output: {missing}")]);
    check(
        "POLICY/default_model",
        json!({"input": "1", "output": "1", "upstream": "other"}),
        &["POLICY.default_model.upstream: upstream, got \"other\", want an upstream of UPSTREAMS"],
    );
}
