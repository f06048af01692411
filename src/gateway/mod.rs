//! From a request to an answer.
//!
//! Invariant: only the routes of a fixed table exist, matched as they are written; whatever happens on one of them, the
//! answer has a request id, the error shape is the same, and the call is written down once.

mod attempts;
mod binding;
mod caller;
pub mod complete;
mod cors;
mod count;
mod day;
mod forward;
pub mod header_policy;
pub mod hold;
mod media;
pub mod memory;
mod meter;
mod note;
pub mod offers;
pub mod ports;
pub mod price;
pub mod record;
pub mod relay;
pub mod retry;
mod routes;
mod stored;
mod views;
mod visit;

use serde_json::Value;

use complete::{Completed, Refused, complete};
use count::count;
use hold::{Ending, Hold};
use ports::Ports;
use record::CallRecord;
use relay::Relay;
use routes::{Route, route_of};
use stored::stored;

use crate::dialect::rules::Family;
use crate::limit::account::Snapshot;
use crate::policy::{Cors, Faults, Policy};
use crate::rate_headers::{anthropic_rate_headers, rate_headers};
use crate::rejection::Rejection;

/// What a caller sends, but for headers and body, which are asked for when needed.
#[derive(Clone, Debug)]
pub struct Call {
    /// The id of the call: unguessable, made by the edge.
    pub id: String,
    /// The method, in upper case.
    pub method: String,
    /// The path as it was written, without the query.
    pub path: String,
    /// The query as it was written, without its question mark. All but one route pass it over.
    pub query: String,
}

/// The beginning of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Debug)]
pub enum Answer<'p, B> {
    /// A whole one; where there is a hold, it still has to be ended, in work that outlives the client.
    Whole {
        /// Its beginning.
        head: Head,
        /// Its body.
        body: Vec<u8>,
        /// The hold, and how it ends.
        hold: Option<Box<(Hold, Ending)>>,
    },
    /// A stream, still to be relayed.
    Stream {
        /// Its beginning.
        head: Head,
        /// The rest of the call.
        relay: Box<Relay<'p, B>>,
    },
}

/// A whole answer of an upstream's, to be passed on as it is.
#[derive(Debug)]
struct Relayed {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// Answers a call.
pub async fn handle<'p, P: Ports>(policy: &'p Result<Policy, Faults>, ports: &P, call: &Call) -> Answer<'p, P::Body> {
    let no_cors = Cors::default();
    let cors = policy.as_ref().map_or(&no_cors, |policy| &policy.cors);
    let found = route_of(call);
    let mut frame = Frame {
        id: call.id.clone(),
        family: found.map_or(Family::OpenAi, |(_, _, route)| route.family()),
        headers: cors::answer_headers(cors, ports.header("origin").as_deref()),
    };
    let record = CallRecord {
        id: call.id.clone(),
        at: ports.now(),
        route: found.map_or("", |route| route.0),
        ..CallRecord::default()
    };
    let Some((_, method, route)) = found else {
        let rejection = Rejection::UnknownUrl { method: call.method.clone(), path: call.path.clone() };
        return frame.refusal(ports, record, rejection.into());
    };
    if call.method == "OPTIONS" && cors::is_on(cors) {
        let (asked, origin) = (ports.header("access-control-request-headers"), ports.header("origin"));
        frame.headers.extend(cors::preflight_headers(cors, origin.as_deref(), method, asked.as_deref()));
        return frame.whole(204, Vec::new(), Vec::new(), None);
    }
    if call.method != method {
        let rejection = Rejection::MethodNotAllowed { method: call.method.clone(), allow: method };
        return frame.refusal(ports, record, rejection.into());
    }
    frame.routed(route, policy, ports, record).await
}

/// What all answers to a call have in common.
struct Frame {
    id: String,
    family: Family,
    headers: Vec<(String, String)>,
}

