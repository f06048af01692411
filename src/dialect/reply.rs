//! What we read of an answer, whole or event by event, whatever its dialect.
//!
//! Invariant: an event that cannot be read is passed over, not trusted and not fatal.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::members::members;
use super::rules::ReplyRules;
use super::seen::seen_in;
pub use super::seen::{OutputCounter, Seen};
use super::usage::{Usage, UsagePlaces};

/// The members of a whole answer or of an event that any dialect looks at.
pub struct Answer<'b> {
    error: Option<&'b RawValue>,
    kind: Option<&'b RawValue>,
    pub(super) choices: Option<&'b RawValue>,
    pub(super) output: Option<&'b RawValue>,
    pub(super) content: Option<&'b RawValue>,
    pub(super) data: Option<&'b RawValue>,
    pub(super) delta: Option<&'b RawValue>,
    pub(super) results: Option<&'b RawValue>,
    pub(super) text: Option<&'b RawValue>,
    duration: Option<&'b RawValue>,
    pub(super) input_tokens: Option<&'b RawValue>,
    pub(super) status: Option<&'b RawValue>,
    places: UsagePlaces<'b>,
}

impl<'b> Answer<'b> {
    /// Reads the members of an object; `None` if it is none.
    fn read(json: &'b str) -> Option<Self> {
        const NAMES: [&str; 18] = [
            "error",
            "type",
            "choices",
            "output",
            "content",
            "data",
            "delta",
            "results",
            "text",
            "duration",
            "input_tokens",
            "status",
            "usage",
            "x_groq",
            "response",
            "message",
            "result",
            "service_tier",
        ];
        let [error, kind, choices, output, content, data, delta, results, text, duration, rest @ ..] =
            members(json, NAMES)?;
        let [input_tokens, status, places @ ..] = rest;
        let [usage, x_groq, response, message, result, service_tier] = places;
        let places = UsagePlaces { usage, x_groq, response, message, result, service_tier };
        Some(Self {
            error,
            kind,
            choices,
            output,
            content,
            data,
            delta,
            results,
            text,
            duration,
            input_tokens,
            status,
            places,
        })
    }

    /// The value of `type`: what kind of event or answer it is.
    #[must_use]
    pub fn kind(&self) -> Option<Cow<'_, str>> {
        serde_json::from_str(self.kind?.get()).ok()
    }

    /// The usage, wherever the provider puts it.
    fn usage(&self) -> Option<Usage> {
        self.places.find()
    }

    /// What a transcript without usage says of how long its sound was.
    fn heard(&self) -> Option<Usage> {
        let seconds = self.duration.filter(|_| self.text.is_some())?;
        Usage::read(&format!(r#"{{"type":"duration","seconds":{}}}"#, seconds.get())).filter(Usage::says_something)
    }

    fn has_error(&self) -> bool {
        self.error.is_some_and(|error| !matches!(error.get(), "null" | "false" | "\"\""))
    }
}

/// What one event of a stream says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The end marker.
    pub done: bool,
    /// An error.
    pub error: bool,
    /// The usage so far.
    pub usage: Option<Usage>,
    /// Nothing but usage: the event that `include_usage` asks for.
    pub usage_only: bool,
    /// Which candidates end with it.
    pub finished: Vec<u64>,
    /// Output in it.
    pub seen: Seen,
}

impl Chunk {
    /// Reads an event of a stream by its name and data.
    #[must_use]
    pub fn read(rules: &ReplyRules, event: Option<&str>, data: &str, counter: &mut OutputCounter) -> Self {
        let data = data.trim();
        if data == "[DONE]" {
            return Self { done: true, ..Self::default() };
        }
        let error_event = event == Some("error");
        let Some(answer) = Answer::read(data) else {
            return Self { error: error_event, ..Self::default() };
        };
        let usage = answer.usage();
        let mut chunk = Self {
            error: error_event || answer.has_error(),
            usage_only: usage.is_some() && answer.choices.is_some_and(|list| is_empty_list(list.get())),
            usage,
            ..Self::default()
        };
        (rules.event)(&answer, counter, &mut chunk);
        chunk
    }

