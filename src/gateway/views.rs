//! What can be asked without calling a model.
//!
//! Invariant: shown is enforced. What `GET /v1/usage` says comes from the object that decides.

use serde_json::{Value, json};

use super::complete::caller;
use super::hold::ask_twice;
use super::ports::{Ports, Unavailable};
use super::record::CallRecord;
use crate::limit::account::Snapshot;
use crate::limit::balance::Balance;
use crate::limit::protocol::{Command, Reply};
use crate::limit::{Shape, Unit};
use crate::policy::{Faults, Policy};
use crate::pricing::NanoUsd;
use crate::rejection::Rejection;

/// `GET /v1/models`: what this caller may call.
pub(super) fn models<P: Ports>(policy: &Policy, ports: &P, record: &mut CallRecord) -> Result<Value, Rejection> {
    let (_, plan) = caller(policy, ports, record)?;
    let models: Vec<Value> = policy
        .models_of(plan)
        .into_iter()
        .map(|name| json!({"id": name, "object": "model", "created": 0, "owned_by": "tollgate"}))
        .collect();
    Ok(json!({"object": "list", "data": models}))
}

/// `GET /v1/usage`: this caller's limits, what is left of them, when it is back, and the calls that are under way.
pub(super) async fn usage<P: Ports>(
    policy: &Policy,
    ports: &P,
    record: &mut CallRecord,
) -> Result<(Value, Snapshot), Rejection> {
    let (principal, plan) = caller(policy, ports, record)?;
    let command = Command::Snapshot { plan: plan.name.clone() };
    let snapshot = match ask_twice(ports, &principal.subject, &command, policy.bounds.limiter).await {
        Ok(Reply::Snapshot(snapshot)) => snapshot,
        Ok(other) => return Err(unavailable(ports, &format!("an answer to another question: {other:?}"))),
        Err(Unavailable(why)) => return Err(unavailable(ports, &why)),
    };
    let limits: Vec<Value> = snapshot.balances.iter().map(|balance| limit(balance, &snapshot)).collect();
    let body = json!({
        "object": "usage",
        "plan": plan.name,
        "at_ms": snapshot.at.0,
        "open_holds": snapshot.open_holds,
        "limits": limits,
    });
    Ok((body, snapshot))
}

/// `GET /healthz`: whether calls can be let through, and if not, why.
#[must_use]
pub(super) fn health(policy: &Result<Policy, Faults>) -> (u16, Value) {
    let version = env!("CARGO_PKG_VERSION");
    match policy {
        Ok(_) => (200, json!({"status": "ok", "version": version})),
        Err(Faults(faults)) => (503, json!({"status": "policy_invalid", "version": version, "faults": faults})),
    }
}

/// The answer where the limiter gave none; the cause goes to the log.
pub(super) fn unavailable<P: Ports>(ports: &P, why: &str) -> Rejection {
    ports.warn(&format!("usage: the limiter is not available: {why}"));
    Rejection::LimiterUnavailable
}

fn limit(balance: &Balance, snapshot: &Snapshot) -> Value {
    let (limit, left) = (&balance.limit, balance.left(snapshot.open_holds));
    let capacity = limit.shape.capacity().0;
    let kind = match limit.shape {
        Shape::Bucket { .. } => "bucket",
        Shape::Window { .. } => "window",
        Shape::Slots { .. } => "slots",
    };
    let money = |nano: i64| {
        let sign = if nano < 0 { "-" } else { "" };
        (limit.unit == Unit::Usd).then(|| format!("{sign}{}", NanoUsd(nano.unsigned_abs())))
    };
    json!({
        "name": limit.name,
        "unit": if limit.unit == Unit::Usd { "nano_usd" } else { limit.unit.name() },
        "kind": kind,
        "limit": capacity,
        "limit_usd": money(i64::try_from(capacity).unwrap_or(i64::MAX)),
        "left": left,
        "left_usd": money(left),
        "full_in_ms": balance.wait_until_full(snapshot.at).map(|wait| wait.0),
    })
}
