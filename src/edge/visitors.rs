//! What the platform offers against abuse: its rate limiter, and the challenge.

use js_sys::{JSON, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, RequestInit, Response};

use super::bounded::answered;
use super::js::{global_fetch, member};
use crate::gateway::ports::Unavailable;
use crate::policy::Turnstile;
use crate::time::Wait;

/// The binding's name in `wrangler.toml`.
pub(super) const BINDING: &str = "SHIELD";

#[wasm_bindgen]
extern "C" {
    /// The platform's rate limiter.
    type RateLimiter;

    #[wasm_bindgen(method, catch)]
    fn limit(this: &RateLimiter, options: &Object) -> Result<Promise, JsValue>;
}

/// Whether the platform's rate limiter lets `key` in; it does where none is bound.
pub(super) async fn shield(env: &JsValue, key: &str, within: Wait) -> Result<bool, Unavailable> {
    let Some(limiter) = member(env, BINDING) else { return Ok(true) };
    let asking = async {
        let options = Object::new();
        Reflect::set(&options, &"key".into(), &key.into())?;
        JsFuture::from(limiter.unchecked_into::<RateLimiter>().limit(&options)?).await
    };
    Ok(is_success(&answered(asking, within).await?))
}

/// Whether a browser's answer to the challenge is good.
pub(super) async fn is_human(turnstile: &Turnstile, answer: &str, within: Wait) -> Result<bool, Unavailable> {
    let asking = async {
        let init = RequestInit::new();
        init.set_method("POST");
        let form = serde_urlencoded::to_string([("secret", turnstile.secret.0.as_str()), ("response", answer)]);
        init.set_body(&form.unwrap_or_default().into());
        let request = Request::new_with_str_and_init(&turnstile.url, &init)?;
        request.headers().set("content-type", "application/x-www-form-urlencoded")?;
        let response: Response = JsFuture::from(global_fetch(&request)?).await?.unchecked_into();
        let text = JsFuture::from(response.text()?).await?.as_string().unwrap_or_default();
        JSON::parse(&text)
    };
    Ok(is_success(&answered(asking, within).await?))
}

fn is_success(answer: &JsValue) -> bool {
    member(answer, "success").and_then(|success| success.as_bool()).unwrap_or(false)
}