    /// Takes one choice, the one at `place` of the list: where it has no usable index, that is its number.
    fn choice(&mut self, json: &str, place: u64, counter: &mut OutputCounter) {
        let Some([index, delta, text, reason]) = members(json, ["index", "delta", "text", "finish_reason"]) else {
            return self.seen.add(seen_in(json, counter));
        };
        for part in [delta, text].into_iter().flatten() {
            self.seen.add(seen_in(part.get(), counter));
        }
        if reason.is_some_and(|reason| reason.get() != "null") {
            self.finished.push(index.and_then(|index| index.get().parse().ok()).unwrap_or(place));
        }
    }
}

/// What a whole answer says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The usage, if said.
    pub usage: Option<Usage>,
    /// The output in it.
    pub seen: Seen,
}

/// Why a whole answer is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotACompletion {
    /// It is not what the dialect answers.
    Invalid,
    /// It is an error in the clothes of a success.
    Error,
}

impl Completion {
    /// Reads a whole answer.
    ///
    /// # Errors
    /// If it is none, or an error that says of no usage. One that does has cost something, and passes.
    pub fn read(rules: &ReplyRules, body: &[u8], counter: &mut OutputCounter) -> Result<Self, NotACompletion> {
        let body = core::str::from_utf8(body).map_err(|_| NotACompletion::Invalid)?;
        let answer = Answer::read(body).ok_or(NotACompletion::Invalid)?;
        let usage = answer.usage().or_else(|| answer.heard().filter(|_| rules.raw));
        if answer.has_error() && (usage.is_none() || answer.output.is_none()) {
            return Err(NotACompletion::Error);
        }
        let seen = (rules.whole)(&answer, counter).ok_or(NotACompletion::Invalid)?;
        Ok(Self { usage, seen })
    }

    /// Reads an answer that is passed on even if it is a failure: what was used, and what was written until then.
    #[must_use]
    pub fn read_any(rules: &ReplyRules, body: &[u8], counter: &mut OutputCounter) -> Self {
        let answer = core::str::from_utf8(body).ok().and_then(Answer::read);
        let Some(answer) = answer else { return Self::default() };
        Self { usage: answer.usage(), seen: (rules.whole)(&answer, counter).unwrap_or_default() }
    }
}

/// Reads the choices of a whole answer.
pub(super) fn choices_of_whole(answer: &Answer<'_>, counter: &mut OutputCounter) -> Option<Seen> {
    is_list(answer.choices).then(|| output_in(answer.choices, counter))
}

/// Reads the choices of an event.
pub(super) fn choices_of_event(answer: &Answer<'_>, counter: &mut OutputCounter, chunk: &mut Chunk) {
    let list = answer.choices.map_or("[]", RawValue::get);
    match serde_json::from_str::<Vec<&RawValue>>(list) {
        Ok(choices) => {
            for (choice, place) in choices.iter().zip(0..) {
                chunk.choice(choice.get(), place, counter);
            }
        }
        // Not a list, so nothing in it can be told apart; its length still counts.
        Err(_) => chunk.seen.add(seen_in(list, counter)),
    }
}

/// The output in a member, if it is there.
pub(super) fn output_in(member: Option<&RawValue>, counter: &mut OutputCounter) -> Seen {
    member.map_or_else(Seen::default, |member| seen_in(member.get(), counter))
}

/// Whether a member is there and a list.
pub(super) fn is_list(member: Option<&RawValue>) -> bool {
    member.is_some_and(|member| member.get().starts_with('['))
}

