//! Every dialect with everything outside of the call in memory: held, forwarded, metered and told in its own shape.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::flow::{answers, ended};
use support::policy::Written;
use support::stream::Turn;
use support::world::{Told, Upstream, World};

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

/// Alpha costs 1 and 2 dollars a million tokens; claude 3 and 15, 0.3 from the cache and 3.75 into it.
fn world(upstream: Upstream) -> World {
    let mut written = Written::good();
    let mut set = |variable: &str, name: &str, value: Value| {
        written.0.get_mut(variable).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value);
    };
    let anthropic = json!({"base_url": "https://ant.test/v1", "secret": "LLM_API_KEY", "kind": "anthropic"});
    set("UPSTREAMS", "anthropic", anthropic);
    let claude = json!({
        "input": "3", "cached_input": "0.3", "cache_write": "3.75", "cache_write_long": "6", "output": "15",
        "max_output": 1_000, "context": 10_000, "upstream": "anthropic", "image_tokens": 100,
    });
    set("MODELS", "claude", claude);
    set("MODELS", "embed", json!({"input": "1", "output": "0", "context": 10_000}));
    let plans = written.0.get_mut("PLANS").unwrap().as_object_mut().unwrap();
    for plan in plans.values_mut() {
        plan.as_object_mut().unwrap().insert("models".to_owned(), json!(["alpha", "claude", "embed"]));
    }
    World { policy: written.read(), upstream, ..World::new() }
}

fn call(world: &mut World, path: &str, body: &str) -> Told {
    world.headers.insert("authorization".to_owned(), "Bearer key-plain".to_owned());
    world.body = Ok(body.as_bytes().to_vec());
    world.request("call-1", "POST", path)
}

/// Status, what was held in billionths of a dollar, how the hold ended.
fn outcome(world: &World, told: &Told) -> (u16, u64, Vec<String>) {
    let log = world.log.borrow();
    let held = log.first().and_then(|record| record["held"]["usd"].as_u64()).unwrap_or(0);
    (told.status, held, ended(world, "call-1"))
}

fn sent(world: &World) -> (String, Value) {
    let sent = world.sent.borrow();
    let request = sent.first().unwrap();
    (request.url.clone(), serde_json::from_slice(&request.body).unwrap())
}

fn stream_of(text: &str) -> Upstream {
    Upstream::Answers {
        status: 200,
        headers: vec![("content-type", "text/event-stream")],
        turns: vec![Turn::text(text)],
    }
}

