//! What an answer's headers say of the caller's limits.
//!
//! Invariant: shown is enforced. Every number comes from the snapshot that the decision was made on; what is left is
//! rounded down, what is to be waited for is rounded up.

use crate::limit::account::Snapshot;
use crate::limit::balance::{Balance, Fit};
use crate::limit::{Amount, Shape, Unit};
use crate::time::{Calendar, UnixMillis, Wait};

/// Billionths of a dollar in a millionth: structured fields carry integers of at most 15 digits.
const NANO_PER_MICRO: u64 = 1_000;
/// The largest integer of a structured field (RFC 9651, section 3.3.1).
const FIELD_INTEGER_MAX: u64 = 999_999_999_999_999;

/// The rate headers of an answer.
#[must_use]
pub fn rate_headers(snapshot: &Snapshot) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, units) in
        [("requests", &[Unit::Requests][..]), ("tokens", &[Unit::Tokens, Unit::InputTokens, Unit::OutputTokens][..])]
    {
        let of_units = snapshot.balances.iter().filter(|balance| units.contains(&balance.limit.unit));
        if let Some(tightest) = of_units.min_by_key(|balance| balance.left()) {
            headers.push((format!("x-ratelimit-limit-{name}"), tightest.limit.shape.capacity().0.to_string()));
            headers.push((format!("x-ratelimit-remaining-{name}"), left(tightest).to_string()));
            if let Some(reset) = tightest.wait_until_full(snapshot.at) {
                headers.push((format!("x-ratelimit-reset-{name}"), go_duration(reset)));
            }
        }
    }
    if !snapshot.balances.is_empty() {
        let policies: Vec<_> = snapshot.balances.iter().map(|balance| policy_item(balance, snapshot.at)).collect();
        let states: Vec<_> = snapshot.balances.iter().map(|balance| state_item(balance, snapshot)).collect();
        headers.push(("ratelimit-policy".to_owned(), policies.join(", ")));
        headers.push(("ratelimit".to_owned(), states.join(", ")));
    }
    headers
}

/// The same in the names of Anthropic's API; a reset is a moment, in whole seconds.
#[must_use]
pub fn anthropic_rate_headers(snapshot: &Snapshot) -> Vec<(String, String)> {
    const NAMES: [(&str, Unit); 4] = [
        ("requests", Unit::Requests),
        ("tokens", Unit::Tokens),
        ("input-tokens", Unit::InputTokens),
        ("output-tokens", Unit::OutputTokens),
    ];
    let mut headers = Vec::new();
    for (name, unit) in NAMES {
        let of_unit = snapshot.balances.iter().filter(|balance| balance.limit.unit == unit);
        let Some(tightest) = of_unit.min_by_key(|balance| balance.left()) else { continue };
        let mut header =
            |what: &str, value: String| headers.push((format!("anthropic-ratelimit-{name}-{what}"), value));
        header("limit", tightest.limit.shape.capacity().0.to_string());
        header("remaining", left(tightest).to_string());
        if let Some(reset) = tightest.wait_until_full(snapshot.at) {
            header("reset", snapshot.at.after(reset).whole_second_after());
        }
    }
    headers
}

fn left(balance: &Balance) -> u64 {
    u64::try_from(balance.left()).unwrap_or(0)
}

/// An amount as a structured field carries it: money in millionths of a dollar.
fn field_integer(unit: Unit, amount: u64) -> u64 {
    (if unit == Unit::Usd { amount / NANO_PER_MICRO } else { amount }).min(FIELD_INTEGER_MAX)
}

/// `"name";q=…;w=…` of the IETF's `RateLimit-Policy`.
fn policy_item(balance: &Balance, at: UnixMillis) -> String {
    let limit = &balance.limit;
    let quota = field_integer(limit.unit, limit.shape.capacity().0);
    let unit = match limit.unit {
        Unit::Requests => "",
        Unit::Concurrency => ";qu=\"concurrent-requests\"",
        // Not in the registry of quota units, so under a name of our own.
        Unit::Usd => ";tollgate-unit=\"usd-micro\"",
        Unit::Tokens => ";tollgate-unit=\"tokens\"",
        Unit::InputTokens => ";tollgate-unit=\"input-tokens\"",
        Unit::OutputTokens => ";tollgate-unit=\"output-tokens\"",
    };
    let window = window_seconds(limit.shape, at).map_or(String::new(), |seconds| format!(";w={seconds}"));
    format!("\"{}\";q={quota}{window}{unit}", limit.label())
}

