//! What is stored, what crosses to the object, and what is logged, to the letter.
//!
//! A change of any text here reaches records and objects that are out there: it takes a new version and a plan for the
//! old one, not a new expectation.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tollgate::gateway::record::CallRecord;
use tollgate::limit::NanoUsd;
use tollgate::limit::account::{Account, Denial, Found, FoundState, HoldId, Snapshot, Verdict};
use tollgate::limit::outbox::Booking;
use tollgate::limit::protocol::{Command, ProtocolError, Reply, account_of, record_of};
use tollgate::limit::{Amount, Charge, Cost, Estimate, Limit, Period, Shape, Tokens, Unit};
use tollgate::time::{Calendar, UnixMillis, UtcDay, Wait};

/// 2031-03-05T12:00:00Z.
const NOON: u64 = 1_930_478_400_000;
const DAY: u64 = 86_400_000;

fn limits() -> Vec<Limit> {
    let limit = |name: &str, unit, shape| Limit { name: name.to_owned(), unit, shape };
    let window = |amount, window| Shape::Window { amount: Amount(amount), window };
    vec![
        limit("rpm", Unit::Requests, Shape::Bucket { burst: Amount(9), refill: Amount(7), per: Period::Minute }),
        limit("tokens", Unit::Tokens, Shape::Bucket { burst: Amount(900), refill: Amount(1), per: Period::Hour }),
        limit("day", Unit::Usd, window(5_000_000, Calendar::Day)),
        limit("month", Unit::InputTokens, window(2_000, Calendar::Month)),
        limit("slots", Unit::Concurrency, Shape::Slots { amount: Amount(4) }),
    ]
}

fn cost(input: u64, output: u64, usd: u64) -> Cost {
    Cost { requests: 1, input: Tokens(input), output: Tokens(output), usd: NanoUsd(usd) }
}

fn id(name: &str) -> HoldId {
    HoldId(name.to_owned())
}

fn reserved(account: &Account, now: u64, name: &str, call: (Cost, u64)) -> Account {
    account.reserve(UnixMillis(now), &id(name), &limits(), (Estimate(call.0), Wait(call.1))).next.unwrap()
}

/// A bucket and a window in debt since yesterday, one hold that has lapsed and one that is open, ids that have ended,
/// and an alarm.
fn rich() -> Account {
    let mut account = reserved(&Account::default(), NOON, "dear", (cost(300, 300, 1_000_000), 600_000));
    account = account
        .settle(UnixMillis(NOON + 1_234), &id("dear"), &Charge::Exact(cost(400, 700, 12_000_000)), true)
        .next
        .unwrap();
    account.arm();
    let later = NOON + 2 * DAY;
    account = reserved(&account, later, "lapsed", (cost(0, 0, 0), 1_000));
    account = reserved(&account, later + 1_500, "open", (cost(0, 0, 0), 600_000));
    account.release(UnixMillis(later + 1_501), &id("early"), false).next.unwrap()
}

const RECORD: &str = concat!(
    r#"{"v":1,"at":1930651201501,"balances":["#,
    r#"{"limit":{"name":"rpm","unit":"requests","shape":{"bucket":{"burst":9,"refill":7,"per":"minute"}}},"#,
    r#""spent":{"bucket":{"spent":2,"carry":15130080}}},"#,
    r#"{"limit":{"name":"tokens","unit":"tokens","shape":{"bucket":{"burst":900,"refill":1,"per":"hour"}}},"#,
    r#""spent":{"bucket":{"spent":1052,"carry":36024}}},"#,
    r#"{"limit":{"name":"day","unit":"usd","shape":{"window":{"amount":5000000,"window":"day"}}},"#,
    r#""spent":{"window":{"index":22345,"used":2000000,"owed":2000000}}},"#,
    r#"{"limit":{"name":"month","unit":"input_tokens","shape":{"window":{"amount":2000,"window":"month"}}},"#,
    r#""spent":{"window":{"index":734,"used":400,"owed":0}}},"#,
    r#"{"limit":{"name":"slots","unit":"concurrency","shape":{"slots":{"amount":4}}},"spent":{"slots":1}}],"#,
    r#""holds":["#,
    r#"{"id":"lapsed","made_at":1930651200000,"expires_at":1930651201000,"held":[{"limit":"rpm","amount":1},"#,
    r#"{"limit":"tokens","amount":0},{"limit":"day","amount":0},{"limit":"month","amount":0},{"limit":"slots","amount":1}]},"#,
    r#"{"id":"open","made_at":1930651201500,"expires_at":1930651801500,"held":[{"limit":"rpm","amount":1},"#,
    r#"{"limit":"tokens","amount":0},{"limit":"day","amount":0},{"limit":"month","amount":0},{"limit":"slots","amount":1}]}],"#,
    r#""ended":[{"id":"early","until":1930651216501}],"alarm_at":1933243201234}"#,
);

