//! Reading a prompt's texts.
//!
//! Invariant: whatever stands in a message is counted: as text, as a part with a size of its own, or as it stands. What
//! we do not know counts as it stands, with its name, since a template may show it to the model so.

use super::parts::{Block, Part, image_tokens, part};
use super::prompt::{PromptSize, TextCounter};
use super::rules::PartKind;
use super::texts::TextSink;
use crate::tokens::Bounds;

/// Members of messages that are walked into, and whose names are no text. One that is not here is text, its name too.
const WALKED: [&str; 29] = [
    "annotations",
    "cache_control",
    "call_id",
    "content",
    "context",
    "custom",
    "data",
    "description",
    "encrypted_content",
    "function",
    "function_call",
    "id",
    "is_error",
    "name",
    "output",
    "reasoning_content",
    "refusal",
    "role",
    "signature",
    "status",
    "summary",
    "text",
    "thinking",
    "title",
    "tool_call_id",
    "tool_calls",
    "tool_use_id",
    "tools",
    "type",
];
/// Members of messages that hold any JSON, as it is or as a text, and whose names are no text either.
const ANY_JSON: [&str; 2] = ["arguments", "input"];
/// Tokens of the quotes, the colon and the comma that a member is written with.
const MEMBER_SIGNS: u64 = 4;

/// A prompt that is being read.
pub(super) struct Reading<'c> {
    pub(super) size: PromptSize,
    pub(super) parts: &'static [(&'static str, PartKind)],
    pub(super) block: Block,
    pub(super) counter: &'c mut TextCounter,
}

impl Reading<'_> {
    fn add(&mut self, counted: Bounds) {
        let so_far = &mut self.size.text;
        so_far.lower = so_far.lower.saturating_add(counted.lower);
        so_far.upper = so_far.upper.saturating_add(counted.upper);
    }

    fn kind(&self, key: &str) -> Option<PartKind> {
        let part = self.parts.iter().find(|(part, _)| *part == key).map(|(_, kind)| *kind);
        part.or_else(|| ANY_JSON.contains(&key).then_some(PartKind::Json))
    }

    /// JSON as it stands, or the text that it was put into.
    fn json(&mut self, value: &str) -> Bounds {
        match serde_json::from_str::<String>(value) {
            Ok(text) => self.counter.count(&text),
            Err(_) => self.counter.count(value),
        }
    }

    fn opaque(&mut self, key: &str) {
        self.size.add_opaque(self.parts.iter().map(|(part, _)| *part), key);
    }

    /// A member that we do not know: nobody may read it, or the model as it stands.
    fn unknown(&mut self, key: &str, value: &str) {
        if value != "null" {
            let upper = self.counter.count(key).upper.saturating_add(self.counter.count(value).upper);
            self.add(Bounds { lower: 0, upper: upper.saturating_add(MEMBER_SIGNS) });
        }
    }
}

impl TextSink for Reading<'_> {
    fn text(&mut self, text: &str) {
        self.block.text(text);
        let counted = self.counter.count(text);
        self.add(counted);
    }

    /// The id of a token.
    fn number(&mut self, _: &str) {
        self.add(Bounds { lower: 1, upper: 1 });
    }

    fn key(&mut self, key: &str) {
        self.block.key(key);
    }

    fn skips(&self, key: &str) -> bool {
        !WALKED.contains(&key) || self.kind(key).is_some()
    }

    fn skipped(&mut self, key: &str, value: &str) {
        let Some(kind) = self.kind(key) else { return self.unknown(key, value) };
        match part(kind, value, self.block) {
            Part::Nothing => {}
            Part::Image => {
                self.size.images += 1;
                let tokens = image_tokens(&self.counter.image, value);
                self.size.image_tokens = self.size.image_tokens.saturating_add(tokens.0);
            }
            Part::Sound => {
                self.size.sounds += 1;
                self.opaque(key);
            }
            Part::Opaque => self.opaque(key),
            Part::Text => {
                let counted = self.json(value);
                self.add(counted);
            }
        }
    }
}
