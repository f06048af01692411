//! Asking a subject's object.

use js_sys::{Object, Reflect};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, Response};

use super::bounded::answered;
use super::js::{Namespace, Stub, member};
use crate::auth::Subject;
use crate::gateway::ports::Unavailable;
use crate::limit::protocol::{Command, Reply};
use crate::placement::location_hint;
use crate::policy::Placement;
use crate::time::Wait;

/// The binding's name in `wrangler.toml`.
pub(super) const BINDING: &str = "LIMITER";
/// The origin of a command's URL; objects look at path and query only.
const ORIGIN: &str = "https://limiter";

/// Asks once, on a new stub: after an exception an old one may be broken for good.
pub(super) async fn ask(
    (env, request): (&JsValue, &Request),
    placement: &Placement,
    (subject, command): (&Subject, &Command),
    within: Wait,
) -> Result<Reply, Unavailable> {
    let url = format!("{ORIGIN}{}", command.to_path());
    let answering = async {
        let stub = stub(env, request, placement, subject)?;
        let response: Response = JsFuture::from(stub.fetch(&url)?).await?.unchecked_into();
        let text = JsFuture::from(response.text()?).await?;
        Ok((response.status(), text.as_string().unwrap_or_default()))
    };
    let (status, text) = answered(answering, within).await?;
    if status == 200 {
        Reply::from_json(&text).map_err(|fault| Unavailable(fault.to_string()))
    } else {
        Err(Unavailable(text))
    }
}

fn stub(env: &JsValue, request: &Request, placement: &Placement, subject: &Subject) -> Result<Stub, JsValue> {
    let namespace = member(env, BINDING).ok_or_else(|| JsValue::from_str("binding LIMITER is missing"))?;
    let mut namespace: Namespace = namespace.unchecked_into();
    if let Some(jurisdiction) = &placement.jurisdiction {
        namespace = namespace.jurisdiction(jurisdiction)?;
    }
    let options = Object::new();
    if let Some(hint) = placement.location_hint.clone().or_else(|| hint_of(request)) {
        Reflect::set(&options, &"locationHint".into(), &hint.into())?;
    }
    namespace.get_by_name(&subject.0, &options)
}

/// Where the request came in, by what the platform says of it.
fn hint_of(request: &Request) -> Option<String> {
    let place = member(request, "cf")?;
    let text = |name| member(&place, name).and_then(|value| value.as_string());
    let hint = location_hint(&text("continent")?, text("longitude").as_deref(), &text("country").unwrap_or_default());
    hint.map(str::to_owned)
}
