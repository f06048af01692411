//! What an upstream is.

use super::Secret;
use crate::dialect::rules::{Dialect, Family};
use crate::dialect::workers_ai::Operation;
use crate::limit::Limit;
use crate::time::Wait;

/// A provider.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Its name in the policy.
    pub name: String,
    /// How it is called.
    pub kind: UpstreamKind,
    /// The address that the operation is added to; no slash at its end.
    pub base_url: String,
    /// Our credential there, if it wants one.
    pub key: Option<Secret>,
    /// Further request headers that pass.
    pub request_headers: Vec<String>,
    /// Further reply headers that pass.
    pub response_headers: Vec<String>,
    /// Whether it knows `stream_options.include_usage`.
    pub stream_usage: bool,
    /// What becomes of a cost that it reports itself.
    pub reported_cost: ReportedCost,
    /// Its own bound until the first byte, if it has one.
    pub first_byte: Option<Wait>,
    /// How a call is tried again.
    pub retry: RetryRules,
    /// When it is left alone.
    pub health: HealthRules,
    /// The limits of our account there, over all callers together.
    pub limits: Vec<Limit>,
}

/// How an upstream is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamKind {
    /// As OpenAI's API.
    OpenAi,
    /// As Anthropic's API.
    Anthropic,
    /// As Azure's: a path for each deployment, a version in the query.
    Azure {
        /// The version.
        api_version: String,
    },
    /// Through a binding of the platform's.
    WorkersAi {
        /// The binding's name.
        binding: String,
    },
}

/// How a call that failed before its first byte is tried again with the same upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryRules {
    /// How often it is tried in all; at least 1.
    pub attempts: u64,
    /// After which statuses, besides a connection that failed.
    pub statuses: Vec<u16>,
    /// The first pause, doubled each time and shortened by up to a half at random.
    pub backoff: Wait,
    /// The longest that an upstream's own `Retry-After` is waited for.
    pub wait_max: Wait,
}

/// When an upstream is left alone, where another one serves the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthRules {
    /// After how many failures on end.
    pub failures: u64,
    /// For how long; then one call tries it.
    pub open: Wait,
}

/// What becomes of a cost that a provider reports itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedCost {
    /// Nothing.
    Ignore,
    /// The larger of it and ours is charged.
    Check,
    /// It is charged.
    Use,
}

impl Upstream {
    /// Whose API it speaks to us.
    #[must_use]
    pub fn family(&self) -> Family {
        if self.kind == UpstreamKind::Anthropic { Family::Anthropic } else { Family::OpenAi }
    }

    /// Whether it is called in this dialect.
    #[must_use]
    pub fn serves(&self, dialect: &Dialect) -> bool {
        let has_operation = !matches!(self.kind, UpstreamKind::WorkersAi { .. }) || Operation::of(dialect).is_some();
        self.family() == dialect.family && has_operation
    }
}
