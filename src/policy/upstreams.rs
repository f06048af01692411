//! Reading the upstreams.

use std::collections::BTreeMap;

use super::plans::check_name;
use super::table::{Faults, Table};
use super::{HealthRules, ReportedCost, RetryRules, Secret, Sources, Upstream, UpstreamKind, limits, may_pass};
use crate::limit::Limit;
use crate::time::Wait;

/// Operations that Tollgate adds to an upstream's address itself.
const OPERATIONS: [&str; 6] =
    ["/chat/completions", "/completions", "/responses", "/embeddings", "/models", "/messages"];

const REPORTED: [(&str, ReportedCost); 3] =
    [("ignore", ReportedCost::Ignore), ("check", ReportedCost::Check), ("use", ReportedCost::Use)];

/// Statuses after which another try may help: the provider's own failures.
const RETRIED: [u16; 5] = [500, 502, 503, 504, 529];
const MILLIS_MAX: u64 = 3_600_000;

/// The variable that overrides the address of the upstream called `default`.
const OVERRIDE: &str = "LLM_API_BASE";

/// Reads `UPSTREAMS`. `LLM_API_BASE` overrides the address of the one called `default`.
pub(super) fn read(mut tables: Table, sources: &Sources<'_>, faults: &mut Faults) -> BTreeMap<String, Upstream> {
    let named = tables.tables(faults);
    named.into_iter().map(|(name, table)| (name.clone(), upstream(&name, table, sources, faults))).collect()
}

fn upstream(name: &str, mut table: Table, sources: &Sources<'_>, faults: &mut Faults) -> Upstream {
    check_name(name, table.own_path(), faults);
    let kind = kind(&mut table, faults);
    let written = table.text("base_url", "an address", faults);
    let overridden = (sources.variable)(OVERRIDE).filter(|base| name == "default" && !base.is_empty());
    let path = if overridden.is_some() { OVERRIDE.to_owned() } else { table.path("base_url") };
    let base_url = overridden.or(written).unwrap_or_default();
    let base_url = base_url.strip_suffix('/').unwrap_or(&base_url).to_owned();
    // A binding has no address.
    if !matches!(kind, UpstreamKind::WorkersAi { .. })
        && let Err(want) = check_base_url(&base_url)
    {
        faults.add(&path, "address", without_user(&base_url), want);
    }
    let key = table.text("secret", "the name of a secret", faults).and_then(|secret| {
        let value = (sources.variable)(&secret);
        let usable = value.filter(|key| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()));
        if usable.is_none() {
            // Whoever writes the key where its name belongs must not find it published at /healthz.
            let is_name = secret.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
            let what = if is_name { secret.as_str() } else { "name" };
            faults.add(&table.path("secret"), what, "no usable secret", "the name of a secret of printable ASCII");
        }
        usable.map(Secret)
    });
    // A native stream says what it used whether it is asked or not, so what was not asked for is always taken out.
    let always = matches!(kind, UpstreamKind::WorkersAi { .. });
    let upstream = Upstream {
        name: name.to_owned(),
        kind,
        base_url,
        key,
        request_headers: headers("request_headers", &mut table, faults),
        response_headers: headers("response_headers", &mut table, faults),
        stream_usage: table.flag("stream_usage", faults).unwrap_or(true) || always,
        reported_cost: table.word("reported_cost", &REPORTED, faults).unwrap_or(ReportedCost::Ignore),
        first_byte: table.number("first_byte_ms", (1, MILLIS_MAX), faults).map(Wait),
        retry: retry(table.table("retry", faults), faults),
        health: health(table.table("health", faults), faults),
        limits: own_limits(&mut table, faults),
    };
    table.finish(faults);
    upstream
}

/// How it is called, and what belongs to that.
fn kind(table: &mut Table, faults: &mut Faults) -> UpstreamKind {
    const WORDS: [(&str, &str); 4] =
        [("openai", "openai"), ("anthropic", "anthropic"), ("azure", "azure"), ("workers_ai", "workers_ai")];
    match table.word("kind", &WORDS, faults) {
        Some("anthropic") => UpstreamKind::Anthropic,
        Some("azure") => {
            table.require("api_version", "the version in the query, such as \"2024-10-21\"", faults);
            let version = table.text("api_version", "a version", faults).unwrap_or_default();
            if !version.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)) {
                faults.add(&table.path("api_version"), "version", format!("\"{version}\""), "letters, digits, - and .");
            }
            UpstreamKind::Azure { api_version: version }
        }
        Some("workers_ai") => {
            let binding = table.text("binding", "a binding's name", faults).unwrap_or_else(|| "AI".to_owned());
            UpstreamKind::WorkersAi { binding }
        }
        _ => UpstreamKind::OpenAi,
    }
}

fn retry(mut table: Table, faults: &mut Faults) -> RetryRules {
    let attempts = table.number("attempts", (1, 10), faults).unwrap_or(2);
    let statuses = table.numbers("statuses", (400, 599), faults);
    let mut millis = |name: &str, default: u64| Wait(table.number(name, (0, 60_000), faults).unwrap_or(default));
    let (backoff, wait_max) = (millis("backoff_ms", 250), millis("wait_max_ms", 2_000));
    table.finish(faults);
    RetryRules { attempts, statuses: statuses.unwrap_or_else(|| RETRIED.to_vec()), backoff, wait_max }
}

fn health(mut table: Table, faults: &mut Faults) -> HealthRules {
    let failures = table.number("failures", (1, 1_000), faults).unwrap_or(5);
    let open = Wait(table.number("open_ms", (1, MILLIS_MAX), faults).unwrap_or(30_000));
    table.finish(faults);
    HealthRules { failures, open }
}

/// The limits of our account there; none if there is no such table.
fn own_limits(table: &mut Table, faults: &mut Faults) -> Vec<Limit> {
    if table.has("limits") { limits::read(table.table("limits", faults), faults) } else { Vec::new() }
}

/// A list of headers that are to pass.
fn headers(name: &str, table: &mut Table, faults: &mut Faults) -> Vec<String> {
    let listed: Vec<String> = table.list(name, faults).unwrap_or_default();
    let listed: Vec<String> = listed.into_iter().map(|header| header.to_ascii_lowercase()).collect();
    for header in listed.iter().filter(|header| !may_pass(header)) {
        let want = "one that is no credential, cookie, address, limit or part of the connection";
        faults.add(&table.path(name), "header", format!("\"{header}\""), want);
    }
    listed
}

/// An address as a fault shows it: without what may be a password.
fn without_user(address: &str) -> String {
    let shown = address.rsplit_once('@').map_or(address, |(_, rest)| rest);
    format!("\"{shown}\"")
}

fn check_base_url(base: &str) -> Result<(), &'static str> {
    let https = base.strip_prefix("https://");
    let http = base.strip_prefix("http://");
    let rest = https.or(http).ok_or("https://…")?;
    let host = rest.split('/').next().unwrap_or_default();
    let loopback = host.split(':').next().is_some_and(|name| matches!(name, "127.0.0.1" | "localhost"));
    if https.is_none() && !loopback && !host.starts_with("[::1]") {
        return Err("https://…: a credential does not travel in the clear, except to this machine");
    }
    if host.is_empty() || rest.contains(['?', '#', '@', ' ', '\\']) || !rest.is_ascii() {
        return Err("a host and a path, without query, fragment or user");
    }
    if OPERATIONS.iter().any(|operation| base.ends_with(operation)) {
        return Err("an address without the operation at its end; Tollgate adds it");
    }
    Ok(())
}
