//! Streams with everything outside of the call in memory: relayed byte for byte, and settled once however they end.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use support::flow::{ASK, check, ended};
use support::stream::Turn;
use support::world::{LimiterFault, Upstream, World};
use tollgate::limit::protocol::Command;

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod flow;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
/// Eight bytes: two tokens when nobody says how many.
const TEXT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Volga, é\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
/// 100,000 billionths of a dollar.
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":30}}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const ERROR: &str = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n";
const COMMENT: &str = ": wait\n\n";
/// What is charged for the prompt of 16 bytes alone, and with one `TEXT` (nine bytes: three tokens).
const READ: &str = "settle at least 16000; spent 16000, open 0";
const READ_AND_SEEN: &str = "settle at least 22000; spent 22000, open 0";
const EXACT: &str = "settle exact 100000; spent 100000, open 0";

fn ask(usage: bool) -> String {
    let options =
        if usage { r#","stream":true,"stream_options":{"include_usage":true}}"# } else { r#","stream":true}"# };
    ASK.strip_suffix('}').unwrap().to_owned() + options
}

fn stream(turns: Vec<Turn>) -> World {
    let headers = vec![("content-type", "text/event-stream; charset=utf-8"), ("x-request-id", "up-1")];
    World { upstream: Upstream::Answers { status: 200, headers, turns }, ..World::new() }
}

fn events(events: &[&str]) -> Vec<Turn> {
    events.iter().map(|event| Turn::text(event)).collect()
}

#[test]
fn a_stream_is_relayed_byte_for_byte_and_charged_exactly() {
    let mut world = stream(events(&[ROLE, COMMENT, TEXT, STOP, USAGE, DONE]));
    let told = world.call("call-1", "plain", &ask(true));
    assert_eq!(told.text(), [ROLE, COMMENT, TEXT, STOP, USAGE, DONE].concat());
    check(&world, "plain", &told, &format!("200 ; {EXACT}"));
    assert_eq!(told.closed, Some(true));
    assert_eq!(told.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!((told.header("cache-control"), told.header("x-accel-buffering")), (Some("no-cache"), Some("no")));
    assert_eq!(told.header("x-upstream-request-id"), Some("up-1"));
    assert!(told.header("ratelimit").is_some());
}

#[test]
fn usage_is_asked_for_and_taken_out_again_where_the_client_did_not_ask() {
    let mut world = stream(events(&[ROLE, TEXT, STOP, USAGE, DONE]));
    let told = world.call("call-1", "plain", &ask(false));
    assert_eq!(told.text(), [ROLE, TEXT, STOP, DONE].concat());
    check(&world, "plain", &told, &format!("200 ; {EXACT}"));
    let sent = String::from_utf8(world.sent.borrow()[0].body.to_vec()).unwrap();
    assert!(sent.contains(r#""stream_options":{"include_usage":true}"#), "{sent}");
}

#[test]
fn bytes_are_sacred_however_the_stream_is_cut() {
    let big = format!("data: {{\"x\":\"{}\"}}\n\n", "é".repeat(512 * 1024));
    let whole = [COMMENT, ROLE, &big, TEXT, "id: 7\nretry: 9\n\n", STOP, USAGE, DONE].concat();
    for text in [whole.clone(), whole.replace('\n', "\r\n"), whole.replace('\n', "\r")] {
        for size in [1, 5, 4_099, 10_000_000] {
            // A byte at a time is slow for a megabyte, and the large event is not what it is about.
            let text = if size < 100 { text.replace(&"é".repeat(512 * 1024), "é") } else { text.clone() };
            let turns = text.as_bytes().chunks(size).map(|chunk| Turn::Bytes(chunk.to_vec())).collect();
            let mut world = stream(turns);
            let told = world.call("call-1", "plain", &ask(true));
            // An LF that follows a final CR may come or not: the stream has ended.
            assert!(told.body == text.as_bytes(), "size {size}: {} bytes of {}", told.body.len(), text.len());
            check(&world, "plain", &told, &format!("200 ; {EXACT}"));
        }
    }
}

#[test]
fn a_stream_that_fails_before_anything_was_relayed_is_told_as_a_failure() {
    let cases = [
        (events(&[ERROR]), "502 upstream_failed"),
        (vec![], "502 upstream_invalid"),
        (vec![Turn::Break], "502 upstream_invalid"),
        (vec![Turn::Silence(9_000)], "504 upstream_timeout"),
        (vec![Turn::text("data: {\"choi"), Turn::Break], "502 upstream_invalid"),
    ];
    for (turns, want) in cases {
        let mut world = stream(turns);
        let told = world.call("call-1", "plain", &ask(false));
        check(&world, "plain", &told, &format!("{want}; release; spent 0, open 0"));
    }
}

#[test]
fn a_stream_never_ends_cleanly_if_it_is_not_whole() {
    use Turn::{Break, Silence};
    let cut = |before: &[&str], end: Option<Turn>| events(before).into_iter().chain(end).collect::<Vec<_>>();
    let cases = [
        (cut(&[ROLE], None), "upstream_invalid", "release; spent 0, open 0"),
        (cut(&[ROLE], Some(Break)), "upstream_invalid", "release; spent 0, open 0"),
        (cut(&[ROLE], Some(Silence(5_000))), "upstream_timeout", "release; spent 0, open 0"),
        (cut(&[COMMENT], None), "upstream_invalid", "release; spent 0, open 0"),
        (cut(&[COMMENT, COMMENT], Some(Silence(5_000))), "upstream_timeout", "release; spent 0, open 0"),
        (cut(&[ROLE, TEXT], None), "upstream_invalid", READ_AND_SEEN),
        (cut(&[ROLE, TEXT], Some(Break)), "upstream_invalid", READ_AND_SEEN),
        (cut(&[ROLE, TEXT], Some(Silence(5_000))), "upstream_timeout", READ_AND_SEEN),
        (cut(&[ROLE, TEXT, STOP, USAGE], Some(Break)), "upstream_invalid", EXACT),
    ];
    for (turns, code, charged) in cases {
        let mut world = stream(turns.clone());
        let told = world.call("call-1", "plain", &ask(true));
        check(&world, "plain", &told, &format!("200 ; {charged}"));
        let end = told.text().rsplit("data: ").next().unwrap().to_owned();
        assert!(end.contains(&format!("\"code\":\"{code}\"")), "{turns:?}: {}", told.text());
        assert!(!told.text().contains("[DONE]"), "{}", told.text());
        assert_eq!(world.log.borrow()[0]["verdict"], "upstream_broke_off");
    }
}

#[test]
fn an_error_event_of_the_upstream_is_relayed_and_charged_for_what_was_seen() {
    for (before, charged) in [(&[COMMENT][..], "release; spent 0, open 0"), (&[ROLE, TEXT][..], READ_AND_SEEN)] {
        let mut world = stream(events(&[before, &[ERROR, DONE]].concat()));
        let told = world.call("call-1", "plain", &ask(true));
        assert_eq!(told.text(), [before.concat(), ERROR.to_owned()].concat());
        check(&world, "plain", &told, &format!("200 ; {charged}"));
        assert_eq!(world.log.borrow()[0]["verdict"], "upstream_failed");
    }
}

#[test]
fn a_stream_without_usage_is_charged_what_was_read_and_what_was_seen() {
    for end in [&[STOP, DONE][..], &[STOP][..], &[DONE][..]] {
        let mut world = stream(events(&[&[ROLE, TEXT], end].concat()));
        let told = world.call("call-1", "plain", &ask(true));
        check(&world, "plain", &told, &format!("200 ; {READ_AND_SEEN}"));
        assert_eq!(told.closed, Some(true));
    }
}

#[test]
fn a_usage_event_is_an_end_where_the_end_marker_is_missing() {
    for (asked, want) in [(true, [ROLE, TEXT, USAGE].concat()), (false, [ROLE, TEXT].concat())] {
        let mut world = stream(events(&[ROLE, TEXT, USAGE]));
        let told = world.call("call-1", "plain", &ask(asked));
        assert_eq!((told.text(), told.closed), (want, Some(true)));
        check(&world, "plain", &told, &format!("200 ; {EXACT}"));
    }
}

#[test]
fn a_client_that_leaves_is_charged_for_what_was_seen_or_for_what_is_drained() {
    let all = [ROLE, TEXT, STOP, USAGE, DONE];
    // Where the client leaves: before the first event was looked at it cannot have.
    for (place, seen) in [(1, READ), (2, READ_AND_SEEN), (3, READ_AND_SEEN), (4, EXACT)] {
        for (plan, charged) in [("plain", seen), ("drain", EXACT)] {
            let mut turns = events(&all);
            turns.insert(place, Turn::ClientLeaves);
            let mut world = stream(turns);
            let told = world.call("call-1", plan, &ask(true));
            assert_eq!(told.text(), all[..place].concat());
            check(&world, plan, &told, &format!("200 ; {charged}"));
            assert!(world.cancelled.get() && world.log.borrow()[0]["client_left"] == true);
        }
    }
}

#[test]
fn draining_is_bounded_and_a_break_while_draining_is_charged_for_what_was_seen() {
    use Turn::{Break, ClientLeaves, Silence};
    let ends = [
        vec![Break],
        vec![Silence(5_000)],
        vec![Silence(4_000), Turn::text(COMMENT), Silence(4_000), Turn::text(USAGE), Turn::text(DONE)],
    ];
    for end in ends {
        let turns = [events(&[ROLE, TEXT]), vec![ClientLeaves], end].concat();
        let mut world = stream(turns);
        let before = world.clock.now();
        let told = world.call("call-1", "drain", &ask(true));
        check(&world, "drain", &told, &format!("200 ; {READ_AND_SEEN}"));
        assert!(world.clock.now().since(before).0 <= 7_000, "{:?}", world.clock.now());
    }
}

#[test]
fn a_client_that_takes_nothing_any_more_is_one_that_has_left() {
    for takes in 0..4 {
        let mut world = World { takes, ..stream(events(&[ROLE, TEXT, STOP, USAGE, DONE])) };
        let told = world.call("call-1", "plain", &ask(true));
        let charged = match takes {
            0 => READ,
            3 => EXACT,
            _ => READ_AND_SEEN,
        };
        check(&world, "plain", &told, &format!("200 ; {charged}"));
        assert_eq!(told.closed, Some(false));
    }
}

#[test]
fn the_end_is_settled_whether_or_not_the_client_takes_it() {
    let mut world = World { closes: false, ..stream(events(&[ROLE, TEXT, STOP, USAGE, DONE])) };
    let told = world.call("call-1", "plain", &ask(true));
    check(&world, "plain", &told, &format!("200 ; {EXACT}"));
}

#[test]
fn a_long_stream_keeps_its_hold_open() {
    let mut turns = events(&[ROLE]);
    for _ in 0..20 {
        turns.extend([Turn::Silence(4_000), Turn::text(COMMENT)]);
    }
    turns.extend(events(&[TEXT, STOP, USAGE, DONE]));
    for fault in [None, Some(LimiterFault::LostReply), Some(LimiterFault::Nonsense)] {
        let mut world = stream(turns.clone());
        world.faults.extend(fault.map(|fault| ("extend", vec![fault])));
        let told = world.call("call-1", "plain", &ask(true));
        check(&world, "plain", &told, &format!("200 ; {EXACT}"));
        assert!((8..=20).contains(&world.count("extend")), "{}", world.count("extend"));
    }
}

#[test]
fn a_stream_that_cannot_extend_its_hold_is_settled_all_the_same() {
    let turns = [events(&[ROLE]), vec![Turn::Silence(4_900); 8]].concat();
    let turns =
        turns.into_iter().flat_map(|turn| [turn, Turn::text(COMMENT)]).chain(events(&[TEXT, STOP, USAGE, DONE]));
    let mut world = stream(turns.collect());
    world.faults.insert("extend", vec![LimiterFault::Down; 100]);
    let told = world.call("call-1", "plain", &ask(true));
    check(&world, "plain", &told, &format!("200 ; {EXACT}"));
    assert!(world.warnings.borrow().iter().all(|warning| warning.contains("not extended")));
}

#[test]
fn a_stream_that_began_late_keeps_its_slot() {
    let turns =
        [vec![Turn::Silence(8_000)], events(&[ROLE]), vec![Turn::Silence(4_000)], events(&[TEXT, STOP, USAGE, DONE])];
    let mut world = stream(turns.concat());
    world.call("call-1", "plain", &ask(true));
    // The hold was made to last for ten seconds; the stream took twelve.
    let verbs: Vec<_> = world.asked.borrow().iter().map(|(verb, _)| verb.clone()).collect();
    assert_eq!(verbs, ["reserve", "extend", "settle"]);
}

#[test]
fn a_settlement_that_is_lost_is_made_by_the_deadline() {
    let mut world = stream(events(&[ROLE, TEXT, STOP, USAGE, DONE]));
    world.faults.insert("settle", vec![LimiterFault::Down; 2]);
    let told = world.call("call-1", "plain", &ask(true));
    assert_eq!((told.closed, world.spent("plain")), (Some(true), (216_000, 1)));
    world.clock.pass(10_000);
    assert_eq!(world.spent("plain"), (216_000, 0));
    assert_eq!(ended(&world, "call-1").len(), 2);
    assert!(matches!(&world.asked.borrow()[1].1, Command::Settle { .. }));
    assert_eq!(world.log.borrow()[0]["unsettled"], true);
}
