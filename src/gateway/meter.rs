//! Watching a stream go by.
//!
//! Invariant: what is relayed is what came in, byte for byte, but for the usage event that we asked for and the client
//! did not, and whatever comes after the end. An end that was not announced is told apart from one that was.

use std::borrow::Cow;

use crate::dialect::elide::Elided;
use crate::dialect::fault::redacted;
use crate::dialect::reply::{Chunk, Completion, NotACompletion, OutputCounter, Seen};
use crate::dialect::rules::{ErrorEvent, ReplyRules};
use crate::dialect::sse::{Frame, Framer, fields};
use crate::dialect::usage::Usage;
use crate::policy::Secret;

/// How many bytes of an answer in JSON are held back: errors are shorter, images longer.
const JUDGED: usize = 4 * 1024;

/// How a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing has come that says what it is.
    Silent,
    /// It is going on.
    Going,
    /// Its terminal event has come.
    Done,
    /// The upstream has sent an error as an event.
    Failed,
}

/// What was seen of a stream so far.
#[derive(Debug)]
pub struct Meter {
    framer: Framer,
    raw: Option<Raw>,
    out: Vec<u8>,
    tally: Tally,
}

/// An answer that is no stream of events, and is relayed as it comes.
#[derive(Debug)]
enum Raw {
    /// JSON, of which all but the long strings is kept. Its beginning is held back, so that a short answer is judged before
    /// anything of it is sent on.
    Json(Elided, Vec<u8>),
    /// Sound, or plain text: nothing in it can be read.
    Opaque,
}

/// All of a meter but the framer, which is borrowed while it shows frames.
#[derive(Debug)]
struct Tally {
    rules: &'static ReplyRules,
    strip: bool,
    candidates: u64,
    stage: Stage,
    usage: Option<Usage>,
    /// The event of nothing but usage has come, or the end of what has no terminal event.
    ended: bool,
    finished: Vec<u64>,
    seen: Seen,
    counter: OutputCounter,
    secret: Option<Secret>,
    stripped: bool,
}

impl Meter {
    /// A meter for a stream of `candidates` answers; `strip` takes the usage event out, and `secret` is what an error must
    /// not repeat.
    #[must_use]
    pub fn new(
        rules: &'static ReplyRules,
        (candidates, strip): (u64, bool),
        counter: OutputCounter,
        secret: Option<Secret>,
    ) -> Self {
        let tally = Tally {
            rules,
            strip,
            candidates,
            stage: Stage::Silent,
            usage: None,
            ended: false,
            finished: Vec::new(),
            seen: Seen::default(),
            counter,
            secret,
            stripped: false,
        };
        Self { framer: Framer::default(), raw: None, out: Vec::new(), tally }
    }

    /// What comes is no stream of events: it is JSON, or else sound or plain text, and whole when its connection ends.
    pub fn expect_raw(&mut self, is_json: bool) {
        self.raw = Some(if is_json { Raw::Json(Elided::default(), Vec::new()) } else { Raw::Opaque });
    }

    /// Whether what comes is no stream of events, so that there is no event to end it with.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.raw.is_some()
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let (tally, out) = (&mut self.tally, &mut self.out);
        let Some(raw) = &mut self.raw else { return self.framer.push(bytes, |frame| tally.take(frame, out)) };
        if let Raw::Json(elided, beginning) = raw {
            elided.push(bytes);
            if tally.stage == Stage::Silent {
                beginning.extend_from_slice(bytes);
                if beginning.len() > JUDGED {
                    tally.pass(beginning, out);
                    *beginning = Vec::new();
                }
                return;
            }
        }
        tally.pass(bytes, out);
    }

    /// Takes the end of the upstream's connection. Whether it ended as a stream does: with its terminal event, or at
    /// least with a reason for every candidate.
    pub fn finish(&mut self) -> bool {
        let (tally, out) = (&mut self.tally, &mut self.out);
        match &mut self.raw {
            Some(Raw::Json(elided, beginning)) => {
                tally.answer(&elided.take());
                // Taken, since the end may be looked at twice.
                let beginning = core::mem::take(beginning);
                if tally.ended {
                    tally.pass(&beginning, out);
                }
            }
            Some(Raw::Opaque) => tally.ended = true,
            None => {}
        }
        self.framer.finish(|frame| {
            let before = out.len();
            tally.take(frame, out);
            // Several clients drop a last event that lacks its blank line.
            if matches!(frame, Frame::Event(_)) && out.len() > before {
                out.extend_from_slice(if frame_ends_line(frame) { b"\n" } else { b"\n\n" });
            }
        });
        self.tally.is_whole()
    }

    /// What is to be sent on now.
    pub fn take_out(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }

    /// Whether anything is to be sent on now.
    #[must_use]
    pub fn has_out(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether the last byte was a CR, to which an LF may still belong.
    #[must_use]
    pub fn may_lack_line_feed(&self) -> bool {
        self.framer.is_after_cr()
    }

    /// Whether the answer is whole: its terminal event has come, or at least a reason for every candidate.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.tally.is_whole()
    }

    /// How an error is told in this stream.
    #[must_use]
    pub fn error_event(&self) -> ErrorEvent {
        self.tally.rules.error_event
    }

    /// How the stream stands.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.tally.stage
    }

    /// The last usage.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.tally.usage
    }

    /// The output so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.tally.seen
    }
}

