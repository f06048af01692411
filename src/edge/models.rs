//! Models behind a binding of the platform's.

use js_sys::{JSON, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, Response};

use super::bounded::bounded;
use super::js::{Models, member, thrown};
use super::ports::reply;
use super::stream::ReadBody;
use crate::dialect::workers_ai::errors;
use crate::gateway::ports::{ModelRun, SendFault, UpstreamReply};
use crate::time::Wait;

/// Runs a model. The outer fault is for the log: nothing has answered.
pub(super) async fn run(
    env: &JsValue,
    run: &ModelRun,
    within: Wait,
) -> Result<Result<UpstreamReply<ReadBody>, SendFault>, JsValue> {
    let missing = || JsValue::from_str(&format!("there is no binding {}", run.binding));
    let models: Models = member(env, &run.binding).ok_or_else(missing)?.unchecked_into();
    let abort = AbortController::new()?;
    let options = Object::new();
    // As it came over the wire: with its status, its headers, and its body not read yet.
    Reflect::set(&options, &"returnRawResponse".into(), &JsValue::TRUE)?;
    Reflect::set(&options, &"signal".into(), &abort.signal())?;
    let input = JSON::parse(&run.input)?;
    let answering = async { JsFuture::from(models.run(&run.model, &input, &options)?).await };
    match bounded(answering, within).await {
        None => {
            abort.abort();
            Ok(Err(SendFault::TimedOut))
        }
        Some(Err(fault)) => match errors::thrown(&thrown(&fault)) {
            Some((status, body)) => Ok(Ok(said(status, &body))),
            None => Err(fault),
        },
        Some(Ok(response)) => reply(&response.dyn_into::<Response>()?, abort).map(Ok),
    }
}

/// An answer that is there already.
fn said(status: u16, body: &str) -> UpstreamReply<ReadBody> {
    let bytes = Uint8Array::from(body.as_bytes());
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    UpstreamReply { status, headers, body: ReadBody::whole(Promise::resolve(&JsValue::from(bytes.buffer()))) }
}
