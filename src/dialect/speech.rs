//! `POST /v1/audio/speech`: a text is read aloud. The answer is sound as it comes, or events with pieces of it.

use super::bad_request::{BadRequest, bad, shown};
use super::json::{Member, Members};
use super::reply::{Answer, Chunk, OutputCounter};
use super::rules::{CapRule, Dialect, ErrorEvent, Family, Medium, PromptShape, ReplyRules, RequestRules};
use super::seen::Seen;
use crate::limit::Tokens;
use crate::pricing::Quantities;

/// How many characters the API reads at most.
const CHARACTERS_MAX: u64 = 4_096;

/// The dialect.
pub static SPEECH: Dialect = Dialect {
    path: "/v1/audio/speech",
    family: Family::OpenAi,
    request: RequestRules {
        prompt: &[("input", PromptShape::Input), ("instructions", PromptShape::Input)],
        required: Some("input"),
        not_read: &["response_format", "speed", "stream_format", "voice"],
        cap: CapRule::Ceiling,
        decisive: &["stream_format"],
        extra: Some(characters),
        medium: Medium::Speech,
        ..RequestRules::NONE
    },
    reply: ReplyRules { whole, event, raw: true, error_event: ErrorEvent::Plain, has_usage: true },
};

/// The characters that are read aloud, and whether the answer will say how many tokens of sound they became.
fn characters(members: &Members<'_>) -> Result<Quantities, BadRequest> {
    let text = |member: &Member<'_>| {
        let text = serde_json::from_str::<String>(member.value.get());
        text.map_err(|_| bad(&member.name, format!("`{}` is {}, want a text", member.name, shown(member))))
    };
    let input = members.get("input").map(text).transpose()?.unwrap_or_default();
    let characters = input.chars().count() as u64;
    if characters > CHARACTERS_MAX {
        return Err(bad("input", format!("`input` has {characters} characters, want at most {CHARACTERS_MAX}")));
    }
    let events = match members.get("stream_format").map(text).transpose()?.as_deref() {
        None | Some("audio") => false,
        Some("sse") => true,
        Some(_) => return Err(bad("stream_format", "`stream_format` is neither \"audio\" nor \"sse\"".to_owned())),
    };
    Ok(Quantities { characters, audio_output: Tokens(events.into()), ..Quantities::default() })
}

/// A whole answer would be JSON, and sound is none.
fn whole(_: &Answer<'_>, _: &mut OutputCounter) -> Option<Seen> {
    None
}

fn event(answer: &Answer<'_>, _: &mut OutputCounter, chunk: &mut Chunk) {
    match answer.kind().unwrap_or_default().as_ref() {
        "speech.audio.done" => chunk.done = true,
        "error" => chunk.error = true,
        // That there was one is all that can be told.
        _ => chunk.seen.add_unread(1),
    }
}
