//! What is spent of one limit.
//!
//! Invariant: a balance carries its limit with it, so refilling, cleaning up and settling need no policy; a limit that
//! the policy has dropped goes on being paid off at its old rate until nothing is left of it.

use serde::{Deserialize, Serialize};

use super::bucket::{Bucket, Quota};
use super::window::Window;
use super::{Amount, Limit, Shape};
use crate::time::{UnixMillis, Wait, WindowIndex};

/// How long a caller without a free slot is told to wait: when another call ends cannot be known.
pub const SLOT_WAIT: Wait = Wait::seconds(1);

/// What is spent, by the shape of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spent {
    /// Of a bucket.
    Bucket(Bucket),
    /// Of a calendar window.
    Window(Window),
    /// Slots that are taken, counted from the open holds whenever the balance is looked at.
    Slots(Amount),
}

/// Whether an amount fits a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Now.
    Now,
    /// After this time, not a millisecond earlier.
    After(Wait),
    /// Not with this limit.
    Never,
}

/// One limit and what is spent of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// The rule.
    pub limit: Limit,
    /// What is spent.
    pub spent: Spent,
}

impl Balance {
    /// The balance of a subject that never called.
    #[must_use]
    pub fn fresh(limit: &Limit, at: UnixMillis) -> Self {
        Self { limit: limit.clone(), spent: spent_of(limit.shape, Amount(0), at) }
    }

    /// Whether a fresh balance would answer every question the same.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.outstanding() == Amount(0)
    }

    /// The same balance under the rule as the policy has it now. What is owed stays owed; only a change of unit, after
    /// which the number would mean something else, starts anew.
    #[must_use]
    pub fn under(&self, limit: &Limit, at: UnixMillis) -> Self {
        if self.limit == *limit {
            return self.clone();
        }
        if self.limit.unit != limit.unit {
            return Self::fresh(limit, at);
        }
        let spent = match (self.spent, limit.shape) {
            (Spent::Bucket(_), Shape::Bucket { .. }) => self.spent,
            (Spent::Window(spent), Shape::Window { window, .. }) if window_of(self.limit.shape) == Some(window) => {
                Spent::Window(spent)
            }
            _ => spent_of(limit.shape, self.outstanding(), at),
        };
        Self { limit: limit.clone(), spent }
    }

    /// The balance at `to`, having been as it is at `from`.
    pub fn advance(&mut self, from: UnixMillis, to: UnixMillis) {
        self.spent = match (self.spent, self.limit.shape) {
            (Spent::Bucket(bucket), Shape::Bucket { burst, refill, per }) => {
                Spent::Bucket(bucket.after(to.since(from), Quota::new(burst, refill, per)))
            }
            (Spent::Window(spent), Shape::Window { amount, window }) => {
                Spent::Window(spent.rolled_to(window.index_of(to), amount))
            }
            (spent, _) => spent,
        };
    }

    /// Spends `amount`, into debt if need be.
    pub fn take(&mut self, amount: Amount) {
        self.spent = match self.spent {
            Spent::Bucket(bucket) => Spent::Bucket(bucket.take(amount)),
            Spent::Window(window) => Spent::Window(window.take(amount)),
            Spent::Slots(taken) => Spent::Slots(taken),
        };
    }

    /// Gives back what a hold made at `made_at` did not need.
    pub fn give_back(&mut self, amount: Amount, made_at: UnixMillis) {
        self.spent = match self.spent {
            Spent::Bucket(bucket) => Spent::Bucket(bucket.give_back(amount)),
            Spent::Window(window) => {
                let made_in = window_of(self.limit.shape).map_or(WindowIndex(0), |calendar| calendar.index_of(made_at));
                Spent::Window(window.give_back(amount, made_in))
            }
            Spent::Slots(taken) => Spent::Slots(taken),
        };
    }

    /// When `asked` fits, as of `at`. An amount of zero fits always: a call that costs nothing is not stopped by an empty
    /// balance.
    #[must_use]
    pub fn fit(&self, asked: Amount, at: UnixMillis) -> Fit {
        let wait = match (self.spent, self.limit.shape) {
            (Spent::Slots(_), Shape::Slots { amount: Amount(0) }) => None,
            (Spent::Slots(taken), Shape::Slots { amount }) => {
                Some(if taken < amount { Wait::default() } else { SLOT_WAIT })
            }
            _ if asked == Amount(0) => Some(Wait::default()),
            (Spent::Bucket(bucket), Shape::Bucket { burst, refill, per }) => {
                bucket.wait_for(asked, Quota::new(burst, refill, per))
            }
            (Spent::Window(spent), Shape::Window { amount, window }) => spent.wait_for(asked, amount, window, at),
            // `spent_of` keeps shape and balance together; a record that does not is refused, not admitted.
            _ => None,
        };
        match wait {
            None => Fit::Never,
            Some(Wait(0)) => Fit::Now,
            Some(wait) => Fit::After(wait),
        }
    }

    /// What is left; negative in debt.
    #[must_use]
    pub fn left(&self) -> i64 {
        let spent = match self.spent {
            Spent::Slots(taken) => taken.0,
            _ => self.outstanding().0,
        };
        let left = i128::from(self.limit.shape.capacity().0) - i128::from(spent);
        i64::try_from(left).unwrap_or(if left < 0 { i64::MIN } else { i64::MAX })
    }

    /// After what time, as of `at`, nothing is spent any more if nobody spends; `None` if that never is.
    #[must_use]
    pub fn wait_until_full(&self, at: UnixMillis) -> Option<Wait> {
        match (self.spent, self.limit.shape) {
            (Spent::Bucket(bucket), Shape::Bucket { burst, refill, per }) => {
                Some(bucket.wait_until_full(Quota::new(burst, refill, per)))
            }
            (Spent::Window(spent), Shape::Window { amount, window }) => spent.wait_until_full(amount, window, at),
            _ => Some(Wait::default()),
        }
    }

    fn outstanding(&self) -> Amount {
        match self.spent {
            Spent::Bucket(bucket) => bucket.spent,
            Spent::Window(window) => window.used,
            Spent::Slots(_) => Amount(0),
        }
    }
}

fn window_of(shape: Shape) -> Option<crate::time::Calendar> {
    match shape {
        Shape::Window { window, .. } => Some(window),
        Shape::Bucket { .. } | Shape::Slots { .. } => None,
    }
}

fn spent_of(shape: Shape, spent: Amount, at: UnixMillis) -> Spent {
    match shape {
        Shape::Bucket { .. } => Spent::Bucket(Bucket { spent, carry: 0 }),
        Shape::Window { window, .. } => {
            // All of it was spent before this count began, so a hold from before can still give it back.
            Spent::Window(Window { index: window.index_of(at), used: spent, owed: spent })
        }
        Shape::Slots { .. } => Spent::Slots(Amount(0)),
    }
}
