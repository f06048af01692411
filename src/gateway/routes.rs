//! Every route that there is, matched as it is written.

use super::Call;
use super::stored::Asked;
use crate::dialect::DIALECTS;
use crate::dialect::rules::{Dialect, Family};

/// What a route does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route<'c> {
    Call(&'static Dialect),
    Stored(Asked<'c>),
    Count,
    /// All models, or the one of this name, as the path has it.
    Models(Option<&'c str>),
    Usage,
    Visit,
    Health,
}

impl Route<'_> {
    /// Whose clients call it.
    pub(super) fn family(self) -> Family {
        if let Self::Call(dialect) = self { dialect.family } else { Family::OpenAi }
    }
}

/// The routes beside those of the dialects: path, method, what it does.
const ROUTES: [(&str, &str, Route<'_>); 5] = [
    ("/v1/tokens/count", "POST", Route::Count),
    ("/v1/models", "GET", Route::Models(None)),
    ("/v1/usage", "GET", Route::Usage),
    ("/v1/visitor", "POST", Route::Visit),
    ("/healthz", "GET", Route::Health),
];

/// The route of a path, matched as it is written: its name, its method, and what it does.
pub(super) fn route_of(call: &Call) -> Option<(&'static str, &'static str, Route<'_>)> {
    if let Some(own) = ROUTES.iter().find(|(own, _, _)| *own == call.path) {
        return Some(*own);
    }
    if let Some(dialect) = DIALECTS.iter().find(|dialect| dialect.path == call.path) {
        return Some((dialect.path, "POST", Route::Call(dialect)));
    }
    if let Some(name) = call.path.strip_prefix("/v1/models/").filter(|name| !name.is_empty()) {
        return Some(("/v1/models/{id}", "GET", Route::Models(Some(name))));
    }
    Asked::of(call).map(|(route, method, asked)| (route, method, Route::Stored(asked)))
}
