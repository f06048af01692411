//! Calls in the background, with everything outside of them in memory: whatever happens between the request that begins
//! one and the one that fetches its answer, it is charged once, to its own caller, and at most what it held.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::policy::{UPSTREAM_KEY, Written};
use support::stream::Turn;
use support::world::LimiterFault::{Down, LostReply, Nonsense};
use support::world::{Told, Upstream, World};
use tollgate::gateway::ports::SendFault;

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

/// 12 bytes of text and a cap of 100 tokens: 212,000 billionths of a dollar are held.
const ASK: &str = r#"{"model":"alias","input":"Which river?","max_output_tokens":100,"background":true}"#;
const HELD: i64 = 212_000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 86_400_000;
/// How long after its deadline a hold can still be corrected.
const GRACE: u64 = 600_000;

/// An answer of a provider's, as far as it matters here.
fn standing(status: &str, more: Value) -> String {
    let mut answer =
        json!({"id": "resp_1", "object": "response", "status": status, "output": [], "usage": null, "error": null});
    answer.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
    answer.to_string()
}

/// One that says what it used: 40 tokens in and 30 out are 100,000 billionths of a dollar.
fn ended(status: &str) -> String {
    standing(status, json!({"usage": {"input_tokens": 40, "output_tokens": 30, "total_tokens": 70}}))
}

fn answers(status: u16, body: &str) -> Upstream {
    let headers = vec![("content-type", "application/json"), ("x-request-id", "up-1"), ("set-cookie", "a=b")];
    Upstream::Answers { status, headers, turns: vec![Turn::text(body)] }
}

/// Every plan may call in the background.
fn written() -> Written {
    let mut written = Written::good();
    for plan in written.0.get_mut("PLANS").unwrap().as_object_mut().unwrap().values_mut() {
        plan["background"] = json!(true);
    }
    written.0.get_mut("POLICY").unwrap()["aliases"] = json!({"alias": "alpha"});
    written
}

fn begin(world: &mut World, id: &str, user: &str, body: &str) -> Told {
    world.headers.insert("authorization".to_owned(), format!("Bearer key-{user}"));
    world.body = Ok(body.as_bytes().to_vec());
    world.request(id, "POST", "/v1/responses")
}

/// A world in which a call of the user `plain` goes on in the background.
fn world_with_a_call() -> World {
    let mut world =
        World { policy: written().read(), upstream: answers(200, &standing("queued", json!({}))), ..World::new() };
    let told = begin(&mut world, "call-1", "plain", ASK);
    assert_eq!((told.status, told.text()), (200, standing("queued", json!({}))));
    assert_eq!((told.header("x-tollgate-background"), world.spent("plain")), (None, (HELD, 1)));
    world
}

fn ask(world: &mut World, user: &str, method: &str, path: &str, upstream: Upstream) -> Told {
    world.headers.insert("authorization".to_owned(), format!("Bearer key-{user}"));
    world.upstream = upstream;
    world.request("poll", method, path)
}

fn fetch(world: &mut World, body: &str) -> Told {
    ask(world, "plain", "GET", "/v1/responses/resp_1", answers(200, body))
}

fn cancel(world: &mut World, body: &str) -> Told {
    ask(world, "plain", "POST", "/v1/responses/resp_1/cancel", answers(200, body))
}

/// How each line of the log says that its call ended, and what it was charged.
fn logged(world: &World) -> Vec<(String, Option<i64>)> {
    let text = |record: &Value| record["verdict"].as_str().unwrap().to_owned();
    world.log.borrow().iter().map(|record| (text(record), record["charged"]["usd"].as_i64())).collect()
}

fn line(verdict: &str, charged: Option<i64>) -> (String, Option<i64>) {
    (verdict.to_owned(), charged)
}

