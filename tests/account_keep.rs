//! Holds that outlive their request: kept under the provider's id, found by it, and ended once.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that cannot go on has failed")]

use std::borrow::Cow;

use tollgate::limit::account::{Account, AlarmStep, FoundState, GRACE, HoldId, REST, Verdict};
use tollgate::limit::account::{ENDED_MAX, KEPT_ID_MAX, KEPT_KNOWN, KEPT_KNOWN_MAX, KEPT_MAX, NOTE_MAX};
use tollgate::limit::protocol::{Command, Reply, account_of, record_of};
use tollgate::limit::{Amount, Charge, Cost, Estimate, Limit, Period, Shape, Tokens, Unit};
use tollgate::time::{UnixMillis, Wait};

/// 2031-03-05T12:00:00Z.
const NOON: u64 = 1_930_478_400_000;
const HOUR: u64 = 3_600_000;
/// Of a request; a call in the background gets hours.
const HOLD: u64 = 60_000;

fn id(name: &str) -> HoldId {
    HoldId(name.to_owned())
}

fn tokens(tokens: u64) -> Cost {
    Cost { requests: 1, input: Tokens(tokens), ..Cost::default() }
}

/// 1,000 tokens, of which nothing worth mentioning comes back in a day, and 100 calls at a time.
fn limits() -> Vec<Limit> {
    let shape = Shape::Bucket { burst: Amount(1_000), refill: Amount(1), per: Period::Day };
    let slots = Shape::Slots { amount: Amount(100) };
    vec![
        Limit { name: "tokens".to_owned(), unit: Unit::Tokens, shape },
        Limit { name: "slots".to_owned(), unit: Unit::Concurrency, shape: slots },
    ]
}

/// A subject's object, without its platform: every command comes as a URL, and every answer leaves a record.
#[derive(Clone, Default)]
struct Object(Option<String>);

impl Object {
    fn account(&self) -> Account {
        account_of(self.0.as_deref()).unwrap()
    }

    fn ask(&mut self, at: u64, command: &Command) -> Reply {
        let command = Command::from_url(&format!("https://limiter{}", command.to_path())).unwrap();
        let limits = limits();
        let (reply, next) = command.execute(&self.account(), UnixMillis(at), |_| Some(Cow::Borrowed(&limits))).unwrap();
        if let Some(mut next) = next {
            next.arm();
            self.0 = Some(record_of(&next));
        }
        Reply::from_json(&reply.to_json()).unwrap()
    }

    /// Asks for what must change nothing.
    fn ask_in_vain(&mut self, at: u64, command: &Command) -> bool {
        let before = self.0.clone();
        let reply = self.ask(at, command);
        assert_eq!(self.0, before, "{command:?} has changed something");
        reply == Reply::Done { known: true }
    }

    fn reserve(&mut self, at: u64, name: &str, cost: u64) -> Verdict {
        let (estimate, hold) = (Estimate(tokens(cost)), Wait(HOLD));
        let plan = "plan".to_owned();
        match self.ask(at, &Command::Reserve { id: id(name), plan, estimate, hold, booking: None }) {
            Reply::Reserve { verdict, .. } => verdict,
            other => panic!("{other:?}"),
        }
    }

    fn keep(&mut self, at: u64, (name, as_name): (&str, &str), hold: u64) -> bool {
        self.ask(at, &keep(name, as_name, hold)) == Reply::Done { known: true }
    }

    fn settle(&mut self, at: u64, name: &str, cost: u64) -> bool {
        self.ask(at, &settle(name, cost)) == Reply::Done { known: true }
    }

    /// An object with one call of 100 tokens that was made as `call` and kept as `resp` for two hours.
    fn with_kept() -> Self {
        let mut object = Self::default();
        object.reserve(NOON, "call", 100);
        assert!(object.keep(NOON + 500, ("call", "resp"), 2 * HOUR));
        object
    }

