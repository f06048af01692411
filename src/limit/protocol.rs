//! What the Worker and a subject's object say to each other, and what the object stores.
//!
//! Invariant: everything is versioned, and tests pin its exact text. A new Worker may call an old object and the
//! other way round while a deploy rolls out, so a change of meaning takes a new version.
//!
//! A command is a URL query, since JSON in and out through the platform's types costs twice the CPU of the hop itself.

use serde::{Deserialize, Serialize};

use super::account::{Account, HoldId, Snapshot, Verdict};
use super::{Charge, Cost, Estimate, Limit, Tokens};
use crate::pricing::NanoUsd;
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
    },
    /// Give the hold back.
    Release {
        /// The id of the call.
        id: HoldId,
    },
    /// Keep the hold open for longer.
    Extend {
        /// The id of the call.
        id: HoldId,
        /// For how long from now.
        hold: Wait,
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
    /// To `settle`, `release` and `extend`.
    Done {
        /// Whether the hold was known.
        known: bool,
    },
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

/// All fields of all commands, as they stand in the query.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    charge: Option<Certainty>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Certainty {
    Exact,
    AtLeast,
}

impl Query {
    fn with_cost(self, cost: &Cost) -> Self {
        Self {
            requests: Some(cost.requests),
            input: Some(cost.input.0),
            output: Some(cost.output.0),
            usd: Some(cost.usd.0),
            ..self
        }
    }

    fn id(&self) -> Result<HoldId, ProtocolError> {
        self.id.clone().map(HoldId).ok_or_else(|| missing("id"))
    }

    fn plan(&self) -> Result<String, ProtocolError> {
        self.plan.clone().ok_or_else(|| missing("plan"))
    }

    fn hold(&self) -> Result<Wait, ProtocolError> {
        self.hold_ms.map(Wait).ok_or_else(|| missing("hold_ms"))
    }

    fn cost(&self) -> Result<Cost, ProtocolError> {
        Ok(Cost {
            requests: self.requests.ok_or_else(|| missing("requests"))?,
            input: Tokens(self.input.ok_or_else(|| missing("input"))?),
            output: Tokens(self.output.ok_or_else(|| missing("output"))?),
            usd: NanoUsd(self.usd.ok_or_else(|| missing("usd"))?),
        })
    }
}

fn missing(field: &str) -> ProtocolError {
    ProtocolError::Command(format!("{field} is missing"))
}

impl Command {
    /// The command as path and query of a URL, from the slash on.
    #[must_use]
    pub fn to_path(&self) -> String {
        let (verb, query) = match self {
            Self::Reserve { id, plan, estimate, hold } => {
                let query = Query { plan: Some(plan.clone()), hold_ms: Some(hold.0), ..named(id) };
                ("reserve", query.with_cost(&estimate.0))
            }
            Self::Check { plan, estimate } => {
                ("check", Query { plan: Some(plan.clone()), ..Query::default() }.with_cost(&estimate.0))
            }
            Self::Settle { id, charge } => {
                let certainty = match charge {
                    Charge::Exact(_) => Certainty::Exact,
                    Charge::AtLeast(_) => Certainty::AtLeast,
                };
                ("settle", Query { charge: Some(certainty), ..named(id) }.with_cost(charge.cost()))
            }
            Self::Release { id } => ("release", named(id)),
            Self::Extend { id, hold } => ("extend", Query { hold_ms: Some(hold.0), ..named(id) }),
            Self::Snapshot { plan } => ("snapshot", Query { plan: Some(plan.clone()), ..Query::default() }),
        };
        // Strings, numbers and unit variants only: the serialiser has no other way to fail.
        let query = serde_urlencoded::to_string(query).unwrap_or_default();
        format!("/{PROTOCOL}/{verb}?{query}")
    }

