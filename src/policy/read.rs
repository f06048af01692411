//! From what is written to what is valid.

use serde_json::Value;

use super::keys::Keys;
use super::shipped::Shipped;
use super::table::{Faults, Table};
use super::{Bounds, Cors, Placement, Policy, models, plans, site, upstreams};
use crate::dialect::prompt::{CountMethod, CountRules};
use crate::limit::{AMOUNT_MAX, Tokens};
use crate::time::Wait;

/// The most bytes that the platform lets one variable hold.
pub const VARIABLE_BYTES_MAX: usize = 5 * 1024;

/// A question is asked twice, and the ids of ended holds are remembered for 15 s.
const LIMITER_MS_MAX: u64 = 5_000;
/// A week. Providers keep the answer of a call in the background for ten minutes to thirty days.
const BACKGROUND_MS_MAX: u64 = 7 * 86_400_000;
const LOCATION_HINTS: [&str; 9] = ["wnam", "enam", "sam", "weur", "eeur", "apac", "oc", "afr", "me"];
const JURISDICTIONS: [&str; 2] = ["eu", "fedramp"];

/// Where the policy is written: variables as JSON texts, secrets and single variables by name.
pub struct Sources<'s> {
    /// The text of a variable or secret; a table arrives as its JSON.
    pub variable: &'s dyn Fn(&str) -> Option<String>,
}

impl Policy {
    /// Reads and checks everything.
    ///
    /// # Errors
    /// All faults, each as `path: what, got X, want Y`.
    pub fn read(sources: &Sources<'_>) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        let mut policy = variable("POLICY", sources, &mut faults);
        let upstreams = upstreams::read(variable("UPSTREAMS", sources, &mut faults), sources, &mut faults);
        let mut shipped = Shipped::read(&mut policy, &mut faults);
        let aliases = policy.table("aliases", &mut faults);
        let models = models_written(&shipped, sources, &mut faults);
        let price_version = shipped.version(!models.is_empty() || policy.has(models::DEFAULT_MODEL));
        let models = models::read(models, &mut shipped, &aliases, &upstreams, &mut faults);
        let aliases = models::aliases(aliases, shipped, &models, &mut faults);
        let default_model = models::default_model(&mut policy, &upstreams, &mut faults);
        let mut plans = plans::read(variable("PLANS", sources, &mut faults), &models, &mut faults);
        // With visitors, and the secret that makes them, there is somebody who may call without a key.
        let visited = policy.has("visitors") && (sources.variable)("VISITOR_SECRET").is_some();
        let no_keys = visited.then(|| "{}".to_owned());
        let secret = (sources.variable)("API_KEYS").or(no_keys);
        let keys = Keys::read(secret.as_deref(), |plan| plans.contains_key(plan), &mut faults);
        let visitors = site::visitors(&mut policy, &mut plans, sources, &mut faults);
        let ledger = site::ledger(&mut policy, &plans, sources, &mut faults);
        let shield = site::shield(&mut policy, &mut faults);
        let counting = counting(policy.table("counting", &mut faults), &mut faults);
        let bounds = bounds(policy.table("bounds", &mut faults), &mut faults);
        let cors = cors(policy.table("cors", &mut faults), &mut faults);
        let placement = placement(policy.table("placement", &mut faults), &mut faults);
        policy.finish(&mut faults);
        if faults.0.is_empty() {
            Ok(Self {
                plans,
                price_version,
                models,
                aliases,
                default_model,
                upstreams,
                keys,
                ledger,
                visitors,
                shield,
                counting,
                bounds,
                cors,
                placement,
            })
        } else {
            Err(faults)
        }
    }
}

/// `MODELS`, which need not be there where the shipped prices are.
fn models_written(shipped: &Shipped, sources: &Sources<'_>, faults: &mut Faults) -> Table {
    const MODELS: &str = "MODELS";
    if !shipped.is_empty() && (sources.variable)(MODELS).is_none() {
        return Table::of(MODELS, Value::Object(serde_json::Map::default()), faults);
    }
    variable(MODELS, sources, faults)
}

