//! The errors of the binding: what it says, and what each of its codes means.
//!
//! It answers with a status and `{"internalCode": …, "description": …}` or `{"errors": [{"code": …, "message": …}]}`, or
//! it throws with a message such as `3040: Capacity temporarily exceeded`.

use serde_json::{Value, json};

/// What an error means for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The request is at fault.
    Refused {
        /// The status that says so.
        status: u16,
    },
    /// The prompt and the answer do not fit into the model's context.
    TooLong,
    /// There is no room just now; for how long is not said.
    Busy,
    /// The account's allocation is used up until the day (UTC) is over.
    UsedUp,
    /// The account may not do this.
    Account,
    /// It took too long.
    TimedOut,
    /// It failed.
    Failed,
}

/// The documented codes (developers.cloudflare.com/workers-ai/platform/errors), and two that are seen beside them: 5006 for
/// an input that the model's schema does not take, 5021 for one beyond its context.
const MEANINGS: [(u64, Meaning); 18] = [
    (3003, Meaning::Refused { status: 400 }),
    (3006, Meaning::Refused { status: 413 }),
    (3007, Meaning::TimedOut),
    (3008, Meaning::Failed),
    (3023, Meaning::Account),
    (3036, Meaning::UsedUp),
    (3039, Meaning::Refused { status: 400 }),
    (3040, Meaning::Busy),
    (3041, Meaning::Account),
    (3042, Meaning::Refused { status: 404 }),
    (5004, Meaning::Refused { status: 400 }),
    // Of a fine-tuning that the request names.
    (5005, Meaning::Refused { status: 400 }),
    (5006, Meaning::Refused { status: 400 }),
    (5007, Meaning::Refused { status: 400 }),
    (5016, Meaning::Account),
    (5018, Meaning::Account),
    (5019, Meaning::Failed),
    (5021, Meaning::TooLong),
];

impl Meaning {
    /// What an error with this code means; one without a known code, by its status.
    #[must_use]
    pub fn of(code: Option<u64>, status: u16) -> Self {
        let known = MEANINGS.iter().find(|(known, _)| Some(*known) == code).map(|(_, meaning)| *meaning);
        known.unwrap_or(match status {
            401..=403 | 407 => Self::Account,
            408 => Self::TimedOut,
            429 => Self::Busy,
            400..=499 => Self::Refused { status },
            _ => Self::Failed,
        })
    }
}

/// An error of the binding's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AiError {
    /// Its code, if it has one.
    pub code: Option<u64>,
    /// Its words.
    pub message: String,
}

impl AiError {
    /// Reads the body of an answer without success, whatever it is.
    #[must_use]
    pub fn read(body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let listed = value.get("errors").and_then(|errors| errors.get(0));
        let single = value.get("error").filter(|error| error.is_object());
        let error = listed.or(single).unwrap_or(&value);
        let text = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let number = |name: &str| {
            let value = error.get(name)?;
            value.as_u64().or_else(|| value.as_str()?.parse().ok())
        };
        let message = text("description").or_else(|| text("message")).map(str::to_owned);
        let message = message.unwrap_or_else(|| if value.is_null() { plain(body) } else { String::new() });
        let code = number("internalCode").or_else(|| number("code"));
        Self { code: code.or_else(|| code_in(&message)), message }
    }
}

/// What was thrown, as the answer without success that it stands for: its status and its body. `None` if the message has
/// no code: then nothing has answered.
#[must_use]
pub fn thrown(message: &str) -> Option<(u16, String)> {
    let code = code_in(message)?;
    let status = match Meaning::of(Some(code), 500) {
        Meaning::Refused { status } => status,
        Meaning::TooLong => 413,
        Meaning::Busy | Meaning::UsedUp => 429,
        Meaning::Account => 403,
        Meaning::TimedOut => 408,
        Meaning::Failed => 500,
    };
    Some((status, json!({"errors": [{"code": code, "message": message}]}).to_string()))
}

/// A body that is no JSON, if it is short enough to be a message.
fn plain(body: &[u8]) -> String {
    const MESSAGE_MAX: usize = 300;
    let text = core::str::from_utf8(body).unwrap_or_default().trim();
    if text.len() <= MESSAGE_MAX && !text.starts_with('<') { text.to_owned() } else { String::new() }
}

