//! The callers' keys, known by their SHA-256 alone.
//!
//! Invariant: no key is ever stored or shown. What is presented is hashed and its digest compared with every known one
//! in constant time, so neither the outcome nor the time tells how near a guess was.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::table::{Faults, Table};

/// One key: whose it is, and under which plan it calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    digest: [u8; 32],
    /// The user; several keys of one user share everything.
    pub user: String,
    /// The plan.
    pub plan: String,
}

/// All keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// Reads the secret `API_KEYS`: a table of hex digests, each with `user` and `plan`. The digests are not shown in
    /// faults, only their place.
    #[must_use]
    pub fn read(secret: Option<&str>, is_plan: impl Fn(&str) -> bool, faults: &mut Faults) -> Self {
        const PATH: &str = "API_KEYS";
        const WANT: &str = r#"JSON: {"<SHA-256 of the key in hex>": {"user": "…", "plan": "…"}}"#;
        let Some(secret) = secret else {
            faults.add(PATH, "secret", "nothing", WANT);
            return Self::default();
        };
        let Ok(Value::Object(entries)) = serde_json::from_str::<Value>(secret) else {
            faults.add(PATH, "secret", "something else", WANT);
            return Self::default();
        };
        let mut keys = Vec::new();
        for (place, (hash, entry)) in entries.into_iter().enumerate() {
            let mut table = Table::of(&format!("{PATH}[{place}]"), entry, faults);
            let mut digest = [0; 32];
            if hex::decode_to_slice(&hash, &mut digest).is_err() {
                faults.add(table.own_path(), "digest", format!("{} characters", hash.chars().count()), "64 hex digits");
            }
            if keys.iter().any(|key: &Key| key.digest == digest) {
                faults.add(table.own_path(), "digest", "one that stands before", "each key once");
            }
            table.require("user", "a user's name", faults);
            table.require("plan", "a plan's name", faults);
            let user = table.text("user", "a user's name", faults);
            let plan = table.text("plan", "a plan's name", faults);
            if let Some(plan) = plan.as_ref().filter(|plan| !is_plan(plan)) {
                faults.add(&table.path("plan"), "plan", format!("\"{plan}\""), "a plan of PLANS");
            }
            let other = keys.iter().find(|key: &&Key| Some(&key.user) == user.as_ref()).map(|key| &key.plan);
            if let (Some(other), Some(plan)) = (other, &plan)
                && other != plan
            {
                // One subject's balances cannot follow two rules at a time.
                let want = format!("\"{other}\", as another key of the user has");
                faults.add(&table.path("plan"), "plan", format!("\"{plan}\""), want);
            }
            keys.extend(user.zip(plan).map(|(user, plan)| Key { digest, user, plan }));
            table.finish(faults);
        }
        Self(keys)
    }

    /// The key that `presented` is. Every known digest is looked at, whichever one matches.
    #[must_use]
    pub fn find(&self, presented: &str) -> Option<&Key> {
        let digest: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        let mut found = None;
        for key in &self.0 {
            if bool::from(key.digest.ct_eq(&digest)) {
                found = Some(key);
            }
        }
        found
    }
}
