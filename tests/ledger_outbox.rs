//! Whatever dies or is lost on the way, and however often an alarm comes: in the end the ledger has what was charged.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use support::ledger::MemoryLedger;
use tollgate::ledger::{DayCaps, Gate};
use tollgate::limit::NanoUsd;
use tollgate::limit::account::{Account, AlarmStep, GRACE, HoldId};
use tollgate::limit::outbox::Booking;
use tollgate::limit::protocol::{Command, Reply, account_of, record_of};
use tollgate::limit::{Charge, Cost, Estimate, Tokens};
use tollgate::time::{UnixMillis, UtcDay, Wait};

mod support {
    #[expect(dead_code, reason = "what the contract needs of it")]
    pub(crate) mod ledger;
}

/// 2031-03-05T23:50:00Z: midnight is near.
const START: u64 = 1_930_521_000_000;
const HOLD: Wait = Wait::seconds(120);
const POST_AFTER: Wait = Wait::seconds(10);

/// What becomes of a batch.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Taken,
    AcknowledgementLost,
    NotTaken,
    DiedBeforeSending,
}

/// What the day's gate has to do with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NotAsked,
    Counted,
    /// It could not be asked, and the policy lets the call pass all the same.
    Unchecked,
}

#[derive(Clone, Debug)]
enum Step {
    Reserve { kind: Kind, key: u8, estimate: u64 },
    Settle { which: usize, cost: u64 },
    Release { which: usize },
    Keep { which: usize, hold: u64 },
    Pass(u64),
    Alarm(Fate),
    Die,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kinds = [Kind::NotAsked, Kind::Counted, Kind::Unchecked];
    let fates = [Fate::Taken, Fate::AcknowledgementLost, Fate::NotTaken, Fate::DiedBeforeSending];
    let step = prop_oneof![
        4 => (0..kinds.len(), 0..3_u8, 0..1_000_u64)
            .prop_map(move |(kind, key, estimate)| Step::Reserve { kind: kinds[kind], key, estimate }),
        4 => (any::<usize>(), 0..2_000_u64).prop_map(|(which, cost)| Step::Settle { which, cost }),
        1 => any::<usize>().prop_map(|which| Step::Release { which }),
        2 => (any::<usize>(), 0..4_000_000_u64).prop_map(|(which, hold)| Step::Keep { which, hold }),
        3 => prop_oneof![0..20_000_u64, 0..400_000_u64].prop_map(Step::Pass),
        3 => (0..fates.len()).prop_map(move |at| Step::Alarm(fates[at])),
        1 => Just(Step::Die),
    ];
    proptest::collection::vec(step, 1..80)
}

fn cost(usd: u64) -> Cost {
    Cost { requests: 1, input: Tokens(usd / 3), output: Tokens(usd / 2), usd: NanoUsd(usd) }
}

/// A call as a bookkeeper sees it.
struct Call {
    id: HoldId,
    at: (u64, String),
    kind: Kind,
    /// Whether it was kept: whoever ends it then does not know what its kind is.
    kept: bool,
    expires_at: UnixMillis,
    /// What it is charged in the end: its estimate, unless it is settled or released in time.
    charged: u64,
    ended: bool,
}

impl Call {
    /// Whether the object knows how many calls the gate has counted: nobody tells it that a call was not counted, if
    /// nobody is left to settle it.
    fn is_told(&self) -> bool {
        self.kind != Kind::Unchecked || self.ended || self.kept
    }
}

struct World {
    now: UnixMillis,
    record: Option<String>,
    ledger: MemoryLedger,
    calls: Vec<Call>,
}

impl World {
    fn account(&self) -> Account {
        account_of(self.record.as_deref()).unwrap()
    }

    fn command(&mut self, command: &Command) -> Reply {
        let (reply, next) = command.execute(&self.account(), self.now, |_| Some(Cow::Owned(Vec::new()))).unwrap();
        if let Some(mut next) = next {
            let _ = next.arm();
            self.record = Some(record_of(&next));
        }
        reply
    }

    fn reserve(&mut self, kind: Kind, key: u8, usd: u64) {
        let (day, key, plan) = (UtcDay::of(self.now), format!("visitor:a~{key}"), "p".to_owned());
        let (id, at) = (HoldId(self.calls.len().to_string()), (day.0, key.clone()));
        let gated = kind != Kind::NotAsked;
        let booking =
            Some(Booking { day, key: key.clone(), plan: plan.clone(), gated, for_site: gated, post_after: POST_AFTER });
        let estimate = Estimate(cost(usd));
        self.command(&Command::Reserve { id: id.clone(), plan: plan.clone(), estimate, hold: HOLD, booking });
        if kind == Kind::Counted {
            let (own, site) = (DayCaps::default(), DayCaps::default());
            let estimate = NanoUsd(usd);
            self.ledger.count(&Gate { day, key, plan, estimate, own, site, counts_for_site: true });
        }
        let expires_at = self.now.after(HOLD);
        self.calls.push(Call { id, at, kind, kept: false, expires_at, charged: usd, ended: false });
    }

    /// An open call, or one that can still be corrected.
    fn chosen(&self, which: usize) -> Option<usize> {
        let known = |call: &Call| !call.ended && call.expires_at.after(GRACE) > self.now;
        let open: Vec<usize> = (0..self.calls.len()).filter(|at| known(&self.calls[*at])).collect();
        (!open.is_empty()).then(|| open[which % open.len()])
    }

