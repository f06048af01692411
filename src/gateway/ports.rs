//! What the gateway needs from outside.
//!
//! Invariant: every port has two implementations, the platform's in `edge` and the tests' in memory; nothing here names
//! a platform type.

use std::rc::Rc;

use crate::auth::Subject;
use crate::ledger::{Gate, Row};
use crate::limit::protocol::{Command, Reply};
use crate::policy::{LedgerRules, Turnstile};
use crate::time::{UnixMillis, UtcDay, Wait};

use super::memory::Memory;
use super::record::CallRecord;

/// Everything outside of one call.
#[expect(async_fn_in_trait, reason = "the platform has one thread; its futures are not Send and need not be")]
pub trait Ports {
    /// The body of an upstream's reply.
    type Body: Body;

    /// The time.
    fn now(&self) -> UnixMillis;

    /// A header of the caller's request, by its lower-case name.
    fn header(&self, name: &str) -> Option<String>;

    /// The body of the caller's request, if it is not larger than `cap` bytes.
    async fn read_body(&self, cap: usize) -> Result<Vec<u8>, ReadFault>;

    /// One question to a subject's object, bounded in time.
    async fn ask(&self, subject: &Subject, command: &Command, within: Wait) -> Result<Reply, Unavailable>;

    /// One call to an upstream; its answer's head has to come within the bound.
    async fn send(&self, request: UpstreamRequest, within: Wait) -> Result<UpstreamReply<Self::Body>, SendFault>;

    /// One call to a model through a binding of the platform's. What the binding throws is an answer with its status, if it
    /// says what went wrong.
    async fn run(&self, run: ModelRun, within: Wait) -> Result<UpstreamReply<Self::Body>, SendFault>;

    /// The day's gate: one atomic statement that checks and counts, bounded in time. It returns the rows as it left them:
    /// the caller's and the site's where it counted, the caller's alone where it refused.
    async fn count(&self, gate: &Gate, within: Wait) -> Result<Vec<Row>, Unavailable>;

    /// A row of the ledger as it is.
    async fn row(&self, day: UtcDay, key: &str, within: Wait) -> Result<Option<Row>, Unavailable>;

    /// Deletes old rows, in work that nobody waits for; a failure is made up for by the next call.
    fn prune(&self, day: UtcDay, rules: &LedgerRules);

    /// The platform's own rate limiter: whether it lets `key` in. Let in where there is none bound.
    async fn shield(&self, key: &str, within: Wait) -> Result<bool, Unavailable>;

    /// Whether a browser's answer to the challenge is good.
    async fn is_human(&self, turnstile: &Turnstile, answer: &str, within: Wait) -> Result<bool, Unavailable>;

    /// Returns when the time has passed.
    async fn sleep(&self, wait: Wait);

    /// An unguessable number.
    fn random(&self) -> u64;

    /// What this isolate remembers.
    fn memory(&self) -> &Memory;

    /// Whether callers' objects can be asked at all.
    fn has_limiter(&self) -> bool;

    /// Whether the platform's rate limiter is bound.
    fn has_shield(&self) -> bool;

    /// Writes the call down, once, when it has ended.
    fn log(&self, record: &CallRecord);

    /// Writes down a failure that nobody is told of.
    fn warn(&self, message: &str);
}

/// The body of an upstream's reply, in pieces.
#[expect(async_fn_in_trait, reason = "the platform has one thread; its futures are not Send and need not be")]
pub trait Body {
    /// The next piece. A future that is dropped loses nothing: the next call returns the piece that it waited for.
    async fn next(&mut self, within: Wait) -> Piece;

    /// Ends the upstream's call, if it has not ended.
    fn cancel(&mut self);
}

/// What comes next of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Its end.
    End,
    /// The connection broke.
    Broken,
    /// Nothing, for longer than the bound.
    TimedOut,
}

/// The client, while a stream is relayed to it.
#[expect(async_fn_in_trait, reason = "the platform has one thread; its futures are not Send and need not be")]
pub trait Client {
    /// Hands bytes on; returns when the client's side has taken them.
    async fn write(&mut self, bytes: &[u8], within: Wait) -> Result<(), Gone>;

    /// Returns when the client has left.
    async fn gone(&self);

    /// Ends the answer cleanly.
    async fn close(&mut self);
}

/// The client has left, or takes nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Why a body could not be read whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// It is larger than the cap.
    TooLarge,
    /// It broke off.
    Broken,
    /// Nothing came for longer than the bound.
    TimedOut,
}

/// Reads a body of at most `cap` bytes to its end. `bound` says, by how much has come, how long the next piece may take;
/// where it says zero there is no time left. A body that could not be read is not cancelled.
///
/// # Errors
/// If it is too large, breaks off, or takes too long.
pub async fn read_whole(body: &mut impl Body, cap: usize, bound: impl Fn(usize) -> Wait) -> Result<Vec<u8>, ReadFault> {
    let mut whole = Vec::new();
    loop {
        let within = bound(whole.len());
        if within == Wait(0) {
            return Err(ReadFault::TimedOut);
        }
        match body.next(within).await {
            Piece::Bytes(bytes) if whole.len() + bytes.len() > cap => return Err(ReadFault::TooLarge),
            // The usual case, a body in one piece, is not copied.
            Piece::Bytes(bytes) if whole.is_empty() => whole = bytes,
            Piece::Bytes(bytes) => whole.extend_from_slice(&bytes),
            Piece::End => return Ok(whole),
            Piece::Broken => return Err(ReadFault::Broken),
            Piece::TimedOut => return Err(ReadFault::TimedOut),
        }
    }
}

/// A question was not answered: a binding is missing, the object threw, or the bound passed. The text is for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub String);

/// A call to an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamRequest {
    /// The method.
    pub method: &'static str,
    /// Where.
    pub url: String,
    /// Headers, by lower-case name.
    pub headers: Vec<(String, String)>,
    /// What the body is; of a form, with its boundary.
    pub content_type: String,
    /// The body; it may have to be sent again.
    pub body: Rc<Vec<u8>>,
}

/// A call to a model through a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRun {
    /// The binding's name.
    pub binding: String,
    /// The model's.
    pub model: String,
    /// What it is given, a JSON object.
    pub input: String,
}

/// An upstream's answer.
#[derive(Debug)]
pub struct UpstreamReply<B> {
    /// Its status.
    pub status: u16,
    /// Its headers, by lower-case name.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: B,
}

impl<B> UpstreamReply<B> {
    /// A header by its lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendFault {
    /// No connection.
    Unreachable,
    /// No answer's head within the bound.
    TimedOut,
}
