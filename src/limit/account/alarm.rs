//! What an account wants to be woken for: to tell the ledger, and to be forgotten.
//!
//! Invariant: forgetting is invisible, and nothing that the ledger has to be told is forgotten. Looking at an account
//! never makes its rest begin anew.

use super::{Account, HoldId, Recorded, Reservation};
use crate::limit::Cost;
use crate::limit::outbox::{Batch, Booking, Entry, Refusals};
use crate::time::{UnixMillis, Wait};

/// How long an account rests, full, before it is deleted: an active caller's state is not torn down every minute.
pub const REST: Wait = Wait::seconds(600);
/// An armed alarm is moved forward only for at least this much: setting it costs as much as the call itself.
const REARM_GAIN: Wait = Wait::seconds(3_600);

/// How far ahead an alarm is set at most; one that fires too early moves itself. A balance may need years.
const ALARM_MAX: Wait = Wait::seconds(32 * 86_400);

/// What the alarm has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlarmStep {
    /// Nothing is left that a fresh account would not have: delete everything.
    Delete,
    /// Nothing yet: write the account, with its alarm at this moment.
    Rearm {
        /// When.
        alarm_at: UnixMillis,
        /// The account to be written.
        next: Account,
    },
    /// Write the account with its alarm, then tell the ledger, then write what `posted` makes of it and look again.
    Post {
        /// What the ledger is told.
        batch: Batch,
        /// When to look again if that fails.
        alarm_at: UnixMillis,
        /// The account to be written before.
        next: Account,
    },
}

impl Account {
    /// Says where a hold that was just made is recorded.
    #[must_use]
    pub fn recorded(mut self, id: &HoldId, booking: Booking, estimate: Cost) -> Self {
        if let Some(hold) = self.holds.iter_mut().find(|hold| hold.id == *id) {
            hold.recorded = Some(Recorded { booking, estimate, expired: false });
        }
        self
    }

    /// Says that the day's gate, which was to be asked, has not counted the call of a hold: so that whoever settles it later
    /// need not know.
    #[must_use]
    pub fn uncounted(mut self, id: &HoldId) -> Self {
        let hold = self.holds.iter_mut().find(|hold| hold.id == *id);
        if let Some(recorded) = hold.and_then(|hold| hold.recorded.as_mut()) {
            recorded.booking.gated = false;
        }
        self
    }

    /// Records calls that were refused since the account was last written.
    #[must_use]
    pub fn with_refusals(mut self, refusals: &Refusals) -> Self {
        for (booking, calls) in refusals.iter() {
            self.post(booking, Entry::refused(booking, *calls));
        }
        self
    }

    /// The account to be written once the ledger has taken a batch.
    #[must_use]
    pub fn posted(&self, number: u64) -> Self {
        let mut next = self.clone();
        next.outbox.acknowledge(number);
        next
    }

    /// When the alarm has to be set for this account, having been decided upon; `None` if the one that is armed will
    /// do. The account remembers it.
    pub fn arm(&mut self) -> Option<UnixMillis> {
        let needed = self.needed_at(self.at);
        // What the ledger is to be told is awaited; cleaning up is not.
        let gain = if self.post_at() == Some(needed) { Wait(1) } else { REARM_GAIN };
        let moved = self.alarm_at.is_none_or(|armed| armed.since(needed) >= gain);
        moved.then(|| {
            self.alarm_at = Some(needed);
            needed
        })
    }

    /// What to do when the alarm fires, early, late or twice. It looks at the account as it was last written and changes
    /// nothing of it but what the ledger is told and the alarm: looking must not make its rest begin anew.
    #[must_use]
    pub fn alarm(&self, now: UnixMillis) -> AlarmStep {
        let now = now.max(self.at);
        let mut next = self.clone();
        next.record_expired(now);
        let batch = next.outbox.begin(now);
        if batch.is_none() && next.outbox.is_empty() && next.idle_at().after(REST) <= now {
            return AlarmStep::Delete;
        }
        let alarm_at = next.needed_at(now).max(now);
        next.alarm_at = Some(alarm_at);
        match batch {
            Some(batch) => AlarmStep::Post { batch, alarm_at, next },
            None => AlarmStep::Rearm { alarm_at, next },
        }
    }

    /// When the alarm is needed next, as seen at `now`: to tell the ledger, or to clean up.
    fn needed_at(&self, now: UnixMillis) -> UnixMillis {
        let rested_at = self.idle_at().after(REST).min(now.after(ALARM_MAX));
        self.post_at().map_or(rested_at, |post_at| rested_at.min(post_at))
    }

    /// When the ledger has to be told something, as far as is known now: a batch that is due, or a hold that its
    /// deadline will end.
    fn post_at(&self) -> Option<UnixMillis> {
        let unrecorded = |hold: &&Reservation| hold.recorded.as_ref().is_some_and(|recorded| !recorded.expired);
        let deadlines = self.holds.iter().filter(unrecorded).map(|hold| hold.expires_at);
        self.outbox.due_at().into_iter().chain(deadlines).min()
    }

    pub(super) fn post(&mut self, booking: &Booking, change: Entry) {
        let at = self.at;
        self.outbox.add(change, at, booking.post_after);
    }

    /// Records every hold that its deadline has ended by `at`, once.
    pub(super) fn record_expired(&mut self, at: UnixMillis) {
        for hold in self.holds.iter_mut().filter(|hold| hold.expires_at <= at) {
            if let Some(recorded) = hold.recorded.as_mut().filter(|recorded| !recorded.expired) {
                recorded.expired = true;
                let change = Entry::settled(&recorded.booking, &recorded.estimate, &recorded.estimate);
                self.outbox.add(change, at, recorded.booking.post_after);
            }
        }
    }

    /// The first moment at which, if nobody calls, nothing is left that a fresh account would not have.
    fn idle_at(&self) -> UnixMillis {
        let never = Wait(u64::MAX);
        let full = self.balances.iter().map(|balance| self.at.after(balance.wait_until_full(self.at).unwrap_or(never)));
        let held = self.holds.iter().map(Reservation::forgotten_at);
        let ended = self.ended.iter().map(|ended| ended.until);
        full.chain(held).chain(ended).fold(self.at, UnixMillis::max)
    }
}
