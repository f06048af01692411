//! Which headers pass in either direction, one by one.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use support::policy::Written;
use tollgate::gateway::header_policy::{reply_headers, request_headers};
use tollgate::gateway::ports::UpstreamReply;
use tollgate::policy::{Secret, Upstream};

mod support {
    pub(crate) mod policy;
}

/// Where a header comes from, on its way out and on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    /// It passes.
    Passed,
    /// It passes if the policy lists it.
    Listed,
    /// It does not pass, whatever the policy lists.
    Never,
    /// It says what we say.
    Ours,
}
use Is::{Listed, Never, Ours, Passed};

/// Each header: to the upstream, and back from it.
const TABLE: &[(&str, Is, Is)] = &[
    // What callers and providers have to say to each other.
    ("accept", Passed, Listed),
    ("cache-control", Passed, Passed),
    ("idempotency-key", Passed, Listed),
    ("openai-beta", Passed, Listed),
    ("user-agent", Passed, Listed),
    ("x-client-request-id", Passed, Listed),
    ("openai-model", Listed, Passed),
    ("openai-processing-ms", Listed, Passed),
    ("openai-version", Listed, Passed),
    ("anthropic-version", Listed, Listed),
    ("anthropic-beta", Listed, Listed),
    ("content-type", Never, Passed),
    ("x-stainless-retry-count", Listed, Listed),
    ("x-route", Listed, Listed),
    ("server", Listed, Listed),
    // Credentials.
    ("authorization", Ours, Never),
    ("x-api-key", Never, Never),
    ("api-key", Never, Never),
    ("x-goog-api-key", Never, Never),
    ("proxy-authorization", Never, Never),
    ("proxy-authenticate", Never, Never),
    ("www-authenticate", Never, Never),
    ("cookie", Never, Never),
    ("set-cookie", Never, Never),
    // Of one connection.
    ("connection", Never, Never),
    ("keep-alive", Never, Never),
    ("proxy-connection", Never, Never),
    ("te", Never, Never),
    ("trailer", Never, Never),
    ("transfer-encoding", Never, Never),
    ("upgrade", Never, Never),
    ("http2-settings", Never, Never),
    ("expect", Never, Never),
    ("host", Never, Never),
    ("via", Never, Never),
    ("alt-svc", Never, Never),
    // The body is another one, or in another encoding.
    ("accept-encoding", Ours, Never),
    ("content-encoding", Never, Never),
    ("content-length", Never, Never),
    // Who calls from where.
    ("forwarded", Never, Never),
    ("x-forwarded-for", Never, Never),
    ("x-real-ip", Never, Never),
    ("x-client-ip", Never, Never),
    ("cf-connecting-ip", Never, Never),
    ("true-client-ip", Never, Never),
    ("cdn-loop", Never, Never),
    ("sec-fetch-site", Never, Never),
    // Our account there.
    ("openai-organization", Never, Never),
    ("openai-project", Never, Never),
    ("anthropic-organization-id", Never, Never),
    ("x-ratelimit-remaining-requests", Never, Never),
    ("anthropic-ratelimit-tokens-reset", Never, Never),
    ("ratelimit", Never, Never),
    // What we alone say to our callers.
    ("retry-after", Never, Never),
    ("retry-after-ms", Never, Never),
    ("x-should-retry", Never, Never),
    ("x-request-id", Never, Never),
    ("x-tollgate-limited-by", Never, Never),
    ("access-control-allow-origin", Never, Never),
    ("location", Never, Never),
    ("refresh", Never, Never),
    ("clear-site-data", Never, Never),
    ("strict-transport-security", Never, Never),
    ("x-accel-redirect", Never, Never),
    ("x-accel-buffering", Never, Never),
];

fn upstream(listed: &[&str]) -> Upstream {
    let listed: Vec<String> = listed.iter().map(|name| (*name).to_owned()).collect();
    let policy = Written::good().read().unwrap();
    let plan = policy.plans.get("plain").unwrap();
    let named = policy.model(plan, "alpha").unwrap();
    let ours = policy.upstream(named.model).unwrap().clone();
    let key = Some(Secret("ours".to_owned()));
    Upstream { key, request_headers: listed.clone(), response_headers: listed, ..ours }
}

/// The headers with the value that the caller, or the upstream, has sent.
fn passed(headers: Vec<(String, String)>) -> Vec<String> {
    headers.into_iter().filter(|(_, value)| value == "theirs").map(|(name, _)| name).collect()
}

/// How a header fares among all of the others, where the policy lists none of them and where it lists all.
fn fares(name: &str, [unlisted, listed]: [&[(String, String)]; 2]) -> Is {
    let values = |headers: &[(String, String)]| -> Vec<String> {
        headers.iter().filter(|(header, _)| header == name).map(|(_, value)| value.clone()).collect()
    };
    match (values(unlisted).as_slice(), values(listed).as_slice()) {
        ([], []) => Never,
        ([], [theirs]) if theirs == "theirs" => Listed,
        ([theirs], [also]) if theirs == "theirs" && also == "theirs" => Passed,
        ([ours], [also]) if ours == also => Ours,
        other => {
            assert_eq!(format!("{other:?}"), "", "{name}");
            Never
        }
    }
}

#[test]
fn every_header_fares_as_the_table_says_in_both_directions() {
    let names: Vec<&str> = TABLE.iter().map(|(name, ..)| *name).collect();
    let [none, all] = [upstream(&[]), upstream(&names)];
    let out = [&none, &all].map(|upstream| request_headers(upstream, |_| Some("theirs".to_owned())));
    let theirs = names.iter().map(|name| ((*name).to_owned(), "theirs".to_owned())).collect();
    let reply = UpstreamReply { status: 200, headers: theirs, body: () };
    let back = [&none, &all].map(|upstream| reply_headers(upstream, &reply, false));
    for (name, to_upstream, to_caller) in TABLE {
        assert_eq!(fares(name, out.each_ref().map(Vec::as_slice)), *to_upstream, "{name} to the upstream");
        assert_eq!(fares(name, back.each_ref().map(Vec::as_slice)), *to_caller, "{name} to the caller");
    }
    // What is on no list of ours, and not on the policy's, does not pass.
    let known: Vec<&str> = out.iter().chain(&back).flatten().map(|(name, _)| name.as_str()).collect();
    assert_eq!(known.iter().find(|name| !names.contains(name) && **name != "x-upstream-request-id"), None);
    // A stream says that it is not to be kept or collected, each once.
    let streamed = reply_headers(&all, &reply, true);
    for (name, value) in [("cache-control", "no-cache"), ("x-accel-buffering", "no")] {
        assert_eq!(streamed.iter().filter(|(header, own)| header == name && own == value).count(), 1, "{name}");
        assert_eq!(streamed.iter().filter(|(header, _)| header == name).count(), 1, "{name}");
    }
}

#[test]
fn an_upstreams_headers_do_not_pass_unless_they_are_listed() {
    let names = ["openai-processing-ms", "server", "x-served-by", "x-request-id", "content-type", "cache-control"];
    let theirs = names.iter().map(|name| ((*name).to_owned(), "theirs".to_owned())).collect();
    let reply = UpstreamReply { status: 200, headers: theirs, body: () };
    let whole = passed(reply_headers(&upstream(&["x-served-by"]), &reply, false));
    assert_eq!(
        whole,
        ["cache-control", "openai-processing-ms", "x-served-by", "x-upstream-request-id", "content-type"]
    );
    let streamed = passed(reply_headers(&upstream(&[]), &reply, true));
    assert_eq!(streamed, ["openai-processing-ms", "x-upstream-request-id", "content-type"]);
}
