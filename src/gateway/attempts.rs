//! Trying those who may serve a call, until one of them does.
//!
//! Invariant: nothing of an answer has been sent on when another try begins, and all tries together take no longer than
//! the bound on the first byte. The hold is there the whole time; whoever answers, the call is charged once.

use std::rc::Rc;

use super::forward::{Forwarded, Sent, forward};
use super::hold::{ask_verdict, end_account, not_asked};
use super::meter::Meter;
use super::offers::Offers;
use super::ports::Ports;
use super::price::Priced;
use super::record::CallRecord;
use super::retry::{Next, Standing, next};
use crate::auth::Subject;
use crate::dialect::edit::{Edit, edited};
use crate::dialect::fault::ErrorBody;
use crate::dialect::request::Request;
use crate::dialect::rules::Dialect;
use crate::limit::account::{HoldId, Verdict};
use crate::limit::protocol::Command;
use crate::policy::{ACCOUNT, Policy};
use crate::rejection::{Rejection, UpstreamFault};
use crate::time::{UnixMillis, Wait};

/// A call on its way out.
#[derive(Debug)]
pub(super) struct Outgoing<'p> {
    dialect: &'static Dialect,
    /// How many answers it makes.
    answers: u64,
    offers: Vec<Offer<'p>>,
}

/// A call as it goes to one of those who may serve it.
#[derive(Debug)]
struct Offer<'p> {
    priced: Priced<'p>,
    edits: Vec<Edit>,
    /// Whether the usage event is taken out of the stream.
    strip: bool,
}

/// An answer, and who gave it.
#[derive(Debug)]
pub(super) struct Served<'p, B> {
    pub(super) priced: Priced<'p>,
    pub(super) meter: Meter,
    pub(super) forwarded: Forwarded<B>,
    /// Our account there, if it holds the call too.
    pub(super) account: Option<Subject>,
}

/// What all tries of a call have in common.
pub(super) struct Trying<'t, P> {
    pub(super) ports: &'t P,
    pub(super) policy: &'t Policy,
    /// The id of the call, and when its hold ends.
    pub(super) id: HoldId,
    pub(super) deadline: UnixMillis,
    pub(super) record: &'t mut CallRecord,
}

impl<'p> Outgoing<'p> {
    /// What is to be sent to each of those who may serve a request.
    pub(super) fn of(dialect: &'static Dialect, offers: Offers<'p>, request: &Request<'_>) -> Self {
        let offer = |priced: Priced<'p>| {
            let edits = request.edits_for(&priced.forwarding(request));
            let strip = priced.asks_for_usage(request) && !request.usage_asked;
            Offer { priced, edits, strip }
        };
        let all = core::iter::once(offers.first).chain(offers.others);
        Self { dialect, answers: request.answers(), offers: all.map(offer).collect() }
    }

    /// Sends the call to one after the other, until one answers, or has refused it for good.
    pub(super) async fn serve<P: Ports>(
        self,
        mut trying: Trying<'_, P>,
        (content_type, mut body): (String, Vec<u8>),
    ) -> Result<Served<'p, P::Body>, Rejection> {
        let until = trying.ports.now().after(trying.policy.bounds.first_byte);
        let (dialect, answers, alone) = (self.dialect, self.answers, self.offers.len() == 1);
        let (mut fault, mut spared) = (None, Vec::new());
        let mut offers = self.offers.into_iter().peekable();
        while let Some(offer) = offers.next() {
            if trying.is_spared(&offer, alone) {
                spared.push(offer);
                continue;
            }
            // The last one needs no copy.
            let is_last = offers.peek().is_none() && spared.is_empty();
            let original = if is_last { core::mem::take(&mut body) } else { body.clone() };
            match trying.one((dialect, answers), offer, (&content_type, original), until).await {
                Ok(served) => return Ok(served),
                Err((failed, next)) => {
                    let told = outlasting(fault, failed);
                    if next == Next::Stop || trying.ports.now() >= until {
                        return Err(told);
                    }
                    fault = Some(told);
                }
            }
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        // All of them are to be left alone. One that has failed may have come back; one that is at its limit has not.
        let Some(place) = spared.iter().position(|offer| trying.limited(offer).is_none()) else {
            let soonest = spared.iter().filter_map(|offer| trying.limited(offer)).min_by_key(|(wait, _)| *wait);
            let fault = soonest.map(|(wait, error)| UpstreamFault::Limited { error, wait: Some(wait) });
            return Err(Rejection::Upstream(fault.unwrap_or(UpstreamFault::Unreachable)));
        };
        let offer = spared.swap_remove(place);
        trying.one((dialect, answers), offer, (&content_type, body), until).await.map_err(|(fault, _)| fault)
    }
}

/// What is told of two failures, one after the other. A time-out outlasts what follows: that provider may have worked, so
/// the day's count stays. Only what is wrong with the request itself is of more use to its caller.
fn outlasting(before: Option<Rejection>, after: Rejection) -> Rejection {
    match (before, after) {
        (_, refused @ Rejection::Upstream(UpstreamFault::Refused { .. })) => refused,
        (Some(late @ Rejection::Upstream(UpstreamFault::Timeout)), _) => late,
        (_, after) => after,
    }
}

