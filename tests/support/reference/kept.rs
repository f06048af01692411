//! How holds end, what they are kept as, and what is remembered of them.

use tollgate::limit::account::{ENDED_KEPT, Found, FoundState, GRACE, KEPT_KNOWN};

use super::{Answered, Hold, Reference};

/// The note that a hold is kept with, so that it tells which call it was.
pub(crate) fn note(id: &str) -> String {
    format!("made as {id}")
}

impl Reference {
    pub(crate) fn keep(&mut self, now: u64, id: &str, as_id: &str, time: u64) -> Answered<bool> {
        let at = now.max(self.at);
        if let Some(other) = self.hold(as_id, at) {
            return (other.kept_from.as_deref() == Some(id), false);
        }
        let hold = self.hold(id, at).filter(|hold| at < hold.expires_at && hold.kept_from.is_none()).cloned();
        let Some(hold) = hold.filter(|_| !self.remembers(as_id, at)) else { return (false, false) };
        self.at = at;
        self.holds.remove(id);
        self.ended.insert(id.to_owned(), at + ENDED_KEPT.0);
        let kept_from = Some(id.to_owned());
        self.holds.insert(as_id.to_owned(), Hold { expires_at: at + time, kept_from, ..hold });
        (true, true)
    }

    pub(crate) fn find(&self, now: u64, id: &str) -> Option<Found> {
        let at = now.max(self.at);
        if let Some(hold) = self.hold(id, at) {
            let state = if at < hold.expires_at { FoundState::Open } else { FoundState::Expired };
            return hold.kept_from.as_ref().map(|from| Found { state, note: note(from) });
        }
        let from = self.kept_until(id).filter(|(until, _)| at < *until)?.1;
        Some(Found { state: FoundState::Ended, note: note(&from) })
    }

    /// Until when a kept hold that has ended, or was left alone, is known, and as what it was made.
    fn kept_until(&self, id: &str) -> Option<(u64, String)> {
        let left_alone = self.holds.get(id).and_then(|hold| Some((hold.expires_at + GRACE.0, hold.kept_from.clone()?)));
        let (ended_at, from) = left_alone.or_else(|| self.kept.get(id).cloned())?;
        Some((ended_at + KEPT_KNOWN.0, from))
    }

    pub(super) fn hold(&self, id: &str, at: u64) -> Option<&Hold> {
        self.holds.get(id).filter(|hold| at < hold.expires_at + GRACE.0)
    }

    pub(super) fn end(&mut self, id: &str, at: u64) -> Option<Hold> {
        let hold = self.hold(id, at).cloned()?;
        self.at = at;
        self.holds.remove(id);
        match &hold.kept_from {
            Some(from) => drop(self.kept.insert(id.to_owned(), (at, from.clone()))),
            None => drop(self.ended.insert(id.to_owned(), at + ENDED_KEPT.0)),
        }
        Some(hold)
    }

    /// Whether the id is one that must not be held again.
    pub(super) fn remembers(&self, id: &str, at: u64) -> bool {
        let goes_on = |other: &String| self.hold(other, at).is_some_and(|hold| hold.kept_from.as_deref() == Some(id));
        self.ended.get(id).is_some_and(|until| at < *until)
            || self.kept_until(id).is_some_and(|(until, _)| at < until && self.hold(id, at).is_none())
            || self.holds.keys().any(goes_on)
    }
}
