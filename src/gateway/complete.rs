//! The request path of a call to a model, in whichever dialect.
//!
//! Invariant: nothing goes upstream before a reservation, and after one every path carries the hold to its one end.

use super::attempts::{Outgoing, Served, Trying};
use super::caller::caller;
use super::day;
use super::forward::Forwarded;
use super::hold::{Ending, Hold, ask_verdict, not_asked};
use super::memory::Unchecked;
use super::note::Note;
use super::offers::Offers;
use super::ports::{Ports, ReadFault};
use super::price::{Count, Priced};
use super::record::CallRecord;
use super::relay::Relay;
use super::stored::keep_or_end;
use crate::auth::Principal;
use crate::dialect::bad_request::BadRequest;
use crate::dialect::form::Form;
use crate::dialect::request::Request;
use crate::dialect::rules::Dialect;
use crate::limit::Estimate;
use crate::limit::account::{HoldId, Snapshot, Verdict};
use crate::limit::outbox::Booking;
use crate::limit::protocol::Command;
use crate::policy::{OnUnavailable, Plan, Policy};
use crate::rejection::{Rejection, UpstreamFault};
use crate::time::{UnixMillis, Wait};

/// What a call comes to.
#[derive(Debug)]
pub enum Completed<'p, B> {
    /// A whole answer; its hold is still to be ended.
    Whole {
        /// Headers that come from the upstream's.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
        /// What is left of the caller's limits.
        snapshot: Snapshot,
        /// The hold, and how it ends; nothing if it goes on without its request.
        hold: Option<Box<(Hold, Ending)>>,
    },
    /// A stream, still to be relayed.
    Stream {
        /// Headers that come from the upstream's.
        headers: Vec<(String, String)>,
        /// What is left of the caller's limits.
        snapshot: Snapshot,
        /// The rest of the call.
        relay: Box<Relay<'p, B>>,
    },
}

/// An early end.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub rejection: Rejection,
    /// What is left of the caller's limits, where that is known.
    pub snapshot: Option<Snapshot>,
    /// The hold to be given back, where there is or may be one, and whether the day's count is given back with it.
    pub hold: Option<(Hold, bool)>,
}

impl From<Rejection> for Refused {
    fn from(rejection: Rejection) -> Self {
        Self { rejection, snapshot: None, hold: None }
    }
}

/// Answers a call to a model:
///
/// 1. authenticate: credential to principal, else 401
/// 2. read the body within the plan's cap, else 400, 413 or 415
/// 3. price it: an upper bound in every unit; a model that is unknown or not allowed is 404
/// 4. reserve at the caller's object: not yet is 429, never is 400, no answer is 503
/// 5. count the day where the policy asks for it; refused: release 4, 429 until the day is over
/// 6. forward; failed before the first byte: release 4, 502 or 504
/// 7. relay the reply while the meter watches it go by
/// 8. settle, in work that outlives the client
///
/// # Errors
/// The rejection, with the hold that is to be given back.
pub async fn complete<'p, P: Ports>(
    policy: &'p Policy,
    ports: &P,
    dialect: &'static Dialect,
    record: &mut CallRecord,
) -> Result<Completed<'p, P::Body>, Refused> {
    // 1
    let (principal, plan) = caller(policy, ports, record).await?;
    // 2
    let body = read_body(ports, plan).await?;
    let (content_type, form) = form(ports, dialect, &body)?;
    let request = request(dialect, (&body, form.as_ref()), plan)?;
    record.stream = request.stream;
    // 3
    let offers = Offers::of(policy, plan, &request, Count::WhereItMatters)?;
    let estimate = offers.estimate();
    record.model = Some(offers.first.named.sent_as.clone());
    record.prices = Some(policy.price_version.clone());
    // 4
    let booking = day::booking(policy, (&principal, plan), record.at);
    let gate = day::gate(policy, plan, booking.as_ref(), estimate);
    if let Some(rejection) = gate.as_ref().and_then(|gate| day::refused_before(ports, gate)) {
        return Err(rejection.into());
    }
    // A call in the background that holds nothing could not be found again.
    let on_unavailable = if request.background { OnUnavailable::Closed } else { plan.on_unavailable };
    let (mut hold, snapshot) =
        reserve(policy, ports, (&principal, on_unavailable), (estimate, booking), record).await?;
    // 5
    if let Some(gate) = &gate
        && let Err(rejection) = day::count(policy, ports, gate, &mut hold).await
    {
        return Err(Refused { rejection, snapshot: Some(snapshot), hold: Some((hold, false)) });
    }
    // 6
    let background = request.background.then(|| (Note::of(&offers.first, &principal), policy.bounds.background));
    let outgoing = Outgoing::of(dialect, offers, &request);
    // Not needed any more, and an answer may take minutes.
    drop(request);
    let (sent_at, deadline) = (ports.now(), hold.record.at.after(policy.bounds.hold));
    let trying = Trying { ports, policy, deadline, id: hold.id.clone(), record: &mut hold.record };
    let served = outgoing.serve(trying, (content_type, body)).await;
    // 7 and 8
    match served {
        Err(rejection) => Err(unserved(rejection, answered(ports, hold, None, sent_at), snapshot)),
        Ok(mut served) => {
            hold.account = served.account.take();
            let hold = answered(ports, hold, Some(&served.priced), sent_at);
            Ok(pass_on((policy, plan), ports, served, (hold, snapshot), background).await)
        }
    }
}

