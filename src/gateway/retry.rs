//! What follows a try that failed before its first byte, and which upstreams are left alone.
//!
//! Invariant: decided by rules alone; the time and randomness come in. A refusal of the request is final, whoever else
//! might take it.

use crate::dialect::fault::ErrorBody;
use crate::policy::{HealthRules, RetryRules};
use crate::rejection::UpstreamFault;
use crate::time::{UnixMillis, Wait};

/// The longest that an upstream's own limit is remembered: it may have been raised.
const LIMITED_MAX: Wait = Wait::seconds(60);

/// What follows a try that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another try there, after a pause.
    Again(Wait),
    /// A try with the next one that serves the model.
    Elsewhere,
    /// Nothing: this is the answer.
    Stop,
}

/// What follows the `tried`th failure on end with one upstream. `random` shortens the pause, so that those who failed
/// together do not come back together.
#[must_use]
pub fn next(fault: &UpstreamFault, rules: &RetryRules, tried: u64, random: u64) -> Next {
    let again = |wait: Wait| if tried < rules.attempts { Next::Again(wait) } else { Next::Elsewhere };
    match fault {
        UpstreamFault::Refused { .. } => Next::Stop,
        UpstreamFault::Unreachable | UpstreamFault::Invalid => again(pause(rules, tried, random)),
        UpstreamFault::Failed { status } if rules.statuses.contains(status) => again(pause(rules, tried, random)),
        UpstreamFault::Limited { wait: Some(wait), .. } if *wait <= rules.wait_max => again(*wait),
        // After a time-out the same provider may still be at work.
        UpstreamFault::Timeout
        | UpstreamFault::PollTimeout
        | UpstreamFault::Auth
        | UpstreamFault::Failed { .. }
        | UpstreamFault::Limited { .. } => Next::Elsewhere,
    }
}

/// The pause before another try: doubled each time, and shortened by up to a half.
fn pause(rules: &RetryRules, tried: u64, random: u64) -> Wait {
    let doublings = u32::try_from(tried.saturating_sub(1)).unwrap_or(u32::MAX);
    let doubled = rules.backoff.0.saturating_mul(2_u64.saturating_pow(doublings));
    let half = doubled / 2;
    Wait(doubled - random % (half + 1))
}

/// How a model at an upstream has done lately, as far as one isolate knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Failures on end.
    failures: u64,
    /// Until when it is left alone.
    open_until: UnixMillis,
    /// Until when its own limit keeps us out, and its words.
    limited: Option<(UnixMillis, ErrorBody)>,
}

impl Standing {
    /// How long its own limit still keeps us out, if it does, and what it said of that.
    #[must_use]
    pub fn limited(&self, now: UnixMillis) -> Option<(Wait, ErrorBody)> {
        let (until, error) = self.limited.as_ref().filter(|(until, _)| *until > now)?;
        Some((until.since(now), error.clone()))
    }

    /// Whether it is to be left alone. If that is over one call tries it, and the others wait for what comes of that.
    pub fn is_left_alone(&mut self, rules: HealthRules, now: UnixMillis) -> bool {
        if self.failures < rules.failures {
            return false;
        }
        let left_alone = self.open_until > now;
        if !left_alone {
            self.open_until = now.after(rules.open);
        }
        left_alone
    }

    /// It has answered.
    pub fn answered(&mut self) {
        *self = Self::default();
    }

