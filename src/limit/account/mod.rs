//! One subject's whole state: what is spent of every limit, and the holds of the calls that are under way.
//!
//! Invariant: every command is a function of the account, `now` and the command. It returns the answer and, only where
//! something has to be written, the next account; a refusal returns none, so it costs nothing anywhere. Every hold
//! ends once, by settlement, release or deadline; repeating a command with the same id changes nothing.
//!
//! Time never runs backwards here: `at` is the latest moment acted upon, and an earlier `now` is read as `at`, with the
//! difference added to every wait that is announced.

mod alarm;
mod decide;
mod keep;
mod words;

use std::collections::BTreeSet;

use decide::asked_of;

pub use alarm::{AlarmStep, REST};
pub use keep::{KEPT_ID_MAX, KEPT_KNOWN, KEPT_KNOWN_MAX, KEPT_MAX, NOTE_MAX};
pub use words::{Denial, Found, FoundState, Held, HoldId, Kept, Outcome, Recorded, Reservation, Snapshot, Verdict};

use serde::{Deserialize, Serialize};

use super::balance::Balance;
use super::outbox::{Booking, Entry, Outbox};
use super::{Amount, Charge, Estimate, Limit};
use crate::time::{UnixMillis, Wait};

/// How long after its deadline a hold can still be corrected by a settlement that comes late.
pub const GRACE: Wait = Wait::seconds(600);
/// How long the id of an ended hold is remembered, so that a reservation that was delivered late is not held again.
/// The Worker asks twice, for `limiter_ms` each (2 s as shipped), so a late one comes within seconds.
pub const ENDED_KEPT: Wait = Wait::seconds(15);
/// How many ended ids are remembered at most. The record is written twice in every call: 256 ids cost a busy caller 155 µs
/// of CPU a call. What a forgotten id can cost is one estimate, never an admission too many.
pub const ENDED_MAX: usize = 64;

/// An id that must not be held again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ended {
    id: HoldId,
    until: UnixMillis,
    /// The note of a kept hold, which can still be found by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The state of one subject. `Account::default()` is the state of a subject that never called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    at: UnixMillis,
    balances: Vec<Balance>,
    holds: Vec<Reservation>,
    ended: Vec<Ended>,
    alarm_at: Option<UnixMillis>,
    #[serde(default, skip_serializing_if = "Outbox::is_new")]
    outbox: Outbox,
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
        if next.has_ended(id) {
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
        let held: Vec<Held> = limits
            .iter()
            .map(|limit| Held { limit: limit.name.clone(), amount: asked_of(limit, &estimate.0) })
            .collect();
        for part in &held {
            if let Some(balance) = next.balance_mut(&part.limit) {
                balance.take(part.amount);
            }
        }
        let expires_at = next.at.after(time);
        next.holds.push(Reservation { id: id.clone(), made_at: next.at, expires_at, held, recorded: None, kept: None });
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
    /// `counted` says whether the day's gate, if it was to be asked, has counted the call; the answer, whether the hold
    /// was known.
    #[must_use]
    pub fn settle(&self, now: UnixMillis, id: &HoldId, charge: &Charge, counted: bool) -> Outcome<bool> {
        let mut next = self.advanced(now);
        let Some(hold) = next.end_hold(id) else {
            return Outcome { answer: false, next: None };
        };
        if let Some(Recorded { booking, estimate, expired }) = &hold.recorded {
            let entry = match (*expired, booking.gated && !counted) {
                (false, _) => Entry::settled,
                (true, false) => Entry::corrected,
                (true, true) => Entry::corrected_and_counted,
            };
            let booking = Booking { gated: booking.gated && counted, ..booking.clone() };
            next.post(&booking, entry(&booking, estimate, charge.cost()));
        }
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

    /// Gives back all that a call holds and, with `give_back`, the day's count. An id that is not known is remembered, so
    /// that a reservation that is delivered after its release holds nothing.
    #[must_use]
    pub fn release(&self, now: UnixMillis, id: &HoldId, give_back: bool) -> Outcome<bool> {
        let mut next = self.advanced(now);
        let Some(hold) = next.end_hold(id) else {
            if next.has_ended(id) {
                return Outcome { answer: false, next: None };
            }
            next.remember(id.clone(), None, next.at);
            return Outcome { answer: false, next: Some(next.tidied()) };
        };
        if let Some(recorded) = &hold.recorded {
            let booking = &recorded.booking;
            let change = match (recorded.expired, give_back) {
                (true, give_back) => Some(Entry::undone(booking, &recorded.estimate, give_back)),
                (false, true) => Entry::given_back(booking, &recorded.estimate),
                (false, false) => None,
            };
            if let Some(change) = change {
                next.post(booking, change);
            }
        }
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

    /// The account as of `now`, or as of its own time if `now` is earlier. Looking changes no answer.
    fn advanced(&self, now: UnixMillis) -> Self {
        let mut next = self.clone();
        next.at = now.max(self.at);
        for balance in &mut next.balances {
            balance.advance(self.at, next.at);
        }
        next.record_expired(next.at);
        next.forget();
        next
    }

    fn end_hold(&mut self, id: &HoldId) -> Option<Reservation> {
        let place = self.holds.iter().position(|hold| hold.id == *id)?;
        let hold = self.holds.remove(place);
        let note = hold.kept.as_ref().map(|kept| kept.note.clone());
        self.remember(hold.id.clone(), note, self.at);
        Some(hold)
    }

    /// Without the balances that a fresh account would have anyway, unless a hold still needs them to settle.
    fn tidied(mut self) -> Self {
        self.count_slots();
        let needed: BTreeSet<String> =
            self.holds.iter().flat_map(|hold| hold.held.iter().map(|part| part.limit.clone())).collect();
        self.balances.retain(|balance| !balance.is_fresh() || needed.contains(&balance.limit.name));
        self
    }

    fn open_holds(&self) -> u64 {
        self.holds.iter().filter(|hold| hold.expires_at > self.at).count() as u64
    }

    fn balance(&self, name: &str) -> Option<&Balance> {
        self.balances.iter().find(|balance| balance.limit.name == name)
    }

    fn balance_mut(&mut self, name: &str) -> Option<&mut Balance> {
        self.balances.iter_mut().find(|balance| balance.limit.name == name)
    }
}
