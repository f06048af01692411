//! Step 5 of the request path: counting the day.
//!
//! Invariant: it is asked after the caller's own limits have admitted the call and before anything goes upstream; what
//! cannot be counted is refused, unless the policy says in writing how many may pass.

use super::hold::Hold;
use super::memory::Unchecked;
use super::ports::{Ports, Unavailable};
use crate::auth::Principal;
use crate::ledger::{DayCaps, Gate, GateVerdict, SITE_KEY};
use crate::limit::Estimate;
use crate::limit::outbox::Booking;
use crate::policy::{LedgerRules, OnUnavailable, Plan, Policy};
use crate::rejection::Rejection;
use crate::time::{UnixMillis, UtcDay};

/// Where a call is recorded, and whether the gate counts it; nothing where the policy has no ledger.
pub(super) fn booking(policy: &Policy, (principal, plan): (&Principal, &Plan), now: UnixMillis) -> Option<Booking> {
    let rules = policy.ledger.as_ref()?;
    Some(Booking {
        day: UtcDay::of(now),
        key: principal.ledger_key(),
        plan: plan.name.clone(),
        gated: plan.daily.is_some() || site_of(rules, plan).is_some(),
        for_site: counts_for_site(rules, plan),
        post_after: rules.post_after,
    })
}

/// The question to the gate, if the call has to be counted.
pub(super) fn gate(policy: &Policy, plan: &Plan, booking: Option<&Booking>, estimate: Estimate) -> Option<Gate> {
    let (rules, booking) = policy.ledger.as_ref().zip(booking.filter(|booking| booking.gated))?;
    Some(Gate {
        day: booking.day,
        key: booking.key.clone(),
        plan: booking.plan.clone(),
        estimate: estimate.0.usd,
        own: plan.daily,
        site: site_of(rules, plan),
        counts_for_site: booking.for_site,
    })
}

fn site_of(rules: &LedgerRules, plan: &Plan) -> DayCaps {
    if counts_for_site(rules, plan) { rules.site } else { DayCaps::default() }
}

fn counts_for_site(rules: &LedgerRules, plan: &Plan) -> bool {
    !rules.exempt.contains(&plan.name)
}

/// What can be said without asking: that the call never fits a day, or what the gate has said a moment ago.
pub(super) fn refused_before<P: Ports>(ports: &P, gate: &Gate) -> Option<Rejection> {
    if let Some(denial) = gate.never_fits() {
        return Some(Rejection::NeverFits(denial));
    }
    ports.memory().day_refusal(gate, ports.now()).map(Rejection::DayLimited)
}

/// What the gate would say now, without counting.
pub(super) async fn look<P: Ports>(policy: &Policy, ports: &P, gate: &Gate) -> Result<Option<Rejection>, Rejection> {
    if let Some(rejection) = refused_before(ports, gate) {
        return Ok(Some(rejection));
    }
    let within = policy.bounds.ledger;
    let own = ports.row(gate.day, &gate.key, within).await.map_err(|fault| unavailable(ports, &fault))?;
    let site = ports.row(gate.day, SITE_KEY, within).await.map_err(|fault| unavailable(ports, &fault))?;
    Ok(gate.refusal(own.as_ref(), site.as_ref(), ports.now()).map(Rejection::DayLimited))
}

/// The answer where the ledger gave none; the cause goes to the log.
pub(super) fn unavailable<P: Ports>(ports: &P, fault: &Unavailable) -> Rejection {
    ports.warn(&format!("the ledger is not available: {}", fault.0));
    Rejection::LimiterUnavailable
}

/// Counts the call of `hold`, which notes whether it was: one that the policy lets pass all the same was not, as far as is
/// known.
pub(super) async fn count<P: Ports>(policy: &Policy, ports: &P, gate: &Gate, hold: &mut Hold) -> Result<(), Rejection> {
    let now = ports.now();
    let answered = ports.count(gate, policy.bounds.ledger).await;
    hold.record.ledger_ms = ports.now().since(now).0;
    let verdict = answered.and_then(|rows| {
        gate.verdict(&rows, now).ok_or_else(|| Unavailable("the statement returned no row".to_owned()))
    });
    match verdict {
        Ok(GateVerdict::Counted { prune }) => {
            if prune && let Some(rules) = &policy.ledger {
                ports.prune(gate.day, rules);
            }
            Ok(())
        }
        Ok(GateVerdict::Refused(refusal)) => {
            ports.memory().remember_day(gate, refusal, now);
            Err(Rejection::DayLimited(refusal))
        }
        Err(fault) => {
            let rejection = unavailable(ports, &fault);
            match policy.ledger.as_ref().map(|rules| rules.on_unavailable) {
                Some(OnUnavailable::Open { per_minute })
                    if ports.memory().may_pass_unchecked(Unchecked::Ledger, per_minute, now) =>
                {
                    hold.counted = false;
                    hold.record.unchecked = true;
                    Ok(())
                }
                _ => Err(rejection),
            }
        }
    }
}
