//! From a native stream to OpenAI's.
//!
//! Invariant: each event becomes chunks of one completion, however the stream is cut; what is in OpenAI's shape already
//! passes untouched. A reason to stop is written only when the stream says that it has ended.

use serde_json::value::RawValue;

use super::Stamp;
use super::answer::{said, text};
use super::tools::ToolCall;
use crate::dialect::json::quoted;
use crate::dialect::members::members;
use crate::dialect::sse::{Frame, Framer, fields};

/// What is looked for in an event: what only OpenAI's have, then what native ones have.
const NAMES: [&str; 9] =
    ["choices", "error", "object", "type", "response", "tool_calls", "usage", "finish_reason", "errors"];
/// The end marker, as both APIs write it.
const DONE: &str = "data: [DONE]\n\n";

/// A stream on its way from one API to the other.
#[derive(Debug)]
pub struct Events {
    framer: Framer,
    state: State,
    out: Vec<u8>,
}

/// How a native stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No native event has come.
    Silent,
    /// It is going on.
    Going,
    /// The reason to stop has been written.
    Ended,
    /// An event was too large to be read, so the rest of the stream has no meaning.
    Lost,
}

/// All of it but the framer, which is borrowed while it shows frames.
#[derive(Debug)]
struct State {
    stamp: Stamp,
    stage: Stage,
    /// How many calls of tools have begun.
    tools: u64,
    /// The reason to stop, in JSON, if one was given.
    reason: Option<String>,
    /// The last usage, in JSON.
    usage: Option<String>,
    /// The last event had nothing but usage.
    usage_alone: bool,
    /// The last frame passed as it was, so what belongs to its end passes too.
    passed: bool,
}

impl Events {
    /// A stream whose chunks say this of themselves.
    #[must_use]
    pub fn new(stamp: Stamp) -> Self {
        let state = State {
            stamp,
            stage: Stage::Silent,
            tools: 0,
            reason: None,
            usage: None,
            usage_alone: false,
            passed: true,
        };
        Self { framer: Framer::default(), state, out: Vec::new() }
    }

    /// A stream of these events, and no more.
    #[must_use]
    pub fn ready(out: Vec<u8>) -> Self {
        Self { out, ..Self::new(Stamp::default()) }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let (state, out) = (&mut self.state, &mut self.out);
        self.framer.push(bytes, |frame| state.take(frame, out));
    }

    /// Takes the end of the connection.
    pub fn finish(&mut self) {
        let (state, out) = (&mut self.state, &mut self.out);
        self.framer.finish(|frame| state.take(frame, out));
        // Some models end with their usage and say no more.
        if state.stage == Stage::Going && state.usage_alone {
            state.end(out);
            out.extend_from_slice(DONE.as_bytes());
        }
    }

    /// What is ready to be sent on.
    #[must_use]
    pub fn take_out(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }

    /// Whether something was lost that cannot be made up for.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.state.stage == Stage::Lost
    }
}

impl State {
    fn take(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) {
        match frame {
            Frame::LineFeed(bytes) if self.passed => out.extend_from_slice(bytes),
            // A gist has gone by already.
            Frame::LineFeed(_) | Frame::Gist(_) => {}
            Frame::Oversize(_) if self.stage != Stage::Silent => self.stage = Stage::Lost,
            Frame::Comment(bytes) | Frame::Oversize(bytes) => {
                self.passed = true;
                out.extend_from_slice(bytes);
            }
            Frame::Event(bytes) => {
                let data = fields(bytes).data;
                self.passed = !data.is_some_and(|data| self.event(data.trim(), out));
                if self.passed {
                    out.extend_from_slice(bytes);
                }
            }
        }
    }

