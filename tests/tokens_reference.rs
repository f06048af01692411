//! The counts that Python's tiktoken gives, for the frozen strings and for a corpus on demand.
//!
//! `tests/vocabulary/reference.py` writes both. `TOLLGATE_CORPUS=file cargo test --release --test
//! tokens_reference` compares a whole corpus as well.

use tollgate::tokens::{Encoding, count};

/// One line of a reference file: kind, `o200k_base` count, `cl100k_base` count, text.
type Line = (String, u64, u64, String);

/// Compares every line and returns how many there were.
fn compare(reference: &str) -> Result<usize, serde_json::Error> {
    let mut kinds = std::collections::BTreeSet::new();
    let mut wrong = Vec::new();
    let lines: Vec<&str> = reference.split_terminator('\n').collect();
    for line in &lines {
        let (kind, o200k, cl100k, text): Line = serde_json::from_str(line)?;
        for (encoding, tokens) in [(Encoding::O200k, o200k), (Encoding::Cl100k, cl100k)] {
            let found = count(encoding, &text);
            if encoding.is_included() && found.exact() != Some(tokens) {
                wrong.push(format!("{kind}: {encoding:?} {tokens}, found {found:?}: {text:?}"));
            }
        }
        kinds.insert(kind);
    }
    assert!(wrong.is_empty(), "{} differ, first: {:?}", wrong.len(), wrong.first());
    assert!(kinds.len() >= 40, "only {} kinds", kinds.len());
    Ok(lines.len())
}

#[test]
fn frozen_strings_count_as_in_tiktoken() {
    let strings = compare(include_str!("fixtures/token_counts.jsonl")).unwrap();
    assert!(strings >= 600, "only {strings} strings");
}

#[test]
fn a_corpus_on_demand_counts_as_in_tiktoken() {
    let Ok(path) = std::env::var("TOLLGATE_CORPUS") else {
        return;
    };
    let strings = compare(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(strings >= 6_000, "only {strings} strings");
}
