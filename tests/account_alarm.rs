//! The cleaning alarm: seldom set, never forgotten, and nobody can tell that it came.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use std::borrow::Cow;
use support::steps::{NOON, Step, config, cost, plan, start, steps};

use tollgate::limit::account::{Account, AlarmStep, HoldId, REST};
use tollgate::limit::protocol::{Command, account_of, record_of};
use tollgate::limit::{Amount, Charge, Cost, Estimate, Limit, Period, Shape, Unit};
use tollgate::time::{UnixMillis, Wait};

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod steps;
}

/// The object without its platform: a stored record, and an alarm.
struct Object {
    record: Option<String>,
    alarm: Option<UnixMillis>,
    armed: usize,
    limits: Vec<Limit>,
}

impl Object {
    fn new(limits: Vec<Limit>) -> Self {
        Self { record: None, alarm: None, armed: 0, limits }
    }

    fn account(&self) -> Account {
        account_of(self.record.as_deref()).unwrap()
    }

    fn command(&mut self, now: UnixMillis, command: &Command) -> String {
        let (reply, next) = command.execute(&self.account(), now, |_| Some(Cow::Borrowed(&*self.limits))).unwrap();
        if let Some(mut next) = next {
            if let Some(at) = next.arm() {
                self.alarm = Some(at);
                self.armed += 1;
            }
            self.record = Some(record_of(&next));
        }
        reply.to_json()
    }

    /// The alarm; whether it deleted everything.
    fn fire(&mut self, now: UnixMillis) -> bool {
        self.alarm = None;
        match self.account().alarm(now) {
            AlarmStep::Delete => self.record = None,
            AlarmStep::Rearm { alarm_at, next } | AlarmStep::Post { alarm_at, next, .. } => {
                (self.alarm, self.record) = (Some(alarm_at), Some(record_of(&next)));
            }
        }
        self.record.is_none()
    }

    /// Lets every alarm fire that is due.
    fn pass_to(&mut self, now: UnixMillis) {
        while let Some(at) = self.alarm.filter(|at| *at <= now) {
            self.fire(at);
        }
    }
}

/// The command that a step is; none where only time passes.
fn command(step: &Step) -> Option<Command> {
    let id = |id: &String| HoldId(id.clone());
    let plan = || "plan".to_owned();
    Some(match step {
        Step::Reserve { id: name, cost, hold } => {
            Command::Reserve { id: id(name), plan: plan(), estimate: Estimate(*cost), hold: Wait(*hold), booking: None }
        }
        Step::Settle { id: name, cost, .. } => {
            Command::Settle { id: id(name), charge: Charge::Exact(*cost), counted: true }
        }
        Step::Release { id: name } => Command::Release { id: id(name), give_back: false },
        Step::Extend { id: name, hold } => Command::Extend { id: id(name), hold: Wait(*hold) },
        Step::Keep { id: name, as_id, hold } => {
            Command::Keep { id: id(name), as_id: id(as_id), note: name.clone(), hold: Wait(*hold), counted: true }
        }
        Step::Find { id: name } => Command::Find { id: id(name) },
        Step::Alarm | Step::Policy(_) => Command::Snapshot { plan: plan() },
        Step::Pass(_) | Step::Back(_) => return None,
    })
}

fn bucket(burst: u64, refill: u64, per: Period) -> Vec<Limit> {
    let shape = Shape::Bucket { burst: Amount(burst), refill: Amount(refill), per };
    vec![Limit { name: "calls".to_owned(), unit: Unit::Requests, shape }]
}

