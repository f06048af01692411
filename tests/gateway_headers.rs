//! What an answer's headers say of the caller's limits.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::flow::{ANSWER, ASK, answers};
use support::policy::Written;
use support::world::{Told, World};

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod flow;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

#[test]
fn a_header_cannot_ask_anthropic_for_what_is_not_held() {
    let sent = |asked: &str, listed: Value| {
        let mut written = Written::good();
        let anthropic = json!({
            "base_url": "https://ant.test/v1", "secret": "LLM_API_KEY", "kind": "anthropic", "request_headers": listed,
        });
        written.0.get_mut("UPSTREAMS").unwrap()["anthropic"] = anthropic;
        written.0.get_mut("MODELS").unwrap()["alpha"]["upstream"] = json!("anthropic");
        let upstream = answers(r#"{"content":[],"usage":{"input_tokens":1,"output_tokens":1}}"#);
        let mut world = World { policy: written.read(), upstream, ..World::new() };
        world.headers.insert("authorization".to_owned(), "Bearer key-plain".to_owned());
        world.headers.insert("anthropic-beta".to_owned(), asked.to_owned());
        world.body = Ok(br#"{"model":"alpha","max_tokens":1,"messages":[]}"#.to_vec());
        let told = world.request("call-1", "POST", "/v1/messages");
        assert_eq!(told.status, 200, "{}", told.text());
        let request = world.sent.borrow()[0].clone();
        let betas = request.headers.into_iter().filter(|(name, _)| name == "anthropic-beta");
        betas.map(|(_, value)| value).collect::<Vec<_>>()
    };
    let asked =
        "context-1m-2025-08-07, claude-code-20250219,interleaved-thinking-2025-05-14,é, inline-tools-2026-09-15";
    assert_eq!(sent(asked, json!([])), ["claude-code-20250219,interleaved-thinking-2025-05-14"]);
    assert_eq!(sent(asked, json!(["anthropic-beta"])), [asked]);
    assert_eq!(sent("context-1m-2025-08-07", json!([])), [""; 0]);
}

/// A world with a limit of every kind for the plan `plain`.
fn limited() -> World {
    let mut written = Written::good();
    written.0.get_mut("PLANS").unwrap()["plain"]["limits"] = json!({
        "day": {"unit": "usd", "amount": "1.00", "window": "day"},
        "rpm": {"unit": "requests", "burst": 2, "refill": 2, "per": "minute"},
        "slots": {"unit": "concurrency", "amount": 2},
        "tpm": {"unit": "tokens", "burst": 1_000, "refill": 10, "per": "second"},
    });
    World { policy: written.read(), upstream: answers(ANSWER), ..World::new() }
}

fn rates(told: &Told) -> Vec<(&str, &str)> {
    let is_rate = |name: &str| name.starts_with("x-ratelimit-") || name.starts_with("ratelimit");
    let headers = told.headers.iter().filter(|(name, _)| is_rate(name));
    headers.map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn every_answer_carries_what_is_left_as_of_the_decision() {
    let mut world = limited();
    let policy = concat!(
        r#""day";q=1000000;w=86400;tollgate-unit="usd-micro", "rpm";q=2;w=60, "#,
        r#""slots";q=2;qu="concurrent-requests", "tpm";q=1000;w=100;tollgate-unit="tokens""#
    );
    let told = world.call("call-1", "plain", ASK);
    assert_eq!(
        rates(&told),
        [
            ("x-ratelimit-limit-requests", "2"),
            ("x-ratelimit-remaining-requests", "1"),
            ("x-ratelimit-reset-requests", "30s"),
            ("x-ratelimit-limit-tokens", "1000"),
            // Held are 16 in and 100 out.
            ("x-ratelimit-remaining-tokens", "884"),
            ("x-ratelimit-reset-tokens", "11.6s"),
            ("ratelimit-policy", policy),
            ("ratelimit", r#""day";r=999784;t=43200, "rpm";r=1;t=30, "slots";r=1, "tpm";r=884;t=1"#),
        ]
    );
    world.call("call-2", "plain", ASK);
    let refused = world.call("call-3", "plain", ASK);
    // Settled are twice 100,000 billionths and 70 tokens.
    assert_eq!(
        (refused.status, rates(&refused)[7]),
        (429, ("ratelimit", r#""day";r=999800;t=43200, "rpm";r=0;t=30, "slots";r=2, "tpm";r=860;t=1"#))
    );
    assert_eq!(refused.header("retry-after"), Some("30"));
}

#[test]
fn what_is_shown_is_what_is_enforced() {
    let mut world = limited();
    world.call("call-1", "plain", ASK);
    world.headers.insert("authorization".to_owned(), "Bearer key-plain".to_owned());
    let usage = world.request("call-2", "GET", "/v1/usage");
    let shown: Value = serde_json::from_slice(&usage.body).unwrap();
    let limits: Vec<_> = shown["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| {
            let text = |name: &str| limit[name].to_string();
            [text("name"), text("unit"), text("limit"), text("left"), text("left_usd"), text("full_in_ms")].join(" ")
        })
        .collect();
    assert_eq!(
        limits,
        [
            r#""day" "nano_usd" 1000000000 999900000 "0.9999" 43200000"#,
            r#""rpm" "requests" 2 1 null 30000"#,
            r#""slots" "concurrency" 2 2 null 0"#,
            r#""tpm" "tokens" 1000 930 null 7000"#,
        ]
    );
    assert_eq!((&shown["open_holds"], &shown["plan"]), (&json!(0), &json!("plain")));
    assert_eq!(world.count("reserve"), 1, "looking reserves nothing");
}

#[test]
fn a_count_says_what_a_call_would_hold_and_holds_nothing() {
    let mut world = limited();
    world.headers.insert("authorization".to_owned(), "Bearer key-plain".to_owned());
    world.body = Ok(ASK.as_bytes().to_vec());
    let told = world.request("call-1", "POST", "/v1/tokens/count");
    let shown: Value = serde_json::from_slice(&told.body).unwrap();
    assert_eq!((told.status, &shown["input_tokens"], &shown["hold"]["nano_usd"]), (200, &json!(16), &json!(216_000)));
    assert_eq!((&shown["admitted_now"], world.spent("plain")), (&json!(true), (0, 0)));
    assert_eq!(world.call("call-1", "plain", ASK).status, 200);
    let held = world.log.borrow().last().unwrap()["held"]["usd"].clone();
    assert_eq!(held, shown["hold"]["nano_usd"]);
}

#[test]
fn cors_is_off_unless_the_policy_names_origins() {
    let mut world = limited();
    world.headers.insert("origin".to_owned(), "https://app.example".to_owned());
    assert_eq!(world.request("call-1", "OPTIONS", "/v1/chat/completions").status, 405);
    let mut written = Written::good();
    written.0.get_mut("POLICY").unwrap()["cors"] = json!({"origins": ["https://app.example"]});
    world.policy = written.read();
    let told = world.request("call-2", "OPTIONS", "/v1/chat/completions");
    assert_eq!((told.status, told.header("access-control-allow-origin")), (204, Some("https://app.example")));
    assert_eq!(told.header("access-control-allow-methods"), Some("POST"));
    let refused = world.call("call-3", "nobody", ASK);
    assert!(refused.header("access-control-expose-headers").unwrap().contains("retry-after-ms"));
    world.headers.insert("origin".to_owned(), "https://other.example".to_owned());
    let told = world.request("call-4", "OPTIONS", "/v1/chat/completions");
    assert_eq!((told.header("access-control-allow-origin"), told.header("vary")), (None, Some("Origin")));
}

#[test]
fn every_other_path_and_method_is_told_in_the_same_shape() {
    let mut world = limited();
    let cases = [
        ("GET", "/v1/chat/completions", 405, "method_not_supported"),
        ("POST", "/v1/chat/completions/", 404, "unknown_url"),
        ("POST", "/V1/chat/completions", 404, "unknown_url"),
        ("POST", "/v1//chat/completions", 404, "unknown_url"),
        ("POST", "/v1/chat%2Fcompletions", 404, "unknown_url"),
        ("POST", "/v1/chat/completions/../models", 404, "unknown_url"),
        ("GET", "/", 404, "unknown_url"),
        ("DELETE", "/v1/models", 405, "method_not_supported"),
    ];
    for (method, path, status, code) in cases {
        let told = world.request("call-1", method, path);
        assert_eq!((told.status, told.code().as_str()), (status, code), "{method} {path}");
        assert_eq!(told.header("x-request-id"), Some("call-1"));
    }
    assert!(world.asked.borrow().is_empty() && world.sent.borrow().is_empty());
    assert_eq!(world.log.borrow().len(), cases.len());
}
