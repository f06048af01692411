//! How large a prompt is: an upper bound that holds, and as near to the truth as the policy pays for.
//!
//! Invariant: a byte-level tokeniser never makes more tokens than there are bytes of UTF-8, so no text ever counts as
//! fewer tokens than it can be and none counts as more than its bytes. Base64 is not text: an image counts as a number
//! of tokens that the policy states, and what has no size that we can see counts as a whole context.

use super::bad_request::{BadRequest, bad};
use super::image::ImageRule;
use super::json::{Member, Members};
use super::lists::{REFERENCE, any_reference, elements, items, listed};
use super::parts::Block;
use super::reading::Reading;
use super::rules::{PromptShape, RequestRules};
use super::texts::{TextSink, walk, walk_objects};
use crate::limit::Tokens;
use crate::tokens::{Bounds, Encoding, WorkBudget, bounds, count_within};

/// Members that list tools.
const TOOLS: [&str; 2] = ["tools", "functions"];
/// Tokens that an element of a list costs on top of its JSON: tools are shown to a model in a notation of its own, where
/// a choice takes 3 more than its text (the public recipe).
const PER_ELEMENT: u64 = 3;

/// How text becomes a number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountMethod {
    /// By the model's own vocabulary, within the work that is allowed.
    Exact,
    /// Between what is certain without a vocabulary; held is the upper one.
    Bounds,
    /// A token for each byte.
    Bytes,
}

/// How prompts are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountRules {
    /// How text is counted.
    pub method: CountMethod,
    /// How many bytes of text are counted by the vocabulary at most, in one request; the rest by its bytes.
    pub exact_max: u64,
    /// How many steps counting may take in one request; a step is 15 to 35 ns.
    pub steps_max: u64,
    /// Tokens that every message costs on top of its text (3 in the public chat format, 1 more for a name).
    pub per_message: Tokens,
    /// Tokens that every call costs on top of its messages (3 in the public chat format).
    pub per_call: Tokens,
    /// Tokens that every tool costs on top of its JSON, and once more where there are any (7 for each, 12 once and 3 for
    /// each property in the public recipe).
    pub per_tool: Tokens,
}

/// How a model counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelCount {
    /// The vocabulary to count by.
    pub encoding: Option<Encoding>,
    /// What its count is multiplied by, in hundredths: 100 for the model's own vocabulary, more for a stand-in.
    pub percent: u64,
    /// What an image counts.
    pub image: ImageRule,
    /// The most that the model reads at all.
    pub context: Tokens,
}

/// Counts the texts of one request.
#[derive(Debug)]
pub struct TextCounter {
    encoding: Option<Encoding>,
    percent: u64,
    pub(super) image: ImageRule,
    free_bounds: bool,
    bytes_left: u64,
    budget: WorkBudget,
}

impl TextCounter {
    /// A counter under the policy's rules.
    #[must_use]
    pub fn new(rules: &CountRules, model: &ModelCount) -> Self {
        Self {
            encoding: model.encoding.filter(|_| rules.method == CountMethod::Exact),
            percent: model.percent,
            image: model.image,
            free_bounds: rules.method != CountMethod::Bytes,
            bytes_left: rules.exact_max,
            budget: WorkBudget::new(rules.steps_max),
        }
    }

    /// A counter that does no work: a token for each byte.
    #[must_use]
    pub fn bytes(model: &ModelCount) -> Self {
        let (free_bounds, image) = (false, model.image);
        Self { encoding: None, percent: 100, image, free_bounds, bytes_left: 0, budget: WorkBudget::new(0) }
    }

    /// Between how many tokens `text` is.
    pub(super) fn count(&mut self, text: &str) -> Bounds {
        let bytes = text.len() as u64;
        let Some(encoding) = self.encoding.filter(|_| bytes <= self.bytes_left) else {
            return if self.free_bounds { bounds(text) } else { Bounds { lower: 0, upper: bytes } };
        };
        self.bytes_left -= bytes;
        let counted = count_within(encoding, text, &mut self.budget).bounds();
        if self.percent == 100 {
            return counted;
        }
        // Another vendor's vocabulary: a stated factor above the count, though never above the bytes.
        let upper = counted.upper.saturating_mul(self.percent).div_ceil(100).min(bytes);
        Bounds { lower: 0, upper }
    }
}

