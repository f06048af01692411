//! Reading the upstreams.

use std::collections::BTreeMap;

use super::table::{Faults, Table};
use super::{Secret, Sources, Upstream};

/// Operations that Tollgate adds to an upstream's address itself.
const OPERATIONS: [&str; 6] =
    ["/chat/completions", "/completions", "/responses", "/embeddings", "/models", "/messages"];

/// Reads `UPSTREAMS`. `LLM_API_BASE` overrides the address of the one called `default`.
pub(super) fn read(mut tables: Table, sources: &Sources<'_>, faults: &mut Faults) -> BTreeMap<String, Upstream> {
    let named = tables.tables(faults);
    named.into_iter().map(|(name, table)| (name.clone(), upstream(&name, table, sources, faults))).collect()
}

fn upstream(name: &str, mut table: Table, sources: &Sources<'_>, faults: &mut Faults) -> Upstream {
    let path = table.path("base_url");
    let written = table.text("base_url", "an address", faults);
    let overridden = (sources.variable)("LLM_API_BASE").filter(|base| name == "default" && !base.is_empty());
    let base_url = overridden.or(written).unwrap_or_default();
    let base_url = base_url.strip_suffix('/').unwrap_or(&base_url).to_owned();
    if let Err(want) = check_base_url(&base_url) {
        faults.add(&path, "address", format!("\"{base_url}\""), want);
    }
    let key = table.text("secret", "the name of a secret", faults).and_then(|secret| {
        let value = (sources.variable)(&secret);
        let usable = value.filter(|key| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()));
        if usable.is_none() {
            faults.add(&table.path("secret"), &secret, "no usable secret", "a secret of printable ASCII");
        }
        usable.map(Secret)
    });
    let mut headers = |name: &str| {
        let names: Vec<String> = table.list(name, faults).unwrap_or_default();
        names.into_iter().map(|header| header.to_ascii_lowercase()).collect()
    };
    let upstream = Upstream {
        base_url,
        key,
        request_headers: headers("request_headers"),
        response_headers: headers("response_headers"),
        stream_usage: table.flag("stream_usage", faults).unwrap_or(true),
    };
    table.finish(faults);
    upstream
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
