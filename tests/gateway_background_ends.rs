//! How calls in the background end, and what fails on the way: each is charged once, and at most what it held.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::background::{
    ASK, DAY, HELD, HOUR, answers, ask, begin, cancel, ended, fetch, line, logged, standing, world_with_a_call, written,
};
use support::stream::Turn;
use support::world::LimiterFault::{Down, LostReply, Nonsense, OtherReply};
use support::world::{Told, Upstream, World};
use tollgate::gateway::ports::SendFault;

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod background;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

/// Two tokens of output.
fn output() -> Value {
    json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "Volga"}]}]})
}

fn with(status: &str, more: &[Value]) -> String {
    let mut all = json!({});
    for more in more {
        all.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
    }
    standing(status, &all)
}

fn refused(told: &Told) -> String {
    format!("{} {}", told.status, told.code())
}

#[test]
fn every_end_has_its_price() {
    let error = || json!({"error": {"code": "server_error", "message": "no"}});
    let usage = |input: u64, output: u64| json!({"usage": {"input_tokens": input, "output_tokens": output}});
    let cases = [
        (ended("completed"), "settle", 100_000),
        (ended("incomplete"), "settle", 100_000),
        (ended("cancelled"), "settle", 100_000),
        (with("failed", &[error(), usage(40, 30)]), "settle", 100_000),
        // One that failed before any output costs nothing, as if it had been awaited.
        (with("failed", &[error()]), "release", 0),
        // 12 bytes of prompt, and two tokens that were seen.
        (with("failed", &[error(), output()]), "settle", 16_000),
        (with("completed", &[output()]), "settle", 16_000),
        // A cancelled call is like a stream that its client has left.
        (with("cancelled", &[]), "settle", 12_000),
        (with("cancelled", &[output()]), "settle", 16_000),
        // Beyond belief: the model reads 10,000 and writes 1,000 at most.
        (with("completed", &[usage(99_000_000, 99_000_000)]), "settle", 12_000_000),
    ];
    for (body, verb, charged) in cases {
        let mut world = world_with_a_call();
        let told = fetch(&mut world, &body);
        assert_eq!((told.status, told.text(), world.spent("plain")), (200, body.clone(), (charged, 0)), "{body}");
        let logged = logged(&world).pop();
        assert_eq!(logged, Some(line("settled", (verb == "settle").then_some(charged))), "{body}");
        assert_eq!((world.count(verb), world.count("settle") + world.count("release")), (1, 1), "{body}");
        assert_eq!(world.log.borrow()[1]["implausible"].as_bool(), (charged == 12_000_000).then_some(true));
    }
}

#[test]
fn a_cancelled_call_is_settled_by_the_answer_to_that() {
    let mut world = world_with_a_call();
    let told = cancel(&mut world, &ended("cancelled"));
    assert_eq!((told.status, told.text(), world.spent("plain")), (200, ended("cancelled"), (100_000, 0)));
    cancel(&mut world, &ended("cancelled"));
    assert_eq!((fetch(&mut world, &ended("cancelled")).status, world.count("settle")), (200, 1));
    assert_eq!(world.log.borrow()[1]["route"], "/v1/responses/{id}/cancel");
    // One that the provider goes on with all the same is still open.
    let mut world = world_with_a_call();
    cancel(&mut world, &standing("in_progress", &json!({})));
    assert_eq!(world.spent("plain"), (HELD, 1));
}

#[test]
fn what_ends_at_once_is_settled_as_if_it_had_been_awaited() {
    for (body, want) in [
        (ended("completed"), (200, 100_000)),
        (with("failed", &[json!({"error": {"message": "no"}})]), (502, 0)),
        // A provider that does not know the field answers without a word on how far it has come.
        (json!({"output": [], "usage": {"input_tokens": 40, "output_tokens": 30}}).to_string(), (200, 100_000)),
    ] {
        let mut world = World { policy: written().read(), upstream: answers(200, &body), ..World::new() };
        let told = begin(&mut world, "call-1", "plain", ASK);
        assert_eq!((told.status, world.spent("plain").0, world.count("keep")), (want.0, want.1, 0), "{body}");
        assert_eq!(fetch(&mut world, &ended("completed")).status, 404, "{body}");
    }
}

