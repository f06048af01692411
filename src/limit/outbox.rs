//! What a subject's object still has to tell the day's ledger.
//!
//! Invariant: every change reaches the ledger exactly once. Changes are added up by day and key; a batch of them gets a
//! number that only grows, is stored before it is sent, and is sent with that number until it is acknowledged; the
//! ledger's row remembers the last number that it took. So a lost acknowledgement, a restart between any two steps and
//! a database that is down for an hour change nothing.

use serde::{Deserialize, Serialize};

use super::Cost;
use crate::time::{UnixMillis, UtcDay, Wait};

/// How long a batch that the ledger did not take waits before it is sent again; twice as long after every further
/// failure, up to the longest.
const RETRY: Wait = Wait::seconds(30);
const RETRY_MAX: Wait = Wait::seconds(300);

/// For how many rows refusals are noted at most: one object serves few keys at a time.
const REFUSALS_MAX: usize = 64;

/// How many rows one batch changes at most: each is a statement, and a database takes 50 at a time on the free plan.
const BATCH_MAX: usize = 32;

/// Where, and how, a call is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booking {
    /// The day that the call counts for.
    pub day: UtcDay,
    /// The row: whose calls these are.
    pub key: String,
    /// The plan that they were made under.
    pub plan: String,
    /// Whether the gate has counted the call already.
    pub gated: bool,
    /// Whether the call counts for the site: not if its plan is exempted.
    pub for_site: bool,
    /// How long changes are collected before they are sent.
    pub post_after: Wait,
}

/// Changes to one row of the ledger. They may be negative: a correction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The day.
    pub day: UtcDay,
    /// The row.
    pub key: String,
    /// The plan.
    pub plan: String,
    /// Calls admitted.
    pub calls: i64,
    /// Calls that the gate counted for the site, given back.
    pub site_calls: i64,
    /// Money that counts against the caps: what the gate did not know yet.
    pub counted: i64,
    /// The same, against the site's.
    pub site_counted: i64,
    /// Calls that ended with a charge.
    pub settled: i64,
    /// Calls refused.
    pub refused: i64,
    /// Tokens read.
    pub input: i64,
    /// Tokens written.
    pub output: i64,
    /// Billionths of a dollar charged.
    pub usd: i64,
}

/// A batch with its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Larger than that of every earlier batch of the subject, also of one whose object has been forgotten since.
    pub number: u64,
    /// The changes, one for each row.
    pub entries: Vec<Entry>,
}

/// Calls that the object has refused since it last wrote. A refusal writes nothing, so these are lost if the object is
/// put to sleep before it writes again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals(Vec<(Booking, u64)>);

impl Refusals {
    /// Notes one, which would have been recorded at `booking`.
    pub fn note(&mut self, booking: &Booking) {
        let noted = self.0.iter_mut().find(|(noted, _)| noted.day == booking.day && noted.key == booking.key);
        if let Some((_, calls)) = noted {
            *calls += 1;
        } else if self.0.len() < REFUSALS_MAX {
            self.0.push((booking.clone(), 1));
        }
    }

    /// Takes all of them.
    #[must_use]
    pub fn take(&mut self) -> Self {
        core::mem::take(self)
    }

    /// Each row's.
    pub fn iter(&self) -> impl Iterator<Item = &(Booking, u64)> {
        self.0.iter()
    }
}

/// Changes to be sent, and the batch that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbox {
    pending: Vec<Entry>,
    /// When what is pending is to be sent.
    pending_due: Option<UnixMillis>,
    sent: Option<Batch>,
    /// When what is under way is to be sent again.
    retry_at: Option<UnixMillis>,
    /// How often it has been sent.
    #[serde(default)]
    tries: u32,
    last: u64,
}

