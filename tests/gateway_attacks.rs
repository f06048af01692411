//! What a caller, or a provider's answer, could try to make a call cost more than was held for it.
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

/// A context of 10,000 tokens at a dollar a million, as `alpha` has it.
const CONTEXT: u64 = 10_000_000;

/// `alpha` and `embed` at a dollar in, `claude` by an upstream of Anthropic's.
fn world(upstream: Upstream) -> World {
    let mut written = Written::good();
    let mut set = |variable: &str, name: &str, value: Value| {
        written.0.get_mut(variable).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value);
    };
    let anthropic = json!({"base_url": "https://ant.test/v1", "secret": "LLM_API_KEY", "kind": "anthropic"});
    set("UPSTREAMS", "anthropic", anthropic);
    let claude = json!({"input": "1", "output": "1", "max_output": 1_000, "context": 10_000, "upstream": "anthropic"});
    set("MODELS", "claude", claude);
    set("MODELS", "embed", json!({"input": "1", "output": "0", "context": 10_000, "image_tokens": 900}));
    for plan in written.0.get_mut("PLANS").unwrap().as_object_mut().unwrap().values_mut() {
        plan["models"] = json!(["alpha", "claude", "embed"]);
    }
    World { policy: written.read(), upstream, ..World::new() }
}

fn call(world: &mut World, path: &str, body: &Value) -> Told {
    world.headers.insert("authorization".to_owned(), "Bearer key-plain".to_owned());
    world.body = Ok(body.to_string().into_bytes());
    world.request("call-1", "POST", path)
}

/// What is held of money for the prompt of a request.
fn held(path: &str, body: &Value) -> u64 {
    let mut world = world(answers("{}"));
    let told = call(&mut world, path, body);
    let log = world.log.borrow();
    let held = log[0]["held"]["usd"].as_u64();
    assert!(held.is_some(), "{body}: {} {}", told.status, told.text());
    held.unwrap()
}

#[test]
fn a_router_is_told_nothing_on_any_route() {
    for path in ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/v1/messages"] {
        for name in ["models", "fallbacks", "route", "provider", "preset", "plugins", "search_parameters", "transforms"]
        {
            let mut body = json!({
                "model": "alpha", "max_tokens": 1, "messages": [], "prompt": "a", "input": "a",
            });
            body[name] = json!(["dearer"]);
            let mut world = world(answers("{}"));
            let told = call(&mut world, path, &body);
            assert_eq!((told.status, told.code().as_str()), (400, "unsupported_parameter"), "{name} on {path}");
            assert!(told.text().contains(name) && world.sent.borrow().is_empty());
        }
    }
}

#[test]
fn what_a_request_only_names_counts_as_a_whole_context() {
    let item = |item: Value| json!({"model": "alpha", "max_output_tokens": 1, "input": [item]});
    for reference in [
        json!({"type": "item_reference", "id": "msg_1"}),
        json!({"id": "msg_1", "type": "item_reference"}),
        json!({"id": "msg_1"}),
        json!({"id": "msg_1", "type": null}),
    ] {
        assert_eq!(held("/v1/responses", &item(reference)), CONTEXT + 2_000);
    }
    for known in [
        json!({"id": "msg_1", "type": "message", "role": "user", "content": "a"}),
        json!({"id": "msg_1", "role": "user", "content": "a"}),
        json!({"type": "function_call_output", "call_id": "c", "output": "item_reference"}),
    ] {
        assert!(held("/v1/responses", &item(known)) < 100_000);
    }
    let part =
        |part: Value| json!({"model": "alpha", "max_tokens": 1, "messages": [{"role": "user", "content": [part]}]});
    for part in [
        part(json!({"type": "document_url", "document_url": "https://a.test/b.pdf"})),
        part(json!({"type": "file", "file_id": "file-1"})),
        part(json!({"type": "video", "video": ["https://a.test/1.jpg"]})),
    ] {
        assert_eq!(held("/v1/chat/completions", &part), CONTEXT + 2_000);
    }
    for name in ["data_sources", "extra_body", "cached_content"] {
        let mut body = json!({"model": "alpha", "max_tokens": 1, "messages": []});
        body[name] = json!([{"type": "azure_search"}]);
        assert_eq!(held("/v1/chat/completions", &body), CONTEXT + 2_000, "{name}");
    }
}

#[test]
fn an_image_among_texts_to_embed_counts_as_an_image() {
    for name in ["image", "image_url", "image_base64"] {
        let part = json!({"type": name, name: "https://a.test/b.png"});
        for input in [json!([part]), json!([{"content": [part]}])] {
            let held = held("/v1/embeddings", &json!({"model": "embed", "input": input}));
            assert!((900_000..1_000_000).contains(&held), "{name}: {held}");
        }
    }
}

