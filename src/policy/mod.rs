//! The policy: who may call which model, and how much of it.
//!
//! Invariant: a `Policy` is valid as a whole or does not exist. What is written is read in `read`, where every fault is
//! reported at once; nothing falls back to a default because it was wrong.

mod keys;
mod limits;
mod models;
mod passing;
mod plans;
mod read;
mod table;
mod upstreams;

use std::collections::{BTreeMap, BTreeSet};

pub use keys::{Key, Keys};
pub use passing::may_pass;
pub use read::{Sources, VARIABLE_BYTES_MAX};
pub use table::Faults;

use crate::dialect::prompt::{CountRules, ModelCount};
use crate::limit::{Limit, Tokens};
use crate::pricing::Price;
use crate::time::{Wait, is_calendar_date};

/// Everything that is decided before a call comes in.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The plans by name.
    pub plans: BTreeMap<String, Plan>,
    models: BTreeMap<String, Model>,
    aliases: BTreeMap<String, String>,
    upstreams: BTreeMap<String, Upstream>,
    /// The callers' keys.
    pub keys: Keys,
    /// How prompts are counted.
    pub counting: CountRules,
    /// The bounds in time.
    pub bounds: Bounds,
    /// The web origins whose pages may call.
    pub cors: Cors,
    /// Where a subject's object is made.
    pub placement: Placement,
}

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
    /// What becomes of a stream whose client has left.
    pub on_disconnect: OnDisconnect,
    /// What becomes of a call whose limits cannot be checked.
    pub on_unavailable: OnUnavailable,
    /// The limits.
    pub limits: Vec<Limit>,
}

/// Which models a plan allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedModels {
    /// All that the policy has.
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
    /// Its name, as the upstream knows it.
    pub name: String,
    /// What its tokens cost.
    pub price: Price,
    /// The most that it writes for one answer; zero for a model that writes no text.
    pub output_max: Tokens,
    /// How it counts a prompt.
    pub count: ModelCount,
    /// Under what name an output cap is written into a request that has none.
    pub cap_field: String,
    /// The upstream that serves it.
    pub upstream: String,
}

/// A provider.
#[derive(Clone, Debug)]
pub struct Upstream {
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
    /// How long a hold lasts without being extended.
    pub hold: Wait,
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

/// A model as a caller named it.
#[derive(Clone, Debug)]
pub struct NamedModel<'p> {
    /// The model.
    pub model: &'p Model,
    /// The name to send upstream: a snapshot keeps its own.
    pub sent_as: String,
}

impl Policy {
    /// The model that `name` means for a plan: an alias means its model, a name that ends in a date is a snapshot of
    /// the model before it. `None` if there is no such model or the plan does not allow it; a caller is not told which.
    #[must_use]
    pub fn model(&self, plan: &Plan, name: &str) -> Option<NamedModel<'_>> {
        let target = self.aliases.get(name).map_or(name, String::as_str);
        let (model, sent_as) = match self.models.get(target) {
            Some(model) => (model, model.name.clone()),
            None => (self.models.get(snapshot_of(target)?)?, target.to_owned()),
        };
        plan.allows(&model.name).then_some(NamedModel { model, sent_as })
    }

    /// The names that a plan's subjects may call, aliases included.
    #[must_use]
    pub fn models_of(&self, plan: &Plan) -> Vec<&str> {
        let own = self.models.keys().filter(|name| plan.allows(name));
        let aliases = self.aliases.iter().filter(|(_, target)| plan.allows(target)).map(|(name, _)| name);
        own.chain(aliases).map(String::as_str).collect()
    }

    /// The upstream of a model.
    #[must_use]
    pub fn upstream(&self, model: &Model) -> Option<&Upstream> {
        self.upstreams.get(&model.upstream)
    }

    /// The limits of a plan.
    #[must_use]
    pub fn limits_of(&self, plan: &str) -> Option<&[Limit]> {
        self.plans.get(plan).map(|plan| plan.limits.as_slice())
    }
}

impl Plan {
    fn allows(&self, model: &str) -> bool {
        match &self.models {
            AllowedModels::All => true,
            AllowedModels::Only(models) => models.contains(model),
        }
    }

    /// The largest output cap for a model under this plan.
    #[must_use]
    pub fn output_max_for(&self, model: &Model) -> Tokens {
        self.output_max.map_or(model.output_max, |max| max.min(model.output_max))
    }
}

/// The model that a dated name is a snapshot of.
fn snapshot_of(name: &str) -> Option<&str> {
    ["-YYYY-MM-DD".len(), "-YYYYMMDD".len()].into_iter().find_map(|length| {
        let cut = name.len().checked_sub(length)?;
        let (model, date) = name.split_at_checked(cut)?;
        date.strip_prefix('-').filter(|date| is_calendar_date(date)).map(|_| model)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dated_name_is_a_snapshot_of_the_model_before_it() {
        assert_eq!(snapshot_of("gpt-4o-2024-08-06"), Some("gpt-4o"));
        assert_eq!(snapshot_of("alpha-small-20310115"), Some("alpha-small"));
        for name in ["gpt-4o", "gpt-4o-1106", "gpt-4o-2024-13-06", "2024-08-06", "é-2024-08-0", "x20310115"] {
            assert_eq!(snapshot_of(name), None, "{name}");
        }
    }

    #[test]
    fn a_secret_shows_itself_nowhere() {
        assert!(!format!("{:?}", Secret("sk-1".to_owned())).contains("sk-1"));
    }
}
