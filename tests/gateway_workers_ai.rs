//! A model behind a binding with everything outside of the call in memory: the answers come out as OpenAI's, each is
//! charged what it cost, and its hold ends once.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::flow::{answers, check};
use support::policy::Written;
use support::stream::Turn;
use support::world::{Told, Upstream, World};
use tollgate::gateway::ports::SendFault;

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

const LLAMA: &str = "@cf/meta/llama";
const ASK: &str =
    r#"{"model":"@cf/meta/llama","messages":[{"role":"user","content":"Which river?"}],"max_tokens":100}"#;
const NATIVE: &str = r#"{"response":"Volga","usage":{"prompt_tokens":40,"completion_tokens":30,"total_tokens":70}}"#;

/// A dollar and two a million tokens. The upstream has no address and no key.
fn world(upstream: Upstream) -> World {
    let mut written = Written::good();
    let mut set = |variable: &str, name: &str, value: Value| {
        written.0.get_mut(variable).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value);
    };
    set("UPSTREAMS", "workers-ai", json!({"kind": "workers_ai", "binding": "MODELS_HERE", "stream_usage": false}));
    let model = json!({"input": "1", "output": "2", "max_output": 1_000, "context": 10_000, "upstream": "workers-ai"});
    set("MODELS", LLAMA, model);
    let plans = written.0.get_mut("PLANS").unwrap().as_object_mut().unwrap();
    for plan in plans.values_mut() {
        plan.as_object_mut().unwrap().insert("models".to_owned(), json!([LLAMA]));
    }
    World { policy: written.read(), upstream, ..World::new() }
}

fn stream(turns: Vec<Turn>) -> Upstream {
    Upstream::Answers { status: 200, headers: vec![("content-type", "text/event-stream")], turns }
}

fn streaming() -> String {
    ASK.replace("\"max_tokens\"", "\"stream\":true,\"max_tokens\"")
}

fn content(told: &Told) -> Value {
    let body: Value = serde_json::from_slice(&told.body).unwrap();
    body["choices"][0]["message"]["content"].clone()
}

