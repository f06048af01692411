//! Calls that make or read images and sound, and what became of them in one line.

use serde_json::json;
use tollgate::limit::protocol::Command;

use super::flow::ended;
use super::policy::Written;
use super::stream::Turn;
use super::world::{Told, Upstream, World};

/// A world with a model for each route. A price of 1 is a thousand billionths of a dollar for a token or a character;
/// text counts a token a byte.
pub(crate) fn world(upstream: Upstream) -> World {
    let mut written = Written::good();
    written.0.insert(
        "MODELS".to_owned(),
        json!({
            "omni-moderation-latest": {"input": "1", "output": "0", "image_tokens": 500, "upstream_model": "judge"},
            "image": {
                "input": "1", "image_input": "2", "output": "3", "image_output": "10", "max_output": 1_000,
                "context": 100_000,
            },
            "picture": {"input": "0", "output": "0", "per_image": "0.04"},
            "voice": {"input": "0", "output": "0", "per_million_characters": "15"},
            "speaker": {"input": "1", "output": "2", "audio_output": "10", "max_output": 1_000},
            "either": {
                "input": "1", "output": "2", "audio_output": "10", "max_output": 1_000, "per_million_characters": "15",
            },
            "scribe": {"input": "0", "output": "0", "per_minute": "0.006"},
            "hearer": {"input": "1", "audio_input": "5", "output": "10", "max_output": 500, "context": 16_000},
            "alpha": {"input": "0", "output": "1"},
        }),
    );
    let plan = &mut written.0.get_mut("PLANS").unwrap()["plain"];
    (plan["models"], plan["body_max"]) = (json!(["*"]), json!(100_000));
    plan["limits"]["day"]["amount"] = json!("100.00");
    written.0.get_mut("POLICY").unwrap()["aliases"] = json!({"ear": "scribe"});
    World { policy: written.read(), upstream, ..World::new() }
}

/// An answer of this kind that comes in these pieces.
pub(crate) fn answers(kind: &'static str, turns: Vec<Turn>) -> Upstream {
    Upstream::Answers { status: 200, headers: vec![("content-type", kind)], turns }
}

/// A JSON answer of a stated length.
pub(crate) fn json_answer(body: &str) -> Upstream {
    let length: &'static str = body.len().to_string().leak();
    let headers = vec![("content-type", "application/json"), ("content-length", length)];
    Upstream::Answers { status: 200, headers, turns: vec![Turn::text(body)] }
}

/// Events, each with its name as its type.
pub(crate) fn events(events: &[&str]) -> Upstream {
    answers("text/event-stream", events.iter().map(|event| Turn::text(&format!("data: {event}\n\n"))).collect())
}

/// Calls with the key of the plan `plain`.
pub(crate) fn post(world: &mut World, path: &str, kind: &str, body: &[u8]) -> Told {
    world.headers.insert("authorization".to_owned(), "Bearer key-plain".to_owned());
    world.headers.insert("content-type".to_owned(), kind.to_owned());
    world.body = Ok(body.to_vec());
    world.request("call-1", "POST", path)
}

/// What was held, in billionths of a dollar.
pub(crate) fn held(world: &World) -> Option<u64> {
    world.asked.borrow().iter().find_map(|(_, command)| match command {
        Command::Reserve { estimate, .. } => Some(estimate.0.usd.0),
        _ => None,
    })
}

/// What became of a call: its status and code, what was held, and how that ended. It is written down once, and nothing
/// is left open.
pub(crate) fn became(world: &World, told: &Told) -> String {
    let log = world.log.borrow();
    let record = log.first().unwrap();
    assert_eq!((log.len(), &record["id"], &record["status"]), (1, &json!("call-1"), &json!(told.status)));
    assert_eq!(world.spent("plain").1, 0, "the hold is still open");
    let held = held(world).map_or_else(|| "never held".to_owned(), |held| format!("held {held}"));
    let code = told.code();
    let status = if code.is_empty() { told.status.to_string() } else { format!("{} {code}", told.status) };
    [vec![status, held], ended(world, "call-1")].concat().join(", ")
}

/// The field at fault, or nothing.
pub(crate) fn fault_in(told: &Told) -> String {
    let body: serde_json::Value = serde_json::from_slice(&told.body).unwrap_or_default();
    body["error"]["param"].as_str().unwrap_or_default().to_owned()
}
