//! Streams as nobody would send them, and what a naive reader makes of them.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use serde_json::{Value, json};

/// An event's name and data.
pub(crate) type Event = (String, String);

/// What a reader of the standard makes of a whole stream; at its end it takes what is there, if `to_its_end`.
pub(crate) fn reference(stream: &[u8], to_its_end: bool) -> Vec<Event> {
    let decoded = String::from_utf8_lossy(stream);
    let text = decoded.strip_prefix('\u{feff}').unwrap_or(&decoded);
    let mut text = text.replace("\r\n", "\n").replace('\r', "\n");
    if to_its_end {
        text.push_str("\n\n");
    }
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), Vec::new());
    // What stands behind the last line end is no line yet.
    let lines = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for line in lines.split('\n').filter(|_| text.contains('\n')) {
        if line.is_empty() {
            if !data.is_empty() {
                events.push((std::mem::take(&mut name), data.join("\n")));
            }
            (name, data) = (String::new(), Vec::new());
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "data" => data.push(value),
            "event" => name = value,
            _ => {}
        }
    }
    events
}

/// A stream in chunks of these sizes, again and again.
pub(crate) fn cut<'s>(mut stream: &'s [u8], sizes: &[usize]) -> Vec<&'s [u8]> {
    let mut chunks = Vec::new();
    for size in sizes.iter().cycle() {
        let (chunk, rest) = stream.split_at((*size).min(stream.len()));
        chunks.push(chunk);
        stream = rest;
        if stream.is_empty() {
            break;
        }
    }
    chunks
}

pub(crate) fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![1]),
        vec(1..9_usize, 1..5),
        vec(0..2_000_usize, 1..5).prop_map(|mut sizes| {
            sizes.push(1);
            sizes
        })
    ]
}

/// Anything that is anything to a reader of events, and what is nothing to it.
pub(crate) fn streams() -> impl Strategy<Value = Vec<u8>> {
    let known: [&[u8]; 24] = [
        b"data: ",
        b"data:",
        b"data",
        b" ",
        b"event: error\n",
        b"event:",
        b"id: 7\r\n",
        b"retry: 9\r",
        b":",
        b": wait\n\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\r\r",
        b"\r\n\r\n",
        b"{}",
        b"[DONE]",
        b"\xc3\xa9",
        b"\xff",
        b"\xc3",
        b"\0",
        b"data: {\"usage\":{\"prompt_tokens\":1}}\n\n",
        b"Data: no",
    ];
    let piece = prop_oneof![
        9 => select(known.to_vec()).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>().prop_filter("a mark of order", |byte| *byte != 0xef), 0..6),
    ];
    (any::<bool>(), vec(piece, 0..40)).prop_map(|(mark, pieces)| {
        let mark: &[u8] = if mark { b"\xef\xbb\xbf" } else { b"" };
        [mark, &pieces.concat()].concat()
    })
}

/// Events of every API, right and nearly right.
pub(crate) fn said() -> impl Strategy<Value = (Option<&'static str>, Value)> {
    let kinds = vec![
        "response.created",
        "response.output_text.delta",
        "response.completed",
        "response.incomplete",
        "response.failed",
        "response.cancelled",
        "message_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
        "error",
        "ping",
    ];
    let usage = prop_oneof![
        (0..9_000_u64, 0..9_000_u64)
            .prop_map(|(input, output)| json!({"prompt_tokens": input, "completion_tokens": output})),
        (0..9_000_u64, 0..9_000_u64)
            .prop_map(|(input, output)| json!({"input_tokens": input, "output_tokens": output})),
        select(vec![json!(null), json!({}), json!([]), json!("none"), json!(7)]),
    ];
    let text = select(vec!["", "a", "Volga, é", "\n\n", "data: [DONE]", "\u{2028}"]);
    let place = select(vec!["usage", "x_groq", "response", "message", "result", "elsewhere"]);
    let error = select(vec![json!(null), json!(false), json!(""), json!({"message": "no"}), json!("no")]);
    let name = select(vec![None, None, Some("error"), Some("message")]);
    let parts = (proptest::option::of(select(kinds)), proptest::option::weighted(0.2, error));
    (name, parts, vec((place, usage), 0..3), text, 0..4_u8).prop_map(|(name, (kind, error), usages, text, shape)| {
        let mut event = match shape {
            0 => json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}),
            1 => json!({"choices": [{"index": 0, "text": text, "finish_reason": "stop"}]}),
            2 => json!({"choices": []}),
            _ => json!({"delta": text}),
        };
        for (place, usage) in usages {
            event[place] = if place == "usage" { usage } else { json!({"usage": usage, "id": "x"}) };
        }
        if let Some(kind) = kind {
            event["type"] = json!(kind);
        }
        if let Some(error) = error {
            event["error"] = error;
        }
        (name, event)
    })
}

/// What the usage in an event counts, as read by hand: in the first place that has one.
pub(crate) fn usage_by_hand(event: &Value) -> Option<(u64, u64)> {
    let places = ["/usage", "/response/usage", "/message/usage", "/result/usage", "/x_groq/usage"];
    let count = |usage: &Value, names: [&str; 2]| names.iter().find_map(|name| usage.get(name)?.as_u64());
    places.iter().filter_map(|place| event.pointer(place)).find_map(|usage| {
        Some((count(usage, ["prompt_tokens", "input_tokens"])?, count(usage, ["completion_tokens", "output_tokens"])?))
    })
}

/// Whether an event ends its stream, is an error, and has output, by hand; `None` for a dialect that is not known here.
pub(crate) fn meaning_by_hand(path: &str, name: Option<&str>, event: &Value) -> Option<(bool, bool, bool)> {
    let kind = event["type"].as_str().unwrap_or_default();
    let (ends, fails): (&[&str], &[&str]) = match path {
        "/v1/chat/completions" | "/v1/completions" => (&[], &[]),
        "/v1/responses" => {
            (&["response.completed", "response.incomplete"], &["response.failed", "response.cancelled", "error"])
        }
        "/v1/messages" => (&["message_stop"], &["error"]),
        _ => return None,
    };
    let has_error = ![json!(null), json!(false), json!("")].contains(&event["error"]);
    let written = match path {
        "/v1/responses" if kind.rsplit('.').next() == Some("delta") => &event["delta"],
        "/v1/messages" if kind == "content_block_delta" => &event["delta"],
        "/v1/responses" | "/v1/messages" => &Value::Null,
        _ => event.pointer("/choices/0/delta/content").or(event.pointer("/choices/0/text")).unwrap_or(&Value::Null),
    };
    let wrote = written.as_str().is_some_and(|text| !text.is_empty());
    Some((ends.contains(&kind), name == Some("error") || has_error || fails.contains(&kind), wrote))
}
