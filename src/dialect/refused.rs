//! Fields with which nobody could say before what a call costs.
//!
//! Invariant: a field that we read stands once and is spelt as the API spells it; a field that changes the price of a call
//! is known, or the call is refused and the field named.

use super::bad_request::{BadRequest, bad, shown};
use super::json::Members;

/// Every field that decides what is held, what is sent or where: none may stand twice.
const READ: [&str; 14] = [
    "model",
    "messages",
    "max_completion_tokens",
    "max_tokens",
    "n",
    "stream",
    "stream_options",
    "prediction",
    "service_tier",
    "modalities",
    "audio",
    "web_search_options",
    "tools",
    "functions",
];

/// Fields that make a call cost what its request does not show, with OpenAI or with a router that speaks its dialect.
const UNBOUNDED: [(&str, &str); 9] = [
    ("web_search_options", "searches are charged per query, which no limit here can see before"),
    ("search_parameters", "searches are charged per source, which no limit here can see before"),
    ("plugins", "plugins are charged per use, which no limit here can see before"),
    ("audio", "spoken answers are charged at a price of their own, which no limit here knows"),
    ("models", "the price would be that of whichever model answers"),
    ("fallbacks", "the price would be that of whichever model answers"),
    ("route", "the price would be that of whichever model answers"),
    ("provider", "the price would be that of whichever provider answers"),
    ("transforms", "what is sent to the model would not be what was counted"),
];

/// Checks the names of a request's members.
pub(super) fn check(members: &Members<'_>) -> Result<(), BadRequest> {
    if let Some(name) = members.repeated(&READ) {
        return Err(bad(name, format!("`{name}` stands more than once")));
    }
    refuse_lookalikes(members)?;
    refuse_unbounded(members)
}

/// Some servers match names without regard to case, and would obey a field that we have not read.
fn refuse_lookalikes(members: &Members<'_>) -> Result<(), BadRequest> {
    let is_lookalike = |name: &str| READ.iter().any(|read| *read != name && read.eq_ignore_ascii_case(name));
    match members.0.iter().find(|member| is_lookalike(&member.name)) {
        Some(member) => Err(bad(&member.name, format!("`{}` is not spelt as the API spells it", member.name))),
        None => Ok(()),
    }
}

fn refuse_unbounded(members: &Members<'_>) -> Result<(), BadRequest> {
    let unbounded = |name: &str, why: String| BadRequest {
        message: why,
        param: Some(name.to_owned()),
        code: Some("unsupported_parameter"),
    };
    for (name, why) in UNBOUNDED {
        if members.get(name).is_some() {
            return Err(unbounded(name, format!("`{name}` is not supported: {why}")));
        }
    }
    if let Some(tier) = members.get("service_tier") {
        // Any other tier is dearer than the price table says. "auto" is what a call without the field gets.
        if !matches!(tier.value.get(), r#""auto""# | r#""default""# | r#""flex""#) {
            let message = format!("`service_tier` is {}, want \"auto\", \"default\" or \"flex\"", shown(tier));
            return Err(unbounded("service_tier", message));
        }
    }
    if let Some(modalities) = members.get("modalities") {
        let text_only = serde_json::from_str::<Vec<String>>(modalities.value.get())
            .is_ok_and(|kinds| kinds.iter().all(|kind| kind == "text"));
        if !text_only {
            let message = format!("`modalities` is {}, want [\"text\"]", shown(modalities));
            return Err(unbounded("modalities", message));
        }
    }
    Ok(())
}
