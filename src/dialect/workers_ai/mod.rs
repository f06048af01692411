//! Cloudflare's own API of models, as its `AI` binding speaks it, for calls in OpenAI's dialect.
//!
//! Invariant: what the binding's models answer in OpenAI's shapes passes byte for byte. Of its native shapes the values
//! keep their text: nothing that is a number or a text is written anew but where a text has to become one.
//!
//! Sources: the schemas of the models in Cloudflare's documentation, the binding itself
//! (workerd, `src/cloudflare/internal/ai-api.ts`), and how Cloudflare's own client reads its answers
//! (workers-ai-provider 4.0.0, `src/streaming.ts`, `src/utils.ts`).

mod answer;
pub mod errors;
mod input;
mod stream;
mod tools;
mod unstreamed;

pub use answer::{Failure, Whole, whole};
pub use input::{Input, input};
pub use stream::Events;
pub use unstreamed::unstreamed;

use super::chat::CHAT;
use super::embeddings::EMBEDDINGS;
use super::rules::Dialect;

/// What the binding is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Chat completions.
    Chat,
    /// Embeddings.
    Embeddings,
}

impl Operation {
    /// The operation of a dialect; `None` if the binding has no such.
    #[must_use]
    pub fn of(dialect: &Dialect) -> Option<Self> {
        let operations = [(&CHAT, Self::Chat), (&EMBEDDINGS, Self::Embeddings)];
        operations.into_iter().find(|(own, _)| own.path == dialect.path).map(|(_, operation)| operation)
    }
}

/// What an answer in OpenAI's shape says of itself, which a native one does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Letters and digits that no other answer has.
    pub id: String,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// Who made it.
    pub model: String,
    /// The tokens of its prompt, if it does not say them itself.
    pub prompt: u64,
}