fn is_empty_list(json: &str) -> bool {
    json.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|inside| inside.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::chat::CHAT;
    use crate::limit::Tokens;
    use crate::tokens::Encoding;

    fn read(event: Option<&str>, data: &str) -> Chunk {
        Chunk::read(&CHAT.reply, event, data, &mut OutputCounter::new(Some(Encoding::O200k)))
    }

    fn whole(body: &[u8]) -> Result<Completion, NotACompletion> {
        Completion::read(&CHAT.reply, body, &mut OutputCounter::new(None))
    }

    #[test]
    fn a_chunk_says_what_is_in_it() {
        let role = read(
            None,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
        );
        assert_eq!(role, Chunk::default());
        let text = read(None, r#"{"choices":[{"index":1,"delta":{"content":"caf\u00e9"},"finish_reason":"stop"}]}"#);
        assert_eq!((text.seen.tokens(), text.finished), (Tokens(2), vec![1]));
        let tool = read(
            None,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"f","arguments":"{}"}}]}}]}"#,
        );
        assert_eq!(tool.seen, Seen::of(2));
        assert!(read(None, " [DONE] ").done);
    }

    #[test]
    fn only_an_event_of_nothing_but_usage_is_the_one_that_was_asked_for() {
        let only = |data| read(None, data).usage_only;
        assert!(only(r#"{"choices":[ ],"usage":{"prompt_tokens":1}}"#));
        assert!(!only(r#"{"choices":[],"prompt_filter_results":[]}"#));
        assert!(!only(r#"{"choices":[],"usage":null}"#));
        assert!(!only(r#"{"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":1}}"#));
    }

    #[test]
    fn usage_is_found_wherever_it_is_put() {
        for data in [
            r#"{"usage":{"prompt_tokens":7,"completion_tokens":1}}"#,
            r#"{"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":1}}}"#,
            r#"{"response":{"usage":{"input_tokens":7,"output_tokens":1}},"usage":null}"#,
        ] {
            assert_eq!(read(None, data).usage.and_then(|usage| usage.input()), Some(Tokens(7)), "{data}");
        }
    }

    #[test]
    fn a_choice_that_is_not_quite_one_still_counts() {
        for choice in [
            r#"{"index":null,"delta":{"content":"Volga"},"finish_reason":"stop"}"#,
            r#"{"index":"0","delta":{"content":"Volga"},"finish_reason":"stop"}"#,
            r#"{"index":0.0,"delta":{"content":"Volga"},"finish_reason":"stop"}"#,
        ] {
            let chunk = read(None, &format!(r#"{{"choices":[{choice}]}}"#));
            assert_eq!((chunk.seen, chunk.finished), (Seen::of(2), vec![0]), "{choice}");
        }
        for choices in [r#"["Volga"]"#, r#"{"0":"Volga"}"#, r#""Volga""#] {
            let chunk = read(None, &format!(r#"{{"choices":{choices}}}"#));
            assert_eq!(chunk.seen.tokens(), Tokens(2), "{choices}");
        }
        let halves = read(None, r#"{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}"#);
        assert_eq!(halves.seen.tokens(), Tokens(7));
        assert_eq!(read(None, "[1,2]"), Chunk::default());
        assert_eq!(read(None, r#"{"usage":[1,2,3]}"#).usage, None);
    }

    #[test]
    fn errors_are_told_from_chunks() {
        assert!(read(None, r#"{"error":{"message":"no"}}"#).error);
        assert!(read(Some("error"), "no json").error);
        assert!(!read(None, r#"{"error":null,"choices":[]}"#).error);
        assert!(!read(None, r#"{"choices":[{"delta":{"cont"#).error);
    }

    #[test]
    fn a_whole_answer_is_a_json_object_with_choices() {
        let ok = whole(br#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Volga"}}]}"#);
        assert_eq!(ok.map(|completion| completion.seen.tokens()), Ok(Tokens(2)));
        for body in
            ["", "[]", "[1,2]", "[null,[{}],[9,0,4]]", "{}", "<html>", r#"{"choices":null}"#, r#"{"choices":[{"mess"#]
        {
            assert_eq!(whole(body.as_bytes()), Err(NotACompletion::Invalid), "{body}");
        }
        assert_eq!(whole(br#"{"error":{"code":1302},"choices":[]}"#), Err(NotACompletion::Error));
    }
}
