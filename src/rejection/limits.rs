//! How refusals of limits are told.

use super::{RejectionParts, error, retry_headers};
use crate::ledger::{DayRefusal, DayScope};
use crate::limit::NanoUsd;
use crate::limit::account::Denial;
use crate::limit::{Limit, Shape, Unit};
use crate::rate_headers::go_duration;
use crate::time::Wait;

/// Whether a limit is a daily or monthly cap, which clients should not sit out.
pub(super) fn is_cap(limit: &Limit) -> bool {
    matches!(limit.shape, Shape::Window { .. })
}

pub(super) fn is_cap_of_zero(limit: &Limit) -> bool {
    is_cap(limit) && limit.shape.capacity().0 == 0
}

pub(super) fn limited(denial: &Denial, code: &str) -> RejectionParts {
    let limit = &denial.limit;
    let kind = match limit.unit {
        _ if is_cap(limit) => "insufficient_quota",
        Unit::Requests | Unit::Concurrency => "requests",
        _ => "tokens",
    };
    let message = format!("{} Please try again in {}.", said(denial), go_duration(denial.wait));
    let mut headers = retry_headers(denial.wait);
    headers.push(("x-tollgate-limited-by".to_owned(), limit.label().to_owned()));
    RejectionParts { status: 429, headers, error: error(kind, code, None, message) }
}

pub(super) fn never_fits(denial: &Denial, code: &str) -> RejectionParts {
    let limited_by = ("x-tollgate-limited-by".to_owned(), denial.limit.label().to_owned());
    if is_cap_of_zero(&denial.limit) {
        let headers = vec![("x-should-retry".to_owned(), "false".to_owned()), limited_by];
        return RejectionParts { status: 429, headers, error: error("insufficient_quota", code, None, said(denial)) };
    }
    let message = format!("{} It can never fit; make it smaller, for example with a lower output cap.", said(denial));
    RejectionParts {
        status: 400,
        headers: vec![limited_by],
        error: error("invalid_request_error", code, None, message),
    }
}

pub(super) fn day_limited(refusal: DayRefusal, code: &str) -> RejectionParts {
    let name = refusal.scope.name();
    let whose = match refusal.scope {
        DayScope::Daily => "Your limit for today",
        DayScope::Site => "This site's limit for today",
    };
    let (mut headers, again) = match refusal.wait {
        Some(wait) => (retry_headers(wait), format!(" Please try again in {}.", go_duration(wait))),
        None => (vec![("x-should-retry".to_owned(), "false".to_owned())], String::new()),
    };
    headers.push(("x-tollgate-limited-by".to_owned(), name.to_owned()));
    let message = format!("{whose} (`{name}`) is reached.{again}");
    RejectionParts { status: 429, headers, error: error("insufficient_quota", code, None, message) }
}

pub(super) fn shielded(wait: Wait, code: &str) -> RejectionParts {
    let mut headers = retry_headers(wait);
    headers.push(("x-tollgate-limited-by".to_owned(), "shield".to_owned()));
    let message = format!("Too many requests from here. Please try again in {}.", go_duration(wait));
    RejectionParts { status: 429, headers, error: error("requests", code, None, message) }
}

/// What the limit is, what was asked and what is left.
fn said(denial: &Denial) -> String {
    let limit = &denial.limit;
    let shown = |amount: u64| match limit.unit {
        Unit::Usd => format!("${}", NanoUsd(amount)),
        _ => amount.to_string(),
    };
    let left = match u64::try_from(denial.left) {
        Ok(left) => shown(left),
        Err(_) => format!("-{}", shown(denial.left.unsigned_abs())),
    };
    format!(
        "Limit `{}` reached on {}: limit {}, left {left}, requested {}.",
        limit.label(),
        limit.unit.name(),
        shown(limit.shape.capacity().0),
        shown(denial.asked.0),
    )
}
