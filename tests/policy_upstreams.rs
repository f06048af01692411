//! Several upstreams: how each is called, tried again and left alone, who else serves a model, and what an operator is told
//! where that is wrong.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::messages::{check, set};
use support::policy::Written;
use tollgate::dialect::image::{ImageRule, Tiles};
use tollgate::limit::Tokens;
use tollgate::policy::{HealthRules, NamedModel, Policy, RetryRules, UpstreamKind};
use tollgate::time::Wait;

mod support {
    pub(crate) mod messages;
    pub(crate) mod policy;
}

/// The good policy with what is written at these paths.
fn policy(changes: &[(&str, Value)]) -> Policy {
    let mut written = Written::good();
    set(&mut written, "PLANS/plain/models", json!(["*"]));
    for (path, value) in changes {
        set(&mut written, path, value.clone());
    }
    written.read().map_err(|faults| faults.0.join("\n")).unwrap()
}

fn named<'p>(policy: &'p Policy, name: &str) -> NamedModel<'p> {
    policy.model(policy.plans.get("plain").unwrap(), name).unwrap()
}

#[test]
fn what_is_not_written_has_a_default() {
    let policy = policy(&[("UPSTREAMS/default/retry", Value::Null)]);
    let upstream = policy.upstream(named(&policy, "alpha").model).unwrap();
    let statuses = vec![500, 502, 503, 504, 529];
    assert_eq!(upstream.retry, RetryRules { attempts: 2, statuses, backoff: Wait(250), wait_max: Wait(2_000) });
    assert_eq!(upstream.health, HealthRules { failures: 5, open: Wait(30_000) });
    assert_eq!((&upstream.kind, upstream.first_byte), (&UpstreamKind::OpenAi, None));
}

#[test]
fn what_is_written_is_read() {
    let policy = policy(&[
        ("UPSTREAMS/default/kind", json!("azure")),
        ("UPSTREAMS/default/api_version", json!("2024-10-21")),
        ("UPSTREAMS/default/first_byte_ms", json!(9)),
        ("UPSTREAMS/default/retry", json!({"attempts": 10, "statuses": [429, 599], "backoff_ms": 0, "wait_max_ms": 0})),
        ("UPSTREAMS/default/health", json!({"failures": 1, "open_ms": 1})),
    ]);
    let upstream = policy.upstream(named(&policy, "alpha").model).unwrap();
    assert_eq!(upstream.kind, UpstreamKind::Azure { api_version: "2024-10-21".to_owned() });
    let retry = RetryRules { attempts: 10, statuses: vec![429, 599], backoff: Wait(0), wait_max: Wait(0) };
    assert_eq!((&upstream.retry, upstream.first_byte), (&retry, Some(Wait(9))));
    assert_eq!(upstream.health, HealthRules { failures: 1, open: Wait(1) });
}

#[test]
fn what_is_wrong_with_retries_and_health_is_told() {
    let fault = |path: &str, value: Value, want: &str| {
        check(&format!("UPSTREAMS/default/{path}"), value, &[&format!("UPSTREAMS.default.{want}")]);
    };
    fault("retry", json!(2), "retry: table, got 2, want a table");
    fault("retry/attempts", json!(0), "retry.attempts: number, got 0, want a whole number from 1 to 10");
    fault("retry/attempts", json!(11), "retry.attempts: number, got 11, want a whole number from 1 to 10");
    fault(
        "retry/statuses",
        json!([503, 200]),
        "retry.statuses: list, got [503,200], want a list of numbers from 400 to 599",
    );
    fault("retry/statuses", json!("503"), "retry.statuses: list, got \"503\", want a list of numbers from 400 to 599");
    fault(
        "retry/backoff_ms",
        json!(60_001),
        "retry.backoff_ms: number, got 60001, want a whole number from 0 to 60000",
    );
    fault("retry/wait_max_ms", json!(-1), "retry.wait_max_ms: number, got -1, want a whole number from 0 to 60000");
    fault("retry/times", json!(3), "retry.times: unknown field, got 3, want no such field");
    fault("health/failures", json!(0), "health.failures: number, got 0, want a whole number from 1 to 1000");
    fault("health/open_ms", json!(0), "health.open_ms: number, got 0, want a whole number from 1 to 3600000");
    fault("health/probe", json!(true), "health.probe: unknown field, got true, want no such field");
    fault("first_byte_ms", json!(0), "first_byte_ms: number, got 0, want a whole number from 1 to 3600000");
}

