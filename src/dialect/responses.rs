//! `POST /v1/responses`: items instead of messages, a stream whose last event is the answer itself.

use super::bad_request::{BadRequest, unsupported};
use super::json::Members;
use super::reply::{Answer, Chunk, OutputCounter, is_list, output_in};
use super::rules::{CapRule, Dialect, Family, Medium, PartKind, PromptShape, ReplyRules, RequestRules};
use super::seen::Seen;

/// The dialect.
pub static RESPONSES: Dialect = Dialect {
    path: "/v1/responses",
    family: Family::OpenAi,
    request: RequestRules {
        prompt: &[
            ("input", PromptShape::Input),
            ("previous_response_id", PromptShape::Unseen),
            ("conversation", PromptShape::Unseen),
            ("prompt", PromptShape::Unseen),
        ],
        required: None,
        default_model: None,
        not_read: &[
            "background",
            "include",
            "max_tool_calls",
            "metadata",
            "parallel_tool_calls",
            "prompt_cache_key",
            "prompt_cache_retention",
            "reasoning",
            "safety_identifier",
            "service_tier",
            "store",
            "stream",
            "stream_options",
            "temperature",
            "top_logprobs",
            "top_p",
            "truncation",
            "user",
        ],
        parts: &[
            ("image_url", PartKind::Image),
            ("input_audio", PartKind::Audio),
            ("file_data", PartKind::File),
            ("file_url", PartKind::File),
            ("file_id", PartKind::File),
        ],
        caps: &["max_output_tokens"],
        cap: CapRule::Field("max_output_tokens"),
        candidates: &[],
        each_prompt_answered: false,
        asks_for_usage: false,
        decisive: &["background", "instructions", "max_tool_calls", "service_tier", "tools"],
        unbounded: &[],
        tool_calls_cap: Some("max_tool_calls"),
        check: Some(check),
        extra: None,
        medium: Medium::Text,
    },
    reply: ReplyRules { whole, event, raw: false, has_usage: true },
};

fn check(members: &Members<'_>) -> Result<(), BadRequest> {
    let is_true = |name: &str| members.get(name).is_some_and(|member| member.value.get() == "true");
    if is_true("background") && is_true("stream") {
        let why = "`background` is not supported together with `stream`: it goes on when its client has left";
        return Err(unsupported("background", why.to_owned()));
    }
    Ok(())
}

fn whole(answer: &Answer<'_>, counter: &mut OutputCounter) -> Option<Seen> {
    // One that is still queued has no output yet, or an empty one.
    is_list(answer.output).then(|| output_in(answer.output, counter))
}

/// Text comes in events called `….delta`; the last event holds the whole answer, which was counted by then.
fn event(answer: &Answer<'_>, counter: &mut OutputCounter, chunk: &mut Chunk) {
    match answer.kind().unwrap_or_default().as_ref() {
        "response.completed" | "response.incomplete" => chunk.done = true,
        "response.failed" | "response.cancelled" | "error" => chunk.error = true,
        kind if kind.rsplit('.').next() == Some("delta") => chunk.seen.add(output_in(answer.delta, counter)),
        _ => {}
    }
}
