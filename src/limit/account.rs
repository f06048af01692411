//! One subject's whole state: what is spent of every limit, and the holds of the calls that are under way.
//!
//! Invariant: every command is a function of the account, `now` and the command. It returns the answer and, only where
//! something has to be written, the next account; a refusal returns none, so it costs nothing anywhere. Every hold
//! ends once, by settlement, release or deadline; repeating a command with the same id changes nothing.
//!
//! Time never runs backwards here: `at` is the latest moment acted upon, and an earlier `now` is read as `at`, with the
//! difference added to every wait that is announced.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::balance::{Balance, Fit};
use super::{Amount, Charge, Cost, Estimate, Limit, Unit};
use crate::time::{UnixMillis, Wait};

/// How long after its deadline a hold can still be corrected by a settlement that comes late.
pub const GRACE: Wait = Wait::seconds(600);
/// How long the id of an ended hold is remembered, so that a reservation that was delivered late is not held again.
/// A caller asks for seconds at most, so a minute is generous.
pub const ENDED_KEPT: Wait = Wait::seconds(60);
/// How many ended ids are remembered at most. The record is written on every call, so it must stay small for a caller
/// that makes hundreds of calls a second; what a forgotten id can cost is one estimate, never an admission too many.
pub const ENDED_MAX: usize = 256;
/// How long an account rests, full, before it is deleted: an active caller's state is not torn down every minute.
pub const REST: Wait = Wait::seconds(600);
/// An armed alarm is moved forward only for at least this much: setting it costs as much as the call itself.
const REARM_GAIN: Wait = Wait::seconds(3_600);

/// How far ahead an alarm is set at most; one that fires too early moves itself. A balance may need years.
const ALARM_MAX: Wait = Wait::seconds(32 * 86_400);

/// The id of a call, chosen by the Worker; unguessable, so nobody can end another's hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HoldId(pub String);

/// What one call holds. It ends in `settle`, `release`, or at its deadline with what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The id of the call.
    pub id: HoldId,
    /// When it was made, as the account saw the time.
    pub made_at: UnixMillis,
    /// Its deadline: from then on it occupies no slot and what it held is spent.
    pub expires_at: UnixMillis,
    /// What it holds of each limit.
    pub held: Vec<Held>,
}

/// What a call holds of one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The limit's name.
    pub limit: String,
    /// How much.
    pub amount: Amount,
}

/// An id that must not be held again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ended {
    id: HoldId,
    until: UnixMillis,
}

/// The state of one subject. `Account::default()` is the state of a subject that never called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    at: UnixMillis,
    balances: Vec<Balance>,
    holds: Vec<Reservation>,
    ended: Vec<Ended>,
    alarm_at: Option<UnixMillis>,
}

/// The answer to a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every limit admits the call, and all of them hold it.
    Reserved {
        /// The deadline of the hold.
        expires_at: UnixMillis,
    },
    /// Not yet.
    Wait(Denial),
    /// Not ever: the call asks one limit for more than it can hold.
    NeverFits(Denial),
    /// The id belongs to a call that has ended; nothing was held.
    Ended,
}

/// Which limit refused, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The limit that keeps the call longest.
    pub limit: Limit,
    /// What the call asked of it.
    pub asked: Amount,
    /// What was left of it; negative in debt.
    pub left: i64,
    /// After what time the same call passes all limits; zero where it never does.
    pub wait: Wait,
    /// No open hold could make it sooner.
    pub firm: bool,
}

/// What a subject has left, as of `at`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The moment that the balances are of.
    pub at: UnixMillis,
    /// Calls under way.
    pub open_holds: u64,
    /// The plan's limits, in the policy's order.
    pub balances: Vec<Balance>,
}

impl Snapshot {
    /// The same, `now`, if nobody has spent or settled since.
    #[must_use]
    pub fn seen_at(&self, now: UnixMillis) -> Self {
        let mut later = Self { at: now.max(self.at), ..self.clone() };
        for balance in &mut later.balances {
            balance.advance(self.at, later.at);
        }
        later
    }
}

/// A command's answer, and the account to be written, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<T> {
    /// The answer.
    pub answer: T,
    /// The account after the command; `None` if nothing has to be written.
    pub next: Option<Account>,
}

/// What the cleaning alarm has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// Nothing is left that a fresh account would not have: delete everything.
    Delete,
    /// Not yet: write the account, with its alarm at this moment.
    Rearm(UnixMillis, Account),
}

