//! The price table that ships with the Worker.
//!
//! Invariant: it only fills in. What the operator states of a model, or under a model's name, holds; the table adds what
//! the operator is silent about, and models whose upstream is there. So a table with more models, or other prices, makes
//! no valid policy invalid.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Upstream;
use super::table::{Faults, Table};

/// Made by `npm run prices`, but for what a file of prices does not say: vocabularies and the sizes of images.
const TABLE: &str = include_str!("prices.json");

/// The upstream of a model that names none.
pub(super) const DEFAULT_UPSTREAM: &str = "default";

/// The table: its fields are those of the policy.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Shipped {
    /// The day of its prices, as `YYYY-MM-DD`.
    version: String,
    models: BTreeMap<String, Map<String, Value>>,
    aliases: BTreeMap<String, String>,
}

impl Shipped {
    /// The table, or an empty one where the operator does not want it.
    pub(super) fn read(policy: &mut Table, faults: &mut Faults) -> Self {
        if policy.flag("shipped_prices", faults) == Some(false) {
            return Self::default();
        }
        serde_json::from_str(TABLE).unwrap_or_else(|fault| {
            faults.add("prices.json", "table", fault, "prices");
            Self::default()
        })
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// Which prices hold: the table's, by its date, or `policy`, or both.
    pub(super) fn version(&self, is_changed: bool) -> String {
        match (self.is_empty(), is_changed) {
            (true, _) => "policy".to_owned(),
            (false, true) => format!("{}+policy", self.version),
            (false, false) => self.version.clone(),
        }
    }

    /// Takes what it says of a model that the operator names too. An upstream that is not there is not said.
    pub(super) fn take(&mut self, name: &str, upstreams: &BTreeMap<String, Upstream>) -> Map<String, Value> {
        let mut fields = self.models.remove(name).unwrap_or_default();
        fields.retain(|field, value| field != "upstream" || is_there(value.as_str(), upstreams));
        fields
    }

    /// Takes all other models whose upstream is there and whose name is free.
    pub(super) fn take_rest(
        &mut self,
        upstreams: &BTreeMap<String, Upstream>,
        is_free: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = (String, Map<String, Value>)> {
        core::mem::take(&mut self.models).into_iter().filter(move |(name, fields)| {
            is_free(name) && is_there(fields.get("upstream").and_then(Value::as_str), upstreams)
        })
    }

    /// Its aliases, but for those whose model is not there and those whose name has a meaning already.
    pub(super) fn aliases(self, is_model: impl Fn(&str) -> bool) -> impl Iterator<Item = (String, String)> {
        self.aliases.into_iter().filter(move |(name, target)| is_model(target) && !is_model(name))
    }
}

fn is_there(upstream: Option<&str>, upstreams: &BTreeMap<String, Upstream>) -> bool {
    upstreams.contains_key(upstream.unwrap_or(DEFAULT_UPSTREAM))
}