#[test]
fn the_stored_record_is_written_and_read_to_the_letter() {
    assert_eq!(record_of(&rich()), RECORD);
    assert_eq!(account_of(Some(RECORD)), Ok(rich()));
    assert_eq!(record_of(&Account::default()), r#"{"v":1,"at":0,"balances":[],"holds":[],"ended":[],"alarm_at":null}"#);
    assert_eq!(account_of(None), Ok(Account::default()));
}

#[test]
fn a_record_that_cannot_be_read_is_a_failure_and_never_an_empty_one() {
    let newer = RECORD.replacen("\"v\":1", "\"v\":2", 1);
    assert_eq!(account_of(Some(&newer)), Err(ProtocolError::Record("version 2, want 1".to_owned())));
    for record in ["", "null", "{}", r#"{"v":1}"#, r#"{"v":1,"at":"x"}"#] {
        assert!(matches!(account_of(Some(record)), Err(ProtocolError::Record(_))), "{record}");
    }
}

fn booking() -> Booking {
    let (key, plan) = ("user:ann".to_owned(), "p".to_owned());
    Booking { day: UtcDay(22_343), key, plan, gated: true, for_site: true, post_after: Wait(10_000) }
}

/// Every command and its path. The match has to name every variant, so a new one has to come in here.
fn commands() -> Vec<(Command, &'static str)> {
    let (plan, estimate) = ("a b&c=é".to_owned(), Estimate(cost(1_200, 4_096, 9_007_199_254_740_991)));
    let note = "m/5 é";
    let keep =
        |counted| Command::Keep { id: id("call-1"), as_id: id("r"), note: note.to_owned(), hold: Wait(1), counted };
    let all = vec![
        Command::Reserve { id: id("call-1"), plan: plan.clone(), estimate, hold: Wait(600_000), booking: None },
        Command::Reserve { id: id("call-1"), plan: "p".to_owned(), estimate, hold: Wait(1), booking: Some(booking()) },
        Command::Check { plan: plan.clone(), estimate },
        Command::Settle { id: id("call-1"), charge: Charge::Exact(cost(10, 20, 30)), counted: true },
        Command::Settle { id: id("call-1"), charge: Charge::AtLeast(cost(10, 0, 30)), counted: false },
        Command::Release { id: id("call-1"), give_back: false },
        Command::Release { id: id("call-1"), give_back: true },
        Command::Extend { id: id("call-1"), hold: Wait(1) },
        keep(true),
        keep(false),
        Command::Find { id: id("r") },
        Command::Snapshot { plan },
    ];
    let path = |command: &Command| match command {
        Command::Reserve { booking: Some(_), .. } => concat!(
            "/v1/reserve?id=call-1&plan=p&requests=1&input=1200&output=4096&usd=9007199254740991&hold_ms=1",
            "&day=22343&key=user%3Aann&ledger_plan=p&gated=true&for_site=true&post_ms=10000"
        ),
        Command::Reserve { booking: None, .. } => concat!(
            "/v1/reserve?id=call-1&plan=a+b%26c%3D%C3%A9&requests=1&input=1200&output=4096",
            "&usd=9007199254740991&hold_ms=600000"
        ),
        Command::Check { .. } => {
            "/v1/check?plan=a+b%26c%3D%C3%A9&requests=1&input=1200&output=4096&usd=9007199254740991"
        }
        Command::Settle { charge: Charge::Exact(_), .. } => {
            "/v1/settle?id=call-1&requests=1&input=10&output=20&usd=30&charge=exact"
        }
        Command::Settle { charge: Charge::AtLeast(_), .. } => {
            "/v1/settle?id=call-1&requests=1&input=10&output=0&usd=30&charge=at_least&counted=false"
        }
        Command::Release { give_back: false, .. } => "/v1/release?id=call-1",
        Command::Release { give_back: true, .. } => "/v1/release?id=call-1&give_back=true",
        Command::Extend { .. } => "/v1/extend?id=call-1&hold_ms=1",
        Command::Keep { counted: true, .. } => "/v1/keep?id=call-1&hold_ms=1&as_id=r&note=m%2F5+%C3%A9",
        Command::Keep { counted: false, .. } => "/v1/keep?id=call-1&hold_ms=1&counted=false&as_id=r&note=m%2F5+%C3%A9",
        Command::Find { .. } => "/v1/find?id=r",
        Command::Snapshot { .. } => "/v1/snapshot?plan=a+b%26c%3D%C3%A9",
    };
    all.into_iter().map(|command| (command.clone(), path(&command))).collect()
}

#[test]
fn every_command_is_a_path_and_back() {
    for (command, path) in commands() {
        assert_eq!(command.to_path(), path);
        assert_eq!(Command::from_url(path), Ok(command.clone()));
        assert_eq!(Command::from_url(&format!("https://limiter{path}")), Ok(command));
    }
}

#[test]
fn what_is_no_command_is_told_why() {
    let cases = [
        ("/v1/reserve", "unreadable limiter command: no query in `/v1/reserve`"),
        ("/v2/release?id=a", "unreadable limiter command: version in `/v2/release?id=a`"),
        ("/v1/forgive?id=a", "unreadable limiter command: verb in `/v1/forgive?id=a`"),
        ("/v1/release?", "unreadable limiter command: id is missing"),
        ("/v1/extend?id=a", "unreadable limiter command: hold_ms is missing"),
        ("/v1/keep?id=a&hold_ms=1&note=b", "unreadable limiter command: as_id is missing"),
        ("/v1/keep?id=a&hold_ms=1&as_id=b", "unreadable limiter command: note is missing"),
        ("/v1/snapshot?id=a", "unreadable limiter command: plan is missing"),
        ("/v1/settle?id=a&requests=1&input=1&output=1&usd=1", "unreadable limiter command: charge is missing"),
        ("/v1/settle?id=a&requests=1&input=1&usd=1", "unreadable limiter command: output is missing"),
    ];
    for (url, want) in cases {
        assert_eq!(Command::from_url(url).unwrap_err().to_string(), want);
    }
    for url in
        ["/v1/release?id=a&x=1", "/v1/release?id=a&id=b", "/v1/extend?id=a&hold_ms=-1", "/v1/extend?id=a&hold_ms=1.5"]
    {
        assert!(Command::from_url(url).is_err(), "{url}");
    }
    let unknown = Command::Snapshot { plan: "x".to_owned() }.execute(&Account::default(), UnixMillis(0), |_| None);
    assert_eq!(unknown.unwrap_err().to_string(), "limiter command names plan `x`, which the object's policy lacks");
}

/// Every reply and its text; the match has to name every variant.
fn replies() -> Vec<(Reply, &'static str)> {
    let snapshot = || rich().snapshot(UnixMillis(NOON + 3 * DAY), &limits());
    let denial = || Denial { limit: limits().remove(2), asked: Amount(1_000), left: -7, wait: Wait(1_500), firm: true };
    let reserve = |verdict| Reply::Reserve { verdict, snapshot: Snapshot::default() };
    let all = vec![
        Reply::Reserve { verdict: Verdict::Reserved { expires_at: UnixMillis(NOON) }, snapshot: snapshot() },
        reserve(Verdict::Wait(denial())),
        reserve(Verdict::NeverFits(denial())),
        reserve(Verdict::Ended),
        Reply::Done { known: true },
        Reply::Found(None),
        Reply::Found(Some(Found { state: FoundState::Open, note: "m".to_owned() })),
        Reply::Snapshot(Snapshot::default()),
    ];
    let text = |reply: &Reply| match reply {
        Reply::Reserve { verdict: Verdict::Reserved { .. }, .. } => concat!(
            r#"{"reserve":{"verdict":{"reserved":{"expires_at":1930478400000}},"#,
            r#""snapshot":{"at":1930737600000,"open_holds":0,"balances":["#,
            r#"{"limit":{"name":"rpm","unit":"requests","shape":{"bucket":{"burst":9,"refill":7,"per":"minute"}}},"#,
            r#""spent":{"bucket":{"spent":0,"carry":0}}},"#,
            r#"{"limit":{"name":"tokens","unit":"tokens","shape":{"bucket":{"burst":900,"refill":1,"per":"hour"}}},"#,
            r#""spent":{"bucket":{"spent":1028,"carry":0}}},"#,
            r#"{"limit":{"name":"day","unit":"usd","shape":{"window":{"amount":5000000,"window":"day"}}},"#,
            r#""spent":{"window":{"index":22346,"used":0,"owed":0}}},"#,
            r#"{"limit":{"name":"month","unit":"input_tokens","shape":{"window":{"amount":2000,"window":"month"}}},"#,
            r#""spent":{"window":{"index":734,"used":400,"owed":0}}},"#,
            r#"{"limit":{"name":"slots","unit":"concurrency","shape":{"slots":{"amount":4}}},"spent":{"slots":0}}]}}}"#,
        ),
        Reply::Reserve { verdict: Verdict::Wait(_), .. } => concat!(
            r#"{"reserve":{"verdict":{"wait":{"limit":{"name":"day","unit":"usd","shape":{"window":{"amount":5000000,"window":"day"}}},"#,
            r#""asked":1000,"left":-7,"wait":1500,"firm":true}},"#,
            r#""snapshot":{"at":0,"open_holds":0,"balances":[]}}}"#,
        ),
        Reply::Reserve { verdict: Verdict::NeverFits(_), .. } => concat!(
            r#"{"reserve":{"verdict":{"never_fits":{"limit":{"name":"day","unit":"usd","shape":{"window":{"amount":5000000,"window":"day"}}},"#,
            r#""asked":1000,"left":-7,"wait":1500,"firm":true}},"#,
            r#""snapshot":{"at":0,"open_holds":0,"balances":[]}}}"#,
        ),
        Reply::Reserve { verdict: Verdict::Ended, .. } => {
            r#"{"reserve":{"verdict":"ended","snapshot":{"at":0,"open_holds":0,"balances":[]}}}"#
        }
        Reply::Done { .. } => r#"{"done":{"known":true}}"#,
        Reply::Found(None) => r#"{"found":null}"#,
        Reply::Found(Some(_)) => r#"{"found":{"state":"open","note":"m"}}"#,
        Reply::Snapshot(_) => r#"{"snapshot":{"at":0,"open_holds":0,"balances":[]}}"#,
    };
    all.into_iter().map(|reply| (reply.clone(), text(&reply))).collect()
}

#[test]
fn every_reply_is_a_text_and_back() {
    for (reply, text) in replies() {
        assert_eq!(reply.to_json(), text);
        assert_eq!(Reply::from_json(text), Ok(reply));
    }
    for text in ["", "{}", "[]", "null", r#"{"done":{}}"#, r#"{"done":{"known":true}}}"#, "<html>"] {
        assert!(matches!(Reply::from_json(text), Err(ProtocolError::Reply(_))), "{text}");
    }
}

/// A record with everything in it.
fn call() -> CallRecord {
    CallRecord {
        id: "call-1".to_owned(),
        route: "/v1/chat/completions",
        at: UnixMillis(NOON),
        status: 200,
        verdict: "ok",
        subject: Some("user:ann".to_owned()),
        plan: Some("standard".to_owned()),
        model: Some("gpt-4o-mini".to_owned()),
        kept_as: Some("resp_1".to_owned()),
        upstream: Some("default".to_owned()),
        tries: Some(2),
        stream: true,
        limited_by: Some("day".to_owned()),
        wait_ms: Some(1_500),
        held: Some(cost(1, 2, 3)),
        charged: Some(cost(4, 5, 6)),
        prices: Some("2026-11-30".to_owned()),
        exact: Some(false),
        implausible: true,
        cost_differs: true,
        unchecked: true,
        client_left: true,
        unsettled: true,
        limiter_ms: 7,
        ledger_ms: 10,
        upstream_ms: 8,
        total_ms: 9,
    }
}

#[test]
fn a_call_is_written_down_in_a_fixed_form() {
    let whole = concat!(
        r#"{"id":"call-1","route":"/v1/chat/completions","at":1930478400000,"status":200,"verdict":"ok","#,
        r#""subject":"user:ann","plan":"standard","model":"gpt-4o-mini","kept_as":"resp_1","upstream":"default","#,
        r#""tries":2,"stream":true,"limited_by":"day","wait_ms":1500,"held":{"requests":1,"input":1,"output":2,"usd":3},"#,
        r#""charged":{"requests":1,"input":4,"output":5,"usd":6},"prices":"2026-11-30","exact":false,"#,
        r#""implausible":true,"cost_differs":true,"unchecked":true,"#,
        r#""client_left":true,"unsettled":true,"limiter_ms":7,"ledger_ms":10,"upstream_ms":8,"total_ms":9}"#,
    );
    assert_eq!(serde_json::to_string(&call()).unwrap(), whole);
    let least = concat!(
        r#"{"id":"","route":"","at":0,"status":0,"verdict":"","stream":false,"#,
        r#""limiter_ms":0,"ledger_ms":0,"upstream_ms":0,"total_ms":0}"#,
    );
    assert_eq!(serde_json::to_string(&CallRecord::default()).unwrap(), least);
    assert_eq!((call().index(), CallRecord::default().index()), ("user:ann", ""));
    let long = CallRecord { subject: Some("é".repeat(60)), ..call() };
    assert_eq!(long.index(), "é".repeat(48));
    assert_eq!(call().labels(), ["ok", "/v1/chat/completions", "standard", "gpt-4o-mini", "day", "stream"]);
    assert_eq!(format!("{:?}", call().numbers()), "[200.0, 1500.0, 3.0, 6.0, 4.0, 5.0, 7.0, 8.0, 9.0, 10.0]");
    assert_eq!(CallRecord::default().labels(), ["", "", "", "", "", "plain"]);
}
