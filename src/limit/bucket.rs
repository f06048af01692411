//! An exact token bucket in integers.
//!
//! Invariant: looking in between changes nothing. What is kept is how much is *spent* (a full bucket has 0, a bucket
//! in debt more than its burst), so a missing bucket and a full one are the same, and a new burst rescales nothing
//! that was spent. `carry` is the part of a unit already regained, in 1/86,400,000 of a unit, whatever the rate.

use serde::{Deserialize, Serialize};

use super::{Amount, Period};
use crate::time::{DAY_MS, Wait};

const DAY: u128 = DAY_MS as u128;

/// How fast a bucket regains, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The most that it holds.
    pub burst: Amount,
    /// Units regained per day; at least 1.
    refill_per_day: u128,
}

impl Quota {
    /// `refill` units every `per`, up to `burst`. A refill of 0 is read as 1 a day, so that every wait is finite; the
    /// policy refuses it before.
    #[must_use]
    pub fn new(burst: Amount, refill: Amount, per: Period) -> Self {
        Self { burst, refill_per_day: u128::from(refill.0.max(1)) * u128::from(per.per_day()) }
    }
}

/// What is spent of a bucket, as of a moment that its owner keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Units missing from a full bucket.
    pub spent: Amount,
    /// Part of a unit already regained, in 1/86,400,000.
    pub carry: u64,
}

impl Bucket {
    /// The bucket `elapsed` later: the quotient is regained, the remainder carried; when full, both are zero.
    #[must_use]
    pub fn after(self, elapsed: Wait, quota: Quota) -> Self {
        let gained = u128::from(elapsed.0).saturating_mul(quota.refill_per_day).saturating_add(u128::from(self.carry));
        match u64::try_from(gained / DAY) {
            Ok(units) if units < self.spent.0 => Self {
                spent: Amount(self.spent.0 - units),
                // Below DAY_MS by the modulo, so it fits.
                carry: u64::try_from(gained % DAY).unwrap_or(0),
            },
            _ => Self::default(),
        }
    }

    /// What is there; negative in debt.
    #[must_use]
    pub fn level(self, quota: Quota) -> i128 {
        i128::from(quota.burst.0) - i128::from(self.spent.0)
    }

    /// Spends `amount`, into debt if need be.
    #[must_use]
    pub fn take(self, amount: Amount) -> Self {
        Self { spent: Amount(self.spent.0.saturating_add(amount.0)), ..self }
    }

    /// Gives `amount` back; never above full.
    #[must_use]
    pub fn give_back(self, amount: Amount) -> Self {
        if amount.0 >= self.spent.0 { Self::default() } else { Self { spent: Amount(self.spent.0 - amount.0), ..self } }
    }

    /// After what time `asked` is there: zero if it is there now, `None` if it never can be.
    #[must_use]
    pub fn wait_for(self, asked: Amount, quota: Quota) -> Option<Wait> {
        if asked > quota.burst {
            return None;
        }
        let need = (u128::from(self.spent.0) + u128::from(asked.0)).saturating_sub(u128::from(quota.burst.0));
        Some(self.wait_to_regain(need, quota))
    }

    /// After what time the bucket is full.
    #[must_use]
    pub fn wait_until_full(self, quota: Quota) -> Wait {
        self.wait_to_regain(u128::from(self.spent.0), quota)
    }

    fn wait_to_regain(self, need: u128, quota: Quota) -> Wait {
        let missing = (need * DAY).saturating_sub(if need == 0 { 0 } else { u128::from(self.carry) });
        Wait(u64::try_from(missing.div_ceil(quota.refill_per_day)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn refused_one_millisecond_before_admitted_at_it(
            burst in 1_u64..1 << 53, refill in 1_u64..1 << 40, spent in 0_u64..1 << 54, carry in 0..DAY_MS,
            asked in 1_u64..1 << 53, per in 0_usize..4,
        ) {
            let per = [Period::Second, Period::Minute, Period::Hour, Period::Day][per];
            let quota = Quota::new(Amount(burst), Amount(refill), per);
            let bucket = Bucket { spent: Amount(spent), carry: if spent == 0 { 0 } else { carry } };
            let Some(wait) = bucket.wait_for(Amount(asked), quota) else {
                prop_assert!(asked > burst);
                return Ok(());
            };
            prop_assert!(bucket.after(wait, quota).level(quota) >= i128::from(asked));
            if wait.0 > 0 {
                prop_assert!(bucket.after(Wait(wait.0 - 1), quota).level(quota) < i128::from(asked));
            }
        }

        #[test]
        fn looking_in_between_changes_nothing(
            refill in 1_u64..1 << 40, spent in 0_u64..1 << 53, first in 0_u64..1 << 34, second in 0_u64..1 << 34,
        ) {
            let quota = Quota::new(Amount(1 << 53), Amount(refill), Period::Hour);
            let bucket = Bucket { spent: Amount(spent), carry: 0 };
            prop_assert_eq!(
                bucket.after(Wait(first), quota).after(Wait(second), quota),
                bucket.after(Wait(first + second), quota)
            );
        }

        #[test]
        fn full_exactly_when_it_says(refill in 1_u64..1 << 40, spent in 1_u64..1 << 53) {
            let quota = Quota::new(Amount(1 << 53), Amount(refill), Period::Minute);
            let bucket = Bucket { spent: Amount(spent), carry: 0 };
            let wait = bucket.wait_until_full(quota);
            prop_assert_eq!(bucket.after(wait, quota), Bucket::default());
            prop_assert!(bucket.after(Wait(wait.0 - 1), quota).spent.0 > 0);
        }
    }

    #[test]
    fn a_refund_never_lifts_above_full() {
        let bucket = Bucket { spent: Amount(5), carry: 7 };
        assert_eq!(bucket.give_back(Amount(9)), Bucket::default());
        assert_eq!(bucket.give_back(Amount(2)), Bucket { spent: Amount(3), carry: 7 });
    }

    #[test]
    fn three_hundred_years_do_not_overflow() {
        let quota = Quota::new(Amount(u64::MAX >> 11), Amount(u64::MAX >> 11), Period::Second);
        let bucket = Bucket { spent: Amount(u64::MAX), carry: DAY_MS - 1 };
        assert_eq!(bucket.after(Wait(u64::MAX), quota), Bucket::default());
        assert_eq!(bucket.take(Amount(u64::MAX)).spent, Amount(u64::MAX));
    }
}
