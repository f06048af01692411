//! Which headers pass, and which are set.
//!
//! Invariant: both directions have an allow-list; what is on neither list does not pass. No list, not even the
//! policy's, can let a credential, a cookie, an address or a connection's own header through.

use super::ports::UpstreamReply;
use crate::dialect::rules::Family;
use crate::policy::{Upstream, UpstreamKind, may_pass};

/// Request headers that pass as they are.
const REQUEST: [&str; 6] =
    ["accept", "cache-control", "idempotency-key", "openai-beta", "user-agent", "x-client-request-id"];
/// The header with the version of Anthropic's API, and the one that its clients send.
const VERSION: &str = "anthropic-version";
const VERSION_DEFAULT: &str = "2023-06-01";
/// The header that asks Anthropic for what its API does not do for everybody.
const BETA: &str = "anthropic-beta";
/// What of it passes, without its date: it changes neither what a token costs nor what is read and written beyond what the
/// request shows. Others do, such as a longer context, tools inside of messages, or a faster answer.
const BETAS: [&str; 19] = [
    "advanced-tool-use",
    "claude-code",
    "computer-use",
    "context-management",
    "effort",
    "extended-cache-ttl",
    "files-api",
    "fine-grained-tool-streaming",
    "interleaved-thinking",
    "model-context-window-exceeded",
    "output-128k",
    "pdfs",
    "prompt-caching",
    "structured-outputs",
    "task-budgets",
    "thinking-display-updates",
    "thinking-token-count",
    "token-counting",
    "token-efficient-tools",
];
/// Reply headers that pass as they are.
const REPLY: [&str; 4] = ["cache-control", "openai-model", "openai-processing-ms", "openai-version"];

/// The headers of a call to an upstream.
#[must_use]
pub fn request_headers(upstream: &Upstream, header: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let listed: Vec<&str> = upstream.request_headers.iter().map(String::as_str).filter(|name| may_pass(name)).collect();
    let as_they_are = |names: &[&str]| -> Vec<(String, String)> {
        names.iter().filter_map(|name| Some(((*name).to_owned(), header(name)?))).collect()
    };
    let own = if upstream.family() == Family::Anthropic { anthropic_headers(&header) } else { Vec::new() };
    let passing = as_they_are(&REQUEST).into_iter().chain(own).chain(as_they_are(&listed));
    let set = [("accept-encoding", "identity")];
    let credential = upstream.key.iter().map(|key| match upstream.kind {
        UpstreamKind::OpenAi | UpstreamKind::WorkersAi { .. } => {
            ("authorization".to_owned(), format!("Bearer {}", key.0))
        }
        UpstreamKind::Azure { .. } => ("api-key".to_owned(), key.0.clone()),
        UpstreamKind::Anthropic => ("x-api-key".to_owned(), key.0.clone()),
    });
    once(passing.chain(set.map(|(name, value)| (name.to_owned(), value.to_owned()))).chain(credential).collect())
}

/// The headers that only Anthropic knows. One that the policy lists passes as it is, after them.
fn anthropic_headers(header: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    // Without a version the provider answers nothing.
    let version = Some(header(VERSION).unwrap_or_else(|| VERSION_DEFAULT.to_owned()));
    let betas = header(BETA).and_then(|asked| known_betas(&asked));
    [(VERSION, version), (BETA, betas)]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// Those of the features that may be asked for; `None` if there are none.
fn known_betas(asked: &str) -> Option<String> {
    let is_date = |letter: char| letter.is_ascii_digit() || letter == '-';
    let is_known = |feature: &&str| BETAS.contains(&feature.trim_end_matches(is_date));
    let known: Vec<&str> = asked.split(',').map(str::trim).filter(is_known).collect();
    (!known.is_empty()).then(|| known.join(","))
}

/// The headers of an answer that come from the upstream's.
#[must_use]
pub fn reply_headers<B>(upstream: &Upstream, reply: &UpstreamReply<B>, stream: bool) -> Vec<(String, String)> {
    let listed = upstream.response_headers.iter().map(String::as_str).filter(|name| may_pass(name));
    let passing = REPLY
        .into_iter()
        .chain(listed)
        .filter(|name| !(stream && *name == "cache-control"))
        .filter_map(|name| Some((name.to_owned(), reply.header(name)?.to_owned())));
    let own = reply
        .header("x-request-id")
        .or_else(|| reply.header("request-id"))
        .or_else(|| reply.header("cf-ai-req-id"))
        .map(|id| ("x-upstream-request-id".to_owned(), id.to_owned()));
    let kind = reply.header("content-type").unwrap_or("application/json");
    let mut headers: Vec<_> = passing.chain(own).collect();
    headers.push(("content-type".to_owned(), kind.to_owned()));
    if stream {
        headers.push(("cache-control".to_owned(), "no-cache".to_owned()));
        headers.push(("x-accel-buffering".to_owned(), "no".to_owned()));
    }
    once(headers)
}

/// Each header once, with what was said of it last: what a policy lists may pass anyway, or be set.
fn once(headers: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut kept: Vec<(String, String)> = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        match kept.iter_mut().find(|(before, _)| *before == name) {
            Some(before) => before.1 = value,
            None => kept.push((name, value)),
        }
    }
    kept
}
