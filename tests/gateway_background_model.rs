//! Whatever callers, the limiter and the provider do, in whatever order: the log, the limiter and a plain count of what
//! every call has to cost agree.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use serde_json::json;
use support::background::{ASK, HELD, answers, ask, begin, standing, written};
use support::world::{LimiterFault, World};

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod background;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

/// How long a hold is kept here, how long it can be corrected after that, and how long it is known after its end.
const KEPT: u64 = 1_000_000;
const GRACE: u64 = 600_000;
const KNOWN: u64 = 3_600_000;
/// How many calls a script begins at most: as many as can be found after their end.
const CALLS: usize = 8;

#[derive(Clone, Debug)]
enum Step {
    /// Begins the next call, which the provider answers with this status and, if it has ended, this usage.
    Begin(&'static str, u64),
    /// Asks for one of the calls.
    Ask {
        call: usize,
        own: bool,
        cancel: bool,
        status: &'static str,
        used: u64,
    },
    Pass(u64),
    /// So the next questions of a kind fail.
    Lose(&'static str, Vec<LimiterFault>),
}

/// What is known of a call, kept as plainly as it can be.
#[derive(Clone, Copy, Debug)]
struct Call {
    until: u64,
    charged: Option<i64>,
    ended_at: Option<u64>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let statuses = ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"];
    // Of a question whose answer was lost twice nobody knows what has become.
    let faults = vec![vec![LimiterFault::Down], vec![LimiterFault::Down; 2], vec![LimiterFault::LostReply]];
    let step = prop_oneof![
        2 => (prop::sample::select(statuses.to_vec()), 1..50_u64).prop_map(|(status, used)| Step::Begin(status, used)),
        6 => (0..CALLS, prop::bool::weighted(0.8), any::<bool>(), prop::sample::select(statuses.to_vec()), 1..50_u64)
            .prop_map(|(call, own, cancel, status, used)| Step::Ask { call, own, cancel, status, used }),
        2 => prop::sample::select(vec![1, 1_000, KEPT / 2, KEPT, GRACE, KNOWN]).prop_map(Step::Pass),
        1 => (prop::sample::select(vec!["keep", "find", "settle"]), prop::sample::select(faults))
            .prop_map(|(verb, faults)| Step::Lose(verb, faults)),
    ];
    prop::collection::vec(step, 1..30)
}

struct Run {
    world: World,
    calls: Vec<Call>,
    /// Charged at once: awaited, or not kept.
    at_once: i64,
}

impl Run {
    fn new() -> Self {
        let mut written = written();
        written.0.get_mut("POLICY").unwrap()["bounds"]["background_ms"] = json!(KEPT);
        for plan in written.0.get_mut("PLANS").unwrap().as_object_mut().unwrap().values_mut() {
            // Not a day's: what was spent does not come back while a script runs.
            plan["limits"] = json!({"day": {"unit": "usd", "amount": "1.00", "window": "month"}});
        }
        Self { world: World { policy: written.read(), ..World::new() }, calls: Vec::new(), at_once: 0 }
    }

    fn now(&self) -> u64 {
        self.world.clock.now().0
    }

    /// How many questions of a kind will not be delivered.
    fn lost(&self, verb: &str) -> u64 {
        let faults = self.world.faults.get(verb).into_iter().flatten();
        faults.filter(|fault| **fault == LimiterFault::Down).count() as u64
    }

    /// The faults are for one request each.
    fn forget_faults(&mut self, verbs: [&'static str; 2]) {
        for verb in verbs {
            self.world.faults.remove(verb);
        }
        self.world.asked_before.borrow_mut().clear();
    }

    fn begin(&mut self, status: &str, used: u64) {
        if self.calls.len() == CALLS {
            return;
        }
        let id = self.calls.len();
        self.world.upstream = answers(200, &answer(id, status, used));
        let [is_kept, is_settled] = ["keep", "settle"].map(|verb| self.lost(verb) < 2);
        let told = begin(&mut self.world, &format!("call-{id}"), "plain", ASK);
        assert_eq!(told.status, 200);
        if is_going(status) && is_kept {
            self.calls.push(Call { until: self.now() + KEPT, charged: None, ended_at: None });
        } else {
            // A settlement that is lost here is made by the deadline of the request's own hold, at what it held.
            let exact = if is_going(status) || !is_settled { HELD } else { cost(used) };
            self.at_once += exact;
            self.calls.push(Call { until: 0, charged: Some(0), ended_at: Some(0) });
        }
        self.forget_faults(["keep", "settle"]);
    }

    fn ask(&mut self, (id, own, cancel): (usize, bool, bool), (status, used): (&str, u64)) {
        let path = format!("/v1/responses/resp_{id}{}", if cancel { "/cancel" } else { "" });
        let (who, method) = (if own { "plain" } else { "drain" }, if cancel { "POST" } else { "GET" });
        let lost = ["find", "settle"].map(|verb| self.lost(verb));
        // A question that is not answered takes a second.
        let found_at = self.now() + 1_000 * lost[0];
        self.expire(found_at);
        let sent = self.world.sent.borrow().len();
        let told = ask(&mut self.world, who, method, &path, answers(200, &answer(id, status, used)));
        let call = self.calls.get(id).filter(|_| own);
        let known = call.is_some_and(|call| call.ended_at.is_none_or(|ended_at| found_at < ended_at + KNOWN));
        let want = match (lost[0], known) {
            (2, _) => 503,
            (_, true) => 200,
            (_, false) => 404,
        };
        assert_eq!(told.status, want, "{call:?} at {found_at}");
        assert_eq!(self.world.sent.borrow().len() - sent, usize::from(want == 200));
        let settled_at = found_at + 1_000 * lost[1];
        self.expire(settled_at);
        let ends = want == 200 && !is_going(status) && lost[1] < 2;
        if let Some(call) = self.calls.get_mut(id).filter(|call| ends && call.ended_at.is_none()) {
            (call.charged, call.ended_at) = (Some(cost(used)), Some(settled_at));
        }
        self.forget_faults(["find", "settle"]);
    }

    /// What nobody has ended, or can correct any more, has cost what it held.
    fn expire(&mut self, now: u64) {
        for call in self.calls.iter_mut().filter(|call| call.ended_at.is_none() && call.until + GRACE <= now) {
            (call.charged, call.ended_at) = (Some(HELD), Some(call.until + GRACE));
        }
    }

    fn check(&mut self) {
        self.expire(self.now());
        let want: i64 = self.calls.iter().map(|call| call.charged.unwrap_or(HELD)).sum();
        assert_eq!(self.world.spent("plain").0, want + self.at_once, "{:?}", self.calls);
        assert_eq!(self.world.spent("drain").0, 0);
    }

    /// Every call that was settled is in the log once; the deadline's are lines `kept` only, or `unsettled`.
    fn check_log(&self) {
        let log = self.world.log.borrow();
        let count = |verdict: &str| log.iter().filter(|line| line["verdict"] == verdict).count();
        let charged = |line: &&serde_json::Value| line["unsettled"] != true && line["charged"].is_object();
        let logged: i64 = log.iter().filter(charged).map(|line| line["charged"]["usd"].as_i64().unwrap()).sum();
        let kept: Vec<_> = self.calls.iter().filter(|call| call.until > 0).collect();
        let expired = kept.iter().filter(|call| call.ended_at == Some(call.until + GRACE)).count();
        let open = kept.iter().filter(|call| call.ended_at.is_none()).count();
        assert_eq!((count("kept"), count("settled")), (kept.len(), kept.len() - expired - open));
        let unsettled = log.iter().filter(|line| line["unsettled"] == true && line["held"].is_object()).count();
        let by_deadline = i64::try_from(expired + open + unsettled).unwrap();
        assert_eq!(self.world.spent("plain").0, logged + by_deadline * HELD);
    }
}

/// What an answer costs: so many tokens in and one out, so that no two answers cost the same.
fn cost(used: u64) -> i64 {
    i64::try_from(used * 1_000 + 2_000).unwrap()
}

fn is_going(status: &str) -> bool {
    matches!(status, "queued" | "in_progress")
}

fn answer(id: usize, status: &str, used: u64) -> String {
    let used = json!({"input_tokens": used, "output_tokens": 1});
    let usage = if is_going(status) { json!(null) } else { used };
    standing(status, &json!({"id": format!("resp_{id}"), "usage": usage}))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_log_and_the_limiter_agree_on_what_every_call_did_cost(steps in steps()) {
        let mut run = Run::new();
        for step in steps {
            match step {
                Step::Begin(status, used) => run.begin(status, used),
                Step::Ask { call, own, cancel, status, used } => run.ask((call, own, cancel), (status, used)),
                Step::Pass(ms) => run.world.clock.pass(ms),
                Step::Lose(verb, faults) => {
                    run.world.faults.insert(verb, faults);
                }
            }
            run.check();
        }
        run.check_log();
    }
}
