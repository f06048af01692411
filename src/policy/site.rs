//! Reading what concerns the whole site: the day's ledger, visitors, the shield.

use std::collections::{BTreeMap, BTreeSet};

use super::plans::on_unavailable;
use super::table::{Faults, Table};
use super::{LedgerRules, Plan, Secret, Shield, Sources, Turnstile, VisitorTokens, Visitors};
use crate::ledger::DayCaps;
use crate::limit::NanoUsd;
use crate::limit::{AMOUNT_MAX, Amount, Limit, Period, Shape, Unit};
use crate::time::Wait;
use crate::visitor::{Ipv6Prefix, VisitorSecret};

/// Where Turnstile's answers are checked.
const TURNSTILE_URL: &str = "https://challenges.cloudflare.com/turnstile/v0/siteverify";
/// A week: how long a visitor token is good.
const TOKEN_MS: u64 = 7 * 86_400_000;
const DAYS_MAX: u64 = 10_000;

/// Reads the caps of one day: `daily_calls` and `daily_usd`.
pub(super) fn day_caps(table: &mut Table, faults: &mut Faults) -> DayCaps {
    DayCaps { calls: table.amount("daily_calls", faults), usd: table.money("daily_usd", faults) }
}

/// Reads `POLICY.site` and `POLICY.ledger`. There is a ledger where anything asks for one.
pub(super) fn ledger(
    policy: &mut Table,
    plans: &BTreeMap<String, Plan>,
    sources: &Sources<'_>,
    faults: &mut Faults,
) -> Option<LedgerRules> {
    let asked = policy.has("site") || policy.has("ledger") || plans.values().any(|plan| plan.daily.is_some());
    let mut table = policy.table("site", faults);
    let mut site = day_caps(&mut table, faults);
    site.calls = calls_override("GLOBAL_DAILY_CALLS", sources, faults).or(site.calls);
    site.usd = usd_override("GLOBAL_DAILY_USD", sources, faults).or(site.usd);
    let exempt: BTreeSet<String> = table.list("exempt", faults).unwrap_or_default().into_iter().collect();
    for name in exempt.iter().filter(|name| !plans.contains_key(*name)) {
        faults.add(&table.path("exempt"), "plan", format!("\"{name}\""), "a plan of PLANS");
    }
    table.finish(faults);
    let mut table = policy.table("ledger", faults);
    let on_unavailable = on_unavailable(&mut table, faults);
    let mut number = |name: &str, max, default| table.number(name, (1, max), faults).unwrap_or(default);
    let rules = LedgerRules {
        site,
        exempt,
        keep_days: number("keep_days", DAYS_MAX, 7),
        keep_user_days: number("keep_user_days", DAYS_MAX, 400),
        post_after: Wait(number("post_ms", 3_600_000, 10_000)),
        on_unavailable,
    };
    table.finish(faults);
    (asked || rules.site.is_some()).then_some(rules)
}

/// Reads `POLICY.visitors`.
pub(super) fn visitors(
    policy: &mut Table,
    plans: &mut BTreeMap<String, Plan>,
    sources: &Sources<'_>,
    faults: &mut Faults,
) -> Option<Visitors> {
    if !policy.has("visitors") {
        return None;
    }
    let mut table = policy.table("visitors", faults);
    let plan = existing_plan("plan", &mut table, plans, faults);
    let ipv6 = match table.number("ipv6_prefix", (56, 64), faults) {
        Some(56) => Ipv6Prefix::Bits56,
        None | Some(64) => Ipv6Prefix::Bits64,
        Some(bits) => {
            faults.add(&table.path("ipv6_prefix"), "prefix", bits, "64 or 56");
            Ipv6Prefix::Bits64
        }
    };
    let tokens = table.has("tokens").then(|| tokens(table.table("tokens", faults), plans, sources, faults)).flatten();
    table.finish(faults);
    let plan = plan?;
    if let Some(calls) = calls_override("VISITOR_DAILY_CALLS", sources, faults)
        && let Some(plan) = plans.get_mut(&plan)
    {
        plan.daily.calls = Some(calls);
    }
    let secret = match (sources.variable)("VISITOR_SECRET") {
        None => None,
        Some(text) => {
            let secret = VisitorSecret::new(&text);
            if secret.is_none() {
                faults.add("VISITOR_SECRET", "secret", format!("{} bytes", text.len()), "at least 16");
            }
            secret
        }
    };
    Some(Visitors { plan, ipv6, secret, tokens })
}

