//! What the Worker and a subject's object say to each other, and what the object stores.
//!
//! Invariant: everything is versioned, and tests pin its exact text. A new Worker may call an old object and the
//! other way round while a deploy rolls out, so a change of meaning takes a new version.
//!
//! A command is a URL query, since JSON in and out through the platform's types costs twice the CPU of the hop itself.

mod query;
mod record;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use record::{account_of, record_of};

use super::account::{Account, Found, HoldId, Snapshot, Verdict};
use super::outbox::Booking;
use super::{Charge, Estimate, Limit};
use crate::time::{UnixMillis, Wait};

/// The version of commands and replies. It is the first segment of a command's path.
const PROTOCOL: &str = "v1";
/// The version of the stored record.
const RECORD: u32 = 1;

/// What the Worker asks of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Hold the estimate under the plan's limits.
    Reserve {
        /// The id of the call.
        id: HoldId,
        /// The plan, whose limits the object reads from the policy itself.
        plan: String,
        /// What to hold.
        estimate: Estimate,
        /// For how long.
        hold: Wait,
        /// Where the call is recorded, if the policy has a ledger.
        booking: Option<Booking>,
    },
    /// Say what a reservation would come to, and hold nothing.
    Check {
        /// The plan.
        plan: String,
        /// What would be held.
        estimate: Estimate,
    },
    /// Replace the hold by what the call did cost.
    Settle {
        /// The id of the call.
        id: HoldId,
        /// What it did cost.
        charge: Charge,
        /// Whether the day's gate, if it was to be asked, has counted the call.
        counted: bool,
    },
    /// Give the hold back.
    Release {
        /// The id of the call.
        id: HoldId,
        /// Whether the day's count is given back too.
        give_back: bool,
    },
    /// Keep the hold open for longer.
    Extend {
        /// The id of the call.
        id: HoldId,
        /// For how long from now.
        hold: Wait,
    },
    /// Keep the hold open beyond its request, to be ended under another id.
    Keep {
        /// The id of the call.
        id: HoldId,
        /// What it is known as from now on: the id that the provider gave the call.
        as_id: HoldId,
        /// What whoever ends it has to know of it.
        note: String,
        /// For how long from now.
        hold: Wait,
        /// Whether the day's gate, if it was to be asked, has counted the call. Whoever settles it later does not know, and
        /// says that it has.
        counted: bool,
    },
    /// Say what has become of a kept hold.
    Find {
        /// What it was kept as.
        id: HoldId,
    },
    /// Show what is left.
    Snapshot {
        /// The plan.
        plan: String,
    },
}

/// The object's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To `reserve` and `check`.
    Reserve {
        /// The decision.
        verdict: Verdict,
        /// What is left after it.
        snapshot: Snapshot,
    },
    /// To `settle`, `release`, `extend` and `keep`.
    Done {
        /// Whether the hold was known; to `keep`, whether it is known by its new id now.
        known: bool,
    },
    /// To `find`: the kept hold, if this subject has one of that id.
    Found(Option<Found>),
    /// To `snapshot`.
    Snapshot(Snapshot),
}

/// Why a command or a record cannot be used. Its text goes to the log, never to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The command is not of this version, or not a command.
    Command(String),
    /// The plan is not in the object's policy.
    Plan(String),
    /// The stored record cannot be read.
    Record(String),
    /// The reply cannot be read.
    Reply(String),
}

impl core::fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Command(what) => write!(f, "unreadable limiter command: {what}"),
            Self::Plan(plan) => write!(f, "limiter command names plan `{plan}`, which the object's policy lacks"),
            Self::Record(what) => write!(f, "unreadable limiter record: {what}"),
            Self::Reply(what) => write!(f, "unreadable limiter reply: {what}"),
        }
    }
}

impl Command {
    /// Where a call that `reply` has refused is recorded, if anywhere.
    #[must_use]
    pub fn refused_by(&self, reply: &Reply) -> Option<&Booking> {
        match (self, reply) {
            (
                Self::Reserve { booking, .. },
                Reply::Reserve { verdict: Verdict::Wait(_) | Verdict::NeverFits(_), .. },
            ) => booking.as_ref(),
            _ => None,
        }
    }

    /// Carries the command out: the reply, and the account to be written, if any.
    ///
    /// # Errors
    /// If it names a plan that `limits_of` does not know.
    pub fn execute<'p>(
        &self,
        account: &Account,
        now: UnixMillis,
        limits_of: impl Fn(&str) -> Option<Cow<'p, [Limit]>>,
    ) -> Result<(Reply, Option<Account>), ProtocolError> {
        let limits = |plan: &str| limits_of(plan).ok_or_else(|| ProtocolError::Plan(plan.to_owned()));
        let done = |outcome: super::account::Outcome<bool>| (Reply::Done { known: outcome.answer }, outcome.next);
        Ok(match self {
            Self::Reserve { id, plan, estimate, hold, booking } => {
                let limits = limits(plan)?;
                let outcome = account.reserve(now, id, &limits, (*estimate, *hold));
                let snapshot = outcome.next.as_ref().unwrap_or(account).snapshot(now, &limits);
                let next = match (outcome.next, booking) {
                    (Some(next), Some(booking)) => Some(next.recorded(id, booking.clone(), estimate.0)),
                    (next, _) => next,
                };
                (Reply::Reserve { verdict: outcome.answer, snapshot }, next)
            }
            Self::Check { plan, estimate } => {
                let limits = limits(plan)?;
                let verdict = account.check(now, &limits, *estimate);
                (Reply::Reserve { verdict, snapshot: account.snapshot(now, &limits) }, None)
            }
            Self::Settle { id, charge, counted } => done(account.settle(now, id, charge, *counted)),
            Self::Release { id, give_back } => done(account.release(now, id, *give_back)),
            Self::Extend { id, hold } => done(account.extend(now, id, *hold)),
            Self::Keep { id, as_id, note, hold, counted } => {
                let outcome = account.keep(now, id, (as_id, note), *hold);
                let next = outcome.next.map(|next| if *counted { next } else { next.uncounted(as_id) });
                (Reply::Done { known: outcome.answer }, next)
            }
            Self::Find { id } => (Reply::Found(account.find(now, id)), None),
            Self::Snapshot { plan } => (Reply::Snapshot(account.snapshot(now, &limits(plan)?)), None),
        })
    }
}

impl Reply {
    /// The reply as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Integers, strings and lists only: the serialiser has no other way to fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// If it is not one.
    pub fn from_json(text: &str) -> Result<Self, ProtocolError> {
        serde_json::from_str(text).map_err(|fault| ProtocolError::Reply(fault.to_string()))
    }
}
