//! From a request's body to the binding's input.
//!
//! Invariant: the output cap that was held is in the input, once and under the name that every model obeys; what would
//! make the binding do something else than the request that was priced is refused, and the field named.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::Operation;
use crate::dialect::bad_request::{BadRequest, bad, shown, unsupported};
use crate::dialect::edit::{Edit, edited, insert_member};
use crate::dialect::json::{Member, Members, object, quoted};
use crate::dialect::members::members;

/// What the binding is to be called with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The model, which the binding takes beside the input.
    pub model: String,
    /// The input, a JSON object.
    pub json: String,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether the caller wants vectors as the base64 of their numbers.
    pub base64: bool,
}

/// The output cap's names; every model obeys the first, only some the second.
const CAPS: [&str; 2] = ["max_tokens", "max_completion_tokens"];
/// Members that turn a call into several, or into one of another kind.
const OTHER_CALLS: [&str; 5] = ["requests", "prompt", "query", "contexts", "text"];
/// Members of a request for embeddings that the binding does not have; they change nothing that it answers.
const EMBEDDINGS_ONLY: [&str; 2] = ["encoding_format", "user"];

/// Makes the binding's input of a body that is a request of the operation.
///
/// # Errors
/// If there is something in it that the binding cannot do.
pub fn input(operation: Operation, body: &[u8]) -> Result<Input, BadRequest> {
    let (_, given) = Members::of_body(body)?;
    if let Some(name) = OTHER_CALLS.iter().find(|name| given.get(name).is_some()) {
        return Err(unsupported(name, format!("`{name}` is not supported: it is another kind of call")));
    }
    let model = given.get("model").and_then(|model| serde_json::from_str(model.value.get()).ok()).unwrap_or_default();
    // `null` is how clients say "absent"; the binding's models take it for a value of a wrong type.
    let kept = given.0.iter().filter(|member| member.name != "model" && !member.is_null());
    let json = match operation {
        Operation::Chat => chat(&given, kept)?,
        Operation::Embeddings => embeddings(&given, kept)?,
    };
    let stream = operation == Operation::Chat && given.get("stream").is_some_and(|stream| stream.value.get() == "true");
    Ok(Input { model, json, stream, base64: operation == Operation::Embeddings && wants_base64(&given)? })
}

fn chat<'m, 'b: 'm>(given: &Members<'b>, kept: impl Iterator<Item = &'m Member<'b>>) -> Result<String, BadRequest> {
    if let Some(several) = given.get("n").filter(|several| several.value.get() != "1") {
        return Err(unsupported("n", format!("`n` is {}, and this model gives one answer", shown(several))));
    }
    let caps = CAPS.iter().filter_map(|name| given.get(name)?.value.get().parse::<u64>().ok());
    let cap = caps.max().map(|cap| format!("\"{}\":{cap}", CAPS[0]));
    let rest = kept.filter(|member| !CAPS.contains(&&*member.name) && member.name != "n").map(|member| {
        let value = match &*member.name {
            "messages" => messages(member.value.get()),
            "response_format" => response_format(member.value.get()),
            _ => Cow::Borrowed(member.value.get()),
        };
        format!("{}:{value}", quoted(&member.name))
    });
    Ok(object_of(rest.chain(cap)))
}

/// The messages with a text in each: the models want one where clients say `null` or nothing beside tool calls.
fn messages(json: &str) -> Cow<'_, str> {
    let list = serde_json::from_str::<Vec<&RawValue>>(json).unwrap_or_default();
    let messages: Vec<Cow<'_, str>> = list.into_iter().map(|message| with_content(message.get())).collect();
    let as_they_are = messages.iter().all(|message| matches!(message, Cow::Borrowed(_)));
    if as_they_are { Cow::Borrowed(json) } else { Cow::Owned(format!("[{}]", messages.join(","))) }
}

fn with_content(message: &str) -> Cow<'_, str> {
    let Some(members) = object::<Members<'_>>(message) else { return Cow::Borrowed(message) };
    let edit = match members.0.iter().find(|member| member.name == "content") {
        Some(content) if content.is_null() => Edit { span: content.span(message), text: "\"\"".to_owned() },
        Some(_) => return Cow::Borrowed(message),
        None => insert_member(message, 0..message.len(), "\"content\":\"\""),
    };
    String::from_utf8(edited(message.into(), vec![edit])).map_or(Cow::Borrowed(message), Cow::Owned)
}

/// OpenAI puts a schema into an envelope with a name; the binding wants the schema alone.
fn response_format(json: &str) -> Cow<'_, str> {
    let schema = || {
        let [envelope] = members(json, ["json_schema"])?;
        let [schema, name] = members(envelope?.get(), ["schema", "name"])?;
        name.and(schema)
    };
    match schema() {
        Some(schema) => Cow::Owned(format!("{{\"type\":\"json_schema\",\"json_schema\":{}}}", schema.get())),
        None => Cow::Borrowed(json),
    }
}

fn embeddings<'m, 'b: 'm>(
    given: &Members<'b>,
    kept: impl Iterator<Item = &'m Member<'b>>,
) -> Result<String, BadRequest> {
    if let Some(dimensions) = given.get("dimensions") {
        let why = format!("`dimensions` is {}, and this model's vectors have one length", shown(dimensions));
        return Err(unsupported("dimensions", why));
    }
    let Some(input) = given.get("input") else { return Err(bad("input", "`input` is missing".to_owned())) };
    let texts = texts(input)?;
    let rest = kept.filter(|member| member.name != "input" && !EMBEDDINGS_ONLY.contains(&&*member.name));
    let rest = rest.map(|member| format!("{}:{}", quoted(&member.name), member.value.get()));
    Ok(object_of(core::iter::once(format!("\"text\":{texts}")).chain(rest)))
}

