//! The errors of upstreams, in all the shapes that they come in, as the one shape that clients read.
//!
//! Invariant: an upstream's words pass, its account does not: names of organisations and projects and pieces of keys
//! are taken out. Members that are missing are null, numbers become text, since one client refuses a numeric code.

use serde::Serialize;
use serde_json::Value;

/// Beginnings of words that name an account or a credential.
const IDENTIFIERS: [&str; 13] =
    ["org-", "org_", "proj_", "proj-", "acct-", "acct_", "user-", "sk-", "pk-", "gsk_", "xai-", "key-", "AIza"];
const REDACTED: &str = "[redacted]";

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

/// Reads the body of an upstream's error; `secret` is what must not be repeated, our credential there.
#[must_use]
pub fn error_of(body: &[u8], status: u16, secret: Option<&str>) -> ErrorBody {
    let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    // Some send a list of one.
    let value = value.get(0).unwrap_or(&value);
    let object = match value.get("error") {
        Some(error @ Value::Object(_)) => error,
        _ => value,
    };
    let text = |name: &str| match object.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(redacted(text, secret)),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let message = text("message")
        .or_else(|| text("error"))
        .unwrap_or_else(|| format!("The model provider refused the request (status {status})."));
    let kind = text("type").or_else(|| text("status")).unwrap_or_else(|| "invalid_request_error".to_owned());
    ErrorBody { message, kind, param: text("param"), code: text("code") }
}

/// `text` without the words that name an account or a credential.
fn without_identifiers(text: &str) -> String {
    let is_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '*' | '.');
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(|letter: char| !is_word(letter)) {
        let word = part.trim_end_matches(|letter: char| !is_word(letter));
        let end = part.get(word.len()..).unwrap_or_default();
        // A full stop at the end belongs to the sentence.
        let core = word.trim_end_matches('.');
        let named = IDENTIFIERS.iter().filter_map(|start| core.strip_prefix(start)).any(is_identifier);
        out.push_str(if named { REDACTED } else { core });
        out.push_str(word.get(core.len()..).unwrap_or_default());
        out.push_str(end);
    }
    out
}

/// Whether what follows such a beginning is an identifier and not a word of a sentence ("user-defined").
fn is_identifier(rest: &str) -> bool {
    const LONG: usize = 16;
    rest.len() >= LONG || rest.contains("...") || rest.bytes().any(|byte| byte.is_ascii_digit() || byte == b'*')
}

/// A text of an upstream's without its account and without our credential.
#[must_use]
pub fn redacted(text: &str, secret: Option<&str>) -> String {
    let secret = secret.filter(|secret| !secret.is_empty());
    without_identifiers(&secret.map_or_else(|| text.to_owned(), |secret| text.replace(secret, REDACTED)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> (String, String, Option<String>, Option<String>) {
        let error = error_of(body.as_bytes(), 400, Some("0f1e2d"));
        (error.message, error.kind, error.param, error.code)
    }

    #[test]
    fn every_vendors_shape_becomes_the_same_one() {
        let text = |text: &str| Some(text.to_owned());
        let own = "The model provider refused the request (status 400).".to_owned();
        let shapes = [
            (
                r#"{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
                ("too long", "invalid_request_error", text("messages"), text("context_length_exceeded")),
            ),
            (
                r#"{"error":{"code":429,"message":"slow"},"user_id":"u"}"#,
                ("slow", "invalid_request_error", None, text("429")),
            ),
            (
                r#"[{"error":{"code":429,"message":"out","status":"RESOURCE_EXHAUSTED"}}]"#,
                ("out", "RESOURCE_EXHAUSTED", None, text("429")),
            ),
            (
                r#"{"object":"error","message":"no","type":"rate_limited","param":null,"code":"1300"}"#,
                ("no", "rate_limited", None, text("1300")),
            ),
            (r#"{"code":"bad","error":"why"}"#, ("why", "invalid_request_error", None, text("bad"))),
            (
                r#"{"error":{"message":"Bad key 0f1e2d, or x0f1e2dx","code":"0f1e2d"}}"#,
                ("Bad key [redacted], or x[redacted]x", "invalid_request_error", None, text(REDACTED)),
            ),
            ("<html>", (own.as_str(), "invalid_request_error", None, None)),
            (r#"{"error":{"message":["x"]}}"#, (own.as_str(), "invalid_request_error", None, None)),
        ];
        for (body, (message, kind, param, code)) in shapes {
            assert_eq!(read(body), (message.to_owned(), kind.to_owned(), param, code), "{body}");
        }
    }

    #[test]
    fn words_pass_and_accounts_do_not() {
        let cleaned = without_identifiers(
            "Limit for gpt-4.1 in organization org-Zz99 (proj_1): key sk-ab...9, é. org-x1. A user-defined key-value pair.",
        );
        assert_eq!(
            cleaned,
            "Limit for gpt-4.1 in organization [redacted] ([redacted]): key [redacted], é. [redacted]. A user-defined key-value pair."
        );
    }
}
