//! Server-sent events, cut at their ends without being rewritten.
//!
//! Invariant: the frames of a stream, put together again, are the stream, byte for byte, whatever the line ends (LF,
//! CR, CRLF, mixed, cut between chunks). Comments come out as soon as their line is complete; an event when its blank
//! line is. What is held back is bounded: of an event beyond the bound the bytes pass, and what it means without its long
//! strings is shown at its end.

use std::borrow::Cow;

use memchr::memchr2;

use super::elide::Elided;

/// The most that is held back of one event, since a Worker has 128 MB for all its streams. The last event of a response
/// carries the whole answer once more: what is larger goes by, and its usage is read from what is kept of it.
const HELD_MAX: usize = 256 * 1024;

/// A piece of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'b> {
    /// Comments, blank lines, fields without data: nothing that a client acts on.
    Comment(&'b [u8]),
    /// A whole event with its blank line.
    Event(&'b [u8]),
    /// Part of an event that is too large to be held.
    Oversize(&'b [u8]),
    /// All of an event that was too large to be held, without its long strings. It has gone by already.
    Gist(&'b [u8]),
    /// The LF of a CRLF whose CR ended the frame before; it goes where that frame went.
    LineFeed(&'b [u8]),
}

/// Cuts a stream into frames.
#[derive(Debug, Default)]
pub struct Framer {
    held: Vec<u8>,
    /// How far `held` has been looked at.
    scanned: usize,
    /// Where the block that is not complete yet begins.
    block: usize,
    /// Bytes of the line that is not complete yet.
    line_len: usize,
    /// The first byte of that line.
    line_first: u8,
    /// The block has a line that is no comment.
    has_fields: bool,
    /// The last byte was a CR: an LF now belongs to it.
    after_cr: bool,
    /// The block is beyond the bound, its beginning has been let through.
    oversize: bool,
    /// What is kept of such a block.
    gist: Elided,
}

impl Framer {
    /// Takes the next bytes and shows every frame that they complete.
    pub fn push(&mut self, chunk: &[u8], mut show: impl FnMut(Frame<'_>)) {
        let mut held = core::mem::take(&mut self.held);
        if held.is_empty() {
            // The usual case, a chunk of whole events, is not copied.
            while self.line(chunk, &mut show) {}
            let rest = chunk.get(self.block..).unwrap_or_default();
            if !self.lets_through(rest, &mut show) {
                self.held = rest.to_vec();
            }
        } else {
            // It grows in place: a large event in many small chunks is not copied for each of them.
            held.extend_from_slice(chunk);
            while self.line(&held, &mut show) {}
            if self.block > 0 {
                held = held.get(self.block..).unwrap_or_default().to_vec();
            }
            if !self.lets_through(&held, &mut show) {
                self.held = held;
            }
        }
        self.block = 0;
        self.scanned = self.held.len();
    }

    /// Shows the beginning of a block that is beyond the bound; whether it did.
    fn lets_through(&mut self, rest: &[u8], show: &mut impl FnMut(Frame<'_>)) -> bool {
        self.oversize |= rest.len() > HELD_MAX;
        if self.oversize && !rest.is_empty() {
            show(Frame::Oversize(rest));
            self.gist.push(rest);
        }
        self.oversize
    }

    /// Whether the last byte was a CR, to which an LF may still belong.
    #[must_use]
    pub fn is_after_cr(&self) -> bool {
        self.after_cr
    }

    /// Shows what is left at the end of the stream: an event that lacks its blank line is still an event.
    pub fn finish(&mut self, mut show: impl FnMut(Frame<'_>)) {
        let rest = core::mem::take(&mut self.held);
        let fields = self.has_fields || (self.line_len > 0 && self.line_first != b':');
        if self.oversize {
            show(Frame::Gist(&self.gist.take()));
        }
        match (rest.is_empty(), fields) {
            (true, _) => {}
            (false, true) => show(Frame::Event(&rest)),
            (false, false) => show(Frame::Comment(&rest)),
        }
        *self = Self::default();
    }

    /// Looks at one more line; false if there is no complete one.
    fn line(&mut self, bytes: &[u8], show: &mut impl FnMut(Frame<'_>)) -> bool {
        let Some(ahead) = bytes.get(self.scanned..).filter(|ahead| !ahead.is_empty()) else { return false };
        if core::mem::take(&mut self.after_cr) && ahead.first() == Some(&b'\n') {
            self.scanned += 1;
            if self.block + 1 == self.scanned && self.line_len == 0 && !self.has_fields {
                show(Frame::LineFeed(bytes.get(self.block..self.scanned).unwrap_or_default()));
                self.block = self.scanned;
            }
            return true;
        }
        if self.line_len == 0 {
            self.line_first = ahead.first().copied().unwrap_or_default();
        }
        let Some(end) = memchr2(b'\n', b'\r', ahead) else {
            self.line_len += ahead.len();
            self.scanned = bytes.len();
            return false;
        };
        self.line_len += end;
        self.scanned += end + 1;
        if ahead.get(end) == Some(&b'\r') {
            match ahead.get(end + 1) {
                Some(b'\n') => self.scanned += 1,
                Some(_) => {}
                None => self.after_cr = true,
            }
        }
        self.line_ended(bytes, show);
        true
    }

    fn line_ended(&mut self, bytes: &[u8], show: &mut impl FnMut(Frame<'_>)) {
        let blank = core::mem::take(&mut self.line_len) == 0;
        let comment = !blank && self.line_first == b':';
        if !blank && !comment {
            self.has_fields = true;
        }
        let block = bytes.get(self.block..self.scanned).unwrap_or_default();
        match (blank, self.has_fields) {
            (true, true) if self.oversize => {
                show(Frame::Oversize(block));
                self.gist.push(block);
                show(Frame::Gist(&self.gist.take()));
            }
            (true, true) => show(Frame::Event(block)),
            (true | false, false) => show(Frame::Comment(block)),
            (false, true) => return,
        }
        self.block = self.scanned;
        if blank {
            self.has_fields = false;
            if core::mem::take(&mut self.oversize) {
                self.gist.take();
            }
        }
    }
}

/// What an event says: its name and its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields<'b> {
    /// The value of the last `event:` line.
    pub event: Option<Cow<'b, str>>,
    /// The `data:` lines, joined by LF; `None` if there is none.
    pub data: Option<Cow<'b, str>>,
}

/// Reads an event's fields. Bytes that are not UTF-8 are read as the replacement character; they are relayed as they
/// are all the same.
#[must_use]
pub fn fields(event: &[u8]) -> Fields<'_> {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    let event = event.strip_prefix(BOM).unwrap_or(event);
    let mut fields = Fields::default();
    for line in event.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let colon = memchr::memchr(b':', line);
        let (name, value) = match colon {
            Some(colon) => (line.get(..colon), line.get(colon + 1..)),
            None => (Some(line), None),
        };
        let value = value.unwrap_or_default();
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match name {
            Some(b"data") => match &mut fields.data {
                None => fields.data = Some(value),
                Some(data) => {
                    let data = data.to_mut();
                    data.push('\n');
                    data.push_str(&value);
                }
            },
            Some(b"event") => fields.event = Some(value),
            _ => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    use super::*;

    /// The frames of `stream` cut into chunks of `size`: the kind and the text of each.
    fn frames(stream: &[u8], size: usize) -> Vec<(char, String)> {
        let mut framer = Framer::default();
        let mut seen = Vec::new();
        let mut show = |frame: Frame<'_>| {
            let (kind, bytes) = match frame {
                Frame::Comment(bytes) => ('c', bytes),
                Frame::Event(bytes) => ('e', bytes),
                Frame::Oversize(bytes) => ('o', bytes),
                Frame::Gist(bytes) => ('g', bytes),
                Frame::LineFeed(bytes) => ('l', bytes),
            };
            seen.push((kind, String::from_utf8_lossy(bytes).into_owned()));
        };
        for chunk in stream.chunks(size) {
            framer.push(chunk, &mut show);
        }
        framer.finish(&mut show);
        seen
    }

    fn owned(frames: &[(char, &str)]) -> Vec<(char, String)> {
        frames.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect()
    }

    #[test]
    fn events_end_at_blank_lines_of_every_kind() {
        let stream = b"data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\r\n";
        let want = [('e', "data: a\n\n"), ('e', "data: b\r\n\r\n"), ('e', "data: c\r\r"), ('e', "data: d\n\r\n")];
        assert_eq!(frames(stream, 1_000), owned(&want));
    }

    #[test]
    fn comments_come_out_line_by_line() {
        let stream = b": wait\n\n:\n\nid: 7\n\ndata: a\n: inside\n\n: b";
        let want = [
            ('c', ": wait\n"),
            ('c', "\n"),
            ('c', ":\n"),
            ('c', "\n"),
            ('e', "id: 7\n\n"),
            ('e', "data: a\n: inside\n\n"),
            ('c', ": b"),
        ];
        assert_eq!(frames(stream, 1_000), owned(&want));
    }

    #[test]
    fn a_last_event_without_its_blank_line_is_an_event() {
        assert_eq!(frames(b"data: a\n\ndata: b", 3), owned(&[('e', "data: a\n\n"), ('e', "data: b")]));
        assert_eq!(frames(b"data: a\n", 3), owned(&[('e', "data: a\n")]));
    }

    #[test]
    fn a_crlf_cut_after_its_cr_does_not_make_a_blank_line() {
        let want = [('e', "data: a\r\n\r"), ('l', "\n"), ('e', "data: b\r\n\r"), ('l', "\n")];
        assert_eq!(frames(b"data: a\r\n\r\ndata: b\r\n\r\n", 1), owned(&want));
    }

    #[test]
    fn an_event_beyond_the_bound_passes_and_the_next_is_read_again() {
        let big = format!("data: {}\n\n", "x".repeat(2 * HELD_MAX));
        let stream = format!("{big}data: b\n\n");
        let seen = frames(stream.as_bytes(), 60_000);
        assert_eq!(seen.last(), Some(&('e', "data: b\n\n".to_owned())));
        let passed = seen.iter().filter(|(kind, _)| *kind != 'g');
        assert_eq!(passed.map(|(_, text)| text.as_str()).collect::<String>(), stream);
        assert_eq!(seen.iter().filter(|(kind, _)| *kind == 'g').count(), 1);
        assert!(seen.iter().filter(|(kind, _)| *kind == 'o').count() > 1);
    }

    #[test]
    fn of_an_event_beyond_the_bound_the_gist_is_told_when_it_has_gone_by() {
        let image = "x".repeat(2 * HELD_MAX);
        let event = format!("event: e\ndata: {{\"image\":\"{image}\",\"usage\":7}}");
        for (size, end) in [(60_000, "\n\n"), (100_000, "\r\n\r\n"), (60_000, "")] {
            let seen = frames(format!("{event}{end}").as_bytes(), size);
            let gists: Vec<_> = seen.iter().filter(|(kind, _)| *kind == 'g').collect();
            let [(_, gist)] = gists[..] else { panic!("{}", gists.len()) };
            assert!(gist.len() < 2_000 && gist.trim_end().ends_with(",\"usage\":7}"), "{gist}");
        }
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        let read = |event: &'static str| {
            let fields = fields(event.as_bytes());
            (fields.event.map(Cow::into_owned), fields.data.map(Cow::into_owned))
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(read("\u{feff}data:a\r\n\r\n"), (None, text("a")));
        assert_eq!(read("event: error\ndata:  {\ndata: }\n\n"), (text("error"), text(" {\n}")));
        assert_eq!(read("data\nid: 3\n\n"), (None, text("")));
        assert_eq!(read(": data: no\n\n"), (None, None));
    }

    proptest! {
        #[test]
        fn frames_put_together_are_the_stream_however_it_is_cut(
            parts in prop::collection::vec("(data: ?[a-z]{0,3}|: c|event: e|\n|\r|\r\n|é)", 0..40), size in 1_usize..20,
        ) {
            let stream = parts.concat().into_bytes();
            let mut framer = Framer::default();
            let mut together = Vec::new();
            let mut events = Vec::new();
            let mut show = |frame: Frame<'_>| match frame {
                Frame::Event(bytes) => {
                    together.extend_from_slice(bytes);
                    events.push(fields(bytes).data.map(Cow::into_owned));
                }
                Frame::Comment(bytes) | Frame::Oversize(bytes) | Frame::LineFeed(bytes) => {
                    together.extend_from_slice(bytes);
                }
                Frame::Gist(_) => {}
            };
            for chunk in stream.chunks(size) {
                framer.push(chunk, &mut show);
            }
            framer.finish(&mut show);
            prop_assert_eq!(&together, &stream);
            let mut whole = Vec::new();
            let mut framer = Framer::default();
            let mut show = |frame: Frame<'_>| {
                if let Frame::Event(bytes) = frame {
                    whole.push(fields(bytes).data.map(Cow::into_owned));
                }
            };
            framer.push(&stream, &mut show);
            framer.finish(&mut show);
            prop_assert_eq!(events, whole);
        }
    }
}