fn call(object: &mut Object, now: u64, name: &str) {
    let (id, one) = (HoldId(name.to_owned()), Cost { requests: 1, ..Cost::default() });
    let hold = Wait::seconds(600);
    object.command(
        UnixMillis(now),
        &Command::Reserve { id: id.clone(), plan: "plan".to_owned(), estimate: Estimate(one), hold, booking: None },
    );
    object.command(UnixMillis(now + 500), &Command::Settle { id, charge: Charge::Exact(one), counted: true });
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    fn nobody_can_tell_whether_an_account_was_deleted(limits in plan(4), steps in steps(false), start in start()) {
        let (mut kept, mut deleted) = (Object::new(limits.clone()), Object::new(limits));
        let (mut now, mut latest) = (start, start);
        for step in &steps {
            match step {
                Step::Pass(ms) => now += ms,
                // An account rests before it is deleted for the sake of clocks that are set back.
                Step::Back(ms) => now = (now - ms).max(latest - REST.0 + 1),
                _ => {}
            }
            latest = latest.max(now);
            deleted.pass_to(UnixMillis(now));
            if matches!(step, Step::Alarm) && deleted.record.is_some() {
                // Early, late or twice.
                deleted.fire(UnixMillis(now));
            }
            if let Some(command) = command(step) {
                let now = UnixMillis(now);
                prop_assert_eq!(kept.command(now, &command), deleted.command(now, &command));
            }
        }
    }

    #[test]
    fn whoever_has_a_record_has_an_alarm(limits in plan(4), steps in steps(false), start in start()) {
        let (mut object, mut now) = (Object::new(limits), start);
        for step in &steps {
            match step {
                Step::Pass(ms) => now += ms,
                Step::Back(ms) => now -= ms,
                _ => {}
            }
            object.pass_to(UnixMillis(now));
            if let Some(command) = command(step) {
                object.command(UnixMillis(now), &command);
            }
            prop_assert!(object.record.is_none() || object.alarm.is_some(), "{:?}", object.record);
        }
        // Nobody calls any more: in the end nothing is left. Alarms reach no further than a month, debts may.
        let mut fired = 0;
        while let Some(at) = object.alarm {
            object.fire(at);
            fired += 1;
            prop_assert!(fired < 1_000, "still not deleted: {:?}", object.record);
        }
        prop_assert_eq!(object.record, None);
    }

    #[test]
    fn it_is_deleted_as_soon_as_it_has_rested(limits in plan(3), cost in cost(), passed in 0..100_000_u64) {
        let mut object = Object::new(limits);
        let id = HoldId("x".to_owned());
        let hold = Wait::seconds(60);
        let reserve = Command::Reserve { id: id.clone(), plan: "plan".to_owned(), estimate: Estimate(cost), hold, booking: None };
        object.command(UnixMillis(NOON), &reserve);
        object.command(UnixMillis(NOON + passed), &Command::Settle { id, charge: Charge::Exact(cost), counted: true });
        let Some(mut at) = object.alarm else { return Ok(()) };
        let settled = object.account().snapshot(UnixMillis(NOON + passed), &object.limits);
        let waits = settled.balances.iter().filter_map(|balance| balance.wait_until_full(settled.at));
        let full_at = settled.at.0 + waits.max().unwrap_or_default().0;
        while !object.fire(at) {
            at = object.alarm.unwrap();
        }
        prop_assert!(at.0 >= full_at + REST.0, "rests for too short a time");
        // At most an alarm that was set for the open hold, and for the ids that are remembered.
        prop_assert!(at.0 <= full_at + 4 * REST.0, "lingers for too long a time");
    }
}

#[test]
fn an_alarm_is_not_set_for_every_command() {
    let mut object = Object::new(bucket(10, 10, Period::Second));
    for second in 0..3_600 {
        let now = NOON + second * 1_000;
        object.pass_to(UnixMillis(now));
        call(&mut object, now, &format!("call-{second}"));
    }
    assert!(object.armed <= 2, "armed {} times in 7200 commands", object.armed);
}

#[test]
fn an_alarm_that_is_far_too_late_is_moved_forward() {
    let mut object = Object::new(bucket(10, 1, Period::Day));
    for name in ["a", "b", "c", "d", "e", "f"] {
        call(&mut object, NOON, name);
    }
    let far = object.alarm.unwrap();
    // The same account under a rule that fills it in no time.
    object.limits = bucket(10, 10, Period::Second);
    call(&mut object, NOON + 1_000, "g");
    let near = object.alarm.unwrap();
    assert!(near < far, "{near:?} {far:?}");
}

#[test]
fn an_active_caller_is_not_torn_down() {
    let mut object = Object::new(bucket(10, 10, Period::Second));
    for minute in 0..300 {
        let now = NOON + minute * 60_000;
        object.pass_to(UnixMillis(now));
        assert!(object.record.is_some() || minute == 0, "torn down after {minute} minutes");
        call(&mut object, now, &format!("call-{minute}"));
    }
}

#[test]
fn alarms_that_come_twice_or_after_the_end_do_nothing() {
    let mut object = Object::new(bucket(10, 1, Period::Second));
    call(&mut object, NOON, "a");
    let later = UnixMillis(NOON + 86_400_000);
    assert!(!object.fire(UnixMillis(NOON + 1_000)), "too early");
    assert!(object.fire(later) && object.fire(later) && object.fire(UnixMillis(NOON + 1)));
}
