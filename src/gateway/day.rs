//! Step 5 of the request path: counting the day.
//!
//! Invariant: it is asked after the caller's own limits have admitted the call and before anything goes upstream; what
//! cannot be counted is refused, unless the policy says in writing how many may pass.

use super::memory::Unchecked;
use super::ports::{Ports, Unavailable};
use crate::auth::Principal;
use crate::ledger::{DayCaps, DayRefusal, Gate, GateVerdict};
use crate::limit::Estimate;
use crate::limit::outbox::Entitled;
use crate::policy::{LedgerRules, OnUnavailable, Plan, Policy};
use crate::rejection::Rejection;
use crate::time::{UnixMillis, UtcDay};

/// Where a call is recorded, and whether the gate counts it; nothing where the policy has no ledger.
pub(super) fn entitled(policy: &Policy, (principal, plan): (&Principal, &Plan), now: UnixMillis) -> Option<Entitled> {
    let rules = policy.ledger.as_ref()?;
    Some(Entitled {
        day: UtcDay::of(now),
        key: principal.ledger_key(),
        plan: plan.name.clone(),
        gated: plan.daily.is_some() || site_of(rules, plan).is_some(),
        for_site: counts_for_site(rules, plan),
        post_after: rules.post_after,
    })
}

/// The question to the gate, if the call has to be counted.
pub(super) fn gate(policy: &Policy, plan: &Plan, entitled: Option<&Entitled>, estimate: Estimate) -> Option<Gate> {
    let (rules, entitled) = policy.ledger.as_ref().zip(entitled.filter(|entitled| entitled.gated))?;
    Some(Gate {
        day: entitled.day,
        key: entitled.key.clone(),
        plan: entitled.plan.clone(),
        estimate: estimate.0.usd,
        own: plan.daily,
        site: site_of(rules, plan),
        counts_for_site: entitled.for_site,
    })
}

fn site_of(rules: &LedgerRules, plan: &Plan) -> DayCaps {
    if counts_for_site(rules, plan) { rules.site } else { DayCaps::default() }
}

fn counts_for_site(rules: &LedgerRules, plan: &Plan) -> bool {
    !rules.exempt.contains(&plan.name)
}

/// The refusal that this isolate remembers.
pub(super) fn remembered<P: Ports>(ports: &P, gate: &Gate) -> Option<DayRefusal> {
    ports.memory().day_refusal(gate, ports.now())
}

/// Counts the call. Whether it was counted: one that the policy lets pass all the same was not, as far as is known.
pub(super) async fn count<P: Ports>(policy: &Policy, ports: &P, gate: &Gate) -> Result<bool, Rejection> {
    let now = ports.now();
    let answered = ports.count(gate, policy.bounds.ledger).await;
    let verdict = answered.and_then(|rows| {
        gate.verdict(&rows, now).ok_or_else(|| Unavailable("the statement returned no row".to_owned()))
    });
    match verdict {
        Ok(GateVerdict::Counted { prune }) => {
            if prune && let Some(rules) = &policy.ledger {
                ports.prune(gate.day, rules);
            }
            Ok(true)
        }
        Ok(GateVerdict::Refused(refusal)) => {
            ports.memory().remember_day(gate, refusal, now);
            Err(Rejection::DayLimited(refusal))
        }
        Err(Unavailable(why)) => {
            ports.warn(&format!("the ledger is not available: {why}"));
            match policy.ledger.as_ref().map(|rules| rules.on_unavailable) {
                Some(OnUnavailable::Open { per_minute })
                    if ports.memory().may_pass_unchecked(Unchecked::Ledger, per_minute, now) =>
                {
                    Ok(false)
                }
                _ => Err(Rejection::LimiterUnavailable),
            }
        }
    }
}
