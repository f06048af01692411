//! How upstreams fail, and what a client is told of it.

use super::{RejectionParts, error, retry_headers};
use crate::dialect::fault::ErrorBody;
use crate::dialect::rules::ErrorEvent;
use crate::dialect::shape::error_event;
use crate::time::Wait;

/// How an upstream failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamFault {
    /// It does not accept our credential.
    Auth,
    /// It could not be reached.
    Unreachable,
    /// It took longer than the bound.
    Timeout,
    /// It took longer than the bound to say how a call stands: nothing was held for that.
    PollTimeout,
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

impl UpstreamFault {
    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::Auth => "upstream_auth",
            Self::Unreachable => "upstream_unreachable",
            Self::Timeout | Self::PollTimeout => "upstream_timeout",
            Self::Invalid => "upstream_invalid",
            Self::Failed { .. } => "upstream_failed",
            Self::Limited { .. } => "upstream_limited",
            Self::Refused { .. } => "upstream_refused",
        }
    }

    pub(super) fn parts(&self) -> RejectionParts {
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
            Self::Timeout | Self::PollTimeout => (504, "The model provider took too long.".to_owned()),
            Self::Invalid => (502, "The model provider's answer could not be used.".to_owned()),
            Self::Failed { status: 200 } => (502, "The model provider answered with an error.".to_owned()),
            Self::Failed { status } => (502, format!("The model provider failed (status {status}).")),
        };
        let free = match self {
            // The day's count stays, since the provider may have worked.
            Self::Timeout => "Your limits were given back.",
            _ => "Nothing was charged.",
        };
        let message = format!("{message} {free}");
        RejectionParts { status, headers: Vec::new(), error: error("server_error", self.code(), None, message) }
    }

    /// The event that ends a stream which had begun: what was written of the answer is charged, so nothing is said of
    /// that here.
    #[must_use]
    pub fn stream_event(&self, event: ErrorEvent, id: &str) -> String {
        let (status, message) = match self {
            Self::Timeout | Self::PollTimeout => (504, "The model provider stopped sending; the answer is incomplete."),
            _ => (502, "The model provider's stream broke off; the answer is incomplete."),
        };
        error_event(event, status, &error("server_error", self.code(), None, message.to_owned()), id)
    }
}
