//! Sending a call upstream, and judging the answer before anything of it is sent on.
//!
//! Invariant: the address comes from the policy, never from the caller. An answer that is not streamed is read whole,
//! so a failure costs nothing and is told as one; of a stream, the first event is looked at.

use std::rc::Rc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::binding::{self, Answered, Translation};
use super::header_policy::{reply_headers, request_headers};
use super::meter::Meter;
use super::ports::{Body, Ports, ReadFault, SendFault, UpstreamReply, UpstreamRequest, read_whole};
use super::price::Priced;
use super::relay::first_event;
use crate::dialect::fault::error_of;
use crate::dialect::reply::{Completion, NotACompletion, OutputCounter};
use crate::dialect::rules::{Dialect, Medium};
use crate::dialect::workers_ai::{Operation, unstreamed};
use crate::policy::{Upstream, UpstreamKind};
use crate::rejection::UpstreamFault;
use crate::time::{UnixMillis, Wait, parse_retry_after};

/// What a deployment's name may have in a path as it is.
const DEPLOYMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// The largest answer that is read whole; a Worker has 128 MB for all its calls.
pub(super) const ANSWER_MAX: usize = 16 * 1024 * 1024;
/// How long before its deadline a hold is settled at the latest.
const MARGIN: Wait = Wait::seconds(5);
/// The encodings that the platform undoes, where an upstream compresses though it was asked not to. Any other would reach
/// the meter, and the client, as what it is not.
const DECODED: [&str; 3] = ["identity", "gzip", "br"];
/// The largest error that is read.
const ERROR_MAX: usize = 64 * 1024;

/// What is sent upstream.
#[derive(Debug)]
pub(super) struct Sent {
    /// What the body is.
    pub(super) content_type: String,
    /// The caller's body, with what had to be changed in it.
    pub(super) body: Rc<Vec<u8>>,
}

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
    /// A stream; what has been read of it is in the meter.
    Stream {
        /// Headers that come from the upstream's.
        headers: Vec<(String, String)>,
        /// The rest of its body.
        body: Answered<B>,
    },
}

