//! Which web pages may call, and what they may read of an answer.
//!
//! Invariant: off unless the policy names origins; a preflight needs no credential and counts nothing.

use crate::policy::Cors;

/// Headers that a page may read: without this a browser hides the wait from the page that has to sit it out.
const EXPOSED: &str = "retry-after, retry-after-ms, x-should-retry, x-request-id, x-tollgate-limited-by, \
    x-tollgate-background, \
    x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
    x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, ratelimit, ratelimit-policy";
/// For how long a browser may remember a preflight: a day, in seconds. Browsers cap it themselves.
const MAX_AGE: &str = "86400";

/// The headers that CORS adds to every answer.
#[must_use]
pub(super) fn answer_headers(cors: &Cors, origin: Option<&str>) -> Vec<(String, String)> {
    let Some(allowed) = allowed(cors, origin) else {
        let varies = (!cors.origins.is_empty()).then(|| header("vary", "Origin"));
        return varies.into_iter().collect();
    };
    vec![
        header("access-control-allow-origin", allowed),
        header("access-control-expose-headers", EXPOSED),
        header("vary", "Origin"),
    ]
}

/// The further headers of the answer to a preflight for a route that has `methods`.
#[must_use]
pub(super) fn preflight_headers(
    cors: &Cors,
    origin: Option<&str>,
    methods: &str,
    asked: Option<&str>,
) -> Vec<(String, String)> {
    if allowed(cors, origin).is_none() {
        return Vec::new();
    }
    // Clients add headers of their own; none of them can do harm here, so what is asked for is allowed.
    let asked = asked.unwrap_or("authorization, content-type");
    vec![
        header("access-control-allow-methods", methods),
        header("access-control-allow-headers", asked),
        header("access-control-max-age", MAX_AGE),
    ]
}

/// Whether CORS is on.
#[must_use]
pub(super) fn is_on(cors: &Cors) -> bool {
    !cors.origins.is_empty()
}

fn allowed<'o>(cors: &Cors, origin: Option<&'o str>) -> Option<&'o str> {
    let origin = origin?;
    cors.origins.iter().any(|listed| listed == "*" || listed == origin).then_some(origin)
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
