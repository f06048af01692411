//! Reading the models and their aliases.

use std::collections::BTreeMap;

use serde_json::Value;

use super::shipped::{DEFAULT_UPSTREAM, Shipped};
use super::table::{Faults, Table};
use super::{Model, Upstream, prices};
use crate::dialect::image::{ImageRule, Patches, Tiles};
use crate::dialect::prompt::ModelCount;
use crate::limit::{AMOUNT_MAX, Tokens};
use crate::tokens::Encoding;

/// More than any published model reads: a usage beyond it is not believed.
const CONTEXT_DEFAULT: u64 = 2_000_000;
/// The most that one image counts in any published price list (2,833 + 8 tiles of 5,667).
const IMAGE_DEFAULT: u64 = 48_169;
/// The two ways to say what an image counts.
const IMAGE_FIELDS: [&str; 2] = ["image_tokens", "image"];
/// More than any published formula makes of an image, and more pixels than any side may have.
const IMAGE_PART_MAX: u64 = 1_000_000;
const SIDE_MAX: u64 = 65_535;
/// How far another vendor's vocabulary may be above `o200k_base`, in hundredths: more than nine in ten texts of every
/// vocabulary that was compared (Llama 3, DeepSeek, Qwen, Mistral, Kimi, GLM). The bytes bound it in any case.
const STAND_IN_PERCENT: u64 = 300;

/// Reads `MODELS`, and the shipped models beside them. A name that the operator gave to an alias stays one.
pub(super) fn read(
    mut written: Table,
    shipped: &mut Shipped,
    aliases: &Table,
    upstreams: &BTreeMap<String, Upstream>,
    faults: &mut Faults,
) -> BTreeMap<String, Model> {
    let mut tables = written.tables(faults);
    for (name, table) in &mut tables {
        prices::check(table, faults);
        let mut fields = shipped.take(name, upstreams);
        // An image counts by one rule: the operator's replaces the shipped one, whichever kind it is of.
        if IMAGE_FIELDS.iter().any(|field| table.has(field)) {
            fields.retain(|field, _| !IMAGE_FIELDS.contains(&field.as_str()));
        }
        table.complete(fields);
    }
    for (name, fields) in shipped.take_rest(upstreams, |name| !aliases.has(name)) {
        let table = Table::of(&written.path(&name), Value::Object(fields), faults);
        tables.push((name, table));
    }
    tables.into_iter().map(|(name, table)| (name.clone(), model(name, table, upstreams, faults))).collect()
}

/// The name in messages of what stands for every model that is not known.
pub(super) const DEFAULT_MODEL: &str = "default_model";

/// Reads `POLICY.default_model`, if it is there.
pub(super) fn default_model(
    policy: &mut Table,
    upstreams: &BTreeMap<String, Upstream>,
    faults: &mut Faults,
) -> Option<Model> {
    let written = policy.has(DEFAULT_MODEL);
    let table = policy.table(DEFAULT_MODEL, faults);
    prices::check(&table, faults);
    written.then(|| model(DEFAULT_MODEL.to_owned(), table, upstreams, faults))
}

fn model(name: String, mut table: Table, upstreams: &BTreeMap<String, Upstream>, faults: &mut Faults) -> Model {
    let others = table.variants("fallbacks", &IMAGE_FIELDS, faults);
    let path = table.path("fallbacks");
    let fallbacks: Vec<Model> =
        others.into_iter().map(|other| served(name.clone(), other, upstreams, faults)).collect();
    let model = served(name, table, upstreams, faults);
    // One that is not there has been told of.
    let family = |model: &Model| upstreams.get(&model.upstream).map(Upstream::family);
    let differs = |other: &&Model| family(other).zip(family(&model)).is_some_and(|(one, other)| one != other);
    if let Some(other) = fallbacks.iter().find(differs) {
        let want = format!("one of the kind of \"{}\": a call is not translated", model.upstream);
        faults.add(&path, "upstream", format!("\"{}\"", other.upstream), want);
    }
    Model { fallbacks, ..model }
}

