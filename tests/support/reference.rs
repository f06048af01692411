//! What an account has to answer, told again from its history at every question.
//!
//! Deliberately naive: nothing is kept but what happened and when. A bucket is leaked anew from its first event, a
//! window's debt added up from its first day, and a wait found by trying. Nothing of it is taken from `src/limit`.

pub(crate) mod kept;

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike as _};
use tollgate::limit::account::{Denial, ENDED_KEPT, Verdict};
use tollgate::limit::{Amount, Cost, Limit, Shape, Unit};
use tollgate::time::{Calendar, UnixMillis, Wait};

/// Spent amounts of buckets are counted in this part of a unit: what a rate of one a day regains in a millisecond.
const DAY: i128 = 86_400_000;

#[derive(Clone, Debug)]
enum Event {
    /// The limit was this from then on.
    Rule(Limit),
    /// This much more was spent, by a call made at `made_at`; less if negative.
    Spent { amount: i128, made_at: u64 },
}

#[derive(Clone, Debug)]
struct Hold {
    made_at: u64,
    expires_at: u64,
    parts: Vec<(String, u64)>,
    /// The limits of which it has a slot.
    slots: Vec<String>,
    /// The id that it had before it was kept.
    kept_from: Option<String>,
}

/// An answer, and whether something had to be written.
pub(crate) type Answered<T> = (T, bool);

/// A subject, by its history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    /// The latest moment acted upon.
    at: u64,
    history: BTreeMap<String, Vec<(u64, Event)>>,
    holds: BTreeMap<String, Hold>,
    /// Until when the ids of ended calls are remembered.
    ended: BTreeMap<String, u64>,
    /// When kept holds have ended, and as what they were made.
    kept: BTreeMap<String, (u64, String)>,
}

impl Reference {
    pub(crate) fn reserve(
        &mut self,
        now: u64,
        id: &str,
        limits: &[Limit],
        (cost, hold): (&Cost, u64),
    ) -> Answered<Verdict> {
        let at = now.max(self.at);
        if self.remembers(id, at) {
            return (Verdict::Ended, false);
        }
        if let Some(hold) = self.hold(id, at) {
            let open = Verdict::Reserved { expires_at: UnixMillis(hold.expires_at) };
            return (if hold.expires_at > at { open } else { Verdict::Ended }, false);
        }
        let mut next = self.clone();
        next.learn(at, limits);
        if let Some(refusal) = next.refusal(now, limits, cost) {
            return (refusal, false);
        }
        *self = next;
        self.at = at;
        let counted = limits.iter().filter(|limit| limit.unit != Unit::Concurrency);
        let parts: Vec<_> = counted.map(|limit| (limit.name.clone(), cost.of(limit.unit).0)).collect();
        for (name, amount) in &parts {
            self.spend(name, at, i128::from(*amount), at);
        }
        let expires_at = at + hold;
        let slots = slots_of(limits).map(|limit| limit.name.clone()).collect();
        self.holds.insert(id.to_owned(), Hold { made_at: at, expires_at, parts, slots, kept_from: None });
        (Verdict::Reserved { expires_at: UnixMillis(expires_at) }, true)
    }

    pub(crate) fn settle(&mut self, now: u64, id: &str, actual: &Cost) -> Answered<bool> {
        let at = now.max(self.at);
        let Some(hold) = self.end(id, at) else { return (false, false) };
        for (name, held) in &hold.parts {
            let unit = self.rule(name, at).map(|limit| limit.unit);
            let actual = unit.map_or(0, |unit| actual.of(unit).0);
            let difference = i128::from(actual) - i128::from(*held);
            self.spend(name, at, difference, if difference < 0 { hold.made_at } else { at });
        }
        (true, true)
    }

    pub(crate) fn release(&mut self, now: u64, id: &str) -> Answered<bool> {
        let at = now.max(self.at);
        if let Some(hold) = self.end(id, at) {
            for (name, held) in &hold.parts {
                self.spend(name, at, -i128::from(*held), hold.made_at);
            }
            return (true, true);
        }
        if self.remembers(id, at) {
            return (false, false);
        }
        self.at = at;
        self.ended.insert(id.to_owned(), at + ENDED_KEPT.0);
        (false, true)
    }

    pub(crate) fn extend(&mut self, now: u64, id: &str, hold: u64) -> Answered<bool> {
        let at = now.max(self.at);
        match self.hold(id, at).map(|hold| hold.expires_at) {
            Some(expires_at) if expires_at > at && expires_at >= at + hold => (true, false),
            Some(expires_at) if expires_at > at => {
                self.at = at;
                self.holds.get_mut(id).unwrap().expires_at = at + hold;
                (true, true)
            }
            _ => (false, false),
        }
    }

    /// What is left of each limit, and the number of open holds.
    pub(crate) fn look(&self, now: u64, limits: &[Limit]) -> (Vec<i64>, u64) {
        let at = now.max(self.at);
        let mut view = self.clone();
        view.learn(at, limits);
        (limits.iter().map(|limit| view.left(limit, at)).collect(), view.open_holds(at))
    }

    /// Acts upon `now` without doing anything else.
    pub(crate) fn touch(&mut self, now: u64) {
        self.at = now.max(self.at);
    }

    /// Takes note of the policy.
    pub(crate) fn learn(&mut self, now: u64, limits: &[Limit]) {
        let at = now.max(self.at);
        for limit in limits {
            if self.rule(&limit.name, at) != Some(limit) {
                self.history.entry(limit.name.clone()).or_default().push((at, Event::Rule(limit.clone())));
            }
        }
    }

    /// Whether a refusal at `now` has to do with slots, whose moment nobody knows.
    pub(crate) fn lacks_slot(&self, now: u64, limits: &[Limit]) -> bool {
        let at = now.max(self.at);
        slots_of(limits).any(|limit| self.taken(&limit.name, at) >= limit.shape.capacity().0)
    }

