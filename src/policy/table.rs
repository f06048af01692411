//! Reading tables so that every fault is found in one pass.
//!
//! Invariant: reading never stops at the first fault. A field that is wrong is reported and reads as its default, and
//! nothing that was read from a faulty policy is ever used.

use serde_json::{Map, Value};

use crate::limit::AMOUNT_MAX;
use crate::limit::NanoUsd;

/// The faults of a policy, each as `path: what, got X, want Y`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(pub Vec<String>);

impl Faults {
    /// Reports a fault at `path`.
    pub(super) fn add(&mut self, path: &str, what: &str, got: impl core::fmt::Display, want: impl core::fmt::Display) {
        self.0.push(format!("{path}: {what}, got {got}, want {want}"));
    }
}

/// A table of the policy, and the path to it.
#[derive(Debug)]
pub(super) struct Table {
    path: String,
    fields: Map<String, Value>,
}

impl Table {
    /// The table that `value` is; anything else is a fault and reads as an empty one.
    #[must_use]
    pub(super) fn of(path: &str, value: Value, faults: &mut Faults) -> Self {
        let fields = match value {
            Value::Object(fields) => fields,
            other => {
                faults.add(path, "table", shown(&other), "a table");
                Map::new()
            }
        };
        Self { path: path.to_owned(), fields }
    }

    /// The path to the field called `name`.
    #[must_use]
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The path to the table.
    #[must_use]
    pub(super) fn own_path(&self) -> &str {
        &self.path
    }

    /// Whether the field is there.
    #[must_use]
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Whether nothing is in it.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Adds the fields that it does not have.
    pub(super) fn complete(&mut self, fields: Map<String, Value>) {
        for (name, value) in fields {
            self.fields.entry(name).or_insert(value);
        }
    }

    /// The money that a field states, if it does; it is not taken.
    #[must_use]
    pub(super) fn stated_money(&self, name: &str) -> Option<NanoUsd> {
        self.fields.get(name)?.as_str().and_then(|text| NanoUsd::from_decimal(text).ok())
    }

    /// Takes a sub-table; an absent one is empty.
    pub(super) fn table(&mut self, name: &str, faults: &mut Faults) -> Self {
        let path = self.path(name);
        match self.fields.remove(name) {
            Some(value) => Self::of(&path, value, faults),
            None => Self { path, fields: Map::new() },
        }
    }

    /// Takes all that is left as named sub-tables.
    pub(super) fn tables(&mut self, faults: &mut Faults) -> Vec<(String, Self)> {
        core::mem::take(&mut self.fields)
            .into_iter()
            .map(|(name, value)| {
                let path = self.path(&name);
                (name, Self::of(&path, value, faults))
            })
            .collect()
    }

    /// Takes all that is left as named texts.
    pub(super) fn texts(&mut self, faults: &mut Faults) -> Vec<(String, String)> {
        let names: Vec<String> = self.fields.keys().cloned().collect();
        names.into_iter().filter_map(|name| Some((name.clone(), self.text(&name, "a text", faults)?))).collect()
    }

    /// Takes a text that is not empty.
    pub(super) fn text(&mut self, name: &str, want: &str, faults: &mut Faults) -> Option<String> {
        match self.fields.remove(name)? {
            Value::String(text) if !text.is_empty() => Some(text),
            other => {
                faults.add(&self.path(name), "text", shown(&other), want);
                None
            }
        }
    }

    /// Takes a list of texts.
    pub(super) fn list(&mut self, name: &str, faults: &mut Faults) -> Option<Vec<String>> {
        let value = self.fields.remove(name)?;
        let list = serde_json::from_value(value.clone()).ok();
        if list.is_none() {
            faults.add(&self.path(name), "list", shown(&value), "a list of texts");
        }
        list
    }

    /// Takes a list of whole numbers between `min` and `max`.
    pub(super) fn numbers(&mut self, name: &str, (min, max): (u16, u16), faults: &mut Faults) -> Option<Vec<u16>> {
        let value = self.fields.remove(name)?;
        let list = serde_json::from_value::<Vec<u16>>(value.clone()).ok();
        let list = list.filter(|list| list.iter().all(|number| (min..=max).contains(number)));
        if list.is_none() {
            faults.add(&self.path(name), "list", shown(&value), format!("a list of numbers from {min} to {max}"));
        }
        list
    }

