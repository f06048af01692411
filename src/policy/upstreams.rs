//! Reading the upstreams.

use std::collections::BTreeMap;

use super::table::{Faults, Table};
use super::{ReportedCost, Secret, Sources, Upstream, may_pass};
use crate::dialect::rules::Family;

/// Operations that Tollgate adds to an upstream's address itself.
const OPERATIONS: [&str; 6] =
    ["/chat/completions", "/completions", "/responses", "/embeddings", "/models", "/messages"];

const REPORTED: [(&str, ReportedCost); 3] =
    [("ignore", ReportedCost::Ignore), ("check", ReportedCost::Check), ("use", ReportedCost::Use)];

/// The variable that overrides the address of the upstream called `default`.
const OVERRIDE: &str = "LLM_API_BASE";

/// Reads `UPSTREAMS`. `LLM_API_BASE` overrides the address of the one called `default`.
pub(super) fn read(mut tables: Table, sources: &Sources<'_>, faults: &mut Faults) -> BTreeMap<String, Upstream> {
    let named = tables.tables(faults);
    named.into_iter().map(|(name, table)| (name.clone(), upstream(&name, table, sources, faults))).collect()
}

fn upstream(name: &str, mut table: Table, sources: &Sources<'_>, faults: &mut Faults) -> Upstream {
    let written = table.text("base_url", "an address", faults);
    let overridden = (sources.variable)(OVERRIDE).filter(|base| name == "default" && !base.is_empty());
    let path = if overridden.is_some() { OVERRIDE.to_owned() } else { table.path("base_url") };
    let base_url = overridden.or(written).unwrap_or_default();
    let base_url = base_url.strip_suffix('/').unwrap_or(&base_url).to_owned();
    if let Err(want) = check_base_url(&base_url) {
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
    let upstream = Upstream {
        base_url,
        key,
        request_headers: headers("request_headers", &mut table, faults),
        response_headers: headers("response_headers", &mut table, faults),
        stream_usage: table.flag("stream_usage", faults).unwrap_or(true),
        family: table
            .word("kind", &[("openai", Family::OpenAi), ("anthropic", Family::Anthropic)], faults)
            .unwrap_or(Family::OpenAi),
        reported_cost: table.word("reported_cost", &REPORTED, faults).unwrap_or(ReportedCost::Ignore),
    };
    table.finish(faults);
    upstream
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