/// What is done with an answer: a whole one is settled, or kept, and a stream relayed.
async fn pass_on<'p, P: Ports>(
    (policy, plan): (&Policy, &Plan),
    ports: &P,
    Served { priced, meter, forwarded, .. }: Served<'p, P::Body>,
    (hold, snapshot): (Hold, Snapshot),
    background: Option<(Note, Wait)>,
) -> Completed<'p, P::Body> {
    match forwarded {
        Forwarded::Whole { mut headers, body, completion } => {
            let ending = Ending::Settle(priced.charge(completion.usage, completion.seen, true));
            let hold = keep_or_end(ports, (hold, ending), (&priced, background), (&mut headers, &body)).await;
            Completed::Whole { headers, body, snapshot, hold }
        }
        Forwarded::Stream { headers, body } => {
            let (on_disconnect, bounds) = (plan.on_disconnect, policy.bounds);
            let relay = Box::new(Relay { body, meter, hold, priced, on_disconnect, bounds });
            Completed::Stream { headers, snapshot, relay }
        }
    }
}

/// The body of the caller's request, within the plan's cap.
///
/// # Errors
/// If it is too large, compressed, or broken off.
pub async fn read_body<P: Ports>(ports: &P, plan: &Plan) -> Result<Vec<u8>, Rejection> {
    let encoding = ports.header("content-encoding").filter(|encoding| !encoding.trim().is_empty());
    if let Some(encoding) = encoding.filter(|encoding| !encoding.trim().eq_ignore_ascii_case("identity")) {
        return Err(Rejection::BodyEncoded { encoding });
    }
    ports.read_body(plan.body_max).await.map_err(|fault| match fault {
        ReadFault::TooLarge => Rejection::BodyTooLarge { cap: plan.body_max },
        ReadFault::Broken | ReadFault::TimedOut => Rejection::BadRequest(BadRequest {
            message: "the body broke off before its end".to_owned(),
            param: None,
            code: None,
        }),
    })
}

/// The content type under which a body goes upstream, and the form that it is where the dialect wants one. Everything
/// else is JSON, whatever its sender calls it: curl says that it is a form.
fn form<P: Ports>(ports: &P, dialect: &Dialect, body: &[u8]) -> Result<(String, Option<Form>), Rejection> {
    if dialect.request.medium.files().is_empty() {
        return Ok(("application/json".to_owned(), None));
    }
    let content_type = ports.header("content-type").unwrap_or_default();
    let form = Form::read(&dialect.request, &content_type, body).map_err(Rejection::BadRequest)?;
    Ok((content_type, Some(form)))
}