impl Account {
    /// Holds `estimate` of every limit under `id` until `now + time`, or nothing of any.
    #[must_use]
    pub fn reserve(
        &self,
        now: UnixMillis,
        id: &HoldId,
        limits: &[Limit],
        (estimate, time): (Estimate, Wait),
    ) -> Outcome<Verdict> {
        let mut next = self.advanced(now);
        if next.ended.iter().any(|ended| ended.id == *id) {
            return Outcome { answer: Verdict::Ended, next: None };
        }
        if let Some(hold) = next.holds.iter().find(|hold| hold.id == *id) {
            let expires_at = hold.expires_at;
            let answer = if expires_at > next.at { Verdict::Reserved { expires_at } } else { Verdict::Ended };
            return Outcome { answer, next: None };
        }
        let changed = next.apply(limits);
        if let Some(refusal) = next.refusal(now, limits, &estimate.0) {
            // The wait was computed under the rules as they are now, so they have to be remembered: else the time until
            // then would be refilled by the old ones. That is one write for a change of policy, not for a refusal.
            return Outcome { answer: refusal, next: changed.then(|| next.tidied()) };
        }
        let held = limits
            .iter()
            .filter(|limit| limit.unit != Unit::Concurrency)
            .map(|limit| Held { limit: limit.name.clone(), amount: estimate.0.of(limit.unit) })
            .collect::<Vec<_>>();
        for part in &held {
            if let Some(balance) = next.balance_mut(&part.limit) {
                balance.take(part.amount);
            }
        }
        let expires_at = next.at.after(time);
        next.holds.push(Reservation { id: id.clone(), made_at: next.at, expires_at, held });
        Outcome { answer: Verdict::Reserved { expires_at }, next: Some(next.tidied()) }
    }

    /// What a reservation of `estimate` would come to. Nothing is held, and the deadline is `now`.
    #[must_use]
    pub fn check(&self, now: UnixMillis, limits: &[Limit], estimate: Estimate) -> Verdict {
        let mut view = self.advanced(now);
        view.apply(limits);
        view.refusal(now, limits, &estimate.0).unwrap_or(Verdict::Reserved { expires_at: view.at })
    }

    /// Replaces what a call holds by what it did cost. Within the grace period after its deadline it still corrects.
    /// The answer says whether the hold was known.
    #[must_use]
    pub fn settle(&self, now: UnixMillis, id: &HoldId, charge: &Charge) -> Outcome<bool> {
        let mut next = self.advanced(now);
        let Some(hold) = next.end_hold(id) else {
            return Outcome { answer: false, next: None };
        };
        for part in &hold.held {
            let Some(balance) = next.balance_mut(&part.limit) else { continue };
            let actual = charge.cost().of(balance.limit.unit);
            if actual >= part.amount {
                balance.take(Amount(actual.0 - part.amount.0));
            } else {
                balance.give_back(Amount(part.amount.0 - actual.0), hold.made_at);
            }
        }
        Outcome { answer: true, next: Some(next.tidied()) }
    }

    /// Gives back all that a call holds, its count included. An id that is not known is remembered, so that a
    /// reservation that is delivered after its release holds nothing.
    #[must_use]
    pub fn release(&self, now: UnixMillis, id: &HoldId) -> Outcome<bool> {
        let mut next = self.advanced(now);
        let Some(hold) = next.end_hold(id) else {
            if next.ended.iter().any(|ended| ended.id == *id) {
                return Outcome { answer: false, next: None };
            }
            next.remember_ended(id.clone());
            return Outcome { answer: false, next: Some(next.tidied()) };
        };
        for part in &hold.held {
            if let Some(balance) = next.balance_mut(&part.limit) {
                balance.give_back(part.amount, hold.made_at);
            }
        }
        Outcome { answer: true, next: Some(next.tidied()) }
    }

    /// Moves the deadline of an open hold to `now + time`, if that is later: a stream that goes on longer than its
    /// hold. One that has passed its deadline stays ended; it can still be settled within the grace period.
    #[must_use]
    pub fn extend(&self, now: UnixMillis, id: &HoldId, time: Wait) -> Outcome<bool> {
        let mut next = self.advanced(now);
        let (at, until) = (next.at, next.at.after(time));
        match next.holds.iter_mut().find(|hold| hold.id == *id && hold.expires_at > at) {
            None => Outcome { answer: false, next: None },
            Some(hold) if hold.expires_at >= until => Outcome { answer: true, next: None },
            Some(hold) => {
                hold.expires_at = until;
                Outcome { answer: true, next: Some(next.tidied()) }
            }
        }
    }

    /// What is left of `limits`. Writes nothing.
    #[must_use]
    pub fn snapshot(&self, now: UnixMillis, limits: &[Limit]) -> Snapshot {
        let mut view = self.advanced(now);
        view.apply(limits);
        let balances = limits.iter().filter_map(|limit| view.balance(&limit.name).cloned()).collect();
        Snapshot { at: view.at, open_holds: view.open_holds(), balances }
    }

    /// When the alarm has to be set for this account, having been decided upon; `None` if the one that is armed will
    /// do. The account remembers it.
    pub fn arm(&mut self) -> Option<UnixMillis> {
        let needed = self.idle_at().after(REST).min(self.at.after(ALARM_MAX));
        let moved = self.alarm_at.is_none_or(|armed| armed.since(needed) >= REARM_GAIN);
        moved.then(|| {
            self.alarm_at = Some(needed);
            needed
        })
    }