#[test]
fn what_is_wrong_with_a_kind_is_told() {
    let at = |field: &str| format!("UPSTREAMS/default/{field}");
    check(
        &at("kind"),
        json!("bedrock"),
        &[
            "UPSTREAMS.default.kind: word, got \"bedrock\", want \"openai\" or \"anthropic\" or \"azure\" or \"workers_ai\"",
        ],
    );
    check(
        &at("kind"),
        json!("azure"),
        &["UPSTREAMS.default.api_version: missing, got nothing, want the version in the query, such as \"2024-10-21\""],
    );
    check(
        &at("api_version"),
        json!("2024-10-21"),
        &["UPSTREAMS.default.api_version: unknown field, got \"2024-10-21\", want no such field"],
    );
    let azure = |version: &str| {
        let upstream = json!({"base_url": "https://az.test", "kind": "azure", "api_version": version});
        json!({"default": {"base_url": "https://up.test/v1"}, "az": upstream})
    };
    check("UPSTREAMS", azure("2024-10-21-preview"), &[]);
    for version in ["a&b=c", "a b", "é"] {
        check(
            "UPSTREAMS",
            azure(version),
            &[&format!("UPSTREAMS.az.api_version: version, got \"{version}\", want letters, digits, - and .")],
        );
    }
}

/// The good policy's upstreams with a second one.
fn two(kind: &str) -> (&'static str, Value) {
    let upstream = |kind: &str| json!({"base_url": "https://up.test/v1", "kind": kind});
    ("UPSTREAMS", json!({"default": upstream("openai"), "second": upstream(kind)}))
}

#[test]
fn a_fallback_is_the_model_with_what_it_states_itself() {
    let fallbacks = json!([
        {"upstream": "second", "upstream_model": "beta", "input": "3", "max_output": 50},
        {"upstream_model": "gamma"},
    ]);
    let policy = policy(&[two("openai"), ("MODELS/alpha/fallbacks", fallbacks)]);
    let named = named(&policy, "alpha-2031-01-15");
    let own = |model: &tollgate::policy::Model| {
        format!("{} {} {} {}", model.upstream, model.price.input.0, model.price.output.0, model.output_max.0)
    };
    assert_eq!(own(named.model), "default 1 2 1000");
    let others: Vec<_> = named.fallbacks().map(|other| (other.sent_as, own(other.model))).collect();
    // A snapshot keeps its date.
    assert_eq!(
        others,
        [
            ("beta-2031-01-15".to_owned(), "second 3 2 50".to_owned()),
            ("gamma-2031-01-15".to_owned(), "default 1 2 1000".to_owned())
        ]
    );
}

#[test]
fn a_shipped_model_may_have_fallbacks_with_another_image_rule() {
    let fallbacks =
        json!([{"upstream": "second", "image_tokens": 100}, {"upstream": "second", "image": {"base": 1, "tile": 2}}]);
    let policy = policy(&[two("openai"), ("MODELS/gpt-4o", json!({"fallbacks": fallbacks}))]);
    let rules: Vec<_> = named(&policy, "gpt-4o").model.fallbacks.iter().map(|model| model.count.image).collect();
    assert_eq!(rules, [ImageRule::Fixed(Tokens(100)), ImageRule::Tiles(Tiles { base: 1, tile: 2 })]);
}

#[test]
fn what_is_wrong_with_a_fallback_is_told() {
    let fault = |fallbacks: Value, want: &[&str]| {
        let mut written = Written::good();
        let (path, upstreams) = two("anthropic");
        set(&mut written, path, upstreams);
        set(&mut written, "MODELS/alpha/fallbacks", fallbacks.clone());
        assert_eq!(written.read().map(|_| ()).unwrap_err().0, want, "{fallbacks}");
    };
    fault(json!("second"), &["MODELS.alpha.fallbacks: list, got \"second\", want a list of tables"]);
    fault(json!(["second"]), &["MODELS.alpha.fallbacks[0]: table, got \"second\", want a table"]);
    fault(
        json!([{"upstream": "third"}]),
        &["MODELS.alpha.fallbacks[0].upstream: upstream, got \"third\", want an upstream of UPSTREAMS"],
    );
    fault(
        json!([{"upstream": "second"}]),
        &[
            "MODELS.alpha.fallbacks: upstream, got \"second\", want one of the kind of \"default\": a call is not translated",
        ],
    );
    fault(
        json!([{"upstream_model": "beta", "price": "1"}]),
        &["MODELS.alpha.fallbacks[0].price: unknown field, got \"1\", want no such field"],
    );
    fault(
        json!([{"fallbacks": []}]),
        &["MODELS.alpha.fallbacks[0].fallbacks: unknown field, got [], want no such field"],
    );
    fault(
        json!([{"upstream_model": "beta", "input": 3}]),
        &["MODELS.alpha.fallbacks[0].input: money, got 3, want money as a decimal text, such as \"0.15\""],
    );
}
