//! Random commands under random plans, answered by the account as a naive model of it answers them.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq, proptest};
use support::reference::Reference;
use support::reference::kept::note;
use support::steps::{Step, changing_plan, config, plan, start, steps};
use tollgate::limit::account::{Account, AlarmStep, Denial, HoldId, Outcome, Snapshot, Verdict};
use tollgate::limit::protocol::{account_of, record_of};
use tollgate::limit::{Charge, Cost, Estimate, Limit, Unit};
use tollgate::time::{UnixMillis, Wait};

mod support {
    pub(crate) mod reference;
    pub(crate) mod steps;
}

type Checked<T = ()> = Result<T, TestCaseError>;

/// An account and the model of it, side by side.
struct Pair {
    account: Account,
    reference: Reference,
    now: u64,
    variants: Vec<Vec<Limit>>,
    variant: usize,
    /// Whether the account has written down the policy as it is.
    learned: bool,
}

impl Pair {
    fn new(variants: Vec<Vec<Limit>>, now: u64) -> Self {
        let (account, reference) = (Account::default(), Reference::default());
        Self { account, reference, now, variants, variant: 0, learned: true }
    }

    fn now(&self) -> UnixMillis {
        UnixMillis(self.now)
    }

    fn take(&mut self, step: &Step) -> Checked {
        match step {
            Step::Pass(ms) => self.now += ms,
            Step::Back(ms) => self.now -= ms,
            Step::Reserve { id, cost, hold } => self.reserve(id, cost, *hold)?,
            Step::Settle { id, cost, exact } => self.settle(id, cost, *exact)?,
            Step::Release { id } => {
                let id_ = HoldId(id.clone());
                let want = self.reference.release(self.now, id);
                self.ends(want, |account, now| account.release(now, &id_, false))?;
            }
            Step::Extend { id, hold } => {
                let id_ = HoldId(id.clone());
                let want = self.reference.extend(self.now, id, *hold);
                self.ends(want, |account, now| account.extend(now, &id_, Wait(*hold)))?;
            }
            Step::Keep { id, as_id, hold } => {
                let (id_, as_id_) = (HoldId(id.clone()), HoldId(as_id.clone()));
                let want = self.reference.keep(self.now, id, as_id, *hold);
                self.ends(want, |account, now| account.keep(now, &id_, (&as_id_, &note(id)), Wait(*hold)))?;
                let again = self.account.keep(self.now(), &id_, (&as_id_, &note(id)), Wait(*hold));
                prop_assert_eq!(again.answer, want.0, "a repeated keep is answered as the first was");
            }
            Step::Find { id } => {
                let got = self.account.find(self.now(), &HoldId(id.clone()));
                prop_assert_eq!(got, self.reference.find(self.now, id));
            }
            Step::Alarm => self.alarm(),
            Step::Policy(variant) => (self.variant, self.learned) = (*variant, false),
        }
        self.same_balances()
    }

    fn reserve(&mut self, id: &str, cost: &Cost, hold: u64) -> Checked {
        let limits = self.variants[self.variant].clone();
        let call = (Estimate(*cost), Wait(hold));
        let id_ = HoldId(id.to_owned());
        let lacks_slot = self.reference.lacks_slot(self.now, &limits);
        let (want, wrote) = self.reference.reserve(self.now, id, &limits, (cost, hold));
        let got = self.account.reserve(self.now(), &id_, &limits, call);
        prop_assert_eq!(&got.answer, &want);
        if let (Verdict::Wait(Denial { wait, .. }), true, false) = (&want, self.learned, lacks_slot) {
            self.waits_exactly(&id_, &limits, call, *wait)?;
        }
        prop_assert!(got.next.is_some() == wrote || !self.learned, "a refusal writes nothing: {:?}", got);
        if !wrote && got.next.is_some() {
            self.reference.learn(self.now, &limits);
            self.reference.touch(self.now);
        }
        self.learned |= got.next.is_some();
        self.write(got.next)?;
        let again = self.account.reserve(self.now(), &id_, &limits, call);
        prop_assert_eq!(&again, &Outcome { answer: want, next: None }, "a repeated reservation changes nothing");
        Ok(())
    }

    /// Refused one millisecond before, admitted at it, as of the same account.
    fn waits_exactly(&self, id: &HoldId, limits: &[Limit], call: (Estimate, Wait), wait: Wait) -> Checked {
        let at = |wait: u64| self.account.reserve(UnixMillis(self.now + wait), id, limits, call).answer;
        let (before, then) = (at(wait.0 - 1), at(wait.0));
        prop_assert!(matches!(before, Verdict::Wait(Denial { wait: Wait(1), .. })), "too early: {:?}", before);
        prop_assert!(matches!(then, Verdict::Reserved { .. }), "not at the promised moment: {:?}", then);
        Ok(())
    }

    fn settle(&mut self, id: &str, cost: &Cost, exact: bool) -> Checked {
        let charge = if exact { Charge::Exact(*cost) } else { Charge::AtLeast(*cost) };
        let id_ = HoldId(id.to_owned());
        let want = self.reference.settle(self.now, id, cost);
        self.ends(want, |account, now| account.settle(now, &id_, &charge, true))
    }

