//! From a whole native answer to OpenAI's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::tools::ToolCall;
use super::{Operation, Stamp};
use crate::dialect::json::quoted;
use crate::dialect::members::members;

/// A whole answer as the caller gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    /// It passes as it is.
    AsIs,
    /// This stands in its place.
    Made(String),
    /// The same, with a usage that is ours: the binding has said none, and clients want one.
    WithOurUsage(String),
}

/// An answer is an error in the clothes of a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure;

/// Makes OpenAI's answer of the binding's; `base64` is how vectors are wanted. What is neither OpenAI's shape nor a native
/// one passes, and is found to be no answer where answers are judged.
///
/// # Errors
/// If it is an error in the clothes of a success.
pub fn whole(operation: Operation, body: &[u8], stamp: &Stamp, base64: bool) -> Result<Whole, Failure> {
    let Ok(body) = core::str::from_utf8(body) else { return Ok(Whole::AsIs) };
    let Some(json) = unwrapped(body)? else { return Ok(Whole::AsIs) };
    let made = match operation {
        Operation::Chat => completion(json, stamp).map(Whole::Made),
        Operation::Embeddings => embeddings(json, stamp, base64),
    };
    Ok(match made {
        Some(made) => made,
        None if json.len() == body.len() => Whole::AsIs,
        None => Whole::Made(json.to_owned()),
    })
}

/// The answer without its envelope, if it has one; `None` if it is no answer of the binding's.
fn unwrapped(body: &str) -> Result<Option<&str>, Failure> {
    if body.trim_start().starts_with('"') {
        return Ok(Some(body.trim()).filter(|text| serde_json::from_str::<&RawValue>(text).is_ok()));
    }
    let Some([result, success, errors]) = members(body, ["result", "success", "errors"]) else { return Ok(None) };
    let result = result.map(RawValue::get).filter(|result| result.starts_with(['{', '"']));
    match (result, success.map(RawValue::get)) {
        (_, Some("false")) => Err(Failure),
        (Some(result), Some(_)) => Ok(Some(result)),
        (Some(result), None) if errors.is_some() => Ok(Some(result)),
        _ => Ok(Some(body)),
    }
}

