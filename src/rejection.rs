//! Every way in which a call ends early, and its one mapping to HTTP.
//!
//! Invariant: `Rejection` is the only error that reaches a client, always as `{"error":{message,type,param,code}}` with
//! all four members, each a string or null. It says whose fault it is and when to come back. Not yet (429 with an exact
//! wait) and never (400 without one) are different answers. No cause, no secret and no address is in it.

use serde::Serialize;

use crate::auth::Unrecognised;
use crate::dialect::chat::BadRequest;
use crate::limit::account::Denial;
use crate::limit::{Limit, Shape, Unit};
use crate::pricing::NanoUsd;
use crate::rate_headers::go_duration;
use crate::time::Wait;

/// The longest wait that clients are asked to sit out by themselves; beyond it they do very different things with a
/// `Retry-After`, so they are told not to retry.
const RETRY_WAIT_MAX: Wait = Wait::seconds(60);
/// When to come back after a failure of ours: soon, as it is seldom lasting.
const UNAVAILABLE_WAIT: Wait = Wait::seconds(2);

/// The error object of the OpenAI API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorBody {
    /// For a person.
    pub message: String,
    /// The class of error.
    #[serde(rename = "type")]
    pub kind: String,
    /// The field at fault.
    pub param: Option<String>,
    /// The stable label.
    pub code: Option<String>,
}

/// An early end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The caller is not recognised.
    Unrecognised(Unrecognised),
    /// No such route.
    UnknownUrl {
        /// What was asked.
        method: String,
        /// Where.
        path: String,
    },
    /// The route has other methods.
    MethodNotAllowed {
        /// What was asked.
        method: String,
        /// What it has.
        allow: &'static str,
    },
    /// The request cannot be used as it is.
    BadRequest(BadRequest),
    /// The body is larger than the plan allows.
    BodyTooLarge {
        /// The cap in bytes.
        cap: usize,
    },
    /// The body is compressed.
    BodyEncoded {
        /// How.
        encoding: String,
    },
    /// The model is unknown, or not the caller's to use.
    ModelNotFound {
        /// As it was named.
        model: String,
    },
    /// Not yet.
    Limited(Denial),
    /// Not ever, with this limit.
    NeverFits(Denial),
    /// A limit cannot be checked.
    LimiterUnavailable,
    /// The policy is not valid.
    PolicyInvalid,
    /// The upstream failed.
    Upstream(UpstreamFault),
}

/// How an upstream failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamFault {
    /// It does not accept our credential.
    Auth,
    /// It could not be reached.
    Unreachable,
    /// It took longer than the bound.
    Timeout,
    /// It answered what is no answer.
    Invalid,
    /// It answered with a failure of its own.
    Failed {
        /// Its status.
        status: u16,
    },
    /// Its own limit is reached.
    Limited {
        /// Its words.
        error: ErrorBody,
        /// Its wait.
        wait: Option<Wait>,
    },
    /// It refused the request.
    Refused {
        /// Its status, 400 to 499.
        status: u16,
        /// Its words.
        error: ErrorBody,
    },
}

/// A rejection as HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectionParts {
    /// The status.
    pub status: u16,
    /// Headers that speak of the rejection.
    pub headers: Vec<(String, String)>,
    /// The error object.
    pub error: ErrorBody,
}

impl RejectionParts {
    /// The body in JSON.
    #[must_use]
    pub fn body(&self) -> String {
        #[derive(Serialize)]
        struct Body<'e> {
            error: &'e ErrorBody,
        }
        // Strings and nulls only: the serialiser has no other way to fail.
        serde_json::to_string(&Body { error: &self.error }).unwrap_or_default()
    }
}

impl Rejection {
    /// The stable label: in the body, in the log and in metrics.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unrecognised(_) => "invalid_api_key",
            Self::UnknownUrl { .. } => "unknown_url",
            Self::MethodNotAllowed { .. } => "method_not_supported",
            Self::BadRequest(BadRequest { code: Some(code), .. }) => code,
            Self::BadRequest(_) => "invalid_request",
            Self::BodyTooLarge { .. } => "request_too_large",
            Self::BodyEncoded { .. } => "unsupported_encoding",
            Self::ModelNotFound { .. } => "model_not_found",
            Self::Limited(denial) if is_cap(&denial.limit) => "insufficient_quota",
            Self::Limited(_) => "rate_limit_exceeded",
            Self::NeverFits(denial) if is_cap_of_zero(&denial.limit) => "insufficient_quota",
            Self::NeverFits(_) => "request_exceeds_limit",
            Self::LimiterUnavailable => "limiter_unavailable",
            Self::PolicyInvalid => "policy_invalid",
            Self::Upstream(fault) => fault.code(),
        }
    }

    /// The rejection as HTTP.
    #[must_use]
    pub fn parts(&self) -> RejectionParts {
        match self {
            Self::Limited(denial) => limited(denial, self.code()),
            Self::NeverFits(denial) => never_fits(denial, self.code()),
            Self::Upstream(fault) => fault.parts(),
            _ => self.plain_parts(),
        }
    }

    /// The parts of a rejection whose headers, if any, are always the same.
    fn plain_parts(&self) -> RejectionParts {
        let (status, kind, message) = match self {
            Self::Unrecognised(why) => (401, "invalid_request_error", why.message().to_owned()),
            Self::UnknownUrl { method, path } => {
                (404, "invalid_request_error", format!("Unknown URL ({method} {path}).{}", doubled_base(path)))
            }
            Self::MethodNotAllowed { method, allow } => {
                (405, "invalid_request_error", format!("Not allowed to {method} here (only {allow})."))
            }
            Self::BadRequest(fault) => (400, "invalid_request_error", format!("{}.", fault.message)),
            Self::BodyTooLarge { cap } => {
                (413, "invalid_request_error", format!("The body is larger than the {cap} bytes that are allowed."))
            }
            Self::BodyEncoded { encoding } => (
                415,
                "invalid_request_error",
                format!("The body has the content encoding `{encoding}`; send it without any."),
            ),
            Self::ModelNotFound { model } => (
                404,
                "invalid_request_error",
                format!("The model `{model}` does not exist or you may not use it. `GET /v1/models` lists yours."),
            ),
            Self::PolicyInvalid => (
                503,
                "server_error",
                "This gateway's policy is not valid, so no call is let through. Its operator finds the faults at \
                 /healthz."
                    .to_owned(),
            ),
            _ => (
                503,
                "server_error",
                "Your limits cannot be checked right now, so the call was not made. Nothing was charged.".to_owned(),
            ),
        };
        let param = match self {
            Self::BadRequest(fault) => fault.param.clone(),
            Self::ModelNotFound { .. } => Some("model".to_owned()),
            _ => None,
        };
        let headers = match self {
            Self::Unrecognised(_) => vec![("www-authenticate".to_owned(), "Bearer".to_owned())],
            Self::MethodNotAllowed { allow, .. } => vec![("allow".to_owned(), (*allow).to_owned())],
            Self::LimiterUnavailable => retry_headers(UNAVAILABLE_WAIT),
            Self::PolicyInvalid => vec![("x-should-retry".to_owned(), "false".to_owned())],
            _ => Vec::new(),
        };
        RejectionParts { status, headers, error: error(kind, self.code(), param, message) }
    }
}