/// Sends a body to `upstream`. An answer that is not streamed has to be there before `deadline`, when the hold ends.
pub(super) async fn forward<P: Ports>(
    ports: &P,
    (dialect, priced): (&Dialect, &Priced<'_>),
    sent: Sent,
    (first, idle, deadline): (Wait, Wait, UnixMillis),
    (mut counter, meter): (OutputCounter, &mut Meter),
) -> Result<Forwarded<P::Body>, UpstreamFault> {
    let (sent_at, upstream) = (ports.now(), priced.upstream);
    let until = sent_at.after(first);
    let (mut reply, translation) = called(ports, (dialect, priced), sent, first).await?;
    let first = until.since(ports.now()).max(Wait(1));
    if !(200..300).contains(&reply.status) {
        if translation.is_some() {
            let body = read_answer(&mut reply.body, ERROR_MAX, (first, idle), || until.since(ports.now())).await;
            return Err(binding::refusal(ports, &reply, &body.unwrap_or_default()));
        }
        return Err(refusal(ports, &mut reply, (first, idle), upstream).await);
    }
    if reply.header("content-encoding").is_some_and(|encoding| !DECODED.contains(&encoding)) {
        reply.body.cancel();
        return Err(UpstreamFault::Invalid);
    }
    let kind = reply.header("content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
    let stream = kind.starts_with("text/event-stream");
    let headers = reply_headers(upstream, &reply, stream);
    let json = kind.starts_with("application/json");
    if stream || is_relayed(dialect, &kind, reply.header("content-length")) {
        if !stream {
            meter.expect_raw(json);
        }
        let mut body = match translation {
            Some(translation) => translation.stream(reply.body),
            None => Answered::AsIs(reply.body),
        };
        first_event(&mut body, meter, || until.since(ports.now())).await?;
        return Ok(Forwarded::Stream { headers, body });
    }
    let left = || Wait(deadline.since(ports.now()).0.saturating_sub(MARGIN.0));
    let body = read_answer(&mut reply.body, ANSWER_MAX, (first, idle), left).await?;
    let (body, usage_said) = match &translation {
        Some(translation) => translation.whole(ports, body)?,
        None => (body, true),
    };
    let mut completion = Completion::read(&dialect.reply, &body, &mut counter).map_err(|why| match why {
        NotACompletion::Invalid => UpstreamFault::Invalid,
        NotACompletion::Error => UpstreamFault::Failed { status: reply.status },
    })?;
    if translation.is_some_and(|translation| translation.is_streamed()) {
        return as_stream(upstream, reply, &body, meter).await;
    }
    if !usage_said {
        completion.usage = None;
    }
    Ok(Forwarded::Whole { headers, body, completion })
}

/// A whole completion as the stream that was asked for.
async fn as_stream<B: Body>(
    upstream: &Upstream,
    mut reply: UpstreamReply<B>,
    completion: &[u8],
    meter: &mut Meter,
) -> Result<Forwarded<B>, UpstreamFault> {
    let events = unstreamed(completion).ok_or(UpstreamFault::Invalid)?;
    reply.headers.retain(|(name, _)| name != "content-type");
    reply.headers.push(("content-type".to_owned(), "text/event-stream".to_owned()));
    let headers = reply_headers(upstream, &reply, true);
    let mut body = Answered::ready(events, reply.body);
    // It is there already.
    first_event(&mut body, meter, || Wait(1)).await?;
    Ok(Forwarded::Stream { headers, body })
}

/// The answer's head, and how the answer is to be translated where it is in the words of another API.
async fn called<P: Ports>(
    ports: &P,
    (dialect, priced): (&Dialect, &Priced<'_>),
    sent: Sent,
    within: Wait,
) -> Result<(UpstreamReply<P::Body>, Option<Translation>), UpstreamFault> {
    let upstream = priced.upstream;
    if let UpstreamKind::WorkersAi { binding } = &upstream.kind {
        let operation = Operation::of(dialect).ok_or(UpstreamFault::Invalid)?;
        let (run, translation) = binding::prepared(ports, (operation, binding), (&sent.body, priced.prompt.upper))?;
        return Ok((ports.run(run, within).await?, Some(translation)));
    }
    let request = UpstreamRequest {
        method: "POST",
        url: address(upstream, dialect.operation(), &priced.named.sent_as),
        headers: request_headers(upstream, |name| ports.header(name)),
        content_type: sent.content_type,
        body: sent.body,
    };
    Ok((ports.send(request, within).await?, None))
}

/// Where an operation is called at an upstream; `model` is its name there.
pub(super) fn address(upstream: &Upstream, operation: &str, model: &str) -> String {
    let base = &upstream.base_url;
    match &upstream.kind {
        UpstreamKind::Azure { api_version } if operation.starts_with("/responses") => {
            format!("{base}/openai{operation}?api-version={api_version}")
        }
        UpstreamKind::Azure { api_version } => {
            format!(
                "{base}/openai/deployments/{deployment}{operation}?api-version={api_version}",
                deployment = deployment(model)
            )
        }
        _ => format!("{base}{operation}"),
    }
}

/// A deployment's name in a path: one that the policy lets the caller choose must not choose the path.
fn deployment(model: &str) -> String {
    let encoded = utf8_percent_encode(model, DEPLOYMENT).to_string();
    // Dots alone go up, encoded or not; encoded twice they are a name that is not there.
    if encoded.bytes().all(|byte| byte == b'.') { encoded.replace('.', "%252E") } else { encoded }
}

/// Whether an answer that is no stream of events is relayed as it comes: sound, plain text, and images unless they are
/// known to be small enough to be read whole.
fn is_relayed(dialect: &Dialect, kind: &str, length: Option<&str>) -> bool {
    const PLAIN: [&str; 4] = ["text/plain", "text/vtt", "text/srt", "application/x-subrip"];
    let is = |kinds: &[&str]| kinds.iter().any(|start| kind.starts_with(start));
    match dialect.request.medium {
        _ if !dialect.reply.raw => false,
        Medium::Text => false,
        Medium::Speech => is(&["audio/", "application/octet-stream"]),
        Medium::Transcript(_) => is(&PLAIN),
        Medium::Images(_) => {
            is(&["application/json"])
                && length.and_then(|length| length.parse().ok()).is_none_or(|length: usize| length > ANSWER_MAX)
        }
    }
}

impl From<SendFault> for UpstreamFault {
    fn from(fault: SendFault) -> Self {
        match fault {
            SendFault::Unreachable => Self::Unreachable,
            SendFault::TimedOut => Self::Timeout,
        }
    }
}

/// What an answer without success means for the caller.
pub(super) async fn refusal<P: Ports>(
    ports: &P,
    reply: &mut UpstreamReply<P::Body>,
    (first, idle): (Wait, Wait),
    upstream: &Upstream,
) -> UpstreamFault {
    let status = reply.status;
    if matches!(status, 400..=499) && !matches!(status, 401..=403 | 407) {
        let until = ports.now().after(first);
        let left = || until.since(ports.now());
        let body = read_answer(&mut reply.body, ERROR_MAX, (first, idle), left).await.unwrap_or_default();
        let error = error_of(&body, status, upstream.key.as_ref().map(|key| key.0.as_str()));
        let wait = reply.header("retry-after").and_then(|value| parse_retry_after(value, ports.now()));
        return match status {
            429 => UpstreamFault::Limited { error, wait },
            _ => UpstreamFault::Refused { status, error },
        };
    }
    // Not its words: they may quote the prompt. Its own log has them under this id.
    let id = reply.header("x-request-id").unwrap_or("none");
    ports.warn(&format!("the upstream answered {status}, its request id: {id}"));
    match status {
        401 | 403 | 407 => UpstreamFault::Auth,
        // A redirect would send our credential elsewhere.
        100..=399 => UpstreamFault::Invalid,
        // The operator's account is the operator's business.
        _ => UpstreamFault::Failed { status },
    }
}

/// Reads an answer's body to its end, for as long as `left` says that there is time; one that fails is given up.
pub(super) async fn read_answer(
    body: &mut impl Body,
    max: usize,
    (first, idle): (Wait, Wait),
    left: impl Fn() -> Wait,
) -> Result<Vec<u8>, UpstreamFault> {
    let bound = |read: usize| left().min(if read == 0 { first } else { idle });
    read_whole(body, max, bound).await.map_err(|fault| {
        body.cancel();
        match fault {
            ReadFault::TimedOut => UpstreamFault::Timeout,
            ReadFault::TooLarge | ReadFault::Broken => UpstreamFault::Invalid,
        }
    })
}
