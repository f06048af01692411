//! Streams that nobody wrote down, cut wherever: their bytes, their events and what is read of them are those that a
//! naive reader of the standard finds.
//!
//! A small part always runs; `TOLLGATE_FUZZ=1000000 cargo test --release --test fuzz_streams` makes as many streams
//! for each test as it says, and measures whether work grows with the length of a stream alone.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use support::flow::ASK;
use support::stream::Turn;
use support::streams::{Event, cut, meaning_by_hand, reference, said, sizes, streams, usage_by_hand};
use support::world::{Upstream, World};
use tollgate::dialect::DIALECTS;
use tollgate::dialect::reply::{Chunk, OutputCounter};
use tollgate::dialect::sse::{Frame, Framer, fields};

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod flow;
    pub(crate) mod fuzz;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    pub(crate) mod streams;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

/// The most that may be held back of a stream.
const HELD_MAX: usize = 256 * 1024;

/// What our reader shows of a stream in chunks: all bytes, the events, and the most that it held back.
fn read(chunks: &[&[u8]], to_its_end: bool) -> (Vec<u8>, Vec<Event>, usize) {
    let (mut framer, mut together, mut events) = (Framer::default(), Vec::new(), Vec::new());
    let (mut pushed, mut held) = (0, 0);
    let mut show = |frame: Frame<'_>| match frame {
        Frame::Event(bytes) => {
            together.extend_from_slice(bytes);
            let fields = fields(bytes);
            let name = fields.event.map(String::from).unwrap_or_default();
            events.extend(fields.data.map(|data| (name, data.into_owned())));
            bytes.len()
        }
        Frame::Comment(bytes) | Frame::Oversize(bytes) | Frame::LineFeed(bytes) => {
            together.extend_from_slice(bytes);
            bytes.len()
        }
        // It has gone by already.
        Frame::Gist(_) => 0,
    };
    let mut shown = 0;
    for chunk in chunks {
        framer.push(chunk, |frame| shown += show(frame));
        pushed += chunk.len();
        held = held.max(pushed - shown);
    }
    if to_its_end {
        framer.finish(|frame| shown += show(frame));
    }
    (together, events, held)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(support::fuzz::cases(1_500)))]

    #[test]
    fn bytes_and_events_are_those_of_the_stream_however_it_is_cut(stream in streams(), sizes in sizes()) {
        let chunks = cut(&stream, &sizes);
        let (together, events, _) = read(&chunks, true);
        prop_assert_eq!(&together, &stream);
        prop_assert_eq!(events, reference(&stream, true));
        // Nothing waits for what comes after it.
        let (shown, events, _) = read(&chunks, false);
        prop_assert_eq!(events, reference(&stream, false));
        let held = &stream[shown.len()..];
        prop_assert!(!held.starts_with(b":") || !held.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "{held:?}");
    }

    #[test]
    fn what_an_event_means_is_what_is_found_by_hand((name, event) in said(), marker in 0..20_u8) {
        let text = if marker == 0 { " [DONE] ".to_owned() } else { format!(" {event}") };
        for dialect in DIALECTS {
            let chunk = Chunk::read(&dialect.reply, name, &text, &mut OutputCounter::new(None));
            if marker == 0 {
                prop_assert_eq!(chunk, Chunk { done: true, ..Chunk::default() });
                continue;
            }
            let counted = chunk.usage.and_then(|usage| Some((usage.input()?.0, usage.output()?.0)));
            prop_assert_eq!(counted, usage_by_hand(&event), "{}", dialect.path);
            if let Some(meaning) = meaning_by_hand(dialect.path, name, &event) {
                prop_assert_eq!((chunk.done, chunk.error, chunk.seen.any()), meaning, "{}", dialect.path);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(support::fuzz::cases(40)))]

    #[test]
    fn what_is_held_back_is_bounded_and_the_next_event_is_read_again(
        lengths in vec(prop_oneof![0..50_usize, 200_000..600_000_usize], 1..5), size in 500..90_000_usize,
    ) {
        let events: Vec<String> = lengths.iter().map(|length| format!("data: {}\r\n\r\n", "x".repeat(*length))).collect();
        let stream = events.concat();
        let (together, seen, held) = read(&cut(stream.as_bytes(), &[size]), true);
        prop_assert!(together == stream.as_bytes());
        prop_assert!(held <= HELD_MAX, "{held} bytes were held");
        let seen: Vec<usize> = seen.iter().map(|(_, data)| data.len()).collect();
        let small = |lengths: &[usize]| lengths.iter().copied().filter(|length| *length < 250_000).collect::<Vec<_>>();
        prop_assert_eq!(small(&seen), small(&lengths));
    }

    #[test]
    fn a_relayed_stream_and_its_charge_are_the_same_however_it_is_cut(
        events in vec(select(vec![TEXT, COMMENT, STOP, USAGE, DONE]), 0..9), sizes in sizes(),
        line_end in select(vec!["\n", "\r\n", "\r"]), asks in any::<bool>(),
    ) {
        let stream = ([TEXT].iter().chain(&events)).copied().collect::<String>().replace('\n', line_end);
        let whole = relayed(&[stream.as_bytes()], asks);
        let mut expected = String::from(TEXT);
        for event in &events {
            if asks || *event != USAGE {
                expected.push_str(event);
            }
            if *event == DONE {
                break;
            }
        }
        prop_assert!(whole.0.starts_with(&expected.replace('\n', line_end)), "{} not {expected}", whole.0);
        prop_assert_eq!(relayed(&cut(stream.as_bytes(), &sizes), asks), whole);
    }
}

const TEXT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Volga, \"}}]}\n\n";
const COMMENT: &str = ": wait\n\n";
const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":30}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// What a client gets of a stream, how it ends, and what is charged.
fn relayed(chunks: &[&[u8]], asks: bool) -> (String, Option<bool>, i64, u64) {
    let turns = chunks.iter().map(|chunk| Turn::Bytes(chunk.to_vec())).collect();
    let headers = vec![("content-type", "text/event-stream")];
    let mut world = World { upstream: Upstream::Answers { status: 200, headers, turns }, ..World::new() };
    let more = format!(r#","stream":true,"stream_options":{{"include_usage":{asks}}}}}"#);
    let told = world.call("call-1", "plain", &(ASK.strip_suffix('}').unwrap().to_owned() + &more));
    let (spent, open) = world.spent("plain");
    (told.text(), told.closed, spent, open)
}

#[test]
fn a_long_run_finds_no_stream_whose_work_grows_faster_than_its_length() {
    let lines = |unit: &'static str| move |length: usize| unit.repeat(length / unit.len()).into_bytes();
    let push = |size: usize| {
        move |stream: &[u8]| {
            std::hint::black_box(read(&cut(stream, &[size]), true));
        }
    };
    for (unit, size) in [("data\n", 1_000_000), ("x", 7), ("data: x\n", 7), (":\n", 7), ("data\n\n", 7), ("\r\r\n", 1)]
    {
        support::fuzz::assert_linear(&format!("{unit:?} in pieces of {size}"), lines(unit), push(size));
    }
    // Beyond what is held.
    let large = |length: usize| "x".repeat(length * 8).into_bytes();
    support::fuzz::assert_linear("one large event", large, push(64));
}
