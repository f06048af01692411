//! Random plans, random changes of them, and random commands.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{BoxedStrategy, Just, ProptestConfig, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::FileFailurePersistence;
use tollgate::limit::NanoUsd;
use tollgate::limit::{Amount, Cost, Limit, Period, Shape, Tokens, Unit};
use tollgate::time::Calendar;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// 2031-03-05T12:00:00Z.
pub(crate) const NOON: u64 = 1_930_478_400_000;

/// The configuration of all properties: one `part` of the usual number of cases. `PROPTEST_CASES` makes a longer run.
pub(crate) fn config(part: u32) -> ProptestConfig {
    let (usual, persistence) = (ProptestConfig::default(), FileFailurePersistence::WithSource("proptest-regressions"));
    ProptestConfig { failure_persistence: Some(Box::new(persistence)), cases: usual.cases / part, ..usual }
}

/// What happens to an account.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Time passes.
    Pass(u64),
    /// The clock is set back.
    Back(u64),
    Reserve {
        id: String,
        cost: Cost,
        hold: u64,
    },
    /// A settlement; whether the provider has said so itself.
    Settle {
        id: String,
        cost: Cost,
        exact: bool,
    },
    Release {
        id: String,
    },
    Extend {
        id: String,
        hold: u64,
    },
    /// A hold is kept as another id, which may be one that is there already.
    Keep {
        id: String,
        as_id: String,
        hold: u64,
    },
    /// A kept hold is looked for.
    Find {
        id: String,
    },
    /// An alarm, whenever it may come.
    Alarm,
    /// The policy changes to another of the plan's variants.
    Policy(usize),
}

/// A plan of one to `most` limits over all units and shapes.
pub(crate) fn plan(most: usize) -> impl Strategy<Value = Vec<Limit>> {
    vec(unit_and_kind().prop_flat_map(|(unit, kind)| (Just(unit), shape(unit, kind))), 1..=most).prop_map(|rules| {
        rules.into_iter().enumerate().map(|(place, (unit, shape))| limit(place, unit, shape)).collect()
    })
}

/// A plan as it is written at one time and at two others: the amounts differ, and limits are dropped or come back.
pub(crate) fn changing_plan(most: usize) -> impl Strategy<Value = Vec<Vec<Limit>>> {
    let variants = |(unit, kind): (Unit, Kind)| (Just(unit), vec(weighted(0.8, shape(unit, kind)), 3));
    vec(unit_and_kind().prop_flat_map(variants), 1..=most).prop_map(|rules| {
        let variant = |variant: usize| {
            let rules = rules.iter().enumerate();
            rules.filter_map(|(place, (unit, shapes))| Some(limit(place, *unit, (*shapes.get(variant)?)?))).collect()
        };
        (0..3).map(variant).collect()
    })
}

/// Random commands, clock jumps and, with `policies`, changes of policy.
pub(crate) fn steps(policies: bool) -> impl Strategy<Value = Vec<Step>> {
    let reserve = (id(), cost(), hold()).prop_map(|(id, cost, hold)| Step::Reserve { id, cost, hold });
    let settle = (any_id(), cost(), any::<bool>()).prop_map(|(id, cost, exact)| Step::Settle { id, cost, exact });
    vec(
        prop_oneof![
            6 => passing().prop_map(Step::Pass),
            1 => prop_oneof![0..2_000_u64, 0..2 * HOUR, 0..3 * DAY].prop_map(Step::Back),
            8 => reserve,
            6 => settle,
            2 => any_id().prop_map(|id| Step::Release { id }),
            1 => (any_id(), hold()).prop_map(|(id, hold)| Step::Extend { id, hold }),
            3 => (any_id(), any_id(), hold()).prop_map(|(id, as_id, hold)| Step::Keep { id, as_id, hold }),
            2 => any_id().prop_map(|id| Step::Find { id }),
            1 => Just(Step::Alarm),
            u32::from(policies) => (0..3_usize).prop_map(Step::Policy),
        ],
        1..50,
    )
}

/// A moment within forty days, so that days and months turn.
pub(crate) fn start() -> impl Strategy<Value = u64> {
    (0..40 * DAY).prop_map(|later| NOON + later)
}

/// What a call costs, or may cost.
pub(crate) fn cost() -> impl Strategy<Value = Cost> {
    let small = prop_oneof![1 => Just(0_u64), 6 => 1..200_u64, 1 => 200..2_000_u64];
    (0..2_u64, small.clone(), small, prop_oneof![0..1_000_u64, 0..1_000_000_u64]).prop_map(
        |(requests, input, output, usd)| Cost {
            requests,
            input: Tokens(input),
            output: Tokens(output),
            usd: NanoUsd(usd),
        },
    )
}

/// How long time passes: from a moment to more than a month.
pub(crate) fn passing() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0_u64),
        3 => 1..3_000_u64,
        3 => 0..5 * MINUTE,
        2 => 0..2 * HOUR,
        1 => 0..2 * DAY,
        1 => 0..70 * DAY,
    ]
}

/// How long a hold may last; the policy allows an hour at most.
fn hold() -> impl Strategy<Value = u64> {
    prop_oneof![1..3_000_u64, 0..HOUR]
}

fn id() -> impl Strategy<Value = String> {
    (b'a'..=b'f').prop_map(|letter| char::from(letter).to_string())
}

/// The id of a call, or more seldom one that only calls that were kept have.
fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![3 => id(), 2 => (b'r'..=b'u').prop_map(|letter| char::from(letter).to_string())]
}

fn limit(place: usize, unit: Unit, shape: Shape) -> Limit {
    Limit { name: format!("limit-{place}"), unit, shape }
}

/// Which shape a limit has.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Bucket,
    Window(Calendar),
    Slots,
}

fn unit_and_kind() -> impl Strategy<Value = (Unit, Kind)> {
    let units = [Unit::Requests, Unit::InputTokens, Unit::OutputTokens, Unit::Tokens, Unit::Usd];
    let kinds = [Kind::Bucket, Kind::Bucket, Kind::Window(Calendar::Day), Kind::Window(Calendar::Month)];
    prop_oneof![9 => (select(units.to_vec()), select(kinds.to_vec())), 1 => Just((Unit::Concurrency, Kind::Slots))]
}

fn shape(unit: Unit, kind: Kind) -> BoxedStrategy<Shape> {
    // About as much as a few calls cost, so that limits are reached, overrun and regained.
    let most = match unit {
        Unit::Requests => 6,
        Unit::Usd => 2_000_000,
        _ => 1_000_u64,
    };
    let periods = vec![Period::Second, Period::Minute, Period::Hour, Period::Day];
    match kind {
        Kind::Slots => (0..4_u64).prop_map(|amount| Shape::Slots { amount: Amount(amount) }).boxed(),
        Kind::Window(window) => {
            (1..=most).prop_map(move |amount| Shape::Window { amount: Amount(amount), window }).boxed()
        }
        Kind::Bucket => (0..=most, 1..=most, select(periods))
            .prop_map(|(burst, refill, per)| Shape::Bucket { burst: Amount(burst), refill: Amount(refill), per })
            .boxed(),
    }
}