#[test]
fn a_whole_answer_is_openais_and_charged_exactly() {
    let mut world = world(answers(NATIVE));
    let told = world.call("call-1", "plain", ASK);
    check(&world, "plain", &told, "200 ; settle exact 100000; spent 100000, open 0");
    assert_eq!(content(&told), "Volga");
    let (sent, ran) = (world.sent.borrow(), world.ran.borrow());
    assert_eq!((sent.len(), ran.len()), (0, 1), "nothing is fetched");
    assert_eq!((ran[0].binding.as_str(), ran[0].model.as_str()), ("MODELS_HERE", LLAMA));
    assert_eq!(ran[0].input, r#"{"messages":[{"role":"user","content":"Which river?"}],"max_tokens":100}"#);
}

#[test]
fn a_stream_is_openais_and_shows_its_usage_to_who_asked() {
    let turns = || {
        let texts = ["data: {\"response\":\"Vol", "ga\",\"p\":\"xyz\"}\n\nda", "ta: ", "{\"response\":\"\",\"usage\":"];
        let ends = ["{\"prompt_tokens\":40,\"completion_tokens\":30}}\n\n", "data: [DONE]\n\n"];
        texts.iter().chain(&ends).map(|text| Turn::text(text)).collect()
    };
    for (options, shown) in [("", false), (r#""stream_options":{"include_usage":true},"#, true)] {
        let mut world = world(stream(turns()));
        let body = streaming().replace("\"stream\"", &format!("{options}\"stream\""));
        let told = world.call("call-1", "plain", &body);
        check(&world, "plain", &told, "200 ; settle exact 100000; spent 100000, open 0");
        let text = told.text();
        assert_eq!(told.closed, Some(true));
        assert_eq!(text.contains("\"usage\""), shown, "{text}");
        assert!(text.contains(r#""delta":{"content":"Volga"}"#) && text.ends_with("data: [DONE]\n\n"), "{text}");
        assert!(text.contains(r#""finish_reason":"stop""#), "{text}");
    }
}

#[test]
fn a_stream_that_breaks_off_is_no_clean_end() {
    let text = Turn::text("data: {\"response\":\"Volga\"}\n\n");
    for turns in [vec![text.clone(), Turn::Break], vec![text.clone()], vec![text, Turn::Silence(9_000)]] {
        let mut world = world(stream(turns));
        let told = world.call("call-1", "plain", &streaming());
        // 16 tokens of prompt at a dollar a million, 2 that were seen at two.
        check(&world, "plain", &told, "200 ; settle at least 20000; spent 20000, open 0");
        let shown = told.text();
        assert!(shown.contains("\"error\"") && !shown.contains("finish_reason\":\""), "{shown}");
    }
}

#[test]
fn a_client_that_leaves_is_charged_what_was_written() {
    let turns = vec![Turn::text("data: {\"response\":\"Volga\"}\n\n"), Turn::ClientLeaves];
    let mut world = world(stream(turns));
    let told = world.call("call-1", "plain", &streaming());
    check(&world, "plain", &told, "200 ; settle at least 20000; spent 20000, open 0");
    assert!(world.cancelled.get());
}

#[test]
fn what_fails_costs_nothing_and_says_why() {
    let failing = |status, body: &str| Upstream::Answers {
        status,
        headers: vec![("content-type", "application/json")],
        turns: vec![Turn::text(body)],
    };
    let cases = [
        (Upstream::Fails(SendFault::Unreachable), "502 upstream_unreachable"),
        (Upstream::Fails(SendFault::TimedOut), "504 upstream_timeout"),
        (failing(429, r#"{"internalCode":3040,"description":"No room"}"#), "429 3040"),
        (failing(429, r#"{"errors":[{"code":3036,"message":"used up"}]}"#), "429 3036"),
        (failing(400, r#"{"errors":[{"code":5007,"message":"No such model"}]}"#), "400 5007"),
        (failing(413, r#"{"errors":[{"code":5021,"message":"too long"}]}"#), "400 context_length_exceeded"),
        (failing(413, r#"{"errors":[{"code":3006,"message":"too large"}]}"#), "413 3006"),
        (failing(403, r#"{"internalCode":5016,"description":"Agree first"}"#), "502 upstream_auth"),
        (failing(408, r#"{"internalCode":3007,"description":"slow"}"#), "504 upstream_timeout"),
        (failing(500, "oops"), "502 upstream_failed"),
        (failing(200, r#"{"success":false,"errors":[{"code":3040,"message":"No room"}]}"#), "429 3040"),
        (failing(200, r#"{"success":false,"errors":[]}"#), "502 upstream_failed"),
        (failing(200, "{}"), "502 upstream_invalid"),
        (stream(vec![Turn::text("data: {\"errors\":[{\"code\":3040,\"message\":\"x\"}]}\n\n")]), "502 upstream_failed"),
        (stream(vec![]), "502 upstream_invalid"),
    ];
    for (upstream, want) in cases {
        let mut world = world(upstream);
        let told = world.call("call-1", "plain", ASK);
        check(&world, "plain", &told, &format!("{want}; release; spent 0, open 0"));
        // 2031-03-05T12:00:00Z, half a day before the allocation is a new one.
        let wait = want.ends_with("3036").then_some("43200");
        assert_eq!(told.header("retry-after"), wait, "{want}");
    }
}

#[test]
fn what_the_binding_cannot_do_is_refused_and_named() {
    let mut world = world(answers(NATIVE));
    let body = ASK.replace("\"max_tokens\"", "\"requests\":[{\"prompt\":\"a\"}],\"max_tokens\"");
    let told = world.call("call-1", "plain", &body);
    check(&world, "plain", &told, "400 unsupported_parameter; release; spent 0, open 0");
    assert!(told.text().contains(r#""param":"requests""#), "{}", told.text());
    assert!(world.ran.borrow().is_empty());
}

#[test]
fn a_route_that_the_binding_has_not_is_not_there() {
    let mut world = world(answers(NATIVE));
    for (path, body) in [
        ("/v1/completions", r#"{"model":"@cf/meta/llama","prompt":"a"}"#),
        ("/v1/responses", r#"{"model":"@cf/meta/llama","input":"a"}"#),
        ("/v1/messages", r#"{"model":"@cf/meta/llama","messages":[],"max_tokens":1}"#),
    ] {
        world.headers.insert("authorization".to_owned(), "Bearer key-plain".to_owned());
        world.body = Ok(body.as_bytes().to_vec());
        assert_eq!(world.request("call-1", "POST", path).status, 404, "{path}");
    }
    let told = world.request("call-2", "GET", "/v1/models/@cf/meta/llama");
    assert_eq!((told.status, told.text().contains("\"id\":\"@cf/meta/llama\"")), (200, true), "{}", told.text());
}
