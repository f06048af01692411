//! A model that two upstreams serve, and what they answer, try by try.

use std::cell::RefCell;

use serde_json::{Value, json};
use tollgate::gateway::ports::SendFault;

use super::flow::{ANSWER, ASK, answers};
use super::policy::Written;
use super::stream::Turn;
use super::world::{Told, Upstream, World};

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");
pub(crate) const SSE: (&str, &str) = ("content-type", "text/event-stream");
/// What `ANSWER` costs, in billionths of a dollar, by the upstream that gave it.
pub(crate) const FIRST_COSTS: u64 = 100_000;
pub(crate) const SECOND_COSTS: u64 = 240_000;
/// What is held for `ASK`: 16 tokens at 3 dollars a million and 100 at 4, the dearer of the two.
pub(crate) const HELD: u64 = 448_000;
/// The same answer as a stream.
pub(crate) const STREAM: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Volga\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":30,\"total_tokens\":70}}\n\n",
    "data: [DONE]\n\n",
);

/// The upstream `default` is tried three times, with pauses of 100 ms and then 200, less up to a half.
pub(crate) fn alone() -> Written {
    let mut written = Written::good();
    let retry = json!({"attempts": 3, "backoff_ms": 100, "wait_max_ms": 2_000});
    written.0.get_mut("UPSTREAMS").unwrap()["default"]["retry"] = retry;
    written
}

/// Then comes `second`, once, under a name of its own and for 3 and 4 dollars a million tokens.
pub(crate) fn with_fallback() -> Written {
    let mut written = alone();
    let second = json!({"base_url": "https://second.test/v1", "secret": "SECOND_KEY", "retry": {"attempts": 1}});
    written.0.get_mut("UPSTREAMS").unwrap()["second"] = second;
    written.0.insert("SECOND_KEY".to_owned(), json!("sk-second"));
    let fallback = json!({"upstream": "second", "upstream_model": "beta", "input": "3", "output": "4"});
    written.0.get_mut("MODELS").unwrap()["alpha"]["fallbacks"] = json!([fallback]);
    written
}

/// Something else in that policy.
pub(crate) fn set(written: &mut Written, variable: &str, path: &[&str], value: Value) {
    let mut place = written.0.get_mut(variable).unwrap();
    for name in path {
        place = if let Ok(index) = name.parse::<usize>() { &mut place[index] } else { &mut place[*name] };
    }
    *place = value;
}

pub(crate) fn world(written: &Written) -> World {
    let policy = written.read();
    assert_eq!(policy.as_ref().map(|_| ()), Ok(()));
    World { policy, ..World::new() }
}

/// Calls; every try is answered in its turn, and all that is scripted is tried.
pub(crate) fn call(world: &mut World, id: &str, ask: &str, script: Vec<Upstream>) -> Told {
    world.sent.borrow_mut().clear();
    world.slept.borrow_mut().clear();
    world.upstream = Upstream::InTurn(RefCell::new(script.into()));
    let told = world.call(id, "plain", ask);
    let rest = if let Upstream::InTurn(rest) = &world.upstream { rest.borrow().len() } else { 0 };
    assert_eq!(rest, 0, "not all was tried, but {}", tried(world));
    told
}

/// Which hosts were tried since the last call.
pub(crate) fn tried(world: &World) -> String {
    let host = |url: &str| url.trim_start_matches("https://").split('.').next().unwrap().to_owned();
    world.sent.borrow().iter().map(|request| host(&request.url)).collect::<Vec<_>>().join(" ")
}

/// How the call that ended last was written down.
pub(crate) fn logged(world: &World, names: &[&str]) -> Vec<Value> {
    let record = world.log.borrow().last().cloned().unwrap();
    names.iter().map(|name| record[*name].clone()).collect()
}

pub(crate) fn replies(status: u16, header: (&'static str, &'static str), body: &str) -> Upstream {
    Upstream::Answers { status, headers: vec![header], turns: vec![Turn::text(body)] }
}

/// An answer without success, in a provider's words.
pub(crate) fn fails(status: u16) -> Upstream {
    replies(status, JSON, r#"{"error":{"message":"Not so.","type":"some_error","code":"theirs"}}"#)
}

/// A refusal by the upstream's own limit.
pub(crate) fn at_its_limit(seconds: &'static str) -> Upstream {
    let body = r#"{"error":{"message":"Slow down.","type":"requests","code":"theirs"}}"#;
    let headers = vec![JSON, ("retry-after", seconds)];
    Upstream::Answers { status: 429, headers, turns: vec![Turn::text(body)] }
}

pub(crate) fn unreachable() -> Upstream {
    Upstream::Fails(SendFault::Unreachable)
}

/// A whole answer, or the same as a stream, and how it is asked for.
pub(crate) fn answered(stream: bool) -> (String, Upstream) {
    if stream {
        (ASK.replace("\"max", "\"stream\":true,\"max"), replies(200, SSE, STREAM))
    } else {
        (ASK.to_owned(), answers(ANSWER))
    }
}