/// In how many seconds the whole quota comes back.
fn window_seconds(shape: Shape, at: UnixMillis) -> Option<u64> {
    match shape {
        Shape::Bucket { burst, refill, per } => {
            let per_day = u128::from(refill.0.max(1)) * u128::from(per.per_day());
            let seconds = (u128::from(burst.0) * 86_400).div_ceil(per_day).max(1);
            Some(u64::try_from(seconds).unwrap_or(u64::MAX).min(FIELD_INTEGER_MAX))
        }
        Shape::Window { window: Calendar::Day, .. } => Some(86_400),
        Shape::Window { window: Calendar::Month, .. } => {
            let this = Calendar::Month.index_of(at);
            let next = crate::time::WindowIndex(this.0.saturating_add(1));
            Some(Calendar::Month.start_of(next).since(Calendar::Month.start_of(this)).whole_seconds())
        }
        Shape::Slots { .. } => None,
    }
}

/// `"name";r=…;t=…` of the IETF's `RateLimit`.
fn state_item(balance: &Balance, snapshot: &Snapshot) -> String {
    let limit = &balance.limit;
    let remaining = left(balance);
    // When there is more: a unit more than is left now.
    let more = Amount(remaining.saturating_add(1));
    let next = match balance.fit(more, snapshot.at) {
        Fit::After(wait) => format!(";t={}", wait.whole_seconds()),
        Fit::Now | Fit::Never => String::new(),
    };
    format!("\"{}\";r={}{next}", limit.label(), field_integer(limit.unit, remaining))
}

/// A duration as the OpenAI API writes it: `17ms`, `1.2s`, `6m0s`, `1h2m3s`.
#[must_use]
pub fn go_duration(wait: Wait) -> String {
    let (millis, seconds) = (wait.0 % 1_000, wait.0 / 1_000);
    if seconds == 0 {
        return if millis == 0 { "0s".to_owned() } else { format!("{millis}ms") };
    }
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}").trim_end_matches('0').to_owned() };
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{fraction}s"),
        (0, _) => format!("{minutes}m{seconds}{fraction}s"),
        _ => format!("{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::NanoUsd;
    use crate::limit::account::{Account, HoldId};
    use crate::limit::{Cost, Estimate, Limit, Period, Tokens};

    #[test]
    fn durations_are_written_as_go_writes_them() {
        let shown = [0, 17, 1_000, 1_200, 60_000, 179_560, 3_723_000, 360_000_001].map(|ms| go_duration(Wait(ms)));
        assert_eq!(shown, ["0s", "17ms", "1s", "1.2s", "1m0s", "2m59.56s", "1h2m3s", "100h0m0.001s"]);
    }

    #[test]
    fn every_limit_is_shown_as_it_is_enforced() {
        let limit = |name: &str, unit, shape| Limit { name: name.to_owned(), unit, shape };
        let bucket = |burst, refill, per| Shape::Bucket { burst: Amount(burst), refill: Amount(refill), per };
        let day = |amount| Shape::Window { amount: Amount(amount), window: Calendar::Day };
        let limits = [
            limit("rpm", Unit::Requests, bucket(10, 60, Period::Minute)),
            limit("rpd", Unit::Requests, day(5)),
            limit("tpm", Unit::Tokens, bucket(1_000, 600, Period::Minute)),
            limit("budget", Unit::Usd, bucket(10_000_000, 10_000, Period::Second)),
            limit("slots", Unit::Concurrency, Shape::Slots { amount: Amount(1) }),
        ];
        let estimate = Estimate(Cost { requests: 1, input: Tokens(100), output: Tokens(100), usd: NanoUsd(300_500) });
        let noon = UnixMillis(1_930_478_400_000);
        let made = Account::default().reserve(noon, &HoldId("a".to_owned()), &limits, (estimate, Wait(1_000)));
        let headers = rate_headers(&made.next.unwrap().snapshot(noon, &limits));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            headers,
            [
                ("x-ratelimit-limit-requests", "5"),
                ("x-ratelimit-remaining-requests", "4"),
                ("x-ratelimit-reset-requests", "12h0m0s"),
                ("x-ratelimit-limit-tokens", "1000"),
                ("x-ratelimit-remaining-tokens", "800"),
                ("x-ratelimit-reset-tokens", "20s"),
                (
                    "ratelimit-policy",
                    "\"rpm\";q=10;w=10, \"rpd\";q=5;w=86400, \"tpm\";q=1000;w=100;tollgate-unit=\"tokens\", \
                     \"budget\";q=10000;w=1000;tollgate-unit=\"usd-micro\", \
                     \"slots\";q=1;qu=\"concurrent-requests\""
                ),
                (
                    "ratelimit",
                    "\"rpm\";r=9;t=1, \"rpd\";r=4;t=43200, \"tpm\";r=800;t=1, \"budget\";r=9699;t=1, \
                     \"slots\";r=0;t=1"
                ),
            ]
        );
    }
}
