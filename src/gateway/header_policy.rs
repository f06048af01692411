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
/// Request headers that pass to Anthropic.
const ANTHROPIC_REQUEST: [&str; 2] = [VERSION, "anthropic-beta"];
/// Reply headers that pass as they are.
const REPLY: [&str; 4] = ["cache-control", "openai-model", "openai-processing-ms", "openai-version"];

/// The headers of a call to an upstream.
#[must_use]
pub fn request_headers(upstream: &Upstream, header: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let listed = upstream.request_headers.iter().map(String::as_str).filter(|name| may_pass(name));
    let own: &[&str] = if upstream.family() == Family::Anthropic { &ANTHROPIC_REQUEST } else { &[] };
    let names = REQUEST.into_iter().chain(own.iter().copied()).chain(listed);
    let passing = names.filter_map(|name| {
        // Without a version the provider answers nothing.
        let default = (name == VERSION).then(|| VERSION_DEFAULT.to_owned());
        Some((name.to_owned(), header(name).or(default)?))
    });
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
