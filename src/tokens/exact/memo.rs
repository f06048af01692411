//! What slow pieces of a text came to, so that a repeated one costs a comparison.
//!
//! Invariant: an answer is only given for equal bytes. A piece is remembered by where it stood in
//! the text and looked up by a hash of its bytes; pieces with the same slot replace each other, so
//! nothing grows and a collision costs time only.

const SLOTS: usize = 1024;
/// Leaves as many bits of a hash as number the slots.
const SHIFT: u32 = u64::BITS - SLOTS.ilog2();

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    start: usize,
    end: usize,
    tokens: u64,
}

#[derive(Debug, Default)]
pub(super) struct Memo {
    /// Empty until the first piece comes.
    entries: Vec<Entry>,
}

impl Memo {
    /// The tokens of `piece`, if an equal piece of `text` is remembered.
    pub(super) fn get(&self, text: &[u8], piece: &[u8]) -> Option<u64> {
        let entry = self.entries.get(slot(piece))?;
        let known = text.get(entry.start..entry.end)?;
        (known == piece && !piece.is_empty()).then_some(entry.tokens)
    }

    /// Remembers that the piece of `text` at `start..end` has so many tokens.
    pub(super) fn put(&mut self, text: &[u8], start: usize, end: usize, tokens: u64) {
        if self.entries.is_empty() {
            self.entries.resize(SLOTS, Entry::default());
        }
        let piece = text.get(start..end).unwrap_or_default();
        if let Some(entry) = self.entries.get_mut(slot(piece)) {
            *entry = Entry { start, end, tokens };
        }
    }
}

/// Multiplies eight bytes at a time into a hash and takes its top bits.
fn slot(piece: &[u8]) -> usize {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = piece.len() as u64;
    let (words, rest) = piece.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR).rotate_left(29);
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(FACTOR).rotate_left(29);
    }
    usize::try_from(hash.wrapping_mul(FACTOR) >> SHIFT).unwrap_or(0)
}