/// The texts that are to be embedded, as a list.
fn texts<'b>(input: &Member<'b>) -> Result<Cow<'b, str>, BadRequest> {
    let json = input.value.get();
    if json.starts_with('"') {
        return Ok(Cow::Owned(format!("[{json}]")));
    }
    let list = serde_json::from_str::<Vec<&RawValue>>(json).unwrap_or_default();
    if list.is_empty() || list.iter().any(|text| !text.get().starts_with('"')) {
        return Err(bad("input", format!("`input` is {}, want a text or a list of texts", shown(input))));
    }
    Ok(Cow::Borrowed(json))
}

fn wants_base64(given: &Members<'_>) -> Result<bool, BadRequest> {
    match given.get("encoding_format").map(|format| (format, format.value.get())) {
        None | Some((_, "\"float\"")) => Ok(false),
        Some((_, "\"base64\"")) => Ok(true),
        Some((format, _)) => {
            Err(bad("encoding_format", format!("`encoding_format` is {}, want \"float\" or \"base64\"", shown(format))))
        }
    }
}

fn object_of(members: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(members: &str) -> Result<Input, BadRequest> {
        input(Operation::Chat, format!(r#"{{"model":"@cf/a/b",{members}}}"#).as_bytes())
    }

    fn json(members: &str) -> String {
        chat(members).unwrap().json
    }

    #[test]
    fn what_the_binding_knows_passes_as_it_was_written() {
        let own =
            r#""messages":[{"role":"user","content":"Hi"}],"seed":9007199254740993,"temperature":1.0,"x":{"a":[1.50]}"#;
        let made = chat(&format!(r#"{own},"user":null,"max_tokens":7"#)).unwrap();
        assert_eq!((made.model.as_str(), made.base64), ("@cf/a/b", false));
        assert_eq!(made.json, format!(r#"{{{own},"max_tokens":7}}"#));
    }

    #[test]
    fn the_cap_that_was_held_stands_once_under_the_name_that_is_obeyed() {
        let cases = [
            (r#""max_tokens":7"#, r#"{"max_tokens":7}"#),
            (r#""max_completion_tokens":7"#, r#"{"max_tokens":7}"#),
            (r#""max_completion_tokens":7,"max_tokens":9,"n":1"#, r#"{"max_tokens":9}"#),
            (r#""max_completion_tokens":9,"max_tokens":null"#, r#"{"max_tokens":9}"#),
            (r#""stream":true"#, r#"{"stream":true}"#),
        ];
        for (given, want) in cases {
            assert_eq!(json(given), want, "{given}");
        }
    }

    #[test]
    fn a_message_without_a_text_gets_an_empty_one() {
        let given =
            r#""messages":[{"role":"user","content":"Hi"}, {"role":"assistant","content":null,"tool_calls":[]},{},7]"#;
        let want = r#"{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"","tool_calls":[]},{"content":""},7]}"#;
        assert_eq!(json(given), want);
    }

    #[test]
    fn a_schema_leaves_its_envelope() {
        let schema = r#"{"type":"object","properties":{"a":{"const":1.0}}}"#;
        let wrapped = format!(
            r#""response_format":{{"type":"json_schema","json_schema":{{"name":"r","strict":true,"schema":{schema}}}}}"#
        );
        assert_eq!(json(&wrapped), format!(r#"{{"response_format":{{"type":"json_schema","json_schema":{schema}}}}}"#));
        for kept in [
            r#""response_format":{"type":"json_schema","json_schema":{"type":"object","properties":{"schema":{}}}}"#,
            r#""response_format":{"type":"json_object"}"#,
        ] {
            assert_eq!(json(kept), format!("{{{kept}}}"));
        }
    }

    #[test]
    fn texts_become_a_list_of_texts() {
        let made = |members: &str| {
            input(Operation::Embeddings, format!(r#"{{"model":"m",{members}}}"#).as_bytes())
                .map(|made| (made.json, made.base64))
        };
        let ok = |json: &str, base64| Ok((json.to_owned(), base64));
        assert_eq!(made(r#""input":"Volga","user":"u""#), ok(r#"{"text":["Volga"]}"#, false));
        assert_eq!(
            made(r#""input":["Volga","N\u0069ger"],"encoding_format":"base64","pooling":"cls""#),
            ok(r#"{"text":["Volga","N\u0069ger"],"pooling":"cls"}"#, true)
        );
        for (members, param) in [
            (r#""input":[1,2]"#, "input"),
            (r#""input":[[1],[2]]"#, "input"),
            (r#""input":["a",1]"#, "input"),
            (r#""input":[]"#, "input"),
            (r#""input":7"#, "input"),
            (r#""input":"a","dimensions":8"#, "dimensions"),
            (r#""input":"a","encoding_format":"int8""#, "encoding_format"),
            (r#""input":"a","text":["b"]"#, "text"),
            (r#""input":"a","requests":[{}]"#, "requests"),
        ] {
            assert_eq!(made(members).unwrap_err().param.as_deref(), Some(param), "{members}");
        }
    }

    #[test]
    fn what_the_binding_cannot_do_is_named() {
        for (members, param) in [
            (r#""messages":[],"n":2"#, "n"),
            (r#""messages":[],"requests":[{"prompt":"a","max_tokens":99999}]"#, "requests"),
            (r#""messages":[],"prompt":"a""#, "prompt"),
        ] {
            assert_eq!(chat(members).unwrap_err().param.as_deref(), Some(param), "{members}");
        }
        assert!(input(Operation::Chat, b"[]").is_err());
    }
}