#[test]
fn a_response_is_held_under_its_own_cap_and_charged_by_its_own_usage() {
    let answer =
        r#"{"object":"response","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":20}}"#;
    let mut world = world(answers(answer));
    let told = call(&mut world, "/v1/responses", r#"{"model":"alpha","input":"Hi","instructions":"Be brief"}"#);
    // Two bytes and, as it stands with its quotes, ten; a cap of 100.
    assert_eq!(outcome(&world, &told), (200, 12_000 + 200_000, vec!["settle exact 49000".to_owned()]));
    let (url, body) = sent(&world);
    assert_eq!((url.as_str(), &body["max_output_tokens"]), ("https://up.test/v1/responses", &json!(100)));
    assert_eq!(told.text(), answer);
}

#[test]
fn what_the_provider_keeps_counts_as_a_whole_context() {
    let mut world = world(answers("{}"));
    let body = r#"{"model":"alpha","input":"Hi","previous_response_id":"resp_1","max_output_tokens":10}"#;
    let told = call(&mut world, "/v1/responses", body);
    assert_eq!(outcome(&world, &told).1, 10_000_000 + 20_000);
}

#[test]
fn what_has_no_size_can_be_refused_by_its_name() {
    let mut written = Written::good();
    let plan = written.0.get_mut("PLANS").unwrap().get_mut("plain").unwrap().as_object_mut().unwrap();
    plan.insert("unseen_input".to_owned(), json!("refuse"));
    let policy = written.read();
    let file = r#"[{"role":"user","content":[{"type":"input_file","file_id":"f1"}]}]"#;
    for (members, param) in [
        (r#""input":"Hi","previous_response_id":"resp_1""#.to_owned(), Some("previous_response_id")),
        (r#""input":"Hi","previous_response_id":null"#.to_owned(), None),
        (format!(r#""input":{file}"#), Some("file_id")),
    ] {
        let mut world = World { policy: policy.clone(), upstream: answers(r#"{"output":[]}"#), ..World::new() };
        let told = call(&mut world, "/v1/responses", &format!(r#"{{"model":"alpha",{members}}}"#));
        let error = serde_json::from_slice::<Value>(&told.body).unwrap();
        assert_eq!(error["error"]["param"].as_str(), param, "{members}");
        assert_eq!((told.status, world.sent.borrow().len()), if param.is_some() { (400, 0) } else { (200, 1) });
    }
}

#[test]
fn a_stream_of_a_response_ends_with_the_response() {
    let events = concat!(
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n",
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Volga\"}\n\n",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":",
        "{\"input_tokens\":5,\"output_tokens\":7}}}\n\n",
    );
    let mut world = world(stream_of(&format!("{events}data: more\n\n")));
    let told = call(&mut world, "/v1/responses", r#"{"model":"alpha","input":"Hi","stream":true}"#);
    assert_eq!(outcome(&world, &told).2, ["settle exact 19000"]);
    assert_eq!((told.text(), told.closed), (events.to_owned(), Some(true)));
    assert!(sent(&world).1.get("stream_options").is_none());
}

#[test]
fn embeddings_cost_what_they_read() {
    let answer = r#"{"object":"list","data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":5,"total_tokens":5}}"#;
    for (input, bytes) in [(r#""tide""#, 4), (r#"["tide","ebb"]"#, 7), ("[11,100257,3]", 3), ("[[1,2],[3]]", 3)] {
        let mut world = world(answers(answer));
        let told = call(&mut world, "/v1/embeddings", &format!(r#"{{"model":"embed","input":{input}}}"#));
        assert_eq!(outcome(&world, &told), (200, bytes * 1_000, vec!["settle exact 5000".to_owned()]), "{input}");
    }
}

#[test]
fn every_prompt_of_a_legacy_completion_is_answered() {
    let answer = r#"{"choices":[{"index":0,"text":"Volga"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let cases = [
        (r#""prompt":"tide""#, 4 + 2 * 16),
        (r#""prompt":["tide","ebb"]"#, 7 + 2 * 2 * 16),
        (r#""prompt":[1,2,3],"n":2,"best_of":3,"max_tokens":10"#, 3 + 2 * 3 * 10),
        (r#""prompt":[[1,2],[3]],"max_tokens":10"#, 3 + 2 * 2 * 10),
    ];
    for (members, units) in cases {
        let mut world = world(answers(answer));
        let body = format!(r#"{{"model":"alpha",{members}}}"#);
        let told = call(&mut world, "/v1/completions", &body);
        assert_eq!(outcome(&world, &told), (200, units * 1_000, vec!["settle exact 5000".to_owned()]), "{members}");
        assert_eq!(
            world.sent.borrow().first().unwrap().body.as_slice(),
            body.as_bytes(),
            "the API's own cap need not be written"
        );
    }
}

const MESSAGE: &str =
    r#"{"model":"claude","max_tokens":50,"system":"Be brief","messages":[{"role":"user","content":"Hi"}]}"#;

#[test]
fn a_message_of_anthropics_is_charged_with_its_caches_outside_of_the_input() {
    let answer = concat!(
        r#"{"type":"message","content":[{"type":"text","text":"Volga"}],"usage":{"input_tokens":10,"#,
        r#""cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":4}}"#
    );
    let mut world = world(answers(answer));
    let told = call(&mut world, "/v1/messages", MESSAGE);
    // 14 bytes at the price of writing to the cache, 50 tokens out; then 10 × 3 + 100 × 3.75 + 1000 × 0.3 + 4 × 15.
    assert_eq!(outcome(&world, &told), (200, 14 * 3_750 + 50 * 15_000, vec!["settle exact 765000".to_owned()]));
    let request = world.sent.borrow().first().unwrap().clone();
    assert_eq!((request.url.as_str(), request.body.as_slice()), ("https://ant.test/v1/messages", MESSAGE.as_bytes()));
    let header = |name: &str| request.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    assert_eq!((header("x-api-key"), header("authorization")), (Some(support::policy::UPSTREAM_KEY), None));
    assert_eq!(header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(told.header("request-id"), told.header("x-request-id"));
}

#[test]
fn a_stream_of_anthropics_says_its_usage_in_two_parts() {
    let events = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,",
        "\"cache_read_input_tokens\":100,\"cache_creation_input_tokens\":0,\"output_tokens\":1}}}\n\n",
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
        "\"delta\":{\"type\":\"text_delta\",\"text\":\"Volga\"}}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},",
        "\"usage\":{\"output_tokens\":6}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    let body = MESSAGE.replace(r#""max_tokens":50"#, r#""max_tokens":50,"stream":true"#);
    let mut whole = world(stream_of(events));
    let told = call(&mut whole, "/v1/messages", &body);
    assert_eq!(outcome(&whole, &told).2, [format!("settle exact {}", 10 * 3_000 + 100 * 300 + 6 * 15_000)]);
    assert_eq!(told.text(), events);
    // Broken off before its end: what was read is known, what was written is what was seen.
    let broken = events.split("event: message_delta").next().unwrap();
    let mut short = world(stream_of(broken));
    let told = call(&mut short, "/v1/messages", &body);
    assert_eq!(outcome(&short, &told).2, [format!("settle at least {}", 10 * 3_000 + 100 * 300 + 2 * 15_000)]);
    let end = told.text().strip_prefix(broken).unwrap().to_owned();
    assert!(end.starts_with("event: error\ndata: {\"type\":\"error\",\"error\":{"), "{end}");
}

#[test]
fn counting_tokens_at_the_provider_is_free() {
    let mut world = world(answers(r#"{"input_tokens":14}"#));
    let told = call(&mut world, "/v1/messages/count_tokens", &MESSAGE.replace(r#""max_tokens":50,"#, ""));
    assert_eq!(outcome(&world, &told), (200, 0, vec!["settle exact 0".to_owned()]));
    assert_eq!(sent(&world).0, "https://ant.test/v1/messages/count_tokens");
}

#[test]
fn a_refusal_is_told_in_the_shape_of_the_dialect() {
    let mut world = world(answers("{}"));
    let error = |told: &Told| serde_json::from_slice::<Value>(&told.body).unwrap();
    let told = call(&mut world, "/v1/messages", &MESSAGE.replace("claude", "nobody"));
    let body = error(&told);
    assert_eq!((told.status, &body["type"], &body["error"]["type"]), (404, &json!("error"), &json!("not_found_error")));
    assert_eq!((&body["request_id"], &body["error"]["code"]), (&json!("call-1"), &json!("model_not_found")));
    let told = call(&mut world, "/v1/chat/completions", &MESSAGE.replace(r#""system":"Be brief","#, ""));
    assert_eq!((told.status, error(&told)["error"]["code"].as_str()), (404, Some("model_not_found")));
    let told = call(&mut world, "/v1/messages", r#"{"model":"claude","max_tokens":"many","messages":[]}"#);
    assert_eq!((told.status, error(&told)["error"]["param"].as_str()), (400, Some("max_tokens")));
    assert!(world.sent.borrow().is_empty(), "nothing was forwarded");
}

#[test]
fn the_providers_own_tools_are_refused_unless_the_plan_allows_and_bounds_them() {
    let body = r#"{"model":"alpha","input":"Hi","max_output_tokens":10,"tools":[{"type":"web_search"}]}"#;
    let told = call(&mut world(answers("{}")), "/v1/responses", body);
    assert_eq!((told.status, told.code().as_str()), (400, "unsupported_parameter"));
    let mut written = Written::good();
    let plan = written.0.get_mut("PLANS").unwrap().get_mut("plain").unwrap().as_object_mut().unwrap();
    plan.insert("provider_tools".to_owned(), json!(["web_search"]));
    plan.insert("tool_calls_max".to_owned(), json!(2));
    let mut allowed = World { policy: written.read(), upstream: answers("{}"), ..World::new() };
    let told = call(&mut allowed, "/v1/responses", body);
    // Three turns over a whole context of 10,000 tokens.
    assert_eq!(outcome(&allowed, &told).1, 30_000_000 + 20_000);
    assert_eq!(sent(&allowed).1["max_tool_calls"], json!(2));
}

#[test]
fn a_cost_that_the_provider_reports_is_ignored_checked_or_used_within_what_the_model_can_cost() {
    // 40 tokens in and 30 out are 100,000; a whole context and all that the model writes are 12,000,000.
    for (rule, cost, charged, differs) in [
        ("ignore", "5", 100_000, true),
        ("check", "0.00005", 100_000, true),
        ("check", "0.0002", 200_000, true),
        ("check", "0.0001004", 100_400, false),
        ("check", "1e300", 12_000_000, true),
        ("use", "0.00005", 50_000, true),
        ("use", "0", 0, true),
        ("use", "1e300", 12_000_000, true),
        ("use", "-1", 100_000, false),
        ("use", "\"NaN\"", 100_000, false),
        ("use", "null", 100_000, false),
    ] {
        let answer = format!(r#"{{"choices":[],"usage":{{"prompt_tokens":40,"completion_tokens":30,"cost":{cost}}}}}"#);
        let mut written = Written::good();
        written.0.get_mut("UPSTREAMS").unwrap()["default"]["reported_cost"] = json!(rule);
        let mut world = World { policy: written.read(), upstream: answers(&answer), ..World::new() };
        call(&mut world, "/v1/chat/completions", r#"{"model":"alpha","messages":[]}"#);
        assert_eq!(ended(&world, "call-1"), [format!("settle exact {charged}")], "{rule} {cost}");
        assert_eq!(world.log.borrow()[0]["cost_differs"] == true, differs, "{rule} {cost}");
    }
}
