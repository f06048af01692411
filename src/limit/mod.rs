//! The words of limiting: units, amounts, limits, and what a call costs in every unit.
//!
//! Invariant: integers only. Every amount is a whole number of its limit's unit, below 2^53, because it may cross to
//! JavaScript as a double; every operation saturates or widens, none wraps.

pub mod account;
pub mod balance;
pub mod bucket;
pub mod outbox;
pub mod protocol;
mod usd;
pub mod window;

use serde::{Deserialize, Serialize};

pub use usd::NanoUsd;

use crate::time::Calendar;

/// The largest amount that a limit may have: the largest integer that a double carries exactly.
pub const AMOUNT_MAX: u64 = (1 << 53) - 1;

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Calls.
    Requests,
    /// Tokens that the model reads.
    InputTokens,
    /// Tokens that the model writes, over all candidates, reasoning included.
    OutputTokens,
    /// Input and output tokens together.
    Tokens,
    /// Money, in billionths of a dollar.
    Usd,
    /// Calls that are open at the same time.
    Concurrency,
}

impl Unit {
    /// The name as policy, messages and headers spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Tokens => "tokens",
            Self::Usd => "usd",
            Self::Concurrency => "concurrency",
        }
    }
}

/// A number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

/// How much of a limit: a whole number of the limit's unit (for `usd`, billionths of a dollar).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amount(pub u64);

/// The span over which a bucket gains its refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// 1 s.
    Second,
    /// 60 s.
    Minute,
    /// 3,600 s.
    Hour,
    /// 86,400 s.
    Day,
}

impl Period {
    /// How many of these make a day. Rates are compared and computed per day, so that one carry has one meaning
    /// whatever the policy writes.
    #[must_use]
    pub const fn per_day(self) -> u64 {
        match self {
            Self::Second => 86_400,
            Self::Minute => 1_440,
            Self::Hour => 24,
            Self::Day => 1,
        }
    }
}

/// How a limit gives back what was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Holds up to `burst` and gains `refill` every `per`, continuously.
    Bucket {
        /// The most that it holds, and what it holds at first.
        burst: Amount,
        /// What it gains; at least 1.
        refill: Amount,
        /// In what time it gains that.
        per: Period,
    },
    /// Allows `amount` in each calendar window.
    Window {
        /// The amount of one window.
        amount: Amount,
        /// Which windows.
        window: Calendar,
    },
    /// Allows `amount` open calls at a time.
    Slots {
        /// The number of slots.
        amount: Amount,
    },
}

impl Shape {
    /// The most that one call may ask for: burst, the window's amount, or the number of slots.
    #[must_use]
    pub const fn capacity(self) -> Amount {
        match self {
            Self::Bucket { burst, .. } => burst,
            Self::Window { amount, .. } | Self::Slots { amount } => amount,
        }
    }
}

/// One rule: a name, a unit and a shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Its name in the policy; what a refusal and the headers call it. A subject's balances are known by it.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// How it gives back.
    pub shape: Shape,
}

/// Stands between a limit's name and the member whose it is, where several share one object. No name in a policy has it.
pub const MEMBER_MARK: char = '~';

impl Limit {
    /// The same limit for one member of those who share an object: a balance of its own.
    #[must_use]
    pub fn for_member(&self, member: &str) -> Self {
        Self { name: format!("{}{MEMBER_MARK}{member}", self.name), ..self.clone() }
    }

    /// The name as the policy has it: what callers are told.
    #[must_use]
    pub fn label(&self) -> &str {
        self.name.split(MEMBER_MARK).next().unwrap_or_default()
    }
}

/// What one call costs, or may cost, in every unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Calls: 1, or 0 for a call that was taken back.
    pub requests: u64,
    /// Tokens read.
    pub input: Tokens,
    /// Tokens written.
    pub output: Tokens,
    /// Money.
    pub usd: NanoUsd,
}

impl Cost {
    /// The part of the cost that a limit over `unit` counts.
    #[must_use]
    pub const fn of(&self, unit: Unit) -> Amount {
        Amount(match unit {
            Unit::Requests => self.requests,
            Unit::InputTokens => self.input.0,
            Unit::OutputTokens => self.output.0,
            Unit::Tokens => self.input.0.saturating_add(self.output.0),
            Unit::Usd => self.usd.0,
            // A settled call has no slot any more; an open one is counted as a hold, never as an amount.
            Unit::Concurrency => 0,
        })
    }
}

/// An upper bound, made before the call, of what it may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Estimate(pub Cost);

/// What a call did cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The provider said so.
    Exact(Cost),
    /// The provider said nothing, or the answer broke off: what was seen of it. It cost at least that.
    AtLeast(Cost),
}

impl Charge {
    /// What is charged.
    #[must_use]
    pub const fn cost(&self) -> &Cost {
        match self {
            Self::Exact(cost) | Self::AtLeast(cost) => cost,
        }
    }
}
