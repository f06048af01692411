//! Routes that judge, draw and speak, with everything outside of the call in memory: what is held, what is charged, and
//! that the bytes are the upstream's.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use support::media::{answers, became, events, fault_in, json_answer, post, world};
use support::stream::Turn;
use support::world::{Told, World};

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod flow;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod media;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

const MODERATIONS: &str = "/v1/moderations";
const JSON: &str = "application/json";

fn sent(world: &World) -> String {
    String::from_utf8(world.sent.borrow()[0].body.to_vec()).unwrap()
}

fn ask(world: &mut World, path: &str, body: &str) -> Told {
    post(world, path, JSON, body.as_bytes())
}

#[test]
fn a_moderation_is_charged_what_it_reads() {
    const ANSWER: &str = r#"{"id":"modr-1","model":"omni-moderation-latest","results":[{"flagged":false}]} "#;
    let image =
        format!(r#"[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{}"}}}}]"#, "A".repeat(900));
    // A token a byte; the type of a part is counted with it.
    for (input, tokens) in [(r#""A river?""#, 8), (r#"["One","Two"]"#, 6), (image.as_str(), 500 + 9)] {
        let mut world = world(json_answer(ANSWER));
        let told = ask(&mut world, MODERATIONS, &format!(r#"{{"input":{input}}}"#));
        assert_eq!(became(&world, &told), format!("200, held {0}, settle exact {0}", tokens * 1_000), "{input}");
        assert_eq!(told.text(), ANSWER);
        // The model that it is priced by is named, whatever the provider's default is.
        assert_eq!(sent(&world), format!(r#"{{"model":"judge","input":{input}}}"#));
    }
    let mut world = world(json_answer("{}"));
    let told = ask(&mut world, MODERATIONS, r#"{"input":"x","model":"omni-moderation-latest"}"#);
    assert_eq!(became(&world, &told), "502 upstream_invalid, held 1000, release");
}

const GENERATIONS: &str = "/v1/images/generations";
/// 10 tokens of words in, 400 of an image out.
const IMAGE_USAGE: &str = concat!(
    r#""usage":{"input_tokens":10,"input_tokens_details":{"text_tokens":10,"image_tokens":0},"#,
    r#""output_tokens":400,"total_tokens":410}"#
);

fn image_answer(image: &str, usage: &str) -> String {
    let comma = if usage.is_empty() { "" } else { "," };
    format!(r#"{{"created":1,"data":[{{"b64_json":"{image}"}}]{comma}{usage}}}"#)
}

/// A chunked answer in pieces of this size.
fn chunked(body: &str, size: usize) -> Vec<Turn> {
    body.as_bytes().chunks(size).map(|piece| Turn::Bytes(piece.to_vec())).collect()
}

#[test]
fn images_are_held_for_all_that_the_model_draws_and_charged_by_their_tokens() {
    let body = r#"{"model":"image","prompt":"A river","n":2,"size":"1536x1024","quality":"high"}"#;
    // 7 tokens of words, and twice a thousand of an image at 10.
    let want = "200, held 20007000, settle exact 4010000";
    let answer = image_answer(&"A".repeat(20_000), IMAGE_USAGE);
    let mut whole = world(json_answer(&answer));
    let told = ask(&mut whole, GENERATIONS, body);
    assert_eq!((became(&whole, &told).as_str(), told.text(), told.closed), (want, answer, None));
    assert_eq!(sent(&whole), body);
    // One that does not say how long it is is relayed as it comes.
    let answer = image_answer(&"A".repeat(3_000_000), IMAGE_USAGE);
    let mut relayed = world(answers(JSON, chunked(&answer, 50_000)));
    let told = ask(&mut relayed, GENERATIONS, body);
    assert_eq!((became(&relayed, &told).as_str(), told.text(), told.closed), (want, answer, Some(true)));
    assert_eq!(told.header("content-type"), Some(JSON));
}

#[test]
fn images_without_usage_are_charged_by_their_number() {
    let body = r#"{"model":"picture","prompt":"A river","n":3}"#;
    let answer = image_answer("AAAA", "");
    let zeros = image_answer("AAAA", r#""usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}"#);
    let mut zero = world(json_answer(&zeros));
    let told = ask(&mut zero, GENERATIONS, body);
    assert_eq!(became(&zero, &told), "200, held 120000000, settle exact 120000000");
    for upstream in [json_answer(&answer), answers(JSON, chunked(&answer, 9))] {
        let mut world = world(upstream);
        let told = ask(&mut world, GENERATIONS, body);
        assert_eq!(became(&world, &told), "200, held 120000000, settle exact 120000000");
        assert_eq!(told.text(), answer);
    }
    // A model of tokens that does not say how many: all that it can draw.
    let mut world = world(json_answer(&answer));
    let told = ask(&mut world, GENERATIONS, r#"{"model":"image","prompt":"A river"}"#);
    assert_eq!(became(&world, &told), "200, held 10007000, settle at least 10007000");
}

#[test]
fn a_stream_of_images_ends_with_its_usage_however_large_its_events_are() {
    let body = r#"{"model":"image","prompt":"A river","stream":true,"partial_images":2}"#;
    for size in [10, 6_000_000] {
        let image = "A".repeat(size);
        let partial = format!(r#"{{"type":"image_generation.partial_image","b64_json":"{image}"}}"#);
        let done = format!(r#"{{"type":"image_generation.completed","b64_json":"{image}",{IMAGE_USAGE}}}"#);
        let stream: Vec<_> = [&partial, &partial, &done].map(|event| format!("data: {event}\n\n")).concat().into();
        let turns = stream.chunks(60_000).map(|piece| Turn::Bytes(piece.to_vec())).collect();
        let mut whole = world(answers("text/event-stream", turns));
        let told = ask(&mut whole, GENERATIONS, body);
        // Each partial image may be 100 tokens more.
        assert_eq!(became(&whole, &told), "200, held 12007000, settle exact 4010000");
        assert!(told.body == stream && told.closed == Some(true));
        let mut broken = world(events(&[&partial]));
        let told = ask(&mut broken, GENERATIONS, body);
        assert_eq!(became(&broken, &told), "200, held 12007000, settle at least 12007000");
        assert!(told.text().contains("upstream_invalid"), "a stream that breaks off says so");
    }
}

#[test]
fn images_that_break_off_are_charged_and_do_not_end_cleanly() {
    let half = image_answer(&"A".repeat(9_000), "").replace("A\"}]}", "");
    for end in [vec![], vec![Turn::Break], vec![Turn::Silence(6_000)]] {
        let mut world = world(answers(JSON, [vec![Turn::text(&half)], end].concat()));
        let told = ask(&mut world, GENERATIONS, r#"{"model":"picture","prompt":"A river"}"#);
        assert_eq!(became(&world, &told), "200, held 40000000, settle at least 40000000");
        assert_eq!((told.text(), told.closed), (half.clone(), Some(false)));
    }
    // A short answer is judged before anything of it is sent on.
    for (answer, code) in [
        (r#"{"error":{"message":"no"}}"#, "upstream_failed"),
        (r#"{"data":[{"b64"#, "upstream_invalid"),
        ("", "upstream_invalid"),
    ] {
        let mut world = world(answers(JSON, chunked(answer, 7)));
        let told = ask(&mut world, GENERATIONS, r#"{"model":"picture","prompt":"A river"}"#);
        assert_eq!(became(&world, &told), format!("502 {code}, held 40000000, release"));
    }
}

#[test]
fn what_has_no_price_or_no_bound_is_not_drawn() {
    for (body, param) in [
        (r#"{"model":"alpha","prompt":"x"}"#, "model"),
        (r#"{"model":"voice","prompt":"x"}"#, "model"),
        (r#"{"prompt":"x"}"#, "model"),
        (r#"{"model":"image"}"#, "prompt"),
        (r#"{"model":"image","prompt":"x","n":0}"#, "n"),
        (r#"{"model":"image","prompt":"x","n":9}"#, "n"),
        (r#"{"model":"image","prompt":"x","n":1,"N":5}"#, "N"),
        (r#"{"model":"image","prompt":"x","n":2,"stream":true}"#, "n"),
        (r#"{"model":"image","prompt":"x","stream":true,"partial_images":4}"#, "partial_images"),
        (r#"{"model":"image","prompt":"x","size":"a","size":"b"}"#, "size"),
        (r#"{"model":"image","prompt":"x","output_format":"svg"}"#, "output_format"),
        (r#"{"model":"image","prompt":"x","output_format":"gif"}"#, "output_format"),
        (r#"{"model":"image","prompt":"x","svg":{"model":"dearer"}}"#, "svg"),
        (r#"{"model":"image","prompt":"x","frame_count":16}"#, "frame_count"),
        (r#"{"model":"image","prompt":"x","image_url":"https://a.test/b.png"}"#, "image_url"),
    ] {
        let mut world = world(json_answer("{}"));
        let told = ask(&mut world, GENERATIONS, body);
        assert_eq!((told.status, fault_in(&told).as_str(), world.sent.borrow().len()), (400, param, 0), "{body}");
    }
}

const SPEECH: &str = "/v1/audio/speech";
const SOUND: &str = "audio/mpeg";

#[test]
fn speech_is_relayed_as_it_comes_and_charged_by_the_character() {
    let sound: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    let turns = sound.chunks(999).map(|piece| Turn::Bytes(piece.to_vec())).collect();
    let mut world = world(answers(SOUND, turns));
    // Five characters, nine bytes.
    let told = ask(&mut world, SPEECH, r#"{"model":"voice","input":"\u00e9\ud83d\ude00abc","voice":"alloy"}"#);
    assert_eq!(became(&world, &told), "200, held 75000, settle exact 75000");
    assert!(told.body == sound && told.closed == Some(true));
    assert_eq!(told.header("content-type"), Some(SOUND));
}

#[test]
fn sound_that_breaks_off_is_charged_and_does_not_end_cleanly() {
    let body = r#"{"model":"voice","input":"abc"}"#;
    for end in [Turn::Break, Turn::Silence(6_000)] {
        let mut broken = world(answers(SOUND, vec![Turn::text("ID3"), end.clone()]));
        let told = ask(&mut broken, SPEECH, body);
        assert_eq!(became(&broken, &told), "200, held 45000, settle at least 45000");
        assert_eq!((told.text().as_str(), told.closed), ("ID3", Some(false)));
        assert_eq!(broken.log.borrow()[0]["verdict"], "upstream_broke_off");
        let mut silent = world(answers(SOUND, vec![end, Turn::Silence(9_000)]));
        let told = ask(&mut silent, SPEECH, body);
        assert!(told.status >= 502 && became(&silent, &told).ends_with("held 45000, release"), "{told:?}");
    }
    let mut left = world(answers(SOUND, vec![Turn::text("ID3"), Turn::ClientLeaves]));
    let told = ask(&mut left, SPEECH, body);
    assert_eq!(became(&left, &told), "200, held 45000, settle at least 45000");
    for kind in ["text/html", JSON, "text/plain", "audiovisual"] {
        let mut world = world(answers(kind, vec![Turn::text("{}")]));
        let told = ask(&mut world, SPEECH, body);
        assert_eq!(became(&world, &told), "502 upstream_invalid, held 45000, release", "{kind}");
    }
}

#[test]
fn speech_is_charged_by_its_tokens_where_it_says_them_or_has_no_other_price() {
    let done = r#"{"type":"speech.audio.done","usage":{"input_tokens":4,"output_tokens":50,"total_tokens":54}}"#;
    let stream = [r#"{"type":"speech.audio.delta","audio":"AAAA"}"#, done];
    let events_of = |model: &str| format!(r#"{{"model":"{model}","input":"abc","stream_format":"sse"}}"#);
    for (model, want) in [
        ("speaker", "200, held 10003000, settle exact 504000"),
        ("either", "200, held 10003000, settle exact 504000"),
        ("voice", "200, held 45000, settle exact 45000"),
    ] {
        let mut world = world(events(&stream));
        let told = ask(&mut world, SPEECH, &events_of(model));
        assert_eq!(became(&world, &told), want, "{model}");
    }
    for (model, want) in
        [("speaker", "200, held 10003000, settle at least 10003000"), ("either", "200, held 45000, settle exact 45000")]
    {
        let mut world = world(answers(SOUND, vec![Turn::text("ID3")]));
        let told = ask(&mut world, SPEECH, &format!(r#"{{"model":"{model}","input":"abc"}}"#));
        assert_eq!(became(&world, &told), want, "{model}");
    }
}

#[test]
fn what_cannot_be_spoken_is_refused() {
    let (longest, longer) = ("\u{e9}".repeat(4_096), "\u{e9}".repeat(4_097));
    let mut most = world(answers(SOUND, vec![Turn::text("ID3")]));
    let told = ask(&mut most, SPEECH, &format!(r#"{{"model":"voice","input":"{longest}"}}"#));
    assert_eq!(became(&most, &told), "200, held 61440000, settle exact 61440000");
    for (body, param) in [
        (format!(r#"{{"model":"voice","input":"{longer}"}}"#), "input"),
        (r#"{"model":"voice"}"#.to_owned(), "input"),
        (r#"{"model":"voice","input":["a"]}"#.to_owned(), "input"),
        (r#"{"model":"alpha","input":"a"}"#.to_owned(), "model"),
        (r#"{"model":"voice","input":"a","stream_format":"wav"}"#.to_owned(), "stream_format"),
        (r#"{"model":"voice","input":"a","stream_format":"sse","stream_format":"audio"}"#.to_owned(), "stream_format"),
    ] {
        let mut world = world(answers(SOUND, vec![Turn::text("ID3")]));
        let told = ask(&mut world, SPEECH, &body);
        assert_eq!((told.status, fault_in(&told).as_str(), world.sent.borrow().len()), (400, param, 0), "{body}");
    }
}