    /// Takes an event by its data; false if it is to pass as it is.
    fn event(&mut self, data: &str, out: &mut Vec<u8>) -> bool {
        if data == "[DONE]" {
            self.end(out);
            return false;
        }
        let Some([choices, error, object, kind, response, calls, usage, reason, errors]) = members(data, NAMES) else {
            return false;
        };
        if choices.or(error).or(object).or(kind).is_some() {
            return false;
        }
        if let Some(errors) = errors.filter(|errors| response.is_none() && !matches!(errors.get(), "[]" | "null")) {
            out.extend_from_slice(error_event(errors).as_bytes());
            return true;
        }
        if response.or(calls).or(usage).or(reason).is_some() {
            self.native(response, calls, out);
            self.usage = said(usage).map(str::to_owned).or(self.usage.take());
            self.reason =
                reason.map(RawValue::get).filter(|why| why.starts_with('"')).map(str::to_owned).or(self.reason.take());
            self.usage_alone =
                usage.is_some() && is_empty(response) && calls.is_none_or(|calls| matches!(calls.get(), "[]" | "null"));
        }
        true
    }

    /// Takes what a native event adds to the answer.
    fn native(&mut self, response: Option<&RawValue>, calls: Option<&RawValue>, out: &mut Vec<u8>) {
        if self.stage == Stage::Silent {
            self.stage = Stage::Going;
            self.chunk(r#"{"role":"assistant","content":""}"#, "null", out);
        }
        if let Some(response) = response.filter(|_| !is_empty(response)) {
            // A piece of text that looks like a number is sometimes sent as one.
            self.chunk(&format!(r#"{{"content":{}}}"#, text(response.get())), "null", out);
        }
        let calls = calls.map(ToolCall::list).unwrap_or_default();
        let calls: Vec<String> = calls.iter().filter_map(|call| self.call(call)).collect();
        if !calls.is_empty() {
            self.chunk(&format!(r#"{{"tool_calls":[{}]}}"#, calls.join(",")), "null", out);
        }
    }

    fn call(&mut self, call: &ToolCall<'_>) -> Option<String> {
        if let Some(begun) = call.index.filter(|index| *index < self.tools) {
            return call.piece(begun);
        }
        let place = call.index.unwrap_or(self.tools);
        self.tools = place.saturating_add(1);
        Some(call.whole(&self.stamp, place, true))
    }

    /// Writes why the answer has ended, and what it used.
    fn end(&mut self, out: &mut Vec<u8>) {
        if self.stage != Stage::Going {
            return;
        }
        self.stage = Stage::Ended;
        let own = if self.tools > 0 { "\"tool_calls\"" } else { "\"stop\"" };
        let reason = self.reason.take().unwrap_or_else(|| own.to_owned());
        self.chunk("{}", &reason, out);
        if let Some(usage) = self.usage.take() {
            self.write(&format!(r#""choices":[],"usage":{usage}"#), out);
        }
    }

    fn chunk(&self, delta: &str, reason: &str, out: &mut Vec<u8>) {
        self.write(&format!(r#""choices":[{{"index":0,"delta":{delta},"finish_reason":{reason}}}]"#), out);
    }

    fn write(&self, members: &str, out: &mut Vec<u8>) {
        let Stamp { id, created, model, .. } = &self.stamp;
        let about = format!(r#""id":"chatcmpl-{id}","object":"chat.completion.chunk","created":{created}"#);
        out.extend_from_slice(format!("data: {{{about},\"model\":{},{members}}}\n\n", quoted(model)).as_bytes());
    }
}

fn is_empty(response: Option<&RawValue>) -> bool {
    response.is_none_or(|response| matches!(response.get(), "null" | "\"\""))
}

/// An error in the middle of a stream, as OpenAI's clients find one.
fn error_event(errors: &RawValue) -> String {
    let error = super::errors::AiError::read(format!("{{\"errors\":{}}}", errors.get()).as_bytes());
    let code = error.code.map_or_else(|| "null".to_owned(), |code| format!("\"{code}\""));
    let message = quoted(&error.message);
    format!(
        "data: {{\"error\":{{\"message\":{message},\"type\":\"server_error\",\"param\":null,\"code\":{code}}}}}\n\n"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::*;

    fn stamp() -> Stamp {
        Stamp { id: "7f".to_owned(), created: 5, model: "m".to_owned(), prompt: 0 }
    }

    fn streamed(stream: &[u8], size: usize) -> String {
        let mut events = Events::new(stamp());
        let mut out = Vec::new();
        for piece in stream.chunks(size.max(1)) {
            events.push(piece);
            out.extend(events.take_out());
        }
        events.finish();
        out.extend(events.take_out());
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The deltas and reasons of the chunks, the usage, and whatever else came out, one a line.
    fn short(out: &str) -> Vec<String> {
        let start = r#"data: {"id":"chatcmpl-7f","object":"chat.completion.chunk","created":5,"model":"m","choices":["#;
        let line = |event: &str| {
            let Some(rest) = event.strip_prefix(start) else { return event.to_owned() };
            let choice = rest.strip_prefix(r#"{"index":0,"delta":"#).and_then(|rest| rest.strip_suffix("}]}"));
            choice.map_or(rest.to_owned(), |choice| choice.replace(",\"finish_reason\":", " ").replace(" null", ""))
        };
        out.split("\n\n").filter(|event| !event.is_empty()).map(line).collect()
    }

    fn events(data: &[&str]) -> Vec<String> {
        let stream = format!("data: {}\n\n", data.join("\n\ndata: "));
        short(&streamed(stream.as_bytes(), 10_000))
    }

    const ROLE: &str = r#"{"role":"assistant","content":""}"#;
    const USAGE: &str = r#"{"response":"","usage":{"prompt_tokens":4,"completion_tokens":3}}"#;
    const USED: &str = r#"],"usage":{"prompt_tokens":4,"completion_tokens":3}}"#;

    #[test]
    fn native_events_become_chunks_of_one_completion() {
        let seen = events(&[
            r#"{"response":"Vo","p":"abc"}"#,
            r#"{"response":7,"tool_calls":[]}"#,
            r#"{"p":"x"}"#,
            USAGE,
            "[DONE]",
        ]);
        assert_eq!(seen, [ROLE, r#"{"content":"Vo"}"#, r#"{"content":"7"}"#, r#"{} "stop""#, USED, "data: [DONE]"]);
    }

    #[test]
    fn an_end_is_told_only_where_there_is_one() {
        let text = r#"{"response":"a"}"#;
        assert_eq!(events(&[text]), [ROLE, r#"{"content":"a"}"#]);
        assert_eq!(events(&[text, "[DONE]"]), [ROLE, r#"{"content":"a"}"#, r#"{} "stop""#, "data: [DONE]"]);
        assert_eq!(events(&[text, USAGE]), [ROLE, r#"{"content":"a"}"#, r#"{} "stop""#, USED, "data: [DONE]"]);
        let running = r#"{"response":"a","usage":{"prompt_tokens":4}}"#;
        assert_eq!(events(&[USAGE, running]), [ROLE, r#"{"content":"a"}"#]);
        let cut = r#"{"response":"b","finish_reason":"length"}"#;
        assert_eq!(events(&[cut, "[DONE]"]), [ROLE, r#"{"content":"b"}"#, r#"{} "length""#, "data: [DONE]"]);
    }

    #[test]
    fn calls_of_tools_come_whole_or_in_pieces() {
        let flat = r#"{"response":"","tool_calls":[{"name":"f","arguments":{"a":1}},{"name":"g","arguments":{}}]}"#;
        let want = concat!(
            r#"{"tool_calls":[{"index":0,"id":"call_7f_0","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},"#,
            r#"{"index":1,"id":"call_7f_1","type":"function","function":{"name":"g","arguments":"{}"}}]}"#
        );
        assert_eq!(events(&[flat, "[DONE]"]), [ROLE, want, r#"{} "tool_calls""#, "data: [DONE]"]);
        let pieces = [
            r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":""}}]}"#,
        ];
        let want = [
            ROLE,
            r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}"#,
        ];
        assert_eq!(events(&pieces), want);
    }

    #[test]
    fn what_is_openais_or_not_to_be_understood_passes_untouched() {
        let stream = ": hi\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"x\":1.0}\r\n\r\nevent: e\ndata: no\n\n\
                      data: {\"error\":{\"message\":\"no\"}}\n\ndata: [DONE]\r\n\r\n";
        for size in [1, 3, 10_000] {
            assert_eq!(streamed(stream.as_bytes(), size), stream);
        }
        assert_eq!(streamed(b"data: [DONE]\n\n", 4), "data: [DONE]\n\n");
    }

    #[test]
    fn errors_are_told_as_errors() {
        let error = r#"{"errors":[{"code":3040,"message":"No room"}],"success":false}"#;
        let want = r#"data: {"error":{"message":"No room","type":"server_error","param":null,"code":"3040"}}"#;
        assert_eq!(events(&[error]), [want]);
    }

    #[test]
    fn an_event_beyond_the_bound_is_a_loss() {
        let mut events = Events::new(stamp());
        events.push(b"data: {\"response\":\"a\"}\n\ndata: {\"response\":\"");
        for _ in 0..400 {
            events.push(&[b'x'; 1_000]);
        }
        assert!(events.is_lost());
        assert!(events.take_out().len() < 500);
    }

    fn event() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z\"\\\\{}é]{0,6}".prop_map(|text| format!("data: {{\"response\":{}}}\n\n", quoted(&text))),
            Just(format!("data: {USAGE}\n\n")),
            Just("data: {\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"a\":1}}]}\n\n".to_owned()),
            Just("data: {\"tool_calls\":[{\"index\":18446744073709551615,\"id\":\"a\"}]}\r\n\r\n".to_owned()),
            Just("data: {\"choices\":[]}\r\n\r\n".to_owned()),
            Just("data: [DONE]\r\r".to_owned()),
            Just(": c\n\n".to_owned()),
            "(data: ?)?[\\[\\]{}:,\"a-z0-9]{0,12}(\n|\r|\r\n){0,2}",
        ]
    }

    proptest! {
        #[test]
        fn it_is_the_same_however_it_is_cut(parts in prop::collection::vec(event(), 0..12), size in 1_usize..40) {
            let stream = parts.concat();
            prop_assert_eq!(short(&streamed(stream.as_bytes(), size)), short(&streamed(stream.as_bytes(), usize::MAX)));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1_usize..20) {
            streamed(&bytes, size);
            let stamp = stamp();
            for operation in [super::super::Operation::Chat, super::super::Operation::Embeddings] {
                let _ = super::super::whole(operation, &bytes, &stamp, true);
                let _ = super::super::input(operation, &bytes);
            }
            let _ = super::super::errors::AiError::read(&bytes);
        }

        #[test]
        fn texts_come_out_as_they_went_in(texts in prop::collection::vec("[^\u{0}]{1,8}", 1..10), size in 1_usize..30) {
            let native = |text: &String| format!("data: {{\"response\":{},\"p\":\"ab\"}}\n\n", quoted(text));
            let stream: String = texts.iter().map(native).chain(["data: [DONE]\n\n".to_owned()]).collect();
            let out = streamed(stream.as_bytes(), size);
            let mut seen = String::new();
            for data in out.split("\n\n").filter_map(|event| event.strip_prefix("data: {")) {
                let chunk: serde_json::Value = serde_json::from_str(&format!("{{{data}")).unwrap();
                seen.push_str(chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
            }
            prop_assert_eq!(seen, texts.concat());
            prop_assert!(out.ends_with("data: [DONE]\n\n"));
        }
    }
}
