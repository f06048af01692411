//! An amount per calendar window.
//!
//! Invariant: nothing is forgiven at the turn of a window. What was used beyond the amount is debt and counts against
//! the next window, and the next, until it is paid; a hold that outlives its window is corrected in the window that
//! it was made in, never in the new one.

use serde::{Deserialize, Serialize};

use super::Amount;
use crate::time::{Calendar, UnixMillis, Wait, WindowIndex};

/// What is used of one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The window that this counts.
    pub index: WindowIndex,
    /// Used in it, debt from earlier windows included.
    pub used: Amount,
    /// The part of `used` that is debt from earlier windows.
    pub owed: Amount,
}

impl Window {
    /// The count as the window `index` sees it; an earlier index changes nothing, so the clock never runs backwards.
    #[must_use]
    pub fn rolled_to(self, index: WindowIndex, amount: Amount) -> Self {
        let Some(passed) = index.0.checked_sub(self.index.0).filter(|passed| *passed > 0) else {
            return self;
        };
        let debt = Amount(self.used.0.saturating_sub(passed.saturating_mul(amount.0)));
        Self { index, used: debt, owed: debt }
    }

    /// Uses `more`, beyond the amount if need be.
    #[must_use]
    pub fn take(self, more: Amount) -> Self {
        Self { used: Amount(self.used.0.saturating_add(more.0)), ..self }
    }

    /// Gives back what a hold of the window `made_in` did not need. From an earlier window only its debt can come back.
    #[must_use]
    pub fn give_back(self, amount: Amount, made_in: WindowIndex) -> Self {
        let back = if made_in < self.index { amount.0.min(self.owed.0) } else { amount.0.min(self.used.0) };
        let used = self.used.0 - back;
        let owed = if made_in < self.index { self.owed.0 - back } else { self.owed.0.min(used) };
        Self { used: Amount(used), owed: Amount(owed), ..self }
    }

    /// After what time `asked` fits: zero if it fits now, `None` if it never can. `now` may lie before the window.
    #[must_use]
    pub fn wait_for(self, asked: Amount, amount: Amount, calendar: Calendar, now: UnixMillis) -> Option<Wait> {
        if asked > amount {
            return None;
        }
        let excess = (u128::from(self.used.0) + u128::from(asked.0)).saturating_sub(u128::from(amount.0));
        if excess == 0 {
            return Some(Wait::default());
        }
        // `asked <= amount` and `excess > 0` imply `amount > 0` unless both are 0, in which case used > 0: a window
        // of amount 0 never pays a debt off.
        let turns = excess.checked_div(u128::from(amount.0)).map(|_| excess.div_ceil(u128::from(amount.0)))?;
        Some(self.start_in(u64::try_from(turns).unwrap_or(u64::MAX), calendar).since(now))
    }

    /// After what time nothing of this window's use is left; `None` if that never is, since a window of amount 0 pays
    /// no debt off.
    #[must_use]
    pub fn wait_until_full(self, amount: Amount, calendar: Calendar, now: UnixMillis) -> Option<Wait> {
        match self.used.0.checked_sub(1) {
            None => Some(Wait::default()),
            Some(used) => {
                let turns = used.checked_div(amount.0)?.saturating_add(1);
                Some(self.start_in(turns, calendar).since(now))
            }
        }
    }

    fn start_in(self, turns: u64, calendar: Calendar) -> UnixMillis {
        calendar.start_of(WindowIndex(self.index.0.saturating_add(turns)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::time::DAY_MS;

    const TEN: Amount = Amount(10);

    fn used(used: u64) -> Window {
        Window { index: WindowIndex(100), used: Amount(used), owed: Amount(0) }
    }

    #[test]
    fn overuse_is_paid_from_the_next_windows() {
        let next = used(27).rolled_to(WindowIndex(101), TEN);
        assert_eq!((next.used, next.owed), (Amount(17), Amount(17)));
        assert_eq!(next.rolled_to(WindowIndex(103), TEN).used, Amount(0));
        assert_eq!(next.rolled_to(WindowIndex(90), TEN), next);
    }

    #[test]
    fn a_hold_of_yesterday_gives_back_only_yesterdays_debt() {
        let today = used(12).rolled_to(WindowIndex(101), TEN).take(Amount(5));
        assert_eq!(today.used, Amount(7));
        let back = today.give_back(Amount(6), WindowIndex(100));
        assert_eq!((back.used, back.owed), (Amount(5), Amount(0)));
        assert_eq!(today.give_back(Amount(6), WindowIndex(101)).used, Amount(1));
    }

    #[test]
    fn a_zero_amount_never_fits() {
        assert_eq!(used(0).wait_for(Amount(1), Amount(0), Calendar::Day, UnixMillis(0)), None);
        assert_eq!(used(5).wait_for(Amount(0), Amount(0), Calendar::Day, UnixMillis(0)), None);
        assert_eq!(used(5).wait_until_full(Amount(0), Calendar::Day, UnixMillis(0)), None);
        assert_eq!(used(0).wait_until_full(Amount(0), Calendar::Day, UnixMillis(0)), Some(Wait(0)));
    }

    proptest! {
        #[test]
        fn fits_at_the_promised_turn_and_not_before(
            spent in 0_u64..1_000, amount in 1_u64..100, asked in 1_u64..100, time in 0..DAY_MS,
        ) {
            let now = UnixMillis(100 * DAY_MS + time);
            let (window, amount, asked) = (used(spent), Amount(amount), Amount(asked));
            let Some(wait) = window.wait_for(asked, amount, Calendar::Day, now) else {
                prop_assert!(asked > amount);
                return Ok(());
            };
            let left = |at: UnixMillis| {
                i128::from(amount.0) - i128::from(window.rolled_to(Calendar::Day.index_of(at), amount).used.0)
            };
            prop_assert!(left(now.after(wait)) >= i128::from(asked.0));
            if wait.0 > 0 {
                prop_assert!(left(now.after(Wait(wait.0 - 1))) < i128::from(asked.0));
            }
            let full = window.wait_until_full(amount, Calendar::Day, now).unwrap();
            prop_assert_eq!(left(now.after(full)), i128::from(amount.0));
        }
    }
}
