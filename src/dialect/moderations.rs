//! `POST /v1/moderations`: texts and images are judged. Nothing is written, and no usage is said.

use super::reply::{Answer, Chunk, OutputCounter, is_list};
use super::rules::{CapRule, Dialect, ErrorEvent, Family, Medium, PartKind, PromptShape, ReplyRules, RequestRules};
use super::seen::Seen;

/// The dialect.
pub static MODERATIONS: Dialect = Dialect {
    path: "/v1/moderations",
    family: Family::OpenAi,
    request: RequestRules {
        prompt: &[("input", PromptShape::Input)],
        required: Some("input"),
        // The API's default.
        default_model: Some("omni-moderation-latest"),
        not_read: &[],
        parts: &[("image_url", PartKind::Image)],
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
    reply: ReplyRules { whole, event, raw: false, error_event: ErrorEvent::Plain, has_usage: false },
};

fn whole(answer: &Answer<'_>, _: &mut OutputCounter) -> Option<Seen> {
    is_list(answer.results).then(Seen::default)
}

fn event(_: &Answer<'_>, _: &mut OutputCounter, _: &mut Chunk) {}
