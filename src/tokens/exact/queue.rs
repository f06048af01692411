//! Finds the pair to merge next: the lowest rank, the leftmost of equals.
//!
//! Invariant: a key is a rank in its high half and a position in its low half, so that the smallest
//! key is the answer and ties fall to the left by themselves. A short piece is searched from end to
//! end; a longer one is a tournament in which every inner node holds the smaller of its two
//! children, so that a change costs one step per level.

/// Up to this many positions a search is faster than a tournament.
const SHORT: usize = 16;
/// The key of a position that has no pair.
pub(super) const NONE: u64 = u64::MAX;
/// The half of a key that is a position.
const POSITION: u64 = u32::MAX as u64;

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Short: one key per position. Else: node 1 is the root, `leaves` the first position.
    keys: Vec<u64>,
    /// Number of leaves, a power of two; 0 for a short queue.
    leaves: usize,
}

/// Rank and position as one key.
#[inline]
pub(super) fn key(rank: u32, position: u32) -> u64 {
    u64::from(rank) << 32 | u64::from(position)
}

impl Queue {
    /// Empties the queue and makes room for `positions`.
    pub(super) fn reset(&mut self, positions: usize) {
        self.leaves = if positions <= SHORT { 0 } else { positions.next_power_of_two() };
        let size = positions.max(self.leaves * 2);
        self.keys.clear();
        self.keys.resize(size, NONE);
    }

    /// Sets a first key; [`Self::settle`] must follow before anything else.
    #[inline]
    pub(super) fn put(&mut self, position: u32, key: u64) {
        if let Some(slot) = self.keys.get_mut(self.leaves + position as usize) {
            *slot = key;
        }
    }

    /// Plays the first round.
    pub(super) fn settle(&mut self) {
        for node in (1..self.leaves).rev() {
            self.replay(node);
        }
    }

    /// The position of the smallest key, if any position has a pair.
    #[inline]
    pub(super) fn lowest(&self) -> Option<u32> {
        let lowest = if self.leaves == 0 { self.keys.iter().copied().min()? } else { self.keys.get(1).copied()? };
        let position = u32::try_from(lowest & POSITION).ok()?;
        (lowest != NONE).then_some(position)
    }

    /// Changes a key.
    #[inline]
    pub(super) fn set(&mut self, position: u32, key: u64) {
        self.put(position, key);
        let mut node = (self.leaves + position as usize) >> 1;
        if self.leaves == 0 {
            return;
        }
        while node > 0 && self.replay(node) {
            node >>= 1;
        }
    }

    /// Lets a node take the smaller of its children's keys; says whether that changed it.
    #[inline]
    fn replay(&mut self, node: usize) -> bool {
        let below = self.keys.get(node * 2..).and_then(|keys| keys.first_chunk());
        let Some(&[left, right]) = below else {
            return false;
        };
        let winner = left.min(right);
        match self.keys.get_mut(node) {
            Some(slot) if *slot != winner => {
                *slot = winner;
                true
            }
            _ => false,
        }
    }
}
