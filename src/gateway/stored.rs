//! Calls in the background: the hold outlives its request, and is settled by whoever fetches the answer.
//!
//! Invariant: a caller reaches the calls of its own object and nobody else's. Asking holds nothing and spends nothing; the
//! first answer that is an end ends the hold, and no later one changes that.

use std::rc::Rc;

use super::caller::caller;
use super::forward::{ANSWER_MAX, address, read_answer, refusal};
use super::header_policy::{reply_headers, request_headers};
use super::hold::{Ending, Hold, ask_twice, not_asked};
use super::note::Note;
use super::ports::{Ports, Unavailable, UpstreamRequest};
use super::price::{Charged, Priced};
use super::record::CallRecord;
use super::{Call, Relayed};
use crate::auth::Principal;
use crate::dialect::bad_request::unsupported;
use crate::dialect::reply::Completion;
use crate::dialect::responses::{Progress, RESPONSES, Standing, is_id};
use crate::limit::Charge;
use crate::limit::account::{FoundState, HoldId};
use crate::limit::protocol::{Command, Reply};
use crate::policy::{Bounds, Policy, Upstream};
use crate::rejection::{Rejection, UpstreamFault};
use crate::time::Wait;

/// The header that tells a caller that a call in the background cannot be fetched here.
const NOT_KEPT: (&str, &str) = ("x-tollgate-background", "not-kept");

/// What is done with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Fetch,
    Cancel,
}

/// What is asked, and of which call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'c> {
    id: &'c str,
    act: Act,
    stream: bool,
}

impl<'c> Asked<'c> {
    /// Reads path and query: the route's name, its method, and what is asked.
    pub(super) fn of(call: &'c Call) -> Option<(&'static str, &'static str, Self)> {
        let rest = call.path.strip_prefix(RESPONSES.path)?.strip_prefix('/')?;
        let (route, method, act, id) = match rest.strip_suffix("/cancel") {
            Some(id) => ("/v1/responses/{id}/cancel", "POST", Act::Cancel, id),
            None => ("/v1/responses/{id}", "GET", Act::Fetch, rest),
        };
        is_id(id).then(|| (route, method, Self { id, act, stream: wants_stream(&call.query) }))
    }

    fn operation(&self) -> String {
        let cancel = if self.act == Act::Cancel { "/cancel" } else { "" };
        format!("{}/{}{cancel}", RESPONSES.operation(), self.id)
    }

    const fn method(&self) -> &'static str {
        match self.act {
            Act::Fetch => "GET",
            Act::Cancel => "POST",
        }
    }
}

/// Whether a query asks for the answer as a stream. A client that does would read nothing in an answer that is none.
fn wants_stream(query: &str) -> bool {
    let members: Vec<(String, String)> = serde_urlencoded::from_str(query).unwrap_or_default();
    members.iter().any(|(name, value)| name == "stream" && !matches!(value.as_str(), "" | "0" | "false" | "False"))
}

