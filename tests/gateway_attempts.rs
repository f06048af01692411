//! A call that fails before its first byte: how often and where it is tried, what its caller is told, and that it is
//! charged once, at the price of the one that answered.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::flow::{ASK, check, ended};
use support::policy::Written;
use support::stream::Turn;
use support::tries::{
    FIRST_COSTS, HELD, JSON, SECOND_COSTS, SSE, alone, answered, at_its_limit, call, fails, logged, replies, set,
    tried, unreachable, with_fallback, world,
};
use support::world::{Told, Upstream, World};
use tollgate::gateway::ports::SendFault;
use tollgate::limit::protocol::Command;

mod support {
    pub(crate) mod flow;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    pub(crate) mod tries;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

/// What the upstream does; how often it is tried; what the caller is told if there is nobody else.
type Row = (&'static str, Upstream, usize, (u16, &'static str));

const OURS: (u16, &str) = (502, "upstream_failed");
const INVALID: (u16, &str) = (502, "upstream_invalid");
const LATE: (u16, &str) = (504, "upstream_timeout");

fn breaks_off(status: u16, kind: (&'static str, &'static str), start: &str) -> Upstream {
    Upstream::Answers { status, headers: vec![kind], turns: vec![Turn::text(start), Turn::Break] }
}

fn silent_after(start: &str) -> Upstream {
    let turns = vec![Turn::text(start), Turn::Silence(60_000)];
    Upstream::Answers { status: 200, headers: vec![JSON], turns }
}

/// Pieces that come so often that no silence is too long, and so many that they never end.
fn trickles(status: u16, kind: (&'static str, &'static str), start: &str) -> Upstream {
    let trickle = [Turn::Silence(500), Turn::text(" ")];
    let turns = [Turn::text(start)].into_iter().chain(trickle.into_iter().cycle().take(1_000)).collect();
    Upstream::Answers { status, headers: vec![kind], turns }
}

fn failures() -> Vec<Row> {
    const ERROR: &str = r#"{"error":{"message":"No.","type":"server_error","code":null}}"#;
    let zipped = Upstream::Answers {
        status: 200,
        headers: vec![JSON, ("content-encoding", "zstd")],
        turns: vec![Turn::text(support::flow::ANSWER)],
    };
    vec![
        ("it cannot be reached", unreachable(), 3, (502, "upstream_unreachable")),
        ("it answers 500", fails(500), 3, OURS),
        ("it answers 503", fails(503), 3, OURS),
        ("it answers a status that is not tried again", fails(501), 1, OURS),
        ("it wants to be paid", fails(402), 1, OURS),
        ("it does not accept our key", fails(401), 1, (502, "upstream_auth")),
        ("it redirects", fails(307), 3, INVALID),
        ("it answers HTML", replies(200, ("content-type", "text/html"), "<html>"), 3, INVALID),
        ("it answers nothing", replies(200, JSON, ""), 3, INVALID),
        ("it answers in an encoding that nobody undoes", zipped, 3, INVALID),
        ("it answers an error under 200", replies(200, JSON, ERROR), 1, OURS),
        ("its stream begins with an error", replies(200, SSE, &format!("data: {ERROR}\n\n")), 1, OURS),
        ("its stream ends before its first event", replies(200, SSE, "data: {"), 3, INVALID),
        ("it breaks off", breaks_off(200, JSON, "{\"id\":"), 3, INVALID),
        ("its stream breaks off before its first event", breaks_off(200, SSE, "data: {"), 3, INVALID),
        ("it takes too long to begin", Upstream::Fails(SendFault::TimedOut), 1, LATE),
        ("it falls silent", silent_after("{\"id\":"), 1, LATE),
        ("its first event trickles", trickles(200, SSE, "data: {"), 1, LATE),
        ("it is at its limit for a short while", at_its_limit("2"), 3, (429, "theirs")),
        ("it is at its limit for longer", at_its_limit("2.001"), 1, (429, "theirs")),
        ("it is at its limit and does not say until when", fails(429), 1, (429, "theirs")),
    ]
}

/// The policy, with 4 s for the first upstream to begin, so that there is time for another one.
fn impatient(mut written: Written) -> World {
    set(&mut written, "UPSTREAMS", &["default", "first_byte_ms"], json!(4_000));
    set(&mut written, "POLICY", &["bounds", "hold_ms"], json!(30_000));
    world(&written)
}

fn repeated(answer: &Upstream, times: usize) -> Vec<Upstream> {
    vec![answer.clone(); times]
}

#[test]
fn every_failure_is_tried_again_as_its_kind_allows_and_costs_nothing_where_there_is_nobody_else() {
    for ((name, failure, tries, (status, code)), stream) in rows() {
        let mut world = impatient(alone());
        let told = call(&mut world, "call-1", &answered(stream).0, repeated(&failure, tries));
        check(&world, "plain", &told, &format!("{status} {code}; release; spent 0, open 0"));
        assert_eq!(tried(&world), ["up"].repeat(tries).join(" "), "{name}");
        let tries = if tries > 1 { json!(tries) } else { Value::Null };
        assert_eq!(logged(&world, &["tries", "upstream", "held"])[..2], [tries, Value::Null], "{name}");
    }
}