impl<P: Ports> Trying<'_, P> {
    /// What is known of the one who would serve a call.
    fn standing<T>(&self, priced: &Priced<'_>, with: impl FnOnce(&mut Standing) -> T) -> T {
        self.ports.memory().upstream((&priced.upstream.name, &priced.named.model.name), with)
    }

    fn limited(&self, offer: &Offer<'_>) -> Option<(Wait, ErrorBody)> {
        let now = self.ports.now();
        self.standing(&offer.priced, |standing| standing.limited(now))
    }

    /// Whether an upstream is to be left alone: at its limit always, failing only where there is somebody else.
    fn is_spared(&self, offer: &Offer<'_>, alone: bool) -> bool {
        let (rules, now) = (offer.priced.upstream.health, self.ports.now());
        let left_alone = || self.standing(&offer.priced, |standing| standing.is_left_alone(rules, now));
        self.limited(offer).is_some() || !alone && left_alone()
    }

    /// Tries one of them, within the limits of our account there.
    async fn one<'p>(
        &mut self,
        (dialect, answers): (&'static Dialect, u64),
        offer: Offer<'p>,
        (content_type, body): (&str, Vec<u8>),
        until: UnixMillis,
    ) -> Result<Served<'p, P::Body>, (Rejection, Next)> {
        let held = self.hold_account(&offer.priced).await;
        let account = held.map_err(|rejection| (rejection, Next::Elsewhere))?;
        match self.tries((dialect, answers), offer, (content_type, body), until).await {
            Ok((priced, meter, forwarded)) => Ok(Served { priced, meter, forwarded, account }),
            Err((fault, next)) => {
                if let Some(account) = account {
                    self.release(&account).await;
                }
                Err((Rejection::Upstream(fault), next))
            }
        }
    }

    /// Holds the call at our account there, if it has limits.
    async fn hold_account(&self, priced: &Priced<'_>) -> Result<Option<Subject>, Rejection> {
        let upstream = priced.upstream;
        if upstream.limits.is_empty() {
            return Ok(None);
        }
        let account = Subject(format!("upstream:{}", upstream.name));
        let (id, plan) = (self.id.clone(), format!("{ACCOUNT}{}", upstream.name));
        let hold = self.deadline.since(self.ports.now());
        let command = Command::Reserve { id, plan, estimate: priced.estimate, hold, booking: None };
        let asked = ask_verdict(self.ports, &account, &command, self.policy.bounds.limiter).await;
        let why = match asked {
            Ok((Verdict::Reserved { .. }, _)) => return Ok(Some(account)),
            Ok((Verdict::Wait(denial), _)) => return Err(Rejection::Limited(denial)),
            Ok((Verdict::NeverFits(denial), _)) => return Err(Rejection::NeverFits(denial)),
            Ok((Verdict::Ended, _)) => not_asked(&Verdict::Ended),
            Err(fault) => fault,
        };
        self.ports.warn(&format!("call {}: the limits of {} cannot be checked: {}", self.id.0, upstream.name, why.0));
        // It may hold the call all the same.
        self.release(&account).await;
        Err(Rejection::LimiterUnavailable)
    }

    async fn release(&self, account: &Subject) {
        let release = Command::Release { id: self.id.clone(), give_back: false };
        end_account(self.ports, (account, &self.id), &release, self.policy.bounds.limiter).await;
    }

    /// Tries one of them, as often as its rules say.
    async fn tries<'p>(
        &mut self,
        (dialect, answers): (&'static Dialect, u64),
        offer: Offer<'p>,
        (content_type, body): (&str, Vec<u8>),
        until: UnixMillis,
    ) -> Result<(Priced<'p>, Meter, Forwarded<P::Body>), (UpstreamFault, Next)> {
        let Offer { priced, edits, strip } = offer;
        let (ports, upstream) = (self.ports, priced.upstream);
        let body = Rc::new(edited(body, edits));
        let mut tried = 0;
        loop {
            tried += 1;
            self.record.tries = Some(self.record.tries.unwrap_or(0) + 1);
            let counter = priced.output_counter(&self.policy.counting);
            let mut meter = Meter::new(&dialect.reply, (answers, strip), counter.clone(), upstream.key.clone());
            let left = until.since(ports.now());
            let bound = upstream.first_byte.map_or(left, |own| own.min(left));
            let sent = Sent { content_type: content_type.to_owned(), body: Rc::clone(&body) };
            let bounds = (bound, self.policy.bounds.idle, self.deadline);
            let fault = match forward(ports, (dialect, &priced), sent, bounds, (counter, &mut meter)).await {
                Ok(forwarded) => {
                    self.standing(&priced, Standing::answered);
                    return Ok((priced, meter, forwarded));
                }
                Err(fault) => fault,
            };
            let now = ports.now();
            self.standing(&priced, |standing| standing.failed(&fault, upstream.health, now));
            match next(&fault, &upstream.retry, tried, ports.random()) {
                Next::Again(pause) if pause < until.since(now) => ports.sleep(pause).await,
                // There is no time for that, but another one may answer at once.
                Next::Again(_) => return Err((fault, Next::Elsewhere)),
                following => return Err((fault, following)),
            }
        }
    }
}
