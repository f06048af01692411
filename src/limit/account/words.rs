//! The words of an account: what a call holds, what a decision says.

use serde::{Deserialize, Serialize};

use super::Account;
use crate::limit::balance::Balance;
use crate::limit::outbox::Booking;
use crate::limit::{Amount, Cost, Limit};
use crate::time::{UnixMillis, Wait};

/// The id of a call, chosen by the Worker; unguessable, so nobody can end another's hold. Of a kept hold, the id under
/// which the provider knows the call.
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
    /// Where it is recorded, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// How it was kept, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// That a hold was kept beyond the request that made it, to be ended under another id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The id that it was made under. It tells a repeated `keep` from one of another call.
    pub from: HoldId,
    /// What whoever ends it has to know of it; at most `NOTE_MAX` bytes.
    pub note: String,
}

/// A kept hold, as it is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// What has become of it.
    pub state: FoundState,
    /// The note that it was kept with.
    pub note: String,
}

/// What has become of a kept hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundState {
    /// It is open: it has to be settled or released.
    Open,
    /// Its deadline has ended it at its estimate; settling or releasing it still corrects that.
    Expired,
    /// It has ended for good.
    Ended,
}

/// Where a hold is recorded, and at what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The row of the ledger.
    pub booking: Booking,
    /// What was estimated: what is recorded if the deadline ends the hold.
    pub estimate: Cost,
    /// The deadline has ended it, and that has been recorded.
    pub expired: bool,
}

/// What a call holds of one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The limit's name.
    pub limit: String,
    /// How much.
    pub amount: Amount,
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