fn tokens(
    mut table: Table,
    plans: &BTreeMap<String, Plan>,
    sources: &Sources<'_>,
    faults: &mut Faults,
) -> Option<VisitorTokens> {
    let shared = existing_plan("shared_plan", &mut table, plans, faults);
    let per_hour = table.number("issue_per_hour", (1, 1_000_000), faults).unwrap_or(30);
    let lifetime = Wait(table.number("lifetime_ms", (60_000, AMOUNT_MAX), faults).unwrap_or(TOKEN_MS));
    let turnstile = table.flag("turnstile", faults).unwrap_or(false);
    let url = table.text("turnstile_url", "an address", faults).unwrap_or_else(|| TURNSTILE_URL.to_owned());
    let secret = (sources.variable)("TURNSTILE_SECRET").filter(|secret| !secret.is_empty());
    if turnstile && secret.is_none() {
        faults.add(&table.path("turnstile"), "TURNSTILE_SECRET", "no secret", "the secret of your widget");
    }
    if let Some(name) = shared.as_ref().filter(|name| plans.get(*name).is_some_and(|plan| plan.daily.is_some())) {
        let want = "a plan without: over all visitors of a network a window limit does it";
        faults.add(&table.path("shared_plan"), "daily caps", format!("\"{name}\""), want);
    }
    table.finish(faults);
    let shape = Shape::Bucket { burst: Amount(per_hour), refill: Amount(per_hour), per: Period::Hour };
    Some(VisitorTokens {
        shared: shared.and_then(|name| plans.get(&name)).map(|plan| plan.limits.clone())?,
        // A name that no limit of a policy, shared or a member's, can have.
        issue: Limit { name: "issue~~".to_owned(), unit: Unit::Requests, shape },
        lifetime,
        turnstile: secret.filter(|_| turnstile).map(|secret| Turnstile { url, secret: Secret(secret) }),
    })
}

/// Reads `POLICY.shield`.
pub(super) fn shield(policy: &mut Table, faults: &mut Faults) -> Option<Shield> {
    if !policy.has("shield") {
        return None;
    }
    let mut table = policy.table("shield", faults);
    let visitors_only = table.word("applies_to", &[("visitors", true), ("everyone", false)], faults).unwrap_or(true);
    let path = table.path("period_s");
    let seconds = table.number("period_s", (10, 60), faults).unwrap_or(60);
    if !matches!(seconds, 10 | 60) {
        faults.add(&path, "period", seconds, "10 or 60, as the binding has it");
    }
    table.finish(faults);
    Some(Shield { visitors_only, period: Wait::seconds(seconds) })
}

fn existing_plan(name: &str, table: &mut Table, plans: &BTreeMap<String, Plan>, faults: &mut Faults) -> Option<String> {
    table.require(name, "a plan's name", faults);
    let plan = table.text(name, "a plan's name", faults)?;
    if plans.contains_key(&plan) {
        return Some(plan);
    }
    faults.add(&table.path(name), "plan", format!("\"{plan}\""), "a plan of PLANS");
    None
}

/// A single variable that overrides a number of calls. Zero is zero.
fn calls_override(name: &str, sources: &Sources<'_>, faults: &mut Faults) -> Option<u64> {
    let text = (sources.variable)(name)?;
    let number = text.trim().parse().ok().filter(|number| *number <= AMOUNT_MAX);
    if number.is_none() {
        faults.add(name, "number", format!("\"{text}\""), "a whole number of calls");
    }
    number
}

/// A single variable that overrides an amount of money.
fn usd_override(name: &str, sources: &Sources<'_>, faults: &mut Faults) -> Option<NanoUsd> {
    let text = (sources.variable)(name)?;
    match NanoUsd::from_decimal(text.trim()) {
        Ok(money) => Some(money),
        Err(want) => {
            faults.add(name, "money", format!("\"{text}\""), want);
            None
        }
    }
}
