//! What one isolate remembers between calls.
//!
//! Invariant: nothing here is needed. Forgetting it costs a question to an object; it never admits a call that the
//! object would refuse, except where the policy says in writing how many may pass unchecked.

use std::cell::RefCell;
use std::collections::HashMap;

use super::retry::Standing;
use crate::auth::Subject;
use crate::ledger::{DayRefusal, DayScope, Gate, SITE_KEY};
use crate::limit::Estimate;
use crate::limit::account::{Denial, Snapshot};
use crate::time::{UnixMillis, UtcDay, Wait};

/// How many refusals are remembered at most; beyond it all are forgotten, which only costs questions.
const REFUSALS_MAX: usize = 1_000;
/// How long a refusal of the day is believed.
const DAY_MEMORY: Wait = Wait::seconds(10);
/// How long a look at the ledger is believed.
const LOOK_MEMORY: Wait = Wait::seconds(5);
const MINUTE: Wait = Wait::seconds(60);

/// The isolate's memory.
#[derive(Debug, Default)]
pub struct Memory {
    refusals: RefCell<HashMap<Subject, Refusal>>,
    days: RefCell<HashMap<String, DayMemory>>,
    unchecked: RefCell<[Minute; 2]>,
    ledger: RefCell<Option<(UnixMillis, bool)>>,
    upstreams: RefCell<HashMap<(String, String), Standing>>,
}

/// What could not be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// The caller's limits.
    Limiter,
    /// The day's ledger.
    Ledger,
}

/// A refusal of the day's gate. Unlike an object's it is not firm, since a count can be given back; so it is believed
/// for a short while only.
#[derive(Clone, Debug)]
struct DayMemory {
    gate: Gate,
    refusal: DayRefusal,
    until: UnixMillis,
}

/// A firm refusal: until its end the same call is refused whatever happens, since no hold is open that could settle.
#[derive(Clone, Debug)]
struct Refusal {
    plan: String,
    estimate: Estimate,
    until: UnixMillis,
    denial: Denial,
    snapshot: Snapshot,
}

/// Calls that passed unchecked in the minute that began at `since`.
#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    since: UnixMillis,
    calls: u64,
}

impl Memory {
    /// Remembers a refusal, if it is firm.
    pub fn remember(
        &self,
        subject: &Subject,
        (plan, estimate): (&str, Estimate),
        (denial, snapshot): (&Denial, &Snapshot),
        now: UnixMillis,
    ) {
        if !denial.firm {
            return;
        }
        let mut refusals = self.refusals.borrow_mut();
        if refusals.len() >= REFUSALS_MAX {
            refusals.clear();
        }
        let refusal = Refusal {
            plan: plan.to_owned(),
            estimate,
            until: now.after(denial.wait),
            denial: denial.clone(),
            snapshot: snapshot.clone(),
        };
        refusals.insert(subject.clone(), refusal);
    }

    /// The refusal of the very same call, with what is left of its wait. Only a call with the same estimate is the
    /// same: a smaller one may pass, a larger one waits longer.
    #[must_use]
    pub fn refusal(
        &self,
        subject: &Subject,
        (plan, estimate): (&str, Estimate),
        now: UnixMillis,
    ) -> Option<(Denial, Snapshot)> {
        let mut refusals = self.refusals.borrow_mut();
        let refusal = refusals.get(subject)?;
        if refusal.until <= now {
            refusals.remove(subject);
            return None;
        }
        if refusal.plan != plan || refusal.estimate != estimate {
            return None;
        }
        // A clock that went back must not lengthen what was announced.
        let wait = refusal.until.since(now).min(refusal.denial.wait);
        Some((Denial { wait, ..refusal.denial.clone() }, refusal.snapshot.seen_at(now)))
    }

    /// Remembers that the day's gate has refused.
    pub fn remember_day(&self, gate: &Gate, refusal: DayRefusal, now: UnixMillis) {
        let mut days = self.days.borrow_mut();
        if days.len() >= REFUSALS_MAX {
            days.clear();
        }
        let until = now.after(DAY_MEMORY.min(gate.day.wait_for_end(now)));
        let key = match refusal.scope {
            DayScope::Daily => gate.key.clone(),
            DayScope::Site => SITE_KEY.to_owned(),
        };
        days.insert(key, DayMemory { gate: gate.clone(), refusal, until });
    }