/// The first known code in a text: a number with a colon behind it.
fn code_in(text: &str) -> Option<u64> {
    let mut numbers = text.match_indices(':').filter_map(|(colon, _)| {
        let before = text.get(..colon)?;
        let start = before.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
        before.get(start..)?.parse::<u64>().ok()
    });
    numbers.find(|number| MEANINGS.iter().any(|(code, _)| code == number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_saying_an_error_is_read() {
        let bodies = [
            (r#"{"internalCode":3040,"description":"No room","name":"AiError","message":"x"}"#, Some(3040), "No room"),
            (
                r#"{"errors":[{"code":5007,"message":"No such model"}],"success":false,"result":{}}"#,
                Some(5007),
                "No such model",
            ),
            (
                r#"{"errors":[{"message":"AiError: Bad input: Error: 5006: oneOf"}]}"#,
                Some(5006),
                "AiError: Bad input: Error: 5006: oneOf",
            ),
            (r#"{"error":{"message":"no","code":"3036"}}"#, Some(3036), "no"),
            (r#"{"error":"no"}"#, None, ""),
            ("3040: Capacity temporarily exceeded", Some(3040), "3040: Capacity temporarily exceeded"),
            ("<html>", None, ""),
            ("[]", None, ""),
            ("", None, ""),
            ("\u{fffd}", None, "\u{fffd}"),
        ];
        for (body, code, message) in bodies {
            assert_eq!(AiError::read(body.as_bytes()), AiError { code, message: message.to_owned() }, "{body}");
        }
    }

    #[test]
    fn every_documented_code_has_its_meaning() {
        use Meaning::{Account, Busy, Failed, Refused, TimedOut, TooLong, UsedUp};
        let documented = [
            (5007, 400, Refused { status: 400 }),
            (5004, 400, Refused { status: 400 }),
            (3039, 400, Refused { status: 400 }),
            (3003, 400, Refused { status: 400 }),
            (5018, 403, Account),
            (5016, 403, Account),
            (3023, 403, Account),
            (3041, 403, Account),
            (5019, 405, Failed),
            (5005, 405, Refused { status: 400 }),
            (3042, 404, Refused { status: 404 }),
            (3006, 413, Refused { status: 413 }),
            (3007, 408, TimedOut),
            (3008, 408, Failed),
            (3036, 429, UsedUp),
            (3040, 429, Busy),
            (5006, 400, Refused { status: 400 }),
            (5021, 413, TooLong),
        ];
        for (code, status, meaning) in documented {
            assert_eq!(Meaning::of(Some(code), status), meaning, "{code}");
            // The binding may answer another status, or throw.
            assert_eq!(Meaning::of(Some(code), 500), meaning, "{code}");
            let (status, body) = thrown(&format!("AiError: {code}: why")).unwrap();
            let read = AiError::read(body.as_bytes());
            assert_eq!(Meaning::of(read.code, status), meaning, "{code}");
        }
        for (status, meaning) in [
            (200, Failed),
            (400, Refused { status: 400 }),
            (401, Account),
            (403, Account),
            (408, TimedOut),
            (422, Refused { status: 422 }),
            (429, Busy),
            (500, Failed),
            (503, Failed),
        ] {
            assert_eq!((Meaning::of(None, status), Meaning::of(Some(1), status)), (meaning, meaning), "{status}");
        }
    }

    #[test]
    fn a_code_is_a_known_number_before_a_colon() {
        let codes = [
            ("3040: Capacity", Some(3040)),
            ("InferenceUpstreamError: 3036: used up", Some(3036)),
            ("request 4711: AiError: 5007: No such model", Some(5007)),
            ("13040: no", None),
            ("took 3040 ms", None),
            ("ends with 3040", None),
            ("99999999999999999999999: no", None),
            ("é: : 3040:", Some(3040)),
        ];
        for (text, code) in codes {
            assert_eq!(thrown(text).map(|(_, body)| AiError::read(body.as_bytes()).code), code.map(Some), "{text}");
        }
    }
}
