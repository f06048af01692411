//! `POST /v1/embeddings`.

use super::reply::{Answer, Chunk, OutputCounter, is_list};
use super::rules::{CapRule, Dialect, ErrorEvent, Family, Medium, PromptShape, ReplyRules, RequestRules};
use super::seen::Seen;

/// The dialect.
pub static EMBEDDINGS: Dialect = Dialect {
    path: "/v1/embeddings",
    family: Family::OpenAi,
    request: RequestRules {
        prompt: &[("input", PromptShape::Input)],
        required: Some("input"),
        default_model: None,
        not_read: &["dimensions", "encoding_format", "user"],
        parts: &[],
        caps: &[],
        cap: CapRule::Nothing,
        candidates: &[],
        each_prompt_answered: false,
        asks_for_usage: false,
        decisive: &[],
        unbounded: &[],
        tool_calls_cap: None,
        client_tools: &[],
        tools_tokens: 0,
        free: false,
        extra: None,
        medium: Medium::Text,
    },
    reply: ReplyRules { whole, event, raw: false, error_event: ErrorEvent::Plain, has_usage: true },
};

fn whole(answer: &Answer<'_>, _: &mut OutputCounter) -> Option<Seen> {
    is_list(answer.data).then(Seen::default)
}

fn event(_: &Answer<'_>, _: &mut OutputCounter, _: &mut Chunk) {}