impl Outbox {
    /// Whether there is nothing to be told.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.sent.is_none()
    }

    /// Whether nothing was ever put in: it then need not be stored.
    #[must_use]
    pub fn is_new(&self) -> bool {
        *self == Self::default()
    }

    /// When there is something to be sent: what is under way again, or else what is pending.
    #[must_use]
    pub fn due_at(&self) -> Option<UnixMillis> {
        if self.sent.is_some() { self.retry_at } else { self.pending_due }
    }

    /// Adds a change.
    pub fn add(&mut self, change: Entry, now: UnixMillis, after: Wait) {
        match self.pending.iter_mut().find(|entry| entry.day == change.day && entry.key == change.key) {
            Some(entry) => entry.add(&change),
            None => self.pending.push(change),
        }
        self.pending_due.get_or_insert(now.after(after));
    }

    /// The batch to be sent now, if one is due: the one under way, or a new one of what has come together.
    pub fn begin(&mut self, now: UnixMillis) -> Option<Batch> {
        if self.due_at().is_none_or(|due| due > now) {
            return None;
        }
        if self.sent.is_none() {
            let rest = self.pending.split_off(self.pending.len().min(BATCH_MAX));
            let entries = core::mem::replace(&mut self.pending, rest);
            self.pending_due = self.pending_due.filter(|_| !self.pending.is_empty());
            // Of the clock, so that an account that was forgotten and made anew goes on above its old numbers.
            self.last = now.0.max(self.last.saturating_add(1));
            self.sent = Some(Batch { number: self.last, entries });
        }
        let wait = RETRY.0.saturating_mul(1 << self.tries.min(16));
        self.tries = self.tries.saturating_add(1);
        self.retry_at = Some(now.after(Wait(wait).min(RETRY_MAX)));
        self.sent.clone()
    }

    /// The ledger has taken the batch of this number.
    pub fn acknowledge(&mut self, number: u64) {
        if self.sent.as_ref().is_some_and(|batch| batch.number == number) {
            (self.sent, self.retry_at, self.tries) = (None, None, 0);
        }
    }
}

impl Entry {
    /// A change of nothing yet.
    #[must_use]
    pub fn of(booking: &Booking) -> Self {
        Self { day: booking.day, key: booking.key.clone(), plan: booking.plan.clone(), ..Self::default() }
    }

    /// A call that has ended with a charge, having been estimated.
    #[must_use]
    pub fn settled(booking: &Booking, estimate: &Cost, charged: &Cost) -> Self {
        let known = if booking.gated { signed(estimate.usd.0) } else { 0 };
        let settled = Self {
            calls: i64::from(!booking.gated),
            counted: signed(charged.usd.0) - known,
            settled: 1,
            input: signed(charged.input.0),
            output: signed(charged.output.0),
            usd: signed(charged.usd.0),
            ..Self::of(booking)
        };
        settled.for_site(booking)
    }

    /// A correction of a call that was recorded at `before` and did cost `after`.
    #[must_use]
    pub fn corrected(booking: &Booking, before: &Cost, after: &Cost) -> Self {
        let difference = |after: u64, before: u64| signed(after) - signed(before);
        let usd = difference(after.usd.0, before.usd.0);
        let corrected = Self {
            counted: usd,
            input: difference(after.input.0, before.input.0),
            output: difference(after.output.0, before.output.0),
            usd,
            ..Self::of(booking)
        };
        corrected.for_site(booking)
    }

    /// The same of a call that the gate, which it was recorded to have passed, has not counted after all.
    #[must_use]
    pub fn corrected_and_counted(booking: &Booking, before: &Cost, after: &Cost) -> Self {
        let corrected = Self::corrected(booking, before, after);
        Self { calls: 1, counted: signed(after.usd.0), ..corrected }.for_site(booking)
    }

    /// A correction of a call that was recorded at `before` and did cost nothing; with `give_back` it did not count.
    #[must_use]
    pub fn undone(booking: &Booking, before: &Cost, give_back: bool) -> Self {
        let nothing = Cost { requests: 0, ..Cost::default() };
        let corrected = Self::corrected(booking, before, &nothing);
        let calls = -i64::from(give_back && booking.gated);
        Self { calls, settled: -1, ..corrected }.for_site(booking)
    }

    /// A count that is given back: the call cost nothing. `None` if the gate has not counted it.
    #[must_use]
    pub fn given_back(booking: &Booking, estimate: &Cost) -> Option<Self> {
        let back = Self { calls: -1, counted: -signed(estimate.usd.0), ..Self::of(booking) };
        booking.gated.then(|| back.for_site(booking))
    }

    /// The same for the site's row, if the call counts for the site.
    fn for_site(self, booking: &Booking) -> Self {
        if booking.for_site { Self { site_calls: self.calls, site_counted: self.counted, ..self } } else { self }
    }

    /// Calls that the object refused.
    #[must_use]
    pub fn refused(booking: &Booking, calls: u64) -> Self {
        Self { refused: signed(calls), ..Self::of(booking) }
    }

