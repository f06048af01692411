//! A call's hold, from its reservation to its one end.
//!
//! Invariant: a hold ends by `end`, once. A question to the limiter that is not answered is asked once more, with the
//! same id, which is safe because every command may be repeated; a settlement that is lost all the same is made by the
//! hold's deadline.

use super::ports::{Ports, Unavailable};
use super::price::Charged;
use super::record::CallRecord;
use crate::auth::Subject;
use crate::limit::Charge;
use crate::limit::account::{HoldId, Snapshot, Verdict};
use crate::limit::protocol::{Command, Reply};
use crate::time::Wait;

/// How a hold ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With what the call did cost.
    Settle(Charged),
    /// With nothing: the call cost nothing.
    Release {
        /// Whether the day's count is given back too: the upstream was not reached, or failed before any output.
        give_back: bool,
    },
}

impl Ending {
    /// What the limiter is asked. `counted` is whether the day's gate, if it had to be asked, has counted the call.
    #[must_use]
    pub fn command(&self, id: HoldId, counted: bool) -> Command {
        match *self {
            Self::Settle(charged) => Command::Settle { id, charge: charged.charge, counted },
            Self::Release { give_back } => Command::Release { id, give_back: give_back && counted },
        }
    }

    /// Writes down what is charged, if anything is.
    pub fn write_into(&self, record: &mut CallRecord) {
        let Self::Settle(charged) = self else { return };
        record.charged = Some(*charged.charge.cost());
        record.exact = Some(matches!(charged.charge, Charge::Exact(_)));
        record.implausible = charged.implausible;
        record.cost_differs = charged.cost_differs;
    }
}

/// What a call holds, and the record that is written when it ends.
#[derive(Debug)]
#[must_use = "a hold has to be ended"]
pub struct Hold {
    /// Whose it is.
    pub subject: Subject,
    /// The account at an upstream that holds the same under the same id, if it has limits.
    pub account: Option<Subject>,
    /// The id of the call.
    pub id: HoldId,
    /// The bound of a question to the limiter.
    pub within: Wait,
    /// Whether the day's gate, if it had to be asked, has counted the call.
    pub counted: bool,
    /// The record.
    pub record: CallRecord,
}

impl Hold {
    /// Ends the hold, and writes the record.
    pub async fn end<P: Ports>(mut self, ports: &P, ending: Ending) {
        ending.write_into(&mut self.record);
        let command = ending.command(self.id.clone(), self.counted);
        self.end_account(ports, &command).await;
        // Also of a call that passed unchecked: its reservation may have been made, and only its answer lost.
        if let Err(Unavailable(why)) = ask_twice(ports, &self.subject, &command, self.within).await {
            self.record.unsettled = true;
            ports.warn(&format!("call {}: the hold was left to its deadline: {why}", self.id.0));
        }
        self.record.write_down(ports);
    }

    /// Ends what the upstream's account holds, where one does.
    pub async fn end_account<P: Ports>(&mut self, ports: &P, command: &Command) {
        if let Some(account) = self.account.take() {
            end_account(ports, (&account, &self.id), command, self.within).await;
        }
    }

    /// Keeps the hold open beyond its request, to be ended under another id, with a note for whoever ends it; whether it
    /// is. If not, it is as it was.
    ///
    /// # Errors
    /// If nothing was answered; the hold may be kept all the same.
    pub async fn keep<P: Ports>(
        &self,
        ports: &P,
        (as_id, note): (&str, String),
        hold: Wait,
    ) -> Result<bool, Unavailable> {
        let (id, as_id) = (self.id.clone(), HoldId(as_id.to_owned()));
        let command = Command::Keep { id, as_id, note, hold, counted: self.counted };
        let answer = ask_twice(ports, &self.subject, &command, self.within).await?;
        Ok(answer == Reply::Done { known: true })
    }

    /// Keeps the hold open for longer; whether that was answered. A failure is no harm: the hold then ends at its
    /// deadline, and the settlement corrects it within the grace period.
    pub async fn extend<P: Ports>(&self, ports: &P, hold: Wait) -> bool {
        let command = Command::Extend { id: self.id.clone(), hold };
        if let Some(account) = &self.account {
            // Its deadline charges what it holds, which its settlement corrects.
            let _ = ask_twice(ports, account, &command, self.within).await;
        }
        let extended = ask_twice(ports, &self.subject, &command, self.within).await;
        if let Err(Unavailable(why)) = &extended {
            ports.warn(&format!("call {}: the hold was not extended: {why}", self.id.0));
        }
        extended.is_ok()
    }
}

/// Ends what an upstream's account holds for a call; if that is not answered, its deadline does.
pub(super) async fn end_account<P: Ports>(
    ports: &P,
    (account, id): (&Subject, &HoldId),
    command: &Command,
    within: Wait,
) {
    if let Err(Unavailable(why)) = ask_twice(ports, account, command, within).await {
        ports.warn(&format!("call {}: {} was left to its deadline: {why}", id.0, account.0));
    }
}

/// Asks, and asks once more if there is no answer: the first question may have been carried out and its answer lost.
///
/// # Errors
/// If neither question is answered.
pub async fn ask_twice<P: Ports>(
    ports: &P,
    subject: &Subject,
    command: &Command,
    within: Wait,
) -> Result<Reply, Unavailable> {
    match ports.ask(subject, command, within).await {
        Ok(reply) => Ok(reply),
        Err(_) => ports.ask(subject, command, within).await,
    }
}

/// Asks for a decision and what is left after it, by `Command::Reserve` or `Command::Check`.
///
/// # Errors
/// If neither question is answered, or with something else.
pub async fn ask_verdict<P: Ports>(
    ports: &P,
    subject: &Subject,
    command: &Command,
    within: Wait,
) -> Result<(Verdict, Snapshot), Unavailable> {
    match ask_twice(ports, subject, command, within).await? {
        Reply::Reserve { verdict, snapshot } => Ok((verdict, snapshot)),
        other => Err(not_asked(&other)),
    }
}

/// Why an answer is of no use.
pub fn not_asked(answer: &impl core::fmt::Debug) -> Unavailable {
    Unavailable(format!("an answer to another question: {answer:?}"))
}
