//! What holds for every price and whatever a call took.
//!
//! `FUZZ_CASES=100000 cargo test --test usage_pricing` makes a long run.

use proptest::option;
use proptest::prelude::*;
use tollgate::limit::{NanoUsd, Tokens};
use tollgate::pricing::{LongContext, PerMillion, Price, Quantities, Tier, Tiers};

const CASES: u32 = 1_000;
const TIERS: [Tier; 4] = [Tier::Standard, Tier::Flex, Tier::Priority, Tier::Ultrafast];

fn config() -> ProptestConfig {
    let asked = std::env::var("FUZZ_CASES").ok().and_then(|number| number.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(CASES), failure_persistence: None, ..ProptestConfig::default() }
}

fn money() -> impl Strategy<Value = NanoUsd> {
    prop_oneof![1 => Just(0), 8 => 0_u64..20_000_000_000, 1 => any::<u64>()].prop_map(NanoUsd)
}

fn per_million() -> impl Strategy<Value = PerMillion> {
    money().prop_map(PerMillion)
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 8 => 0_u64..3_000, 1 => any::<u64>()]
}

fn tokens() -> impl Strategy<Value = Tokens> {
    count().prop_map(Tokens)
}

fn tier() -> impl Strategy<Value = Tier> {
    prop::sample::select(TIERS.to_vec())
}

/// Any price whose steps are at least `percent_min` hundredths.
fn price(percent_min: u64) -> impl Strategy<Value = Price> {
    let percent = move || prop_oneof![1 => percent_min..=100, 2 => 100_u64..700];
    let own = || option::of(per_million());
    let long = (0_u64..3_000, percent(), percent());
    let tiers = (option::of(percent()), option::of(percent()), option::of(percent()));
    let input = (per_million(), own(), own(), own(), own(), own());
    let output = (per_million(), own(), own(), own());
    let others = (per_million(), money(), money(), money(), money());
    (input, output, others, tiers, option::of(long)).prop_map(|(input, output, others, tiers, long)| Price {
        input: input.0,
        cached_input: input.1,
        cache_write: input.2,
        cache_write_long: input.3,
        audio_input: input.4,
        image_input: input.5,
        output: output.0,
        reasoning: output.1,
        audio_output: output.2,
        image_output: output.3,
        character: others.0,
        minute: others.1,
        image: others.2,
        call: others.3,
        tool_call: others.4,
        tiers: Tiers { flex: tiers.0, priority: tiers.1, ultrafast: tiers.2 },
        long_context: long.map(|(above, input_percent, output_percent)| LongContext {
            above: Tokens(above),
            input_percent,
            output_percent,
        }),
    })
}

/// Any quantities; parts may overlap and be more than what they are parts of.
fn quantities() -> impl Strategy<Value = Quantities> {
    let input = (tokens(), tokens(), tokens(), tokens(), tokens(), tokens());
    let output = (tokens(), tokens(), tokens(), tokens());
    let others = (count(), count(), count(), count());
    (input, output, others).prop_map(|(input, output, others)| Quantities {
        input: input.0,
        cached_input: input.1,
        cache_write: input.2,
        cache_write_long: input.3,
        audio_input: input.4,
        image_input: input.5,
        output: output.0,
        reasoning: output.1,
        audio_output: output.2,
        image_output: output.3,
        characters: others.0,
        audio_ms: others.1,
        images: others.2,
        tool_calls: others.3,
    })
}

/// A call within a bound: no total above it, and no kind that it does not name; how it splits is its own.
fn within(bound: &Quantities, call: &Quantities) -> Quantities {
    let if_named = |bound: Tokens, tokens: Tokens| if bound == Tokens(0) { bound } else { tokens };
    Quantities {
        input: call.input.min(bound.input),
        cache_write_long: if_named(bound.cache_write_long, call.cache_write_long),
        audio_input: if_named(bound.audio_input, call.audio_input),
        image_input: if_named(bound.image_input, call.image_input),
        output: call.output.min(bound.output),
        audio_output: if_named(bound.audio_output, call.audio_output),
        image_output: if_named(bound.image_output, call.image_output),
        characters: call.characters.min(bound.characters),
        audio_ms: call.audio_ms.min(bound.audio_ms),
        images: call.images.min(bound.images),
        tool_calls: call.tool_calls.min(bound.tool_calls),
        ..*call
    }
}