impl UpstreamFault {
    const fn code(&self) -> &'static str {
        match self {
            Self::Auth => "upstream_auth",
            Self::Unreachable => "upstream_unreachable",
            Self::Timeout => "upstream_timeout",
            Self::Invalid => "upstream_invalid",
            Self::Failed { .. } => "upstream_failed",
            Self::Limited { .. } => "upstream_limited",
            Self::Refused { .. } => "upstream_refused",
        }
    }

    fn parts(&self) -> RejectionParts {
        let (status, message) = match self {
            Self::Limited { error, wait } => {
                let mut headers = wait.map(retry_headers).unwrap_or_default();
                headers.push(("x-tollgate-limited-by".to_owned(), "upstream".to_owned()));
                return RejectionParts { status: 429, headers, error: error.clone() };
            }
            Self::Refused { status, error } => {
                return RejectionParts { status: *status, headers: Vec::new(), error: error.clone() };
            }
            Self::Auth => (502, "The model provider does not accept this gateway's credential.".to_owned()),
            Self::Unreachable => (502, "The model provider could not be reached.".to_owned()),
            Self::Timeout => (504, "The model provider took too long.".to_owned()),
            Self::Invalid => (502, "The model provider's answer could not be used.".to_owned()),
            Self::Failed { status } => (502, format!("The model provider failed (status {status}).")),
        };
        let message = format!("{message} Nothing was charged.");
        RejectionParts { status, headers: Vec::new(), error: error("server_error", self.code(), None, message) }
    }

    /// The event that ends a stream which had begun: what was written of the answer is charged, so nothing is said of
    /// that here.
    #[must_use]
    pub fn stream_event(&self) -> String {
        let message = match self {
            Self::Timeout => "The model provider stopped sending; the answer is incomplete.",
            _ => "The model provider's stream broke off; the answer is incomplete.",
        };
        let parts = RejectionParts {
            status: 200,
            headers: Vec::new(),
            error: error("server_error", self.code(), None, message.to_owned()),
        };
        format!("data: {}\n\n", parts.body())
    }
}

fn error(kind: &str, code: &str, param: Option<String>, message: String) -> ErrorBody {
    ErrorBody { message, kind: kind.to_owned(), param, code: Some(code.to_owned()) }
}

/// Base addresses with and without `/v1` are in use, and clients add their own: the commonest mistake.
fn doubled_base(path: &str) -> &'static str {
    if path.starts_with("/v1/v1/") { " The base URL of your client has `/v1` once too often." } else { "" }
}

/// Whether a limit is a daily or monthly cap, which clients should not sit out.
fn is_cap(limit: &Limit) -> bool {
    matches!(limit.shape, Shape::Window { .. })
}

fn is_cap_of_zero(limit: &Limit) -> bool {
    is_cap(limit) && limit.shape.capacity().0 == 0
}

/// `Retry-After` and `retry-after-ms`, and whether clients should wait at all.
fn retry_headers(wait: Wait) -> Vec<(String, String)> {
    let mut headers = vec![
        ("retry-after".to_owned(), wait.whole_seconds().to_string()),
        ("retry-after-ms".to_owned(), wait.0.to_string()),
    ];
    if wait > RETRY_WAIT_MAX {
        headers.push(("x-should-retry".to_owned(), "false".to_owned()));
    }
    headers
}

fn limited(denial: &Denial, code: &str) -> RejectionParts {
    let limit = &denial.limit;
    let kind = match limit.unit {
        _ if is_cap(limit) => "insufficient_quota",
        Unit::Requests | Unit::Concurrency => "requests",
        _ => "tokens",
    };
    let message = format!("{} Please try again in {}.", said(denial), go_duration(denial.wait));
    let mut headers = retry_headers(denial.wait);
    headers.push(("x-tollgate-limited-by".to_owned(), limit.name.clone()));
    RejectionParts { status: 429, headers, error: error(kind, code, None, message) }
}

fn never_fits(denial: &Denial, code: &str) -> RejectionParts {
    let limited_by = ("x-tollgate-limited-by".to_owned(), denial.limit.name.clone());
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
        limit.name,
        limit.unit.name(),
        shown(limit.shape.capacity().0),
        shown(denial.asked.0),
    )
}
