//! Reading the plans.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{Faults, Table};
use super::{AboveMax, AllowedModels, Model, OnDisconnect, OnUnavailable, Plan, limits, site};
use crate::dialect::request::Allowances;
use crate::limit::{AMOUNT_MAX, Tokens};

/// A body is held in memory while it is read and changed; a Worker has 128 MB for all its calls.
const BODY_MAX: u64 = 25 * 1024 * 1024;

/// Reads `PLANS`.
pub(super) fn read(mut tables: Table, models: &BTreeMap<String, Model>, faults: &mut Faults) -> BTreeMap<String, Plan> {
    let named = tables.tables(faults);
    if named.is_empty() {
        faults.add("PLANS", "plans", "none", "at least one");
    }
    named.into_iter().map(|(name, table)| (name.clone(), plan(name, table, models, faults))).collect()
}

fn plan(name: String, mut table: Table, models: &BTreeMap<String, Model>, faults: &mut Faults) -> Plan {
    check_name(&name, table.own_path(), faults);
    let plan = Plan {
        models: allowed(&mut table, models, faults),
        output_default: Tokens(table.number("output_default", (1, AMOUNT_MAX), faults).unwrap_or(1_024)),
        output_max: table.number("output_max", (1, AMOUNT_MAX), faults).map(Tokens),
        output_above_max: table
            .word("output_above_max", &[("lower", AboveMax::Lower), ("refuse", AboveMax::Refuse)], faults)
            .unwrap_or(AboveMax::Lower),
        candidates_max: table.number("n_max", (1, 128), faults).unwrap_or(8),
        body_max: table
            .number("body_max", (1, BODY_MAX), faults)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(1_048_576),
        allowances: allowances(&mut table, faults),
        on_disconnect: table
            .word("on_disconnect", &[("cancel", OnDisconnect::Cancel), ("drain", OnDisconnect::Drain)], faults)
            .unwrap_or(OnDisconnect::Cancel),
        on_unavailable: on_unavailable(&mut table, faults),
        daily: site::day_caps(&mut table, faults),
        limits: limits::read(table.table("limits", faults), faults),
        name,
    };
    table.finish(faults);
    plan
}

/// A plan's name stands in rows and commands, where other characters separate; so does an upstream's.
pub(super) fn check_name(name: &str, path: &str, faults: &mut Faults) {
    const NAME_MAX: usize = 32;
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !plain || name.is_empty() || name.len() > NAME_MAX {
        faults.add(path, "name", format!("\"{name}\""), "1 to 32 of letters, digits, - and _");
    }
}

fn allowed(table: &mut Table, models: &BTreeMap<String, Model>, faults: &mut Faults) -> AllowedModels {
    const WANT: &str = "a list of models, or [\"*\"] for all";
    table.require("models", WANT, faults);
    let list: BTreeSet<String> = table.list("models", faults).unwrap_or_default().into_iter().collect();
    if list.len() == 1 && list.contains("*") {
        return AllowedModels::All;
    }
    for name in list.iter().filter(|name| !models.contains_key(*name)) {
        faults.add(
            &table.path("models"),
            "model",
            format!("\"{name}\""),
            "a model of MODELS, or a shipped one whose upstream is there",
        );
    }
    AllowedModels::Only(list)
}

/// What a plan allows beyond what a request shows.
fn allowances(table: &mut Table, faults: &mut Faults) -> Allowances {
    const WORDS: [(&str, bool); 2] = [("hold", true), ("refuse", false)];
    Allowances {
        provider_tools: table.list("provider_tools", faults).unwrap_or_default(),
        tool_calls_max: table.number("tool_calls_max", (1, 100), faults).unwrap_or(4),
        unseen_input: table.word("unseen_input", &WORDS, faults).unwrap_or(true),
        background: table.flag("background", faults).unwrap_or(false),
    }
}

/// Reads `on_unavailable` and the bound that goes with it.
pub(super) fn on_unavailable(table: &mut Table, faults: &mut Faults) -> OnUnavailable {
    let open = table.word("on_unavailable", &[("closed", false), ("open", true)], faults).unwrap_or(false);
    let bound = table.number("on_unavailable_per_minute", (1, 100_000), faults);
    match (open, bound) {
        (true, Some(per_minute)) => return OnUnavailable::Open { per_minute },
        (true, None) => table.require("on_unavailable_per_minute", "the most calls per isolate and minute", faults),
        (false, Some(_)) => {
            let path = table.path("on_unavailable_per_minute");
            faults.add(&path, "bound", "a number", "on_unavailable = \"open\" beside it");
        }
        (false, None) => {}
    }
    OnUnavailable::Closed
}