    /// What the day's gate has said to the very same question a moment ago; the site's answer is the same for everybody
    /// whose call is no cheaper.
    #[must_use]
    pub fn day_refusal(&self, gate: &Gate, now: UnixMillis) -> Option<DayRefusal> {
        let days = self.days.borrow();
        let own = days.get(&gate.key).filter(|memory| memory.gate == *gate);
        let site = days.get(SITE_KEY).filter(|memory| {
            memory.gate.day == gate.day && memory.gate.site == gate.site && memory.gate.estimate <= gate.estimate
        });
        let memory = own.or(site).filter(|memory| memory.until > now && memory.gate.day == UtcDay::of(now))?;
        let wait = memory.refusal.wait.map(|_| gate.day.wait_for_end(now));
        Some(DayRefusal { wait, ..memory.refusal })
    }

    /// Remembers whether the ledger has answered a look.
    pub fn remember_ledger(&self, answers: bool, now: UnixMillis) {
        self.ledger.replace(Some((now.after(LOOK_MEMORY), answers)));
    }

    /// Whether the ledger answered a moment ago, if it was looked at.
    #[must_use]
    pub fn ledger_answered(&self, now: UnixMillis) -> Option<bool> {
        self.ledger.borrow().filter(|(until, _)| *until > now).map(|(_, answers)| answers)
    }

    /// What is known of a model at an upstream, to be looked at or changed by `with`. Providers limit each model by
    /// itself, and one of them may fail alone.
    pub fn upstream<T>(&self, (name, model): (&str, &str), with: impl FnOnce(&mut Standing) -> T) -> T {
        // Names come from the policy alone, so there are few.
        with(self.upstreams.borrow_mut().entry((name.to_owned(), model.to_owned())).or_default())
    }

    /// Whether one more call may pass unchecked in this minute.
    #[must_use]
    pub fn may_pass_unchecked(&self, what: Unchecked, per_minute: u64, now: UnixMillis) -> bool {
        let [limiter, ledger] = &mut *self.unchecked.borrow_mut();
        let unchecked = match what {
            Unchecked::Limiter => limiter,
            Unchecked::Ledger => ledger,
        };
        if now.since(unchecked.since) >= MINUTE {
            *unchecked = Minute { since: now, calls: 0 };
        }
        if unchecked.calls >= per_minute {
            return false;
        }
        unchecked.calls += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{Amount, Cost, Limit, Period, Shape, Unit};

    fn refused(firm: bool) -> (Memory, Subject) {
        let shape = Shape::Bucket { burst: Amount(1), refill: Amount(1), per: Period::Second };
        let limit = Limit { name: "rps".to_owned(), unit: Unit::Requests, shape };
        let denial = Denial { limit, asked: Amount(1), left: 0, wait: Wait(1_000), firm };
        let (memory, subject) = (Memory::default(), Subject("user:a".to_owned()));
        let now = UnixMillis(5_000);
        memory.remember(&subject, ("p", Estimate::default()), (&denial, &Snapshot::default()), now);
        (memory, subject)
    }

    fn wait(memory: &Memory, subject: &Subject, estimate: Estimate, now: u64) -> Option<u64> {
        memory.refusal(subject, ("p", estimate), UnixMillis(now)).map(|(denial, _)| denial.wait.0)
    }

    #[test]
    fn a_firm_refusal_is_remembered_to_its_last_millisecond() {
        let (memory, subject) = refused(true);
        let other = Estimate(Cost { requests: 2, ..Cost::default() });
        assert_eq!(wait(&memory, &subject, other, 5_001), None);
        assert_eq!(wait(&memory, &subject, Estimate::default(), 5_999), Some(1));
        assert_eq!(wait(&memory, &subject, Estimate::default(), 4_000), Some(1_000));
        assert_eq!(wait(&memory, &subject, Estimate::default(), 6_000), None);
        assert_eq!(wait(&memory, &subject, Estimate::default(), 5_500), None);
    }

    #[test]
    fn a_refusal_that_a_settlement_could_shorten_is_not() {
        let (memory, subject) = refused(false);
        assert_eq!(wait(&memory, &subject, Estimate::default(), 5_001), None);
    }

    #[test]
    fn unchecked_calls_are_bounded_by_the_minute() {
        let memory = Memory::default();
        let passed = |now| memory.may_pass_unchecked(Unchecked::Ledger, 2, UnixMillis(now));
        assert_eq!([1_000_000, 1_000_001, 1_059_999].map(passed), [true, true, false]);
        assert_eq!([1_060_000, 1_060_000, 1_060_000].map(passed), [true, true, false]);
    }
}
