//! What is refused by its name alone.
//!
//! Invariant: a field that we read stands once and is spelt as the API spells it; a field that changes the price of a call
//! is known, or the call is refused and the field named.

use super::bad_request::{BadRequest, bad, unsupported};
use super::json::Members;
use super::rules::RequestRules;

/// What is read in every dialect.
const COMMON: [&str; 7] = ["model", "stream", "stream_options", "prediction", "service_tier", "tools", "functions"];

/// The names of all members that decide something.
pub(super) fn read_names(rules: &RequestRules) -> Vec<&'static str> {
    let prompt = rules.prompt.iter().map(|(name, _)| *name);
    // One that is `null` where it stands first has to be alone too.
    let unbounded = rules.unbounded.iter().map(|(name, _)| *name);
    let listed = [&COMMON, rules.caps, rules.candidates, rules.decisive].into_iter().flatten().copied();
    prompt.chain(unbounded).chain(listed).chain(rules.tool_calls_cap).collect()
}

/// Checks the names of a request's members.
pub(super) fn check(rules: &RequestRules, members: &Members<'_>) -> Result<(), BadRequest> {
    let read = read_names(rules);
    if let Some(name) = members.repeated(&read) {
        return Err(bad(name, format!("`{name}` stands more than once")));
    }
    // Some servers match names without regard to case, and would obey a field that we have not read.
    let is_lookalike = |name: &str| read.iter().any(|read| *read != name && folded(read).eq(folded(name)));
    if let Some(member) = members.0.iter().find(|member| is_lookalike(&member.name)) {
        return Err(bad(&member.name, format!("`{}` is not spelt as the API spells it", member.name)));
    }
    match rules.unbounded.iter().find(|(name, _)| members.get(name).is_some()) {
        Some((name, why)) => Err(unsupported(name, format!("`{name}` is not supported: {why}"))),
        None => Ok(()),
    }
}

/// A name as such servers match it: Go's reader folds the long s and the sign of Kelvin as well.
fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars().map(|letter| match letter {
        'ſ' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    })
}