    /// Takes a list of tables, each of which has the fields of this one that it does not state itself.
    pub(super) fn variants(&mut self, name: &str, one_rule: &[&str], faults: &mut Faults) -> Vec<Self> {
        let Some(value) = self.fields.remove(name) else { return Vec::new() };
        let Value::Array(list) = value else {
            faults.add(&self.path(name), "list", shown(&value), "a list of tables");
            return Vec::new();
        };
        let tables = list.into_iter().enumerate().map(|(place, variant)| {
            let mut table = Self::of(&self.path(&format!("{name}[{place}]")), variant, faults);
            let states_own = one_rule.iter().any(|field| table.has(field));
            let is_inherited = |field: &str| !(states_own && one_rule.contains(&field));
            let fields = self.fields.iter().filter(|(field, _)| is_inherited(field));
            table.complete(fields.map(|(field, value)| (field.clone(), value.clone())).collect());
            table
        });
        tables.collect()
    }

    /// Takes one of a few words.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)], faults: &mut Faults) -> Option<T> {
        if !self.has(name) {
            return None;
        }
        let want = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ");
        let text = self.text(name, &want, faults)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            faults.add(&self.path(name), "word", format!("\"{text}\""), want);
        }
        found
    }

    /// Takes a yes or no.
    pub(super) fn flag(&mut self, name: &str, faults: &mut Faults) -> Option<bool> {
        match self.fields.remove(name)? {
            Value::Bool(flag) => Some(flag),
            other => {
                faults.add(&self.path(name), "flag", shown(&other), "true or false");
                None
            }
        }
    }

    /// Takes a whole number between `min` and `max`.
    pub(super) fn number(&mut self, name: &str, (min, max): (u64, u64), faults: &mut Faults) -> Option<u64> {
        let value = self.fields.remove(name)?;
        // Values of a Worker's variables cross JavaScript, where 20 and 20.0 are the same number.
        let number = value.as_u64().or_else(|| value.to_string().strip_suffix(".0").and_then(|text| text.parse().ok()));
        let valid = number.filter(|number| (min..=max).contains(number));
        if valid.is_none() {
            faults.add(&self.path(name), "number", shown(&value), format!("a whole number from {min} to {max}"));
        }
        valid
    }

    /// Takes an amount that may be anything from zero up.
    pub(super) fn amount(&mut self, name: &str, faults: &mut Faults) -> Option<u64> {
        self.number(name, (0, AMOUNT_MAX), faults)
    }

    /// Takes money, a decimal text of dollars.
    pub(super) fn money(&mut self, name: &str, faults: &mut Faults) -> Option<NanoUsd> {
        let value = self.fields.remove(name)?;
        match value.as_str().ok_or("money as a decimal text, such as \"0.15\"").and_then(NanoUsd::from_decimal) {
            Ok(money) => Some(money),
            Err(want) => {
                faults.add(&self.path(name), "money", shown(&value), want);
                None
            }
        }
    }

    /// Takes money of at most `max`.
    pub(super) fn money_to(&mut self, name: &str, max: NanoUsd, faults: &mut Faults) -> Option<NanoUsd> {
        let money = self.money(name, faults)?;
        if money > max {
            faults.add(&self.path(name), "money", format!("\"{money}\""), format!("at most \"{max}\""));
        }
        Some(money)
    }

    /// Reports the field if it is missing.
    pub(super) fn require(&self, name: &str, want: &str, faults: &mut Faults) {
        if !self.has(name) {
            faults.add(&self.path(name), "missing", "nothing", want);
        }
    }

    /// Reports every field that nobody took.
    pub(super) fn finish(self, faults: &mut Faults) {
        for (name, value) in &self.fields {
            faults.add(&self.path(name), "unknown field", shown(value), "no such field");
        }
    }
}

/// A value as a fault shows it: whole if short, else its beginning.
fn shown(value: &Value) -> String {
    const SHOWN_MAX: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= SHOWN_MAX {
        text
    } else {
        format!("{}…", text.chars().take(SHOWN_MAX).collect::<String>())
    }
}
