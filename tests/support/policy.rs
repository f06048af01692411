//! A policy that is good, as it is written.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tollgate::policy::{Faults, Policy, Sources};

/// The upstream's key: it must not be seen anywhere but in the upstream's request.
pub(crate) const UPSTREAM_KEY: &str = "sk-upstream-secret";

/// Variables and secrets by name; tables as JSON.
#[derive(Clone, Debug)]
pub(crate) struct Written(pub(crate) BTreeMap<String, Value>);

impl Written {
    /// A policy of four plans, each with a key `key-PLAN` of a user of the same name. Prices are 1 and 2 dollars a
    /// million tokens, text counts a token a byte, and a day's dollar shows what was charged.
    pub(crate) fn good() -> Self {
        let day = json!({"unit": "usd", "amount": "1.00", "window": "day"});
        let slots = json!({"unit": "concurrency", "amount": 2});
        let plan = |more: Value| {
            let mut plan = json!({
                "models": ["alpha"], "output_default": 100, "output_max": 200, "body_max": 2_000,
                "limits": {"day": day, "slots": slots},
            });
            plan.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
            plan
        };
        let calls = json!({"unit": "requests", "burst": 1, "refill": 1, "per": "second"});
        let plans = json!({
            "plain": plan(json!({})),
            "drain": plan(json!({"on_disconnect": "drain"})),
            "open": plan(json!({"on_unavailable": "open", "on_unavailable_per_minute": 2})),
            "tight": plan(json!({"limits": {"calls": calls}})),
        });
        let keys: BTreeMap<String, Value> = ["plain", "drain", "open", "tight"]
            .map(|plan| (digest(&format!("key-{plan}")), json!({"user": plan, "plan": plan})))
            .into();
        let model = json!({"input": "1", "cached_input": "0.5", "output": "2", "max_output": 1_000, "context": 10_000});
        Self(BTreeMap::from([
            (
                "POLICY".to_owned(),
                json!({
                    "counting": {"method": "bytes", "per_message": 0, "per_call": 0},
                    "bounds": {
                        "first_byte_ms": 9_000, "idle_ms": 5_000, "drain_ms": 7_000, "limiter_ms": 1_000,
                        "hold_ms": 10_000,
                    },
                }),
            ),
            ("PLANS".to_owned(), plans),
            ("MODELS".to_owned(), json!({"alpha": model})),
            (
                "UPSTREAMS".to_owned(),
                json!({"default": {"base_url": "https://up.test/v1", "secret": "LLM_API_KEY", "retry": {"attempts": 1}}}),
            ),
            ("API_KEYS".to_owned(), json!(keys)),
            ("LLM_API_KEY".to_owned(), json!(UPSTREAM_KEY)),
        ]))
    }

    /// Reads it as the Worker does: texts as they are, tables as their JSON.
    pub(crate) fn read(&self) -> Result<Policy, Faults> {
        let variable = |name: &str| {
            let value = self.0.get(name)?;
            Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        };
        Policy::read(&Sources { variable: &variable })
    }
}

/// What a key is known by.
pub(crate) fn digest(key: &str) -> String {
    hex::encode(Sha256::digest(key))
}