    /// A command that ends, extends or keeps a hold does what the model does, and a second time nothing.
    fn ends(
        &mut self,
        (want, wrote): (bool, bool),
        command: impl Fn(&Account, UnixMillis) -> Outcome<bool>,
    ) -> Checked {
        let got = command(&self.account, self.now());
        prop_assert_eq!((got.answer, got.next.is_some()), (want, wrote));
        self.write(got.next)?;
        let again = command(&self.account, self.now());
        prop_assert_eq!(again.next, None, "a repeated command changes nothing");
        Ok(())
    }

    /// Stores the account as the object does: as text, which has to come back the same.
    fn write(&mut self, next: Option<Account>) -> Checked {
        let Some(mut next) = next else { return Ok(()) };
        next.arm();
        self.account = account_of(Some(&record_of(&next))).unwrap();
        prop_assert_eq!(&self.account, &next, "the record comes back as it was written");
        Ok(())
    }

    /// An alarm changes nothing that can be seen, whether it deletes everything or only looks.
    fn alarm(&mut self) {
        match self.account.alarm(self.now()) {
            AlarmStep::Rearm { next, .. } | AlarmStep::Post { next, .. } => self.account = next,
            AlarmStep::Delete => {
                // The clock may go back by more than an account rests, which no platform's does: then it forgets.
                (self.account, self.reference) = (Account::default(), Reference::default());
            }
        }
    }

    fn same_balances(&self) -> Checked {
        let limits = &self.variants[self.variant];
        let got = self.account.snapshot(self.now(), limits);
        let (want, open) = self.reference.look(self.now, limits);
        prop_assert_eq!((left(&got), got.open_holds), (want, open));
        Ok(())
    }
}

fn left(snapshot: &Snapshot) -> Vec<i64> {
    snapshot.balances.iter().map(tollgate::limit::balance::Balance::left).collect()
}

/// What happened to one limit: what was held, or given back, or added, and whether it was an admission.
#[derive(Clone, Copy, Debug)]
struct Move {
    at: u64,
    amount: i128,
    admission: bool,
}

/// Between any moment and any later admission, no bucket gave more than its burst and its refill; what was overdrawn is
/// among what was given, so it is paid before anything is admitted.
fn never_over(limit: &Limit, moves: &[Move]) -> Checked {
    use tollgate::limit::Shape::Bucket;
    let Bucket { burst, refill, per } = limit.shape else { return Ok(()) };
    for (last, admission) in moves.iter().enumerate().filter(|(_, move_)| move_.admission && move_.amount > 0) {
        let mut given = 0;
        for move_ in moves[..=last].iter().rev() {
            given += move_.amount;
            let passed = i128::from(admission.at - move_.at);
            let regained = passed * i128::from(refill.0) * i128::from(per.per_day()) / 86_400_000;
            prop_assert!(given <= i128::from(burst.0) + regained, "{:?} gave {} in {} ms", limit, given, passed);
        }
    }
    Ok(())
}

/// All that an account did to its limits, by its own answers alone.
fn moves_of(limits: &[Limit], steps: &[Step], start: u64) -> Vec<Vec<Move>> {
    let (mut account, mut now, mut moves) = (Account::default(), start, vec![Vec::new(); limits.len()]);
    let mut held = std::collections::BTreeMap::<String, Cost>::new();
    for step in steps {
        let id = |id: &String| HoldId(id.clone());
        let (before, after, admission, next) = match step {
            Step::Pass(ms) => {
                now += ms;
                continue;
            }
            Step::Reserve { id: name, cost, hold } => {
                let call = (Estimate(*cost), Wait(*hold));
                let next = account.reserve(UnixMillis(now), &id(name), limits, call).next;
                if next.is_some() {
                    held.insert(name.clone(), *cost);
                }
                (Cost::default(), *cost, true, next)
            }
            Step::Settle { id: name, cost, .. } => {
                let next = account.settle(UnixMillis(now), &id(name), &Charge::Exact(*cost), true).next;
                (held.get(name).copied().unwrap_or_default(), *cost, false, next)
            }
            Step::Release { id: name } => {
                let done = account.release(UnixMillis(now), &id(name), false);
                let before = if done.answer { held[name] } else { Cost::default() };
                (before, Cost::default(), false, done.next)
            }
            Step::Keep { id: name, as_id, hold } => {
                let next = account.keep(UnixMillis(now), &id(name), (&id(as_id), ""), Wait(*hold)).next;
                if next.is_some() {
                    held.insert(as_id.clone(), held[name]);
                }
                (Cost::default(), Cost::default(), false, next)
            }
            _ => continue,
        };
        let Some(next) = next else { continue };
        account = next;
        for (limit, moves) in limits.iter().zip(&mut moves) {
            let amount = |cost: &Cost| i128::from(cost.of(limit.unit).0);
            moves.push(Move { at: now, amount: amount(&after) - amount(&before), admission });
        }
    }
    moves
}

proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn every_answer_is_the_one_that_a_naive_model_gives(
        variants in changing_plan(4), steps in steps(true), start in start(),
    ) {
        let mut pair = Pair::new(variants, start);
        for step in &steps {
            pair.take(step)?;
        }
    }

    #[test]
    fn no_bucket_ever_gives_more_than_its_burst_and_its_refill(
        limits in plan(3), steps in steps(false), start in start(),
    ) {
        let moves = moves_of(&limits, &steps, start);
        for (limit, moves) in limits.iter().zip(&moves).filter(|(limit, _)| limit.unit != Unit::Concurrency) {
            never_over(limit, moves)?;
        }
    }
}
