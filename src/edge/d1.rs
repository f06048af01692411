//! The day's ledger in D1.
//!
//! Invariant: each operation is one statement, or one batch, which is one transaction. The gate checks and counts both
//! rows or neither; a batch of changes is taken once, since the row remembers its number. SQL texts are constant.

use js_sys::{Array, Object, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::bounded::answered;
use super::js::member;
use crate::gateway::ports::Unavailable;
use crate::ledger::{Gate, Row, SITE_KEY};
use crate::limit::NanoUsd;
use crate::limit::outbox::{Batch, Entry};
use crate::policy::LedgerRules;
use crate::time::{UtcDay, Wait};

/// The binding's name in `wrangler.toml`.
const BINDING: &str = "LEDGER";

const GATE: &str = include_str!("sql/gate.sql");

const POST: &str = include_str!("sql/post.sql");

const ROW: &str = "SELECT day, key, calls, counted, pruned FROM ledger WHERE day = ?1 AND key = ?2";
const PRUNE_VISITORS: &str = include_str!("sql/prune_visitors.sql");
const PRUNE_ALL: &str = "DELETE FROM ledger WHERE day < ?1";
const PRUNED: &str = "UPDATE ledger SET pruned = 1 WHERE day = ?1 AND key = '*'";

#[wasm_bindgen]
extern "C" {
    /// A database.
    type Database;

    #[wasm_bindgen(method, catch)]
    fn prepare(this: &Database, sql: &str) -> Result<Statement, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn batch(this: &Database, statements: &Array) -> Result<Promise, JsValue>;

    /// A statement.
    type Statement;

    #[wasm_bindgen(method, catch, variadic)]
    fn bind(this: &Statement, values: &Array) -> Result<Statement, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn all(this: &Statement) -> Result<Promise, JsValue>;
}

/// Asks the gate.
pub(super) async fn count(env: &JsValue, gate: &Gate, within: Wait) -> Result<Vec<Row>, Unavailable> {
    let cap = |cap: Option<u64>| cap.map_or(JsValue::NULL, number);
    let values = [
        number(gate.day.0),
        gate.key.as_str().into(),
        gate.plan.as_str().into(),
        number(gate.estimate.0),
        cap(gate.own.calls),
        cap(gate.own.usd.map(|usd| usd.0)),
        cap(gate.site.calls),
        cap(gate.site.usd.map(|usd| usd.0)),
        number(u64::from(gate.counts_for_site)),
    ];
    rows(env, GATE, values.into_iter().collect(), within).await
}

/// A row as it is.
pub(super) async fn row(env: &JsValue, day: UtcDay, key: &str, within: Wait) -> Result<Option<Row>, Unavailable> {
    let values = Array::of2(&number(day.0), &key.into());
    Ok(rows(env, ROW, values, within).await?.into_iter().next())
}

/// Takes a batch of changes: all of it, once. The day on which old rows have still to be deleted, if there is one.
pub(super) async fn post(env: &JsValue, batch: &Batch, within: Wait) -> Result<Option<UtcDay>, Unavailable> {
    let posts = batch.entries.iter().map(|entry| (POST, values_of(entry, batch.number)));
    let results = transaction(env, posts, within).await?;
    let last = Array::from(&results).to_vec().pop().unwrap_or_default();
    let unpruned = |row: &Row| (row.key == SITE_KEY && !row.pruned).then_some(row.day);
    Ok(rows_of(&last).iter().find_map(unpruned))
}

/// Deletes what is older than the rules keep, and notes that it was done on this day.
pub(super) async fn prune(env: &JsValue, day: UtcDay, rules: &LedgerRules, within: Wait) -> Result<(), Unavailable> {
    let steps = [
        (PRUNE_VISITORS, day.0.saturating_sub(rules.keep_days)),
        (PRUNE_ALL, day.0.saturating_sub(rules.keep_user_days)),
        (PRUNED, day.0),
    ];
    let steps = steps.into_iter().map(|(sql, day)| (sql, Array::of1(&number(day))));
    transaction(env, steps, within).await.map(|_| ())
}

/// Runs all of the statements, each with its values, or none of them.
async fn transaction(
    env: &JsValue,
    statements: impl Iterator<Item = (&str, Array)>,
    within: Wait,
) -> Result<JsValue, Unavailable> {
    let running = async {
        let database = database(env)?;
        let bound = Array::new();
        for (sql, values) in statements {
            bound.push(database.prepare(sql)?.bind(&values)?.as_ref());
        }
        JsFuture::from(database.batch(&bound)?).await
    };
    answered(running, within).await
}

async fn rows(env: &JsValue, sql: &str, values: Array, within: Wait) -> Result<Vec<Row>, Unavailable> {
    let asking = async { JsFuture::from(database(env)?.prepare(sql)?.bind(&values)?.all()?).await };
    answered(asking, within).await.map(|result| rows_of(&result))
}

fn database(env: &JsValue) -> Result<Database, JsValue> {
    member(env, BINDING).map(JsCast::unchecked_into).ok_or_else(|| JsValue::from_str("binding LEDGER is missing"))
}

fn rows_of(result: &JsValue) -> Vec<Row> {
    let results = member(result, "results").map(|results| Array::from(&results)).unwrap_or_default();
    results.iter().filter_map(|row| row_of(&row.unchecked_into())).collect()
}

fn row_of(row: &Object) -> Option<Row> {
    Some(Row {
        day: UtcDay(amount(row, "day")?),
        key: member(row, "key")?.as_string()?,
        calls: amount(row, "calls")?,
        counted: NanoUsd(amount(row, "counted")?),
        pruned: amount(row, "pruned")? > 0,
    })
}

fn values_of(entry: &Entry, batch: u64) -> Array {
    let values = [
        number(entry.day.0),
        entry.key.as_str().into(),
        entry.plan.as_str().into(),
        number(batch),
        signed(entry.calls),
        signed(entry.refused),
        signed(entry.counted),
        signed(entry.settled),
        signed(entry.input),
        signed(entry.output),
        signed(entry.usd),
        signed(entry.site_calls),
        signed(entry.site_counted),
    ];
    values.into_iter().collect()
}

/// Amounts are below 2^53, so a double carries them exactly.
#[expect(clippy::cast_precision_loss, reason = "amounts are below 2^53")]
fn number(amount: u64) -> JsValue {
    JsValue::from_f64(amount as f64)
}

#[expect(clippy::cast_precision_loss, reason = "amounts are below 2^53")]
fn signed(amount: i64) -> JsValue {
    JsValue::from_f64(amount as f64)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are whole, positive, below 2^53")]
fn amount(row: &Object, name: &str) -> Option<u64> {
    member(row, name)?.as_f64().map(|amount| amount as u64)
}
