//! What is refused by its name alone.
//!
//! Invariant: a field that we read stands once and is spelt as the API spells it; a field that changes the price of a call
//! is known, or the call is refused and the field named.

use super::bad_request::{BadRequest, bad, unsupported};
use super::json::Members;
use super::rules::RequestRules;

/// What every dialect has.
const COMMON: [&str; 3] = ["model", "stream", "stream_options"];

/// The names of all members that decide something.
pub(super) fn read_names(rules: &RequestRules) -> Vec<&'static str> {
    let prompt = rules.prompt.iter().map(|(name, _)| *name);
    let listed = [&COMMON, rules.caps, rules.candidates, rules.decisive].into_iter().flatten().copied();
    prompt.chain(listed).collect()
}

/// Checks the names of a request's members.
pub(super) fn check(rules: &RequestRules, members: &Members<'_>) -> Result<(), BadRequest> {
    let read = read_names(rules);
    if let Some(name) = members.repeated(&read) {
        return Err(bad(name, format!("`{name}` stands more than once")));
    }
    // Some servers match names without regard to case, and would obey a field that we have not read.
    let is_lookalike = |name: &str| read.iter().any(|read| *read != name && read.eq_ignore_ascii_case(name));
    if let Some(member) = members.0.iter().find(|member| is_lookalike(&member.name)) {
        return Err(bad(&member.name, format!("`{}` is not spelt as the API spells it", member.name)));
    }
    match rules.unbounded.iter().find(|(name, _)| members.get(name).is_some()) {
        Some((name, why)) => Err(unsupported(name, format!("`{name}` is not supported: {why}"))),
        None => Ok(()),
    }
}
