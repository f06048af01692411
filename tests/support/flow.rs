//! A call, its answer, and what became of it in one line.

use serde_json::Value;
use tollgate::limit::Charge;
use tollgate::limit::protocol::Command;

use super::stream::Turn;
use super::world::{Told, Upstream, World};

/// 16 bytes of text and a cap of 100 tokens: 216,000 billionths of a dollar are held.
pub(crate) const ASK: &str =
    r#"{"model":"alpha","messages":[{"role":"user","content":"Which river?"}],"max_completion_tokens":100}"#;

/// 40 tokens in and 30 out: 100,000 billionths of a dollar.
pub(crate) const ANSWER: &str = r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Volga"},
 "finish_reason":"stop"}],"usage":{"prompt_tokens":40,"completion_tokens":30,"total_tokens":70}} "#;

/// A whole answer.
pub(crate) fn answers(body: &str) -> Upstream {
    let headers = vec![("content-type", "application/json"), ("x-request-id", "up-1"), ("set-cookie", "a=b")];
    Upstream::Answers { status: 200, headers, turns: vec![Turn::text(body)] }
}

/// How a call's hold was ended: each time that the limiter was asked to.
pub(crate) fn ended(world: &World, call: &str) -> Vec<String> {
    let shown = |command: &Command| match command {
        Command::Settle { id, charge: Charge::Exact(cost), .. } if id.0 == call => {
            Some(format!("settle exact {}", cost.usd.0))
        }
        Command::Settle { id, charge, .. } if id.0 == call => Some(format!("settle at least {}", charge.cost().usd.0)),
        Command::Release { id, .. } if id.0 == call => Some("release".to_owned()),
        _ => None,
    };
    world.asked.borrow().iter().filter_map(|(_, command)| shown(command)).collect()
}

/// What became of the call `call-1`: status and code; how its hold was ended, which may be said again but not said
/// otherwise; what was charged; what is open.
pub(crate) fn check(world: &World, user: &str, told: &Told, want: &str) {
    let mut endings = ended(world, "call-1");
    endings.dedup();
    let ending = if endings.is_empty() { "never held".to_owned() } else { endings.join(" and then ") };
    let (spent, open) = world.spent(user);
    let got = format!("{} {}; {ending}; spent {spent}, open {open}", told.status, told.code());
    assert_eq!(got, want, "{}", String::from_utf8_lossy(&told.body));
    logged_once(world, told, user, spent);
}

/// The call is written down once, with what was held and charged, and with no secret.
fn logged_once(world: &World, told: &Told, user: &str, spent: i64) {
    let log = world.log.borrow();
    assert_eq!(log.len(), 1, "{log:?}");
    let record = log.first().unwrap();
    assert_eq!((&record["id"], &record["route"]), (&Value::from("call-1"), &Value::from("/v1/chat/completions")));
    assert_eq!(record["status"], told.status, "{record}");
    assert_eq!(record["charged"]["usd"].as_i64().unwrap_or(0), spent, "{record}");
    if record["status"] != 401 {
        assert_eq!((&record["subject"], &record["plan"]), (&format!("user:{user}").into(), &Value::from(user)));
    }
    let text = record.to_string();
    for secret in ["key-", "sk-", "river", "Volga"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}
