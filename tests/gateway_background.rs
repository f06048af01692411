//! Calls in the background, with everything outside of them in memory: whatever happens between the request that begins
//! one and the one that fetches its answer, it is charged once, to its own caller, and at most what it held.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::json;
use support::background::{
    ASK, DAY, GRACE, HELD, HOUR, answers, ask, cancel, ended, fetch, line, logged, standing, world_with_a_call, written,
};
use support::policy::UPSTREAM_KEY;
use support::world::World;

mod support {
    pub(crate) mod background;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

#[test]
fn a_call_is_kept_and_the_answer_that_ends_it_settles_it_once() {
    let mut world = world_with_a_call();
    for status in ["queued", "in_progress", "what_nobody_knows"] {
        world.clock.pass(HOUR);
        let body = standing(status, &json!({}));
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
    fetch(&mut world, &standing("failed", &json!({})));
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
    let going = standing("in_progress", &json!({}));
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

#[test]
fn visitors_who_share_an_object_do_not_share_their_calls() {
    let mut written = written();
    written.0.insert("VISITOR_SECRET".to_owned(), json!("a secret of visitors, long enough"));
    written.0.get_mut("POLICY").unwrap()["visitors"] = json!({"plan": "plain", "tokens": {"shared_plan": "drain"}});
    let mut world = World { policy: written.read(), ..World::new() };
    world.headers.insert("cf-connecting-ip".to_owned(), "203.0.113.9".to_owned());
    let tokens = [1, 2].map(|visitor| {
        world.clock.pass(1);
        let told = world.request(&format!("visit-{visitor}"), "POST", "/v1/visitor");
        let told: serde_json::Value = serde_json::from_slice(&told.body).unwrap();
        told["token"].as_str().unwrap().to_owned()
    });
    let mut call = |token: Option<&String>, method: &str, path: &str, answer: &str| {
        world.headers.remove("x-tollgate-visitor");
        world.headers.extend(token.map(|token| ("x-tollgate-visitor".to_owned(), token.clone())));
        world.body = Ok(ASK.as_bytes().to_vec());
        world.upstream = answers(200, answer);
        let told = world.request("call-1", method, path);
        (told.status, told.code())
    };
    let own = Some(&tokens[0]);
    let ok = (200, String::new());
    assert_eq!(call(own, "POST", "/v1/responses", &standing("queued", &json!({}))), ok);
    for other in [Some(&tokens[1]), None] {
        for (method, path) in [("GET", "/v1/responses/resp_1"), ("POST", "/v1/responses/resp_1/cancel")] {
            assert_eq!(call(other, method, path, &ended("completed")), (404, "response_not_found".to_owned()));
        }
    }
    assert_eq!(call(own, "GET", "/v1/responses/resp_1", &ended("completed")), ok);
    assert_eq!((world.count("settle"), world.sent.borrow().len()), (3, 2), "two of them for the tokens");
}