/// What was found in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptSize {
    /// Tokens of text.
    pub text: Bounds,
    /// Messages.
    pub messages: u64,
    /// Images.
    pub images: u64,
    /// Tokens of all images.
    pub image_tokens: u64,
    /// Tools and functions.
    pub tools: u64,
    /// Elements of all lists in tools and schemas.
    pub listed: u64,
    /// Parts of sound.
    pub sounds: u64,
    /// Parts of unknown size, sound among them: files, video, what the provider keeps.
    pub opaque: u64,
    /// The name of one of them.
    pub opaque_name: Option<&'static str>,
}

/// The tokens of a prompt, at least and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptTokens {
    /// As few as there can be; more than the context if the prompt is too long for the model.
    pub lower: Tokens,
    /// As many as there can be: what is held.
    pub upper: Tokens,
}

impl PromptSize {
    /// Reads a request's prompt from its members.
    ///
    /// # Errors
    /// If a list of messages is none; the error says what it is.
    pub fn of(rules: &RequestRules, members: &Members<'_>, counter: &mut TextCounter) -> Result<Self, BadRequest> {
        let mut reading = Reading { size: Self::default(), parts: rules.parts, block: Block::default(), counter };
        for member in members.0.iter().filter(|member| is_read(rules, member)) {
            let json = member.value.get();
            match shape_of(rules, &member.name) {
                Some(PromptShape::Messages) => {
                    let read = walk_objects(json, &mut reading);
                    let messages = read.map_err(|fault| {
                        if fault.is_data() { no_messages(&member.name, json) } else { unreadable(&member.name, &fault) }
                    })?;
                    reading.size.messages = reading.size.messages.saturating_add(messages);
                }
                Some(shape @ (PromptShape::Input | PromptShape::Items)) => {
                    walk(json, &mut reading).map_err(|fault| unreadable(&member.name, &fault))?;
                    reading.size.messages = reading.size.messages.saturating_add(items(json));
                    if shape == PromptShape::Items && any_reference(json) {
                        reading.size.add_opaque([REFERENCE].into_iter(), REFERENCE);
                    }
                }
                Some(PromptShape::Unseen) => {
                    reading.size.add_opaque(rules.prompt.iter().map(|(name, _)| *name), &member.name);
                }
                // Tools, schemas, and whatever a vendor may have added.
                None => {
                    reading.text(json);
                    reading.size.listed = reading.size.listed.saturating_add(listed(json));
                }
            }
            if TOOLS.contains(&&*member.name) {
                reading.size.tools = reading.size.tools.saturating_add(elements(json).unwrap_or(1));
            }
        }
        Ok(reading.size)
    }

    /// How many bytes the texts of a request can have at most, by its length alone.
    #[must_use]
    pub fn bytes_max(rules: &RequestRules, members: &Members<'_>) -> u64 {
        members.0.iter().filter(|member| is_read(rules, member)).map(|member| member.value.get().len() as u64).sum()
    }

    /// Adds something of unknown size, by its name among those that the dialect's table has.
    pub(super) fn add_opaque(&mut self, mut names: impl Iterator<Item = &'static str>, name: &str) {
        self.opaque += 1;
        self.opaque_name = self.opaque_name.or_else(|| names.find(|known| *known == name));
    }

    /// The tokens that a model can count for it.
    #[must_use]
    pub fn tokens(&self, rules: &CountRules, model: &ModelCount) -> PromptTokens {
        let tools = if self.tools > 0 { self.tools.saturating_add(1).saturating_mul(rules.per_tool.0) } else { 0 };
        let messages = self.messages.saturating_mul(rules.per_message.0);
        let listed = self.listed.saturating_mul(PER_ELEMENT);
        let overhead = messages.saturating_add(rules.per_call.0).saturating_add(tools).saturating_add(listed);
        let upper = self.text.upper.saturating_add(overhead).saturating_add(self.image_tokens);
        let upper = if self.opaque > 0 { model.context } else { Tokens(upper).min(model.context) };
        PromptTokens { lower: Tokens(self.text.lower), upper }
    }
}

/// How a member holds the prompt, if it does.
fn shape_of(rules: &RequestRules, name: &str) -> Option<PromptShape> {
    rules.prompt.iter().find(|(member, _)| *member == name).map(|(_, shape)| *shape)
}

