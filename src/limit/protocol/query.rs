//! Commands as URLs.

use serde::{Deserialize, Serialize};

use super::{Command, PROTOCOL, ProtocolError};
use crate::limit::NanoUsd;
use crate::limit::account::HoldId;
use crate::limit::outbox::Booking;
use crate::limit::{Charge, Cost, Estimate, Tokens};
use crate::time::{UtcDay, Wait};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    give_back: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger_plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    for_site: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    post_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
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

    fn with_booking(self, booking: Option<&Booking>) -> Self {
        let Some(booking) = booking else { return self };
        Self {
            day: Some(booking.day.0),
            key: Some(booking.key.clone()),
            ledger_plan: Some(booking.plan.clone()),
            gated: Some(booking.gated),
            for_site: Some(booking.for_site),
            post_ms: Some(booking.post_after.0),
            ..self
        }
    }

    /// Where the call is recorded: all of it is there, or nothing is.
    fn booking(&self) -> Result<Option<Booking>, ProtocolError> {
        let Some(day) = self.day else { return Ok(None) };
        Ok(Some(Booking {
            day: UtcDay(day),
            key: self.key.clone().ok_or_else(|| missing("key"))?,
            plan: self.ledger_plan.clone().ok_or_else(|| missing("ledger_plan"))?,
            gated: self.gated.ok_or_else(|| missing("gated"))?,
            for_site: self.for_site.ok_or_else(|| missing("for_site"))?,
            post_after: self.post_ms.map(Wait).ok_or_else(|| missing("post_ms"))?,
        }))
    }

    fn id(&self) -> Result<HoldId, ProtocolError> {
        self.id.clone().map(HoldId).ok_or_else(|| missing("id"))
    }

    fn as_id(&self) -> Result<HoldId, ProtocolError> {
        self.as_id.clone().map(HoldId).ok_or_else(|| missing("as_id"))
    }

    fn note(&self) -> Result<String, ProtocolError> {
        self.note.clone().ok_or_else(|| missing("note"))
    }

    /// Whether the gate has counted the call; said only where it has not.
    fn counted(&self) -> bool {
        self.counted.unwrap_or(true)
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

fn named(id: &HoldId) -> Query {
    Query { id: Some(id.0.clone()), ..Query::default() }
}

impl Command {
    /// The command as path and query of a URL, from the slash on.
    #[must_use]
    pub fn to_path(&self) -> String {
        let (verb, query) = match self {
            Self::Reserve { id, plan, estimate, hold, booking } => {
                let query = Query { plan: Some(plan.clone()), hold_ms: Some(hold.0), ..named(id) };
                ("reserve", query.with_cost(&estimate.0).with_booking(booking.as_ref()))
            }
            Self::Check { plan, estimate } => {
                ("check", Query { plan: Some(plan.clone()), ..Query::default() }.with_cost(&estimate.0))
            }
            Self::Settle { id, charge, counted } => {
                let certainty = match charge {
                    Charge::Exact(_) => Certainty::Exact,
                    Charge::AtLeast(_) => Certainty::AtLeast,
                };
                (
                    "settle",
                    Query { charge: Some(certainty), counted: (!counted).then_some(false), ..named(id) }
                        .with_cost(charge.cost()),
                )
            }
            Self::Release { id, give_back } => ("release", Query { give_back: give_back.then_some(true), ..named(id) }),
            Self::Extend { id, hold } => ("extend", Query { hold_ms: Some(hold.0), ..named(id) }),
            Self::Keep { id, as_id, note, hold, counted } => {
                let (as_id, note) = (Some(as_id.0.clone()), Some(note.clone()));
                let counted = (!counted).then_some(false);
                ("keep", Query { hold_ms: Some(hold.0), as_id, note, counted, ..named(id) })
            }
            Self::Find { id } => ("find", named(id)),
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
                booking: query.booking()?,
            },
            "check" => Self::Check { plan: query.plan()?, estimate: Estimate(query.cost()?) },
            "settle" => {
                let cost = query.cost()?;
                let charge = match query.charge.ok_or_else(|| missing("charge"))? {
                    Certainty::Exact => Charge::Exact(cost),
                    Certainty::AtLeast => Charge::AtLeast(cost),
                };
                Self::Settle { id: query.id()?, charge, counted: query.counted() }
            }
            "release" => Self::Release { id: query.id()?, give_back: query.give_back.unwrap_or(false) },
            "extend" => Self::Extend { id: query.id()?, hold: query.hold()? },
            "keep" => Self::Keep {
                id: query.id()?,
                as_id: query.as_id()?,
                note: query.note()?,
                hold: query.hold()?,
                counted: query.counted(),
            },
            "find" => Self::Find { id: query.id()? },
            "snapshot" => Self::Snapshot { plan: query.plan()? },
            _ => return Err(unreadable("verb")),
        })
    }
}
