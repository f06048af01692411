//! The layout of a vocabulary file, written. `src/tokens/trie.rs` is the reader.
//!
//! All tokens form one byte trie whose nodes are numbered breadth first, siblings in byte order, so
//! that the children of a node are neighbours and follow from the child counts alone. The root is
//! left out: its children are all 256 bytes, hence node `b` is the byte `b`. Sections:
//! two little-endian 32-bit numbers (nodes, tokens); one label byte per node; one child count per
//! node; one bit per node that says whether it ends a token; the ranks of those, 18 bits each.

#![expect(clippy::indexing_slicing, reason = "a wrong index stops the generator, and so it should")]

use std::collections::VecDeque;

/// Bits of a packed rank; the reader has the same constant.
const RANK_BITS: u32 = 18;

/// The nodes as they come off the queue.
#[derive(Default)]
struct Nodes {
    labels: Vec<u8>,
    counts: Vec<u8>,
    /// Rank of the token that ends here.
    ranks: Vec<Option<u32>>,
}

/// A node to be written: the sorted tokens `from..to` share their first `depth` bytes.
struct Pending {
    from: usize,
    to: usize,
    depth: usize,
}

/// Encodes a vocabulary given in rank order.
pub(crate) fn encode(tokens: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let nodes = breadth_first(tokens)?;
    let ranks: Vec<u32> = nodes.ranks.iter().filter_map(|rank| *rank).collect();
    let mut file = Vec::new();
    for size in [nodes.labels.len(), ranks.len()] {
        let size = u32::try_from(size).map_err(|error| error.to_string())?;
        file.extend_from_slice(&size.to_le_bytes());
    }
    file.extend_from_slice(&nodes.labels);
    file.extend_from_slice(&nodes.counts);
    file.extend_from_slice(&ends(&nodes.ranks));
    file.extend_from_slice(&packed(&ranks));
    Ok(file)
}

fn breadth_first(tokens: &[Vec<u8>]) -> Result<Nodes, String> {
    let mut sorted: Vec<(&[u8], u32)> = tokens.iter().map(Vec::as_slice).zip(0..).collect();
    sorted.sort_unstable();
    let mut nodes = Nodes::default();
    let root = Pending { from: 0, to: sorted.len(), depth: 0 };
    let mut queue: VecDeque<Pending> = children(&sorted, &root).into();
    if queue.len() != 256 {
        return Err("not every byte is a token".to_owned());
    }
    while let Some(node) = queue.pop_front() {
        let (first, rank) = sorted[node.from];
        let ends = first.len() == node.depth;
        let below = children(&sorted, &node);
        nodes.labels.push(first[node.depth - 1]);
        nodes.counts.push(u8::try_from(below.len()).map_err(|error| error.to_string())?);
        nodes.ranks.push(ends.then_some(rank));
        queue.extend(below);
    }
    Ok(nodes)
}

/// Splits a node's tokens by their next byte.
fn children(sorted: &[(&[u8], u32)], node: &Pending) -> Vec<Pending> {
    let depth = node.depth + 1;
    let mut list: Vec<Pending> = Vec::new();
    let mut open_byte = None;
    for (at, (token, _)) in sorted.iter().enumerate().take(node.to).skip(node.from) {
        let Some(&byte) = token.get(node.depth) else {
            continue;
        };
        match list.last_mut() {
            Some(open) if open_byte == Some(byte) => open.to = at + 1,
            _ => list.push(Pending { from: at, to: at + 1, depth }),
        }
        open_byte = Some(byte);
    }
    list
}

/// One bit per node, least significant first, padded to whole 64-bit words.
fn ends(ranks: &[Option<u32>]) -> Vec<u8> {
    let mut bits = vec![0; ranks.len().div_ceil(64) * 8];
    for (at, _) in ranks.iter().enumerate().filter(|(_, rank)| rank.is_some()) {
        bits[at / 8] |= 1 << (at % 8);
    }
    bits
}

/// The ranks back to back, least significant bit first, padded so that four bytes can be read
/// wherever one begins.
fn packed(ranks: &[u32]) -> Vec<u8> {
    let width = RANK_BITS as usize;
    let mut bytes = vec![0; (ranks.len() * width).div_ceil(8) + 4];
    for (at, rank) in ranks.iter().enumerate() {
        let bit = at * width;
        let shifted = (rank << (bit % 8)).to_le_bytes();
        for (target, source) in bytes[bit / 8..].iter_mut().zip(shifted) {
            *target |= source;
        }
    }
    bytes
}
