//! async-openai against Tollgate: nothing but tests, in one program. `tests/clients/run.mjs` starts it.
#![cfg(test)]

mod chat;
mod errors;
mod support;
mod waits;
