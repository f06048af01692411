//! The policy, read once per isolate.

use std::sync::OnceLock;

use js_sys::JSON;
use wasm_bindgen::JsValue;

use super::js::{console_error, member};
use crate::policy::{Faults, Policy, Sources};

/// The policy, or its faults. A deploy makes new isolates, so what was read stays true.
pub(super) fn policy(env: &JsValue) -> &'static Result<Policy, Faults> {
    static POLICY: OnceLock<Result<Policy, Faults>> = OnceLock::new();
    POLICY.get_or_init(|| {
        let policy = Policy::read(&Sources { variable: &|name| variable(env, name) });
        if let Err(Faults(faults)) = &policy {
            console_error(&format!("the policy is not valid, so every call is refused:\n{}", faults.join("\n")));
        }
        policy
    })
}

/// A variable or secret as text; a table as its JSON.
fn variable(env: &JsValue, name: &str) -> Option<String> {
    let value = member(env, name)?;
    value.as_string().or_else(|| JSON::stringify(&value).ok().map(String::from))
}
