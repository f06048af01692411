//! The words of a policy: what each table becomes.

use std::collections::BTreeSet;

use crate::dialect::prompt::ModelCount;
use crate::dialect::request::Allowances;
use crate::ledger::DayCaps;
use crate::limit::{Limit, Tokens};
use crate::pricing::Price;
use crate::time::Wait;
use crate::visitor::{Ipv6Prefix, VisitorSecret};

/// A named set of limits and allowances.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What its subjects may call.
    pub models: AllowedModels,
    /// The output cap that is written into a request that gives none.
    pub output_default: Tokens,
    /// The largest output cap, if it is lower than the model's own.
    pub output_max: Option<Tokens>,
    /// What becomes of a cap above the largest.
    pub output_above_max: AboveMax,
    /// The most answers that one request may ask for.
    pub candidates_max: u64,
    /// The largest request body in bytes.
    pub body_max: usize,
    /// What its subjects may ask for beyond what a request shows.
    pub allowances: Allowances,
    /// What becomes of a stream whose client has left.
    pub on_disconnect: OnDisconnect,
    /// What becomes of a call whose limits cannot be checked.
    pub on_unavailable: OnUnavailable,
    /// What one subject may on one UTC day, counted in the ledger.
    pub daily: DayCaps,
    /// The limits.
    pub limits: Vec<Limit>,
}

/// The day's ledger.
#[derive(Clone, Debug)]
pub struct LedgerRules {
    /// What the whole site may on one UTC day.
    pub site: DayCaps,
    /// Plans that the site's ceiling does not bind.
    pub exempt: BTreeSet<String>,
    /// For how many days visitors' rows are kept.
    pub keep_days: u64,
    /// For how many days users' rows are kept.
    pub keep_user_days: u64,
    /// How long changes are collected before they are sent.
    pub post_after: Wait,
    /// What becomes of a call that cannot be counted.
    pub on_unavailable: OnUnavailable,
}

/// Callers without a credential.
#[derive(Clone, Debug)]
pub struct Visitors {
    /// Their plan.
    pub plan: String,
    /// How much of an IPv6 address is one visitor.
    pub ipv6: Ipv6Prefix,
    /// The secret that they are hashed under; without it there are no visitors.
    pub secret: Option<VisitorSecret>,
    /// Tokens that tell the visitors of one prefix apart, if they are given out.
    pub tokens: Option<VisitorTokens>,
}

/// Visitor tokens.
#[derive(Clone, Debug)]
pub struct VisitorTokens {
    /// The limits over all visitors of a prefix.
    pub shared: Vec<Limit>,
    /// The limit on giving them out, for each prefix.
    pub issue: Limit,
    /// How long one is good.
    pub lifetime: Wait,
    /// The check before one is given out, if there is one.
    pub turnstile: Option<Turnstile>,
}

/// The check that a browser is in front of a person.
#[derive(Clone, Debug)]
pub struct Turnstile {
    /// Where answers are checked.
    pub url: String,
    /// The secret of the widget.
    pub secret: Secret,
}

/// The platform's own rate limiter in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shield {
    /// Whether only visitors pass through it.
    pub visitors_only: bool,
    /// The binding's period: when to come back.
    pub period: Wait,
}

/// Which models a plan allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedModels {
    /// All that have a price: the shipped ones, those of the policy and, where there is one, the default model.
    All,
    /// These.
    Only(BTreeSet<String>),
}

/// What becomes of an output cap above the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AboveMax {
    /// It is lowered, in what is held and in what is sent.
    Lower,
    /// The call is refused.
    Refuse,
}

/// What becomes of a stream whose client has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDisconnect {
    /// The upstream is cancelled at once; charged is what was read and what was seen.
    Cancel,
    /// The stream is read to its end, within the drain bound; charged is its true usage.
    Drain,
}

/// What becomes of a call whose limits cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnavailable {
    /// It is refused.
    Closed,
    /// It passes, without a hold, at most so many times per isolate and minute.
    Open {
        /// The most calls per isolate and minute.
        per_minute: u64,
    },
}

/// A model that can be called.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name, as callers know it.
    pub name: String,
    /// What a call of it costs.
    pub price: Price,
    /// The most that it writes for one answer; zero for a model that writes no text.
    pub output_max: Tokens,
    /// How it counts a prompt.
    pub count: ModelCount,
    /// Under what name an output cap is written into a request that has none.
    pub cap_field: String,
    /// The upstream that serves it.
    pub upstream: String,
    /// Who else serves it, in the order in which they are tried: the same model with another upstream, name or price.
    pub fallbacks: Vec<Model>,
    /// Its name there, if it is another.
    pub upstream_model: Option<String>,
}

/// A secret; it shows itself nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The bounds in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// From sending a call upstream to the first byte of its answer's body.
    pub first_byte: Wait,
    /// Between two pieces of an answer.
    pub idle: Wait,
    /// For reading on after the client has left.
    pub drain: Wait,
    /// For one question to a subject's object.
    pub limiter: Wait,
    /// For the statement of the day's ledger.
    pub ledger: Wait,
    /// How long a hold lasts without being extended.
    pub hold: Wait,
    /// How long the hold of a call in the background lasts, if nobody fetches its answer.
    pub background: Wait,
}

/// The web origins whose pages may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cors {
    /// Exact origins, or `*`.
    pub origins: Vec<String>,
}

/// Where a subject's object is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// A fixed location hint; without it the object is made near its first caller.
    pub location_hint: Option<String>,
    /// A jurisdiction that pins all objects.
    pub jurisdiction: Option<String>,
}