#[test]
fn after_its_tries_the_next_upstream_answers_and_is_paid() {
    for ((name, failure, tries, _), stream) in rows() {
        let (ask, answer) = answered(stream);
        let mut world = impatient(with_fallback());
        let script = [repeated(&failure, tries), vec![answer]].concat();
        let told = call(&mut world, "call-1", &ask, script);
        check(&world, "plain", &told, &format!("200 ; settle exact {SECOND_COSTS}; spent {SECOND_COSTS}, open 0"));
        assert_eq!(tried(&world), format!("{} second", ["up"].repeat(tries).join(" ")), "{name}");
        let record = logged(&world, &["tries", "upstream", "model", "held"]);
        assert_eq!(record[..3], [json!(tries + 1), json!("second"), json!("beta")], "{name}");
        assert_eq!(record[3]["usd"], HELD, "the dearer of the two is held");
        assert_eq!((world.count("reserve"), world.count("settle")), (1, 1), "{name}");
    }
}

fn rows() -> impl Iterator<Item = (Row, bool)> {
    failures().into_iter().flat_map(|row| [(row.clone(), false), (row, true)])
}

#[test]
fn one_that_comes_back_in_time_is_paid_its_own_price() {
    for stream in [false, true] {
        let (ask, answer) = answered(stream);
        let mut world = world(&with_fallback());
        let told = call(&mut world, "call-1", &ask, vec![fails(503), unreachable(), answer]);
        check(&world, "plain", &told, &format!("200 ; settle exact {FIRST_COSTS}; spent {FIRST_COSTS}, open 0"));
        assert_eq!((tried(&world).as_str(), world.slept.borrow().len()), ("up up up", 2));
        assert_eq!(logged(&world, &["tries", "upstream", "model"]), [json!(3), json!("default"), json!("alpha")]);
    }
}

#[test]
fn pauses_are_those_of_the_policy_or_of_the_upstream() {
    let slept = |failure: Upstream| {
        let mut world = world(&alone());
        call(&mut world, "call-1", ASK, repeated(&failure, 3));
        world.slept.take()
    };
    let own = slept(fails(500));
    assert!(matches!(own[..], [50..=100, 100..=200]), "{own:?}");
    assert_eq!(slept(at_its_limit("1.5")), [1_500, 1_500]);
}

#[test]
fn a_refusal_of_the_request_is_final() {
    for (status, stream) in [(400, false), (404, true), (413, false), (422, true)] {
        let mut world = world(&with_fallback());
        let told = call(&mut world, "call-1", &answered(stream).0, vec![fails(status)]);
        check(&world, "plain", &told, &format!("{status} theirs; release; spent 0, open 0"));
        assert_eq!(told.header("x-tollgate-limited-by"), None);
    }
    // Its reasons may trickle for ever: they are given up, the status is known.
    let mut world = impatient(with_fallback());
    let began = world.clock.now();
    let told = call(&mut world, "call-1", ASK, vec![trickles(400, JSON, "{\"error\":")]);
    check(&world, "plain", &told, "400 ; release; spent 0, open 0");
    assert_eq!(world.clock.now().since(began).0, 4_000);
}

#[test]
fn what_has_begun_is_never_tried_again() {
    for end in [Turn::Break, Turn::Silence(60_000), Turn::text("data: {\"error\":{\"message\":\"No.\"}}\n\n")] {
        let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Volga\"}}]}\n\n";
        let turns = vec![Turn::text(event), end];
        let stream = Upstream::Answers { status: 200, headers: vec![SSE], turns };
        let mut world = world(&with_fallback());
        let told = call(&mut world, "call-1", &answered(true).0, vec![stream]);
        assert!(told.text().starts_with(event) && told.text().contains("\"error\""), "{}", told.text());
        // What was read, and two tokens at 2 dollars a million.
        assert_eq!(ended(&world, "call-1"), ["settle at least 20000"]);
        assert_eq!((tried(&world).as_str(), world.spent("plain").1), ("up", 0));
    }
}

fn seconds(world: &World, from: u64) -> u64 {
    (world.clock.now().0 - from) / 1_000
}

#[test]
fn all_tries_together_take_no_longer_than_the_bound_on_the_first_byte() {
    let late = || Upstream::Fails(SendFault::TimedOut);
    // The whole time goes to the first: nothing is left to send anything in.
    let mut own = world(&with_fallback());
    let from = own.clock.now().0;
    let told = call(&mut own, "call-1", ASK, vec![late()]);
    assert_eq!((told.status, seconds(&own, from)), (504, 9));
    // 4 of 9 seconds, and the other has the rest.
    let mut own = impatient(with_fallback());
    let from = own.clock.now().0;
    let told = call(&mut own, "call-1", ASK, vec![late(), late()]);
    assert_eq!((told.status, tried(&own), seconds(&own, from)), (504, "up second".to_owned(), 9));
    // A pause that would be too long is no reason not to ask somebody else at once.
    let slow = || Upstream::After(3_000, Box::new(at_its_limit("2")));
    let mut own = impatient(with_fallback());
    let told = call(&mut own, "call-1", ASK, vec![slow(), slow(), fails(503)]);
    assert_eq!((told.status, tried(&own)), (502, "up up second".to_owned()));
}

#[test]
fn a_time_out_outlasts_what_follows_since_that_provider_may_have_worked() {
    let gives_back = |second: Upstream| -> (Told, bool) {
        let mut world = impatient(with_fallback());
        let told = call(&mut world, "call-1", ASK, vec![Upstream::Fails(SendFault::TimedOut), second]);
        let asked = world.asked.borrow();
        let gives_back = asked.iter().find_map(|(_, command)| match command {
            Command::Release { give_back, .. } => Some(*give_back),
            _ => None,
        });
        (told, gives_back.unwrap())
    };
    let (told, given) = gives_back(fails(503));
    assert_eq!((told.status, given), (504, false));
    let (told, given) = gives_back(fails(400));
    assert_eq!((told.status, given), (400, true));
}
