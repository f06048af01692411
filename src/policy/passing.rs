//! Which headers a policy may let pass.

/// The headers that may carry a caller's credential. All of them are taken out before a call goes upstream.
pub const CREDENTIAL_HEADERS: [&str; 3] = ["authorization", "x-api-key", "api-key"];

/// Headers that never pass, in either direction, whatever the policy lists.
const NEVER: [&str; 40] = [
    "accept-encoding",
    "alt-svc",
    "anthropic-organization-id",
    "authentication-info",
    "cdn-loop",
    "clear-site-data",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "location",
    "openai-organization",
    "openai-project",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "refresh",
    "retry-after",
    "retry-after-ms",
    "set-cookie",
    "strict-transport-security",
    "te",
    "trailer",
    "transfer-encoding",
    "true-client-ip",
    "upgrade",
    "via",
    "www-authenticate",
    "x-client-ip",
    "x-goog-api-key",
    "x-real-ip",
    "x-request-id",
    "x-should-retry",
];
const NEVER_PREFIXES: [&str; 9] = [
    "access-control-",
    "anthropic-ratelimit-",
    "cf-",
    "ratelimit",
    "sec-",
    "x-accel-",
    "x-forwarded-",
    "x-ratelimit-",
    "x-tollgate-",
];

/// Whether a policy may let this header pass.
#[must_use]
pub fn may_pass(name: &str) -> bool {
    !CREDENTIAL_HEADERS.contains(&name)
        && !NEVER.contains(&name)
        && !NEVER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
