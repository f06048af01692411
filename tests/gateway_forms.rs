//! Routes that take files, with everything outside of the call in memory: what is held and charged, which bytes go
//! upstream, and which forms do not.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use support::form::{Form, KIND};
use support::media::{answers, became, events, fault_in, json_answer, post, world};
use support::stream::Turn;
use support::world::{Told, Upstream, World};

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod flow;
    pub(crate) mod form;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod media;
    pub(crate) mod policy;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
const EDITS: &str = "/v1/images/edits";
/// Nine seconds and a begun one at the least: 10 s.
const SOUND: usize = 9_000;

fn sound(model: &str) -> Form {
    Form::default().file("file", "a.mp3", SOUND).text("model", model)
}

fn ask(world: &mut World, path: &str, form: &Form) -> Told {
    post(world, path, KIND, &form.end())
}

/// What becomes of a transcription.
fn transcribed(upstream: Upstream, form: &Form) -> (String, Told) {
    let mut world = world(upstream);
    let told = ask(&mut world, TRANSCRIPTIONS, form);
    assert_eq!(world.sent.borrow()[0].url, format!("https://up.test{TRANSCRIPTIONS}"));
    (became(&world, &told), told)
}

#[test]
fn a_form_goes_upstream_byte_for_byte_with_its_boundary() {
    for path in [TRANSCRIPTIONS, "/v1/audio/translations"] {
        for form in [sound("scribe"), Form::default().text("model", "scribe").file("file", "\u{e9}.wav", SOUND)] {
            let mut world = world(json_answer(r#"{"text":"Volga","usage":{"type":"duration","seconds":4}}"#));
            let told = ask(&mut world, path, &form);
            assert_eq!(became(&world, &told), "200, held 1000000, settle exact 400000");
            let sent = world.sent.borrow();
            assert!(*sent[0].body == form.end() && sent[0].content_type == KIND);
        }
    }
}

#[test]
fn an_alias_is_sent_under_the_real_name() {
    let mut world = world(json_answer(r#"{"text":"Volga","usage":{"type":"duration","seconds":4}}"#));
    let form = |model: &str| sound(model).text("language", "en").text("prompt", "ear");
    let told = ask(&mut world, TRANSCRIPTIONS, &form("ear"));
    assert_eq!(became(&world, &told), "200, held 1000000, settle exact 400000");
    assert!(*world.sent.borrow()[0].body == form("scribe").end());
}

#[test]
fn a_transcript_is_charged_by_what_is_known_of_it() {
    // By the minute: the usage, the duration, or all that the file can be.
    let shapes = [
        (r#"{"text":"Volga","usage":{"type":"duration","seconds":4.5}}"#, "settle exact 450000"),
        (r#"{"task":"transcribe","duration":4.25,"text":"Volga"}"#, "settle exact 425000"),
        (r#"{"task":"transcribe","duration":"4.250000","text":"Volga"}"#, "settle exact 425000"),
        (r#"{"text":"Volga"}"#, "settle at least 1000000"),
        (r#"{"text":"Volga","usage":{"input_tokens":0,"output_tokens":0}}"#, "settle at least 1000000"),
        // 45 tokens of sound are 4.5 seconds.
        (r#"{"text":"Volga","usage":{"type":"tokens","input_tokens":45,"output_tokens":9}}"#, "settle at least 450000"),
    ];
    for (answer, want) in shapes {
        let (became, told) = transcribed(json_answer(answer), &sound("scribe"));
        assert_eq!((became, told.text()), (format!("200, held 1000000, {want}"), answer.to_owned()));
    }
    // By tokens: 100 of sound at 5, and 500 at 10.
    let shapes = [
        (
            r#"{"text":"Volga","usage":{"type":"tokens","input_tokens":50,"input_token_details":{"text_tokens":5,"audio_tokens":45},"output_tokens":9,"total_tokens":59}}"#,
            "settle exact 320000",
        ),
        // Nothing is said by zeros. "Volga" is two tokens, by its bytes.
        (r#"{"text":"Volga","usage":{"input_tokens":0,"output_tokens":0}}"#, "settle at least 520000"),
        (r#"{"text":"Volga"}"#, "settle at least 520000"),
        (r#"{"text":"Volga","usage":{"type":"duration","seconds":4.5}}"#, "settle at least 5225000"),
    ];
    for (answer, want) in shapes {
        let (became, _) = transcribed(json_answer(answer), &sound("hearer"));
        assert_eq!(became, format!("200, held 5500000, {want}"), "{answer}");
    }
    let (became, _) = transcribed(json_answer(r#"{"texts":[]}"#), &sound("hearer"));
    assert_eq!(became, "502 upstream_invalid, held 5500000, release");
}

#[test]
fn texts_and_subtitles_are_relayed_as_they_come_and_charged_all_that_the_file_can_be() {
    for kind in ["text/plain; charset=utf-8", "text/vtt", "application/x-subrip"] {
        let upstream = || answers(kind, vec![Turn::text("Volga, "), Turn::text("Niger\n")]);
        let (became, told) = transcribed(upstream(), &sound("scribe").text("response_format", "srt"));
        assert_eq!(became, "200, held 1000000, settle at least 1000000");
        assert_eq!((told.text().as_str(), told.closed), ("Volga, Niger\n", Some(true)));
        // 100 tokens of sound, and 13 bytes of text.
        let (became, _) = transcribed(upstream(), &sound("hearer"));
        assert_eq!(became, "200, held 5500000, settle at least 550000");
    }
    let (became, told) = transcribed(answers("text/plain", vec![Turn::text("Vol"), Turn::Break]), &sound("scribe"));
    assert_eq!((became.as_str(), told.closed), ("200, held 1000000, settle at least 1000000", Some(false)));
    let (became, _) = transcribed(answers("text/html", vec![Turn::text("<html>")]), &sound("scribe"));
    assert_eq!(became, "502 upstream_invalid, held 1000000, release");
}

#[test]
fn a_stream_of_a_transcript_ends_with_its_usage() {
    let delta = r#"{"type":"transcript.text.delta","delta":"Volga"}"#;
    let done = r#"{"type":"transcript.text.done","text":"Volga","usage":{"type":"tokens","input_tokens":50,"input_token_details":{"audio_tokens":45},"output_tokens":9}}"#;
    let form = sound("hearer").text("stream", "true");
    let (became, told) = transcribed(events(&[delta, done]), &form);
    assert_eq!((became.as_str(), told.closed), ("200, held 5500000, settle exact 320000", Some(true)));
    let (became, told) = transcribed(events(&[delta]), &form);
    assert_eq!(became, "200, held 5500000, settle at least 520000");
    assert!(told.text().contains("upstream_invalid"));
}

#[test]
fn images_that_are_changed_count_by_their_number() {
    let form = Form::default()
        .file("image[]", "a.png", 5_000)
        .file("image[]", "b.png", 5_000)
        .file("mask", "m.png", 9)
        .text("model", "image")
        .text("prompt", "A river")
        .text("n", "2");
    let answer = concat!(
        r#"{"data":[{"b64_json":"AAAA"}],"usage":{"input_tokens":910,"#,
        r#""input_tokens_details":{"text_tokens":10,"image_tokens":900},"output_tokens":400,"total_tokens":1310}}"#
    );
    let mut edited = world(json_answer(answer));
    let told = ask(&mut edited, EDITS, &form);
    // Three times 8,369 of images and 7 of words at 2; twice a thousand at 10.
    assert_eq!(became(&edited, &told), "200, held 70228000, settle exact 5810000");
    assert!(*edited.sent.borrow()[0].body == form.end());
    let done = format!(r#"{{"type":"image_edit.completed","b64_json":"AAAA",{}"#, answer.split_once("}],").unwrap().1);
    let form = Form::default().file("image", "a.png", 9).text("model", "image").text("prompt", "x");
    let mut streamed = world(events(&[&done]));
    let told = ask(&mut streamed, EDITS, &form.text("stream", "true").text("partial_images", "1"));
    assert_eq!(became(&streamed, &told), "200, held 27740000, settle exact 5810000");
}

#[test]
fn a_form_that_others_could_read_otherwise_is_refused_and_the_field_named() {
    let edit = || Form::default().file("image", "a.png", 9).text("model", "image").text("prompt", "x");
    let cases = [
        (TRANSCRIPTIONS, sound("scribe").text("model", "dearer"), "model"),
        (TRANSCRIPTIONS, sound("scribe").text("Model", "dearer"), "Model"),
        (TRANSCRIPTIONS, sound("scribe").text("model[]", "dearer"), "model[]"),
        (TRANSCRIPTIONS, sound("scribe").file("model", "dearer", 9), "model"),
        (TRANSCRIPTIONS, sound("scribe").file("file", "b.mp3", 9), "file"),
        (TRANSCRIPTIONS, sound("scribe").text("file", "x"), "file"),
        (TRANSCRIPTIONS, sound("scribe").text("stream", "True"), "stream"),
        (TRANSCRIPTIONS, sound("scribe").text("stream", "false").text("stream", "true"), "stream"),
        (TRANSCRIPTIONS, sound("scribe").text("url", "https://a.test/long.mp3"), "url"),
        (TRANSCRIPTIONS, sound("scribe").text("file_id", "file-1"), "file_id"),
        (TRANSCRIPTIONS, sound("scribe").text("provider[order]", "dearer"), "provider[order]"),
        (TRANSCRIPTIONS, sound(""), "model"),
        (TRANSCRIPTIONS, sound("voice"), "model"),
        (TRANSCRIPTIONS, Form::default().text("model", "scribe"), "file"),
        (TRANSCRIPTIONS, Form::default().file("file", "a.mp3", 9), "model"),
        (EDITS, edit().text("n", "1").text("n", "9"), "n"),
        (EDITS, edit().text("n", "02"), "n"),
        (EDITS, edit().text("n", "1 "), "n"),
        (EDITS, edit().text("n", "0"), "n"),
        (EDITS, edit().text("n[]", "9"), "n[]"),
        (EDITS, edit().text("N", "9"), "N"),
        (EDITS, edit().text("svg[model]", "dearer"), "svg[model]"),
        (EDITS, edit().text("output_format", "gif"), "output_format"),
        (EDITS, edit().text("n", "2").text("stream", "true"), "n"),
        (EDITS, edit().file("image", "b.png", 9), "image"),
        (EDITS, Form::default().file("image", "a.png", 9).text("model", "image"), "prompt"),
        (EDITS, sound("image").text("prompt", "x"), "file"),
        (EDITS, edit().part("Content-Disposition: form-data; name=\"model\"; filename*=utf-8''x", b"dearer"), ""),
        (EDITS, edit().part("Content-Disposition: form-data; name=\"mod\\el\"", b"dearer"), ""),
        (
            EDITS,
            edit().part("Content-Disposition: form-data; name=\"n\"\r\nContent-Type: text/plain; charset=utf-7", b"9"),
            "n",
        ),
        (EDITS, edit().text("style", "\r\n--tollgate\r\n"), ""),
    ];
    for (path, form, param) in cases {
        let mut world = world(json_answer("{}"));
        let told = ask(&mut world, path, &form);
        let shown = form.end().escape_ascii().to_string();
        assert_eq!((told.status, fault_in(&told).as_str(), world.sent.borrow().len()), (400, param, 0), "{shown}");
        assert_eq!(world.count("reserve"), 0);
    }
    for kind in ["application/json", "multipart/form-data", "multipart/form-data; boundary=other", ""] {
        let mut world = world(json_answer("{}"));
        let told = post(&mut world, TRANSCRIPTIONS, kind, &sound("scribe").end());
        assert_eq!((told.status, world.sent.borrow().len()), (400, 0), "{kind}");
    }
    let mut world = world(json_answer("{}"));
    let told = ask(&mut world, TRANSCRIPTIONS, &sound("unknown"));
    assert_eq!(told.code(), "model_not_found");
    let large = Form::default().file("file", "a.mp3", 100_000).text("model", "scribe");
    assert_eq!(ask(&mut world, TRANSCRIPTIONS, &large).status, 413);
}
