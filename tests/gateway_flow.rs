//! The request path with everything outside of it in memory: every step fails in turn, and whatever fails, the call is
//! charged what it cost and its hold ends once.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::json;
use support::flow::{ANSWER, ASK, answers, check, ended};
use support::policy::{UPSTREAM_KEY, Written};
use support::stream::Turn;
use support::world::LimiterFault::{Down, LostReply, Nonsense, OtherReply};
use support::world::{Upstream, World};
use tollgate::gateway::ports::{ReadFault, SendFault};

mod support {
    pub(crate) mod flow;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    pub(crate) mod world;
}

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn world_with(upstream: Upstream) -> World {
    World { upstream, ..World::new() }
}

fn whole(status: u16, body: &str) -> Upstream {
    Upstream::Answers { status, headers: JSON.to_vec(), turns: vec![Turn::text(body)] }
}

#[test]
fn a_call_is_answered_byte_for_byte_and_charged_exactly() {
    let mut world = world_with(answers(ANSWER));
    let told = world.call("call-1", "plain", ASK);
    assert_eq!(told.text(), ANSWER);
    check(&world, "plain", &told, "200 ; settle exact 100000; spent 100000, open 0");
    assert_eq!(told.header("x-request-id"), Some("call-1"));
    assert_eq!((world.count("reserve"), world.count("settle")), (1, 1));
}

#[test]
fn the_upstream_gets_the_callers_bytes_and_our_credential() {
    let mut world = world_with(answers(ANSWER));
    world.headers.insert("x-api-key".to_owned(), "key-plain".to_owned());
    world.headers.insert("cookie".to_owned(), "a=b".to_owned());
    world.headers.insert("openai-beta".to_owned(), "x".to_owned());
    world.call("call-1", "plain", ASK);
    let sent = world.sent.borrow();
    assert_eq!(
        (sent.len(), sent[0].url.as_str(), sent[0].body.as_slice()),
        (1, "https://up.test/v1/chat/completions", ASK.as_bytes())
    );
    let mut names: Vec<_> = sent[0].headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    names.sort();
    let credential = format!("authorization: Bearer {UPSTREAM_KEY}");
    assert_eq!(names, ["accept-encoding: identity", &credential, "openai-beta: x"]);
    assert_eq!(sent[0].content_type, "application/json");
}

