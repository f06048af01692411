//! `POST /v1/chat/completions`: what we read of a request, and what we write into it.
//!
//! Invariant: a field that we read is read the way every provider reads it, or the call is refused and the field named:
//! nothing is guessed that decides what a call costs.

use core::ops::Range;

use super::bad_request::{BadRequest, bad, shown};
use super::edit::{Edit, insert_member};
use super::json::{Member, Members};
use super::prompt::{PromptSize, TextCounter};
use super::refused;
use crate::limit::Tokens;

/// The names of the output cap. Of several the largest counts, since providers differ in which one they obey.
const OUTPUT_CAPS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// An output cap as the caller wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OutputCap {
    span: Range<usize>,
    tokens: Tokens,
}

/// What a request for a chat completion says that decides its cost and its route.
#[derive(Clone, Debug)]
pub struct ChatRequest<'b> {
    body: &'b str,
    members: Members<'b>,
    /// The model, as the caller calls it.
    pub model: String,
    model_span: Range<usize>,
    caps: Vec<OutputCap>,
    null_caps: Vec<Range<usize>>,
    /// How many answers are asked for; at least 1.
    pub candidates: u64,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether the caller asked for the usage event.
    pub usage_asked: bool,
    usage_edit: Option<Edit>,
    /// Tokens of a prediction at most: those that turn out wrong are charged as output.
    pub predicted: Tokens,
}

/// What has to be changed in the body before it is forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding<'p> {
    /// The model's real name.
    pub model: &'p str,
    /// The output cap that was held.
    pub output_cap: Tokens,
    /// Under what name a cap is written where the caller gave none.
    pub cap_field: &'p str,
    /// Whether to ask for the usage event of a stream.
    pub ask_usage: bool,
}

impl<'b> ChatRequest<'b> {
    /// Reads a body.
    ///
    /// # Errors
    /// If it is not a chat request, or one whose cost has no bound.
    pub fn read(body: &'b [u8]) -> Result<Self, BadRequest> {
        let (body, members) = Members::of_body(body)?;
        refused::check(&members)?;
        let (model, model_span) = model(body, &members)?;
        let (mut caps, mut null_caps) = (Vec::new(), Vec::new());
        for member in members.0.iter().filter(|member| OUTPUT_CAPS.contains(&&*member.name)) {
            if member.is_null() {
                null_caps.push(member.span(body));
            } else {
                caps.push(OutputCap { span: member.span(body), tokens: Tokens(whole_number(member)?) });
            }
        }
        let stream = flag(&members, "stream")?;
        let (usage_asked, usage_edit) = if stream { usage_option(body, &members)? } else { (false, None) };
        if members.get("messages").is_none() {
            return Err(bad("messages", "`messages` is missing".to_owned()));
        }
        Ok(Self {
            body,
            model,
            model_span,
            caps,
            null_caps,
            candidates: members.get("n").map_or(Ok(1), whole_number)?,
            stream,
            usage_asked,
            usage_edit,
            predicted: Tokens(members.get("prediction").map_or(0, |prediction| prediction.value.get().len() as u64)),
            members,
        })
    }

    /// How large the prompt is; this is the one time that its texts are read.
    ///
    /// # Errors
    /// If `messages` is not a list of messages.
    pub fn prompt(&self, counter: &mut TextCounter) -> Result<PromptSize, BadRequest> {
        PromptSize::of(&self.members, counter).map_err(|_| {
            let messages = self.members.get("messages").map_or("", |messages| messages.value.get());
            // What it is, not what it says: the words of a prompt belong into no error.
            let found = match messages.bytes().next() {
                Some(b'[') => "a list with an element that is no message",
                Some(b'{') => "an object",
                Some(b'"') => "a text",
                _ => "something else",
            };
            bad("messages", format!("`messages` is {found}, want a list of messages, each an object"))
        })
    }

    /// How many bytes of text the prompt can have at most, without reading it.
    #[must_use]
    pub fn text_bytes_max(&self) -> u64 {
        PromptSize::bytes_max(&self.members)
    }

    /// The output cap that the caller gave: of several, the largest.
    #[must_use]
    pub fn output_cap(&self) -> Option<Tokens> {
        self.caps.iter().map(|cap| cap.tokens).max()
    }