fn frame_ends_line(frame: Frame<'_>) -> bool {
    matches!(frame, Frame::Event(bytes) if bytes.ends_with(b"\n") || bytes.ends_with(b"\r"))
}

impl Tally {
    fn take(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) {
        if matches!(self.stage, Stage::Done | Stage::Failed) {
            if matches!(frame, Frame::LineFeed(_)) && !core::mem::take(&mut self.stripped) {
                out.extend_from_slice(b"\n");
            }
            return;
        }
        match frame {
            Frame::Comment(bytes) => out.extend_from_slice(bytes),
            Frame::LineFeed(bytes) if !self.stripped => out.extend_from_slice(bytes),
            Frame::LineFeed(_) => {}
            Frame::Oversize(bytes) => {
                self.stage = Stage::Going;
                self.seen.add_unread(bytes.len());
                out.extend_from_slice(bytes);
            }
            Frame::Gist(bytes) => {
                // Its output was seen by its size.
                let seen = self.seen;
                self.event(bytes);
                self.seen = seen;
            }
            Frame::Event(bytes) => {
                self.stripped = self.event(bytes);
                if self.stage == Stage::Failed {
                    out.extend_from_slice(&self.cleaned(bytes));
                } else if !self.stripped {
                    out.extend_from_slice(bytes);
                }
                return;
            }
        }
        self.stripped = false;
    }

