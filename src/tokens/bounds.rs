//! Two numbers that enclose the count, without a vocabulary.
//!
//! Invariant: `lower` ≤ exact ≤ `upper` for both encodings and every text. Every byte is a token by
//! itself, so a text has at most as many tokens as bytes. From below: no token is longer than 128
//! bytes, and a token never reaches over the places where both encodings always cut.

/// The longest token of either vocabulary, in bytes.
const LONGEST_TOKEN: u64 = 128;

/// A range that certainly holds the number of tokens; both ends belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The count is at least this.
    pub lower: u64,
    /// The count is at most this.
    pub upper: u64,
}

/// Encloses the token count of `text` in either encoding.
///
/// One pass at a few bytes per nanosecond, no tables, nothing allocated. The upper bound is the
/// length in bytes. The lower one is close for spaced text such as English or code, and only a
/// 128th of the length where words are not set apart.
#[must_use]
pub fn bounds(text: &str) -> Bounds {
    let upper = text.len() as u64;
    let lower = upper.div_ceil(LONGEST_TOKEN).max(certain_pieces(text.as_bytes()));
    Bounds { lower, upper }
}

/// ASCII letter.
const LETTER: u8 = 1;
/// ASCII digit.
const DIGIT: u8 = 2;
/// Any other visible ASCII character but the apostrophe.
const SIGN: u8 = 4;
/// The apostrophe, which may begin a contraction and so continue a word.
const APOSTROPHE: u8 = 8;
/// The blank, which only ever begins a piece or stands among other white space.
const BLANK: u8 = 16;
/// An ASCII control character, white space or not.
const CONTROL: u8 = 32;

#[expect(clippy::indexing_slicing, reason = "evaluated while compiling, where a bad index is an error")]
const CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            b'0'..=b'9' => DIGIT,
            b'\'' => APOSTROPHE,
            b' ' => BLANK,
            0x21..=0x7e => SIGN,
            _ => CONTROL,
        };
        byte += 1;
    }
    table
};

/// The classes that cannot continue the piece of a byte of class `class`.
const fn cuts_after(class: u8) -> u8 {
    match class {
        LETTER => DIGIT | SIGN | BLANK | CONTROL,
        DIGIT => LETTER | SIGN | APOSTROPHE | BLANK | CONTROL,
        SIGN | APOSTROPHE => DIGIT | BLANK,
        BLANK | CONTROL => DIGIT,
        _ => 0,
    }
}

/// For each byte, the classes that cannot follow it within a piece.
#[expect(clippy::indexing_slicing, reason = "evaluated while compiling, where a bad index is an error")]
const CUTS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = cuts_after(CLASSES[byte]);
        byte += 1;
    }
    table
};

/// Counts the places between two ASCII characters where a piece certainly ends, plus one.
fn certain_pieces(bytes: &[u8]) -> u64 {
    let after = bytes.iter().skip(1);
    let cuts = bytes.iter().zip(after).map(|(left, right)| {
        let cut = CUTS.get(usize::from(*left)).copied().unwrap_or(0);
        let class = CLASSES.get(usize::from(*right)).copied().unwrap_or(0);
        u64::from(cut & class != 0)
    });
    cuts.sum::<u64>().saturating_add(u64::from(!bytes.is_empty()))
}
