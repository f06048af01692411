//! The platform: the only place that names it.
//!
//! Invariant: no rule is decided here. A branch that a host test could reach is in the wrong place.

mod bounded;
mod d1;
mod js;
mod limiter;
mod models;
mod object;
mod ports;
mod stream;
mod variables;
mod visitors;

use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::{JsFuture, future_to_promise};
use web_sys::{Headers, Request, Response, ResponseInit};
use worker::{Context, Env, event};

use crate::gateway::{Answer, Call, Head, handle};
use crate::policy::Placement;
use ports::EdgePorts;
use stream::StreamClient;

/// Called by the platform once per isolate: a panic, which ends it, says in the log where it was.
#[event(start)]
fn start() {
    console_error_panic_hook::set_once();
}

/// Called by the platform for every request.
#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> worker::Result<Response> {
    // A call whose client leaves before the answer goes on to its settlement all the same.
    let context = std::rc::Rc::new(context);
    let answering = std::rc::Rc::clone(&context);
    let promise = future_to_promise(async move { answer(request, env.into(), &answering).await.map(JsValue::from) });
    let kept = promise.clone();
    context.wait_until(async move {
        let _ = JsFuture::from(kept).await;
    });
    Ok(JsFuture::from(promise).await?.unchecked_into())
}

async fn answer(request: Request, env: JsValue, context: &std::rc::Rc<Context>) -> Result<Response, JsValue> {
    let policy = variables::policy(&env);
    let placement = policy.as_ref().map_or_else(|_| Placement::default(), |policy| policy.placement.clone());
    let (path, query) = path_of(&request.url());
    let call = Call { id: js::random_uuid(), method: request.method(), path, query };
    let ports = EdgePorts::new(env, request, placement, std::rc::Rc::clone(context));
    match handle(policy, &ports, &call).await {
        Answer::Whole { head, body, hold } => {
            if let Some((hold, ending)) = hold.map(|held| *held) {
                context.wait_until(async move { hold.end(&ports, ending).await });
            }
            let body = (!body.is_empty()).then(|| js_sys::Uint8Array::from(body.as_slice()));
            Response::new_with_opt_js_u8_array_and_init(body.as_ref(), &init_of(&head)?)
        }
        Answer::Stream { head, relay } => {
            let (mut client, body) = StreamClient::of(ports.request())?;
            context.wait_until(async move { relay.run(&ports, &mut client).await });
            Response::new_with_opt_readable_stream_and_init(Some(&body), &init_of(&head)?)
        }
    }
}

fn init_of(head: &Head) -> Result<ResponseInit, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in &head.headers {
        headers.append(name, value)?;
    }
    let init = ResponseInit::new();
    init.set_status(head.status);
    init.set_headers(&headers);
    Ok(init)
}

/// The path and the query of a URL as they were written.
fn path_of(url: &str) -> (String, String) {
    let after_origin = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after_origin.find('/').and_then(|slash| after_origin.get(slash..)).unwrap_or("/");
    let path = path.split('#').next().unwrap_or("/");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    (path.to_owned(), query.to_owned())
}
