//! The day's gate: caps per subject and day, and the ceiling of the whole site.
//!
//! Invariant: one atomic statement checks and counts both, or neither. What is decided here is decided on what that
//! statement returned, never on a count that was read before.

use crate::limit::NanoUsd;
use crate::limit::account::Denial;
use crate::limit::{Amount, Limit, Shape, Unit};
use crate::time::{Calendar, UnixMillis, UtcDay, Wait};

/// The row of the whole site.
pub const SITE_KEY: &str = "*";

/// What one UTC day allows; `None` is no rule, zero is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayCaps {
    /// Calls.
    pub calls: Option<u64>,
    /// Money: what was estimated of open calls, and did cost of ended ones.
    pub usd: Option<NanoUsd>,
}

impl DayCaps {
    /// Whether there is any rule.
    #[must_use]
    pub const fn is_some(&self) -> bool {
        self.calls.is_some() || self.usd.is_some()
    }
}

/// A question to the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The day.
    pub day: UtcDay,
    /// The caller's row.
    pub key: String,
    /// The caller's plan.
    pub plan: String,
    /// What the call may cost.
    pub estimate: NanoUsd,
    /// What the caller may.
    pub own: DayCaps,
    /// What the site may; none for a plan that is exempted.
    pub site: DayCaps,
    /// Whether the call counts for the site: not if its plan is exempted.
    pub counts_for_site: bool,
}

/// A row as the statement left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Of which day.
    pub day: UtcDay,
    /// Whose.
    pub key: String,
    /// Calls admitted.
    pub calls: u64,
    /// Money that counts against the caps.
    pub counted: NanoUsd,
    /// For the site's row: whether old rows have been deleted on this day.
    pub pruned: bool,
}

/// Whose rule refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayScope {
    /// The caller's.
    Daily,
    /// The site's.
    Site,
}

impl DayScope {
    /// What the limit is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Daily => "daily",
            Self::Site => "site",
        }
    }
}

/// A refusal of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayRefusal {
    /// Whose rule.
    pub scope: DayScope,
    /// How long until the day is over; `None` if the cap is zero, so that no day would help.
    pub wait: Option<Wait>,
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// Counted.
    Counted {
        /// Old rows have not been deleted on this day yet.
        prune: bool,
    },
    /// Not counted.
    Refused(DayRefusal),
}

impl Gate {
    /// The cap that no day can admit the call under, because the call alone is more than it.
    #[must_use]
    pub fn never_fits(&self) -> Option<Denial> {
        let denial = |scope: DayScope, unit, cap, asked| {
            let shape = Shape::Window { amount: Amount(cap), window: Calendar::Day };
            let limit = Limit { name: scope.name().to_owned(), unit, shape };
            let left = i64::try_from(cap).unwrap_or(i64::MAX);
            Denial { limit, asked: Amount(asked), left, wait: Wait(0), firm: true }
        };
        [(DayScope::Daily, self.own), (DayScope::Site, self.site)].into_iter().find_map(|(scope, caps)| {
            let calls = caps.calls.filter(|cap| *cap < 1).map(|cap| denial(scope, Unit::Requests, cap, 1));
            let usd = caps.usd.map(|cap| cap.0).filter(|cap| self.estimate.0 > *cap);
            calls.or_else(|| usd.map(|cap| denial(scope, Unit::Usd, cap, self.estimate.0)))
        })
    }

    /// The refusal that these rows make; a row that is not there has counted nothing.
    #[must_use]
    pub fn refusal(&self, own: Option<&Row>, site: Option<&Row>, now: UnixMillis) -> Option<DayRefusal> {
        let refuses = |caps, row: Option<&Row>| row.is_some_and(|row| exceeded(caps, row, self.estimate));
        let scope = if refuses(self.own, own) {
            DayScope::Daily
        } else if refuses(self.site, site) {
            DayScope::Site
        } else {
            return None;
        };
        Some(DayRefusal { scope, wait: Some(self.day.wait_for_end(now)) })
    }

