//! What is written down of a call: one line, once it has ended.
//!
//! Invariant: no prompt, no answer, no credential and no address. The subject is the opaque one.

use serde::Serialize;

use super::ports::Ports;
use crate::limit::Cost;
use crate::time::UnixMillis;

/// One call, from its arrival to its settlement.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts, not a state")]
pub struct CallRecord {
    /// The id that the answer carries as `x-request-id`; the hold has it too.
    pub id: String,
    /// What was called.
    pub route: &'static str,
    /// When it came in.
    pub at: UnixMillis,
    /// The status of the answer.
    pub status: u16,
    /// How it ended: `ok`, or the code of the rejection or the failure.
    pub verdict: &'static str,
    /// Who called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Under which plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Which model, as it was sent upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the provider calls a call in the background: on the line of the request that began it, and of those that have
    /// asked for its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_as: Option<String>,
    /// Which upstream answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// How often an upstream was tried, where that was not once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<u64>,
    /// Whether the answer was a stream.
    pub stream: bool,
    /// The limit that refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    /// The wait that was announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// What was held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Cost>,
    /// What was charged; absent if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charged: Option<Cost>,
    /// By which prices: the shipped table's date, and whether the policy changes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<String>,
    /// Whether the charge is the provider's own usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<bool>,
    /// The provider reported more than the model can take; charged was what it can.
    #[serde(skip_serializing_if = "is_false")]
    pub implausible: bool,
    /// The provider reported another price than ours.
    #[serde(skip_serializing_if = "is_false")]
    pub cost_differs: bool,
    /// The call passed without a hold, as the policy allows.
    #[serde(skip_serializing_if = "is_false")]
    pub unchecked: bool,
    /// The client left before the end.
    #[serde(skip_serializing_if = "is_false")]
    pub client_left: bool,
    /// The settlement or release could not be delivered; the hold's deadline ends it.
    #[serde(skip_serializing_if = "is_false")]
    pub unsettled: bool,
    /// How long the limiter took to answer.
    pub limiter_ms: u64,
    /// How long the ledger took to answer.
    pub ledger_ms: u64,
    /// How long the upstream took until its answer could be judged.
    pub upstream_ms: u64,
    /// From arrival to settlement; what the others do not explain is the caller's sending and the relaying.
    pub total_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl CallRecord {
    /// Writes the call down, as over now.
    pub fn write_down<P: Ports>(mut self, ports: &P) {
        self.total_ms = ports.now().since(self.at).0;
        ports.log(&self);
    }

    /// The subject as analytics samples by it; a longer text than 96 bytes would lose the point.
    #[must_use]
    pub fn index(&self) -> &str {
        let subject = self.subject.as_deref().unwrap_or("");
        subject.split_at(subject.floor_char_boundary(96)).0
    }

    /// The labels of the call as analytics has them, in a fixed order: verdict, route, plan, model, limit, stream.
    #[must_use]
    pub fn labels(&self) -> [&str; 6] {
        [
            self.verdict,
            self.route,
            self.plan.as_deref().unwrap_or(""),
            self.model.as_deref().unwrap_or(""),
            self.limited_by.as_deref().unwrap_or(""),
            if self.stream { "stream" } else { "plain" },
        ]
    }

    /// The numbers of the call as analytics has them, in a fixed order: status, announced wait, held and charged
    /// billionths of a dollar, charged input and output tokens, and the times in milliseconds:
    /// limiter, upstream, in all, ledger.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "analytics has nothing but doubles; all of these are below 2^53")]
    pub fn numbers(&self) -> [f64; 10] {
        let (held, charged) = (self.held.unwrap_or_default(), self.charged.unwrap_or_default());
        [
            u64::from(self.status),
            self.wait_ms.unwrap_or(0),
            held.usd.0,
            charged.usd.0,
            charged.input.0,
            charged.output.0,
            self.limiter_ms,
            self.upstream_ms,
            self.total_ms,
            self.ledger_ms,
        ]
        .map(|number| number as f64)
    }
}
