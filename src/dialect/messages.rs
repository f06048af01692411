//! `POST /v1/messages` and `/v1/messages/count_tokens`, Anthropic's dialect: what is read from a cache is no part of
//! the input that it counts, and a stream says its usage in two parts.

use super::reply::{Answer, Chunk, OutputCounter, is_list, output_in};
use super::rules::{CapRule, Dialect, ErrorEvent, Family, Medium, PartKind, PromptShape, ReplyRules, RequestRules};
use super::seen::Seen;

/// The members with the prompt.
const PROMPT: [(&str, PromptShape); 2] = [("messages", PromptShape::Messages), ("system", PromptShape::Input)];
const NOT_READ: [&str; 10] = [
    "cache_control",
    "context_management",
    "metadata",
    "service_tier",
    "stop_sequences",
    "stream",
    "temperature",
    "thinking",
    "top_k",
    "top_p",
];
const PARTS: [(&str, PartKind); 1] = [("source", PartKind::Source)];
const DECISIVE: [&str; 2] = ["service_tier", "tools"];
const UNBOUNDED: [(&str, &str); 4] = [
    ("mcp_servers", "what its tools answer is read as input, which no limit here can see before"),
    ("container", "the provider's containers are charged by time, which no limit here can see before"),
    ("speed", "a faster answer is charged at a price of its own, which no limit here knows"),
    ("inference_geo", "the place of an answer is charged at a price of its own, which no limit here knows"),
];
/// Tools that the client runs, whose descriptions the provider writes itself.
const CLIENT_TOOLS: [&str; 4] = ["bash_", "text_editor_", "computer_", "memory_"];
/// What the provider's own words about having tools count at most (530 for the dearest model of its table).
const TOOLS_TOKENS: u64 = 530;

/// Calls.
pub static MESSAGES: Dialect = Dialect {
    path: "/v1/messages",
    family: Family::Anthropic,
    request: RequestRules {
        prompt: &PROMPT,
        required: Some("messages"),
        default_model: None,
        not_read: &NOT_READ,
        parts: &PARTS,
        caps: &["max_tokens"],
        cap: CapRule::Field("max_tokens"),
        candidates: &[],
        each_prompt_answered: false,
        asks_for_usage: false,
        decisive: &DECISIVE,
        unbounded: &UNBOUNDED,
        tool_calls_cap: None,
        client_tools: &CLIENT_TOOLS,
        tools_tokens: TOOLS_TOKENS,
        free: false,
        extra: None,
        medium: Medium::Text,
    },
    reply: ReplyRules { whole, event, raw: false, error_event: ErrorEvent::Anthropic, has_usage: true },
};

/// What calls would read; the provider makes no charge for it.
pub static COUNT_TOKENS: Dialect = Dialect {
    path: "/v1/messages/count_tokens",
    family: Family::Anthropic,
    request: RequestRules { caps: &[], cap: CapRule::Nothing, free: true, ..MESSAGES.request },
    reply: ReplyRules {
        whole: whole_count,
        event: no_event,
        raw: false,
        error_event: ErrorEvent::Anthropic,
        has_usage: false,
    },
};

fn whole(answer: &Answer<'_>, counter: &mut OutputCounter) -> Option<Seen> {
    is_list(answer.content).then(|| output_in(answer.content, counter))
}

fn event(answer: &Answer<'_>, counter: &mut OutputCounter, chunk: &mut Chunk) {
    match answer.kind().unwrap_or_default().as_ref() {
        "content_block_delta" => chunk.seen.add(output_in(answer.delta, counter)),
        "message_stop" => chunk.done = true,
        "error" => chunk.error = true,
        _ => {}
    }
}

fn whole_count(answer: &Answer<'_>, _: &mut OutputCounter) -> Option<Seen> {
    answer.input_tokens.is_some().then(Seen::default)
}

fn no_event(_: &Answer<'_>, _: &mut OutputCounter, _: &mut Chunk) {}
