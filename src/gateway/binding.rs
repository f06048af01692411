//! Calling a model through a binding of the platform's.
//!
//! Invariant: what comes out of here is in OpenAI's shape, as if an upstream of that kind had answered, so nothing that
//! relays, meters or settles knows the difference. Nothing of it is fetched by an address.

use super::ports::{Body, ModelRun, Piece, Ports, UpstreamReply};
use crate::dialect::bad_request::BadRequest;
use crate::dialect::fault::{ErrorBody, error_of, redacted};
use crate::dialect::workers_ai::errors::{AiError, Meaning};
use crate::dialect::workers_ai::{Events, Failure, Operation, Stamp, Whole, input, whole};
use crate::limit::Tokens;
use crate::rejection::UpstreamFault;
use crate::time::{UtcDay, Wait, parse_retry_after};

/// How the answers to one call are translated.
#[derive(Debug)]
pub(super) struct Translation {
    operation: Operation,
    stamp: Stamp,
    base64: bool,
    streamed: bool,
}

/// What is to be run for `body`, and how its answer is translated.
///
/// # Errors
/// If the binding cannot do what the body asks for.
pub(super) fn prepared<P: Ports>(
    ports: &P,
    (operation, binding): (Operation, &str),
    (body, prompt): (&[u8], Tokens),
) -> Result<(ModelRun, Translation), UpstreamFault> {
    const MILLIS: u64 = 1_000;
    let made = input(operation, body).map_err(refused)?;
    let id = format!("{:012x}", ports.random());
    let stamp = Stamp { id, created: ports.now().0 / MILLIS, model: made.model.clone(), prompt: prompt.0 };
    let run = ModelRun { binding: binding.to_owned(), model: made.model, input: made.json };
    Ok((run, Translation { operation, stamp, base64: made.base64, streamed: made.stream }))
}

impl Translation {
    /// Whether the caller wants a stream.
    pub(super) fn is_streamed(&self) -> bool {
        self.streamed
    }

    /// A whole answer as the caller gets it, and whether the usage in it is the provider's.
    pub(super) fn whole<P: Ports>(&self, ports: &P, body: Vec<u8>) -> Result<(Vec<u8>, bool), UpstreamFault> {
        match whole(self.operation, &body, &self.stamp, self.base64) {
            Ok(Whole::AsIs) => Ok((body, true)),
            Ok(Whole::Made(made)) => Ok((made.into_bytes(), true)),
            Ok(Whole::WithOurUsage(made)) => Ok((made.into_bytes(), false)),
            Err(Failure) => Err(told(ports, (&body, 200), None)),
        }
    }

    /// A stream as the caller gets it.
    pub(super) fn stream<B>(self, body: B) -> Answered<B> {
        Answered::Translated(Box::new(Translator { body, events: Events::new(self.stamp), ended: false }))
    }
}

/// What an answer without success means for the caller.
pub(super) fn refusal<P: Ports, B>(ports: &P, reply: &UpstreamReply<B>, body: &[u8]) -> UpstreamFault {
    let wait = reply.header("retry-after").and_then(|value| parse_retry_after(value, ports.now()));
    told(ports, (body, reply.status), wait)
}

/// What an error means for the caller: by its code, else by its status.
fn told<P: Ports>(ports: &P, (body, status): (&[u8], u16), wait: Option<Wait>) -> UpstreamFault {
    let AiError { code, message } = AiError::read(body);
    let words = |kind: Option<&str>| {
        let error = error_of(body, status, None);
        ErrorBody {
            message: if message.is_empty() { error.message } else { redacted(&message, None) },
            kind: kind.map_or(error.kind, str::to_owned),
            code: code.map(|code| code.to_string()).or(error.code),
            ..error
        }
    };
    let now = ports.now();
    let fault = match Meaning::of(code, status) {
        Meaning::Refused { status } => return UpstreamFault::Refused { status, error: words(None) },
        Meaning::TooLong => {
            let error = ErrorBody { code: Some("context_length_exceeded".to_owned()), ..words(None) };
            return UpstreamFault::Refused { status: 400, error };
        }
        Meaning::Busy => return UpstreamFault::Limited { error: words(Some("requests")), wait },
        Meaning::UsedUp => {
            let wait = Some(UtcDay::of(now).wait_for_end(now));
            return UpstreamFault::Limited { error: words(Some("insufficient_quota")), wait };
        }
        Meaning::Account => UpstreamFault::Auth,
        Meaning::TimedOut => UpstreamFault::Timeout,
        Meaning::Failed => UpstreamFault::Failed { status },
    };
    // Not its words: they may quote the prompt.
    ports.warn(&format!("the binding answered {status}, its code: {}", code.unwrap_or_default()));
    fault
}

fn refused(fault: BadRequest) -> UpstreamFault {
    let BadRequest { message, param, code } = fault;
    let kind = "invalid_request_error".to_owned();
    UpstreamFault::Refused { status: 400, error: ErrorBody { message, kind, param, code: code.map(str::to_owned) } }
}

/// The body of an upstream's answer, as the caller is to get it.
#[derive(Debug)]
pub enum Answered<B> {
    /// As it comes.
    AsIs(B),
    /// In the other API's words.
    Translated(Box<Translator<B>>),
}

/// A body on its way from one API to the other.
#[derive(Debug)]
pub struct Translator<B> {
    body: B,
    events: Events,
    ended: bool,
}

impl<B> Answered<B> {
    /// What a body that has been read to its end comes to as a stream.
    pub(super) fn ready(events: Vec<u8>, body: B) -> Self {
        Self::Translated(Box::new(Translator { body, events: Events::ready(events), ended: true }))
    }
}

impl<B: Body> Body for Answered<B> {
    async fn next(&mut self, within: Wait) -> Piece {
        match self {
            Self::AsIs(body) => body.next(within).await,
            Self::Translated(translator) => translator.next(within).await,
        }
    }

    fn cancel(&mut self) {
        match self {
            Self::AsIs(body) => body.cancel(),
            Self::Translated(translator) => translator.body.cancel(),
        }
    }
}

impl<B: Body> Translator<B> {
    async fn next(&mut self, within: Wait) -> Piece {
        loop {
            let out = self.events.take_out();
            if !out.is_empty() {
                return Piece::Bytes(out);
            }
            if self.events.is_lost() {
                return Piece::Broken;
            }
            if self.ended {
                return Piece::End;
            }
            match self.body.next(within).await {
                Piece::Bytes(bytes) => self.events.push(&bytes),
                Piece::End => {
                    self.events.finish();
                    self.ended = true;
                }
                other @ (Piece::Broken | Piece::TimedOut) => return other,
            }
        }
    }
}
