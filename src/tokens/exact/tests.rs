//! What the counter takes for granted about the vocabularies, checked on the data that ships.

use super::merge::Merger;
use super::trie::{Node, Trie};
use super::vocabulary;
use super::windows::{WINDOW, Walk};
use crate::tokens::{Encoding, WorkBudget};

/// The bytes of every token, by rank, read off the trie itself.
fn tokens(trie: &Trie) -> Vec<Vec<u8>> {
    let mut found: Vec<(u32, Vec<u8>)> = Vec::new();
    let mut open: Vec<(Node, Vec<u8>)> = (0..=255u8).map(|byte| (Node::from(byte), vec![byte])).collect();
    while let Some((node, bytes)) = open.pop() {
        for byte in 0..=255 {
            if let Some(child) = trie.child(node, byte) {
                open.push((child, [bytes.as_slice(), &[byte]].concat()));
            }
        }
        found.extend(trie.rank(node).map(|rank| (rank, bytes)));
    }
    found.sort_unstable();
    let ranks_are_dense = found.iter().zip(0..).all(|((rank, _), wanted)| *rank == wanted);
    assert!(ranks_are_dense, "a rank is missing or given twice");
    found.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Merges the plain way, all pairs looked at each time, until `parts` are left or nothing merges.
fn merged_to<'a>(trie: &Trie, token: &'a [u8], parts: usize) -> Vec<&'a [u8]> {
    let mut list: Vec<&[u8]> = token.chunks(1).collect();
    while list.len() > parts {
        let pairs = list.iter().zip(list.iter().skip(1)).enumerate();
        let ranks = pairs.filter_map(|(at, (left, right))| Some((rank_of(trie, &[*left, *right].concat())?, at)));
        let Some((_, at)) = ranks.min() else { break };
        let start: usize = list.iter().take(at).map(|part| part.len()).sum();
        let length: usize = list.iter().skip(at).take(2).map(|part| part.len()).sum();
        list.splice(at..at + 2, token.get(start..start + length));
    }
    list
}

fn rank_of(trie: &Trie, bytes: &[u8]) -> Option<u32> {
    trie.rank(trie.find(bytes)?)
}

fn check(encoding: Encoding, size: usize, every: usize) {
    let Some(trie) = vocabulary(encoding) else {
        assert!(!encoding.is_included());
        return;
    };
    let tokens = tokens(trie);
    assert_eq!(tokens.len(), size);
    let mut merger = Merger::default();
    for (rank, token) in (0u32..).zip(&tokens).step_by(every) {
        merger.merge(trie, token);
        assert_eq!(merger.ends().collect::<Vec<_>>(), [token.len()], "{token:?} is not reached");
        let parts = merged_to(trie, token, 2);
        let below = parts.iter().all(|part| rank_of(trie, part) < Some(rank));
        assert!(parts.len() == 1 || below, "{token:?} does not rank above its parts");
    }
}

/// A throw of a small generator, so that the test repeats.
fn throw(state: &mut u64, sides: u64) -> usize {
    *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
    usize::try_from((*state >> 33) % sides).unwrap_or(0)
}

/// A long piece of runs and mixtures of few letters, where windows are most likely to be wrong.
fn long_piece(state: &mut u64) -> Vec<u8> {
    const LETTERS: &[u8] = b"aehinostxyzAEST  \n\n\t\r-=*_./#\xd0\xbe\xe7\x9a\x84";
    let letters: Vec<u8> = LETTERS.iter().copied().filter(|_| throw(state, 3) == 0).collect();
    let longest = [1, 3, 40].get(throw(state, 3)).copied().unwrap_or(1);
    let mut piece = vec![b'a'];
    while piece.len() < 500 {
        let letter = letters.get(throw(state, 12)).copied().unwrap_or(b' ');
        let run = 1 + throw(state, longest);
        piece.extend((0..run).map(|_| letter));
    }
    piece
}

/// Bytes of which every pair ranks just below the pair before: what stands at the end of such a
/// chain decides how its start is merged, which is as far as one token can see another.
fn chain(trie: &Trie, state: &mut u64) -> Vec<u8> {
    let mut piece = vec![b'a'];
    let mut ceiling = u32::MAX;
    while piece.len() < 700 {
        let last = piece.last().copied().unwrap_or_default();
        let tried = (0..40).filter_map(|_| u8::try_from(throw(state, 256)).ok());
        let below = tried.filter_map(|byte| {
            let rank = rank_of(trie, &[last, byte])?;
            (rank < ceiling).then_some((rank, byte))
        });
        let next = below.max();
        ceiling = next.map_or(u32::MAX, |(rank, _)| rank);
        piece.push(next.map_or(b'e', |(_, byte)| byte));
    }
    piece
}

/// How many pieces each test makes; `TOLLGATE_FUZZ` asks for more.
fn pieces() -> u64 {
    let asked = std::env::var("TOLLGATE_FUZZ").ok();
    asked.and_then(|number| number.parse().ok()).unwrap_or(200)
}

/// Counts in windows of every size what one merge counts, at a bounded number of steps.
fn agree(trie: &Trie, piece: &[u8]) {
    let mut merger = Merger::default();
    merger.merge(trie, piece);
    let wanted = merger.ends().count() as u64;
    merger.take_steps();
    for size in [1, 2, 3, 5, 8, 13, 21, 34, 64, 128, WINDOW] {
        let mut budget = WorkBudget::unlimited();
        let mut walk = Walk { trie, piece, merger: &mut merger };
        let found = walk.count(size, &mut budget);
        assert_eq!(found, Some(wanted), "windows of {size}: {piece:?}");
        let steps = u64::MAX - budget.left();
        assert!(size < WINDOW || steps <= 12 * piece.len() as u64, "{steps} steps: {piece:?}");
    }
}

#[test]
fn windows_agree_with_one_merge_on_runs_and_mixtures() {
    let mut state = 1;
    for trie in [Encoding::O200k, Encoding::Cl100k].into_iter().filter_map(vocabulary) {
        (0..pieces()).for_each(|_| agree(trie, &long_piece(&mut state)));
    }
}

#[test]
fn windows_agree_with_one_merge_on_chains_of_falling_ranks() {
    let mut state = 2;
    for trie in [Encoding::O200k, Encoding::Cl100k].into_iter().filter_map(vocabulary) {
        (0..pieces()).for_each(|_| agree(trie, &chain(trie, &mut state)));
    }
}

/// All tokens when optimised; a part of them, with every fifth, in a debug build.
const EVERY: usize = if cfg!(debug_assertions) { 5 } else { 1 };

#[test]
fn o200k_tokens_are_reached_and_rank_above_their_parts() {
    check(Encoding::O200k, 199_998, EVERY);
}

#[test]
fn cl100k_tokens_are_reached_and_rank_above_their_parts() {
    check(Encoding::Cl100k, 100_256, EVERY);
}
