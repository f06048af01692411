//! Who calls, and whether the coarse protection lets the call in.
//!
//! Invariant: an address is looked at here, hashed, and forgotten.

use super::ports::Ports;
use super::record::CallRecord;
use crate::auth::{Kind, Principal, Unrecognised, authenticate, visitor};
use crate::policy::{CREDENTIAL_HEADERS, Plan, Policy};
use crate::rejection::Rejection;

/// The header that only the platform sets.
pub(super) const ADDRESS_HEADER: &str = "cf-connecting-ip";
/// Where a visitor token is presented.
const TOKEN_HEADER: &str = "x-tollgate-visitor";
/// The cookie that a visitor token is kept in.
pub(super) const TOKEN_COOKIE: &str = "tollgate_visitor";

/// Who calls, and under which plan. A visitor is one who sends no credential at all.
pub(super) async fn caller<'p, P: Ports>(
    policy: &'p Policy,
    ports: &P,
    record: &mut CallRecord,
) -> Result<(Principal, &'p Plan), Rejection> {
    let token = ports.header(TOKEN_HEADER).map(Token::Sent).or_else(|| cookie(ports).map(Token::Kept));
    caller_with(policy, ports, record, token).await
}

/// The same for one who asks for a token: the one that may be there already is of no account, since it may be of the
/// network that the caller has just left.
pub(super) async fn newcomer<'p, P: Ports>(
    policy: &'p Policy,
    ports: &P,
    record: &mut CallRecord,
) -> Result<(Principal, &'p Plan), Rejection> {
    caller_with(policy, ports, record, None).await
}

/// A visitor token, by where it was presented.
enum Token {
    /// In a header: on purpose, so not beside a key.
    Sent(String),
    /// In a cookie: by the browser, whoever calls.
    Kept(String),
}

async fn caller_with<'p, P: Ports>(
    policy: &'p Policy,
    ports: &P,
    record: &mut CallRecord,
    token: Option<Token>,
) -> Result<(Principal, &'p Plan), Rejection> {
    let headers = CREDENTIAL_HEADERS.map(|name| ports.header(name));
    let known = match (authenticate(&headers, &policy.keys), &policy.visitors) {
        (Err(Unrecognised::Missing), Some(visitors)) => {
            let token = match token {
                // Where none are given out any more, one that a browser has kept means nothing.
                Some(Token::Kept(_)) if visitors.tokens.is_none() => None,
                token => token.map(|(Token::Sent(token) | Token::Kept(token))| token),
            };
            visitor(visitors, ports.header(ADDRESS_HEADER).as_deref(), token.as_deref(), record.at)
        }
        (Ok(_), _) if matches!(token, Some(Token::Sent(_))) => Err(Unrecognised::Ambiguous),
        (known, _) => known,
    };
    let principal = known.map_err(Rejection::Unrecognised)?;
    record.subject = Some(principal.subject.0.clone());
    record.plan = Some(principal.plan.clone());
    let plan = policy.plans.get(&principal.plan).ok_or(Rejection::PolicyInvalid)?;
    shield(policy, ports, &principal).await?;
    Ok((principal, plan))
}

fn cookie<P: Ports>(ports: &P) -> Option<String> {
    let cookies = ports.header("cookie")?;
    let value = cookies.split(';').find_map(|pair| pair.trim().strip_prefix(TOKEN_COOKIE)?.strip_prefix('='));
    value.map(str::to_owned)
}

/// Asks the platform's own rate limiter. It is a filter, not a limit: where it does not answer, the limits decide.
async fn shield<P: Ports>(policy: &Policy, ports: &P, principal: &Principal) -> Result<(), Rejection> {
    let Some(shield) = policy.shield.filter(|shield| !shield.visitors_only || principal.kind == Kind::Visitor) else {
        return Ok(());
    };
    match ports.shield(&principal.subject.0, policy.bounds.limiter).await {
        Ok(false) => Err(Rejection::Shielded { wait: shield.period }),
        Ok(true) => Ok(()),
        Err(fault) => {
            ports.warn(&format!("the shield did not answer: {}", fault.0));
            Ok(())
        }
    }
}