#[test]
fn a_call_that_cannot_be_kept_is_answered_and_charged_what_it_held() {
    let queued = |id: Value| with("queued", &[json!({"id": id})]);
    let cases = [
        (queued(json!("resp_1")), vec![Down; 2]),
        (queued(json!("resp_1")), vec![Nonsense, Down]),
        (queued(json!("resp/../1")), vec![]),
        (queued(json!("r".repeat(129))), vec![]),
        (queued(json!(7)), vec![]),
        (queued(json!(null)), vec![]),
    ];
    for (body, faults) in cases {
        let (lost, unanswered) = (faults.first() == Some(&Nonsense), !faults.is_empty());
        let mut world = World { policy: written().read(), upstream: answers(200, &body), ..World::new() };
        world.faults.insert("keep", faults);
        let told = begin(&mut world, "call-1", "plain", ASK);
        assert_eq!((told.status, told.text()), (200, body.clone()));
        assert_eq!(told.header("x-tollgate-background"), Some("not-kept"), "{body}");
        assert_eq!(logged(&world), [line("not_kept", Some(HELD))], "{body}");
        assert_eq!(world.log.borrow()[0]["unsettled"].as_bool(), unanswered.then_some(true), "{body}");
        assert!(!world.warnings.borrow().is_empty());
        assert_eq!(world.spent("plain"), (HELD, u64::from(unanswered)), "{body}");
        world.clock.pass(10_000);
        // If it was kept all the same, and only the answer lost, it stays open until somebody asks.
        assert_eq!(world.spent("plain"), (HELD, u64::from(lost)), "{body}");
        assert_eq!(fetch(&mut world, &ended("completed")).status, if lost { 200 } else { 404 }, "{body}");
    }
}

#[test]
fn an_id_that_the_provider_gives_twice_is_the_first_calls() {
    let mut world = world_with_a_call();
    world.upstream = answers(200, &standing("queued", &json!({})));
    let told = begin(&mut world, "call-2", "plain", ASK);
    assert_eq!((told.status, told.header("x-tollgate-background")), (200, Some("not-kept")));
    assert_eq!(world.spent("plain"), (2 * HELD, 1));
    fetch(&mut world, &ended("completed"));
    assert_eq!(world.spent("plain"), (HELD + 100_000, 0));
}

#[test]
fn a_question_that_was_not_answered_is_asked_once_more_and_counts_once() {
    for fault in [Down, LostReply, Nonsense] {
        let mut world = World { policy: written().read(), ..World::new() };
        world.upstream = answers(200, &standing("queued", &json!({})));
        for verb in ["keep", "find", "settle"] {
            world.faults.insert(verb, vec![fault]);
        }
        let told = begin(&mut world, "call-1", "plain", ASK);
        assert_eq!((told.header("x-tollgate-background"), world.spent("plain")), (None, (HELD, 1)), "{fault:?}");
        fetch(&mut world, &ended("completed"));
        assert_eq!(world.spent("plain"), (100_000, 0), "{fault:?}");
        assert_eq!(logged(&world), [line("kept", None), line("settled", Some(100_000))], "{fault:?}");
        assert_eq!(["keep", "find", "settle"].map(|verb| world.count(verb)), [2; 3], "{fault:?}");
    }
}

#[test]
fn without_the_limiter_nothing_is_asked_of_the_upstream() {
    for fault in [Down, LostReply, Nonsense, OtherReply] {
        let mut world = world_with_a_call();
        world.faults.insert("find", vec![fault; 2]);
        for method in ["GET", "POST"] {
            world.asked_before.borrow_mut().clear();
            let path = if method == "GET" { "/v1/responses/resp_1" } else { "/v1/responses/resp_1/cancel" };
            let told = ask(&mut world, "plain", method, path, answers(200, &ended("completed")));
            assert_eq!(refused(&told), "503 limiter_unavailable", "{fault:?}");
        }
        assert_eq!((world.sent.borrow().len(), world.spent("plain")), (1, (HELD, 1)), "{fault:?}");
    }
    // A call that would hold nothing could not be found again, whatever the plan lets pass.
    let mut world = World { policy: written().read(), upstream: answers(200, &ended("completed")), ..World::new() };
    world.faults.insert("reserve", vec![Down; 4]);
    assert_eq!(refused(&begin(&mut world, "call-1", "open", ASK)), "503 limiter_unavailable");
    assert!(world.sent.borrow().is_empty());
    let awaited = ASK.replace("true", "false");
    assert_eq!(begin(&mut world, "call-2", "open", &awaited).status, 200);
}

