//! The day's ledger in memory: the same contract as the statements over the database.

use std::collections::BTreeMap;

use tollgate::ledger::{Gate, Row, SITE_KEY, exceeded};
use tollgate::limit::NanoUsd;
use tollgate::limit::outbox::Batch;
use tollgate::policy::LedgerRules;
use tollgate::time::UtcDay;

/// A row with all its columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FullRow {
    pub(crate) plan: String,
    pub(crate) calls: i64,
    pub(crate) refused: i64,
    pub(crate) counted: i64,
    pub(crate) settled: i64,
    pub(crate) input: i64,
    pub(crate) output: i64,
    pub(crate) usd: i64,
    pub(crate) batch: u64,
    pub(crate) pruned: bool,
}

/// All rows by day and key.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryLedger {
    pub(crate) rows: BTreeMap<(u64, String), FullRow>,
}

impl MemoryLedger {
    /// Checks and counts both rows, or neither.
    pub(crate) fn count(&mut self, gate: &Gate) -> Vec<Row> {
        let (own, site) = ((gate.day.0, gate.key.clone()), (gate.day.0, SITE_KEY.to_owned()));
        let admitted = !exceeded(gate.own, &self.shown(&own), gate.estimate)
            && !exceeded(gate.site, &self.shown(&site), gate.estimate);
        let estimate = i64::try_from(gate.estimate.0).unwrap();
        let row = self.rows.entry(own.clone()).or_default();
        row.plan.clone_from(&gate.plan);
        if !admitted {
            row.refused += 1;
            return vec![self.shown(&own)];
        }
        row.calls += 1;
        row.counted += estimate;
        let row = self.rows.entry(site.clone()).or_default();
        if gate.counts_for_site {
            row.calls += 1;
            row.counted += estimate;
        }
        vec![self.shown(&own), self.shown(&site)]
    }

    /// Takes a batch once.
    pub(crate) fn post(&mut self, batch: &Batch) {
        for entry in &batch.entries {
            let own = self.rows.entry((entry.day.0, entry.key.clone())).or_default();
            if own.batch >= batch.number {
                continue;
            }
            (own.batch, own.plan) = (batch.number, entry.plan.clone());
            let common = [entry.settled, entry.refused, entry.input, entry.output, entry.usd];
            own.add(entry.calls, entry.counted, common);
            let site = self.rows.entry((entry.day.0, SITE_KEY.to_owned())).or_default();
            site.add(entry.site_calls, entry.site_counted, common);
        }
    }

    /// A row as it is.
    pub(crate) fn row(&self, day: UtcDay, key: &str) -> Option<Row> {
        let at = (day.0, key.to_owned());
        self.rows.contains_key(&at).then(|| self.shown(&at))
    }

    /// Deletes what is older than the rules keep.
    pub(crate) fn prune(&mut self, day: UtcDay, rules: &LedgerRules) {
        self.rows.retain(|(of, key), _| {
            let keep = if key.starts_with("visitor:") { rules.keep_days } else { rules.keep_user_days };
            *of + keep >= day.0
        });
        if let Some(site) = self.rows.get_mut(&(day.0, SITE_KEY.to_owned())) {
            site.pruned = true;
        }
    }

    /// A row as the gate shows it.
    pub(crate) fn shown(&self, at: &(u64, String)) -> Row {
        let row = self.rows.get(at).cloned().unwrap_or_default();
        let whole = |amount: i64| u64::try_from(amount).unwrap();
        Row {
            day: UtcDay(at.0),
            key: at.1.clone(),
            calls: whole(row.calls),
            counted: NanoUsd(whole(row.counted)),
            pruned: row.pruned,
        }
    }
}

impl FullRow {
    fn add(&mut self, calls: i64, counted: i64, [settled, refused, input, output, usd]: [i64; 5]) {
        self.calls = (self.calls + calls).max(0);
        self.counted = (self.counted + counted).max(0);
        self.settled += settled;
        self.refused += refused;
        self.input = (self.input + input).max(0);
        self.output = (self.output + output).max(0);
        self.usd = (self.usd + usd).max(0);
    }
}