    fn refusal(&self, now: u64, limits: &[Limit], cost: &Cost) -> Option<Verdict> {
        let at = now.max(self.at);
        let denial = |limit: &Limit, wait: u64| Denial {
            limit: limit.clone(),
            asked: asked(limit, cost),
            left: self.left(limit, at),
            wait: Wait(wait),
            firm: self.holds.keys().all(|id| self.hold(id, at).is_none()),
        };
        if let Some(limit) = limits.iter().find(|limit| never_fits(limit, asked(limit, cost))) {
            return Some(Verdict::NeverFits(denial(limit, 0)));
        }
        let mut longest = None::<(u64, &Limit)>;
        for limit in limits {
            let wait = self.wait(limit, asked(limit, cost), at);
            if wait > 0 && longest.is_none_or(|(longest, _)| wait > longest) {
                longest = Some((wait, limit));
            }
        }
        longest.map(|(wait, limit)| Verdict::Wait(denial(limit, wait + (at - now))))
    }

    /// The first millisecond from `at` on at which `asked` fits, found by trying.
    fn wait(&self, limit: &Limit, asked: Amount, at: u64) -> u64 {
        if let Shape::Slots { amount } = limit.shape {
            return if self.taken(&limit.name, at) < amount.0 { 0 } else { 1_000 };
        }
        let fits = |wait: u64| {
            let left = self.left(limit, at + wait);
            asked.0 == 0 || i128::from(left) >= i128::from(asked.0)
        };
        if fits(0) {
            return 0;
        }
        let mut ahead = 1;
        while !fits(ahead) {
            ahead *= 2;
        }
        let (mut refused, mut admitted) = (ahead / 2, ahead);
        while admitted - refused > 1 {
            let middle = refused + (admitted - refused) / 2;
            if fits(middle) { admitted = middle } else { refused = middle }
        }
        admitted
    }

    fn left(&self, limit: &Limit, at: u64) -> i64 {
        let spent = match limit.shape {
            Shape::Slots { .. } => i128::from(self.taken(&limit.name, at)),
            Shape::Bucket { .. } => -(-self.bucket_spent(&limit.name, at)).div_euclid(DAY),
            Shape::Window { window, .. } => self.window_used(&limit.name, window, at),
        };
        i64::try_from(i128::from(limit.shape.capacity().0) - spent).unwrap()
    }

    fn bucket_spent(&self, name: &str, until: u64) -> i128 {
        let (mut spent, mut rate, mut last) = (0, 0, 0);
        let end = (until, Event::Spent { amount: 0, made_at: until });
        for (at, event) in self.history[name].iter().chain([&end]) {
            spent = 0.max(spent - i128::from(at - last) * rate);
            last = *at;
            match event {
                Event::Rule(limit) => rate = regained_per_day(limit.shape),
                Event::Spent { amount, .. } => spent = 0.max(spent + amount * DAY),
            }
        }
        spent
    }

    fn window_used(&self, name: &str, calendar: Calendar, until: u64) -> i128 {
        let (mut uses, mut allowed) = (BTreeMap::new(), BTreeMap::new());
        for (at, event) in &self.history[name] {
            match event {
                Event::Rule(limit) => {
                    allowed.insert(index(calendar, *at), i128::from(limit.shape.capacity().0));
                }
                Event::Spent { amount, made_at } => *uses.entry(index(calendar, *made_at)).or_default() += amount,
            }
        }
        let last = index(calendar, until);
        let Some(first) = uses.keys().next() else { return 0 };
        let (mut total, mut amount) = (0, 0);
        for window in *first..=last {
            total = 0.max(total - amount) + uses.get(&window).copied().unwrap_or(0);
            amount = allowed.range(..=window).next_back().map_or(0, |(_, amount)| *amount);
        }
        total
    }

    fn rule(&self, name: &str, at: u64) -> Option<&Limit> {
        self.history.get(name)?.iter().rev().find_map(|(learned, event)| match event {
            Event::Rule(limit) if *learned <= at => Some(limit),
            _ => None,
        })
    }

    fn spend(&mut self, name: &str, at: u64, amount: i128, made_at: u64) {
        self.history.get_mut(name).unwrap().push((at, Event::Spent { amount, made_at }));
    }

    fn taken(&self, limit: &str, at: u64) -> u64 {
        let open = self.holds.values().filter(|hold| at < hold.expires_at);
        open.filter(|hold| hold.slots.iter().any(|slot| slot == limit)).count() as u64
    }

    fn open_holds(&self, at: u64) -> u64 {
        self.holds.values().filter(|hold| at < hold.expires_at).count() as u64
    }
}

fn slots_of(limits: &[Limit]) -> impl Iterator<Item = &Limit> {
    limits.iter().filter(|limit| limit.unit == Unit::Concurrency)
}

fn asked(limit: &Limit, cost: &Cost) -> Amount {
    if limit.unit == Unit::Concurrency { Amount(1) } else { cost.of(limit.unit) }
}

fn never_fits(limit: &Limit, asked: Amount) -> bool {
    asked.0 > limit.shape.capacity().0
}

fn regained_per_day(shape: Shape) -> i128 {
    let Shape::Bucket { refill, per, .. } = shape else { return 0 };
    i128::from(refill.0) * i128::from(per.per_day())
}

fn index(calendar: Calendar, at: u64) -> i64 {
    let date = DateTime::from_timestamp_millis(i64::try_from(at).unwrap()).unwrap();
    match calendar {
        Calendar::Day => date.timestamp().div_euclid(86_400),
        Calendar::Month => i64::from(date.year()) * 12 + i64::from(date.month()),
    }
}