/// Whether a model reads a member.
fn is_read(rules: &RequestRules, member: &Member<'_>) -> bool {
    let name = &*member.name;
    let framing = name == "model" || name == "stream_options" && rules.asks_for_usage;
    let lists = [rules.not_read, rules.caps, rules.candidates];
    !framing && !member.is_null() && !lists.iter().any(|list| list.contains(&name))
}

/// What stands where messages have to. What it is, not what it says: the words of a prompt belong into no error.
fn no_messages(name: &str, json: &str) -> BadRequest {
    let found = match json.bytes().next() {
        Some(b'[') => "a list with an element that is no message",
        Some(b'{') => "an object",
        Some(b'"') => "a text",
        _ => "something else",
    };
    bad(name, format!("`{name}` is {found}, want a list of messages, each an object"))
}

/// A text or a number that is none: what it stands for, if anything, is for each reader to say.
fn unreadable(name: &str, fault: &serde_json::Error) -> BadRequest {
    bad(name, format!("`{name}` has a text or a number that cannot be read: {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::chat::CHAT;

    const RULES: CountRules = CountRules {
        method: CountMethod::Exact,
        exact_max: 100_000,
        steps_max: 400_000,
        per_message: Tokens(8),
        per_call: Tokens(8),
        per_tool: Tokens(16),
    };
    const MODEL: ModelCount = ModelCount {
        encoding: Some(Encoding::O200k),
        percent: 100,
        image: ImageRule::Fixed(Tokens(2_000)),
        context: Tokens(100_000),
    };

    fn size_of(body: &str) -> PromptSize {
        PromptSize::of(&CHAT.request, &Members::of_body(body.as_bytes()).unwrap().1, &mut TextCounter::bytes(&MODEL))
            .unwrap()
    }

    fn tokens_of(body: &str, rules: CountRules, model: ModelCount) -> (u64, u64) {
        let members = Members::of_body(body.as_bytes()).unwrap().1;
        let size = PromptSize::of(&CHAT.request, &members, &mut TextCounter::new(&rules, &model)).unwrap();
        let tokens = size.tokens(&rules, &model);
        (tokens.lower.0, tokens.upper.0)
    }

    #[test]
    fn all_texts_of_all_messages_count_with_escapes_undone() {
        let size = size_of(
            r#"{"model":"m","messages":[{"role":"user","content":"H\u00e9"},
                {"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}],"content":null}]}"#,
        );
        assert_eq!((size.text.upper, size.messages), (4 + 3 + 9 + 1 + 1 + 2, 2));
        assert_eq!(size.tokens(&RULES, &MODEL).upper, Tokens(20 + 2 * 8 + 8));
    }

    #[test]
    fn the_policy_says_how_text_is_counted() {
        let text = "How many tokens is this? ".repeat(10);
        let body = format!(r#"{{"messages":[{{"content":"{text}"}}]}}"#);
        let with = |method, percent| tokens_of(&body, CountRules { method, ..RULES }, ModelCount { percent, ..MODEL });
        let exact = crate::tokens::count(Encoding::O200k, &text).exact().unwrap();
        assert_eq!(with(CountMethod::Exact, 100), (exact, exact + 16));
        assert_eq!(with(CountMethod::Exact, 150), (0, (exact * 3).div_ceil(2) + 16));
        assert_eq!(with(CountMethod::Exact, 10_000), (0, 250 + 16));
        assert_eq!(with(CountMethod::Bytes, 100), (0, 250 + 16));
        let (lower, upper) = with(CountMethod::Bounds, 100);
        assert!(lower > 0 && lower <= exact && upper == 250 + 16);
        let unknown = ModelCount { encoding: None, ..MODEL };
        assert_eq!(tokens_of(&body, RULES, unknown).1, 250 + 16);
    }

    #[test]
    fn beyond_what_may_be_counted_exactly_the_bytes_count() {
        let body = r#"{"messages":[{"content":"hello hello"},{"content":"hello hello"}]}"#;
        let short = CountRules { exact_max: 11, ..RULES };
        assert_eq!(tokens_of(body, short, MODEL).1, 2 + 11 + 2 * 8 + 8);
        let lazy = CountRules { steps_max: 0, ..RULES };
        assert_eq!(tokens_of(body, lazy, MODEL).1, 22 + 2 * 8 + 8);
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
        assert!(size.tokens(&RULES, &MODEL).upper.0 < 2_100, "{size:?}");
    }

    #[test]
    fn what_has_no_size_counts_as_a_whole_context() {
        for part in ["input_audio", "audio", "audio_url", "file", "input_file", "video_url"] {
            let body = format!(r#"{{"messages":[{{"role":"user","content":[{{"{part}":{{"data":"AA"}}}}]}}]}}"#);
            assert_eq!(size_of(&body).tokens(&RULES, &MODEL).upper, Tokens(100_000), "{part}");
        }
        assert_eq!(size_of(r#"{"messages":[{"role":"assistant","content":"a","audio":null}]}"#).opaque, 0);
    }

    #[test]
    fn tools_and_members_that_we_do_not_know_count_whole() {
        let tools = r#"[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]"#;
        let body = format!(r#"{{"tools":{tools},"x_documents":"abc","seed":1,"user":"someone","messages":[]}}"#);
        assert_eq!(size_of(&body).text.upper, tools.len() as u64 + 5);
        assert_eq!(size_of(&body).tokens(&RULES, &MODEL).upper, Tokens(tools.len() as u64 + 5 + 8 + 2 * 16 + 3));
        assert_eq!(
            PromptSize::bytes_max(&CHAT.request, &Members::of_body(body.as_bytes()).unwrap().1),
            tools.len() as u64 + 5 + 2
        );
    }

    #[test]
    fn what_a_message_holds_beyond_what_we_know_counts_with_its_names() {
        let text = |members: &str| size_of(&format!(r#"{{"messages":[{{{members}}}]}}"#)).text;
        let known = text(r#""content":"a""#);
        assert_eq!(known, Bounds { lower: 0, upper: 1 });
        assert_eq!(text(r#""content":"a","x_more":{"b":1},"audio":null,"y":null"#).upper, 1 + 6 + 7 + 4);
        assert_eq!(text(r#""x_more":"\n\n""#).upper, 6 + 6 + 4);
        assert_eq!(text(r#""arguments":{"key":"v"}"#).upper, 11);
        assert_eq!(text(r#""arguments":"{\"key\":\"v\"}""#).upper, 11);
    }

    #[test]
    fn a_choice_costs_more_than_its_json() {
        let tools = r#"[{"function":{"parameters":{"properties":{"p":{"enum":["a","b"]}}}}}]"#;
        let size = size_of(&format!(r#"{{"messages":[],"tools":{tools}}}"#));
        assert_eq!(size.listed, 3);
        assert_eq!(size.tokens(&RULES, &MODEL).upper, Tokens(tools.len() as u64 + 8 + 2 * 16 + 3 * 3));
    }

    #[test]
    fn nothing_stands_uncounted_behind_what_cannot_be_read() {
        for (members, param) in [
            (r#""model":"m","messages":[{"content":"\ud800"},{"content":"uncounted"}]"#, "messages"),
            (r#""model":"m","messages":[{"content":1e999}]"#, "messages"),
        ] {
            let body = format!("{{{members}}}");
            let members = Members::of_body(body.as_bytes()).unwrap().1;
            let read = PromptSize::of(&CHAT.request, &members, &mut TextCounter::bytes(&MODEL));
            let fault = read.unwrap_err();
            assert_eq!(fault.param.as_deref(), Some(param));
            assert!(fault.message.contains("at line 1 column"), "{}", fault.message);
        }
        let body = br#"{"input":["\ud800","uncounted"]}"#;
        let members = Members::of_body(body).unwrap().1;
        let rules = &crate::dialect::embeddings::EMBEDDINGS.request;
        let fault = PromptSize::of(rules, &members, &mut TextCounter::bytes(&MODEL)).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some("input"));
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        for messages in ["{}", "\"hi\"", "[1]", "[\"hi\"]", "[[]]"] {
            let body = format!(r#"{{"messages":{messages}}}"#);
            let members = Members::of_body(body.as_bytes()).unwrap().1;
            assert!(PromptSize::of(&CHAT.request, &members, &mut TextCounter::bytes(&MODEL)).is_err(), "{messages}");
        }
    }
}