#[test]
fn a_call_is_kept_and_the_answer_that_ends_it_settles_it_once() {
    let mut world = world_with_a_call();
    for status in ["queued", "in_progress", "what_nobody_knows"] {
        world.clock.pass(HOUR);
        let body = standing(status, json!({}));
        let told = fetch(&mut world, &body);
        assert_eq!((told.status, told.text(), world.spent("plain")), (200, body, (HELD, 1)));
    }
    for _ in 0..2 {
        let body = ended("completed");
        let told = fetch(&mut world, &body);
        assert_eq!((told.status, told.text(), world.spent("plain")), (200, body, (100_000, 0)));
        assert_eq!((told.header("set-cookie"), told.header("x-upstream-request-id")), (None, Some("up-1")));
    }
    // Other words later change nothing either.
    fetch(&mut world, &standing("failed", json!({})));
    assert_eq!((world.spent("plain"), world.count("settle"), world.count("release")), ((100_000, 0), 1, 0));
    let polls = [line("ok", None), line("ok", None), line("ok", None), line("settled", Some(100_000))];
    let want = [vec![line("kept", None)], polls.to_vec(), vec![line("ok", None), line("ok", None)]].concat();
    assert_eq!(logged(&world), want);
    let log = world.log.borrow();
    assert_eq!(
        (&log[0]["held"]["usd"], &log[0]["id"], &log[0]["kept_as"]),
        (&json!(HELD), &json!("call-1"), &json!("resp_1"))
    );
    let settled = &log[4];
    let told = [&settled["route"], &settled["subject"], &settled["model"], &settled["kept_as"], &settled["exact"]];
    assert_eq!(
        told,
        [&json!("/v1/responses/{id}"), &json!("user:plain"), &json!("alpha"), &json!("resp_1"), &json!(true)]
    );
}

#[test]
fn the_upstream_is_asked_with_our_credential_and_nothing_of_the_callers_body_or_query() {
    let mut world = world_with_a_call();
    world.body = Ok(b"not to be sent".to_vec());
    let going = standing("in_progress", json!({}));
    ask(&mut world, "plain", "GET", "/v1/responses/resp_1?include=x&stream=false", answers(200, &going));
    cancel(&mut world, &going);
    let sent = world.sent.borrow();
    let shown: Vec<_> = sent.iter().map(|sent| (sent.method, sent.url.as_str(), sent.body.is_empty())).collect();
    let base = "https://up.test/v1/responses";
    let (fetched, cancelled) = (format!("{base}/resp_1"), format!("{base}/resp_1/cancel"));
    assert_eq!(shown, [("POST", base, false), ("GET", &fetched, true), ("POST", &cancelled, true)]);
    for sent in sent.iter() {
        let credentials: Vec<_> = sent.headers.iter().filter(|(name, _)| name == "authorization").collect();
        assert_eq!(credentials, [&("authorization".to_owned(), format!("Bearer {UPSTREAM_KEY}"))]);
    }
}

#[test]
fn nobody_reaches_the_call_of_another() {
    let mut world = world_with_a_call();
    let sent = world.sent.borrow().len();
    for (method, path) in [("GET", "/v1/responses/resp_1"), ("POST", "/v1/responses/resp_1/cancel")] {
        let told = ask(&mut world, "drain", method, path, answers(200, &ended("completed")));
        assert_eq!((told.status, told.code().as_str()), (404, "response_not_found"));
        let told = ask(&mut world, "nobody", method, path, answers(200, &ended("completed")));
        assert_eq!((told.status, told.code().as_str()), (401, "invalid_api_key"));
    }
    // Nor a call that is not in the background, or never was.
    for id in ["call-1", "resp_2"] {
        let told = ask(&mut world, "plain", "GET", &format!("/v1/responses/{id}"), answers(200, &ended("completed")));
        assert_eq!((told.status, told.code().as_str()), (404, "response_not_found"));
    }
    assert_eq!((world.sent.borrow().len(), world.spent("plain"), world.spent("drain")), (sent, (HELD, 1), (0, 0)));
}

#[test]
fn a_call_that_nobody_fetches_is_charged_what_it_held_and_a_late_answer_corrects_that() {
    let mut world = world_with_a_call();
    world.clock.pass(DAY - 1);
    assert_eq!(world.spent("plain").1, 1, "until its deadline it has its slot");
    let mut late = world_with_a_call();
    for world in [&mut world, &mut late] {
        world.policy = written().read();
    }
    world.clock.pass(1 + GRACE);
    late.clock.pass(DAY + GRACE - 1);
    let told = fetch(&mut late, &ended("completed"));
    assert_eq!((told.status, logged(&late).pop()), (200, Some(line("settled", Some(100_000)))));
    let told = fetch(&mut world, &ended("completed"));
    assert_eq!((told.status, logged(&world).pop()), (200, Some(line("ok", None))), "too late, but it was paid for");
    assert_eq!((world.count("settle"), late.spent("plain").1), (0, 0));
    world.clock.pass(HOUR);
    assert_eq!(fetch(&mut world, &ended("completed")).status, 404, "forgotten");
}
