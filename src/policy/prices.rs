//! Reading a model's price.
//!
//! Invariant: what no price list says is a fault and not a price. A figure that is a hundred times too large, or a
//! cheaper kind that is dearer than the plain one, is a slip, and a limit of money is only as good as the price behind it.

use super::table::{Faults, Table};
use crate::limit::{AMOUNT_MAX, NanoUsd, Tokens};
use crate::pricing::{LongContext, PerMillion, Price, Tiers};

/// A cent for each token: some ten times what the dearest model that was ever published cost.
const PER_MILLION_MAX: NanoUsd = NanoUsd(10_000_000_000_000);
/// A thousand dollars for one call, image, minute or use of a tool.
const EACH_MAX: NanoUsd = NanoUsd(1_000_000_000_000);
/// A hundred times the plain price.
const PERCENT_MAX: u64 = 10_000;

/// Takes the fields of a price.
pub(super) fn read(table: &mut Table, faults: &mut Faults) -> Price {
    for field in ["input", "output"] {
        table.require(field, "dollars per million tokens as a decimal text", faults);
    }
    let mut million = |field: &str| table.money_to(field, PER_MILLION_MAX, faults).map(PerMillion);
    let price = Price {
        input: million("input").unwrap_or_default(),
        cached_input: million("cached_input"),
        cache_write: million("cache_write"),
        cache_write_long: million("cache_write_long"),
        audio_input: million("audio_input"),
        image_input: million("image_input"),
        output: million("output").unwrap_or_default(),
        reasoning: million("reasoning"),
        audio_output: million("audio_output"),
        image_output: million("image_output"),
        character: million("per_million_characters").unwrap_or_default(),
        ..Price::default()
    };
    let mut each = |field: &str| table.money_to(field, EACH_MAX, faults).unwrap_or_default();
    let (minute, image, call) = (each("per_minute"), each("per_image"), each("per_call"));
    let tool_call = each("per_tool_call");
    let (tiers, long_context) = (tiers(table, faults), long_context(table, faults));
    Price { minute, image, call, tool_call, tiers, long_context, ..price }
}

/// A slower tier does not cost more than the standard one, a faster one not less.
fn tiers(table: &mut Table, faults: &mut Faults) -> Tiers {
    let mut percent = |field: &str, bounds: (u64, u64)| table.number(field, bounds, faults);
    Tiers {
        flex: percent("flex_percent", (1, 100)),
        priority: percent("priority_percent", (100, PERCENT_MAX)),
        ultrafast: percent("ultrafast_percent", (100, PERCENT_MAX)),
    }
}

fn long_context(table: &mut Table, faults: &mut Faults) -> Option<LongContext> {
    const PERCENT: &str = "hundredths of the plain price";
    if !table.has("long_context") {
        return None;
    }
    let mut step = table.table("long_context", faults);
    let mut number = |field: &str, want: &str, bounds: (u64, u64)| {
        step.require(field, want, faults);
        step.number(field, bounds, faults)
    };
    let above = number("above", "the longest prompt at the plain price, in tokens", (1, AMOUNT_MAX));
    let input_percent = number("input_percent", PERCENT, (100, PERCENT_MAX));
    let output_percent = number("output_percent", PERCENT, (100, PERCENT_MAX));
    step.finish(faults);
    Some(LongContext { above: Tokens(above?), input_percent: input_percent?, output_percent: output_percent? })
}

/// Reports prices that contradict each other. Only what stands side by side can: the shipped price of what is cached may
/// well be above an operator's own of what is not, and then too much is held, never too little.
pub(super) fn check(table: &Table, faults: &mut Faults) {
    let stated = |field| table.stated_money(field);
    let mut report = |field: &str, got: NanoUsd, want: String| {
        faults.add(&table.path(field), "price", format!("\"{got}\""), want);
    };
    if let (Some(input), Some(cached)) = (stated("input"), stated("cached_input"))
        && cached > input
    {
        report("cached_input", cached, format!("at most input = \"{input}\""));
    }
    if let (Some(write), Some(long)) = (stated("cache_write"), stated("cache_write_long"))
        && long < write
    {
        report("cache_write_long", long, format!("at least cache_write = \"{write}\""));
    }
}