    /// Reads what the statement returned: both rows where it counted, the caller's alone where it refused.
    #[must_use]
    pub fn verdict(&self, rows: &[Row], now: UnixMillis) -> Option<GateVerdict> {
        let site = rows.iter().find(|row| row.key == SITE_KEY);
        let own = rows.iter().find(|row| row.key == self.key)?;
        if let Some(site) = site {
            return Some(GateVerdict::Counted { prune: !site.pruned });
        }
        let own_refuses = exceeded(self.own, own, self.estimate);
        let (scope, caps) = if own_refuses { (DayScope::Daily, self.own) } else { (DayScope::Site, self.site) };
        let closed = caps.calls == Some(0) || caps.usd == Some(NanoUsd(0));
        let wait = (!closed).then(|| self.day.wait_for_end(now));
        Some(GateVerdict::Refused(DayRefusal { scope, wait }))
    }
}

/// Whether one more call of `estimate` would exceed a cap.
#[must_use]
pub fn exceeded(caps: DayCaps, row: &Row, estimate: NanoUsd) -> bool {
    caps.calls.is_some_and(|cap| row.calls.saturating_add(1) > cap)
        || caps.usd.is_some_and(|cap| estimate.0 > 0 && row.counted.0.saturating_add(estimate.0) > cap.0)
}

/// What a day leaves, for showing.
#[must_use]
pub fn left(cap: u64, used: u64) -> Amount {
    Amount(cap.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::DAY_MS;

    fn gate(own: DayCaps, site: DayCaps) -> Gate {
        let (key, plan) = ("visitor:a".to_owned(), "visitor".to_owned());
        Gate { day: UtcDay(20_000), key, plan, estimate: NanoUsd(10), own, site, counts_for_site: true }
    }

    fn row(key: &str, calls: u64, counted: u64) -> Row {
        Row { day: UtcDay(20_000), key: key.to_owned(), calls, counted: NanoUsd(counted), pruned: calls > 1 }
    }

    fn calls(cap: u64) -> DayCaps {
        DayCaps { calls: Some(cap), usd: None }
    }

    #[test]
    fn both_rows_mean_counted_and_the_first_call_of_a_day_prunes() {
        let gate = gate(calls(2), calls(10));
        let now = UnixMillis(20_000 * DAY_MS);
        let counted = |calls| gate.verdict(&[row("visitor:a", 1, 10), row(SITE_KEY, calls, 10)], now);
        assert_eq!(counted(1), Some(GateVerdict::Counted { prune: true }));
        assert_eq!(counted(2), Some(GateVerdict::Counted { prune: false }));
        assert_eq!(gate.verdict(&[], now), None);
    }

    #[test]
    fn what_is_more_than_a_whole_day_never_fits() {
        let money = |cap| DayCaps { calls: None, usd: Some(NanoUsd(cap)) };
        let never = |own, site| gate(own, site).never_fits().map(|denial| (denial.limit.name, denial.asked.0));
        assert_eq!(never(money(10), money(9)), Some(("site".to_owned(), 10)));
        assert_eq!(never(money(9), money(9)), Some(("daily".to_owned(), 10)));
        assert_eq!(never(calls(0), DayCaps::default()), Some(("daily".to_owned(), 1)));
        assert_eq!(never(calls(1), money(10)), None);
    }

    #[test]
    fn a_refusal_says_whose_rule_it_was_and_when_the_day_is_over() {
        let now = UnixMillis(20_001 * DAY_MS - 600);
        let refused = |gate: Gate, calls, counted| gate.verdict(&[row("visitor:a", calls, counted)], now);
        let refusal = |scope, wait| Some(GateVerdict::Refused(DayRefusal { scope, wait }));
        assert_eq!(refused(gate(calls(2), calls(10)), 2, 0), refusal(DayScope::Daily, Some(Wait(600))));
        assert_eq!(refused(gate(calls(2), calls(10)), 1, 0), refusal(DayScope::Site, Some(Wait(600))));
        assert_eq!(refused(gate(calls(0), calls(10)), 0, 0), refusal(DayScope::Daily, None));
        assert_eq!(refused(gate(DayCaps::default(), calls(0)), 0, 0), refusal(DayScope::Site, None));
        let money = DayCaps { calls: None, usd: Some(NanoUsd(25)) };
        assert_eq!(refused(gate(money, calls(10)), 1, 16), refusal(DayScope::Daily, Some(Wait(600))));
        assert_eq!(refused(gate(money, calls(10)), 1, 15), refusal(DayScope::Site, Some(Wait(600))));
    }
}
