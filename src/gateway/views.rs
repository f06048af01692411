//! What can be asked without calling a model.
//!
//! Invariant: shown is enforced. What `GET /v1/usage` says comes from the object that decides.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::caller::caller;
use super::day;
use super::hold::{ask_twice, not_asked};
use super::ports::{Ports, Unavailable};
use super::record::CallRecord;
use crate::auth::Principal;
use crate::ledger::{SITE_KEY, left};
use crate::limit::NanoUsd;
use crate::limit::account::Snapshot;
use crate::limit::balance::Balance;
use crate::limit::protocol::{Command, Reply};
use crate::limit::{Shape, Unit};
use crate::policy::{Faults, Plan, Policy, Visitors};
use crate::rejection::Rejection;
use crate::time::UtcDay;

/// `GET /v1/models` and `/v1/models/{id}`: what this caller may call, or whether it is the one of this name.
pub(super) async fn models<P: Ports>(
    policy: &Policy,
    ports: &P,
    name: Option<&str>,
    record: &mut CallRecord,
) -> Result<Value, Rejection> {
    let (_, plan) = caller(policy, ports, record).await?;
    let shown = |name: &str| json!({"id": name, "object": "model", "created": 0, "owned_by": "tollgate"});
    let Some(name) = name else {
        let models: Vec<Value> = policy.models_of(plan).into_iter().map(shown).collect();
        return Ok(json!({"object": "list", "data": models}));
    };
    // Some names have a slash, which clients send as it is or encoded.
    let name = percent_decode_str(name).decode_utf8_lossy();
    match policy.model(plan, &name) {
        Some(_) => Ok(shown(&name)),
        None => Err(Rejection::ModelNotFound { model: name.into_owned() }),
    }
}

/// `GET /v1/usage`: this caller's limits, what is left of them, when it is back, and the calls that are under way.
pub(super) async fn usage<P: Ports>(
    policy: &Policy,
    ports: &P,
    record: &mut CallRecord,
) -> Result<(Value, Snapshot), Rejection> {
    let (principal, plan) = caller(policy, ports, record).await?;
    let command = Command::Snapshot { plan: principal.object_plan() };
    let snapshot = match ask_twice(ports, &principal.subject, &command, policy.bounds.limiter).await {
        Ok(Reply::Snapshot(snapshot)) => snapshot,
        Ok(other) => return Err(unavailable(ports, &not_asked(&other))),
        Err(fault) => return Err(unavailable(ports, &fault)),
    };
    let day = today(policy, ports, (&principal, plan)).await?;
    let limits: Vec<Value> = snapshot.balances.iter().map(|balance| limit(balance, &snapshot)).collect();
    let body = json!({
        "object": "usage",
        "plan": plan.name,
        "at_ms": snapshot.at.0,
        "open_holds": snapshot.open_holds,
        "limits": limits,
        "day": day,
    });
    Ok((body, snapshot))
}

/// What this caller has used of the day's caps, from the ledger that enforces them; null where there are none.
async fn today<P: Ports>(
    policy: &Policy,
    ports: &P,
    (principal, plan): (&Principal, &Plan),
) -> Result<Value, Rejection> {
    if !plan.daily.is_some() {
        return Ok(Value::Null);
    }
    let (now, key) = (ports.now(), principal.ledger_key());
    let day = UtcDay::of(now);
    let row = ports.row(day, &key, policy.bounds.ledger).await.map_err(|fault| day::unavailable(ports, &fault))?;
    let (calls, counted) = row.map_or((0, 0), |row| (row.calls, row.counted.0));
    let part =
        |cap: Option<u64>, used: u64| cap.map(|cap| json!({"limit": cap, "used": used, "left": left(cap, used).0}));
    Ok(json!({
        "calls": part(plan.daily.calls, calls),
        "nano_usd": part(plan.daily.usd.map(|usd| usd.0), counted),
        "full_in_ms": day.wait_for_end(now).0,
    }))
}

/// What is said of visitors who cannot be told apart.
const NO_SECRET: &str = "refused: the secret VISITOR_SECRET is missing";

/// `GET /healthz`: whether calls can be let through, and if not, which part is broken.
pub(super) async fn health<P: Ports>(policy: &Result<Policy, Faults>, ports: &P) -> (u16, Value) {
    let version = env!("CARGO_PKG_VERSION");
    let policy = match policy {
        Ok(policy) => policy,
        Err(Faults(faults)) => {
            return (503, json!({"status": "policy_invalid", "version": version, "faults": faults}));
        }
    };
    let ledger = match &policy.ledger {
        None => "none",
        Some(_) if ledger_answers(policy, ports).await => "ok",
        Some(_) => "unavailable",
    };
    let visitors = match &policy.visitors {
        None => "none",
        Some(Visitors { secret: None, .. }) => NO_SECRET,
        Some(_) => "ok",
    };
    let limiter = if ports.has_limiter() { "ok" } else { "unavailable: the binding LIMITER is missing" };
    let shield = match policy.shield {
        None => "none",
        Some(_) if ports.has_shield() => "ok",
        Some(_) => "unavailable: the binding SHIELD is missing",
    };
    let status = match (limiter, ledger, shield) {
        ("ok", "ok" | "none", "ok" | "none") if visitors != NO_SECRET => "ok",
        ("ok", "ok" | "none", "ok" | "none") => "visitors_refused",
        ("ok", "ok" | "none", _) => "shield_unavailable",
        ("ok", _, _) => "ledger_unavailable",
        _ => "limiter_unavailable",
    };
    let each = [("limiter", limiter), ("ledger", ledger), ("shield", shield), ("visitors", visitors)];
    let mut body = json!({"status": status, "version": version});
    if let Some(body) = body.as_object_mut() {
        body.extend(each.map(|(part, how)| (part.to_owned(), Value::from(how))));
    }
    // Without visitors those who have keys can still call.
    (if matches!(status, "ok" | "visitors_refused") { 200 } else { 503 }, body)
}

/// Whether the ledger answers; looked up at most every few seconds, since anybody may ask.
async fn ledger_answers<P: Ports>(policy: &Policy, ports: &P) -> bool {
    let now = ports.now();
    if let Some(answers) = ports.memory().ledger_answered(now) {
        return answers;
    }
    let asked = ports.row(UtcDay::of(now), SITE_KEY, policy.bounds.ledger).await;
    let answers = asked.map_err(|fault| day::unavailable(ports, &fault)).is_ok();
    ports.memory().remember_ledger(answers, now);
    answers
}

/// The answer where the limiter gave none; the cause goes to the log.
pub(super) fn unavailable<P: Ports>(ports: &P, fault: &Unavailable) -> Rejection {
    ports.warn(&format!("usage: the limiter is not available: {}", fault.0));
    Rejection::LimiterUnavailable
}

fn limit(balance: &Balance, snapshot: &Snapshot) -> Value {
    let (limit, left) = (&balance.limit, balance.left());
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
        "name": limit.label(),
        "unit": if limit.unit == Unit::Usd { "nano_usd" } else { limit.unit.name() },
        "kind": kind,
        "limit": capacity,
        "limit_usd": money(i64::try_from(capacity).unwrap_or(i64::MAX)),
        "left": left,
        "left_usd": money(left),
        "full_in_ms": balance.wait_until_full(snapshot.at).map(|wait| wait.0),
    })
}