/// What becomes of the hold of a call that was answered: it ends as it is to end, unless the call goes on in the
/// background. Then it is kept, under the id that the provider has given the call. Where that cannot be done it ends at
/// its estimate, since the provider has accepted the call, and a header tells the caller.
pub(super) async fn keep_or_end<P: Ports>(
    ports: &P,
    (mut hold, ending): (Hold, Ending),
    (priced, background): (&Priced<'_>, Option<(Note, Wait)>),
    (headers, body): (&mut Vec<(String, String)>, &[u8]),
) -> Option<Box<(Hold, Ending)>> {
    let going = || Standing::read(body).filter(|standing| standing.progress == Progress::Going);
    let Some(((note, time), standing)) = background.and_then(|background| Some((background, going()?))) else {
        return Some(Box::new((hold, ending)));
    };
    let charge = Charge::AtLeast(priced.estimate.0);
    let unsaid = Ending::Settle(Charged { charge, implausible: false, cost_differs: false });
    // What the provider has taken on counts there at its bound.
    let command = unsaid.command(hold.id.clone(), hold.counted);
    hold.end_account(ports, &command).await;
    let kept = match &standing.id {
        Some(id) => hold.keep(ports, (id, note.to_text()), time).await,
        None => Ok(false),
    };
    hold.record.kept_as = standing.id;
    if kept == Ok(true) {
        hold.record.verdict = "kept";
        hold.record.write_down(ports);
        return None;
    }
    let why = kept.as_ref().map_or_else(|fault| fault.0.as_str(), |_| "refused");
    ports.warn(&format!("call {}: it goes on in the background, but its hold was not kept: {why}", hold.id.0));
    hold.record.verdict = "not_kept";
    headers.push((NOT_KEPT.0.to_owned(), NOT_KEPT.1.to_owned()));
    if kept.is_ok() {
        return Some(Box::new((hold, unsaid)));
    }
    // It may be kept all the same: then whoever fetches the answer settles it, and else a deadline does.
    unsaid.write_into(&mut hold.record);
    hold.record.unsettled = true;
    hold.record.write_down(ports);
    None
}

/// Asks the provider for a call of this caller's, or to cancel it, and ends its hold if the call has ended:
///
/// 1. authenticate, as for a call to a model
/// 2. find the call at the caller's object: unknown, or another's, is 404; no answer is 503
/// 3. ask the upstream of its model; what fails changes nothing
/// 4. if the call has ended and its hold has not, settle it
///
/// # Errors
/// The rejection; there is no hold of this request's to be given back.
pub(super) async fn stored<P: Ports>(
    policy: &Policy,
    ports: &P,
    asked: Asked<'_>,
    record: &mut CallRecord,
) -> Result<Relayed, Rejection> {
    // 1
    let (principal, _) = caller(policy, ports, record).await?;
    if asked.stream {
        let message = "`stream` is not supported here: ask again until the answer is there";
        return Err(Rejection::BadRequest(unsupported("stream", message.to_owned())));
    }
    // 2
    let (state, note) = find(policy, ports, (&principal, asked.id), record).await?;
    let priced = note.priced(policy).ok_or_else(|| Rejection::ModelNotFound { model: note.model.clone() })?;
    record.model = Some(priced.named.sent_as.clone());
    record.kept_as = Some(asked.id.to_owned());
    // 3
    let sent_at = ports.now();
    let told = ask_upstream(ports, priced.upstream, &asked, &policy.bounds).await;
    record.upstream_ms = ports.now().since(sent_at).0;
    let relayed = told.map_err(Rejection::Upstream)?;
    let standing = Standing::read(&relayed.body).ok_or(Rejection::Upstream(UpstreamFault::Invalid))?;
    (record.status, record.verdict) = (200, "ok");
    // 4
    if state != FoundState::Ended
        && let Some(ending) = ending(policy, &priced, (standing.progress, &relayed.body))
    {
        settle(policy, ports, (&principal, asked.id), &ending, record).await;
    }
    Ok(relayed)
}

/// What has become of the call's hold, and what was noted of the call.
async fn find<P: Ports>(
    policy: &Policy,
    ports: &P,
    (principal, id): (&Principal, &str),
    record: &mut CallRecord,
) -> Result<(FoundState, Note), Rejection> {
    let now = ports.now();
    let command = Command::Find { id: HoldId(id.to_owned()) };
    let answer = ask_twice(ports, &principal.subject, &command, policy.bounds.limiter).await;
    record.limiter_ms = ports.now().since(now).0;
    let fault = match answer {
        Ok(Reply::Found(found)) => {
            let noted = found.and_then(|found| Some((found.state, Note::read(&found.note)?)));
            let unknown = || Rejection::ResponseNotFound { id: id.to_owned() };
            return noted.filter(|(_, note)| note.is_of(principal)).ok_or_else(unknown);
        }
        Ok(other) => not_asked(&other),
        Err(fault) => fault,
    };
    ports.warn(&format!("call {}: the limiter is not available: {}", record.id, fault.0));
    Err(Rejection::LimiterUnavailable)
}

/// One question to the upstream, and its whole answer.
async fn ask_upstream<P: Ports>(
    ports: &P,
    upstream: &Upstream,
    asked: &Asked<'_>,
    bounds: &Bounds,
) -> Result<Relayed, UpstreamFault> {
    let sent_at = ports.now();
    let request = UpstreamRequest {
        method: asked.method(),
        url: address(upstream, &asked.operation(), ""),
        headers: request_headers(upstream, |name| ports.header(name)),
        content_type: "application/json".to_owned(),
        body: Rc::default(),
    };
    let of_poll = |fault| if fault == UpstreamFault::Timeout { UpstreamFault::PollTimeout } else { fault };
    let mut reply = ports.send(request, bounds.first_byte).await.map_err(|fault| of_poll(fault.into()))?;
    let left = || Wait(bounds.first_byte.0.saturating_sub(ports.now().since(sent_at).0));
    let first = left().max(Wait(1));
    if !(200..300).contains(&reply.status) {
        return Err(refusal(ports, &mut reply, (first, bounds.idle), upstream).await);
    }
    let headers = reply_headers(upstream, &reply, false);
    let body = read_answer(&mut reply.body, ANSWER_MAX, (first, bounds.idle), left).await.map_err(of_poll)?;
    Ok(Relayed { headers, body })
}

/// How the hold of a call ends, if the call has ended. One that failed before any output costs nothing, as if it had been
/// awaited. One that its caller has cancelled is like a stream that its client has left: without usage it costs what
/// was read and what was seen.
fn ending(policy: &Policy, priced: &Priced<'_>, (progress, body): (Progress, &[u8])) -> Option<Ending> {
    if progress == Progress::Going {
        return None;
    }
    let mut counter = priced.output_counter(&policy.counting);
    let Completion { usage, seen } = Completion::read_any(&RESPONSES.reply, body, &mut counter);
    if progress == Progress::Failed && usage.is_none() && !seen.any() {
        return Some(Ending::Release { give_back: true });
    }
    Some(Ending::Settle(priced.charge(usage, seen, true)))
}

/// Ends the hold of the call, and writes down what was charged if it was this request that did.
async fn settle<P: Ports>(
    policy: &Policy,
    ports: &P,
    (principal, id): (&Principal, &str),
    ending: &Ending,
    record: &mut CallRecord,
) {
    // Whether the gate has counted the call was said when the hold was kept.
    let command = ending.command(HoldId(id.to_owned()), true);
    let (subject, within) = (&principal.subject, policy.bounds.limiter);
    let first = ports.ask(subject, &command, within).await;
    // If its answer was lost, the repetition finds nothing to end.
    let was_lost = first.is_err();
    let answer = if was_lost { ports.ask(subject, &command, within).await } else { first };
    match answer {
        Ok(Reply::Done { known }) if known || was_lost => {
            ending.write_into(record);
            record.verdict = "settled";
        }
        // Another request was faster.
        Ok(_) => {}
        Err(Unavailable(why)) => {
            record.unsettled = true;
            ports.warn(&format!("call {}: the hold of {id} was left to its deadline: {why}", record.id));
        }
    }
}
