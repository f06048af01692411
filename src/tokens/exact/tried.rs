//! Remembers what pairs of parts came to when they were tried.
//!
//! Invariant: an answer depends on the two nodes alone, never on the text, so a remembered one is
//! as good as a new one. It saves walking long right halves again and again, which is what runs of
//! white space and signs are made of. Pairs with the same slot replace each other.

use super::trie::{Node, Trie};

/// Number of slots, a power of two.
const SLOTS: usize = 512;
/// Leaves as many bits of a hash as number the slots.
const SHIFT: u32 = u32::BITS - SLOTS.ilog2();

/// A pair that was tried. Node 0 is a single byte and nobody asks about so short a right half, so
/// the default answers nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    parts: (Node, Node),
    token: Option<(Node, u32)>,
}

#[derive(Debug, Default)]
pub(super) struct Tried {
    /// Empty until the first pair comes.
    pairs: Vec<Pair>,
}

impl Tried {
    /// The token that the part of node `parts.0` makes with the part of node `parts.1`, whose bytes
    /// are `right`.
    pub(super) fn token(&mut self, trie: &Trie, parts: (Node, Node), right: &[u8]) -> Option<(Node, u32)> {
        if self.pairs.is_empty() {
            self.pairs.resize(SLOTS, Pair::default());
        }
        let slot = self.pairs.get_mut(slot(parts))?;
        if slot.parts != parts {
            let token = trie.token(parts.0, right);
            *slot = Pair { parts, token };
        }
        slot.token
    }
}

#[inline]
fn slot((left, right): (Node, Node)) -> usize {
    let mixed = left.wrapping_mul(0x9E37_79B1) ^ right.wrapping_mul(0x85EB_CA77).rotate_left(15);
    (mixed.wrapping_mul(0xC2B2_AE3D) >> SHIFT) as usize
}
