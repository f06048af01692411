//! The contract of the day's ledger, over the ledger in memory. `worker/ledger_contract.test.mjs` holds the statements
//! over the real database to the very same data, `ledger_contract.json`.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::{Map, Value, json};
use support::ledger::{FullRow, MemoryLedger};
use tollgate::ledger::{DayCaps, Gate, Row};
use tollgate::limit::NanoUsd;
use tollgate::limit::outbox::{Batch, Entry};
use tollgate::policy::{LedgerRules, OnUnavailable};
use tollgate::time::{UtcDay, Wait};

mod support {
    pub(crate) mod ledger;
}

/// The day where none is written.
const DAY: u64 = 100;

fn whole(object: &Value, name: &str) -> Option<u64> {
    object.get(name).map(|value| value.as_u64().unwrap())
}

fn text(object: &Value, name: &str) -> String {
    object.get(name).map(|value| value.as_str().unwrap().to_owned()).unwrap_or_default()
}

fn day(object: &Value) -> UtcDay {
    UtcDay(whole(object, "day").unwrap_or(DAY))
}

fn caps(gate: &Value, whose: &str) -> DayCaps {
    let caps = gate.get(whose).cloned().unwrap_or_default();
    DayCaps { calls: whole(&caps, "calls"), usd: whole(&caps, "usd").map(NanoUsd) }
}

fn gate(written: &Value) -> Gate {
    Gate {
        day: day(written),
        key: text(written, "key"),
        plan: text(written, "plan"),
        estimate: NanoUsd(whole(written, "estimate").unwrap()),
        own: caps(written, "own"),
        site: caps(written, "site"),
        counts_for_site: written.get("counts_for_site").is_none_or(|counts| counts.as_bool().unwrap()),
    }
}

fn entry(written: &Value) -> Entry {
    let nothing = Entry { day: UtcDay(DAY), ..Entry::default() };
    let mut whole = serde_json::to_value(nothing).unwrap();
    for (name, value) in written.as_object().unwrap() {
        assert!(whole.get(name).is_some(), "an entry has no {name}");
        whole[name] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}

fn batch(written: &Value) -> Batch {
    let entries = written["entries"].as_array().unwrap().iter().map(entry).collect();
    Batch { number: whole(written, "number").unwrap(), entries }
}

fn rules(written: &Value) -> LedgerRules {
    LedgerRules {
        site: DayCaps::default(),
        exempt: [].into(),
        keep_days: whole(written, "keep_days").unwrap(),
        keep_user_days: whole(written, "keep_user_days").unwrap(),
        post_after: Wait(0),
        on_unavailable: OnUnavailable::Closed,
    }
}

/// A row as the data writes it: key, calls, counted and, where it is so, that old rows have been deleted.
fn shown(row: &Row) -> Value {
    let short = json!([row.key, row.calls, row.counted.0]);
    if row.pruned { json!([row.key, row.calls, row.counted.0, true]) } else { short }
}

/// A row with all of its columns, without those that are nothing.
fn full((day, key): &(u64, String), row: &FullRow) -> Value {
    let columns = [
        ("calls", row.calls),
        ("refused", row.refused),
        ("counted", row.counted),
        ("settled", row.settled),
        ("input", row.input),
        ("output", row.output),
        ("usd", row.usd),
        ("batch", i64::try_from(row.batch).unwrap()),
    ];
    let mut shown = Map::from_iter([("day".to_owned(), json!(day)), ("key".to_owned(), json!(key))]);
    shown.extend(
        columns.iter().filter(|(_, amount)| *amount != 0).map(|(name, amount)| ((*name).to_owned(), json!(amount))),
    );
    if !row.plan.is_empty() {
        shown.insert("plan".to_owned(), json!(row.plan));
    }
    if row.pruned {
        shown.insert("pruned".to_owned(), json!(true));
    }
    Value::Object(shown)
}

fn play(ledger: &mut MemoryLedger, step: &Value, at: &str) {
    if let Some(written) = step.get("gate") {
        let rows: Vec<Value> = ledger.count(&gate(written)).iter().map(shown).collect();
        assert_eq!(json!(rows), step["rows"], "{at}");
    } else if let Some(written) = step.get("post") {
        ledger.post(&batch(written));
    } else if let Some(written) = step.get("row") {
        let row = ledger.row(day(written), &text(written, "key"));
        assert_eq!(row.map_or(Value::Null, |row| shown(&row)), step["is"], "{at}");
    } else if let Some(written) = step.get("prune") {
        ledger.prune(day(written), &rules(written));
    } else {
        let mut want = step["all"].as_array().unwrap().clone();
        for row in &mut want {
            row.as_object_mut().unwrap().entry("day").or_insert(json!(DAY));
        }
        let rows: Vec<Value> = ledger.rows.iter().map(|(at, row)| full(at, row)).collect();
        assert_eq!(json!(rows), json!(want), "{at}");
    }
}

#[test]
fn the_ledger_in_memory_keeps_the_contract() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("ledger_contract.json")).unwrap();
    for case in &cases {
        let mut ledger = MemoryLedger::default();
        for (place, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            play(&mut ledger, step, &format!("{}, step {}", text(case, "name"), place + 1));
        }
    }
}
