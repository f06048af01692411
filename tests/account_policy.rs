//! What becomes of balances and holds when the policy changes under them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::{TestCaseError, prop_assert, proptest};
use support::steps::{NOON, changing_plan, config, cost, passing};
use tollgate::limit::NanoUsd;
use tollgate::limit::account::{Account, Denial, HoldId, Verdict};
use tollgate::limit::{Amount, Charge, Cost, Estimate, Limit, Period, Shape, Tokens, Unit};
use tollgate::time::{Calendar, DAY_MS, UnixMillis, Wait};

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod steps;
}

const HOLD: Wait = Wait::seconds(60);

fn limit(unit: Unit, shape: Shape) -> [Limit; 1] {
    [Limit { name: "it".to_owned(), unit, shape }]
}

fn bucket(burst: u64, refill: u64, per: Period) -> Shape {
    Shape::Bucket { burst: Amount(burst), refill: Amount(refill), per }
}

fn window(amount: u64, window: Calendar) -> Shape {
    Shape::Window { amount: Amount(amount), window }
}

fn tokens(tokens: u64) -> Cost {
    Cost { requests: 1, input: Tokens(tokens), output: Tokens(0), usd: NanoUsd(tokens) }
}

/// An account as it is stored, and the commands that the tests give it.
#[derive(Default)]
struct Caller(Account);

impl Caller {
    fn reserve(&mut self, at: u64, id: &str, limits: &[Limit], cost: Cost) -> Verdict {
        let id = HoldId(id.to_owned());
        let outcome = self.0.reserve(UnixMillis(at), &id, limits, (Estimate(cost), HOLD));
        self.0 = outcome.next.unwrap_or_else(|| self.0.clone());
        outcome.answer
    }

    fn settle(&mut self, at: u64, id: &str, cost: Cost) {
        let outcome = self.0.settle(UnixMillis(at), &HoldId(id.to_owned()), &Charge::Exact(cost), true);
        assert!(outcome.answer, "the hold of `{id}` is known");
        self.0 = outcome.next.unwrap();
    }

    fn left(&self, at: u64, limits: &[Limit]) -> i64 {
        let snapshot = self.0.snapshot(UnixMillis(at), limits);
        snapshot.balances.first().unwrap().left()
    }
}

/// Spends `spent` under one rule; the rest is seen under another.
fn left_after(first: Shape, spent: u64, second: Shape) -> i64 {
    let mut caller = Caller::default();
    caller.reserve(NOON, "a", &limit(Unit::Tokens, first), tokens(spent));
    caller.left(NOON, &limit(Unit::Tokens, second))
}

#[test]
fn what_is_owed_stays_owed_whatever_the_rule_becomes() {
    let first = bucket(10, 1, Period::Day);
    assert_eq!(left_after(first, 8, bucket(100, 1, Period::Day)), 92);
    assert_eq!(left_after(first, 8, bucket(5, 1, Period::Day)), -3);
    assert_eq!(left_after(first, 8, window(9, Calendar::Day)), 1);
    assert_eq!(left_after(window(10, Calendar::Day), 8, window(5, Calendar::Day)), -3);
    assert_eq!(left_after(window(10, Calendar::Day), 8, window(9, Calendar::Month)), 1);
    assert_eq!(left_after(window(10, Calendar::Month), 8, first), 2);
}

#[test]
fn a_dropped_limit_is_paid_off_while_it_is_gone() {
    let (rule, none) = (limit(Unit::Tokens, bucket(10, 1, Period::Second)), []);
    let mut caller = Caller::default();
    caller.reserve(NOON, "a", &rule, tokens(10));
    caller.reserve(NOON + 3_000, "b", &none, tokens(10));
    assert_eq!(caller.left(NOON + 4_000, &rule), 4);
    caller.settle(NOON + 4_000, "a", tokens(8));
    assert_eq!(caller.left(NOON + 4_000, &rule), 6);
}

#[test]
fn a_limit_that_is_added_later_counts_from_then_on() {
    let rule = limit(Unit::Tokens, bucket(10, 1, Period::Second));
    let mut caller = Caller::default();
    caller.reserve(NOON, "a", &[], tokens(10));
    caller.settle(NOON, "a", tokens(50));
    assert_eq!(caller.left(NOON, &rule), 10);
}

#[test]
fn a_hold_of_a_limit_whose_unit_has_changed_moves_nothing() {
    let (before, after) =
        (limit(Unit::Tokens, bucket(1_000, 1, Period::Day)), limit(Unit::Usd, bucket(1_000, 1, Period::Day)));
    for actual in [100, 900] {
        let mut caller = Caller::default();
        caller.reserve(NOON, "old", &before, tokens(500));
        caller.reserve(NOON, "new", &after, tokens(400));
        caller.settle(NOON, "old", tokens(actual));
        assert_eq!(caller.left(NOON, &after), 600, "settled at {actual}");
    }
}

#[test]
fn a_hold_that_is_older_than_its_window_rule_is_still_corrected() {
    let midnight = (NOON / DAY_MS + 1) * DAY_MS;
    for before in [bucket(100, 1, Period::Day), window(100, Calendar::Month)] {
        let (before, after) = (limit(Unit::Tokens, before), limit(Unit::Tokens, window(100, Calendar::Day)));
        let mut caller = Caller::default();
        caller.reserve(midnight - 1_000, "old", &before, tokens(50));
        caller.reserve(midnight + 1_000, "new", &after, tokens(10));
        caller.settle(midnight + 2_000, "old", tokens(20));
        assert_eq!(caller.left(midnight + 2_000, &after), 70);
    }
}

/// Spends under the first policy until it refuses, then asks under the second: its wait has to be exact.
fn waits_exactly(plans: &[Vec<Limit>], cost: Cost, passed: u64) -> Result<(), TestCaseError> {
    let [first, second, ..] = plans else { return Ok(()) };
    let mut caller = Caller::default();
    for call in 0..4 {
        caller.reserve(NOON, &format!("call-{call}"), first, cost);
    }
    let now = NOON + passed;
    let Verdict::Wait(Denial { wait, .. }) = caller.reserve(now, "x", second, cost) else { return Ok(()) };
    let mut early = Caller(caller.0.clone());
    let before = early.reserve(now + wait.0 - 1, "x", second, cost);
    prop_assert!(matches!(before, Verdict::Wait(_)), "{wait:?}: too early, {before:?}");
    let then = caller.reserve(now + wait.0, "x", second, cost);
    prop_assert!(matches!(then, Verdict::Reserved { .. }), "{wait:?}: not at the promised moment, {then:?}");
    Ok(())
}

proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn the_wait_is_exact_under_a_policy_that_has_just_changed(
        plans in changing_plan(3), cost in cost(), passed in passing(),
    ) {
        let counted = |plan: &Vec<Limit>| plan.iter().filter(|limit| limit.unit != Unit::Concurrency).cloned().collect();
        let plans: Vec<Vec<Limit>> = plans.iter().map(counted).collect();
        waits_exactly(&plans, cost, passed)?;
    }
}
