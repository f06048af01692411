//! The policy: who may call which model, and how much of it.
//!
//! Invariant: a `Policy` is valid as a whole or does not exist. What is written is read in `read`, where every fault is
//! reported at once; nothing falls back to a default because it was wrong.

mod keys;
mod limits;
mod models;
mod passing;
mod plans;
mod prices;
mod read;
mod shipped;
mod site;
mod table;
mod upstream;
mod upstreams;
mod words;

use std::borrow::Cow;
use std::collections::BTreeMap;

pub use keys::{Key, Keys};
pub use passing::{CREDENTIAL_HEADERS, may_pass};
pub use read::{Sources, VARIABLE_BYTES_MAX};
pub use table::Faults;
pub use words::{
    AboveMax, AllowedModels, Bounds, Cors, LedgerRules, Model, OnDisconnect, OnUnavailable, Placement, Plan, Secret,
    Shield, Turnstile, VisitorTokens, Visitors,
};

pub use upstream::{HealthRules, ReportedCost, RetryRules, Upstream, UpstreamKind};

use crate::dialect::prompt::CountRules;
use crate::limit::{Limit, MEMBER_MARK, Tokens};
use crate::time::is_calendar_date;

/// The plan that stands for giving out visitor tokens. No plan of a policy can have the name.
pub const ISSUE: &str = "~issue";

/// Before an upstream's name: the plan that stands for our account there. No plan of a policy can have such a name.
pub const ACCOUNT: &str = "~account~";

/// Everything that is decided before a call comes in.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The plans by name.
    pub plans: BTreeMap<String, Plan>,
    /// Which prices hold: the date of the shipped table (`2026-11-30`), with `+policy` behind it where the policy states
    /// prices of its own, or `policy` alone where it leaves the table out.
    pub price_version: String,
    models: BTreeMap<String, Model>,
    aliases: BTreeMap<String, String>,
    default_model: Option<Model>,
    upstreams: BTreeMap<String, Upstream>,
    /// The callers' keys.
    pub keys: Keys,
    /// The day's ledger, where anything asks for one.
    pub ledger: Option<LedgerRules>,
    /// Callers without a credential, if they may call.
    pub visitors: Option<Visitors>,
    /// The coarse protection in front, if it is used.
    pub shield: Option<Shield>,
    /// How prompts are counted.
    pub counting: CountRules,
    /// The bounds in time.
    pub bounds: Bounds,
    /// The web origins whose pages may call.
    pub cors: Cors,
    /// Where a subject's object is made.
    pub placement: Placement,
}

/// A model as a caller named it.
#[derive(Clone, Debug)]
pub struct NamedModel<'p> {
    /// The model.
    pub model: &'p Model,
    /// The name to send upstream: a snapshot keeps its own.
    pub sent_as: String,
    /// The name that leads to the model again, whatever becomes of aliases.
    pub known_as: String,
}

impl<'p> NamedModel<'p> {
    /// A model that is known as `name`: its own, a snapshot's, or any where it stands for all.
    fn of(model: &'p Model, name: &str) -> Self {
        let sent_as = match (&model.upstream_model, name.strip_prefix(model.name.as_str())) {
            (Some(there), date) => format!("{there}{}", date.unwrap_or_default()),
            (None, _) => name.to_owned(),
        };
        Self { model, sent_as, known_as: name.to_owned() }
    }

    /// The same model as others serve it, in the order in which they are tried.
    pub fn fallbacks(&self) -> impl Iterator<Item = Self> {
        self.model.fallbacks.iter().map(|model| Self::of(model, &self.known_as))
    }
}

impl Policy {
    /// The model that `name` means for a plan: an alias means its model, a name that ends in a date is a snapshot of
    /// the model before it, and one that is not known is the default model, where there is one. `None` if there is no
    /// such model or the plan does not allow it; a caller is not told which.
    #[must_use]
    pub fn model(&self, plan: &Plan, name: &str) -> Option<NamedModel<'_>> {
        let target = self.aliases.get(name).map_or(name, String::as_str);
        match self.listed(target) {
            Some(named) => plan.allows(&named.model.name).then_some(named),
            None => self.default_for(target).filter(|_| plan.models == AllowedModels::All),
        }
    }

    /// The model that a name means that a call was made by, whoever may make further ones.
    #[must_use]
    pub fn known_model(&self, known_as: &str) -> Option<NamedModel<'_>> {
        self.listed(known_as).or_else(|| self.default_for(known_as))
    }

    /// The model of this name, or that it is a snapshot of.
    fn listed(&self, name: &str) -> Option<NamedModel<'_>> {
        let model = self.models.get(name).or_else(|| self.models.get(snapshot_of(name)?))?;
        Some(NamedModel::of(model, name))
    }

    /// What stands for a model that nobody knows.
    fn default_for(&self, name: &str) -> Option<NamedModel<'_>> {
        Some(NamedModel::of(self.default_model.as_ref().filter(|_| is_name(name))?, name))
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

    /// The limits that an object is asked about: a plan's; of a visitor among several who share the object (named
    /// `plan~member`), the shared ones and the member's own; the one on giving out tokens; or those of our account at an
    /// upstream.
    #[must_use]
    pub fn limits_of(&self, plan: &str) -> Option<Cow<'_, [Limit]>> {
        let tokens = self.visitors.as_ref().and_then(|visitors| visitors.tokens.as_ref());
        if let Some(upstream) = plan.strip_prefix(ACCOUNT) {
            return self.upstreams.get(upstream).map(|upstream| Cow::Borrowed(upstream.limits.as_slice()));
        }
        if plan == ISSUE {
            return Some(Cow::Owned(vec![tokens?.issue.clone()]));
        }
        let Some((plan, member)) = plan.split_once(MEMBER_MARK) else {
            return self.plans.get(plan).map(|plan| Cow::Borrowed(plan.limits.as_slice()));
        };
        let own = self.plans.get(plan)?.limits.iter();
        // Also where the member has no name, so that a shared limit of the same name is another balance.
        let own = own.map(|limit| limit.for_member(member));
        Some(tokens?.shared.iter().cloned().chain(own).collect())
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

/// Whether a text may be the name of a model that nobody has named before.
fn is_name(text: &str) -> bool {
    const NAME_MAX: usize = 100;
    (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
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