    fn found(&self, at: u64, name: &str) -> Option<FoundState> {
        let mut looked = self.clone();
        let reply = looked.ask(at, &Command::Find { id: id(name) });
        assert_eq!(looked.0, self.0, "looking for it writes nothing");
        let Reply::Found(found) = reply else { panic!("{reply:?}") };
        found.map(|found| {
            assert!(found.note.starts_with("made as"));
            found.state
        })
    }

    /// What is left of the tokens, and how many slots are.
    fn left(&self, at: u64) -> [i64; 2] {
        let snapshot = self.account().snapshot(UnixMillis(at), &limits());
        [snapshot.balances[0].left(), snapshot.balances[1].left()]
    }
}

fn keep(name: &str, as_name: &str, hold: u64) -> Command {
    let note = format!("made as {name}");
    Command::Keep { id: id(name), as_id: id(as_name), note, hold: Wait(hold), counted: true }
}

fn settle(name: &str, cost: u64) -> Command {
    Command::Settle { id: id(name), charge: Charge::Exact(tokens(cost)), counted: true }
}

/// When the hold of `with_kept` ends by itself.
const DEADLINE: u64 = NOON + 500 + 2 * HOUR;

#[test]
fn a_kept_hold_that_nobody_asks_for_is_charged_its_estimate_at_its_deadline() {
    let object = Object::with_kept();
    assert_eq!(object.left(NOON + HOLD + HOUR), [900, 99], "its first deadline ends nothing");
    assert_eq!(object.left(DEADLINE - 1), [900, 99], "it has its slot to the end");
    assert_eq!(object.left(DEADLINE), [900, 100]);
    assert_eq!(object.left(DEADLINE + GRACE.0 + KEPT_KNOWN.0), [900, 100]);
}

#[test]
fn a_kept_hold_is_settled_by_its_new_id_once() {
    let mut object = Object::with_kept();
    assert!(!object.ask_in_vain(NOON + HOUR, &settle("call", 10)), "the old id is no key to it");
    assert!(object.settle(NOON + HOUR, "resp", 30));
    assert_eq!(object.left(NOON + HOUR), [970, 100]);
    assert!(!object.ask_in_vain(NOON + HOUR, &settle("resp", 500)));
    assert!(!object.ask_in_vain(NOON + HOUR + 1, &Command::Release { id: id("resp"), give_back: true }));
}

#[test]
fn a_settlement_that_comes_late_corrects_a_kept_hold_within_the_grace_period() {
    let settled_at = |at| {
        let mut object = Object::with_kept();
        (object.settle(at, "resp", 30), object.left(at)[0])
    };
    assert_eq!(settled_at(DEADLINE), (true, 970));
    assert_eq!(settled_at(DEADLINE + GRACE.0 - 1), (true, 970));
    assert_eq!(settled_at(DEADLINE + GRACE.0), (false, 900));
}

