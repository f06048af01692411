//! Byte pair encoding of one stretch of bytes.
//!
//! Invariant: at every moment the stretch is cut into parts, each a token; each step merges the pair
//! of neighbours whose joined bytes have the lowest rank, the leftmost of equals, until no pair is a
//! token. Parts are named by the position of their first byte and form a list. Each keeps its node
//! in the trie, so that trying a pair only walks the bytes of its right half, and the node of the
//! pair it begins, so that merging walks nothing.

use super::queue::{self, Queue};
use super::trie::{Node, Trie};
use super::tried::Tried;

/// The part that starts at a position.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// Where the next part starts; the length of the stretch for the last one.
    next: u32,
    /// Where the part before starts; for the first one its own position.
    prev: u32,
    node: Node,
    /// The node of this part joined with the next, if that is a token.
    joined: Node,
}

/// A right half of at least this many bytes is worth remembering instead of walking.
const LONG: usize = 5;

/// The memory of a merge, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct Merger {
    /// One per byte, and one more that stands for the end.
    parts: Vec<Part>,
    queue: Queue,
    tried: Tried,
    steps: u64,
}

impl Merger {
    /// Encodes `bytes`; [`Self::ends`] then tells the tokens.
    pub(super) fn merge(&mut self, trie: &Trie, bytes: &[u8]) {
        self.start(trie, bytes);
        while let Some(at) = self.queue.lowest() {
            self.join(trie, bytes, at);
        }
    }

    /// Where the tokens end, in order. At most `bytes.len()` of the last merge.
    pub(super) fn ends(&self) -> impl Iterator<Item = usize> {
        let end = self.parts.len().saturating_sub(1);
        let after = move |at: &usize| {
            let part = self.parts.get(*at).filter(|_| *at < end)?;
            Some(part.next as usize)
        };
        std::iter::successors(Some(0), after).skip(1)
    }

    /// The steps taken since the last call.
    pub(super) fn take_steps(&mut self) -> u64 {
        std::mem::take(&mut self.steps)
    }

    /// One part per byte, and every pair tried once.
    fn start(&mut self, trie: &Trie, bytes: &[u8]) {
        self.parts.clear();
        self.queue.reset(bytes.len());
        self.steps += bytes.len() as u64;
        let seconds = bytes.iter().skip(1).map(Some).chain([None]);
        for (position, (first, second)) in (0u32..).zip(bytes.iter().zip(seconds)) {
            let pair = second.and_then(|second| trie.pair(*first, *second));
            let token = pair.and_then(|node| trie.token(node, &[]));
            if let Some((_, rank)) = token {
                self.queue.put(position, queue::key(rank, position));
            }
            self.parts.push(Part {
                next: position + 1,
                prev: position.saturating_sub(1),
                node: Node::from(*first),
                joined: token.map_or(0, |(node, _)| node),
            });
        }
        self.parts.push(Part::default());
        self.queue.settle();
    }

    /// Merges the part at `at` with the one after it and tries the two pairs that arise.
    #[inline]
    fn join(&mut self, trie: &Trie, bytes: &[u8], at: u32) {
        let left = self.part(at);
        let right = self.part(left.next);
        if let Some(after) = self.parts.get_mut(right.next as usize) {
            after.prev = at;
        }
        self.queue.set(left.next, queue::NONE);
        let merged = Part { next: right.next, node: left.joined, ..left };
        self.pair_up(trie, bytes, at, merged);
        if at > 0 {
            self.pair_up(trie, bytes, left.prev, self.part(left.prev));
        }
        self.steps += 3;
    }

    /// Stores `part` at `at` after trying it with its right neighbour.
    #[inline]
    fn pair_up(&mut self, trie: &Trie, bytes: &[u8], at: u32, part: Part) {
        let neighbour = self.part(part.next);
        let right = bytes.get(part.next as usize..neighbour.next as usize);
        let token = match right {
            None | Some([]) => None,
            Some(right) if right.len() < LONG => trie.token(part.node, right),
            Some(right) => self.tried.token(trie, (part.node, neighbour.node), right),
        };
        let key = token.map_or(queue::NONE, |(_, rank)| queue::key(rank, at));
        self.queue.set(at, key);
        if let Some(slot) = self.parts.get_mut(at as usize) {
            *slot = Part { joined: token.map_or(0, |(node, _)| node), ..part };
        }
    }

    #[inline]
    fn part(&self, at: u32) -> Part {
        self.parts.get(at as usize).copied().unwrap_or_default()
    }
}