    /// Takes bytes that are passed on as they are.
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if !bytes.is_empty() {
            self.stage = Stage::Going;
            self.seen.add_unread(bytes.len());
            out.extend_from_slice(bytes);
        }
    }

    /// Takes a whole answer that has gone by.
    fn answer(&mut self, body: &[u8]) {
        match Completion::read(self.rules, body, &mut self.counter) {
            Ok(completion) => (self.usage, self.ended) = (completion.usage, true),
            Err(NotACompletion::Error) => (self.stage, self.seen) = (Stage::Failed, Seen::default()),
            Err(NotACompletion::Invalid) => {}
        }
    }

    /// Takes an event; whether it is to be left out.
    fn event(&mut self, bytes: &[u8]) -> bool {
        let fields = fields(bytes);
        let Some(data) = fields.data else { return false };
        let chunk = Chunk::read(self.rules, fields.event.as_deref(), &data, &mut self.counter);
        self.usage = match (self.usage, chunk.usage) {
            (Some(before), Some(now)) => Some(before.then(now)),
            (before, now) => now.or(before),
        };
        self.ended |= chunk.usage_only;
        self.seen.add(chunk.seen);
        for candidate in chunk.finished {
            if !self.finished.contains(&candidate) && (self.finished.len() as u64) < self.candidates {
                self.finished.push(candidate);
            }
        }
        self.stage = match (chunk.done, chunk.error) {
            (true, _) => Stage::Done,
            (false, true) => Stage::Failed,
            (false, false) => Stage::Going,
        };
        self.strip && chunk.usage_only
    }

    /// An error as it may be sent on: as it is, unless it names the operator's account or repeats our credential.
    fn cleaned<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let Ok(text) = core::str::from_utf8(bytes) else { return Cow::Borrowed(bytes) };
        let cleaned = redacted(text, self.secret.as_ref().map(|secret| secret.0.as_str()));
        if cleaned == text { Cow::Borrowed(bytes) } else { Cow::Owned(cleaned.into_bytes()) }
    }

    fn is_whole(&self) -> bool {
        self.stage == Stage::Done || self.stage != Stage::Failed && self.has_ended()
    }

    fn has_ended(&self) -> bool {
        self.ended || self.finished.len() as u64 >= self.candidates.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::chat::CHAT;
    use crate::limit::Tokens;

    const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    const TEXT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Volga, \"}}]}\n\n";
    const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":30}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    /// What is relayed of `events`, how it stands, and whether it is whole.
    fn relayed(events: &[&str], strip: bool, size: usize) -> (String, Stage, bool) {
        let mut meter = Meter::new(&CHAT.reply, (1, strip), OutputCounter::new(None), None);
        for chunk in events.concat().as_bytes().chunks(size) {
            meter.push(chunk);
        }
        let whole = meter.finish();
        (String::from_utf8(meter.take_out()).unwrap(), meter.stage(), whole)
    }

    #[test]
    fn the_usage_event_is_left_out_only_if_nobody_asked() {
        let events = [ROLE, TEXT, STOP, USAGE, DONE];
        for size in [1, 7, 10_000] {
            assert_eq!(relayed(&events, false, size), (events.concat(), Stage::Done, true));
            assert_eq!(relayed(&events, true, size), ([ROLE, TEXT, STOP, DONE].concat(), Stage::Done, true));
            let crlf = events.map(|event| event.replace('\n', "\r\n"));
            let want = [0, 1, 2, 4].map(|place: usize| crlf[place].clone()).concat();
            let crlf = crlf.each_ref().map(String::as_str);
            assert_eq!(relayed(&crlf, true, size), (want, Stage::Done, true));
        }
    }

    #[test]
    fn nothing_is_relayed_after_the_end() {
        assert_eq!(relayed(&[TEXT, DONE, TEXT], false, 10_000).0, [TEXT, DONE].concat());
        let error = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n";
        assert_eq!(relayed(&[TEXT, error, DONE], false, 9), ([TEXT, error].concat(), Stage::Failed, false));
    }

    #[test]
    fn an_error_names_no_account_and_no_key() {
        let secret = Some(Secret("hush-1".to_owned()));
        let mut meter = Meter::new(&CHAT.reply, (1, false), OutputCounter::new(None), secret);
        meter.push(b"data: {\"error\":{\"message\":\"org-12 sent hush-1\"}}\n\n");
        let sent_on = String::from_utf8(meter.take_out()).unwrap();
        assert_eq!(sent_on, "data: {\"error\":{\"message\":\"[redacted] sent [redacted]\"}}\n\n");
    }

    #[test]
    fn the_ends_are_told_apart() {
        assert!(!relayed(&[ROLE, TEXT], false, 5).2);
        assert!(relayed(&[ROLE, TEXT, STOP], false, 5).2);
        let mut two = Meter::new(&CHAT.reply, (2, false), OutputCounter::new(None), None);
        two.push(STOP.as_bytes());
        assert!(!two.finish());
    }

    #[test]
    fn a_last_event_gets_the_blank_line_that_it_lacks() {
        for cut in [USAGE.trim_end(), USAGE.strip_suffix('\n').unwrap()] {
            assert_eq!(relayed(&[TEXT, cut], false, 4), ([TEXT, USAGE].concat(), Stage::Going, true));
        }
    }

    #[test]
    fn output_is_seen_without_usage() {
        let mut meter = Meter::new(&CHAT.reply, (1, true), OutputCounter::new(None), None);
        meter.push(ROLE.as_bytes());
        assert!(!meter.seen().any() && meter.stage() == Stage::Going);
        meter.push(TEXT.as_bytes());
        assert_eq!(meter.seen().tokens(), Tokens(3));
        assert_eq!(meter.usage(), None);
        meter.push(USAGE.as_bytes());
        assert_eq!(meter.usage().and_then(|usage| usage.output()), Some(Tokens(30)));
    }
}