#[test]
fn an_upstream_that_fails_costs_nothing() {
    let cases = [
        (Upstream::Fails(SendFault::Unreachable), "502 upstream_unreachable"),
        (Upstream::Fails(SendFault::TimedOut), "504 upstream_timeout"),
        (whole(200, "<html>"), "502 upstream_invalid"),
        (whole(200, ""), "502 upstream_invalid"),
        (whole(200, r#"{"choices":[{"mess"#), "502 upstream_invalid"),
        (whole(200, r#"{"error":{"message":"no"}}"#), "502 upstream_failed"),
        (whole(204, ""), "502 upstream_invalid"),
        (whole(302, ""), "502 upstream_invalid"),
        (whole(400, r#"{"error":{"message":"bad","code":"why"}}"#), "400 why"),
        (whole(401, r#"{"error":{"message":"sk-upstream-secret"}}"#), "502 upstream_auth"),
        (whole(402, ""), "502 upstream_failed"),
        (whole(403, ""), "502 upstream_auth"),
        (whole(404, "<html>"), "404 "),
        (whole(429, r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#), "429 rate_limit_exceeded"),
        (whole(500, ANSWER), "502 upstream_failed"),
        (whole(503, ""), "502 upstream_failed"),
    ];
    for (upstream, want) in cases {
        let mut world = world_with(upstream);
        let told = world.call("call-1", "plain", ASK);
        check(&world, "plain", &told, &format!("{want}; release; spent 0, open 0"));
        assert!(!told.text().contains("sk-"), "{}", told.text());
        assert!(told.header("ratelimit").is_some(), "{want}");
    }
}

#[test]
fn an_answer_that_does_not_come_whole_costs_nothing() {
    let half = Turn::text(ANSWER.split_at(40).0);
    let bodies = [
        (vec![half.clone(), Turn::Break], "502 upstream_invalid"),
        (vec![half.clone(), Turn::Silence(5_000)], "504 upstream_timeout"),
        (vec![Turn::Silence(9_000)], "504 upstream_timeout"),
        (vec![half], "502 upstream_invalid"),
        (vec![Turn::Bytes(vec![b' '; 16 * 1024 * 1024]), Turn::text(ANSWER)], "502 upstream_invalid"),
    ];
    for (turns, want) in bodies {
        let mut world = world_with(Upstream::Answers { status: 200, headers: JSON.to_vec(), turns });
        let told = world.call("call-1", "plain", ASK);
        check(&world, "plain", &told, &format!("{want}; release; spent 0, open 0"));
    }
}

#[test]
fn a_request_that_cannot_be_used_reserves_nothing() {
    let long = format!(r#"{{"model":"alpha","messages":[{{"role":"user","content":"{}"}}]}}"#, "a".repeat(2_000));
    let bodies = [
        (Ok(long.into_bytes()), "", "413 request_too_large"),
        (Err(ReadFault::Broken), "", "400 invalid_request"),
        (Ok(ASK.as_bytes().to_vec()), "gzip", "415 unsupported_encoding"),
        (Ok(b"{".to_vec()), "", "400 invalid_request"),
        (Ok(ASK.replace("alpha", "beta").into_bytes()), "", "404 model_not_found"),
    ];
    for (body, encoding, want) in bodies {
        let mut world = world_with(answers(ANSWER));
        world.headers.insert("authorization".to_owned(), "Bearer key-plain".to_owned());
        world.headers.insert("content-encoding".to_owned(), encoding.to_owned());
        world.body = body;
        let told = world.request("call-1", "POST", "/v1/chat/completions");
        check(&world, "plain", &told, &format!("{want}; never held; spent 0, open 0"));
        assert!(world.sent.borrow().is_empty() && world.asked.borrow().is_empty());
    }
    let mut world = world_with(answers(ANSWER));
    let told = world.call("call-1", "nobody", ASK);
    check(&world, "plain", &told, "401 invalid_api_key; never held; spent 0, open 0");
}

#[test]
fn a_question_that_was_not_answered_is_asked_once_more_and_counts_once() {
    for fault in [Down, LostReply, Nonsense] {
        for verb in ["reserve", "settle"] {
            let mut world = world_with(answers(ANSWER));
            world.faults.insert(verb, vec![fault]);
            let told = world.call("call-1", "plain", ASK);
            check(&world, "plain", &told, "200 ; settle exact 100000; spent 100000, open 0");
            assert_eq!(world.count(verb), 2, "{fault:?} {verb}");
        }
        let mut world = world_with(Upstream::Fails(SendFault::Unreachable));
        world.faults.insert("release", vec![fault]);
        let told = world.call("call-1", "plain", ASK);
        check(&world, "plain", &told, "502 upstream_unreachable; release; spent 0, open 0");
    }
}

#[test]
fn a_limiter_that_does_not_answer_lets_nothing_through() {
    for fault in [Down, LostReply, Nonsense, OtherReply] {
        let mut world = world_with(answers(ANSWER));
        world.faults.insert("reserve", vec![fault; 2]);
        let told = world.call("call-1", "plain", ASK);
        check(&world, "plain", &told, "503 limiter_unavailable; release; spent 0, open 0");
        assert!(world.sent.borrow().is_empty(), "{fault:?}: nothing goes upstream");
        assert_eq!(told.header("retry-after"), Some("2"));
        assert_eq!(world.warnings.borrow().len(), 1);
    }
}

#[test]
fn a_hold_that_nobody_could_end_ends_at_its_deadline_with_what_it_held() {
    for fault in [Down, LostReply] {
        let mut world = world_with(answers(ANSWER));
        world.faults.insert("settle", vec![fault; 2]);
        let told = world.call("call-1", "plain", ASK);
        assert_eq!((told.status, told.text().as_str()), (200, ANSWER));
        assert_eq!(world.log.borrow()[0]["unsettled"], true);
        let want = if fault == Down { (216_000, 1) } else { (100_000, 0) };
        assert_eq!(world.spent("plain"), want, "{fault:?}");
        world.clock.pass(10_000);
        assert_eq!(world.spent("plain"), (want.0, 0), "{fault:?}: at the deadline");
    }
    let mut world = world_with(Upstream::Fails(SendFault::Unreachable));
    world.faults.insert("reserve", vec![LostReply; 2]);
    world.faults.insert("release", vec![Down; 2]);
    assert_eq!(world.call("call-1", "plain", ASK).status, 503);
    world.clock.pass(10_000);
    assert_eq!(world.spent("plain"), (216_000, 0));
}

#[test]
fn what_may_pass_unchecked_is_bounded() {
    let mut world = world_with(answers(ANSWER));
    world.faults.insert("reserve", vec![Down; 100]);
    let statuses: Vec<_> = (0..4).map(|call| world.call(&format!("call-{call}"), "open", ASK).status).collect();
    assert_eq!(statuses, [200, 200, 503, 503]);
    assert_eq!(world.count("settle"), 2, "a reservation may have been made all the same");
    assert_eq!(world.log.borrow()[0]["unchecked"], true);
    world.clock.pass(60_000);
    assert_eq!(world.call("call-4", "open", ASK).status, 200);
}

#[test]
fn what_passed_unchecked_though_it_was_held_is_charged_what_it_cost() {
    let mut world = world_with(answers(ANSWER));
    world.faults.insert("reserve", vec![LostReply; 2]);
    assert_eq!(world.call("call-1", "open", ASK).status, 200);
    let record = world.log.borrow()[0].clone();
    assert_eq!((&record["unchecked"], &record["charged"]["usd"]), (&true.into(), &100_000.into()));
    assert_eq!(world.spent("open"), (100_000, 0));
}

#[test]
fn usage_beyond_belief_is_charged_at_what_the_model_can_take() {
    let bogus = ANSWER.replace("\"completion_tokens\":30", "\"completion_tokens\":999999999999");
    let mut world = world_with(answers(&bogus));
    let told = world.call("call-1", "plain", ASK);
    assert_eq!(told.text(), bogus);
    // 40 in and, of a model that writes 1,000 at most, 1,000 out.
    check(&world, "plain", &told, "200 ; settle exact 2040000; spent 2040000, open 0");
    assert_eq!(world.log.borrow()[0]["implausible"], true);
}

#[test]
fn an_answer_without_usage_is_charged_what_was_read_and_what_was_seen() {
    let mut world = world_with(answers(r#"{"choices":[{"message":{"role":"assistant","content":"The Volga."}}]}"#));
    let told = world.call("call-1", "plain", ASK);
    check(&world, "plain", &told, "200 ; settle at least 24000; spent 24000, open 0");
}

#[test]
fn what_was_seen_is_charged_up_to_what_was_held() {
    let long = format!(r#"{{"choices":[{{"message":{{"content":"{}"}}}}]}}"#, "a".repeat(4_000));
    let mut world = world_with(answers(&long));
    let told = world.call("call-1", "plain", ASK);
    check(&world, "plain", &told, "200 ; settle at least 216000; spent 216000, open 0");
}

#[test]
fn another_call_is_not_answered_from_memory() {
    let mut world = world_with(answers(ANSWER));
    world.call("call-1", "tight", ASK);
    world.call("call-2", "tight", ASK);
    world.call("call-3", "tight", &ASK.replace("100", "99"));
    assert_eq!(world.count("reserve"), 3);
}

#[test]
fn a_refusal_names_its_moment_and_until_then_the_object_is_not_asked() {
    let mut world = world_with(answers(ANSWER));
    assert_eq!(world.call("call-1", "tight", ASK).status, 200);
    world.clock.pass(100);
    let refused = world.call("call-2", "tight", ASK);
    assert_eq!((refused.status, refused.code().as_str()), (429, "rate_limit_exceeded"));
    let waits = |told: &support::world::Told| told.header("retry-after-ms").map(str::to_owned);
    assert_eq!((waits(&refused), refused.header("retry-after")), (Some("900".to_owned()), Some("1")));
    assert_eq!(refused.header("x-tollgate-limited-by"), Some("calls"));
    assert_eq!(refused.header("x-ratelimit-remaining-requests"), Some("0"));
    assert_eq!(refused.header("x-ratelimit-reset-requests"), Some("900ms"));
    world.clock.pass(899);
    assert_eq!(waits(&world.call("call-3", "tight", ASK)), Some("1".to_owned()));
    assert_eq!(world.count("reserve"), 2, "answered from memory");
    assert!(ended(&world, "call-2").is_empty() && ended(&world, "call-3").is_empty());
    world.clock.pass(1);
    assert_eq!(world.call("call-4", "tight", ASK).status, 200);
}

#[test]
fn a_refusal_from_memory_ends_at_its_moment_however_long_its_answer_was_under_way() {
    let mut world = world_with(answers(ANSWER));
    world.call("call-1", "tight", ASK);
    world.latency = 300;
    let decided = world.clock.now();
    world.call("call-2", "tight", ASK);
    world.latency = 0;
    world.clock.pass(1_000 - world.clock.now().since(decided).0);
    assert_eq!(world.call("call-3", "tight", ASK).status, 200, "the object would have admitted it");
}

#[test]
fn a_call_that_can_never_fit_is_told_so() {
    let mut written = Written::good();
    written.0.get_mut("PLANS").unwrap()["plain"]["limits"]["day"]["amount"] = json!("0.0002");
    let mut world = World { policy: written.read(), ..world_with(answers(ANSWER)) };
    let told = world.call("call-1", "plain", ASK);
    assert_eq!((told.status, told.code().as_str()), (400, "request_exceeds_limit"));
    assert_eq!((told.header("retry-after"), told.header("x-tollgate-limited-by")), (None, Some("day")));
    assert_eq!(ended(&world, "call-1"), [""; 0]);
}

#[test]
fn a_policy_that_is_not_valid_lets_nothing_through() {
    let mut written = Written::good();
    written.0.get_mut("POLICY").unwrap()["extra"] = json!(1);
    let mut world = World { policy: written.read(), ..world_with(answers(ANSWER)) };
    let told = world.call("call-1", "plain", ASK);
    assert_eq!((told.status, told.code().as_str()), (503, "policy_invalid"));
    assert!(world.asked.borrow().is_empty() && world.sent.borrow().is_empty());
    let health = world.request("call-2", "GET", "/healthz");
    assert_eq!(health.status, 503);
    assert!(health.text().contains("POLICY.extra: unknown field, got 1, want no such field"), "{}", health.text());
}