/// A model as one upstream serves it.
fn served(name: String, mut table: Table, upstreams: &BTreeMap<String, Upstream>, faults: &mut Faults) -> Model {
    let price = prices::read(&mut table, faults);
    let mut tokens =
        |field: &str, min: u64, default: u64| Tokens(table.number(field, (min, AMOUNT_MAX), faults).unwrap_or(default));
    let output_max = tokens("max_output", 1, 0);
    let context = tokens("context", 1, CONTEXT_DEFAULT);
    let image = image(&mut table, faults);
    let (encoding, percent) = encoding(&name, &mut table, faults);
    let cap_field = table
        .word(
            "output_field",
            &[("max_completion_tokens", "max_completion_tokens"), ("max_tokens", "max_tokens")],
            faults,
        )
        .unwrap_or("max_completion_tokens")
        .to_owned();
    let upstream = table.text("upstream", "an upstream's name", faults);
    let upstream = upstream.unwrap_or_else(|| DEFAULT_UPSTREAM.to_owned());
    let upstream_model = table.text("upstream_model", "the model's name there", faults);
    if !upstreams.contains_key(&upstream) {
        faults.add(&table.path("upstream"), "upstream", format!("\"{upstream}\""), "an upstream of UPSTREAMS");
    }
    table.finish(faults);
    let count = ModelCount { encoding, percent, image, context };
    Model { name, price, output_max, count, cap_field, upstream, upstream_model, fallbacks: Vec::new() }
}

/// What an image counts: a number, or the vendor's formula.
fn image(table: &mut Table, faults: &mut Faults) -> ImageRule {
    let fixed = table.number("image_tokens", (0, AMOUNT_MAX), faults);
    if !table.has("image") {
        return ImageRule::Fixed(Tokens(fixed.unwrap_or(IMAGE_DEFAULT)));
    }
    if fixed.is_some() {
        faults.add(&table.path("image_tokens"), "image_tokens", "a number", "either it or `image`");
    }
    let mut formula = table.table("image", faults);
    let tiled = formula.has("tile") || formula.has("base");
    let (needed, want): (&[&str], _) =
        if tiled { (&["base", "tile"], "tokens") } else { (&["patches"], "the most patches of one image") };
    for field in needed {
        formula.require(field, want, faults);
    }
    let mut number = |field: &str, max: u64| formula.number(field, (1, max), faults);
    let rule = if tiled {
        let (base, tile) = (number("base", IMAGE_PART_MAX), number("tile", IMAGE_PART_MAX));
        ImageRule::Tiles(Tiles { base: base.unwrap_or_default(), tile: tile.unwrap_or_default() })
    } else {
        let mut pixels = |field: &str| number(field, SIDE_MAX).and_then(|pixels| u32::try_from(pixels).ok());
        let (square, side, low_side) = (pixels("square"), pixels("side"), pixels("low_side"));
        let side = side.unwrap_or(u32::from(u16::MAX));
        ImageRule::Patches(Patches {
            square: square.unwrap_or(32),
            budget: number("patches", IMAGE_PART_MAX).unwrap_or_default(),
            percent: number("percent", 10_000).unwrap_or(100),
            side,
            low_side: low_side.unwrap_or(side),
        })
    };
    formula.finish(faults);
    rule
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
    shipped: Shipped,
    models: &BTreeMap<String, Model>,
    faults: &mut Faults,
) -> BTreeMap<String, String> {
    const A_MODEL: &str = "a model that has a price at its end";
    let path = table.own_path().to_owned();
    let mut written: BTreeMap<String, String> = shipped.aliases(|name| models.contains_key(name)).collect();
    written.extend(table.texts(faults));
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
            faults.add(&path, "alias", "a circle", A_MODEL);
        } else {
            faults.add(&path, "alias", format!("\"{target}\""), A_MODEL);
        }
    }
    resolved
}
