//! What we read of a chat completion, whole or chunk by chunk.
//!
//! Invariant: an event that cannot be read is passed over, not trusted and not fatal; what was written is known at
//! least by its length, so an answer without usage is never free.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::object;
use super::texts::{TextSink, walk};
use super::usage::{Usage, UsagePlaces};
use crate::limit::Tokens;
use crate::tokens::{Encoding, WorkBudget, count_within};

/// Bytes to a token where no vocabulary counts: between English (4) and what is dense (2).
const BYTES_PER_TOKEN: u64 = 3;
/// How much work counting one answer may be.
const STEPS_MAX: u64 = 400_000;

/// Counts the output of one answer, in case its provider does not.
#[derive(Clone, Debug)]
pub struct OutputCounter {
    encoding: Option<Encoding>,
    budget: WorkBudget,
}

impl OutputCounter {
    /// A counter by a vocabulary, or by bytes.
    #[must_use]
    pub fn new(encoding: Option<Encoding>) -> Self {
        Self { encoding, budget: WorkBudget::new(STEPS_MAX) }
    }

    fn count(&mut self, text: &str) -> u64 {
        let counted = self.encoding.and_then(|encoding| count_within(encoding, text, &mut self.budget).exact());
        counted.unwrap_or((text.len() as u64).div_ceil(BYTES_PER_TOKEN))
    }
}

/// What was seen of an answer's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Tokens of text, tool calls and reasoning.
    tokens: u64,
    /// Pieces that had any: at least a token each.
    pieces: u64,
}

impl Seen {
    /// Whether any output was seen.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.pieces > 0
    }

    /// Adds a piece of `bytes` that could not be read.
    pub fn add_unread(&mut self, bytes: usize) {
        self.add(Self { tokens: (bytes as u64).div_ceil(BYTES_PER_TOKEN), pieces: 1 });
    }

    /// How many tokens that is; at least one for each piece.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        Tokens(self.tokens.max(self.pieces))
    }

    /// Adds what another piece has.
    pub fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.pieces += other.pieces;
    }
}

/// A piece of output that is being read.
struct Reading<'c> {
    seen: Seen,
    counter: &'c mut OutputCounter,
}

impl TextSink for Reading<'_> {
    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.seen.tokens = self.seen.tokens.saturating_add(self.counter.count(text));
            self.seen.pieces = 1;
        }
    }

    fn skips(&self, key: &str) -> bool {
        matches!(key, "role" | "id" | "type" | "index" | "finish_reason" | "logprobs" | "content_filter_results")
    }

    fn skipped(&mut self, _: &str, _: bool) {}
}

/// The members of a chunk or of a whole answer that we look at.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'b"))]
struct Members<'b> {
    error: Option<&'b RawValue>,
    choices: Option<&'b RawValue>,
    usage: Option<&'b RawValue>,
    x_groq: Option<&'b RawValue>,
    response: Option<&'b RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'b"))]
struct Choice<'b> {
    index: Option<&'b RawValue>,
    delta: Option<&'b RawValue>,
    text: Option<&'b RawValue>,
    finish_reason: Option<&'b RawValue>,
}

impl Members<'_> {
    /// The usage, wherever the provider puts it.
    fn usage(&self) -> Option<Usage> {
        let Self { usage, x_groq, response, .. } = *self;
        UsagePlaces { usage, x_groq, response, ..UsagePlaces::default() }.find()
    }

    fn has_error(&self) -> bool {
        self.error.is_some_and(|error| !matches!(error.get(), "null" | "false" | "\"\""))
    }
}

/// The output in a piece of JSON.
fn seen_in(json: &str, counter: &mut OutputCounter) -> Seen {
    let mut reading = Reading { seen: Seen::default(), counter };
    // A raw value is JSON already.
    let _ = walk(json, &mut reading);
    reading.seen
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
    pub fn read(event: Option<&str>, data: &str, counter: &mut OutputCounter) -> Self {
        let data = data.trim();
        if data == "[DONE]" {
            return Self { done: true, ..Self::default() };
        }
        let error_event = event == Some("error");
        let Some(members) = object::<Members<'_>>(data) else {
            return Self { error: error_event, ..Self::default() };
        };
        let usage = members.usage();
        let mut chunk = Self {
            error: error_event || members.has_error(),
            usage_only: usage.is_some() && members.choices.is_some_and(|list| is_empty_list(list.get())),
            usage,
            ..Self::default()
        };
        let list = members.choices.map_or("[]", RawValue::get);
        match serde_json::from_str::<Vec<&RawValue>>(list) {
            Ok(choices) => {
                for (choice, place) in choices.iter().zip(0..) {
                    chunk.choice(choice.get(), place, counter);
                }
            }
            // Not a list, so nothing in it can be told apart; its length still counts.
            Err(_) => chunk.seen.add(seen_in(list, counter)),
        }
        chunk
    }

    /// Takes one choice, the one at `place` of the list: where it has no usable index, that is its number.
    fn choice(&mut self, json: &str, place: u64, counter: &mut OutputCounter) {
        let Some(choice) = object::<Choice<'_>>(json) else {
            return self.seen.add(seen_in(json, counter));
        };
        for part in [choice.delta, choice.text].into_iter().flatten() {
            self.seen.add(seen_in(part.get(), counter));
        }
        if choice.finish_reason.is_some_and(|reason| reason.get() != "null") {
            self.finished.push(choice.index.and_then(|index| index.get().parse().ok()).unwrap_or(place));
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
    /// It is not a JSON object with choices.
    Invalid,
    /// It is an error in the clothes of a success.
    Error,
}

impl Completion {
    /// Reads a whole answer.
    ///
    /// # Errors
    /// If it is not a chat completion.
    pub fn read(body: &[u8], counter: &mut OutputCounter) -> Result<Self, NotACompletion> {
        let body = core::str::from_utf8(body).map_err(|_| NotACompletion::Invalid)?;
        let members: Members<'_> = object(body).ok_or(NotACompletion::Invalid)?;
        if members.has_error() {
            return Err(NotACompletion::Error);
        }
        let choices =
            members.choices.filter(|choices| choices.get().starts_with('[')).ok_or(NotACompletion::Invalid)?;
        Ok(Self { usage: members.usage(), seen: seen_in(choices.get(), counter) })
    }
}

fn is_empty_list(json: &str) -> bool {
    json.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|inside| inside.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(event: Option<&str>, data: &str) -> Chunk {
        Chunk::read(event, data, &mut OutputCounter::new(Some(Encoding::O200k)))
    }

    fn whole(body: &[u8]) -> Result<Completion, NotACompletion> {
        Completion::read(body, &mut OutputCounter::new(None))
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
        assert_eq!(tool.seen, Seen { tokens: 2, pieces: 1 });
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
            assert_eq!((chunk.seen, chunk.finished), (Seen { tokens: 2, pieces: 1 }, vec![0]), "{choice}");
        }
        for choices in [r#"["Volga"]"#, r#"{"0":"Volga"}"#, r#""Volga""#] {
            let chunk = read(None, &format!(r#"{{"choices":{choices}}}"#));
            assert_eq!(chunk.seen.tokens, 2, "{choices}");
        }
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
