//! Deciding on a call under the limits as the policy has them now.

use super::{Account, Denial, Reservation, Verdict};
use crate::limit::balance::{Balance, Fit, Spent};
use crate::limit::{Amount, Cost, Limit, Unit};
use crate::time::{UnixMillis, Wait};

impl Account {
    /// Takes over the limits as the policy has them now; whether that changed a balance of which something is spent.
    pub(super) fn apply(&mut self, limits: &[Limit]) -> bool {
        let (at, mut changed) = (self.at, false);
        for limit in limits {
            let Some(balance) = self.balance_mut(&limit.name) else {
                self.balances.push(Balance::fresh(limit, at));
                continue;
            };
            if balance.limit == *limit {
                continue;
            }
            changed |= !balance.is_fresh();
            let same_unit = balance.limit.unit == limit.unit;
            *balance = balance.under(limit, at);
            if !same_unit {
                // What was held of it is gone with it: it must not be given back, or paid for, in another unit.
                for hold in &mut self.holds {
                    hold.held.retain(|part| part.limit != limit.name);
                }
            }
        }
        self.count_slots();
        changed
    }

    /// Counts the slots that are taken: of each limit, the open holds that hold one of it.
    pub(super) fn count_slots(&mut self) {
        let at = self.at;
        let open: Vec<&Reservation> = self.holds.iter().filter(|hold| hold.expires_at > at).collect();
        for balance in self.balances.iter_mut().filter(|balance| balance.limit.unit == Unit::Concurrency) {
            let holds = |hold: &&&Reservation| hold.held.iter().any(|part| part.limit == balance.limit.name);
            balance.spent = Spent::Slots(Amount(open.iter().filter(holds).count() as u64));
        }
    }

    /// The refusal of the limit that keeps the call longest, if any does.
    pub(super) fn refusal(&self, now: UnixMillis, limits: &[Limit], cost: &Cost) -> Option<Verdict> {
        let mut longest = None::<Denial>;
        for balance in limits.iter().filter_map(|limit| self.balance(&limit.name)) {
            let asked = asked_of(&balance.limit, cost);
            let denial = |wait| Denial {
                limit: balance.limit.clone(),
                asked,
                left: balance.left(),
                wait,
                firm: self.holds.is_empty(),
            };
            match balance.fit(asked, self.at) {
                Fit::Now => {}
                Fit::Never => return Some(Verdict::NeverFits(denial(Wait::default()))),
                Fit::After(wait) => {
                    let wait = Wait(wait.0.saturating_add(self.at.since(now).0));
                    if longest.as_ref().is_none_or(|longest| longest.wait < wait) {
                        longest = Some(denial(wait));
                    }
                }
            }
        }
        longest.map(Verdict::Wait)
    }
}

/// What a call asks of a limit: a slot, or the part of its cost that the limit counts.
pub(super) fn asked_of(limit: &Limit, cost: &Cost) -> Amount {
    if limit.unit == Unit::Concurrency { Amount(1) } else { cost.of(limit.unit) }
}