#[test]
fn a_tool_of_the_providers_cannot_come_with_an_item() {
    for kind in ["additional_tools", "tool_search_output"] {
        let item = |tool: &str| json!({"type": kind, "tools": [{"type": "function", "name": "f"}, {"type": tool}]});
        let ask = |tool: &str| json!({"model": "alpha", "max_output_tokens": 1, "input": ["a", item(tool)]});
        let told = call(&mut world(answers("{}")), "/v1/responses", &ask("web_search"));
        assert_eq!((told.status, told.code().as_str()), (400, "unsupported_parameter"), "{}", told.text());
        assert!(held("/v1/responses", &ask("custom")) < CONTEXT);
    }
}

#[test]
fn a_tool_of_the_providers_cannot_be_disguised() {
    let tools = [
        r#"{"type":"function","Type":"web_search"}"#,
        r#"{"type":"function","type":"web_search"}"#,
        r#"{"type":"function","t\u0079pe":"web_search"}"#,
        r#"{"type":"web\u005fsearch"}"#,
        r#"{"type":["function"]}"#,
        r#"["function"]"#,
    ];
    for tool in tools {
        for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
            let body = format!(r#"{{"model":"alpha","max_tokens":1,"messages":[],"input":"a","tools":[{tool}]}}"#);
            let mut world = world(answers("{}"));
            world.headers.insert("authorization".to_owned(), "Bearer key-plain".to_owned());
            world.body = Ok(body.into_bytes());
            let told = world.request("call-1", "POST", path);
            assert!(told.status == 400 && world.sent.borrow().is_empty(), "{tool} on {path}: {}", told.text());
        }
    }
}

/// What was charged of money, and whether the usage was beyond belief.
fn charged(model: &Value, body: &Value, answer: &Value) -> (u64, bool) {
    let mut written = Written::good();
    written.0.get_mut("MODELS").unwrap()["alpha"] = model.clone();
    let mut world = World { policy: written.read(), upstream: answers(&answer.to_string()), ..World::new() };
    let told = call(&mut world, "/v1/chat/completions", body);
    assert_eq!(told.status, 200, "{}", told.text());
    let log = world.log.borrow();
    (log[0]["charged"]["usd"].as_u64().unwrap(), log[0]["implausible"] == true)
}

#[test]
fn no_count_of_a_provider_can_lock_a_caller_out_for_years() {
    let ask = json!({"model": "alpha", "max_tokens": 10, "messages": []});
    let answer = |usage: Value| json!({"choices": [], "usage": usage});
    let searching = json!({"input": "0", "output": "0", "per_tool_call": "0.01", "max_output": 10, "context": 100});
    let said =
        |queries: u64| answer(json!({"prompt_tokens": 1, "completion_tokens": 1, "num_search_queries": queries}));
    assert_eq!(charged(&searching, &ask, &said(30)), (300_000_000, false));
    assert_eq!(charged(&searching, &ask, &said(u64::MAX)), (10_000_000_000, true));
    let hearing = json!({"input": "0", "output": "0", "per_minute": "0.006", "max_output": 10, "context": 100});
    let said =
        |seconds: u64| answer(json!({"prompt_tokens": 1, "completion_tokens": 1, "prompt_audio_seconds": seconds}));
    assert_eq!(charged(&hearing, &ask, &said(90)), (9_000_000, false));
    assert_eq!(charged(&hearing, &ask, &said(u64::MAX)), (8_640_000_000, true));
}

#[test]
fn a_cheaper_tier_is_charged_only_where_the_provider_says_so() {
    let model = json!({"input": "1", "output": "1", "flex_percent": 50, "priority_percent": 200, "max_output": 10});
    let ask = |tier: &str| json!({"model": "alpha", "max_tokens": 10, "service_tier": tier, "messages": []});
    let usage = json!({"prompt_tokens": 50, "completion_tokens": 10});
    let said = |tier: Value| json!({"choices": [], "usage": usage, "service_tier": tier});
    for (asked, answered, want) in [
        ("flex", json!("flex"), 30_000),
        ("flex", json!("default"), 60_000),
        ("flex", Value::Null, 60_000),
        ("flex", json!("turbo"), 60_000),
        ("priority", Value::Null, 120_000),
        ("priority", json!("default"), 60_000),
        ("auto", json!("priority"), 120_000),
        ("auto", json!("turbo"), 60_000),
    ] {
        assert_eq!(charged(&model, &ask(asked), &said(answered.clone())).0, want, "{asked}, answered {answered}");
    }
}

/// Events one by one, and what is large in pieces.
fn pieces(text: &str) -> Vec<Turn> {
    let pieces = text.split_inclusive("\n\n").flat_map(|event| event.as_bytes().chunks(65_536));
    pieces.map(|piece| Turn::text(core::str::from_utf8(piece).unwrap())).collect()
}

