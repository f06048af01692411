//! What is wrong with a request.

use super::json::{Malformed, Member};

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

/// A fault of one field.
pub(crate) fn bad(param: &str, message: String) -> BadRequest {
    BadRequest { message, param: Some(param.to_owned()), code: None }
}

/// A value as an error message shows it: whole if short, else its beginning.
pub(super) fn shown(member: &Member<'_>) -> String {
    const SHOWN_MAX: usize = 40;
    let value = member.value.get();
    if value.chars().count() <= SHOWN_MAX {
        return value.to_owned();
    }
    format!("{}…", value.chars().take(SHOWN_MAX).collect::<String>())
}

/// A field whose cost has no bound, or that is not supported for another reason.
pub(crate) fn unsupported(param: &str, message: String) -> BadRequest {
    BadRequest { message, param: Some(param.to_owned()), code: Some("unsupported_parameter") }
}
