//! Reading a plan's limits.

use super::table::{Faults, Table};
use crate::limit::{Amount, Limit, Period, Shape, Unit};
use crate::time::Calendar;

const UNITS: [(&str, Unit); 6] = [
    ("requests", Unit::Requests),
    ("input_tokens", Unit::InputTokens),
    ("output_tokens", Unit::OutputTokens),
    ("tokens", Unit::Tokens),
    ("usd", Unit::Usd),
    ("concurrency", Unit::Concurrency),
];
const PERIODS: [(&str, Period); 4] =
    [("second", Period::Second), ("minute", Period::Minute), ("hour", Period::Hour), ("day", Period::Day)];
const WINDOWS: [(&str, Calendar); 2] = [("day", Calendar::Day), ("month", Calendar::Month)];
/// A limit's name stands in headers and messages.
const NAME_MAX: usize = 32;

/// Reads the tables of a plan's limits.
pub(super) fn read(mut tables: Table, faults: &mut Faults) -> Vec<Limit> {
    let path = tables.own_path().to_owned();
    let named = tables.tables(faults);
    if named.is_empty() {
        faults.add(&path, "limits", "none", "at least one: a plan without limits bounds nothing");
    }
    named.into_iter().filter_map(|(name, table)| limit(name, table, faults)).collect()
}

fn limit(name: String, mut table: Table, faults: &mut Faults) -> Option<Limit> {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
    if !plain || name.is_empty() || name.len() > NAME_MAX {
        faults.add(table.own_path(), "name", format!("\"{name}\""), "1 to 32 of a-z, 0-9, - and _");
    }
    table.require("unit", "what the limit counts", faults);
    let unit = table.word("unit", &UNITS, faults);
    // Without a unit the amounts cannot be read, but their faults are still worth a line.
    let shape = shape(unit.unwrap_or(Unit::Requests), &mut table, faults);
    table.finish(faults);
    Some(Limit { name, unit: unit?, shape: shape? })
}

fn shape(unit: Unit, table: &mut Table, faults: &mut Faults) -> Option<Shape> {
    if unit == Unit::Concurrency {
        return Some(Shape::Slots { amount: required(unit, "amount", table, faults)? });
    }
    if table.has("burst") || table.has("refill") || table.has("per") {
        let burst = required(unit, "burst", table, faults);
        let path = table.path("refill");
        let refill = required(unit, "refill", table, faults);
        if refill == Some(Amount(0)) {
            faults.add(&path, "refill", "0", "more than 0: a bucket that never refills has no wait to announce");
        }
        table.require("per", "\"second\", \"minute\", \"hour\" or \"day\"", faults);
        let per = table.word("per", &PERIODS, faults);
        return Some(Shape::Bucket { burst: burst?, refill: refill?, per: per? });
    }
    if table.has("amount") || table.has("window") {
        let amount = required(unit, "amount", table, faults);
        table.require("window", "\"day\" or \"month\"", faults);
        let window = table.word("window", &WINDOWS, faults);
        return Some(Shape::Window { amount: amount?, window: window? });
    }
    faults.add(table.own_path(), "shape", "neither", "burst, refill and per, or amount and window");
    None
}

fn required(unit: Unit, name: &str, table: &mut Table, faults: &mut Faults) -> Option<Amount> {
    table.require(name, if unit == Unit::Usd { "money as a decimal text" } else { "a whole number" }, faults);
    match unit {
        Unit::Usd => table.money(name, faults).map(|money| Amount(money.0)),
        _ => table.amount(name, faults).map(Amount),
    }
}
