//! `POST /v1/completions`, the oldest one: a prompt is text, and every prompt of a list is a call of its own.

use super::reply::{choices_of_event, choices_of_whole};
use super::rules::{CapRule, Dialect, ErrorEvent, Family, PromptShape, ReplyRules, RequestRules};

/// The dialect.
pub static COMPLETIONS: Dialect = Dialect {
    path: "/v1/completions",
    family: Family::OpenAi,
    request: RequestRules {
        prompt: &[("prompt", PromptShape::Input)],
        required: Some("prompt"),
        not_read: &[
            "echo",
            "frequency_penalty",
            "logit_bias",
            "logprobs",
            "presence_penalty",
            "seed",
            "stop",
            "stream",
            "temperature",
            "top_p",
            "user",
        ],
        caps: &["max_tokens"],
        // The API's default.
        cap: CapRule::Api(16),
        candidates: &["n", "best_of"],
        each_prompt_answered: true,
        asks_for_usage: true,
        ..RequestRules::NONE
    },
    reply: ReplyRules {
        whole: choices_of_whole,
        event: choices_of_event,
        raw: false,
        error_event: ErrorEvent::Plain,
        has_usage: true,
    },
};
