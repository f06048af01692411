//! What must come to the same: detours in time, holds that are given back, and forgotten answers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use support::steps::{NOON, Step, config, cost, passing, plan, start, steps};
use tollgate::limit::account::{Account, AlarmStep, ENDED_KEPT, ENDED_MAX, GRACE, HoldId, Outcome, Snapshot, Verdict};
use tollgate::limit::{Amount, Charge, Cost, Estimate, Limit, Period, Shape, Tokens, Unit};
use tollgate::time::{UnixMillis, Wait};

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod steps;
}

const HOLD: Wait = Wait::seconds(60);

fn id(name: &str) -> HoldId {
    HoldId(name.to_owned())
}

/// What an account answers at a moment, apart from the moment of its last write.
fn seen(account: &Account, now: u64, limits: &[Limit]) -> Vec<i64> {
    let Snapshot { balances, .. } = account.snapshot(UnixMillis(now), limits);
    balances.iter().map(tollgate::limit::balance::Balance::left).collect()
}

/// A caller with something spent already, so that not everything begins full.
fn with_history(limits: &[Limit], cost: &Cost, now: u64) -> Account {
    let mut account = Account::default();
    for call in 0..3 {
        let name = id(&format!("before-{call}"));
        let made = account.reserve(UnixMillis(now), &name, limits, (Estimate(*cost), HOLD));
        let Some(next) = made.next else { break };
        account = next.settle(UnixMillis(now), &name, &Charge::Exact(*cost), true).next.unwrap();
    }
    account
}

/// The account after `estimate` was held and `end`ed at `later`; `None` if it was not admitted.
fn after_call(
    account: &Account,
    (now, later): (u64, u64),
    (limits, estimate): (&[Limit], &Cost),
    end: impl Fn(&Account, UnixMillis, &HoldId) -> Outcome<bool>,
) -> Option<Account> {
    let hold = Wait(later - now + 1);
    let made = account.reserve(UnixMillis(now), &id("x"), limits, (Estimate(*estimate), hold)).next?;
    end(&made, UnixMillis(later), &id("x")).next
}

/// Takes a step; what was answered.
fn answer(account: &mut Account, now: UnixMillis, limits: &[Limit], step: &Step) -> String {
    let (answer, next) = match step {
        Step::Reserve { id, cost, hold } => {
            let done = account.reserve(now, &HoldId(id.clone()), limits, (Estimate(*cost), Wait(*hold)));
            (format!("{:?}", done.answer), done.next)
        }
        Step::Settle { id, cost, .. } => said(account.settle(now, &HoldId(id.clone()), &Charge::Exact(*cost), true)),
        Step::Release { id } => said(account.release(now, &HoldId(id.clone()), false)),
        Step::Extend { id, hold } => said(account.extend(now, &HoldId(id.clone()), Wait(*hold))),
        Step::Keep { id, as_id, hold } => {
            said(account.keep(now, &HoldId(id.clone()), (&HoldId(as_id.clone()), id), Wait(*hold)))
        }
        Step::Find { id } => (format!("{:?}", account.find(now, &HoldId(id.clone()))), None),
        Step::Pass(_) | Step::Back(_) | Step::Alarm | Step::Policy(_) => (String::new(), None),
    };
    *account = next.unwrap_or_else(|| account.clone());
    format!("{answer} {:?}", account.snapshot(now, limits))
}

fn said(outcome: Outcome<bool>) -> (String, Option<Account>) {
    (outcome.answer.to_string(), outcome.next)
}

proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn splitting_time_never_changes_an_answer(limits in plan(4), steps in steps(false), start in start()) {
        let (mut once, mut often, mut now) = (Account::default(), Account::default(), start);
        for step in &steps {
            let Step::Pass(ms) = step else {
                let now = UnixMillis(now);
                prop_assert_eq!(answer(&mut once, now, &limits, step), answer(&mut often, now, &limits, step));
                continue;
            };
            for part in [ms / 7, ms / 3, ms - ms / 7 - ms / 3] {
                now += part;
                // Looking, and writing down what was seen: a release of what nobody has reserved.
                if let AlarmStep::Rearm { next: looked, .. } = often.alarm(UnixMillis(now)) {
                    often = looked;
                }
                often = often.release(UnixMillis(now), &id("nobody's"), false).next.unwrap_or(often);
            }
        }
    }

    #[test]
    fn a_hold_that_is_released_was_never_there(
        limits in plan(4), (spent, held) in (cost(), cost()), passed in passing(),
    ) {
        let account = with_history(&limits, &spent, NOON);
        let times = (NOON, NOON + passed);
        let release = |account: &Account, now, id: &HoldId| account.release(now, id, false);
        if let Some(after) = after_call(&account, times, (&limits, &held), release) {
            for later in [0, 1, 999, 1_000_000, 40 * 86_400_000] {
                let at = times.1 + later;
                prop_assert_eq!(seen(&after, at, &limits), seen(&account, at, &limits), "after {} ms", later);
            }
        }
    }

    #[test]
    fn a_settlement_charges_what_a_hold_of_the_actual_cost_would_have(
        limits in plan(4), spent in cost(), (held, actual) in (cost(), cost()), passed in passing(),
    ) {
        let account = with_history(&limits, &spent, NOON);
        let settle = |account: &Account, now, id: &HoldId| account.settle(now, id, &Charge::Exact(actual), true);
        // What turns out dearer is charged when that is known; what turns out cheaper, as if it had always been.
        let cheaper = limits.iter().all(|limit| actual.of(limit.unit) <= held.of(limit.unit));
        let times = (NOON, if cheaper { NOON + passed } else { NOON });
        let Some(settled) = after_call(&account, times, (&limits, &held), settle) else { return Ok(()) };
        let charged: Vec<i64> = seen(&account, NOON, &limits).iter().zip(&limits).map(|(left, limit)| {
            left - i64::try_from(actual.of(limit.unit).0).unwrap()
        }).collect();
        if times.1 == NOON {
            prop_assert_eq!(seen(&settled, NOON, &limits), charged);
        }
        if let Some(direct) = after_call(&account, times, (&limits, &actual), settle) {
            let at = times.1 + 12_345;
            prop_assert_eq!(seen(&settled, at, &limits), seen(&direct, at, &limits));
        }
    }

    #[test]
    fn a_hold_left_alone_keeps_its_estimate_and_frees_its_slot(
        held in 1..100_u64, actual in 0..300_u64, late in 0..2 * 600_000_u64,
    ) {
        let limits = [
            Limit {
                name: "tokens".to_owned(),
                unit: Unit::Tokens,
                shape: Shape::Bucket { burst: Amount(100), refill: Amount(1), per: Period::Day },
            },
            Limit { name: "slot".to_owned(), unit: Unit::Concurrency, shape: Shape::Slots { amount: Amount(1) } },
        ];
        let tokens = |tokens| Cost { input: Tokens(tokens), ..Cost::default() };
        let call = (Estimate(tokens(held)), HOLD);
        let account = Account::default().reserve(UnixMillis(NOON), &id("x"), &limits, call).next.unwrap();
        let deadline = NOON + HOLD.0;
        let left = 100 - i64::try_from(held).unwrap();
        prop_assert_eq!(seen(&account, deadline - 1, &limits), [left, 0]);
        prop_assert_eq!(seen(&account, deadline, &limits), [left, 1]);
        // Late, but within the grace period, a settlement still corrects; after it, it changes nothing.
        let settled = account.settle(UnixMillis(deadline + late), &id("x"), &Charge::Exact(tokens(actual)), true);
        prop_assert_eq!(settled.answer, late < GRACE.0);
        let left = if late < GRACE.0 { 100 - i64::try_from(actual).unwrap() } else { left };
        prop_assert_eq!(seen(&settled.next.unwrap_or(account), deadline + late, &limits), [left, 1]);
    }

    #[test]
    fn an_ended_id_is_not_held_again_while_it_is_remembered(late in 0..2 * 60_000_u64, released in 0..2) {
        let limits = [Limit {
            name: "calls".to_owned(),
            unit: Unit::Requests,
            shape: Shape::Bucket { burst: Amount(5), refill: Amount(1), per: Period::Day },
        }];
        let (one, now) = (Cost { requests: 1, ..Cost::default() }, UnixMillis(NOON));
        let call = (Estimate(one), HOLD);
        let ended = if released == 1 {
            // The release overtakes the reservation.
            Account::default().release(now, &id("x"), false).next.unwrap()
        } else {
            let made = Account::default().reserve(now, &id("x"), &limits, call).next.unwrap();
            made.settle(now, &id("x"), &Charge::AtLeast(one), true).next.unwrap()
        };
        let again = ended.reserve(UnixMillis(NOON + late), &id("x"), &limits, call);
        prop_assert_eq!(again.answer == Verdict::Ended, late < ENDED_KEPT.0);
        prop_assert!(again.next.is_some() == (late >= ENDED_KEPT.0));
    }
}

#[test]
fn a_hold_is_corrected_and_an_id_remembered_to_the_last_millisecond() {
    let (account, now) = (Account::default(), UnixMillis(NOON));
    let call = (Estimate::default(), HOLD);
    let made = account.reserve(now, &id("x"), &[], call).next.unwrap();
    let end = NOON + HOLD.0 + GRACE.0;
    let settled = |at: u64| made.settle(UnixMillis(at), &id("x"), &Charge::Exact(Cost::default()), true).answer;
    assert_eq!([settled(end - 1), settled(end)], [true, false]);
    let ended = account.release(now, &id("x"), false).next.unwrap();
    let again = |at: u64| ended.reserve(UnixMillis(at), &id("x"), &[], call).answer == Verdict::Ended;
    assert_eq!([again(NOON + ENDED_KEPT.0 - 1), again(NOON + ENDED_KEPT.0)], [true, false]);
}

#[test]
fn the_record_stays_small_however_many_calls_end() {
    let mut account = Account::default();
    for call in 0..3 * ENDED_MAX {
        account = account.release(UnixMillis(NOON), &id(&format!("call-{call}")), false).next.unwrap();
    }
    let size = tollgate::limit::protocol::record_of(&account).len();
    assert!(size < 64 * ENDED_MAX, "{size} bytes");
}

#[test]
fn a_stream_keeps_its_hold_open_by_extending_it() {
    let (limits, call) = ([], (Estimate::default(), HOLD));
    let made = Account::default().reserve(UnixMillis(NOON), &id("x"), &limits, call).next.unwrap();
    let half = HOLD.0 / 2;
    let extended = made.extend(UnixMillis(NOON + half), &id("x"), HOLD);
    assert!(extended.answer);
    let extended = extended.next.unwrap();
    let open = |at: u64| extended.snapshot(UnixMillis(NOON + at), &limits).open_holds;
    assert_eq!([open(HOLD.0), open(half + HOLD.0 - 1), open(half + HOLD.0)], [1, 1, 0]);
    // Neither a shorter extension nor one that comes too late changes anything.
    assert_eq!(extended.extend(UnixMillis(NOON + half), &id("x"), Wait(1)), Outcome { answer: true, next: None });
    assert_eq!(
        extended.extend(UnixMillis(NOON + half + HOLD.0), &id("x"), HOLD),
        Outcome { answer: false, next: None }
    );
    assert_eq!(extended.extend(UnixMillis(NOON), &id("y"), HOLD), Outcome { answer: false, next: None });
}
