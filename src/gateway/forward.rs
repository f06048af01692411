//! Sending a call upstream, and judging the answer before anything of it is sent on.
//!
//! Invariant: the address comes from the policy, never from the caller. An answer that is not streamed is read whole,
//! so a failure costs nothing and is told as one; of a stream, the first event is looked at.

use super::header_policy::{reply_headers, request_headers};
use super::ports::{Body, Piece, Ports, SendFault, UpstreamReply, UpstreamRequest};
use crate::dialect::fault::error_of;
use crate::dialect::reply::{Completion, NotACompletion};
use crate::policy::{Bounds, Upstream};
use crate::rejection::UpstreamFault;
use crate::time::{UnixMillis, Wait, parse_retry_after};

/// The operation that is added to an upstream's address.
const OPERATION: &str = "/chat/completions";
/// The largest answer that is read whole; a Worker has 128 MB for all its calls.
const ANSWER_MAX: usize = 16 * 1024 * 1024;
/// The largest error that is read.
const ERROR_MAX: usize = 64 * 1024;

/// An answer that may be sent on.
#[derive(Debug)]
pub(super) enum Forwarded<B> {
    /// A whole one.
    Whole {
        /// Headers that come from the upstream's.
        headers: Vec<(String, String)>,
        /// Its body.
        body: Vec<u8>,
        /// What it says.
        completion: Completion,
    },
    /// A stream, of which nothing has been read.
    Stream {
        /// Headers that come from the upstream's.
        headers: Vec<(String, String)>,
        /// Its body.
        body: B,
        /// How long its first event may take.
        first: Wait,
    },
}

/// Sends `body` to `upstream`.
pub(super) async fn forward<P: Ports>(
    ports: &P,
    upstream: &Upstream,
    body: String,
    bounds: &Bounds,
) -> Result<Forwarded<P::Body>, UpstreamFault> {
    let sent_at = ports.now();
    let request = UpstreamRequest {
        url: format!("{}{OPERATION}", upstream.base_url),
        headers: request_headers(upstream, |name| ports.header(name)),
        body,
    };
    let mut reply = ports.send(&request, bounds.first_byte).await.map_err(|fault| match fault {
        SendFault::Unreachable => UpstreamFault::Unreachable,
        SendFault::TimedOut => UpstreamFault::Timeout,
    })?;
    let first = Wait(bounds.first_byte.0.saturating_sub(ports.now().since(sent_at).0).max(1));
    if !(200..300).contains(&reply.status) {
        let secret = upstream.key.as_ref().map(|key| key.0.as_str());
        return Err(refusal(ports.now(), &mut reply, (first, bounds.idle), secret).await);
    }
    let kind = reply.header("content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
    let stream = kind.starts_with("text/event-stream");
    let headers = reply_headers(upstream, &reply, stream);
    if stream {
        return Ok(Forwarded::Stream { headers, body: reply.body, first });
    }
    let body = read_whole(&mut reply.body, ANSWER_MAX, (first, bounds.idle)).await?;
    let completion = Completion::read(&body).map_err(|why| match why {
        NotACompletion::Invalid => UpstreamFault::Invalid,
        NotACompletion::Error => UpstreamFault::Failed { status: reply.status },
    })?;
    Ok(Forwarded::Whole { headers, body, completion })
}

/// What an answer without success means for the caller.
async fn refusal<B: Body>(
    now: UnixMillis,
    reply: &mut UpstreamReply<B>,
    bounds: (Wait, Wait),
    secret: Option<&str>,
) -> UpstreamFault {
    let status = reply.status;
    match status {
        401 | 403 | 407 => UpstreamFault::Auth,
        // The operator's account is the operator's business.
        402 => UpstreamFault::Failed { status },
        400..=499 => {
            let error = match read_whole(&mut reply.body, ERROR_MAX, bounds).await {
                Ok(body) => error_of(&body, status, secret),
                Err(_) => error_of(b"", status, secret),
            };
            if status == 429 {
                let wait = reply.header("retry-after").and_then(|value| parse_retry_after(value, now));
                return UpstreamFault::Limited { error, wait };
            }
            UpstreamFault::Refused { status, error }
        }
        // A redirect would send our credential elsewhere.
        100..=399 => UpstreamFault::Invalid,
        _ => UpstreamFault::Failed { status },
    }
}

/// Reads a body to its end.
async fn read_whole(body: &mut impl Body, max: usize, (first, idle): (Wait, Wait)) -> Result<Vec<u8>, UpstreamFault> {
    let mut whole = Vec::new();
    let mut within = first;
    loop {
        match body.next(within).await {
            Piece::Bytes(bytes) if whole.len() + bytes.len() <= max => whole.extend_from_slice(&bytes),
            Piece::End => return Ok(whole),
            Piece::TimedOut => {
                body.cancel();
                return Err(UpstreamFault::Timeout);
            }
            Piece::Bytes(_) | Piece::Broken => {
                body.cancel();
                return Err(UpstreamFault::Invalid);
            }
        }
        within = idle;
    }
}