#[test]
fn a_hold_is_found_by_what_it_was_kept_as_and_by_nobody_else() {
    let mut object = Object::with_kept();
    object.reserve(NOON + 500, "plain", 1);
    let seen = |object: &Object, at| object.found(at, "resp");
    assert_eq!([seen(&object, NOON + 500), seen(&object, DEADLINE - 1)], [Some(FoundState::Open); 2]);
    let graced = DEADLINE + GRACE.0;
    assert_eq!([seen(&object, DEADLINE), seen(&object, graced - 1)], [Some(FoundState::Expired); 2]);
    // Charged by its deadline or settled: whoever paid for it can ask for it again.
    assert_eq!([seen(&object, graced), seen(&object, graced + KEPT_KNOWN.0 - 1)], [Some(FoundState::Ended); 2]);
    assert_eq!(seen(&object, graced + KEPT_KNOWN.0), None);
    for ids in ["call", "plain", "other", ""] {
        assert_eq!(object.found(NOON + 600, ids), None, "{ids}");
    }
    assert_eq!(Object::default().found(NOON + 600, "resp"), None, "another's object");
    let mut settled = object.clone();
    settled.settle(NOON + HOUR, "resp", 30);
    let until = NOON + HOUR + KEPT_KNOWN.0;
    assert_eq!([seen(&settled, until - 1), seen(&settled, until)], [Some(FoundState::Ended), None]);
    let texts = [DEADLINE, graced].map(|at| object.ask(at, &Command::Find { id: id("resp") }).to_json());
    assert_eq!(texts[0], r#"{"found":{"state":"expired","note":"made as call"}}"#);
    assert_eq!(texts[1], r#"{"found":{"state":"ended","note":"made as call"}}"#);
}

#[test]
fn what_is_not_open_is_not_kept() {
    let mut object = Object::with_kept();
    object.reserve(NOON + 500, "settled", 100);
    object.settle(NOON + 600, "settled", 10);
    object.reserve(NOON + 600, "late", 100);
    for name in ["unknown", "settled", "resp"] {
        assert!(!object.ask_in_vain(NOON + 700, &keep(name, "new", HOUR)), "{name}");
    }
    assert!(!object.ask_in_vain(NOON + 600 + HOLD, &keep("late", "new", HOUR)), "its deadline has ended it");
    assert!(object.keep(NOON + 600 + HOLD - 1, ("late", "new"), HOUR));
    assert_eq!(object.left(NOON + HOUR)[0], 790);
}

#[test]
fn an_id_that_is_or_was_anothers_is_refused_and_both_holds_stay_as_they_were() {
    let mut object = Object::with_kept();
    object.reserve(NOON + 500, "ended", 100);
    assert!(object.keep(NOON + 500, ("ended", "read"), HOUR) && object.settle(NOON + 600, "read", 50));
    object.reserve(NOON + 600, "done", 10);
    object.settle(NOON + 600, "done", 10);
    object.reserve(NOON + 600, "other", 100);
    object.reserve(NOON + 600, "mine", 100);
    // Kept, made as, ended and kept, ended, open, and its own.
    for taken in ["resp", "call", "read", "done", "other", "mine"] {
        assert!(!object.ask_in_vain(NOON + 700, &keep("mine", taken, HOUR)), "{taken}");
    }
    assert_eq!(object.left(NOON + 700)[0], 640);
    for (name, cost) in [("resp", 1), ("other", 2), ("mine", 3)] {
        assert!(object.settle(NOON + 800, name, cost), "{name}");
    }
    assert_eq!(object.left(NOON + 800), [934, 100]);
}

#[test]
fn a_repeated_keep_changes_nothing_and_the_old_id_holds_nothing_again() {
    let mut object = Object::with_kept();
    for at in [NOON + 501, NOON + HOUR, DEADLINE, DEADLINE + GRACE.0 - 1] {
        let mut object = object.clone();
        assert!(object.ask_in_vain(at, &keep("call", "resp", 5 * HOUR)), "the answer was lost, the hold is kept");
        assert!(!object.ask_in_vain(at, &Command::Release { id: id("call"), give_back: true }));
        assert_eq!((object.reserve(at, "call", 100), object.left(at)[0]), (Verdict::Ended, 900));
    }
    object.settle(NOON + 600, "resp", 30);
    assert!(!object.ask_in_vain(NOON + 700, &keep("call", "resp", HOUR)));
    assert_eq!(object.reserve(NOON + 700, "call", 100), Verdict::Ended, "also right after its end");
    assert_eq!(object.reserve(NOON + 700, "resp", 100), Verdict::Ended);
}

#[test]
fn an_id_or_a_note_is_any_text_up_to_its_bound() {
    let kept = |as_name: &str, note: &str| {
        let mut object = Object::default();
        object.reserve(NOON, "call", 100);
        let (as_id, note) = (id(as_name), note.to_owned());
        let keep =
            Command::Keep { id: id("call"), as_id: as_id.clone(), note: note.clone(), hold: Wait(HOUR), counted: true };
        let known = object.ask(NOON, &keep) == Reply::Done { known: true };
        let Reply::Found(found) = object.ask(NOON, &Command::Find { id: as_id }) else { panic!("not found") };
        assert_eq!(found.map(|found| found.note), known.then_some(note));
        known
    };
    let hostile = "a&id=b#?/../%00+ \0\r\n\"\\'é\u{2028}🦀=";
    assert!(kept("resp_0123456789abcdef", "gpt-5") && kept(hostile, hostile) && kept("r", ""));
    assert!(kept(&"i".repeat(KEPT_ID_MAX), &"n".repeat(NOTE_MAX)));
    assert!(!kept("", "n") && !kept(&"i".repeat(KEPT_ID_MAX + 1), "n") && !kept("i", &"n".repeat(NOTE_MAX + 1)));
}

#[test]
fn the_record_stays_small_however_many_calls_are_kept() {
    let mut object = Object::default();
    let name = |call: usize| (format!("call-{call}"), format!("resp_{call:050}"));
    for call in 0..=KEPT_MAX {
        let (name, as_name) = name(call);
        object.reserve(NOON, &name, 1);
        assert_eq!(object.keep(NOON, (&name, &as_name), HOUR), call < KEPT_MAX, "{call}");
    }
    assert!(object.0.as_ref().unwrap().len() < 400 * KEPT_MAX, "{:?}", object.0);
    for call in 0..KEPT_MAX {
        object.settle(NOON + call as u64, &name(call).1, 1);
    }
    // Neither crowds out the other.
    for call in 0..2 * ENDED_MAX {
        object.ask(NOON + 100, &Command::Release { id: id(&format!("early-{call}")), give_back: false });
    }
    let known = |call: &usize| object.found(NOON + 100, &name(*call).1).is_some();
    let known: Vec<usize> = (0..KEPT_MAX).filter(known).collect();
    assert_eq!(known, (KEPT_MAX - KEPT_KNOWN_MAX..KEPT_MAX).collect::<Vec<_>>(), "the latest");
    assert!(object.0.as_ref().unwrap().len() < 64 * ENDED_MAX + 200 * KEPT_KNOWN_MAX, "{:?}", object.0);
}

#[test]
fn the_latest_are_known_whenever_the_account_was_looked_at() {
    let mut once = Object::default();
    for call in 0..2 * KEPT_KNOWN_MAX as u64 {
        once.reserve(NOON, &format!("call-{call}"), 1);
        // The first to be made is the last to end.
        assert!(once.keep(NOON, (&format!("call-{call}"), &format!("resp-{call}")), HOUR - 1_000 * call));
    }
    let mut often = once.clone();
    for step in 0..700 {
        often.ask(NOON + HOUR + 1_000 * step, &Command::Release { id: id("nobody's"), give_back: false });
    }
    let known = |object: &Object| {
        let is_known = |call: &usize| object.found(NOON + HOUR + GRACE.0, &format!("resp-{call}")).is_some();
        (0..2 * KEPT_KNOWN_MAX).filter(is_known).collect::<Vec<_>>()
    };
    assert_eq!(known(&once), (0..KEPT_KNOWN_MAX).collect::<Vec<_>>());
    assert_eq!(known(&often), known(&once));
}

#[test]
fn an_account_is_not_deleted_while_it_keeps_or_knows_a_hold_and_is_afterwards() {
    // All that was spent is back by then.
    let mut object = Object::default();
    object.reserve(NOON, "call", 0);
    assert!(object.keep(NOON, ("call", "resp"), 30 * HOUR));
    let deleted_at = |object: &Object, at| object.account().alarm(UnixMillis(at)) == AlarmStep::Delete;
    let settled_at = NOON + 20 * HOUR;
    let mut settled = object.clone();
    settled.settle(settled_at, "resp", 0);
    let ends = [(object, NOON + 30 * HOUR + GRACE.0), (settled, settled_at)];
    for (object, end) in ends {
        let forgotten = end + KEPT_KNOWN.0 + REST.0;
        assert_eq!([deleted_at(&object, forgotten - 1), deleted_at(&object, forgotten)], [false, true]);
    }
}
