//! How large a prompt is: an upper bound that holds on any input.
//!
//! Invariant: a byte-level tokeniser never makes more tokens than there are bytes of UTF-8, so the bytes of every text
//! that the model may read, plus an overhead for each message, are never too few. Base64 is not text: an image counts
//! as a number of tokens that the policy states, and what has no size that we can see counts as a whole context.

use super::json::{Member, Members};
use super::texts::{TextSink, walk_objects};
use crate::limit::Tokens;

/// Tokens that every message costs on top of its text (3 in the public chat format, 1 more for a name), with room.
const PER_MESSAGE: u64 = 8;
/// Tokens that every call costs on top of its messages (3 in the public chat format), with room.
const PER_CALL: u64 = 8;

/// Members that no model reads.
const NOT_READ: [&str; 24] = [
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning_effort",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "user",
];

/// The part of a message that is an image.
const IMAGE_PART: &str = "image_url";
/// Parts of a message whose size cannot be seen in the request.
const OPAQUE_PARTS: [&str; 6] = ["input_audio", "audio", "audio_url", "file", "input_file", "video_url"];

/// What was found in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptSize {
    /// Bytes of text.
    pub text: u64,
    /// Messages.
    pub messages: u64,
    /// Images.
    pub images: u64,
    /// Parts of unknown size: audio, files, video.
    pub opaque: u64,
}

/// How a model counts what is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSizes {
    /// The most that one image counts.
    pub image: Tokens,
    /// The most that the model reads at all.
    pub context: Tokens,
}

impl PromptSize {
    /// Reads a request's prompt from its members.
    ///
    /// # Errors
    /// If `messages` is not a list of objects; the error says what it is.
    pub fn of(members: &Members<'_>) -> Result<Self, serde_json::Error> {
        let mut size = Self::default();
        let unknown = |member: &&Member<'_>| !NOT_READ.contains(&&*member.name) && !member.is_null();
        for member in members.0.iter().filter(unknown) {
            // Tools, schemas, and whatever a vendor may have added: the compact JSON of a tool is never fewer tokens
            // than its rendering in the prompt.
            size.text = size.text.saturating_add(member.value.get().len() as u64);
        }
        if let Some(messages) = members.get("messages") {
            size.messages = walk_objects(messages.value.get(), &mut size)?;
        }
        Ok(size)
    }

    /// The most tokens that a model can count for it.
    #[must_use]
    pub fn bound(&self, sizes: PartSizes) -> Tokens {
        if self.opaque > 0 {
            return sizes.context;
        }
        let tokens = self
            .text
            .saturating_add(self.messages.saturating_mul(PER_MESSAGE))
            .saturating_add(self.images.saturating_mul(sizes.image.0))
            .saturating_add(PER_CALL);
        Tokens(tokens).min(sizes.context)
    }
}

impl TextSink for PromptSize {
    fn text(&mut self, text: &str) {
        self.text = self.text.saturating_add(text.len() as u64);
    }

    fn skips(&self, key: &str) -> bool {
        key == IMAGE_PART || OPAQUE_PARTS.contains(&key)
    }

    fn skipped(&mut self, key: &str, null: bool) {
        match key {
            _ if null => {}
            IMAGE_PART => self.images += 1,
            _ => self.opaque += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: PartSizes = PartSizes { image: Tokens(2_000), context: Tokens(100_000) };

    fn size_of(body: &str) -> PromptSize {
        PromptSize::of(&Members::of_body(body.as_bytes()).unwrap().1).unwrap()
    }

    #[test]
    fn all_texts_of_all_messages_count_with_escapes_undone() {
        let size = size_of(
            r#"{"model":"m","messages":[{"role":"user","content":"H\u00e9"},
                {"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}],"content":null}]}"#,
        );
        assert_eq!((size.text, size.messages), (4 + 3 + 9 + 1 + 1 + 2, 2));
        assert_eq!(size.bound(SIZES), Tokens(20 + 2 * 8 + 8));
    }

    #[test]
    fn base64_is_an_image_and_not_text() {
        let image = format!("data:image/png;base64,{}", "A".repeat(300_000));
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"?"}},
               {{"type":"image_url","image_url":{{"url":"{image}","detail":"high"}}}}]}}]}}"#
        );
        let size = size_of(&body);
        assert_eq!((size.images, size.opaque), (1, 0));
        assert!(size.bound(SIZES).0 < 2_100, "{size:?}");
    }

    #[test]
    fn what_has_no_size_counts_as_a_whole_context() {
        for part in OPAQUE_PARTS {
            let body = format!(r#"{{"messages":[{{"role":"user","content":[{{"{part}":{{"data":"AA"}}}}]}}]}}"#);
            assert_eq!(size_of(&body).bound(SIZES), Tokens(100_000), "{part}");
        }
        assert_eq!(size_of(r#"{"messages":[{"role":"assistant","content":"a","audio":null}]}"#).opaque, 0);
    }

    #[test]
    fn tools_and_members_that_we_do_not_know_count_whole() {
        let tools = r#"[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]"#;
        let size = size_of(&format!(r#"{{"tools":{tools},"x_documents":"abc","seed":1,"user":"someone"}}"#));
        assert_eq!(size.text, tools.len() as u64 + 5);
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        for messages in ["{}", "\"hi\"", "[1]", "[\"hi\"]", "[[]]"] {
            let body = format!(r#"{{"messages":{messages}}}"#);
            assert!(PromptSize::of(&Members::of_body(body.as_bytes()).unwrap().1).is_err(), "{messages}");
        }
    }
}
