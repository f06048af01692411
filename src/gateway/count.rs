//! `POST /v1/tokens/count`: what a call would be charged, before it is made.
//!
//! Invariant: it is read and priced by the very functions that a call goes through, asks what a call would ask, and
//! spends nothing.

use serde_json::{Value, json};

use super::caller::caller;
use super::complete::read_body;
use super::day;
use super::hold::ask_verdict;
use super::offers::Offers;
use super::ports::Ports;
use super::price::Count;
use super::record::CallRecord;
use super::views::unavailable;
use crate::dialect::chat::CHAT;
use crate::dialect::request::Request;
use crate::limit::account::{Snapshot, Verdict};
use crate::limit::protocol::Command;
use crate::policy::Policy;
use crate::rejection::Rejection;

/// Answers what the call in the body would come to now.
pub(super) async fn count<P: Ports>(
    policy: &Policy,
    ports: &P,
    record: &mut CallRecord,
) -> Result<(Value, Snapshot), Rejection> {
    let (principal, plan) = caller(policy, ports, record).await?;
    let body = read_body(ports, plan).await?;
    let request = Request::read(&CHAT, &body, &plan.allowances).map_err(Rejection::BadRequest)?;
    let counted = Offers::of(policy, plan, &request, Count::Always)?.first;
    // The call itself is counted less carefully where that could not change what it holds by much.
    let offers = Offers::of(policy, plan, &request, Count::WhereItMatters)?;
    let (priced, estimate) = (&offers.first, offers.estimate());
    record.model = Some(priced.named.sent_as.clone());
    let command = Command::Check { plan: principal.object_plan(), estimate };
    let asked = ask_verdict(ports, &principal.subject, &command, policy.bounds.limiter).await;
    let (verdict, snapshot) = asked.map_err(|fault| unavailable(ports, &fault))?;
    let held = estimate.0;
    let rejection = match verdict {
        Verdict::Wait(denial) => Some(Rejection::Limited(denial)),
        Verdict::NeverFits(denial) => Some(Rejection::NeverFits(denial)),
        Verdict::Reserved { .. } | Verdict::Ended => {
            let booking = day::booking(policy, (&principal, plan), record.at);
            match day::gate(policy, plan, booking.as_ref(), estimate) {
                Some(gate) => day::look(policy, ports, &gate).await?,
                None => None,
            }
        }
    };
    let refusal = rejection.as_ref().and_then(Rejection::limited_by);
    let refusal = refusal.map(|(limit, wait)| json!({"limited_by": limit, "retry_after_ms": wait.map(|wait| wait.0)}));
    let body = json!({
        "object": "tokens.count",
        "model": priced.named.sent_as,
        "input_tokens": counted.prompt.upper.0,
        "input_tokens_at_least": counted.prompt.lower.0,
        "output_tokens_max": held.output.0,
        "hold": {
            "requests": held.requests,
            "input_tokens": held.input.0,
            "output_tokens": held.output.0,
            "nano_usd": held.usd.0,
            "usd": held.usd.to_string(),
        },
        "admitted_now": refusal.is_none(),
        "refusal": refusal,
    });
    Ok((body, snapshot))
}
