//! Which model uses which encoding.
//!
//! Invariant: a name is only matched if its family is known; a guess is the caller's to make. The
//! table is that of tiktoken 0.14, less the encodings that are not counted here, with one
//! correction: fine-tuned GPT-4.1 and GPT-4.5 share the vocabulary of their base model.

use super::Encoding::{self, Cl100k, O200k};

/// Names that stand for themselves.
const NAMES: [(&str, Encoding); 15] = [
    ("o1", O200k),
    ("o3", O200k),
    ("o4-mini", O200k),
    ("gpt-4.1", O200k),
    ("gpt-4.5", O200k),
    ("gpt-4o", O200k),
    ("gpt-4", Cl100k),
    ("gpt-3.5-turbo", Cl100k),
    ("gpt-3.5", Cl100k),
    ("gpt-35-turbo", Cl100k),
    ("davinci-002", Cl100k),
    ("babbage-002", Cl100k),
    ("text-embedding-ada-002", Cl100k),
    ("text-embedding-3-small", Cl100k),
    ("text-embedding-3-large", Cl100k),
];

/// Beginnings of names; the first that fits decides, so the longer ones of a family come first.
const PREFIXES: [(&str, Encoding); 19] = [
    ("o1-", O200k),
    ("o3-", O200k),
    ("o4-mini-", O200k),
    ("gpt-5", O200k),
    ("gpt-4.5-", O200k),
    ("gpt-4.1-", O200k),
    ("chatgpt-4o-", O200k),
    ("gpt-4o-", O200k),
    ("gpt-oss-", O200k),
    ("gpt-4-", Cl100k),
    ("gpt-3.5-turbo-", Cl100k),
    ("gpt-35-turbo-", Cl100k),
    ("ft:gpt-4o", O200k),
    ("ft:gpt-4.1", O200k),
    ("ft:gpt-4.5", O200k),
    ("ft:gpt-4", Cl100k),
    ("ft:gpt-3.5-turbo", Cl100k),
    ("ft:davinci-002", Cl100k),
    ("ft:babbage-002", Cl100k),
];

pub(super) fn encoding(name: &str) -> Option<Encoding> {
    let named = NAMES.iter().find(|(known, _)| *known == name);
    let prefixed = || PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    named.or_else(prefixed).map(|(_, encoding)| *encoding)
}
