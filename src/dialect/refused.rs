//! What is refused by its name alone.
//!
//! Invariant: a field that we read stands once and is spelt as the API spells it; a field that changes the price of a call
//! is known, or the call is refused and the field named.

use super::bad_request::{BadRequest, bad, unsupported};
use super::json::Members;
use super::rules::RequestRules;

/// What is read in every dialect.
const COMMON: [&str; 7] = ["model", "stream", "stream_options", "prediction", "service_tier", "tools", "functions"];

/// What makes a call cost what no request shows, wherever it is obeyed: a server that speaks one dialect reads its own
/// members in all of them.
const UNBOUNDED: [(&str, &str); 8] = [
    ("models", "the price would be that of whichever model answers"),
    ("fallbacks", "the price would be that of whichever model answers"),
    ("route", "the price would be that of whichever model answers"),
    ("provider", "the price would be that of whichever provider answers"),
    ("preset", "the price would be that of whichever model it stands for"),
    ("plugins", "plugins are charged per use, which no limit here can see before"),
    ("search_parameters", "searches are charged per source, which no limit here can see before"),
    ("transforms", "what is sent to the model would not be what was counted"),
];

/// The members that are refused, and why.
fn unbounded(rules: &RequestRules) -> impl Iterator<Item = (&'static str, &'static str)> {
    UNBOUNDED.iter().chain(rules.unbounded).copied()
}

/// The names of all members that decide something.
pub(super) fn read_names(rules: &RequestRules) -> Vec<&'static str> {
    let prompt = rules.prompt.iter().map(|(name, _)| *name);
    // One that is `null` where it stands first has to be alone too.
    let unbounded = unbounded(rules).map(|(name, _)| name);
    let listed = [&COMMON, rules.caps, rules.candidates, rules.decisive].into_iter().flatten().copied();
    prompt.chain(unbounded).chain(listed).chain(rules.tool_calls_cap).collect()
}

/// Checks the names of a request's members.
pub(super) fn check(rules: &RequestRules, members: &Members<'_>) -> Result<(), BadRequest> {
    let read = read_names(rules);
    check_names(&read, members)?;
    match unbounded(rules).find(|(name, _)| members.get(name).is_some()) {
        Some((name, why)) => Err(unsupported(name, format!("`{name}` is not supported: {why}"))),
        None => Ok(()),
    }
}

/// Checks that each of the names that are read stands at most once, and no name that a reader could take for it.
pub(super) fn check_names(read: &[&'static str], members: &Members<'_>) -> Result<(), BadRequest> {
    if let Some(name) = members.repeated(read) {
        return Err(bad(name, format!("`{name}` stands more than once")));
    }
    // Some servers match names without regard to case, and would obey a field that we have not read.
    let is_lookalike = |name: &str| read.iter().any(|read| *read != name && folded(read).eq(folded(name)));
    match members.0.iter().find(|member| is_lookalike(&member.name)) {
        Some(member) => Err(bad(&member.name, format!("`{}` is not spelt as the API spells it", member.name))),
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
