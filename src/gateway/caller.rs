//! Who calls, and whether the coarse protection lets the call in.
//!
//! Invariant: an address is looked at here, hashed, and forgotten.

use super::ports::Ports;
use super::record::CallRecord;
use crate::auth::{CREDENTIAL_HEADERS, Kind, Principal, Unrecognised, authenticate, visitor};
use crate::policy::{Plan, Policy};
use crate::rejection::Rejection;

/// The header that only the platform sets.
const ADDRESS_HEADER: &str = "cf-connecting-ip";
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
    let headers = CREDENTIAL_HEADERS.map(|name| ports.header(name));
    let token = ports.header(TOKEN_HEADER);
    let known = match (authenticate(&headers, &policy.keys), &policy.visitors) {
        (Err(Unrecognised::Missing), Some(visitors)) => {
            let token = token.or_else(|| cookie(ports));
            visitor(visitors, ports.header(ADDRESS_HEADER).as_deref(), token.as_deref(), ports.now())
        }
        (Ok(_), _) if token.is_some() => Err(Unrecognised::Ambiguous),
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