    /// The body to be sent upstream: the caller's, but for the fields that must be set.
    #[must_use]
    pub fn body_for(&self, forwarding: &Forwarding<'_>) -> String {
        let mut edits = Vec::new();
        if forwarding.model != self.model {
            edits.push(Edit { span: self.model_span.clone(), text: quoted(forwarding.model) });
        }
        let cap = forwarding.output_cap;
        for too_large in self.caps.iter().filter(|written| written.tokens > cap) {
            edits.push(Edit { span: too_large.span.clone(), text: cap.0.to_string() });
        }
        if self.caps.is_empty() {
            let member = || format!("{}:{}", quoted(forwarding.cap_field), cap.0);
            edits.push(self.null_caps.first().map_or_else(
                || insert_member(self.body, 0..self.body.len(), &member()),
                |null| Edit { span: null.clone(), text: cap.0.to_string() },
            ));
        }
        if forwarding.ask_usage {
            edits.extend(self.usage_edit.clone());
        }
        super::edit::edited(self.body, edits)
    }
}

fn model(body: &str, members: &Members<'_>) -> Result<(String, Range<usize>), BadRequest> {
    let Some(member) = members.get("model") else {
        return Err(bad("model", "`model` is missing; it names the model to call".to_owned()));
    };
    match serde_json::from_str::<String>(member.value.get()) {
        Ok(name) if !name.trim().is_empty() => Ok((name, member.span(body))),
        _ => Err(bad("model", format!("`model` is {}, want a non-empty string", shown(member)))),
    }
}

/// A whole number of at least 1.
fn whole_number(member: &Member<'_>) -> Result<u64, BadRequest> {
    match member.value.get().parse::<u64>() {
        Ok(number) if number >= 1 => Ok(number),
        _ => {
            Err(bad(&member.name, format!("`{}` is {}, want a whole number of at least 1", member.name, shown(member))))
        }
    }
}

/// `true`, `false`, or absent.
fn flag(members: &Members<'_>, name: &str) -> Result<bool, BadRequest> {
    match members.get(name) {
        None => Ok(false),
        Some(member) => match member.value.get() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(bad(name, format!("`{name}` is {}, want true or false", shown(member)))),
        },
    }
}

