//! The class of every code point, written. `src/tokens/classes.rs` is the reader.
//!
//! The classes come from the Unicode tables of `regex-syntax`, which are also those of tiktoken.
//! The code space up to `LIMIT` is cut into blocks; first comes one block number per block, then
//! the distinct blocks, two code points to a byte, the lower one in the low half.

#![expect(clippy::indexing_slicing, reason = "a wrong index stops the generator, and so it should")]

use regex_syntax::hir::{Class, HirKind};

/// Code points per block.
const BLOCK: usize = 128;
/// From here on no code point is a letter, mark, number or space.
const LIMIT: usize = 0xE_0200;

/// Number and pattern of each class; what none of them matches is class 0.
const PATTERNS: [(u8, &str); 7] = [
    (1, r"[\p{Lu}\p{Lt}]"),
    (2, r"\p{Ll}"),
    (3, r"[\p{Lo}\p{Lm}]"),
    (4, r"\p{M}"),
    (5, r"\p{N}"),
    (6, r"[\r\n]"),
    (7, r"[\s--[\r\n]]"),
];

pub(crate) fn encode() -> Result<Vec<u8>, String> {
    let classes = all_classes()?;
    let (inside, outside) = classes.split_at(LIMIT);
    if outside.iter().any(|class| *class != 0) {
        return Err("a class lies above the limit of the table".to_owned());
    }
    let mut numbers = Vec::new();
    let mut blocks: Vec<&[u8]> = Vec::new();
    for block in inside.chunks(BLOCK) {
        let number = blocks.iter().position(|known| *known == block).unwrap_or_else(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        numbers.push(u8::try_from(number).map_err(|error| error.to_string())?);
    }
    let pairs = blocks.iter().flat_map(|block| block.chunks(2));
    numbers.extend(pairs.map(|pair| pair[0] | (pair[1] << 4)));
    Ok(numbers)
}

fn all_classes() -> Result<Vec<u8>, String> {
    let mut classes = vec![0; 0x11_0000];
    for (number, pattern) in PATTERNS {
        let hir = regex_syntax::parse(pattern).map_err(|error| error.to_string())?;
        let HirKind::Class(Class::Unicode(set)) = hir.kind() else {
            return Err(format!("{pattern} is not a set of code points"));
        };
        for range in set.ranges() {
            classes[range.start() as usize..=range.end() as usize].fill(number);
        }
    }
    Ok(classes)
}
