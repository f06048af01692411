//! Every way in which a call ends early, and its one mapping to HTTP.
//!
//! Invariant: `Rejection` is the only error that reaches a client, always as `{"error":{message,type,param,code}}` with
//! all four members, each a string or null. It says whose fault it is and when to come back. Not yet (429 with an exact
//! wait) and never (400 without one) are different answers. No cause, no secret and no address is in it.

mod limits;
mod upstream;

use limits::{day_limited, is_cap, is_cap_of_zero, limited, never_fits, shielded};
pub use upstream::UpstreamFault;

use crate::auth::Unrecognised;
use crate::dialect::bad_request::BadRequest;
use crate::dialect::fault::ErrorBody;
use crate::dialect::rules::Family;
use crate::dialect::shape::error_body;
use crate::ledger::DayRefusal;
use crate::limit::account::Denial;
use crate::time::Wait;

/// The longest wait that clients are asked to sit out by themselves; beyond it they do very different things with a
/// `Retry-After`, so they are told not to retry.
const RETRY_WAIT_MAX: Wait = Wait::seconds(60);
/// How much of a model's name is repeated.
const MODEL_SHOWN_MAX: usize = 100;
/// When to come back after a failure of ours: soon, as it is seldom lasting.
const UNAVAILABLE_WAIT: Wait = Wait::seconds(2);

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
    /// The model is served by an upstream that speaks another API.
    ModelElsewhere {
        /// As it was named.
        model: String,
        /// What was called.
        path: &'static str,
    },
    /// No call in the background of this caller's has the id, or none any more.
    ResponseNotFound {
        /// The id.
        id: String,
    },
    /// Not yet.
    Limited(Denial),
    /// Not ever, with this limit.
    NeverFits(Denial),
    /// The day's cap, the caller's or the site's, is used up.
    DayLimited(DayRefusal),
    /// The coarse protection in front refuses.
    Shielded {
        /// Its period.
        wait: Wait,
    },
    /// A limit cannot be checked.
    LimiterUnavailable,
    /// The policy is not valid.
    PolicyInvalid,
    /// The upstream failed.
    Upstream(UpstreamFault),
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
    /// The body in JSON, as clients of a family read it; `id` is the call's.
    #[must_use]
    pub fn body(&self, family: Family, id: &str) -> String {
        error_body(family, self.status, &self.error, id)
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
            Self::ModelNotFound { .. } | Self::ModelElsewhere { .. } => "model_not_found",
            Self::ResponseNotFound { .. } => "response_not_found",
            Self::Limited(denial) if is_cap(&denial.limit) => "insufficient_quota",
            Self::Limited(_) | Self::Shielded { .. } => "rate_limit_exceeded",
            Self::NeverFits(denial) if is_cap_of_zero(&denial.limit) => "insufficient_quota",
            Self::NeverFits(_) => "request_exceeds_limit",
            Self::DayLimited(_) => "insufficient_quota",
            Self::LimiterUnavailable => "limiter_unavailable",
            Self::PolicyInvalid => "policy_invalid",
            Self::Upstream(fault) => fault.code(),
        }
    }

    /// The limit of ours that refused, and the wait that was announced.
    #[must_use]
    pub fn limited_by(&self) -> Option<(&str, Option<Wait>)> {
        match self {
            Self::Limited(denial) => Some((denial.limit.label(), Some(denial.wait))),
            Self::NeverFits(denial) => Some((denial.limit.label(), None)),
            Self::DayLimited(refusal) => Some((refusal.scope.name(), refusal.wait)),
            Self::Shielded { wait } => Some(("shield", Some(*wait))),
            _ => None,
        }
    }

    /// The rejection as HTTP.
    #[must_use]
    pub fn parts(&self) -> RejectionParts {
        match self {
            Self::Limited(denial) => limited(denial, self.code()),
            Self::NeverFits(denial) => never_fits(denial, self.code()),
            Self::DayLimited(refusal) => day_limited(*refusal, self.code()),
            Self::Shielded { wait } => shielded(*wait, self.code()),
            Self::Upstream(fault) => fault.parts(),
            Self::ResponseNotFound { id } => response_not_found(id, self.code()),
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
                format!(
                    "The model `{}` does not exist or you may not use it. `GET /v1/models` lists yours.",
                    name_shown(model)
                ),
            ),
            Self::ModelElsewhere { model, path } => {
                (404, "invalid_request_error", format!("The model `{}` is not served at {path}.", name_shown(model)))
            }
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
            Self::ModelNotFound { .. } | Self::ModelElsewhere { .. } => Some("model".to_owned()),
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

fn error(kind: &str, code: &str, param: Option<String>, message: String) -> ErrorBody {
    ErrorBody { message, kind: kind.to_owned(), param, code: Some(code.to_owned()) }
}

fn response_not_found(id: &str, code: &str) -> RejectionParts {
    let message =
        format!("Response with id '{id}' not found. Only calls of yours in the background can be fetched here.");
    let error = error("invalid_request_error", code, Some("id".to_owned()), message);
    RejectionParts { status: 404, headers: Vec::new(), error }
}

/// A model's name as a message repeats it.
fn name_shown(model: &str) -> String {
    model.chars().take(MODEL_SHOWN_MAX).collect()
}

/// Base addresses with and without `/v1` are in use, and clients add their own: the commonest mistake.
fn doubled_base(path: &str) -> &'static str {
    if path.starts_with("/v1/v1/") { " The base URL of your client has `/v1` once too often." } else { "" }
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