    /// Reads a command back from a URL, whatever its origin.
    ///
    /// # Errors
    /// If it is not a command of this version.
    pub fn from_url(url: &str) -> Result<Self, ProtocolError> {
        let unreadable = |what: &str| ProtocolError::Command(format!("{what} in `{url}`"));
        let after_origin = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (path, query) = after_origin.split_once('?').ok_or_else(|| unreadable("no query"))?;
        let mut segments = path.split('/').skip(1);
        if segments.next() != Some(PROTOCOL) {
            return Err(unreadable("version"));
        }
        let verb = segments.next().unwrap_or_default();
        let query: Query = serde_urlencoded::from_str(query).map_err(|fault| unreadable(&fault.to_string()))?;
        Ok(match verb {
            "reserve" => Self::Reserve {
                id: query.id()?,
                plan: query.plan()?,
                estimate: Estimate(query.cost()?),
                hold: query.hold()?,
            },
            "check" => Self::Check { plan: query.plan()?, estimate: Estimate(query.cost()?) },
            "settle" => {
                let cost = query.cost()?;
                let charge = match query.charge.ok_or_else(|| missing("charge"))? {
                    Certainty::Exact => Charge::Exact(cost),
                    Certainty::AtLeast => Charge::AtLeast(cost),
                };
                Self::Settle { id: query.id()?, charge }
            }
            "release" => Self::Release { id: query.id()? },
            "extend" => Self::Extend { id: query.id()?, hold: query.hold()? },
            "snapshot" => Self::Snapshot { plan: query.plan()? },
            _ => return Err(unreadable("verb")),
        })
    }

    /// Carries the command out: the reply, and the account to be written, if any.
    ///
    /// # Errors
    /// If it names a plan that `limits_of` does not know.
    pub fn execute<'p>(
        &self,
        account: &Account,
        now: UnixMillis,
        limits_of: impl Fn(&str) -> Option<&'p [Limit]>,
    ) -> Result<(Reply, Option<Account>), ProtocolError> {
        let limits = |plan: &str| limits_of(plan).ok_or_else(|| ProtocolError::Plan(plan.to_owned()));
        let done = |outcome: super::account::Outcome<bool>| (Reply::Done { known: outcome.answer }, outcome.next);
        Ok(match self {
            Self::Reserve { id, plan, estimate, hold } => {
                let limits = limits(plan)?;
                let outcome = account.reserve(now, id, limits, (*estimate, *hold));
                let snapshot = outcome.next.as_ref().unwrap_or(account).snapshot(now, limits);
                (Reply::Reserve { verdict: outcome.answer, snapshot }, outcome.next)
            }
            Self::Check { plan, estimate } => {
                let limits = limits(plan)?;
                let verdict = account.check(now, limits, *estimate);
                (Reply::Reserve { verdict, snapshot: account.snapshot(now, limits) }, None)
            }
            Self::Settle { id, charge } => done(account.settle(now, id, charge)),
            Self::Release { id } => done(account.release(now, id)),
            Self::Extend { id, hold } => done(account.extend(now, id, *hold)),
            Self::Snapshot { plan } => (Reply::Snapshot(account.snapshot(now, limits(plan)?)), None),
        })
    }
}

fn named(id: &HoldId) -> Query {
    Query { id: Some(id.0.clone()), ..Query::default() }
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    v: u32,
    #[serde(flatten)]
    what: T,
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

/// The account as it is stored.
#[must_use]
pub fn record_of(account: &Account) -> String {
    // Integers, strings and lists only: the serialiser has no other way to fail.
    serde_json::to_string(&Versioned { v: RECORD, what: account }).unwrap_or_default()
}

/// The account that a stored record holds. A missing record is an account that never called.
///
/// # Errors
/// If the record cannot be read: the call is then refused, never let through unlimited.
pub fn account_of(record: Option<&str>) -> Result<Account, ProtocolError> {
    let Some(record) = record else { return Ok(Account::default()) };
    let stored: Versioned<Account> =
        serde_json::from_str(record).map_err(|fault| ProtocolError::Record(fault.to_string()))?;
    if stored.v == RECORD {
        Ok(stored.what)
    } else {
        Err(ProtocolError::Record(format!("version {}, want {RECORD}", stored.v)))
    }
}