    /// A try has failed.
    pub fn failed(&mut self, fault: &UpstreamFault, rules: HealthRules, now: UnixMillis) {
        match fault {
            // The request's fault, so it is well.
            UpstreamFault::Refused { .. } => self.answered(),
            UpstreamFault::Limited { wait: Some(wait), error } => {
                self.limited = Some((now.after((*wait).min(LIMITED_MAX)), error.clone()));
            }
            UpstreamFault::Limited { wait: None, .. } => {}
            _ => {
                self.failures = self.failures.saturating_add(1);
                if self.failures >= rules.failures {
                    self.open_until = now.after(rules.open);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> RetryRules {
        RetryRules { attempts: 3, statuses: vec![500, 503], backoff: Wait(200), wait_max: Wait(2_000) }
    }

    fn error() -> ErrorBody {
        ErrorBody { message: String::new(), kind: String::new(), param: None, code: None }
    }

    fn limited(wait: Option<u64>) -> UpstreamFault {
        UpstreamFault::Limited { error: error(), wait: wait.map(Wait) }
    }

    #[test]
    fn every_fault_has_what_follows() {
        let table = [
            (UpstreamFault::Unreachable, Next::Again(Wait(200)), Next::Elsewhere),
            (UpstreamFault::Invalid, Next::Again(Wait(200)), Next::Elsewhere),
            (UpstreamFault::Failed { status: 503 }, Next::Again(Wait(200)), Next::Elsewhere),
            (UpstreamFault::Failed { status: 402 }, Next::Elsewhere, Next::Elsewhere),
            (UpstreamFault::Failed { status: 200 }, Next::Elsewhere, Next::Elsewhere),
            (limited(Some(2_000)), Next::Again(Wait(2_000)), Next::Elsewhere),
            (limited(Some(2_001)), Next::Elsewhere, Next::Elsewhere),
            (limited(None), Next::Elsewhere, Next::Elsewhere),
            (UpstreamFault::Timeout, Next::Elsewhere, Next::Elsewhere),
            (UpstreamFault::Auth, Next::Elsewhere, Next::Elsewhere),
            (UpstreamFault::Refused { status: 400, error: error() }, Next::Stop, Next::Stop),
        ];
        for (fault, first, last) in table {
            assert_eq!((next(&fault, &rules(), 1, 0), next(&fault, &rules(), 3, 0)), (first, last), "{fault:?}");
        }
    }

    #[test]
    fn pauses_double_and_are_shortened_by_up_to_a_half() {
        let pause = |tried, random| pause(&rules(), tried, random).0;
        assert_eq!([pause(1, 0), pause(2, 0), pause(3, 0)], [200, 400, 800]);
        assert_eq!([pause(1, 100), pause(1, 101), pause(2, 57)], [100, 200, 343]);
        assert!(pause(1_000, u64::MAX) > 0);
    }

    #[test]
    fn after_enough_failures_one_call_tries_and_the_others_wait() {
        let health = HealthRules { failures: 2, open: Wait(1_000) };
        let at = UnixMillis;
        let mut standing = Standing::default();
        let fail = |standing: &mut Standing, now| standing.failed(&UpstreamFault::Unreachable, health, at(now));
        fail(&mut standing, 0);
        assert!(!standing.is_left_alone(health, at(0)));
        fail(&mut standing, 10);
        assert!(standing.is_left_alone(health, at(1_009)));
        assert!(!standing.is_left_alone(health, at(1_010)), "one tries");
        assert!(standing.is_left_alone(health, at(1_011)), "the others wait");
        fail(&mut standing, 1_020);
        assert!(standing.is_left_alone(health, at(2_019)));
        assert!(!standing.is_left_alone(health, at(2_020)));
        standing.answered();
        assert!(!standing.is_left_alone(health, at(2_021)));
    }

    #[test]
    fn an_upstreams_own_limit_is_remembered_but_not_for_long() {
        let health = HealthRules { failures: 1, open: Wait(1_000) };
        let mut standing = Standing::default();
        standing.failed(&limited(None), health, UnixMillis(0));
        assert_eq!(standing.limited(UnixMillis(0)), None);
        standing.failed(&limited(Some(5_000)), health, UnixMillis(0));
        assert_eq!(standing.limited(UnixMillis(1_000)), Some((Wait(4_000), error())));
        assert_eq!(standing.limited(UnixMillis(5_000)), None);
        standing.failed(&limited(Some(3_600_000)), health, UnixMillis(0));
        assert_eq!(standing.limited(UnixMillis(0)), Some((Wait(60_000), error())));
        assert!(!standing.is_left_alone(health, UnixMillis(0)), "a limit is no failure");
    }
}
