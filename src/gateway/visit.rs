//! `POST /v1/visitor`: a token that tells this browser apart from the others behind its address.
//!
//! Invariant: a token gives a bucket of its own, never more than what the network's shared limits allow over all of its
//! tokens; how many a network gets is a limit of its own.

use serde_json::{Value, json};

use super::caller::{ADDRESS_HEADER, TOKEN_COOKIE, newcomer};
use super::hold::{ask_twice, ask_verdict, not_asked};
use super::ports::Ports;
use super::record::CallRecord;
use super::views::unavailable;
use crate::auth::{Kind, Principal};
use crate::dialect::bad_request::BadRequest;
use crate::limit::account::{HoldId, Verdict};
use crate::limit::protocol::Command;
use crate::limit::{Charge, Cost, Estimate};
use crate::policy::{ISSUE, Policy, Turnstile, VisitorTokens, Visitors};
use crate::rejection::Rejection;
use crate::visitor::Prefix;

/// Where the answer to the challenge is presented.
const CHALLENGE_HEADER: &str = "cf-turnstile-response";

/// Gives out a token: the body, and the cookie.
pub(super) async fn visit<P: Ports>(
    policy: &Policy,
    ports: &P,
    record: &mut CallRecord,
) -> Result<(Value, String), Rejection> {
    let (principal, _) = newcomer(policy, ports, record).await?;
    let (visitors, tokens) = given_out(policy, &principal)?;
    if let Some(turnstile) = &tokens.turnstile {
        check_human(policy, ports, turnstile).await?;
    }
    take_one(policy, ports, &principal, record).await?;
    let address = ports.header(ADDRESS_HEADER);
    let prefix = address.and_then(|address| Prefix::of(&address, visitors.ipv6));
    let (secret, prefix) = visitors.secret.as_ref().zip(prefix).ok_or(Rejection::LimiterUnavailable)?;
    let expires_at = ports.now().after(tokens.lifetime);
    let token = secret.token(&prefix, ports.random(), expires_at);
    let seconds = tokens.lifetime.whole_seconds();
    let cookie = format!("{TOKEN_COOKIE}={token}; Path=/; Max-Age={seconds}; HttpOnly; Secure; SameSite=Lax");
    Ok((json!({"object": "visitor", "token": token, "expires_at_ms": expires_at.0}), cookie))
}

/// Whether this caller is one to whom tokens are given out.
fn given_out<'p>(policy: &'p Policy, principal: &Principal) -> Result<(&'p Visitors, &'p VisitorTokens), Rejection> {
    let visitors = policy.visitors.as_ref().filter(|_| principal.kind == Kind::Visitor);
    visitors.and_then(|visitors| Some((visitors, visitors.tokens.as_ref()?))).ok_or_else(|| {
        Rejection::BadRequest(BadRequest {
            message: "visitor tokens are for callers without a key, where the policy gives them out".to_owned(),
            param: None,
            code: Some("no_visitor_tokens"),
        })
    })
}

async fn check_human<P: Ports>(policy: &Policy, ports: &P, turnstile: &Turnstile) -> Result<(), Rejection> {
    let refused = |message: &str| {
        Err(Rejection::BadRequest(BadRequest {
            message: message.to_owned(),
            param: Some(CHALLENGE_HEADER.to_owned()),
            code: Some("challenge_failed"),
        }))
    };
    let Some(answer) = ports.header(CHALLENGE_HEADER) else {
        return refused("the answer to the challenge is missing");
    };
    match ports.is_human(turnstile, &answer, policy.bounds.ledger).await {
        Ok(true) => Ok(()),
        Ok(false) => refused("the answer to the challenge is not good"),
        Err(fault) => Err(unavailable(ports, &fault)),
    }
}

/// Counts one token against the network's limit on them.
async fn take_one<P: Ports>(
    policy: &Policy,
    ports: &P,
    principal: &Principal,
    record: &CallRecord,
) -> Result<(), Rejection> {
    let (id, within) = (HoldId(record.id.clone()), policy.bounds.limiter);
    let one = Cost { requests: 1, ..Cost::default() };
    let (estimate, hold) = (Estimate(one), policy.bounds.limiter);
    let command = Command::Reserve { id: id.clone(), plan: ISSUE.to_owned(), estimate, hold, booking: None };
    let asked = ask_verdict(ports, &principal.subject, &command, within).await;
    match asked.map_err(|fault| unavailable(ports, &fault))?.0 {
        Verdict::Reserved { .. } => {}
        Verdict::Wait(denial) => return Err(Rejection::Limited(denial)),
        Verdict::NeverFits(denial) => return Err(Rejection::NeverFits(denial)),
        Verdict::Ended => return Err(unavailable(ports, &not_asked(&Verdict::Ended))),
    }
    let command = Command::Settle { id, charge: Charge::Exact(one), counted: true };
    // If this is lost, the deadline does the same a moment later.
    let _ = ask_twice(ports, &principal.subject, &command, within).await;
    Ok(())
}