fn turns(text: &str) -> Upstream {
    let headers = vec![("content-type", "text/event-stream")];
    Upstream::Answers { status: 200, headers, turns: pieces(text) }
}

/// How the hold of a stream of Anthropic's ends that has these events.
fn streamed(events: &[Value]) -> (u16, Vec<String>, String) {
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let mut world = world(turns(&events.iter().map(event).collect::<String>()));
    let body =
        json!({"model": "claude", "max_tokens": 50, "stream": true, "messages": [{"role": "user", "content": "a"}]});
    let told = call(&mut world, "/v1/messages", &body);
    (told.status, ended(&world, "call-1"), told.text())
}

#[test]
fn a_stream_of_anthropics_that_fails_before_any_output_costs_nothing() {
    let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}});
    let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let text = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Volga"}});
    let (status, ended, _) = streamed(std::slice::from_ref(&overloaded));
    assert_eq!((status, ended), (502, vec!["release".to_owned()]));
    for events in [vec![&start, &overloaded], vec![&start, &block, &overloaded], vec![&start, &block]] {
        let events: Vec<Value> = events.into_iter().cloned().collect();
        let (status, ended, text) = streamed(&events);
        assert_eq!((status, ended), (200, vec!["release".to_owned()]), "{text}");
        assert!(text.contains("event: error\n"), "{text}");
    }
    let (_, ended, _) = streamed(&[start.clone(), block.clone(), text, overloaded.clone()]);
    assert_eq!(ended, ["settle at least 12000"]);
    // What is written without a delta is output too: thoughts that the provider hides, what its tools have found.
    let hidden = json!({"type": "redacted_thinking", "data": "abcdefghi"});
    let block = json!({"type": "content_block_start", "index": 0, "content_block": hidden});
    let (_, ended, _) = streamed(&[start, block, overloaded]);
    assert_eq!(ended, ["settle at least 13000"]);
}

#[test]
fn thoughts_beyond_the_output_cap_are_held_and_no_conversation_is_made_shorter() {
    let ask = |more: Value| {
        let mut body = json!({"model": "claude", "max_tokens": 300, "messages": []});
        body.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
        body
    };
    let thinking = |budget: u64| ask(json!({"thinking": {"type": "enabled", "budget_tokens": budget}}));
    // The plan lowers the cap to 200.
    assert_eq!(held("/v1/messages", &thinking(100)), 200_000);
    assert_eq!(held("/v1/messages", &thinking(250)), 450_000);
    assert_eq!(held("/v1/messages", &ask(json!({"thinking": {"type": "adaptive"}}))), 200_000);
    let edits = |kind: &str| json!({"context_management": {"edits": [{"type": kind}]}});
    assert_eq!(held("/v1/messages", &ask(edits("clear_tool_uses_20250919"))), 200_000);
    for more in [edits("compact_20260112"), json!({"context_management": {"edits": 1}}), json!({"compaction": {}})] {
        let told = call(&mut world(answers("{}")), "/v1/messages", &ask(more));
        assert_eq!((told.status, told.code().as_str()), (400, "unsupported_parameter"), "{}", told.text());
    }
    let told = call(&mut world(answers("{}")), "/v1/messages", &ask(json!({"thinking": {"budget_tokens": "many"}})));
    assert_eq!(told.status, 400, "{}", told.text());
    let body = json!({"model": "alpha", "input": "a", "context_management": [{"type": "compaction"}]});
    assert_eq!(call(&mut world(answers("{}")), "/v1/responses", &body).code(), "unsupported_parameter");
}

#[test]
fn a_last_event_of_any_size_ends_the_stream_for_its_client() {
    let usage = json!({"input_tokens": 9, "output_tokens": 20});
    // Tools are repeated in it, names and all, and only what is long in them can be left out.
    let of_size = |tools: usize| {
        let tools = vec![json!({"type": "function", "name": "f"}); tools];
        let response = json!({"status": "completed", "output": [], "tools": tools, "usage": usage});
        let delta = json!({"type": "response.output_text.delta", "delta": "Volga"});
        let completed = json!({"type": "response.completed", "response": response});
        format!("event: response.output_text.delta\ndata: {delta}\n\nevent: response.completed\ndata: {completed}\n\n")
    };
    for (tools, charged) in [(1, "exact 49000"), (10_000, "exact 49000"), (50_000, "at least")] {
        let events = of_size(tools);
        let mut world = world(turns(&events));
        let told = call(&mut world, "/v1/responses", &json!({"model": "alpha", "input": "a", "stream": true}));
        assert!(told.text() == events && told.closed == Some(true), "{}", told.body.len() - events.len());
        assert!(ended(&world, "call-1")[0].starts_with(&format!("settle {charged}")), "{:?}", ended(&world, "call-1"));
    }
}