/// The request in a body, or in the form that it is.
fn request<'b>(
    dialect: &'static Dialect,
    (body, form): (&'b [u8], Option<&'b Form>),
    plan: &Plan,
) -> Result<Request<'b>, Rejection> {
    let read = match form {
        Some(form) => Request::of_form(dialect, form, &plan.allowances),
        None => Request::read(dialect, body, &plan.allowances),
    };
    read.map_err(Rejection::BadRequest)
}

/// Holds the estimate, or says why not.
async fn reserve<P: Ports>(
    policy: &Policy,
    ports: &P,
    (principal, on_unavailable): (&Principal, OnUnavailable),
    (estimate, booking): (Estimate, Option<Booking>),
    record: &mut CallRecord,
) -> Result<(Hold, Snapshot), Refused> {
    let (subject, now) = (&principal.subject, ports.now());
    let object_plan = principal.object_plan();
    let call = (object_plan.as_str(), estimate);
    if let Some((denial, snapshot)) = ports.memory().refusal(subject, call, now) {
        return Err(Refused { rejection: Rejection::Limited(denial), snapshot: Some(snapshot), hold: None });
    }
    let id = HoldId(record.id.clone());
    let hold = |record: &mut CallRecord| {
        let record = core::mem::take(record);
        let (subject, id, within) = (subject.clone(), id.clone(), policy.bounds.limiter);
        Hold { subject, account: None, id, within, counted: true, record }
    };
    let time = policy.bounds.hold;
    let command = Command::Reserve { id: id.clone(), plan: object_plan.clone(), estimate, hold: time, booking };
    let asked = ask_verdict(ports, subject, &command, policy.bounds.limiter).await;
    record.limiter_ms = ports.now().since(now).0;
    let fault = match asked {
        Ok((Verdict::Reserved { .. }, snapshot)) => {
            record.held = Some(estimate.0);
            return Ok((hold(record), snapshot));
        }
        Ok((Verdict::Wait(denial), snapshot)) => {
            // From before the question, so that the memory ends no later than the wait that was announced.
            ports.memory().remember(subject, call, (&denial, &snapshot), now);
            return Err(Refused { rejection: Rejection::Limited(denial), snapshot: Some(snapshot), hold: None });
        }
        Ok((Verdict::NeverFits(denial), snapshot)) => {
            return Err(Refused { rejection: Rejection::NeverFits(denial), snapshot: Some(snapshot), hold: None });
        }
        Ok((Verdict::Ended, _)) => not_asked(&Verdict::Ended),
        Err(fault) => fault,
    };
    ports.warn(&format!("call {}: the limiter is not available: {}", id.0, fault.0));
    match on_unavailable {
        OnUnavailable::Open { per_minute }
            if ports.memory().may_pass_unchecked(Unchecked::Limiter, per_minute, ports.now()) =>
        {
            record.unchecked = true;
            Ok((hold(record), Snapshot::default()))
        }
        // The reservation may have been made all the same, so it is given back.
        _ => {
            Err(Refused { rejection: Rejection::LimiterUnavailable, snapshot: None, hold: Some((hold(record), false)) })
        }
    }
}

/// The hold of a call whose answer has come, if there is anybody who gave one.
fn answered<P: Ports>(ports: &P, mut hold: Hold, by: Option<&Priced<'_>>, sent_at: UnixMillis) -> Hold {
    let record = &mut hold.record;
    record.upstream_ms = ports.now().since(sent_at).0;
    record.status = 200;
    record.verdict = "ok";
    record.tries = record.tries.filter(|tries| *tries > 1);
    if let Some(Priced { named, upstream, .. }) = by {
        record.model = Some(named.sent_as.clone());
        record.upstream = Some(upstream.name.clone());
    }
    hold
}

fn unserved(rejection: Rejection, hold: Hold, snapshot: Snapshot) -> Refused {
    // After a time-out the provider may have worked, so the day's count stays.
    let give_back = rejection != Rejection::Upstream(UpstreamFault::Timeout);
    Refused { rejection, snapshot: Some(snapshot), hold: Some((hold, give_back)) }
}
