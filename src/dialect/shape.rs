//! How errors look in each family's API.

use serde::Serialize;

use super::fault::ErrorBody;
use super::rules::{ErrorEvent, Family};

/// The classes of error that Anthropic's clients know.
const ANTHROPIC_KINDS: [&str; 9] = [
    "api_error",
    "authentication_error",
    "invalid_request_error",
    "not_found_error",
    "overloaded_error",
    "permission_error",
    "rate_limit_error",
    "request_too_large",
    "timeout_error",
];

#[derive(Serialize)]
struct OpenAi<'e> {
    error: &'e ErrorBody,
}

#[derive(Serialize)]
struct Anthropic<'e> {
    #[serde(rename = "type")]
    kind: &'static str,
    error: ErrorBody,
    request_id: &'e str,
}

#[derive(Serialize)]
struct Numbered<'e> {
    #[serde(rename = "type")]
    kind: &'static str,
    sequence_number: u64,
    error: &'e ErrorBody,
}

/// The body of an answer with this status; `id` is the call's.
#[must_use]
pub fn error_body(family: Family, status: u16, error: &ErrorBody, id: &str) -> String {
    let body = match family {
        Family::OpenAi => serde_json::to_string(&OpenAi { error }),
        Family::Anthropic => {
            let kind = anthropic_kind(status, &error.kind).to_owned();
            let error = ErrorBody { kind, ..error.clone() };
            serde_json::to_string(&Anthropic { kind: "error", error, request_id: id })
        }
    };
    // Strings and nulls only: the serialiser has no other way to fail.
    body.unwrap_or_default()
}

/// The event that ends a stream which had begun, as if it were an answer with this status.
#[must_use]
pub fn error_event(event: ErrorEvent, status: u16, error: &ErrorBody, id: &str) -> String {
    match event {
        ErrorEvent::Plain => format!("data: {}\n\n", error_body(Family::OpenAi, status, error, id)),
        ErrorEvent::Numbered => {
            let body = serde_json::to_string(&Numbered { kind: "error", sequence_number: 0, error });
            format!("event: error\ndata: {}\n\n", body.unwrap_or_default())
        }
        ErrorEvent::Anthropic => {
            format!("event: error\ndata: {}\n\n", error_body(Family::Anthropic, status, error, id))
        }
    }
}

fn anthropic_kind(status: u16, kind: &str) -> &'static str {
    if let Some(known) = ANTHROPIC_KINDS.iter().find(|known| **known == kind && kind != "invalid_request_error") {
        return known;
    }
    match status {
        401 => "authentication_error",
        402 | 403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        500..=599 => "api_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_reads_its_own_shape() {
        let error = ErrorBody {
            message: "slow".to_owned(),
            kind: "requests".to_owned(),
            param: None,
            code: Some("rate_limit_exceeded".to_owned()),
        };
        let members = r#""param":null,"code":"rate_limit_exceeded"}"#;
        assert_eq!(
            error_body(Family::OpenAi, 429, &error, "c1"),
            format!(r#"{{"error":{{"message":"slow","type":"requests",{members}}}"#)
        );
        let body = format!(
            r#"{{"type":"error","error":{{"message":"slow","type":"rate_limit_error",{members},"request_id":"c1"}}"#
        );
        assert_eq!(error_body(Family::Anthropic, 429, &error, "c1"), body);
        assert_eq!(error_event(ErrorEvent::Anthropic, 429, &error, "c1"), format!("event: error\ndata: {body}\n\n"));
        let numbered =
            format!(r#"{{"type":"error","sequence_number":0,"error":{{"message":"slow","type":"requests",{members}}}"#);
        assert_eq!(error_event(ErrorEvent::Numbered, 429, &error, "c1"), format!("event: error\ndata: {numbered}\n\n"));
    }

    #[test]
    fn the_status_says_the_class_unless_the_provider_did() {
        let classes = [
            (400, "requests", "invalid_request_error"),
            (401, "invalid_request_error", "authentication_error"),
            (404, "invalid_request_error", "not_found_error"),
            (415, "invalid_request_error", "invalid_request_error"),
            (502, "server_error", "api_error"),
            (504, "server_error", "timeout_error"),
            (529, "overloaded_error", "overloaded_error"),
        ];
        for (status, kind, want) in classes {
            assert_eq!(anthropic_kind(status, kind), want, "{status} {kind}");
        }
    }
}
