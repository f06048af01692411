//! `POST /v1/responses`: items instead of messages, a stream whose last event is the answer itself.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::bad_request::{BadRequest, unsupported};
use super::json::{Members, object};
use super::reply::{Answer, Chunk, OutputCounter, is_list, output_in};
use super::rules::{CapRule, Dialect, ErrorEvent, Family, PartKind, PromptShape, ReplyRules, RequestRules};
use super::seen::Seen;
use crate::pricing::Quantities;

/// The dialect.
pub static RESPONSES: Dialect = Dialect {
    path: "/v1/responses",
    family: Family::OpenAi,
    request: RequestRules {
        prompt: &[
            ("input", PromptShape::Items),
            ("previous_response_id", PromptShape::Unseen),
            ("conversation", PromptShape::Unseen),
            ("prompt", PromptShape::Unseen),
        ],
        not_read: &[
            "background",
            "include",
            "max_tool_calls",
            "metadata",
            "parallel_tool_calls",
            "prompt_cache_key",
            "prompt_cache_retention",
            "reasoning",
            "safety_identifier",
            "service_tier",
            "store",
            "stream",
            "stream_options",
            "temperature",
            "top_logprobs",
            "top_p",
            "truncation",
            "user",
        ],
        parts: &[
            ("image_url", PartKind::Image),
            ("input_audio", PartKind::Audio),
            ("file_data", PartKind::File),
            ("file_url", PartKind::File),
            ("file_id", PartKind::File),
        ],
        caps: &["max_output_tokens"],
        cap: CapRule::Field("max_output_tokens"),
        decisive: &["background", "instructions", "max_tool_calls", "service_tier", "tools"],
        unbounded: &[(
            "context_management",
            "making a conversation shorter reads it once more, which no limit here can see before",
        )],
        tool_calls_cap: Some("max_tool_calls"),
        extra: Some(check),
        ..RequestRules::NONE
    },
    reply: ReplyRules { whole, event, raw: false, error_event: ErrorEvent::Numbered, has_usage: true },
};

fn check(members: &Members<'_>) -> Result<Quantities, BadRequest> {
    let is_true = |name: &str| members.get(name).is_some_and(|member| member.value.get() == "true");
    if is_true("background") && is_true("stream") {
        let why = "`background` is not supported together with `stream`: it goes on when its client has left";
        return Err(unsupported("background", why.to_owned()));
    }
    Ok(Quantities::default())
}

fn whole(answer: &Answer<'_>, counter: &mut OutputCounter) -> Option<Seen> {
    // One that is still queued has no output yet, or an empty one.
    let is_going = || Progress::of(answer.status) == Some(Progress::Going);
    (is_list(answer.output) || is_going()).then(|| output_in(answer.output, counter))
}

/// Text comes in events called `….delta`; the last event holds the whole answer, which was counted by then.
fn event(answer: &Answer<'_>, counter: &mut OutputCounter, chunk: &mut Chunk) {
    match answer.kind().unwrap_or_default().as_ref() {
        "response.completed" | "response.incomplete" => chunk.done = true,
        "response.failed" | "response.cancelled" | "error" => chunk.error = true,
        kind if kind.rsplit('.').next() == Some("delta") => chunk.seen.add(output_in(answer.delta, counter)),
        _ => {}
    }
}

/// The longest id that a call is fetched by. Providers' are 50 to 60 bytes.
const ID_MAX: usize = 128;

/// Whether a text may be the id of a call: it becomes a part of an upstream's address.
#[must_use]
pub fn is_id(text: &str) -> bool {
    (1..=ID_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It goes on: queued, in progress, or whatever else is no end.
    Going,
    /// It has ended with an answer, whole or not.
    Ended,
    /// It has failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Progress {
    /// Reads `status`; nothing if that says nothing.
    fn of(status: Option<&RawValue>) -> Option<Self> {
        let status: Cow<'_, str> = serde_json::from_str(status?.get()).ok()?;
        Some(match status.as_ref() {
            "completed" | "incomplete" => Self::Ended,
            "failed" => Self::Failed,
            "cancelled" | "canceled" => Self::Cancelled,
            _ => Self::Going,
        })
    }
}

/// What an answer says of its own call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The id that the provider has given the call, if it is one that can be asked for.
    pub id: Option<String>,
    /// How far it has come.
    pub progress: Progress,
}

impl Standing {
    /// Reads it off an answer; `None` if that does not say how far the call has come.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        #[derive(Default, Deserialize)]
        #[serde(default, bound(deserialize = "'de: 'b"))]
        struct Fields<'b> {
            id: Option<&'b RawValue>,
            status: Option<&'b RawValue>,
        }
        let fields: Fields<'_> = object(core::str::from_utf8(body).ok()?)?;
        let id = fields.id.and_then(|id| serde_json::from_str::<String>(id.get()).ok());
        Some(Self { id: id.filter(|id| is_id(id)), progress: Progress::of(fields.status)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::reply::{Completion, NotACompletion};

    fn standing(body: &str) -> Option<(Option<String>, Progress)> {
        Standing::read(body.as_bytes()).map(|standing| (standing.id, standing.progress))
    }

    #[test]
    fn how_far_a_call_has_come_is_what_its_provider_says() {
        let words = [
            ("queued", Progress::Going),
            ("in_progress", Progress::Going),
            ("not known yet", Progress::Going),
            ("completed", Progress::Ended),
            ("incomplete", Progress::Ended),
            ("failed", Progress::Failed),
            ("cancelled", Progress::Cancelled),
        ];
        for (word, progress) in words {
            let body = format!(r#" {{"id":"resp_1","output":[{{"id":"x","status":"completed"}}],"status":"{word}"}}"#);
            assert_eq!(standing(&body), Some((Some("resp_1".to_owned()), progress)));
        }
        for body in ["", "[]", "{}", r#"{"id":"a"}"#, r#"{"status":null}"#, r#"{"status":1}"#, r#"{"status":"failed"#] {
            assert_eq!(standing(body), None, "{body}");
        }
    }

    #[test]
    fn an_id_becomes_part_of_an_address_only_if_it_cannot_change_its_meaning() {
        assert!(is_id("resp_68a1-B") && is_id(&"a".repeat(128)));
        for id in ["", ".", "..", "a/b", "a?b", "a#b", "a%2e", "a b", "a\\b", "é", "a\n", &"a".repeat(129)] {
            assert!(!is_id(id), "{id}");
            let body = serde_json::json!({"id": id, "status": "queued"}).to_string();
            assert_eq!(standing(&body), Some((None, Progress::Going)), "{id}");
        }
    }

    #[test]
    fn an_answer_without_output_is_one_only_while_the_call_goes_on() {
        let read = |body: &str| Completion::read(&RESPONSES.reply, body.as_bytes(), &mut OutputCounter::new(None));
        for output in ["", r#","output":null"#, r#","output":[]"#] {
            let body = format!(r#"{{"id":"resp_1","status":"queued","usage":null,"error":null{output}}}"#);
            assert_eq!(read(&body), Ok(Completion::default()), "{body}");
        }
        assert_eq!(read(r#"{"id":"resp_1","status":"completed"}"#), Err(NotACompletion::Invalid));
        assert_eq!(read(r#"{"id":"resp_1"}"#), Err(NotACompletion::Invalid));
    }
}
