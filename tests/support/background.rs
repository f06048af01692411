//! A call in the background, from the request that begins it to those that ask for its answer.

use serde_json::{Value, json};

use super::policy::Written;
use super::stream::Turn;
use super::world::{Told, Upstream, World};

/// 12 bytes of text and a cap of 100 tokens: 212,000 billionths of a dollar are held.
pub(crate) const ASK: &str = r#"{"model":"alias","input":"Which river?","max_output_tokens":100,"background":true}"#;
pub(crate) const HELD: i64 = 212_000;
pub(crate) const HOUR: u64 = 3_600_000;
pub(crate) const DAY: u64 = 86_400_000;
/// How long after its deadline a hold can still be corrected.
pub(crate) const GRACE: u64 = 600_000;

/// An answer of a provider's, as far as it matters here.
pub(crate) fn standing(status: &str, more: &Value) -> String {
    let mut answer =
        json!({"id": "resp_1", "object": "response", "status": status, "output": [], "usage": null, "error": null});
    answer.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
    answer.to_string()
}

/// One that says what it used: 40 tokens in and 30 out are 100,000 billionths of a dollar.
pub(crate) fn ended(status: &str) -> String {
    standing(status, &json!({"usage": {"input_tokens": 40, "output_tokens": 30, "total_tokens": 70}}))
}

pub(crate) fn answers(status: u16, body: &str) -> Upstream {
    let headers = vec![("content-type", "application/json"), ("x-request-id", "up-1"), ("set-cookie", "a=b")];
    Upstream::Answers { status, headers, turns: vec![Turn::text(body)] }
}

/// Every plan may call in the background.
pub(crate) fn written() -> Written {
    let mut written = Written::good();
    for plan in written.0.get_mut("PLANS").unwrap().as_object_mut().unwrap().values_mut() {
        plan["background"] = json!(true);
    }
    written.0.get_mut("POLICY").unwrap()["aliases"] = json!({"alias": "alpha"});
    written
}

pub(crate) fn begin(world: &mut World, id: &str, user: &str, body: &str) -> Told {
    world.headers.insert("authorization".to_owned(), format!("Bearer key-{user}"));
    world.body = Ok(body.as_bytes().to_vec());
    world.request(id, "POST", "/v1/responses")
}

/// A world in which a call of the user `plain` goes on in the background.
pub(crate) fn world_with_a_call() -> World {
    let mut world =
        World { policy: written().read(), upstream: answers(200, &standing("queued", &json!({}))), ..World::new() };
    let told = begin(&mut world, "call-1", "plain", ASK);
    assert_eq!((told.status, told.text()), (200, standing("queued", &json!({}))));
    assert_eq!((told.header("x-tollgate-background"), world.spent("plain")), (None, (HELD, 1)));
    world
}

pub(crate) fn ask(world: &mut World, user: &str, method: &str, path: &str, upstream: Upstream) -> Told {
    world.headers.insert("authorization".to_owned(), format!("Bearer key-{user}"));
    world.upstream = upstream;
    world.request("poll", method, path)
}

pub(crate) fn fetch(world: &mut World, body: &str) -> Told {
    ask(world, "plain", "GET", "/v1/responses/resp_1", answers(200, body))
}

pub(crate) fn cancel(world: &mut World, body: &str) -> Told {
    ask(world, "plain", "POST", "/v1/responses/resp_1/cancel", answers(200, body))
}

/// How each line of the log says that its call ended, and what it was charged.
pub(crate) fn logged(world: &World) -> Vec<(String, Option<i64>)> {
    let text = |record: &Value| record["verdict"].as_str().unwrap().to_owned();
    world.log.borrow().iter().map(|record| (text(record), record["charged"]["usd"].as_i64())).collect()
}

pub(crate) fn line(verdict: &str, charged: Option<i64>) -> (String, Option<i64>) {
    (verdict.to_owned(), charged)
}