fn variable(name: &str, sources: &Sources<'_>, faults: &mut Faults) -> Table {
    let Some(text) = (sources.variable)(name) else {
        faults.add(name, "variable", "nothing", format!("a table [vars.{name}]"));
        return Table::of(name, Value::Object(serde_json::Map::default()), faults);
    };
    if text.len() > VARIABLE_BYTES_MAX {
        faults.add(name, "size", format!("{} bytes", text.len()), format!("at most {VARIABLE_BYTES_MAX}"));
    }
    Table::of(name, serde_json::from_str(&text).unwrap_or(Value::Null), faults)
}

fn counting(mut table: Table, faults: &mut Faults) -> CountRules {
    const METHODS: [(&str, CountMethod); 3] =
        [("exact", CountMethod::Exact), ("bounds", CountMethod::Bounds), ("bytes", CountMethod::Bytes)];
    let method = table.word("method", &METHODS, faults).unwrap_or(CountMethod::Exact);
    let mut number = |name: &str, max: u64, default: u64| table.number(name, (0, max), faults).unwrap_or(default);
    let rules = CountRules {
        method,
        exact_max: number("exact_max_bytes", AMOUNT_MAX, 262_144),
        steps_max: number("steps_max", AMOUNT_MAX, 400_000),
        per_message: Tokens(number("per_message", 1_000, 8)),
        per_call: Tokens(number("per_call", 100_000, 8)),
        per_tool: Tokens(number("per_tool", 1_000, 16)),
    };
    table.finish(faults);
    rules
}

fn bounds(mut table: Table, faults: &mut Faults) -> Bounds {
    let path = table.path("hold_ms");
    let mut millis_to =
        |name: &str, max: u64, default: u64| Wait(table.number(name, (1, max), faults).unwrap_or(default));
    let limiter = millis_to("limiter_ms", LIMITER_MS_MAX, 2_000);
    let background = millis_to("background_ms", BACKGROUND_MS_MAX, 86_400_000);
    let mut millis = |name: &str, default: u64| millis_to(name, 3_600_000, default);
    let bounds = Bounds {
        first_byte: millis("first_byte_ms", 300_000),
        idle: millis("idle_ms", 60_000),
        drain: millis("drain_ms", 25_000),
        limiter,
        ledger: millis("ledger_ms", 5_000),
        hold: millis("hold_ms", 600_000),
        background,
    };
    if bounds.hold <= bounds.first_byte {
        faults.add(&path, "hold", bounds.hold.0, format!("more than first_byte_ms = {}", bounds.first_byte.0));
    }
    table.finish(faults);
    bounds
}

fn cors(mut table: Table, faults: &mut Faults) -> Cors {
    let origins = table.list("origins", faults).unwrap_or_default();
    for origin in &origins {
        let (scheme, host) = origin.split_once("://").unwrap_or(("", ""));
        let exact = !scheme.is_empty() && !host.is_empty() && !host.contains(['/', '*', ' ']);
        if origin != "*" && !exact {
            let want = "\"*\" or an origin such as \"https://app.example\", without a path";
            faults.add(&table.path("origins"), "origin", format!("\"{origin}\""), want);
        }
    }
    table.finish(faults);
    Cors { origins }
}

fn placement(mut table: Table, faults: &mut Faults) -> Placement {
    let mut one_of = |name: &str, words: &[&'static str]| {
        let words: Vec<(&str, &str)> = words.iter().map(|word| (*word, *word)).collect();
        table.word(name, &words, faults).map(str::to_owned)
    };
    let placement = Placement {
        location_hint: one_of("location_hint", &LOCATION_HINTS),
        jurisdiction: one_of("jurisdiction", &JURISDICTIONS),
    };
    table.finish(faults);
    placement
}
