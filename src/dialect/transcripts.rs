//! `POST /v1/audio/transcriptions` and `POST /v1/audio/translations`: sound is written down.
//!
//! The answer is JSON, a plain text or subtitles, or events. Some say how many tokens or seconds it was, some nothing.

use super::reply::{Answer, Chunk, OutputCounter, output_in};
use super::rules::{CapRule, Dialect, ErrorEvent, Family, Medium, PromptShape, ReplyRules, RequestRules};
use super::seen::Seen;

/// The dialect of what is written down in its own language.
pub static TRANSCRIPTIONS: Dialect = dialect("/v1/audio/transcriptions");
/// The dialect of what is written down in English.
pub static TRANSLATIONS: Dialect = dialect("/v1/audio/translations");

const fn dialect(path: &'static str) -> Dialect {
    Dialect { path, family: Family::OpenAi, request: RULES, reply: REPLY }
}

/// Why sound comes in the form alone: of several sources, a provider may take the one that is not looked at.
const ELSEWHERE: &str = "how long sound is that is kept elsewhere does not show";

const RULES: RequestRules = RequestRules {
    prompt: &[("prompt", PromptShape::Input)],
    not_read: &[
        "chunking_strategy",
        "include[]",
        "language",
        "languages[]",
        "response_format",
        "stream",
        "temperature",
        "timestamp_granularities[]",
    ],
    cap: CapRule::Ceiling,
    decisive: &["response_format"],
    unbounded: &[("url", ELSEWHERE), ("file_url", ELSEWHERE), ("file_id", ELSEWHERE)],
    medium: Medium::Transcript(&["file"]),
    ..RequestRules::NONE
};

const REPLY: ReplyRules = ReplyRules { whole, event, raw: true, error_event: ErrorEvent::Plain, has_usage: true };

fn whole(answer: &Answer<'_>, counter: &mut OutputCounter) -> Option<Seen> {
    answer.text.filter(|text| text.get().starts_with('"')).map(|_| output_in(answer.text, counter))
}

fn event(answer: &Answer<'_>, counter: &mut OutputCounter, chunk: &mut Chunk) {
    match answer.kind().unwrap_or_default().as_ref() {
        "transcript.text.done" => chunk.done = true,
        "error" => chunk.error = true,
        _ => chunk.seen.add(output_in(answer.delta, counter)),
    }
}
