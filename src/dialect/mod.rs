//! What we read of the APIs that pass through, and nothing more.
//!
//! Invariant: this part knows texts and numbers of tokens. It does not know plans, models' prices or limits.

pub mod bad_request;
pub mod chat;
pub mod edit;
pub mod fault;
pub mod image;
pub mod json;
pub mod prompt;
mod refused;
pub mod reply;
pub mod sse;
pub mod texts;
pub mod usage;