    fn settle(&mut self, which: usize, usd: u64) {
        let Some(at) = self.chosen(which) else { return };
        let charge = Charge::Exact(cost(usd));
        let counted = self.calls[at].kind != Kind::Unchecked || self.calls[at].kept;
        self.command(&Command::Settle { id: self.calls[at].id.clone(), charge, counted });
        (self.calls[at].charged, self.calls[at].ended) = (usd, true);
    }

    /// A call that cost nothing, in time: its count is given back.
    fn release(&mut self, which: usize) {
        let Some(at) = self.chosen(which).filter(|at| self.calls[*at].expires_at > self.now) else { return };
        let give_back = self.calls[at].kind != Kind::Unchecked || self.calls[at].kept;
        self.command(&Command::Release { id: self.calls[at].id.clone(), give_back });
        // As if it had never been.
        let call = &mut self.calls[at];
        (call.charged, call.ended, call.at) = (0, true, (0, String::new()));
    }

    /// A call that goes on in the background; the answer is lost, so it is asked for again.
    fn keep(&mut self, which: usize, hold: u64) {
        let open = self.chosen(which).filter(|at| self.calls[*at].expires_at > self.now && !self.calls[*at].kept);
        let Some(at) = open else { return };
        let (id, as_id) = (self.calls[at].id.clone(), HoldId(format!("resp_{at}")));
        let counted = self.calls[at].kind != Kind::Unchecked;
        let keep = Command::Keep { id, as_id: as_id.clone(), note: String::new(), hold: Wait(hold), counted };
        for _ in 0..2 {
            assert_eq!(self.command(&keep), Reply::Done { known: true });
        }
        let call = &mut self.calls[at];
        (call.id, call.kept, call.expires_at) = (as_id, true, self.now.after(Wait(hold)));
    }

    /// The object's alarm, as the platform's class runs it; whether it deleted everything.
    fn alarm(&mut self, fate: Fate) -> bool {
        let mut taken = None;
        loop {
            let account = self.account();
            let account = taken.map_or_else(|| account.clone(), |number| account.posted(number));
            match account.alarm(self.now) {
                AlarmStep::Delete => {
                    self.record = None;
                    return true;
                }
                AlarmStep::Rearm { next, .. } => {
                    self.record = Some(record_of(&next));
                    return false;
                }
                AlarmStep::Post { batch, next, .. } => {
                    self.record = Some(record_of(&next));
                    if matches!(fate, Fate::Taken | Fate::AcknowledgementLost) {
                        self.ledger.post(&batch);
                    }
                    if !matches!(fate, Fate::Taken) {
                        return false;
                    }
                    taken = Some(batch.number);
                }
            }
        }
    }

    /// Calls, settled calls, charged money and money against the caps, by row.
    fn expected(&self) -> BTreeMap<(u64, String), [u64; 4]> {
        let mut rows = BTreeMap::new();
        for call in self.calls.iter().filter(|call| !call.at.1.is_empty()) {
            let row: &mut [u64; 4] = rows.entry(call.at.clone()).or_default();
            let counted = u64::from(call.is_told());
            for (column, more) in row.iter_mut().zip([counted, 1, call.charged, counted * call.charged]) {
                *column += more;
            }
        }
        rows
    }

    fn told(&self) -> BTreeMap<(u64, String), [u64; 4]> {
        let rows = self.ledger.rows.iter().filter(|((_, key), row)| key != "*" && (row.calls, row.settled) != (0, 0));
        let whole = |amount: i64| u64::try_from(amount).unwrap();
        rows.map(|(at, row)| (at.clone(), [row.calls, row.settled, row.usd, row.counted].map(whole))).collect()
    }
}

proptest! {
    #[test]
    fn the_ledger_has_what_was_charged_whatever_is_lost_on_the_way(steps in steps()) {
        let mut world =
            World { now: UnixMillis(START), record: None, ledger: MemoryLedger::default(), calls: Vec::new() };
        for step in steps {
            match step {
                Step::Reserve { kind, key, estimate } => world.reserve(kind, key, estimate),
                Step::Settle { which, cost } => world.settle(which, cost),
                Step::Release { which } => world.release(which),
                Step::Keep { which, hold } => world.keep(which, hold),
                Step::Pass(ms) => world.now = world.now.after(Wait(ms)),
                Step::Alarm(fate) => {
                    world.alarm(fate);
                }
                // What is in memory only is lost; here nothing is.
                Step::Die => world.record = world.record.clone().map(|record| record_of(&account_of(Some(&record)).unwrap())),
            }
        }
        let mut rings = 0;
        while !world.alarm(Fate::Taken) {
            world.now = world.now.after(Wait::seconds(3_600));
            rings += 1;
            assert!(rings < 10, "the account is never forgotten");
        }
        prop_assert_eq!(world.told(), world.expected());
        let site: Vec<_> = world.ledger.rows.iter().filter(|((_, key), _)| key == "*").map(|(_, row)| row).collect();
        let told = |call: &&Call| call.kind != Kind::NotAsked && call.is_told();
        let gated = world.calls.iter().filter(told).filter(|call| !call.at.1.is_empty());
        let charged: u64 = gated.clone().map(|call| call.charged).sum();
        prop_assert_eq!(site.iter().map(|row| row.calls).sum::<i64>(), i64::try_from(gated.count()).unwrap());
        prop_assert_eq!(site.iter().map(|row| row.counted).sum::<i64>(), i64::try_from(charged).unwrap());
    }
}