    /// What to do when the alarm fires, early, late or twice. It looks at the account as it was last written, and
    /// changes nothing of it but the alarm: looking must not make its rest begin anew.
    #[must_use]
    pub fn cleanup(&self, now: UnixMillis) -> Cleanup {
        let now = now.max(self.at);
        let rested_at = self.idle_at().after(REST);
        if rested_at <= now {
            return Cleanup::Delete;
        }
        let alarm_at = rested_at.min(now.after(ALARM_MAX));
        Cleanup::Rearm(alarm_at, Self { alarm_at: Some(alarm_at), ..self.clone() })
    }

    /// The account as of `now`, or as of its own time if `now` is earlier. Looking changes no answer.
    fn advanced(&self, now: UnixMillis) -> Self {
        let mut next = self.clone();
        next.at = now.max(self.at);
        for balance in &mut next.balances {
            balance.advance(self.at, next.at);
        }
        next.holds.retain(|hold| hold.expires_at.after(GRACE) > next.at);
        next.ended.retain(|ended| ended.until > next.at);
        next
    }

    /// Takes over the limits as the policy has them now; whether that changed a balance of which something is spent.
    fn apply(&mut self, limits: &[Limit]) -> bool {
        let (at, mut changed) = (self.at, false);
        for limit in limits {
            let Some(balance) = self.balance_mut(&limit.name) else {
                self.balances.push(Balance::fresh(limit, at));
                continue;
            };
            if balance.limit == *limit {
                continue;
            }
            changed |= !balance.is_fresh();
            let same_unit = balance.limit.unit == limit.unit;
            *balance = balance.under(limit, at);
            if !same_unit {
                // What was held of it is gone with it: it must not be given back, or paid for, in another unit.
                for hold in &mut self.holds {
                    hold.held.retain(|part| part.limit != limit.name);
                }
            }
        }
        changed
    }

    /// The refusal of the limit that keeps the call longest, if any does.
    fn refusal(&self, now: UnixMillis, limits: &[Limit], cost: &Cost) -> Option<Verdict> {
        let (open, mut longest) = (self.open_holds(), None::<Denial>);
        for balance in limits.iter().filter_map(|limit| self.balance(&limit.name)) {
            let asked = if balance.limit.unit == Unit::Concurrency { Amount(1) } else { cost.of(balance.limit.unit) };
            let denial = |wait| Denial {
                limit: balance.limit.clone(),
                asked,
                left: balance.left(open),
                wait,
                firm: self.holds.is_empty(),
            };
            match balance.fit(asked, open, self.at) {
                Fit::Now => {}
                Fit::Never => return Some(Verdict::NeverFits(denial(Wait::default()))),
                Fit::After(wait) => {
                    let wait = Wait(wait.0.saturating_add(self.at.since(now).0));
                    if longest.as_ref().is_none_or(|longest| longest.wait < wait) {
                        longest = Some(denial(wait));
                    }
                }
            }
        }
        longest.map(Verdict::Wait)
    }

    fn end_hold(&mut self, id: &HoldId) -> Option<Reservation> {
        let place = self.holds.iter().position(|hold| hold.id == *id)?;
        let hold = self.holds.remove(place);
        self.remember_ended(hold.id.clone());
        Some(hold)
    }

    fn remember_ended(&mut self, id: HoldId) {
        if self.ended.len() >= ENDED_MAX {
            self.ended.remove(0);
        }
        self.ended.push(Ended { id, until: self.at.after(ENDED_KEPT) });
    }

    /// Without the balances that a fresh account would have anyway, unless a hold still needs them to settle.
    fn tidied(mut self) -> Self {
        let needed: BTreeSet<String> =
            self.holds.iter().flat_map(|hold| hold.held.iter().map(|part| part.limit.clone())).collect();
        self.balances.retain(|balance| !balance.is_fresh() || needed.contains(&balance.limit.name));
        self
    }

    fn open_holds(&self) -> u64 {
        self.holds.iter().filter(|hold| hold.expires_at > self.at).count() as u64
    }

    /// The first moment at which, if nobody calls, nothing is left that a fresh account would not have.
    fn idle_at(&self) -> UnixMillis {
        let never = Wait(u64::MAX);
        let full = self.balances.iter().map(|balance| self.at.after(balance.wait_until_full(self.at).unwrap_or(never)));
        let graced = self.holds.iter().map(|hold| hold.expires_at.after(GRACE));
        let forgotten = self.ended.iter().map(|ended| ended.until);
        full.chain(graced).chain(forgotten).fold(self.at, UnixMillis::max)
    }

    fn balance(&self, name: &str) -> Option<&Balance> {
        self.balances.iter().find(|balance| balance.limit.name == name)
    }

    fn balance_mut(&mut self, name: &str) -> Option<&mut Balance> {
        self.balances.iter_mut().find(|balance| balance.limit.name == name)
    }
}