impl Frame {
    /// Answers a call that has found its route.
    async fn routed<'p, P: Ports>(
        self,
        route: Route<'_>,
        policy: &'p Result<Policy, Faults>,
        ports: &P,
        mut record: CallRecord,
    ) -> Answer<'p, P::Body> {
        let rated = |(body, snapshot): (Value, Snapshot)| (body, rate_headers(&snapshot));
        let answered = match (route, policy) {
            (Route::Health, _) => {
                let (status, body) = views::health(policy, ports).await;
                return self.json(status, &body, Vec::new());
            }
            (_, Err(_)) => Err(Rejection::PolicyInvalid.into()),
            (Route::Call(dialect), Ok(policy)) => match complete(policy, ports, dialect, &mut record).await {
                Ok(completed) => return self.completed(completed),
                Err(refused) => Err(refused),
            },
            (Route::Stored(asked), Ok(policy)) => match stored(policy, ports, asked, &mut record).await {
                Ok(Relayed { headers, body }) => {
                    record.write_down(ports);
                    return self.whole(200, headers, body, None);
                }
                Err(rejection) => Err(rejection.into()),
            },
            (Route::Models(name), Ok(policy)) => views::models(policy, ports, name, &mut record)
                .await
                .map_err(Refused::from)
                .map(|body| (body, Vec::new())),
            (Route::Visit, Ok(policy)) => visit::visit(policy, ports, &mut record)
                .await
                .map_err(Refused::from)
                .map(|(body, cookie)| (body, vec![("set-cookie".to_owned(), cookie)])),
            (Route::Count, Ok(policy)) => count(policy, ports, &mut record).await.map_err(Refused::from).map(rated),
            (Route::Usage, Ok(policy)) => {
                views::usage(policy, ports, &mut record).await.map_err(Refused::from).map(rated)
            }
        };
        match answered {
            Ok((body, headers)) => {
                (record.status, record.verdict) = (200, "ok");
                record.write_down(ports);
                self.json(200, &body, headers)
            }
            Err(refused) => self.refusal(ports, record, refused),
        }
    }

    fn rates(&self, snapshot: &Snapshot) -> Vec<(String, String)> {
        let mut headers = rate_headers(snapshot);
        if self.family == Family::Anthropic {
            headers.extend(anthropic_rate_headers(snapshot));
        }
        headers
    }

    fn head(self, status: u16, headers: Vec<(String, String)>) -> Head {
        let mut all = Vec::new();
        if self.family == Family::Anthropic {
            all.push(("request-id".to_owned(), self.id.clone()));
        }
        all.push(("x-request-id".to_owned(), self.id));
        all.extend(headers);
        all.extend(self.headers);
        Head { status, headers: all }
    }

    fn whole<'p, B>(
        self,
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
        hold: Option<Box<(Hold, Ending)>>,
    ) -> Answer<'p, B> {
        Answer::Whole { head: self.head(status, headers), body, hold }
    }

    fn json<'p, B>(self, status: u16, body: &Value, mut headers: Vec<(String, String)>) -> Answer<'p, B> {
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        headers.push(("cache-control".to_owned(), "no-store".to_owned()));
        self.whole(status, headers, body.to_string().into_bytes(), None)
    }

    fn completed<B>(self, completed: Completed<'_, B>) -> Answer<'_, B> {
        match completed {
            Completed::Whole { mut headers, body, snapshot, hold } => {
                headers.extend(self.rates(&snapshot));
                self.whole(200, headers, body, hold)
            }
            Completed::Stream { mut headers, snapshot, relay } => {
                headers.extend(self.rates(&snapshot));
                Answer::Stream { head: self.head(200, headers), relay }
            }
        }
    }

    /// Refuses, and writes the call down: at once, or when its hold has been given back.
    fn refusal<'p, P: Ports>(self, ports: &P, mut record: CallRecord, refused: Refused) -> Answer<'p, P::Body> {
        let Refused { rejection, snapshot, hold } = refused;
        let said = rejection.parts();
        let note = |record: &mut CallRecord| {
            record.status = said.status;
            record.verdict = rejection.code();
            if let Some((limit, wait)) = rejection.limited_by() {
                record.limited_by = Some(limit.to_owned());
                record.wait_ms = wait.map(|wait| wait.0);
            }
        };
        let hold = if let Some((mut hold, give_back)) = hold {
            note(&mut hold.record);
            Some(Box::new((hold, Ending::Release { give_back })))
        } else {
            note(&mut record);
            record.write_down(ports);
            None
        };
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.extend(snapshot.iter().flat_map(|snapshot| self.rates(snapshot)));
        headers.extend(said.headers.clone());
        let body = said.body(self.family, &self.id).into_bytes();
        self.whole(said.status, headers, body, hold)
    }
}
