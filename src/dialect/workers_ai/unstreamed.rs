//! A whole completion where a stream was asked for: some models do not stream, and their clients read nothing but events.

use serde_json::value::RawValue;

use crate::dialect::edit::{edited, insert_member};
use crate::dialect::json::{Members, object, quoted};
use crate::dialect::members::members;

/// The events that a completion would have been; `None` if it is none. The usage has an event of its own, as if it had been
/// asked for.
#[must_use]
pub fn unstreamed(completion: &[u8]) -> Option<Vec<u8>> {
    let json = core::str::from_utf8(completion).ok()?;
    let [id, created, model, choices, usage] = members(json, ["id", "created", "model", "choices", "usage"])?;
    let about = [("id", id), ("created", created), ("model", model)];
    let about = about.iter().filter_map(|(name, value)| Some(format!("\"{name}\":{},", value.as_ref()?.get())));
    let about = about.collect::<Vec<_>>().concat();
    let event = |rest: &str| format!("data: {{{about}\"object\":\"chat.completion.chunk\",{rest}}}\n\n");
    let mut out = String::new();
    let choices = serde_json::from_str::<Vec<&RawValue>>(choices?.get()).ok()?;
    for (choice, place) in choices.into_iter().zip(0_u64..) {
        let [index, message, reason] = members(choice.get(), ["index", "message", "finish_reason"])?;
        let index = index.map_or_else(|| place.to_string(), |index| index.get().to_owned());
        let reason = reason.map(RawValue::get).filter(|reason| *reason != "null").unwrap_or("\"stop\"");
        let choice = |delta: &str, reason: &str| {
            event(&format!(r#""choices":[{{"index":{index},"delta":{delta},"finish_reason":{reason}}}]"#))
        };
        out.push_str(&choice(&delta(message?.get())?, "null"));
        out.push_str(&choice("{}", reason));
    }
    if let Some(usage) = usage.filter(|usage| usage.get() != "null") {
        out.push_str(&event(&format!(r#""choices":[],"usage":{}"#, usage.get())));
    }
    out.push_str("data: [DONE]\n\n");
    Some(out.into_bytes())
}

/// A message as a piece of one: its calls of tools say which they are.
fn delta(message: &str) -> Option<String> {
    let mut given = Vec::new();
    for member in object::<Members<'_>>(message)?.0 {
        let value = if member.name == "tool_calls" { numbered(member.value.get()) } else { None };
        let value = value.unwrap_or_else(|| member.value.get().to_owned());
        given.push(format!("{}:{value}", quoted(&member.name)));
    }
    Some(format!("{{{}}}", given.join(",")))
}

fn numbered(calls: &str) -> Option<String> {
    let calls = serde_json::from_str::<Vec<&RawValue>>(calls).ok()?;
    let numbered = calls.into_iter().zip(0_u64..).map(|(call, place)| {
        let call = call.get();
        let edit = insert_member(call, 0..call.len(), &format!("\"index\":{place}"));
        String::from_utf8(edited(call.into(), vec![edit])).ok()
    });
    Some(format!("[{}]", numbered.collect::<Option<Vec<_>>>()?.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_becomes_its_events() {
        let whole = concat!(
            r#"{"id":"c","object":"chat.completion","created":1.0,"choices":[{"index":0,"message":{"role":"assistant","content":"Volga","#,
            r#""tool_calls":[{"id":"a"},{}]},"finish_reason":"tool_calls"},{"message":{"content":null}}],"usage":{"prompt_tokens":4}}"#
        );
        let start = r#"data: {"id":"c","created":1.0,"object":"chat.completion.chunk","choices":["#;
        let calls = r#"[{"index":0,"id":"a"},{"index":1}]"#;
        let want = [
            format!(
                r#"{start}{{"index":0,"delta":{{"role":"assistant","content":"Volga","tool_calls":{calls}}},"finish_reason":null}}]}}"#
            ),
            format!(r#"{start}{{"index":0,"delta":{{}},"finish_reason":"tool_calls"}}]}}"#),
            format!(r#"{start}{{"index":1,"delta":{{"content":null}},"finish_reason":null}}]}}"#),
            format!(r#"{start}{{"index":1,"delta":{{}},"finish_reason":"stop"}}]}}"#),
            format!(r#"{start}],"usage":{{"prompt_tokens":4}}}}"#),
            "data: [DONE]\n\n".to_owned(),
        ];
        assert_eq!(String::from_utf8(unstreamed(whole.as_bytes()).unwrap()).unwrap(), want.join("\n\n"));
        for none in ["", "[]", "{}", r#"{"choices":7}"#, r#"{"choices":[7]}"#, r#"{"choices":[{"message":7}]}"#] {
            assert_eq!(unstreamed(none.as_bytes()), None, "{none}");
        }
    }
}
