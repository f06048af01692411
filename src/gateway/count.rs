//! `POST /v1/tokens/count`: what a call would be charged, before it is made.
//!
//! Invariant: it is read, counted and priced by the very functions that a call goes through, and it spends nothing.

use serde_json::{Value, json};

use super::caller::caller;
use super::complete::read_body;
use super::hold::ask_twice;
use super::ports::{Ports, Unavailable};
use super::price::{Count, Priced};
use super::record::CallRecord;
use super::views::unavailable;
use crate::dialect::chat::ChatRequest;
use crate::limit::account::{Denial, Snapshot, Verdict};
use crate::limit::protocol::{Command, Reply};
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
    let request = ChatRequest::read(&body).map_err(Rejection::BadRequest)?;
    let priced = Priced::of(policy, plan, &request, Count::Always)?;
    record.model = Some(priced.named.sent_as.clone());
    let command = Command::Check { plan: principal.object_plan(), estimate: priced.estimate };
    let (verdict, snapshot) = match ask_twice(ports, &principal.subject, &command, policy.bounds.limiter).await {
        Ok(Reply::Reserve { verdict, snapshot }) => (verdict, snapshot),
        Ok(other) => return Err(unavailable(ports, &format!("an answer to another question: {other:?}"))),
        Err(Unavailable(why)) => return Err(unavailable(ports, &why)),
    };
    let held = priced.estimate.0;
    let (admitted, refusal) = match &verdict {
        Verdict::Reserved { .. } | Verdict::Ended => (true, Value::Null),
        Verdict::Wait(denial) => (false, refused(denial, Some(denial.wait.0))),
        Verdict::NeverFits(denial) => (false, refused(denial, None)),
    };
    let body = json!({
        "object": "tokens.count",
        "model": priced.named.sent_as,
        "input_tokens": priced.prompt.upper.0,
        "input_tokens_at_least": priced.prompt.lower.0,
        "output_tokens_max": held.output.0,
        "hold": {
            "requests": held.requests,
            "input_tokens": held.input.0,
            "output_tokens": held.output.0,
            "nano_usd": held.usd.0,
            "usd": held.usd.to_string(),
        },
        "admitted_now": admitted,
        "refusal": refusal,
    });
    Ok((body, snapshot))
}

/// Which limit would refuse, and for how long; without a wait it always would.
fn refused(denial: &Denial, wait_ms: Option<u64>) -> Value {
    json!({"limited_by": denial.limit.label(), "retry_after_ms": wait_ms})
}
