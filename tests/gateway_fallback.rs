//! Who may serve a call: what is held and sent for each of them, who is left alone, and for how long.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::flow::{ANSWER, ASK, answers, check, ended};
use support::policy::{UPSTREAM_KEY, Written};
use support::tries::{
    FIRST_COSTS, SECOND_COSTS, alone, at_its_limit, call, fails, logged, set, tried, unreachable, with_fallback, world,
};
use support::world::{Told, World};

mod support {
    pub(crate) mod flow;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod tries;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

/// The policy with the first upstream tried once in a call, and left alone for a second after two failures.
fn with_breaker(mut written: Written) -> World {
    set(&mut written, "UPSTREAMS", &["default", "retry", "attempts"], json!(1));
    set(&mut written, "UPSTREAMS", &["default", "health"], json!({"failures": 2, "open_ms": 1_000}));
    world(&written)
}

/// The nth call: who was tried, and the status.
fn outcome(world: &mut World, number: usize, script: Vec<support::world::Upstream>) -> String {
    let told = call(world, &format!("call-{number}"), ASK, script);
    assert_eq!(world.spent("plain").1, 0, "a hold is open");
    format!("{}: {}", tried(world), told.status)
}

#[test]
fn one_that_keeps_failing_is_left_alone_until_one_call_has_tried_it() {
    let mut world = with_breaker(with_fallback());
    let mut calls = 0;
    let mut next = |world: &mut World, script, want: &str| {
        calls += 1;
        assert_eq!(outcome(world, calls, script), want, "call {calls}");
    };
    next(&mut world, vec![fails(500), answers(ANSWER)], "up second: 200");
    next(&mut world, vec![unreachable(), answers(ANSWER)], "up second: 200");
    next(&mut world, vec![answers(ANSWER)], "second: 200");
    world.clock.pass(999);
    next(&mut world, vec![answers(ANSWER)], "second: 200");
    world.clock.pass(1);
    next(&mut world, vec![fails(503), answers(ANSWER)], "up second: 200");
    next(&mut world, vec![answers(ANSWER)], "second: 200");
    world.clock.pass(1_000);
    next(&mut world, vec![answers(ANSWER)], "up: 200");
    // It is well: it has to fail twice again.
    next(&mut world, vec![fails(503), answers(ANSWER)], "up second: 200");
    next(&mut world, vec![answers(ANSWER)], "up: 200");
    let paid: Vec<_> = (1..=9).map(|call| ended(&world, &format!("call-{call}")).join("")).collect();
    let by = |usd: u64| format!("settle exact {usd}");
    let want = [1, 1, 1, 1, 1, 1, 0, 1, 0].map(|second| by(if second == 1 { SECOND_COSTS } else { FIRST_COSTS }));
    assert_eq!(paid, want);
}

#[test]
fn a_refusal_of_a_request_shows_that_it_is_well() {
    let mut world = with_breaker(with_fallback());
    outcome(&mut world, 1, vec![fails(500), answers(ANSWER)]);
    outcome(&mut world, 2, vec![fails(400)]);
    outcome(&mut world, 3, vec![fails(500), answers(ANSWER)]);
    assert_eq!(outcome(&mut world, 4, vec![answers(ANSWER)]), "up: 200");
}

#[test]
fn without_anybody_else_it_is_asked_however_often_it_has_failed() {
    let mut world = with_breaker(alone());
    for number in 1..=10 {
        assert_eq!(outcome(&mut world, number, vec![fails(500)]), "up: 502");
    }
    assert_eq!(outcome(&mut world, 11, vec![answers(ANSWER)]), "up: 200");
}

#[test]
fn where_all_keep_failing_one_is_asked_all_the_same() {
    let mut written = with_fallback();
    set(&mut written, "UPSTREAMS", &["second", "health"], json!({"failures": 1, "open_ms": 1_000}));
    let mut world = with_breaker(written);
    for number in 1..=2 {
        world.clock.pass(1_000);
        assert_eq!(outcome(&mut world, number, vec![fails(500), fails(500)]), "up second: 502");
    }
    assert_eq!(outcome(&mut world, 3, vec![fails(500)]), "up: 502");
    assert_eq!(outcome(&mut world, 4, vec![answers(ANSWER)]), "up: 200");
}

#[test]
fn a_model_that_fails_or_is_at_its_limit_leaves_the_others_alone() {
    let mut written = with_fallback();
    let other = written.0["MODELS"]["alpha"].clone();
    set(&mut written, "MODELS", &["gamma"], other);
    set(&mut written, "PLANS", &["plain", "models"], json!(["alpha", "gamma"]));
    let mut world = with_breaker(written);
    let gamma = ASK.replace("alpha", "gamma");
    call(&mut world, "call-1", ASK, vec![at_its_limit("30"), answers(ANSWER)]);
    call(&mut world, "call-2", &gamma, vec![answers(ANSWER)]);
    call(&mut world, "call-3", ASK, vec![answers(ANSWER)]);
    assert_eq!(tried(&world), "second");
    for number in [4, 5] {
        call(&mut world, &format!("call-{number}"), &gamma, vec![fails(500), answers(ANSWER)]);
    }
    world.clock.pass(30_000);
    call(&mut world, "call-6", ASK, vec![answers(ANSWER)]);
    assert_eq!(tried(&world), "up");
}

#[test]
fn where_all_are_at_their_limits_nothing_is_sent_and_the_least_wait_is_told() {
    let mut world = world(&with_fallback());
    let told = call(&mut world, "call-1", ASK, vec![at_its_limit("30"), at_its_limit("20")]);
    assert_eq!((told.status, told.header("retry-after"), told.code().as_str()), (429, Some("20"), "theirs"));
    world.clock.pass(1_000);
    world.log.borrow_mut().clear();
    let told = call(&mut world, "call-2", ASK, vec![]);
    assert_eq!((told.status, told.code().as_str(), tried(&world).as_str()), (429, "theirs", ""));
    let names = ["retry-after", "retry-after-ms", "x-should-retry", "x-tollgate-limited-by"];
    assert_eq!(names.map(|name| told.header(name)), [Some("19"), Some("19000"), None, Some("upstream")]);
    assert!(told.text().contains("Slow down."), "in its own words: {}", told.text());
    assert_eq!((ended(&world, "call-2"), world.spent("plain")), (vec!["release".to_owned()], (0, 0)));
    assert_eq!(logged(&world, &["status", "upstream", "charged"]), [json!(429), Value::Null, Value::Null]);
    world.clock.pass(18_999);
    call(&mut world, "call-3", ASK, vec![]);
    world.clock.pass(1);
    call(&mut world, "call-4", ASK, vec![answers(ANSWER)]);
    assert_eq!(tried(&world), "second");
    // The wait of the first is over as well, but not before.
    world.clock.pass(9_999);
    call(&mut world, "call-5", ASK, vec![answers(ANSWER)]);
    assert_eq!(tried(&world), "second");
    world.clock.pass(1);
    call(&mut world, "call-6", ASK, vec![answers(ANSWER)]);
    assert_eq!(tried(&world), "up");
}

#[test]
fn alone_it_is_not_asked_before_its_own_limit_is_over_but_no_longer_than_a_minute() {
    let mut world = world(&alone());
    assert_eq!(outcome(&mut world, 1, vec![at_its_limit("3600")]), "up: 429");
    assert_eq!(outcome(&mut world, 2, vec![]), ": 429");
    world.clock.pass(60_000);
    assert_eq!(outcome(&mut world, 3, vec![answers(ANSWER)]), "up: 200");
}

/// One call that the first upstream fails, in a policy with this in its fallback and in its plan.
fn with(fallback: &[(&str, Value)], plan: &[(&str, Value)], ask: &str, served: bool) -> (World, Told) {
    let mut written = with_fallback();
    for (name, value) in fallback {
        set(&mut written, "MODELS", &["alpha", "fallbacks", "0", name], value.clone());
    }
    for (name, value) in plan {
        set(&mut written, "PLANS", &["plain", name], value.clone());
    }
    let mut world = with_breaker(written);
    let second = if served { vec![answers(ANSWER)] } else { Vec::new() };
    let told = call(&mut world, "call-1", ask, [vec![fails(500)], second].concat());
    (world, told)
}

#[test]
fn one_that_cannot_serve_the_very_call_is_left_out_of_it_and_of_its_hold() {
    let held = |world: &World| logged(world, &["held"])[0]["usd"].as_u64().unwrap();
    let long = ASK.replace("Which river?", &"Which river? ".repeat(100));
    let mut written = with_fallback();
    set(&mut written, "MODELS", &["alpha", "fallbacks", "0", "context"], json!(5));
    // Only a count can tell that a prompt is too long for certain.
    set(&mut written, "POLICY", &["counting", "method"], json!("bounds"));
    let mut world = with_breaker(written);
    let told = call(&mut world, "call-1", &long, vec![fails(500)]);
    assert_eq!((told.status, held(&world)), (502, 1_304 * 1_000 + 200_000));
    let refuse = [("output_above_max", json!("refuse"))];
    let (world, _) = with(&[("max_output", json!(99))], &refuse, ASK, false);
    assert_eq!(held(&world), 216_000);
    // A cap that may be lowered is lowered, there alone.
    let (world, told) = with(&[("max_output", json!(99))], &[], ASK, true);
    check(&world, "plain", &told, &format!("200 ; settle exact {SECOND_COSTS}; spent {SECOND_COSTS}, open 0"));
    assert_eq!(held(&world), 16 * 3_000 + 99 * 4_000);
    assert_eq!(bodies(&world, "max_completion_tokens"), [json!(100), json!(99)]);
}

/// What each of those who were tried got as a member of the body.
fn bodies(world: &World, name: &str) -> Vec<Value> {
    let of = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()[name].clone();
    world.sent.borrow().iter().map(|request| of(&request.body)).collect()
}

#[test]
fn each_gets_the_body_that_it_knows_and_its_own_credential() {
    let ask = r#"{"model":"alpha","messages":[{"role":"user","content":"Hi"}],"stream":true}"#;
    let mut written = with_fallback();
    set(&mut written, "UPSTREAMS", &["second", "stream_usage"], json!(false));
    set(&mut written, "MODELS", &["alpha", "fallbacks", "0", "output_field"], json!("max_tokens"));
    let mut world = with_breaker(written);
    call(&mut world, "call-1", ask, vec![fails(500), answers(ANSWER)]);
    assert_eq!(bodies(&world, "model"), ["alpha", "beta"]);
    assert_eq!(bodies(&world, "max_completion_tokens"), [json!(100), Value::Null]);
    assert_eq!(bodies(&world, "max_tokens"), [Value::Null, json!(100)]);
    assert_eq!(bodies(&world, "stream_options"), [json!({"include_usage": true}), Value::Null]);
    assert_eq!(
        credentials(&world),
        [format!("authorization: Bearer {UPSTREAM_KEY}"), "authorization: Bearer sk-second".to_owned()]
    );
}

fn credentials(world: &World) -> Vec<String> {
    let is_one = |name: &str| ["authorization", "api-key", "x-api-key"].contains(&name);
    let sent = world.sent.borrow();
    let headers = sent.iter().flat_map(|request| request.headers.clone());
    headers.filter(|(name, _)| is_one(name)).map(|(name, value)| format!("{name}: {value}")).collect()
}

fn urls(world: &World) -> Vec<String> {
    world.sent.borrow().iter().map(|request| request.url.clone()).collect()
}

/// A request on another route that the first upstream fails.
fn on(world: &mut World, path: &str, body: &str) -> Told {
    world.headers.insert("authorization".to_owned(), "Bearer key-plain".to_owned());
    world.body = Ok(body.as_bytes().to_vec());
    world.upstream = unreachable();
    world.request("call-1", "POST", path)
}

#[test]
fn azure_has_an_address_for_each_deployment_and_a_name_cannot_leave_it() {
    let mut written = with_fallback();
    let azure = json!({
        "base_url": "https://az.test", "secret": "SECOND_KEY", "kind": "azure", "api_version": "2024-10-21",
        "retry": {"attempts": 1},
    });
    set(&mut written, "UPSTREAMS", &["second"], azure);
    let named = |name: &str| {
        let mut written = written.clone();
        set(&mut written, "MODELS", &["alpha", "fallbacks", "0", "upstream_model"], json!(name));
        with_breaker(written)
    };
    let paths = [
        ("../my deploy_1.x/é?a=b#c", "..%2Fmy%20deploy_1.x%2F%C3%A9%3Fa%3Db%23c"),
        ("..", "%252E%252E"),
        ("gpt-4.1-mini", "gpt-4.1-mini"),
    ];
    for (name, encoded) in paths {
        let mut world = named(name);
        call(&mut world, "call-1", ASK, vec![fails(500), answers(ANSWER)]);
        let path = format!("openai/deployments/{encoded}/chat/completions");
        assert_eq!(urls(&world)[1], format!("https://az.test/{path}?api-version=2024-10-21"));
        assert_eq!(credentials(&world)[1], "api-key: sk-second");
    }
    let mut world = named("beta");
    on(&mut world, "/v1/responses", r#"{"model":"alpha","input":"Hi"}"#);
    assert_eq!(urls(&world)[1], "https://az.test/openai/responses?api-version=2024-10-21");
}

#[test]
fn anthropics_dialect_falls_back_to_another_upstream_of_its_kind() {
    let mut written = with_fallback();
    for (name, key) in [("default", "LLM_API_KEY"), ("second", "SECOND_KEY")] {
        let upstream = json!({"base_url": format!("https://{name}.test/v1"), "secret": key, "kind": "anthropic",
            "retry": {"attempts": 1}});
        set(&mut written, "UPSTREAMS", &[name], upstream);
    }
    set(&mut written, "POLICY", &["shipped_prices"], json!(false));
    let mut world = world(&written);
    let body = r#"{"model":"alpha","max_tokens":100,"messages":[{"role":"user","content":"Which river?"}]}"#;
    let told = on(&mut world, "/v1/messages", body);
    assert_eq!((told.status, tried(&world).as_str()), (502, "default second"));
    assert!(told.text().starts_with(r#"{"type":"error","error":{"#), "{}", told.text());
    assert_eq!(
        (bodies(&world, "model"), bodies(&world, "max_tokens")),
        (vec![json!("alpha"), json!("beta")], vec![json!(100); 2])
    );
    assert_eq!(credentials(&world), [format!("x-api-key: {UPSTREAM_KEY}"), "x-api-key: sk-second".to_owned()]);
}

#[test]
fn a_call_in_the_background_stays_where_its_answer_will_be_fetched() {
    let mut written = with_fallback();
    set(&mut written, "PLANS", &["plain", "background"], json!(true));
    let mut world = with_breaker(written);
    let told = on(&mut world, "/v1/responses", r#"{"model":"alpha","input":"Hi","background":true}"#);
    assert_eq!((told.status, tried(&world).as_str()), (502, "up"));
    // 2 bytes of text at 1 dollar a million tokens and 100 at 2: nobody dearer can answer.
    assert_eq!(logged(&world, &["held"])[0]["usd"], 202_000);
}
