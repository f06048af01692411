//! The class of a character, as far as cutting text into pieces is concerned.
//!
//! Invariant: classes are single bits, so that a set of classes is one byte and membership one
//! test; the end of the text has no class and so belongs to no set. The table is Unicode 16, the
//! version of tiktoken's own regular expressions; `tests/vocabulary/classes.rs` writes it.

/// Punctuation, symbols, controls, unassigned: what no other class takes.
pub(super) const REST: u8 = 1;
/// Upper-case and title-case letters.
pub(super) const UPPER: u8 = 1 << 1;
/// Lower-case letters.
pub(super) const LOWER: u8 = 1 << 2;
/// Letters without case, and modifiers.
pub(super) const OTHER: u8 = 1 << 3;
/// Combining marks.
pub(super) const MARK: u8 = 1 << 4;
/// Numbers of every kind.
pub(super) const NUMBER: u8 = 1 << 5;
/// Carriage return and line feed.
pub(super) const NEWLINE: u8 = 1 << 6;
/// All other white space.
pub(super) const BLANK: u8 = 1 << 7;

/// Code points per block of the table.
const BLOCK: usize = 128;
/// Blocks that the table covers; beyond them everything is [`REST`].
const BLOCKS: usize = 0xE_0200 / BLOCK;
/// One block number per block, then the distinct blocks at two code points per byte.
const TABLE: &[u8] = include_bytes!("../data/classes.bin");

#[expect(clippy::indexing_slicing, reason = "evaluated while compiling, where a bad index is an error")]
const ASCII: [u8; 128] = {
    let mut table = [REST; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'A'..=b'Z' => UPPER,
            b'a'..=b'z' => LOWER,
            b'0'..=b'9' => NUMBER,
            b'\r' | b'\n' => NEWLINE,
            b'\t' | 0x0B | 0x0C | b' ' => BLANK,
            _ => REST,
        };
        byte += 1u8;
    }
    table
};

/// The class of the character at `at` and its length in bytes; at the end of the text both are 0.
#[inline]
pub(super) fn class_at(text: &[u8], at: usize) -> (u8, usize) {
    let Some(&first) = text.get(at) else {
        return (0, 0);
    };
    match ASCII.get(usize::from(first)) {
        Some(&class) => (class, 1),
        None => beyond_ascii(text, at, first),
    }
}

/// The same for a character of more than one byte. The text is valid UTF-8, so the first byte
/// tells the length, and the bytes that it promises are there.
fn beyond_ascii(text: &[u8], at: usize, first: u8) -> (u8, usize) {
    let tail = |offset: usize| {
        let byte = text.get(at.wrapping_add(offset)).copied().unwrap_or(0);
        usize::from(byte & 0x3F)
    };
    let first = usize::from(first);
    match first {
        0xF0.. => {
            let high = (first & 0x07) << 18 | tail(1) << 12;
            (class_of(high | tail(2) << 6 | tail(3)), 4)
        }
        0xE0.. => (class_of((first & 0x0F) << 12 | tail(1) << 6 | tail(2)), 3),
        _ => (class_of((first & 0x1F) << 6 | tail(1)), 2),
    }
}

fn class_of(code_point: usize) -> u8 {
    let number = match TABLE.get(code_point / BLOCK) {
        Some(&number) if code_point / BLOCK < BLOCKS => usize::from(number),
        _ => return REST,
    };
    let offset = number * (BLOCK / 2) + code_point % BLOCK / 2;
    let pair = TABLE.get(BLOCKS + offset).copied().unwrap_or(0);
    let class = if code_point.is_multiple_of(2) { pair & 15 } else { pair >> 4 };
    // Three bits are all that a class number has.
    1 << (class & 7)
}
