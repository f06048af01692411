//! `POST /v1/chat/completions`.

use super::bad_request::{BadRequest, bad, shown, unsupported};
use super::json::Members;
use super::reply::{choices_of_event, choices_of_whole};
use super::rules::{CapRule, Dialect, ErrorEvent, Family, PartKind, PromptShape, ReplyRules, RequestRules};
use crate::limit::Tokens;
use crate::pricing::Quantities;

/// The dialect.
pub static CHAT: Dialect = Dialect {
    path: "/v1/chat/completions",
    family: Family::OpenAi,
    request: RequestRules {
        prompt: &[
            ("messages", PromptShape::Messages),
            // Azure's, Gemini's: what is found or kept there is read as well.
            ("data_sources", PromptShape::Unseen),
            ("extra_body", PromptShape::Unseen),
            ("cached_content", PromptShape::Unseen),
        ],
        required: Some("messages"),
        not_read: &[
            "audio",
            "frequency_penalty",
            "logit_bias",
            "logprobs",
            "metadata",
            "modalities",
            "parallel_tool_calls",
            "prediction",
            "presence_penalty",
            "prompt_cache_key",
            "prompt_cache_retention",
            "reasoning_effort",
            "safety_identifier",
            "seed",
            "service_tier",
            "stop",
            "store",
            "stream",
            "temperature",
            "top_logprobs",
            "top_p",
            "user",
            "verbosity",
        ],
        parts: &[
            ("image_url", PartKind::Image),
            ("input_audio", PartKind::Audio),
            ("audio", PartKind::Audio),
            ("audio_url", PartKind::Audio),
            ("document_url", PartKind::File),
            ("file", PartKind::File),
            ("file_id", PartKind::File),
            ("input_file", PartKind::File),
            ("video", PartKind::File),
            ("video_url", PartKind::File),
        ],
        caps: &["max_completion_tokens", "max_tokens"],
        cap: CapRule::Model,
        candidates: &["n"],
        asks_for_usage: true,
        decisive: &["prediction", "service_tier", "modalities", "audio", "web_search_options", "tools", "functions"],
        unbounded: &[("web_search_options", "searches are charged per query, which no limit here can see before")],
        extra: Some(kinds),
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

/// The kinds of answer: spoken ones have a price of their own.
fn kinds(members: &Members<'_>) -> Result<Quantities, BadRequest> {
    let Some(modalities) = members.get("modalities") else {
        return match members.get("audio") {
            Some(_) => Err(unsupported("audio", "`audio` stands without `modalities` that have \"audio\"".to_owned())),
            None => Ok(Quantities::default()),
        };
    };
    let kinds = serde_json::from_str::<Vec<String>>(modalities.value.get())
        .map_err(|_| bad("modalities", format!("`modalities` is {}, want a list of texts", shown(modalities))))?;
    if !kinds.iter().all(|kind| matches!(kind.as_str(), "text" | "audio")) {
        let message = format!("`modalities` is {}, want \"text\" and \"audio\" only", shown(modalities));
        return Err(unsupported("modalities", message));
    }
    let spoken = kinds.iter().any(|kind| kind == "audio");
    Ok(Quantities { audio_output: Tokens(u64::from(spoken)), ..Quantities::default() })
}
