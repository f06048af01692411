//! `POST /v1/messages` and `/v1/messages/count_tokens`, Anthropic's dialect: what is read from a cache is no part of
//! the input that it counts, and a stream says its usage in two parts.

use serde_json::value::RawValue;

use super::bad_request::{BadRequest, bad, unsupported};
use super::json::Members;
use super::lists::each;
use super::members::members as find;
use super::reply::{Answer, Chunk, OutputCounter, is_list, output_in};
use super::rules::{CapRule, Dialect, ErrorEvent, Family, PartKind, PromptShape, ReplyRules, RequestRules};
use super::seen::Seen;
use crate::limit::Tokens;
use crate::pricing::Quantities;

/// The members with the prompt.
const PROMPT: [(&str, PromptShape); 3] =
    [("messages", PromptShape::Messages), ("system", PromptShape::Input), ("thread", PromptShape::Unseen)];
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
const DECISIVE: [&str; 4] = ["context_management", "service_tier", "thinking", "tools"];
/// Why nothing is made shorter by the provider.
const COMPACTION: &str = "making a conversation shorter is charged beside what the answer says that it used";
const UNBOUNDED: [(&str, &str); 5] = [
    ("compaction", COMPACTION),
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
        not_read: &NOT_READ,
        parts: &PARTS,
        caps: &["max_tokens"],
        cap: CapRule::Field("max_tokens"),
        decisive: &DECISIVE,
        unbounded: &UNBOUNDED,
        client_tools: &CLIENT_TOOLS,
        tools_tokens: TOOLS_TOKENS,
        extra: Some(thoughts),
        ..RequestRules::NONE
    },
    reply: ReplyRules { whole, event, raw: false, error_event: ErrorEvent::Anthropic, has_usage: true },
};

/// What calls would read; the provider makes no charge for it.
pub static COUNT_TOKENS: Dialect = Dialect {
    path: "/v1/messages/count_tokens",
    family: Family::Anthropic,
    request: RequestRules { caps: &[], cap: CapRule::Nothing, free: true, extra: None, ..MESSAGES.request },
    reply: ReplyRules {
        whole: whole_count,
        event: no_event,
        raw: false,
        error_event: ErrorEvent::Anthropic,
        has_usage: false,
    },
};

/// The tokens of thought that are asked for, which can be more than the output cap where thoughts and tools take turns.
fn thoughts(members: &Members<'_>) -> Result<Quantities, BadRequest> {
    check_edits(members)?;
    let budget = members.get("thinking").and_then(|thinking| find(thinking.value.get(), ["budget_tokens"]));
    let Some(budget) = budget.and_then(|[budget]| budget).filter(|budget| budget.get() != "null") else {
        return Ok(Quantities::default());
    };
    let tokens = budget.get().parse().map_err(|_| {
        let shown: String = budget.get().chars().take(40).collect();
        bad("thinking.budget_tokens", format!("`budget_tokens` is {shown}, want a whole number"))
    })?;
    Ok(Quantities { reasoning: Tokens(tokens), ..Quantities::default() })
}

/// Of what may be done to a conversation, leaving something out is free.
fn check_edits(members: &Members<'_>) -> Result<(), BadRequest> {
    const NAME: &str = "context_management";
    let edits = members.get(NAME).and_then(|management| find(management.value.get(), ["edits"]));
    let Some([Some(edits)]) = edits else { return Ok(()) };
    let mut only_clears = true;
    let read = each(edits.get(), |edit| {
        let kind = find(edit.get(), ["type"]).and_then(|[kind]| serde_json::from_str::<String>(kind?.get()).ok());
        only_clears &= kind.is_some_and(|kind| kind.starts_with("clear_"));
    });
    if read.is_ok() && only_clears {
        return Ok(());
    }
    Err(unsupported(NAME, format!("`{NAME}` may have edits called `clear_…` only: {COMPACTION}")))
}

fn whole(answer: &Answer<'_>, counter: &mut OutputCounter) -> Option<Seen> {
    is_list(answer.content).then(|| output_in(answer.content, counter))
}

fn event(answer: &Answer<'_>, counter: &mut OutputCounter, chunk: &mut Chunk) {
    match answer.kind().unwrap_or_default().as_ref() {
        // Hidden thoughts and the names of tools come in no delta.
        "content_block_start" if !is_tool_result(answer.content_block) => {
            chunk.seen.add(output_in(answer.content_block, counter));
        }
        "content_block_delta" => chunk.seen.add(output_in(answer.delta, counter)),
        "message_stop" => chunk.done = true,
        "error" => chunk.error = true,
        _ => {}
    }
}

/// Whether a block is what a tool of the provider's has answered, which the model reads.
fn is_tool_result(block: Option<&RawValue>) -> bool {
    let kind = block.and_then(|block| find(block.get(), ["type"])).and_then(|[kind]| kind);
    kind.is_some_and(|kind| kind.get().ends_with("_tool_result\""))
}

fn whole_count(answer: &Answer<'_>, _: &mut OutputCounter) -> Option<Seen> {
    answer.input_tokens.is_some().then(Seen::default)
}

fn no_event(_: &Answer<'_>, _: &mut OutputCounter, _: &mut Chunk) {}
