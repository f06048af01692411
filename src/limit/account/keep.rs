//! Holds that outlive the request that made them, and what is remembered of those that have ended.
//!
//! A call that the provider runs in the background is answered at once, and its cost is known only to a later request,
//! which knows the provider's id of the call and nothing else. So the hold takes over that id, and a note.
//!
//! Invariant: a hold is kept once, under an id that nothing else here has or had. Whatever else is asked for is refused:
//! the hold then stays as it was, and ends under its own id. A kept hold is an open one in everything: it is
//! charged by its deadline if nobody ends it, and has its slot until then, although nobody waits for it.

use super::{Account, ENDED_KEPT, ENDED_MAX, Ended, Found, FoundState, GRACE, HoldId, Kept, Outcome, Reservation};
use crate::time::{UnixMillis, Wait};

/// How long a kept hold can be found after its end: its caller has paid for the answer, and may ask for it again.
pub const KEPT_KNOWN: Wait = Wait::seconds(3_600);
/// How many kept holds can be found after their end at most, the latest; one is about 150 bytes of the record.
pub const KEPT_KNOWN_MAX: usize = 16;
/// How many holds are kept at a time at most. Without it, a caller whose calls stay open for hours could fill the record,
/// which is one value of 2 MB at most and is written in every call.
pub const KEPT_MAX: usize = 64;
/// The longest id that a hold is kept under, in bytes. Providers' are 50 to 60; a router's, which wraps one, up to 200.
pub const KEPT_ID_MAX: usize = 256;
/// The longest note, in bytes.
pub const NOTE_MAX: usize = 200;

impl Account {
    /// Keeps the open hold `id` until `now + time`, known as `as_id` from now on; whether it is. It is not if the hold is
    /// not open or was kept before, if `as_id` is or was another's, empty or too long, if `note` is too long, or if too
    /// many are kept; nothing has changed then.
    #[must_use]
    pub fn keep(&self, now: UnixMillis, id: &HoldId, (as_id, note): (&HoldId, &str), time: Wait) -> Outcome<bool> {
        let mut next = self.advanced(now);
        let at = next.at;
        if let Some(other) = next.holds.iter().find(|hold| hold.id == *as_id) {
            // It is the same if an answer was lost and is asked for again.
            return Outcome { answer: other.was(id), next: None };
        }
        let kept = next.holds.iter().filter(|hold| hold.kept.is_some()).count();
        let is_small = (1..=KEPT_ID_MAX).contains(&as_id.0.len()) && note.len() <= NOTE_MAX;
        let is_free = is_small && kept < KEPT_MAX && !next.has_ended(as_id);
        let is_open = |hold: &&mut Reservation| hold.id == *id && hold.expires_at > at && hold.kept.is_none();
        let Some(hold) = next.holds.iter_mut().find(is_open).filter(|_| is_free) else {
            return Outcome { answer: false, next: None };
        };
        hold.id = as_id.clone();
        hold.expires_at = at.after(time);
        hold.kept = Some(Kept { from: id.clone(), note: note.to_owned() });
        next.remember(id.clone(), None, at);
        Outcome { answer: true, next: Some(next.tidied()) }
    }

    /// What has become of the hold that was kept as `id`; `None` if this account has none, or has forgotten it. A hold that
    /// was not kept is not found: its id is none of the provider's. Writes nothing.
    #[must_use]
    pub fn find(&self, now: UnixMillis, id: &HoldId) -> Option<Found> {
        let view = self.advanced(now);
        if let Some(hold) = view.holds.iter().find(|hold| hold.id == *id) {
            let state = if hold.expires_at > view.at { FoundState::Open } else { FoundState::Expired };
            return hold.kept.as_ref().map(|kept| Found { state, note: kept.note.clone() });
        }
        let ended = view.ended.into_iter().find(|ended| ended.id == *id);
        ended.and_then(|ended| ended.note).map(|note| Found { state: FoundState::Ended, note })
    }

    /// Whether the id is that of a call that has ended, or goes on under another id.
    pub(super) fn has_ended(&self, id: &HoldId) -> bool {
        self.ended.iter().any(|ended| ended.id == *id) || self.holds.iter().any(|hold| hold.was(id))
    }

    /// Remembers an id that ended at `at`; with its note, one that can be found.
    pub(super) fn remember(&mut self, id: HoldId, note: Option<String>, at: UnixMillis) {
        let is_kept = note.is_some();
        let (time, most) = if is_kept { (KEPT_KNOWN, KEPT_KNOWN_MAX) } else { (ENDED_KEPT, ENDED_MAX) };
        let alike = |ended: &Ended| ended.note.is_some() == is_kept;
        if self.ended.iter().filter(|ended| alike(ended)).count() >= most
            && let Some(oldest) = self.ended.iter().position(alike)
        {
            self.ended.remove(oldest);
        }
        self.ended.push(Ended { id, until: at.after(time), note });
    }

    /// Forgets what need not be known any more: holds that nothing corrects now, and ids that nobody repeats.
    pub(super) fn forget(&mut self) {
        let at = self.at;
        let mut lapsed: Vec<_> = self.holds.extract_if(.., |hold| hold.graced_at() <= at).collect();
        // In the order of their ends, however long ago the account was looked at, since only the latest are remembered.
        lapsed.sort_by_key(|hold| hold.expires_at);
        for hold in lapsed {
            let ended_at = hold.graced_at();
            if let Some(kept) = hold.kept {
                self.remember(hold.id, Some(kept.note), ended_at);
            }
        }
        self.ended.retain(|ended| ended.until > at);
    }
}

impl Reservation {
    /// Whether it was made as `id`, and kept as another.
    fn was(&self, id: &HoldId) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.from == *id)
    }

    /// When nothing corrects it any more.
    fn graced_at(&self) -> UnixMillis {
        self.expires_at.after(GRACE)
    }

    /// When nothing is known of it any more, if nobody ends it.
    pub(super) fn forgotten_at(&self) -> UnixMillis {
        let known = if self.kept.is_some() { KEPT_KNOWN } else { Wait::default() };
        self.graced_at().after(known)
    }
}
