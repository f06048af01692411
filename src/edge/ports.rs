//! The gateway's ports on the platform.

use std::rc::Rc;

use js_sys::{Array, Object, Reflect, Uint8Array};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, Headers, Request, RequestInit, RequestRedirect, Response};
use worker::Context;

use super::bounded::{bounded, pause};
use super::js::{Dataset, console_error, console_log, global_fetch, member, now, random_uuid, thrown};
use super::stream::ReadBody;
use super::{d1, limiter, models, visitors};
use crate::auth::Subject;
use crate::gateway::memory::Memory;
use crate::gateway::ports::{
    Body as _, ModelRun, Ports, ReadFault, SendFault, Unavailable, UpstreamReply, UpstreamRequest, read_whole,
};
use crate::gateway::record::CallRecord;
use crate::ledger::{Gate, Row};
use crate::limit::protocol::{Command, Reply};
use crate::policy::{LedgerRules, Placement, Turnstile};
use crate::time::{UnixMillis, UtcDay, Wait};

/// The binding of the analytics dataset, if there is one.
const ANALYTICS: &str = "ANALYTICS";
/// A client that stops sending its body in the middle is not waited for longer than this.
const BODY_IDLE: Wait = Wait::seconds(60);
/// Nor is the whole of a body of declared length waited for longer than this.
const BODY_MAX: Wait = Wait::seconds(300);
/// The largest answer that is read in one go; the gateway has its own bound for what is read in pieces.
const WHOLE_MAX: usize = 4 * 1024 * 1024;
/// The platform ends work after an answer at 30 s.
const PRUNE_MAX: Wait = Wait::seconds(25);

thread_local! {
    static MEMORY: Rc<Memory> = Rc::default();
}

/// The ports of one call.
#[derive(Clone)]
pub(super) struct EdgePorts {
    env: JsValue,
    request: Request,
    headers: Headers,
    placement: Placement,
    context: Rc<Context>,
    memory: Rc<Memory>,
}

impl EdgePorts {
    pub(super) fn new(env: JsValue, request: Request, placement: Placement, context: Rc<Context>) -> Self {
        let headers = request.headers();
        Self { env, request, headers, placement, context, memory: MEMORY.with(Rc::clone) }
    }

    /// A call that did not go out; the cause is for the log.
    fn unsent(&self, fault: &JsValue) -> SendFault {
        self.warn(&format!("the upstream was not reached: {}", thrown(fault)));
        SendFault::Unreachable
    }

    /// The caller's request.
    pub(super) fn request(&self) -> &Request {
        &self.request
    }
}

impl Ports for EdgePorts {
    type Body = ReadBody;

    fn now(&self) -> UnixMillis {
        now()
    }

    fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).ok().flatten()
    }

    async fn read_body(&self, cap: usize) -> Result<Vec<u8>, ReadFault> {
        let declared = self.header("content-length").and_then(|length| length.parse::<usize>().ok());
        if declared.is_some_and(|length| length > cap) {
            return Err(ReadFault::TooLarge);
        }
        let (body, bound) = match declared {
            // The platform holds the caller to the declared length.
            Some(_) => (self.request.array_buffer().map(ReadBody::whole), BODY_MAX),
            None => (ReadBody::of(self.request.body()), BODY_IDLE),
        };
        let mut body = body.map_err(|_| ReadFault::Broken)?;
        let read = read_whole(&mut body, cap, |_| bound).await;
        if read == Err(ReadFault::TooLarge) {
            body.cancel();
        }
        read
    }

    async fn ask(&self, subject: &Subject, command: &Command, within: Wait) -> Result<Reply, Unavailable> {
        limiter::ask((&self.env, &self.request), &self.placement, (subject, command), within).await
    }

    async fn send(&self, request: UpstreamRequest, within: Wait) -> Result<UpstreamReply<ReadBody>, SendFault> {
        let (outgoing, abort) = outgoing(request).map_err(|fault| self.unsent(&fault))?;
        let answering = async { JsFuture::from(global_fetch(&outgoing)?).await };
        match bounded(answering, within).await {
            None => {
                abort.abort();
                Err(SendFault::TimedOut)
            }
            Some(Err(fault)) => Err(self.unsent(&fault)),
            Some(Ok(response)) => reply(&response.unchecked_into(), abort).map_err(|fault| self.unsent(&fault)),
        }
    }

    async fn run(&self, run: ModelRun, within: Wait) -> Result<UpstreamReply<ReadBody>, SendFault> {
        models::run(&self.env, &run, within).await.unwrap_or_else(|fault| Err(self.unsent(&fault)))
    }

    async fn count(&self, gate: &Gate, within: Wait) -> Result<Vec<Row>, Unavailable> {
        d1::count(&self.env, gate, within).await
    }

    async fn row(&self, day: UtcDay, key: &str, within: Wait) -> Result<Option<Row>, Unavailable> {
        d1::row(&self.env, day, key, within).await
    }

    fn prune(&self, day: UtcDay, rules: &LedgerRules) {
        let (env, rules) = (self.env.clone(), rules.clone());
        self.context.wait_until(async move {
            if let Err(fault) = d1::prune(&env, day, &rules, PRUNE_MAX).await {
                console_error(&format!("old rows were not deleted, the next call tries again: {}", fault.0));
            }
        });
    }

    async fn shield(&self, key: &str, within: Wait) -> Result<bool, Unavailable> {
        visitors::shield(&self.env, key, within).await
    }

    async fn is_human(&self, turnstile: &Turnstile, answer: &str, within: Wait) -> Result<bool, Unavailable> {
        visitors::is_human(turnstile, answer, within).await
    }

    async fn sleep(&self, wait: Wait) {
        pause(wait).await;
    }

    fn random(&self) -> u64 {
        // The digits of a random UUID that are all random.
        let digits: String = random_uuid().chars().rev().filter(char::is_ascii_hexdigit).take(12).collect();
        u64::from_str_radix(&digits, 16).unwrap_or_default()
    }

    fn memory(&self) -> &Memory {
        &self.memory
    }

    fn has_limiter(&self) -> bool {
        member(&self.env, limiter::BINDING).is_some()
    }

    fn has_shield(&self) -> bool {
        member(&self.env, visitors::BINDING).is_some()
    }

    fn log(&self, record: &CallRecord) {
        console_log(&serde_json::to_string(record).unwrap_or_default());
        if let Some(dataset) = member(&self.env, ANALYTICS) {
            let dataset: Dataset = dataset.unchecked_into();
            // Analytics are for looking at; a failure must not touch the call.
            let _ = data_point(record).and_then(|point| dataset.write_data_point(&point));
        }
    }

    fn warn(&self, message: &str) {
        console_error(message);
    }
}

fn outgoing(request: UpstreamRequest) -> Result<(Request, AbortController), JsValue> {
    let UpstreamRequest { method, url, headers: wanted, content_type, body } = request;
    let headers = Headers::new()?;
    for (name, value) in &wanted {
        headers.set(name, value)?;
    }
    headers.set("content-type", &content_type)?;
    let abort = AbortController::new()?;
    let init = RequestInit::new();
    init.set_method(method);
    init.set_headers(&headers);
    if !body.is_empty() {
        init.set_body(&Uint8Array::from(body.as_slice()));
    }
    init.set_redirect(RequestRedirect::Manual);
    init.set_signal(Some(&abort.signal()));
    Ok((Request::new_with_str_and_init(&url, &init)?, abort))
}

/// An answer whose head has come.
pub(super) fn reply(response: &Response, abort: AbortController) -> Result<UpstreamReply<ReadBody>, JsValue> {
    let mut headers = Vec::new();
    for entry in js_sys::try_iter(&response.headers())?.into_iter().flatten() {
        let entry: Array = entry?.unchecked_into();
        if let Some((name, value)) = entry.get(0).as_string().zip(entry.get(1).as_string()) {
            headers.push((name, value));
        }
    }
    let header = |name: &str| headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str());
    let length = header("content-length").and_then(|length| length.parse::<usize>().ok());
    let plain = header("content-encoding").is_none() && header("content-type").is_some_and(is_json);
    let body = match length {
        Some(length) if plain && length <= WHOLE_MAX => ReadBody::whole(response.array_buffer()?),
        _ => ReadBody::of(response.body())?,
    };
    Ok(UpstreamReply { status: response.status(), headers, body: body.aborted_by(abort) })
}

fn is_json(kind: &str) -> bool {
    kind.trim_start().to_ascii_lowercase().starts_with("application/json")
}

/// A call as a point of the dataset: labels in `blobs`, numbers in `doubles`, the subject as its index.
fn data_point(record: &CallRecord) -> Result<Object, JsValue> {
    let blobs: Array = record.labels().iter().map(|label| JsValue::from_str(label)).collect();
    let doubles: Array = record.numbers().iter().map(|number| JsValue::from_f64(*number)).collect();
    let indexes = Array::of1(&record.index().into());
    let point = Object::new();
    for (name, list) in [("blobs", blobs), ("doubles", doubles), ("indexes", indexes)] {
        Reflect::set(&point, &name.into(), &list)?;
    }
    Ok(point)
}
