//! Cuts a text into the pieces that are encoded one by one.
//!
//! Invariant: the pieces are the matches of the encoding's published regular expression, one after
//! the other without a gap, and each holds at least one character. Nothing looks further back than
//! the start of its piece, so a rest of a text that starts with a piece is cut as a text of its own.
//! Every rule is one forward pass: no input makes it return to a character more than twice.

use super::super::Encoding;
use super::classes::{BLANK, LOWER, MARK, NEWLINE, NUMBER, OTHER, REST, UPPER, class_at};

const LETTER: u8 = UPPER | LOWER | OTHER;
const SPACE: u8 = NEWLINE | BLANK;
/// What may stand in the first half of a word of `o200k_base`.
const HEAD: u8 = UPPER | OTHER | MARK;
/// What may stand in its second half. The halves overlap; see [`word`].
const TAIL: u8 = LOWER | OTHER | MARK;
/// What is neither white space, letter, nor number.
const SIGN: u8 = REST | MARK;

/// The end of the piece that starts at `at`, which is before the end of the text.
#[inline]
pub(super) fn piece_end(encoding: Encoding, text: &[u8], at: usize) -> usize {
    match encoding {
        Encoding::O200k => o200k(text, at),
        Encoding::Cl100k => cl100k(text, at),
    }
}

fn o200k(text: &[u8], at: usize) -> usize {
    let (class, width) = class_at(text, at);
    if class & LETTER != 0 {
        return contraction(text, word(text, at).end);
    }
    let next = at + width;
    if class & (NEWLINE | NUMBER) == 0 {
        // The character may be the prefix of a word.
        let word = word(text, next);
        if word.has_tail || (word.end > next && class != MARK) {
            return contraction(text, word.end);
        }
        // A mark is both prefix and letter: a word without a tail after it loses to the mark alone.
        if class == MARK {
            return contraction(text, next);
        }
    }
    if class == NUMBER {
        return number(text, next);
    }
    signs(text, at, b"\r\n/").unwrap_or_else(|| o200k_space(text, at))
}

fn cl100k(text: &[u8], at: usize) -> usize {
    let (class, width) = class_at(text, at);
    let next = at + width;
    if class & LETTER != 0 {
        return run(text, next, LETTER);
    }
    let contraction = contraction(text, at);
    if contraction > at {
        return contraction;
    }
    if class == NUMBER {
        return number(text, next);
    }
    if class != NEWLINE {
        let word = run(text, next, LETTER);
        if word > next {
            return word;
        }
    }
    signs(text, at, b"\r\n").unwrap_or_else(|| cl100k_space(text, at))
}

/// A word of `o200k_base`: characters of [`HEAD`], then characters of [`TAIL`].
struct Word {
    end: usize,
    /// Whether at least one character is taken as tail, which the first form of a word demands.
    has_tail: bool,
}

/// The longest word from `at`, in its first form if that matches, else in its second.
///
/// Heads are taken greedily. If no tail follows them the first form hands characters back until
/// one of them can be the tail; whatever stood behind that one could not, so the word ends there.
fn word(text: &[u8], at: usize) -> Word {
    let mut end = at;
    let mut last_either = None;
    loop {
        let (class, width) = class_at(text, end);
        if class & HEAD == 0 {
            break;
        }
        end += width;
        if class & TAIL != 0 {
            last_either = Some(end);
        }
    }
    let tail = run(text, end, LOWER);
    if tail > end {
        return Word { end: run(text, tail, TAIL), has_tail: true };
    }
    Word { end: last_either.unwrap_or(end), has_tail: last_either.is_some() }
}

/// The end of the run of characters of `set` from `at`.
#[inline]
fn run(text: &[u8], mut at: usize, set: u8) -> usize {
    loop {
        let (class, width) = class_at(text, at);
        if class & set == 0 {
            return at;
        }
        at += width;
    }
}

/// The end of the contraction at `at` ('s, 't, 're, 've, 'm, 'll, 'd in any case), or `at`.
#[inline]
fn contraction(text: &[u8], at: usize) -> usize {
    if text.get(at) != Some(&b'\'') {
        return at;
    }
    let letter = |offset: usize| text.get(at + offset).map(u8::to_ascii_lowercase);
    match (letter(1), letter(2)) {
        (Some(b's' | b't' | b'm' | b'd'), _) => at + 2,
        // The last of these is the long s, U+017F, an s where case does not matter.
        (Some(b'r' | b'v'), Some(b'e')) | (Some(b'l'), Some(b'l')) | (Some(0xC5), Some(0xBF)) => at + 3,
        _ => at,
    }
}

/// Up to three numbers, the first of which ends at `at`.
fn number(text: &[u8], mut at: usize) -> usize {
    for _ in 0..2 {
        let (class, width) = class_at(text, at);
        if class != NUMBER {
            break;
        }
        at += width;
    }
    at
}

/// A run of signs, perhaps after one blank, and the bytes of `closing` behind it.
fn signs(text: &[u8], at: usize, closing: &[u8]) -> Option<usize> {
    let from = at + usize::from(text.get(at) == Some(&b' '));
    let end = run(text, from, SIGN);
    if end == from {
        return None;
    }
    let rest = text.get(end..).unwrap_or_default();
    let closed = rest.iter().take_while(|byte| closing.contains(byte)).count();
    Some(end + closed)
}

/// A run of white space as the two encodings see it.
struct Spaces {
    end: usize,
    /// Where its last character starts.
    last: usize,
    /// The end of its last newline.
    newline: Option<usize>,
}

impl Spaces {
    /// The run from `at` without its last character, unless that is all there is.
    fn all_but_last(&self, at: usize) -> usize {
        if self.last == at { self.end } else { self.last }
    }
}

fn spaces(text: &[u8], at: usize) -> Spaces {
    let mut found = Spaces { end: at, last: at, newline: None };
    loop {
        let (class, width) = class_at(text, found.end);
        if class & SPACE == 0 {
            return found;
        }
        found.last = found.end;
        found.end += width;
        if class == NEWLINE {
            found.newline = Some(found.end);
        }
    }
}

/// Up to the last newline; without one all of it, less the last character if more text follows.
fn o200k_space(text: &[u8], at: usize) -> usize {
    let found = spaces(text, at);
    if found.end == text.len() {
        return found.newline.unwrap_or(found.end);
    }
    found.newline.unwrap_or(found.all_but_last(at))
}

/// The same, except that at the end of the text the whole run comes first.
fn cl100k_space(text: &[u8], at: usize) -> usize {
    let found = spaces(text, at);
    if found.end == text.len() {
        return found.end;
    }
    found.newline.unwrap_or(found.all_but_last(at))
}