/// The totals of a call, one by one.
fn totals(call: &mut Quantities) -> [&mut u64; 6] {
    let Quantities { input, output, characters, audio_ms, images, tool_calls, .. } = call;
    [&mut input.0, &mut output.0, characters, audio_ms, images, tool_calls]
}

/// The parts of a call with their own price, and the plain one.
fn parts<'q>(price: &Price, call: &'q mut Quantities) -> [(&'q mut Tokens, Option<PerMillion>, PerMillion); 8] {
    let (read, written) = (price.input, price.output);
    [
        (&mut call.cached_input, price.cached_input, read),
        (&mut call.cache_write, price.cache_write, read),
        (&mut call.cache_write_long, price.cache_write_long.or(price.cache_write), read),
        (&mut call.audio_input, price.audio_input, read),
        (&mut call.image_input, price.image_input, read),
        (&mut call.reasoning, price.reasoning, written),
        (&mut call.audio_output, price.audio_output, written),
        (&mut call.image_output, price.image_output, written),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_call_within_a_bound_costs_more_than_its_estimate(
        price in price(0), bound in quantities(), call in quantities(), tier in tier(), as_asked in any::<bool>(),
    ) {
        let estimate = price.estimate(&bound, tier).0;
        // Just as long as the plain price goes, too.
        let plain = price.long_context.map_or(bound.input, |long| long.above.min(bound.input));
        for call in [within(&bound, &call), Quantities { input: plain, ..bound }, bound] {
            let cost = price.cost(&call, if as_asked { tier } else { Tier::Standard });
            prop_assert!(cost.usd <= estimate.usd, "{call:?} costs {} of {}", cost.usd, estimate.usd);
            prop_assert!(cost.input <= estimate.input && cost.output <= estimate.output);
            prop_assert_eq!(cost.requests, estimate.requests);
        }
    }

    #[test]
    fn more_costs_no_less(price in price(100), call in quantities(), tier in tier(), more in count(), which in 0_usize..14) {
        let mut larger = call;
        if let Some(total) = totals(&mut larger).into_iter().nth(which) {
            *total = total.saturating_add(more);
        } else if let Some((tokens, own, plain)) = parts(&price, &mut larger).into_iter().nth(which - 6) {
            // A part that is cheaper than the rest makes the call cheaper, and is meant to.
            tokens.0 = tokens.0.saturating_add(if own >= Some(plain) { more } else { 0 });
        }
        prop_assert!(price.cost(&larger, tier).usd >= price.cost(&call, tier).usd, "{larger:?}");
        prop_assert!(price.estimate(&larger, tier).0.usd >= price.estimate(&call, tier).0.usd, "{larger:?}");
    }

    #[test]
    fn parts_that_do_not_overlap_cost_their_own_price(price in price(0), split in prop::array::uniform10(0_u64..1_000)) {
        let [plain_in, plain_out, rest @ ..] = split;
        let price = Price { long_context: None, ..price };
        let mut call = Quantities::default();
        let mut sum = u128::from(plain_in) * u128::from(price.input.0.0) + u128::from(plain_out) * u128::from(price.output.0.0);
        for ((tokens, own, plain), count) in parts(&price, &mut call).into_iter().zip(rest) {
            *tokens = Tokens(count);
            sum += u128::from(count) * u128::from(own.unwrap_or(plain).0.0);
        }
        let [cached, written, long, audio, image, reasoning, spoken, drawn] = rest;
        call.input = Tokens(plain_in + cached + written + long + audio + image);
        call.output = Tokens(plain_out + reasoning + spoken + drawn);
        let want = u64::try_from(sum.div_ceil(1_000_000) + u128::from(price.call.0)).unwrap_or(u64::MAX);
        prop_assert_eq!(price.cost(&call, Tier::Standard).usd, NanoUsd(want));
    }

    #[test]
    fn an_estimate_counts_on_no_split(price in price(0), bound in quantities(), tier in tier()) {
        let mut without = bound;
        for (tokens, _, _) in parts(&price, &mut without) {
            // Only whether a kind may occur is taken from a bound.
            *tokens = Tokens(u64::from(*tokens > Tokens(0)));
        }
        prop_assert_eq!(price.estimate(&without, tier), price.estimate(&bound, tier));
    }
}
