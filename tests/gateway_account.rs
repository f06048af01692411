//! The limits of our own account at an upstream, over all callers together, with everything outside in memory.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::flow::{ANSWER, ASK, answers, ended};
use support::policy::Written;
use support::world::{Told, Upstream, World};
use tollgate::auth::Subject;
use tollgate::gateway::ports::SendFault;
use tollgate::limit::protocol::account_of;

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

/// One call a minute, and a dollar a day, at the upstream `default`; with `fallback`, another one without limits.
fn world(fallback: bool, upstream: Upstream) -> World {
    let mut written = Written::good();
    let limits = json!({
        "rpm": {"unit": "requests", "burst": 1, "refill": 1, "per": "minute"},
        "spend": {"unit": "usd", "amount": "1.00", "window": "day"},
    });
    let upstreams = written.0.get_mut("UPSTREAMS").unwrap();
    upstreams["default"].as_object_mut().unwrap().insert("limits".to_owned(), limits);
    upstreams["spare"] = json!({"base_url": "https://spare.test/v1", "retry": {"attempts": 1}});
    if fallback {
        written.0.get_mut("MODELS").unwrap()["alpha"]["fallbacks"] = json!([{"upstream": "spare"}]);
    }
    World { policy: written.read(), upstream, ..World::new() }
}

fn urls(world: &World) -> Vec<String> {
    world.sent.borrow().iter().map(|request| request.url.clone()).collect()
}

/// What the account at the upstream has spent of its day, and how many of its holds are open.
fn account(world: &World) -> (i64, u64) {
    let records = world.records.borrow();
    let record = records.get(&Subject("upstream:default".to_owned()));
    let limits = world.policy.as_ref().unwrap().limits_of("~account~default").unwrap();
    let snapshot = account_of(record.map(String::as_str)).unwrap().snapshot(world.clock.now(), &limits);
    let spend = snapshot.balances.iter().find(|balance| balance.limit.name == "spend");
    (spend.map_or(0, |spend| 1_000_000_000 - spend.left()), snapshot.open_holds)
}

fn limited_by(told: &Told) -> (u16, Option<&str>, Option<&str>) {
    (told.status, told.header("x-tollgate-limited-by"), told.header("retry-after-ms"))
}

#[test]
fn one_callers_burst_is_refused_by_us_before_the_provider_refuses_everybody() {
    let mut world = world(false, answers(ANSWER));
    assert_eq!(world.call("call-1", "plain", ASK).status, 200);
    assert_eq!(account(&world), (100_000, 0), "the account is charged what the caller is");
    let told = world.call("call-2", "drain", ASK);
    assert_eq!(limited_by(&told), (429, Some("rpm"), Some("60000")));
    assert_eq!(urls(&world).len(), 1, "the provider is not asked");
    assert_eq!((ended(&world, "call-2"), world.spent("drain")), (vec!["release".to_owned()], (0, 0)));
    world.clock.pass(59_999);
    assert_eq!(limited_by(&world.call("call-3", "drain", ASK)), (429, Some("rpm"), Some("1")));
    world.clock.pass(1);
    assert_eq!(world.call("call-4", "drain", ASK).status, 200);
}

#[test]
fn who_else_serves_the_model_takes_what_the_account_cannot() {
    let mut world = world(true, answers(ANSWER));
    for call in ["call-1", "call-2", "call-3"] {
        assert_eq!(world.call(call, "plain", ASK).status, 200);
    }
    let spare = "https://spare.test/v1/chat/completions";
    assert_eq!(urls(&world), ["https://up.test/v1/chat/completions", spare, spare]);
    assert_eq!((account(&world), world.spent("plain")), ((100_000, 0), (300_000, 0)));
    let log: Vec<Value> = world.log.borrow().iter().map(|record| record["upstream"].clone()).collect();
    assert_eq!(log, ["default", "spare", "spare"]);
}

#[test]
fn a_call_that_fails_there_is_given_back_there() {
    let mut world = world(false, Upstream::Fails(SendFault::Unreachable));
    assert_eq!(world.call("call-1", "plain", ASK).status, 502);
    assert_eq!(account(&world), (0, 0));
    world.upstream = answers(ANSWER);
    assert_eq!(world.call("call-2", "plain", ASK).status, 200, "the failed one has taken nothing");
}

#[test]
fn a_limit_that_cannot_be_checked_refuses() {
    let mut world = world(false, answers(ANSWER));
    // The caller's own object answers; what the account's has stored cannot be read.
    world.records.borrow_mut().insert(Subject("upstream:default".to_owned()), "null".to_owned());
    let told = world.call("call-1", "plain", ASK);
    assert_eq!((told.status, told.code().as_str()), (503, "limiter_unavailable"));
    assert_eq!((urls(&world).len(), world.spent("plain")), (0, (0, 0)));
    assert!(ended(&world, "call-1").contains(&"release".to_owned()));
}
