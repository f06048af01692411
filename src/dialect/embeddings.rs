//! `POST /v1/embeddings`.

use super::reply::{Answer, Chunk, OutputCounter, is_list};
use super::rules::{Dialect, ErrorEvent, Family, PartKind, PromptShape, ReplyRules, RequestRules};
use super::seen::Seen;

/// The dialect.
pub static EMBEDDINGS: Dialect = Dialect {
    path: "/v1/embeddings",
    family: Family::OpenAi,
    request: RequestRules {
        prompt: &[("input", PromptShape::Input)],
        required: Some("input"),
        not_read: &["dimensions", "encoding_format", "user"],
        // Some providers embed images as well.
        parts: &[
            ("image", PartKind::Image),
            ("image_base64", PartKind::Image),
            ("image_url", PartKind::Image),
            ("video_url", PartKind::File),
        ],
        ..RequestRules::NONE
    },
    reply: ReplyRules { whole, event, raw: false, error_event: ErrorEvent::Plain, has_usage: true },
};

fn whole(answer: &Answer<'_>, _: &mut OutputCounter) -> Option<Seen> {
    is_list(answer.data).then(Seen::default)
}

fn event(_: &Answer<'_>, _: &mut OutputCounter, _: &mut Chunk) {}
