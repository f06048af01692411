//! Reading the models and their aliases.

use std::collections::BTreeMap;

use super::table::{Faults, Table};
use super::{Model, Upstream, prices};
use crate::dialect::prompt::ModelCount;
use crate::limit::{AMOUNT_MAX, Tokens};
use crate::tokens::Encoding;

/// More than any published model reads: a usage beyond it is not believed.
const CONTEXT_DEFAULT: u64 = 2_000_000;
/// The most that one image counts in any published price list (2,833 + 8 tiles of 5,667).
const IMAGE_DEFAULT: u64 = 48_169;
/// How far another vendor's vocabulary may be above `o200k_base`, in hundredths: more than nine in ten texts of every
/// vocabulary that was compared (Llama 3, DeepSeek, Qwen, Mistral, Kimi, GLM). The bytes bound it in any case.
const STAND_IN_PERCENT: u64 = 300;

/// Reads `MODELS`.
pub(super) fn read(
    mut tables: Table,
    upstreams: &BTreeMap<String, Upstream>,
    faults: &mut Faults,
) -> BTreeMap<String, Model> {
    let named = tables.tables(faults);
    named.into_iter().map(|(name, table)| (name.clone(), model(name, table, upstreams, faults))).collect()
}

/// The name in messages of what stands for every model that is not known.
const DEFAULT_MODEL: &str = "default_model";

/// Reads `POLICY.default_model`, if it is there.
pub(super) fn default_model(
    policy: &mut Table,
    upstreams: &BTreeMap<String, Upstream>,
    faults: &mut Faults,
) -> Option<Model> {
    let written = policy.has(DEFAULT_MODEL);
    let table = policy.table(DEFAULT_MODEL, faults);
    written.then(|| model(DEFAULT_MODEL.to_owned(), table, upstreams, faults))
}

fn model(name: String, mut table: Table, upstreams: &BTreeMap<String, Upstream>, faults: &mut Faults) -> Model {
    let price = prices::read(&mut table, faults);
    let mut tokens =
        |field: &str, min: u64, default: u64| Tokens(table.number(field, (min, AMOUNT_MAX), faults).unwrap_or(default));
    let output_max = tokens("max_output", 1, 0);
    let (image, context) = (tokens("image_tokens", 0, IMAGE_DEFAULT), tokens("context", 1, CONTEXT_DEFAULT));
    let (encoding, percent) = encoding(&name, &mut table, faults);
    let cap_field = table
        .word(
            "output_field",
            &[("max_completion_tokens", "max_completion_tokens"), ("max_tokens", "max_tokens")],
            faults,
        )
        .unwrap_or("max_completion_tokens")
        .to_owned();
    let upstream = table.text("upstream", "an upstream's name", faults).unwrap_or_else(|| "default".to_owned());
    let upstream_model = table.text("upstream_model", "the model's name there", faults);
    if !upstreams.contains_key(&upstream) {
        faults.add(&table.path("upstream"), "upstream", format!("\"{upstream}\""), "an upstream of UPSTREAMS");
    }
    table.finish(faults);
    let count = ModelCount { encoding, percent, image, context };
    Model { name, price, output_max, count, cap_field, upstream, upstream_model }
}

/// By which vocabulary a model's text is counted, and what the count is multiplied by: its own if that is known, else
/// `o200k_base` with a stated factor.
fn encoding(name: &str, table: &mut Table, faults: &mut Faults) -> (Option<Encoding>, u64) {
    const WORDS: [(&str, Option<Encoding>); 3] =
        [("o200k", Some(Encoding::O200k)), ("cl100k", Some(Encoding::Cl100k)), ("none", None)];
    let own = Encoding::for_model(name);
    let percent = table.number("count_percent", (100, 10_000), faults);
    if let Some(written) = table.word("encoding", &WORDS, faults) {
        return (written, percent.unwrap_or(100));
    }
    let stand_in = if own.is_some() { 100 } else { STAND_IN_PERCENT };
    (own.or(Some(Encoding::O200k)), percent.unwrap_or(stand_in))
}

/// Aliases by name, each with the model that it ends at.
pub(super) fn aliases(
    mut table: Table,
    models: &BTreeMap<String, Model>,
    faults: &mut Faults,
) -> BTreeMap<String, String> {
    let path = table.own_path().to_owned();
    let written: BTreeMap<String, String> = table.texts(faults).into_iter().collect();
    let mut resolved = BTreeMap::new();
    for name in written.keys() {
        let path = format!("{path}.{name}");
        if models.contains_key(name) {
            faults.add(&path, "alias", "a model's name", "a name of its own: one name cannot have two prices");
        }
        let mut target = name;
        for _ in 0..=written.len() {
            match written.get(target) {
                Some(next) => target = next,
                None => break,
            }
        }
        if models.contains_key(target) {
            resolved.insert(name.clone(), target.clone());
        } else if written.contains_key(target) {
            faults.add(&path, "alias", "a circle", "a model of MODELS at its end");
        } else {
            faults.add(&path, "alias", format!("\"{target}\""), "a model of MODELS at its end");
        }
    }
    resolved
}
