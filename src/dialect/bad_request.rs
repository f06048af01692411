//! What is wrong with a request.

use super::json::Malformed;

/// A fault in a request: whose it is stands in `param`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRequest {
    /// What is wrong, and what is wanted.
    pub message: String,
    /// The field.
    pub param: Option<String>,
    /// The stable label, if there is a better one than none.
    pub code: Option<&'static str>,
}

impl From<Malformed> for BadRequest {
    fn from(fault: Malformed) -> Self {
        Self { message: fault.0, param: None, code: None }
    }
}
