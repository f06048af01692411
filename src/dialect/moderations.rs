//! `POST /v1/moderations`: texts and images are judged. Nothing is written, and no usage is said.

use super::reply::{Answer, Chunk, OutputCounter, is_list};
use super::rules::{Dialect, ErrorEvent, Family, PartKind, PromptShape, ReplyRules, RequestRules};
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
        parts: &[("image_url", PartKind::Image)],
        ..RequestRules::NONE
    },
    reply: ReplyRules { whole, event, raw: false, error_event: ErrorEvent::Plain, has_usage: false },
};

fn whole(answer: &Answer<'_>, _: &mut OutputCounter) -> Option<Seen> {
    is_list(answer.results).then(Seen::default)
}

fn event(_: &Answer<'_>, _: &mut OutputCounter, _: &mut Chunk) {}
