//! What we read of the APIs that pass through, and nothing more.
//!
//! A dialect is one file with one table: what to read of its requests, how to bound them, where its answers have their
//! usage, what ends its streams. Adding one takes that file and a line in [`DIALECTS`].
//!
//! Invariant: this part knows texts and numbers of tokens. It does not know plans, models' prices or limits.

pub mod bad_request;
pub mod chat;
pub mod completions;
pub mod edit;
pub mod elide;
pub mod embeddings;
pub mod fault;
mod fields;
pub mod form;
pub mod image;
pub mod images;
pub mod json;
mod lists;
mod members;
pub mod messages;
pub mod moderations;
mod multipart;
mod parts;
pub mod prompt;
mod reading;
mod refused;
pub mod reply;
pub mod request;
pub mod responses;
pub mod rules;
pub mod seen;
pub mod shape;
pub mod speech;
pub mod sse;
pub mod texts;
pub mod tools;
pub mod transcripts;
pub mod usage;
pub mod workers_ai;

use rules::Dialect;

/// Every dialect.
pub static DIALECTS: [&Dialect; 12] = [
    &chat::CHAT,
    &completions::COMPLETIONS,
    &responses::RESPONSES,
    &embeddings::EMBEDDINGS,
    &messages::MESSAGES,
    &messages::COUNT_TOKENS,
    &moderations::MODERATIONS,
    &images::GENERATIONS,
    &images::EDITS,
    &speech::SPEECH,
    &transcripts::TRANSCRIPTIONS,
    &transcripts::TRANSLATIONS,
];
