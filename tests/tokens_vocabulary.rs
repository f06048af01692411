//! The data files are those that the generator writes, and every token of them counts as tiktoken
//! counts it.

#[path = "vocabulary/classes.rs"]
mod classes;
#[path = "vocabulary/source.rs"]
mod source;
#[path = "vocabulary/trie.rs"]
mod trie;

use tollgate::tokens::{Encoding, count};

fn same(name: &str, wanted: &[u8]) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tokens/data").join(name);
    let found = std::fs::read(path).unwrap_or_default();
    assert!(found == wanted, "{name} is not what `cargo run --example vocabulary` writes");
}

#[test]
fn the_o200k_file_is_the_published_vocabulary() {
    same("o200k.bin", &trie::encode(&source::o200k().unwrap()).unwrap());
}

#[test]
fn the_cl100k_file_is_the_published_vocabulary() {
    same("cl100k.bin", &trie::encode(&source::cl100k().unwrap()).unwrap());
}

#[test]
fn the_class_table_is_that_of_unicode() {
    same("classes.bin", &classes::encode().unwrap());
}

/// Tokens that are text by themselves are mostly one piece; the oracle knows which are not.
fn every_token_counts(encoding: Encoding, tokens: &[Vec<u8>], bpe: &tiktoken_rs::CoreBPE) {
    let texts = tokens.iter().filter_map(|token| str::from_utf8(token).ok());
    for text in texts.filter(|_| encoding.is_included()) {
        let wanted = bpe.count_ordinary(text) as u64;
        assert_eq!(count(encoding, text).exact(), Some(wanted), "{encoding:?} {text:?}");
    }
}

#[test]
fn every_token_of_o200k_counts_as_in_tiktoken_rs() {
    let bpe = tiktoken_rs::o200k_base_singleton();
    every_token_counts(Encoding::O200k, &source::o200k().unwrap(), bpe);
}

#[test]
fn every_token_of_cl100k_counts_as_in_tiktoken_rs() {
    let bpe = tiktoken_rs::cl100k_base_singleton();
    every_token_counts(Encoding::Cl100k, &source::cl100k().unwrap(), bpe);
}