    fn add(&mut self, other: &Self) {
        for (own, other) in [
            (&mut self.calls, other.calls),
            (&mut self.site_calls, other.site_calls),
            (&mut self.counted, other.counted),
            (&mut self.site_counted, other.site_counted),
            (&mut self.settled, other.settled),
            (&mut self.refused, other.refused),
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.usd, other.usd),
        ] {
            *own = own.saturating_add(other);
        }
        self.plan.clone_from(&other.plan);
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::NanoUsd;
    use crate::limit::Tokens;

    fn booking(gated: bool) -> Booking {
        let (key, plan) = ("user:a".to_owned(), "p".to_owned());
        Booking { day: UtcDay(20_000), key, plan, gated, for_site: true, post_after: Wait::seconds(10) }
    }

    fn cost(usd: u64) -> Cost {
        Cost { requests: 1, input: Tokens(usd), output: Tokens(2 * usd), usd: NanoUsd(usd) }
    }

    #[test]
    fn changes_of_one_row_add_up_until_they_are_due() {
        let mut outbox = Outbox::default();
        let now = UnixMillis(1_000_000);
        outbox.add(Entry::settled(&booking(true), &cost(10), &cost(7)), now, Wait::seconds(10));
        outbox.add(Entry::settled(&booking(true), &cost(10), &cost(12)), UnixMillis(1_005_000), Wait::seconds(10));
        assert_eq!(outbox.begin(UnixMillis(1_009_999)), None);
        let batch = outbox.begin(UnixMillis(1_010_000)).unwrap();
        assert_eq!(batch.entries.len(), 1);
        let entry = &batch.entries[0];
        assert_eq!((entry.calls, entry.counted, entry.settled, entry.usd, entry.output), (0, -1, 2, 19, 38));
    }

    #[test]
    fn a_batch_is_sent_with_its_number_until_it_is_acknowledged() {
        let mut outbox = Outbox::default();
        let mut now = UnixMillis(1_000_000);
        outbox.add(Entry::settled(&booking(false), &cost(1), &cost(1)), now, Wait(0));
        let first = outbox.begin(now).unwrap();
        outbox.add(Entry::refused(&booking(false), 3), now, Wait::seconds(40));
        assert_eq!(outbox.begin(now), None);
        now = now.after(RETRY);
        assert_eq!(outbox.begin(now), Some(first.clone()));
        outbox.acknowledge(first.number + 1);
        assert!(!outbox.is_empty());
        outbox.acknowledge(first.number);
        assert_eq!(outbox.begin(now), None, "what is pending has a moment of its own");
        now = UnixMillis(1_040_000);
        let second = outbox.begin(now).unwrap();
        assert!(second.number > first.number);
        assert_eq!((second.entries[0].refused, second.entries[0].calls), (3, 0));
        outbox.acknowledge(second.number);
        assert!(outbox.is_empty() && outbox.due_at().is_none());
    }

    #[test]
    fn a_batch_is_no_larger_than_the_database_takes() {
        let mut outbox = Outbox::default();
        let now = UnixMillis(1_000_000);
        for row in 0..BATCH_MAX + 3 {
            let booking = Booking { key: row.to_string(), ..booking(true) };
            outbox.add(Entry::refused(&booking, 1), now, Wait(0));
        }
        let first = outbox.begin(now).unwrap();
        outbox.acknowledge(first.number);
        assert_eq!((first.entries.len(), outbox.begin(now).unwrap().entries.len()), (BATCH_MAX, 3));
    }

    #[test]
    fn an_exempted_plan_moves_nothing_of_the_sites() {
        let exempt = Booking { for_site: false, ..booking(true) };
        let settled = Entry::settled(&exempt, &cost(10), &cost(3));
        let back = Entry::given_back(&exempt, &cost(10)).unwrap();
        assert_eq!((settled.counted, settled.site_counted, back.calls, back.site_calls), (-7, 0, -1, 0));
    }

    #[test]
    fn what_the_gate_counted_is_given_back_and_nothing_else() {
        let back = Entry::given_back(&booking(true), &cost(10)).unwrap();
        assert_eq!((back.calls, back.site_calls, back.counted, back.site_counted), (-1, -1, -10, -10));
        assert_eq!(Entry::given_back(&booking(false), &cost(10)), None);
    }
}
