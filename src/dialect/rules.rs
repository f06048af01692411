//! What a dialect says of itself: which members its requests have, and what they mean for the bound.

use super::bad_request::BadRequest;
use super::json::Members;
use super::reply::{Answer, Chunk, OutputCounter, Seen};
use crate::pricing::Quantities;

/// Whose API a dialect belongs to: how credentials are presented and errors look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// OpenAI's, which most providers speak.
    OpenAi,
    /// Anthropic's.
    Anthropic,
}

/// One way of calling a model: a route, and everything that is to be known of its requests and answers.
#[derive(Debug)]
pub struct Dialect {
    /// Where it is called.
    pub path: &'static str,
    /// Whose API it is.
    pub family: Family,
    /// How its requests are read and bounded.
    pub request: RequestRules,
    /// How its answers are read.
    pub reply: ReplyRules,
}

impl Dialect {
    /// What is added to an upstream's address.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.path.strip_prefix("/v1").unwrap_or(self.path)
    }
}

/// How an error is told in the middle of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorEvent {
    /// An error object in an event without a name: what OpenAI's clients look for.
    Plain,
    /// The same in a named event with a number, which clients of the responses API check as well.
    Numbered,
    /// Anthropic's error object in a named event: its clients pass over an event without a name.
    Anthropic,
}

/// Reads something of a request's members, or says which of them is wrong.
pub type Reader<T> = fn(&Members<'_>) -> Result<T, BadRequest>;

/// How requests are read and bounded. A member that no list names is text that the model reads.
#[derive(Debug)]
pub struct RequestRules {
    /// The members with the prompt; the first has to be there if `required` says so.
    pub prompt: &'static [(&'static str, PromptShape)],
    /// A member without which a request is none.
    pub required: Option<&'static str>,
    /// The model of a request that names none, where the API has such.
    pub default_model: Option<&'static str>,
    /// Members that the model does not read.
    pub not_read: &'static [&'static str],
    /// Members inside of messages that are no text.
    pub parts: &'static [(&'static str, PartKind)],
    /// The names of the output cap. Of several the largest counts, since providers differ in which one they obey.
    pub caps: &'static [&'static str],
    /// What a request without an output cap gets.
    pub cap: CapRule,
    /// Members that multiply the answers; of several the largest counts.
    pub candidates: &'static [&'static str],
    /// Whether every element of the prompt is a call of its own.
    pub each_prompt_answered: bool,
    /// Whether a stream has to be asked for its usage.
    pub asks_for_usage: bool,
    /// Every other member that decides what is held, what is sent or where: none may stand twice.
    pub decisive: &'static [&'static str],
    /// Members that make a call cost what its request does not show, and why, beside those that do in every dialect.
    pub unbounded: &'static [(&'static str, &'static str)],
    /// The member that bounds the uses of the provider's own tools; without one each tool has to bound its own.
    pub tool_calls_cap: Option<&'static str>,
    /// Beginnings of the types of tools that the client runs, though the provider describes them.
    pub client_tools: &'static [&'static str],
    /// What the provider's own words about tools count at most, if there are any.
    pub tools_tokens: u64,
    /// Whether the provider makes no charge.
    pub free: bool,
    /// What else the call takes (characters, images, sound), and what else has to be checked. Its `output` is what every
    /// answer may have beyond its cap, and its `reasoning` what is beyond it where it is not below it.
    pub extra: Option<Reader<Quantities>>,
    /// What it is about beside text.
    pub medium: Medium,
}

impl RequestRules {
    /// A request of which nothing is read: what a table does not state is as here.
    pub const NONE: Self = Self {
        prompt: &[],
        required: None,
        default_model: None,
        not_read: &[],
        parts: &[],
        caps: &[],
        cap: CapRule::Nothing,
        candidates: &[],
        each_prompt_answered: false,
        asks_for_usage: false,
        decisive: &[],
        unbounded: &[],
        tool_calls_cap: None,
        client_tools: &[],
        tools_tokens: 0,
        free: false,
        extra: None,
        medium: Medium::Text,
    };
}

/// What a call is about beside text: it decides how its request is written, what is held and charged, and what an
/// answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Nothing.
    Text,
    /// Images are made; from these files, where there are any.
    Images(&'static [&'static str]),
    /// A text is read aloud.
    Speech,
    /// Sound in these files is written down.
    Transcript(&'static [&'static str]),
}

impl Medium {
    /// The fields that are files. With files, a request is a form.
    #[must_use]
    pub fn files(self) -> &'static [&'static str] {
        match self {
            Self::Text | Self::Speech => &[],
            Self::Images(files) | Self::Transcript(files) => files,
        }
    }
}

/// How a member holds the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptShape {
    /// A list of messages, each an object.
    Messages,
    /// A text, a list of texts, token ids, a list of lists of them, or a list of items.
    Input,
    /// The same, but that an item may be the name of one that the provider keeps, whose size does not show.
    Items,
    /// The name of something that the provider keeps, whose size does not show.
    Unseen,
}

/// A member of a message that is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// An image.
    Image,
    /// Sound.
    Audio,
    /// A file or a video, whose size in tokens does not show.
    File,
    /// An image, a document or a text, as the block that it stands in says.
    Source,
    /// Any JSON, read as it stands.
    Json,
}

/// What a request without an output cap gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapRule {
    /// The plan's, written under the name that the model's policy says.
    Model,
    /// The plan's, written under this name.
    Field(&'static str),
    /// The API's own, which need not be written.
    Api(u64),
    /// What the model can write: there is no cap to be written.
    Ceiling,
    /// Nothing: the answer is no text.
    Nothing,
}

/// How answers are read.
#[derive(Debug)]
pub struct ReplyRules {
    /// Reads the output in a whole answer; `None` if it is none.
    pub whole: fn(&Answer<'_>, &mut OutputCounter) -> Option<Seen>,
    /// Reads an event of a stream into a chunk that knows its usage and error already.
    pub event: fn(&Answer<'_>, &mut OutputCounter, &mut Chunk),
    /// Whether a successful answer may be no JSON: sound, or plain text.
    pub raw: bool,
    /// How an error is told in the middle of a stream.
    pub error_event: ErrorEvent,
    /// Whether usage is to be expected. Without it the request itself says what the call costs.
    pub has_usage: bool,
}