#[test]
fn a_settlement_that_is_lost_is_made_by_the_next_request_or_the_deadline() {
    let mut world = world_with_a_call();
    world.faults.insert("settle", vec![Down; 2]);
    assert_eq!(fetch(&mut world, &ended("completed")).text(), ended("completed"));
    assert_eq!((world.spent("plain"), world.log.borrow()[1]["unsettled"].as_bool()), ((HELD, 1), Some(true)));
    assert_eq!(fetch(&mut world, &ended("completed")).text(), ended("completed"));
    assert_eq!(world.spent("plain"), (100_000, 0));
    assert_eq!(logged(&world), [line("kept", None), line("ok", None), line("settled", Some(100_000))]);
}

#[test]
fn an_upstream_that_fails_changes_nothing() {
    let error = r#"{"error":{"message":"gone","type":"invalid_request_error","param":null,"code":"gone"}}"#;
    let silence = |ms| {
        let turns = vec![Turn::text("{"), Turn::Silence(ms)];
        Upstream::Answers { status: 200, headers: Vec::new(), turns }
    };
    let cases = [
        (answers(404, error), "404 gone"),
        (answers(409, error), "409 gone"),
        (answers(429, error), "429 gone"),
        (answers(401, error), "502 upstream_auth"),
        (answers(500, &ended("completed")), "502 upstream_failed"),
        (answers(302, &ended("completed")), "502 upstream_invalid"),
        (answers(200, "<html>"), "502 upstream_invalid"),
        (answers(200, r#"{"usage":{"input_tokens":4,"output_tokens":3}}"#), "502 upstream_invalid"),
        (answers(200, r#"[{"status":"completed"}]"#), "502 upstream_invalid"),
        (Upstream::Fails(SendFault::Unreachable), "502 upstream_unreachable"),
        (Upstream::Fails(SendFault::TimedOut), "504 upstream_timeout"),
        (silence(5_000), "504 upstream_timeout"),
    ];
    let mut world = world_with_a_call();
    for (upstream, want) in cases {
        let told = ask(&mut world, "plain", "GET", "/v1/responses/resp_1", upstream);
        assert_eq!((refused(&told).as_str(), world.spent("plain")), (want, (HELD, 1)));
        assert!(!told.text().contains("given back"), "{}", told.text());
    }
    fetch(&mut world, &ended("completed"));
    assert_eq!((world.spent("plain"), world.count("settle"), world.count("release")), ((100_000, 0), 1, 0));
}

#[test]
fn what_is_charged_is_by_the_policy_of_the_moment() {
    let mut dearer = written();
    dearer.0.get_mut("MODELS").unwrap()["alpha"]["input"] = json!("10");
    dearer.0.get_mut("POLICY").unwrap()["aliases"] = json!({});
    for plan in dearer.0.get_mut("PLANS").unwrap().as_object_mut().unwrap().values_mut() {
        (plan["background"], plan["models"]) = (json!(false), json!([]));
    }
    let mut world = world_with_a_call();
    world.policy = dearer.read();
    fetch(&mut world, &ended("completed"));
    assert_eq!(world.spent("plain"), (460_000, 0), "also of a model that may not be called any more");
    let mut other = written();
    let models = other.0.get_mut("MODELS").unwrap().as_object_mut().unwrap();
    let alpha = models.remove("alpha").unwrap();
    models.insert("beta".to_owned(), alpha);
    other.0.get_mut("POLICY").unwrap()["aliases"] = json!({});
    for plan in other.0.get_mut("PLANS").unwrap().as_object_mut().unwrap().values_mut() {
        plan["models"] = json!(["*"]);
    }
    let mut world = world_with_a_call();
    world.policy = other.read();
    assert_eq!(refused(&fetch(&mut world, &ended("completed"))), "404 model_not_found");
    assert_eq!((world.sent.borrow().len(), world.spent("plain")), (1, (HELD, 1)));
    world.clock.pass(DAY + HOUR);
    assert_eq!(world.spent("plain").1, 0);
}
