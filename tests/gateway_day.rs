//! The day's gate in the request path, with everything outside of it in memory.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::json;
use support::flow::{ANSWER, ASK, answers, check, ended};
use support::policy::Written;
use support::world::{Upstream, World};
use tollgate::gateway::ports::SendFault;

mod support {
    pub(crate) mod flow;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

/// A world whose site has a cap for the day.
fn world_with_a_day(calls: u64, upstream: Upstream) -> World {
    let mut written = Written::good();
    written.0.get_mut("POLICY").unwrap()["site"] = json!({"daily_calls": calls});
    World { policy: written.read(), upstream, ..World::new() }
}

#[test]
fn a_day_is_counted_before_the_upstream_is_called_and_its_refusal_gives_the_hold_back() {
    let mut world = world_with_a_day(1, answers(ANSWER));
    assert_eq!(world.call("call-1", "plain", ASK).status, 200);
    let told = world.call("call-2", "plain", ASK);
    assert_eq!((told.status, told.code().as_str()), (429, "insufficient_quota"));
    assert_eq!(told.header("retry-after"), Some("43200"), "at noon");
    assert_eq!((ended(&world, "call-2"), world.spent("plain")), (vec!["release".to_owned()], (100_000, 0)));
    assert_eq!(world.sent.borrow().len(), 1);
    world.call("call-3", "plain", ASK);
    assert_eq!(world.count("reserve"), 2, "what the day has refused is remembered");
}

#[test]
fn a_ledger_that_does_not_answer_lets_nothing_through_and_is_the_one_to_blame() {
    let mut world = world_with_a_day(9, answers(ANSWER));
    world.latency = 40;
    world.ledger_down.set(true);
    let told = world.call("call-1", "plain", ASK);
    assert_eq!((told.status, told.code().as_str()), (503, "limiter_unavailable"));
    check(&world, "plain", &told, "503 limiter_unavailable; release; spent 0, open 0");
    assert!(world.sent.borrow().is_empty());
    let times = |world: &World, which: usize| {
        ["limiter_ms", "ledger_ms", "upstream_ms"].map(|name| world.log.borrow()[which][name].as_u64().unwrap())
    };
    assert_eq!(times(&world, 0), [40, 5_000, 0]);
    world.ledger_down.set(false);
    world.upstream = Upstream::Fails(SendFault::TimedOut);
    world.call("call-2", "plain", ASK);
    assert_eq!(times(&world, 1), [40, 0, 9_000]);
}