/// Whether the caller asks for the usage event, and the edit that asks for it where the caller does not.
fn usage_option(body: &str, members: &Members<'_>) -> Result<(bool, Option<Edit>), BadRequest> {
    const OPTIONS: &str = "stream_options";
    const ASK: &str = r#""include_usage":true"#;
    let Some(options) = members.0.iter().find(|member| member.name == OPTIONS) else {
        return Ok((false, Some(insert_member(body, 0..body.len(), &format!(r#""{OPTIONS}":{{{ASK}}}"#)))));
    };
    let span = options.span(body);
    if options.is_null() {
        return Ok((false, Some(Edit { span, text: format!("{{{ASK}}}") })));
    }
    let inner: Members<'_> = serde_json::from_str(options.value.get())
        .map_err(|_| bad(OPTIONS, format!("`{OPTIONS}` is {}, want an object", shown(options))))?;
    if inner.repeated(&["include_usage"]).is_some() {
        return Err(bad("stream_options.include_usage", "`include_usage` stands more than once".to_owned()));
    }
    match inner.0.iter().find(|member| member.name == "include_usage") {
        None => Ok((false, Some(insert_member(body, span, ASK)))),
        Some(member) => match member.value.get() {
            "true" => Ok((true, None)),
            "false" | "null" => Ok((false, Some(Edit { span: member.span(body), text: "true".to_owned() }))),
            _ => Err(bad(
                "stream_options.include_usage",
                format!("`include_usage` is {}, want true or false", shown(member)),
            )),
        },
    }
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#""messages":[{"role":"user","content":"Hi"}]"#;

    fn forwarded(members: &str, forwarding: &Forwarding<'_>) -> String {
        let body = format!(r#"{{"model":"m",{MESSAGES}{members}}}"#);
        ChatRequest::read(body.as_bytes()).unwrap().body_for(forwarding).replace(MESSAGES, "M")
    }

    fn fault(members: &str) -> BadRequest {
        let body = format!("{{{members}}}");
        let read = ChatRequest::read(body.as_bytes());
        read.and_then(|request| request.prompt(&mut TextCounter::bytes())).unwrap_err()
    }

    const PLAIN: Forwarding<'static> =
        Forwarding { model: "m", output_cap: Tokens(100), cap_field: "max_tokens", ask_usage: false };

    #[test]
    fn nothing_to_set_means_not_a_byte_changed() {
        let members = r#","max_tokens":20,"seed":9007199254740993,"temperature":1.0,"x":{"k":[1,2.50]}"#;
        assert_eq!(forwarded(members, &PLAIN), format!(r#"{{"model":"m",M{members}}}"#));
    }

    #[test]
    fn the_cap_that_is_held_is_the_cap_that_is_sent() {
        assert_eq!(forwarded("", &PLAIN), r#"{"max_tokens":100,"model":"m",M}"#);
        assert_eq!(forwarded(r#","max_tokens":null"#, &PLAIN), r#"{"model":"m",M,"max_tokens":100}"#);
        assert_eq!(
            forwarded(r#","max_tokens":1000000000000000000,"max_completion_tokens":7"#, &PLAIN),
            r#"{"model":"m",M,"max_tokens":100,"max_completion_tokens":7}"#
        );
    }

    #[test]
    fn an_alias_is_sent_under_the_real_name() {
        let forwarding = Forwarding { model: "real \"one\"", ..PLAIN };
        assert_eq!(forwarded(r#","max_tokens":1"#, &forwarding), r#"{"model":"real \"one\"",M,"max_tokens":1}"#);
    }

    #[test]
    fn usage_is_asked_for_once_and_only_in_a_stream() {
        let ask = Forwarding { ask_usage: true, ..PLAIN };
        let with = |options: &str| forwarded(&format!(r#","max_tokens":1,"stream":true{options}"#), &ask);
        let want = |options: &str| format!(r#"{{"model":"m",M,"max_tokens":1,"stream":true{options}}}"#);
        let asked = r#","stream_options":{"include_usage":true}"#;
        assert_eq!(with(""), r#"{"stream_options":{"include_usage":true},"model":"m",M,"max_tokens":1,"stream":true}"#);
        assert_eq!(with(r#","stream_options":null"#), want(asked));
        assert_eq!(with(r#","stream_options":{"include_usage":false}"#), want(asked));
        assert_eq!(with(asked), want(asked));
        assert_eq!(
            with(r#","stream_options":{"include_obfuscation":false}"#),
            want(r#","stream_options":{"include_usage":true,"include_obfuscation":false}"#)
        );
        let plain = r#","max_tokens":1,"stream":false"#;
        assert_eq!(forwarded(plain, &ask), format!(r#"{{"model":"m",M{plain}}}"#));
    }

    #[test]
    fn every_fault_names_its_field() {
        let faults = [
            (MESSAGES.to_owned(), "model"),
            (format!(r#""model":null,{MESSAGES}"#), "model"),
            (format!(r#""model":" ",{MESSAGES}"#), "model"),
            (format!(r#""model":7,{MESSAGES}"#), "model"),
            (format!(r#""model":"a","mod\u0065l":"b",{MESSAGES}"#), "model"),
            (r#""model":"m""#.to_owned(), "messages"),
            (r#""model":"m","messages":"hi""#.to_owned(), "messages"),
            (format!(r#""model":"m","max_tokens":2,"max_tokens":4,{MESSAGES}"#), "max_tokens"),
            (format!(r#""model":"m","stream":1,{MESSAGES}"#), "stream"),
            (format!(r#""model":"m","stream":true,"stream_options":1,{MESSAGES}"#), "stream_options"),
            (format!(r#""model":"m","service_tier":"priority",{MESSAGES}"#), "service_tier"),
            (format!(r#""model":"m","modalities":["text","audio"],{MESSAGES}"#), "modalities"),
            (format!(r#""model":"m","web_search_options":{{}},{MESSAGES}"#), "web_search_options"),
            (format!(r#""model":"m","models":["dearer"],{MESSAGES}"#), "models"),
            (format!(r#""model":"m","Max_Tokens":9,{MESSAGES}"#), "Max_Tokens"),
        ];
        for (members, param) in faults {
            assert_eq!(fault(&members).param.as_deref(), Some(param), "{members}");
        }
        for number in ["0", "-1", "12.5", "[100]", "\"5\"", "1e2", "18446744073709551616", "true"] {
            for name in ["max_tokens", "max_completion_tokens", "n"] {
                let fault = fault(&format!(r#""model":"m",{MESSAGES},"{name}":{number}"#));
                assert_eq!(fault.param.as_deref(), Some(name), "{number}");
                assert!(fault.message.contains(number), "{}", fault.message);
            }
        }
    }
}