/// A chat completion; `None` if it is one already, or none at all.
fn completion(json: &str, stamp: &Stamp) -> Option<String> {
    let (response, calls, usage, reason) = if json.starts_with('"') {
        (Some(json), None, None, None)
    } else {
        let [choices, response, calls, usage, reason] =
            members(json, ["choices", "response", "tool_calls", "usage", "finish_reason"])?;
        if choices.is_some() || response.or(calls).is_none() {
            return None;
        }
        (response.map(RawValue::get), calls, usage, reason)
    };
    let calls = calls.map(ToolCall::list).unwrap_or_default();
    let content = match response {
        // Beside calls of tools there is often no text, which OpenAI says so.
        None | Some("null") => "null".to_owned(),
        Some("\"\"") if !calls.is_empty() => "null".to_owned(),
        Some(response) => text(response),
    };
    let reason = reason.map(RawValue::get).filter(|reason| reason.starts_with('"'));
    let reason = reason.unwrap_or(if calls.is_empty() { "\"stop\"" } else { "\"tool_calls\"" });
    let calls: Vec<String> = calls.iter().zip(0..).map(|(call, place)| call.whole(stamp, place, false)).collect();
    let calls = if calls.is_empty() { String::new() } else { format!(r#","tool_calls":[{}]"#, calls.join(",")) };
    let usage = said(usage).map_or_else(String::new, |usage| format!(r#","usage":{usage}"#));
    let Stamp { id, created, model, .. } = stamp;
    Some(format!(
        r#"{{"id":"chatcmpl-{id}","object":"chat.completion","created":{created},"model":{},"choices":[{{"index":0,"message":{{"role":"assistant","content":{content}{calls}}},"logprobs":null,"finish_reason":{reason}}}]{usage}}}"#,
        quoted(model)
    ))
}

/// A text as it is; any other value as the text of its JSON, which is what an answer in JSON is to OpenAI's clients.
pub(super) fn text(json: &str) -> String {
    if json.starts_with('"') { json.to_owned() } else { quoted(json) }
}

/// A usage, unless it says nothing: some models send zeros where they have not counted, and no call takes no tokens.
pub(super) fn said(usage: Option<&RawValue>) -> Option<&str> {
    let usage = usage?.get();
    let counts = members(usage, ["prompt_tokens", "completion_tokens", "total_tokens"])?;
    let is_zero = |count: &RawValue| count.get().trim_matches(['0', '.']).is_empty();
    counts.into_iter().flatten().any(|count| count.get() != "null" && !is_zero(count)).then_some(usage)
}

/// A list of embeddings; `None` if it is one already, or none at all.
fn embeddings(json: &str, stamp: &Stamp, base64: bool) -> Option<Whole> {
    let [data, usage] = members(json, ["data", "usage"])?;
    let vectors = serde_json::from_str::<Vec<&RawValue>>(data?.get()).ok()?;
    let mut rows = Vec::with_capacity(vectors.len());
    for (vector, place) in vectors.into_iter().zip(0_u64..) {
        let vector = Some(vector.get()).filter(|vector| vector.starts_with('['))?;
        let vector = if base64 { encoded(vector)? } else { vector.to_owned() };
        rows.push(format!(r#"{{"object":"embedding","index":{place},"embedding":{vector}}}"#));
    }
    let rows = rows.join(",");
    let list = |usage: &str| {
        format!(r#"{{"object":"list","data":[{rows}],"model":{},"usage":{usage}}}"#, quoted(&stamp.model))
    };
    Some(match said(usage) {
        Some(usage) => Whole::Made(list(usage)),
        None => Whole::WithOurUsage(list(&format!(r#"{{"prompt_tokens":{0},"total_tokens":{0}}}"#, stamp.prompt))),
    })
}

/// The numbers of a vector as OpenAI packs them: 32 bits each, the lowest byte first.
fn encoded(vector: &str) -> Option<String> {
    let numbers: Vec<f32> = serde_json::from_str(vector).ok()?;
    let bytes: Vec<u8> = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
    Some(format!("\"{}\"", STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(operation: Operation, body: &str, base64: bool) -> Result<Whole, Failure> {
        let stamp = Stamp { id: "7f".to_owned(), created: 5, model: "@cf/a/b".to_owned(), prompt: 9 };
        whole(operation, body.as_bytes(), &stamp, base64)
    }

    /// The message, the rest of its choice, and what stands behind the choices.
    fn chat(body: &str) -> String {
        let Ok(Whole::Made(made)) = made(Operation::Chat, body, false) else { panic!("{body}") };
        let start = r#"{"id":"chatcmpl-7f","object":"chat.completion","created":5,"model":"@cf/a/b","choices":[{"index":0,"message":{"role":"assistant","content":"#;
        made.strip_prefix(start).unwrap_or(&made).replace(r#""logprobs":null,"finish_reason":"#, "")
    }

    #[test]
    fn native_answers_become_completions() {
        let usage = r#"{"prompt_tokens":4,"completion_tokens":3,"x":1.50}"#;
        let cases = [
            (
                format!(r#"{{"response":"Vol\u0067a","tool_calls":[],"usage":{usage}}}"#),
                format!(r#""Vol\u0067a"}},"stop"}}],"usage":{usage}}}"#),
            ),
            (
                format!(
                    r#"{{"result":{{"response":"Volga","usage":{usage}}},"success":true,"errors":[],"messages":[]}}"#
                ),
                format!(r#""Volga"}},"stop"}}],"usage":{usage}}}"#),
            ),
            (r#"{"response":"","usage":{"prompt_tokens":0}}"#.to_owned(), r#"""},"stop"}]}"#.to_owned()),
            (r#"{"response":{"a":[1.0,"x"]}}"#.to_owned(), r#""{\"a\":[1.0,\"x\"]}"},"stop"}]}"#.to_owned()),
            (
                r#"{"response":null,"usage":null,"finish_reason":"length"}"#.to_owned(),
                r#"null},"length"}]}"#.to_owned(),
            ),
            (r#""Volga""#.to_owned(), r#""Volga"},"stop"}]}"#.to_owned()),
            (r#"{"result":"Volga","success":true}"#.to_owned(), r#""Volga"},"stop"}]}"#.to_owned()),
        ];
        for (body, want) in cases {
            assert_eq!(chat(&body), want, "{body}");
        }
    }

    #[test]
    fn calls_of_tools_become_openais() {
        let flat = r#"{"response":"","tool_calls":[{"name":"f","arguments":{"a":1.0}},{"name":"g","arguments":"{\"b\":2}","id":"c9"},{"name":"h"}]}"#;
        let want = concat!(
            r#"null,"tool_calls":[{"id":"call_7f_0","type":"function","function":{"name":"f","arguments":"{\"a\":1.0}"}},"#,
            r#"{"id":"c9","type":"function","function":{"name":"g","arguments":"{\"b\":2}"}},"#,
            r#"{"id":"call_7f_2","type":"function","function":{"name":"h","arguments":"{}"}}]},"tool_calls"}]}"#
        );
        assert_eq!(chat(flat), want);
        let own = r#"{"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{}}},{"id":null,"function":{"name":null,"arguments":""}},7]}"#;
        let want = r#"null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},"tool_calls"}]}"#;
        assert_eq!(chat(own), want);
    }

    #[test]
    fn what_is_openais_already_passes() {
        let own = r#" {"choices":[{"index":0}],"usage":{"prompt_tokens":1}} "#;
        assert_eq!(made(Operation::Chat, own, false), Ok(Whole::AsIs));
        let wrapped = r#"{"result":{"choices":[],"seed":1.0},"success":true}"#;
        assert_eq!(made(Operation::Chat, wrapped, false), Ok(Whole::Made(r#"{"choices":[],"seed":1.0}"#.to_owned())));
        let list = r#"{"object":"list","data":[{"embedding":[1]}]}"#;
        assert_eq!(made(Operation::Embeddings, list, true), Ok(Whole::AsIs));
        for body in ["", "<html>", "{}", "[]", "7", "null", "\"", r#"{"response":"a"#] {
            assert_eq!(made(Operation::Chat, body, false), Ok(Whole::AsIs), "{body}");
            assert_eq!(made(Operation::Embeddings, body, false), Ok(Whole::AsIs), "{body}");
        }
        assert_eq!(whole(Operation::Chat, b"\xff", &Stamp::default(), false), Ok(Whole::AsIs));
        let failure = r#"{"success":false,"errors":[{"code":3040,"message":"x"}],"result":null}"#;
        assert_eq!(made(Operation::Chat, failure, false), Err(Failure));
    }

    #[test]
    fn vectors_keep_the_text_of_their_numbers_or_are_packed() {
        let body = r#"{"shape":[2,2],"data":[[1.50,-2e-3],[0,1]],"pooling":"cls"}"#;
        let list = |first: &str, second: &str| {
            Ok(Whole::WithOurUsage(format!(
                r#"{{"object":"list","data":[{{"object":"embedding","index":0,"embedding":{first}}},{{"object":"embedding","index":1,"embedding":{second}}}],"model":"@cf/a/b","usage":{{"prompt_tokens":9,"total_tokens":9}}}}"#
            )))
        };
        assert_eq!(made(Operation::Embeddings, body, false), list("[1.50,-2e-3]", "[0,1]"));
        // 1.5 is 3FC00000, -0.002 is BB03126F, 1 is 3F800000.
        assert_eq!(made(Operation::Embeddings, body, true), list("\"AADAP28SA7s=\"", "\"AAAAAAAAgD8=\""));
        let said = r#"{"data":[],"usage":{"prompt_tokens":2,"total_tokens":2}}"#;
        let want = r#"{"object":"list","data":[],"model":"@cf/a/b","usage":{"prompt_tokens":2,"total_tokens":2}}"#;
        assert_eq!(made(Operation::Embeddings, said, false), Ok(Whole::Made(want.to_owned())));
        let zeros = r#"{"data":[[1]],"usage":{"prompt_tokens":0,"total_tokens":0.0}}"#;
        assert!(matches!(made(Operation::Embeddings, zeros, false), Ok(Whole::WithOurUsage(_))));
        let odd = r#"{"data":[["x"]]}"#;
        assert_eq!(made(Operation::Embeddings, odd, true), Ok(Whole::AsIs));
    }
}
