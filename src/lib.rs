//! Tollgate: a cost limiter for model APIs, as one Cloudflare Worker.
#![doc = include_str!("ARCHITECTURE.md")]

pub mod auth;
pub mod dialect;
#[cfg(target_arch = "wasm32")]
mod edge;
pub mod gateway;
pub mod ledger;
pub mod limit;
pub mod placement;
pub mod policy;
pub mod pricing;
pub mod rate_headers;
pub mod rejection;
pub mod time;
pub mod tokens;
pub mod visitor;
