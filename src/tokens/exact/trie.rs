//! A vocabulary as a byte trie, read in place.
//!
//! Invariant: nothing of the file is copied. `tests/vocabulary/trie.rs` writes it and describes its
//! layout; what that leaves out, where the children of a node start and how many tokens come before
//! a node, follows from running sums. They are kept once per eight and once per sixty-four nodes
//! and finished within a machine word at look-up, which makes preparing them a matter of a
//! millisecond.

/// A place in the trie; the nodes 0 to 255 are the single bytes.
pub(super) type Node = u32;

/// Bits of a packed rank; the writer has the same constant.
const RANK_BITS: usize = 18;
const RANK_MASK: u32 = (1 << RANK_BITS) - 1;
/// Length of the file's head: two 32-bit numbers.
const HEAD: usize = 8;
const PAIRS: usize = 1 << 16;

/// In each byte of a word, the lowest and the highest bit.
const LOWS: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
/// Every second byte of a word, and the lowest bit of every 16-bit half.
const EVEN: u64 = 0x00FF_00FF_00FF_00FF;
const HALVES: u64 = 0x0001_0001_0001_0001;

/// One vocabulary. All slices reach to the end of the file, so that eight bytes can be loaded from
/// any place in a section.
#[derive(Debug)]
pub(super) struct Trie {
    labels: &'static [u8],
    counts: &'static [u8],
    ends: &'static [u8],
    ranks: &'static [u8],
    /// For every eighth node, the first child.
    children: Vec<Node>,
    /// For every sixty-fourth node, how many tokens end before it.
    tokens: Vec<u32>,
    /// For every two bytes, their node, or 0 if no token begins with them.
    pairs: Box<[Node; PAIRS]>,
}

impl Trie {
    /// Prepares a vocabulary file; `None` if it is not one.
    pub(super) fn new(file: &'static [u8]) -> Option<Self> {
        let nodes = u32::from_le_bytes(*file.first_chunk()?) as usize;
        let labels = file.get(HEAD..)?;
        let counts = labels.get(nodes..)?;
        let ends = counts.get(nodes..)?;
        let mut trie = Self {
            labels,
            counts,
            ends,
            ranks: ends.get(nodes.div_ceil(64) * 8..)?,
            children: child_sums(counts.get(..nodes)?),
            tokens: token_sums(ends.get(..nodes.div_ceil(64) * 8)?),
            pairs: vec![0; PAIRS].into_boxed_slice().try_into().ok()?,
        };
        trie.fill_pairs();
        Some(trie)
    }

    fn fill_pairs(&mut self) {
        for first in 0..=u8::MAX {
            let (start, count) = self.children_of(Node::from(first));
            for node in start..start.saturating_add(count) {
                let second = self.labels.get(node as usize).copied().unwrap_or(0);
                if let Some(slot) = self.pairs.get_mut(pair_index(first, second)) {
                    *slot = node;
                }
            }
        }
    }

    /// The node of two bytes.
    #[inline]
    pub(super) fn pair(&self, first: u8, second: u8) -> Option<Node> {
        match self.pairs.get(pair_index(first, second)) {
            None | Some(0) => None,
            Some(&node) => Some(node),
        }
    }

    /// The first child of a node and the number of its children.
    #[inline]
    fn children_of(&self, node: Node) -> (Node, u32) {
        let at = node as usize;
        let counts = load(self.counts, at & !7);
        let shift = 8 * (node & 7);
        let before = counts & !(u64::MAX << shift);
        // Counts reach 129, so they are added as 16-bit numbers.
        let pairs = (before & EVEN) + ((before >> 8) & EVEN);
        let sum = pairs.wrapping_mul(HALVES) >> 48;
        let start = self.children.get(at >> 3).copied().unwrap_or(0);
        (start.wrapping_add(low(sum)), low(counts >> shift) & 0xFF)
    }

    /// The node that `byte` leads to from `node`.
    #[inline]
    pub(super) fn child(&self, node: Node, byte: u8) -> Option<Node> {
        let (mut start, mut count) = self.children_of(node);
        let wanted = u64::from(byte).wrapping_mul(LOWS);
        loop {
            // A byte of the difference is zero where the label fits; the test marks the lowest such
            // byte rightly, and only the lowest matters.
            let difference = load(self.labels, start as usize) ^ wanted;
            let zeros = difference.wrapping_sub(LOWS) & !difference & HIGHS;
            let index = zeros.trailing_zeros() / 8;
            if index < count.min(8) {
                return Some(start.wrapping_add(index));
            }
            if count <= 8 {
                return None;
            }
            start = start.wrapping_add(8);
            count -= 8;
        }
    }

    /// The node that `bytes` lead to from `node`.
    #[inline]
    pub(super) fn walk(&self, node: Node, bytes: &[u8]) -> Option<Node> {
        bytes.iter().try_fold(node, |node, byte| self.child(node, *byte))
    }

    /// The token that `bytes` lead to from `node`: its node and its rank.
    #[inline]
    pub(super) fn token(&self, node: Node, bytes: &[u8]) -> Option<(Node, u32)> {
        let node = self.walk(node, bytes)?;
        Some((node, self.rank(node)?))
    }

    /// The node of a whole piece.
    #[inline]
    pub(super) fn find(&self, piece: &[u8]) -> Option<Node> {
        match piece {
            [] => None,
            [byte] => Some(Node::from(*byte)),
            [first, second, rest @ ..] => self.walk(self.pair(*first, *second)?, rest),
        }
    }

    /// Whether a token ends at `node`.
    #[inline]
    pub(super) fn is_token(&self, node: Node) -> bool {
        let byte = self.ends.get((node / 8) as usize).copied().unwrap_or(0);
        byte >> (node % 8) & 1 != 0
    }

    /// The rank of the token that ends at `node`, if one does.
    #[inline]
    pub(super) fn rank(&self, node: Node) -> Option<u32> {
        let block = (node / 64) as usize;
        let bit = 1 << (node % 64);
        let ends = load(self.ends, block * 8);
        if ends & bit == 0 {
            return None;
        }
        let before = (ends & (bit - 1)).count_ones();
        let ordinal = self.tokens.get(block)?.wrapping_add(before) as usize;
        let at = ordinal * RANK_BITS;
        let packed = self.ranks.get(at / 8..)?.first_chunk()?;
        Some(u32::from_le_bytes(*packed) >> (at % 8) & RANK_MASK)
    }
}

fn child_sums(counts: &[u8]) -> Vec<Node> {
    let mut next = 256;
    let group = |counts: &[u8]| {
        let start = next;
        next += counts.iter().map(|count| u32::from(*count)).sum::<u32>();
        start
    };
    counts.chunks(8).map(group).collect()
}

fn token_sums(ends: &[u8]) -> Vec<u32> {
    let mut before = 0;
    let block = |word: &[u8]| {
        let start = before;
        before += load(word, 0).count_ones();
        start
    };
    ends.chunks(8).map(block).collect()
}

#[inline]
fn pair_index(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// Eight bytes as one number, the first lowest; 0 where there are none, which no node leads to.
#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// The low half of a word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
fn low(word: u64) -> u32 {
    word as u32
}
