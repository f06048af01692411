//! What a later request has to know of a call in the background, as it is written into the call's hold.
//!
//! Invariant: what is written is what was known when the call was held, never a price: a call is charged by the prices
//! of the moment at which it is settled.

use serde::{Deserialize, Serialize};

use super::price::{Asked, Priced};
use crate::auth::Principal;
use crate::dialect::prompt::PromptTokens;
use crate::dialect::responses::RESPONSES;
use crate::limit::Tokens;
use crate::policy::Policy;
use crate::pricing::{Quantities, Tier};

/// The note, in JSON. A later build reads what an earlier one has written, so members are only added, with a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The model, as the policy knows it.
    pub(super) model: String,
    /// The most that the call reads.
    input: Tokens,
    /// The most that it writes.
    output: Tokens,
    /// How often it uses tools of the provider's at most.
    #[serde(default)]
    tools: u64,
    /// The tier of service that it asks for.
    #[serde(default, skip_serializing_if = "is_standard")]
    tier: Tier,
    /// Which one of several who share the subject has made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    member: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_standard(tier: &Tier) -> bool {
    *tier == Tier::Standard
}

impl Note {
    /// What is to be known of a call of `principal`.
    pub(super) fn of(priced: &Priced<'_>, principal: &Principal) -> Self {
        let Asked { bound, tier, .. } = priced.asked;
        Self {
            model: priced.named.known_as.clone(),
            input: bound.input,
            output: bound.output,
            tools: bound.tool_calls,
            tier,
            member: principal.member.clone(),
        }
    }

    /// Reads a note.
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The note as text.
    pub(super) fn to_text(&self) -> String {
        // Numbers and strings only: the serialiser has no other way to fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether the call is one of `principal`'s, of whose object the note is.
    pub(super) fn is_of(&self, principal: &Principal) -> bool {
        self.member == principal.member
    }

    /// The call with the prices, the bounds and the upstream that its model has now; `None` if the policy has it no more.
    pub(super) fn priced<'p>(&self, policy: &'p Policy) -> Option<Priced<'p>> {
        let named = policy.known_model(&self.model)?;
        let upstream = policy.upstream(named.model).filter(|upstream| upstream.serves(&RESPONSES))?;
        let Self { input, output, tools, tier, .. } = *self;
        let bound = Quantities { input, output, tool_calls: tools, ..Quantities::default() };
        // Every use of a tool has the model read the conversation once more.
        let context = Tokens(named.model.count.context.0.saturating_mul(tools.saturating_add(1)));
        let ceiling = Quantities { input: context, output: named.model.output_max, ..bound };
        let asked = Asked {
            price: named.model.price,
            medium: RESPONSES.request.medium,
            bound,
            ceiling,
            tier,
            writes: true,
            has_usage: RESPONSES.reply.has_usage,
        };
        let prompt = PromptTokens { lower: Tokens(0), upper: input };
        let estimate = named.model.price.estimate(&bound, tier);
        Some(Priced { named, upstream, output_cap: output, prompt, estimate, asked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Kind, Subject};

    fn principal(member: Option<&str>) -> Principal {
        let member = member.map(str::to_owned);
        Principal { subject: Subject("visitor:1".to_owned()), plan: "p".to_owned(), kind: Kind::Visitor, member }
    }

    #[test]
    fn a_note_is_read_as_it_was_written_by_any_build() {
        let plain = r#"{"model":"m","input":12,"output":100,"tools":0}"#;
        let all = r#"{"model":"m-2031-01-15","input":12,"output":100,"tools":4,"tier":"ultrafast","member":"0a1b"}"#;
        for text in [plain, all] {
            assert_eq!(Note::read(text).map(|note| note.to_text()).as_deref(), Some(text));
        }
        assert_eq!(Note::read(r#"{"model":"m","input":12,"output":100,"newer":[1]}"#), Note::read(plain));
        for text in ["", "m", r#"{"model":"m"}"#, r#"{"model":"m","input":-1,"output":1}"#] {
            assert_eq!(Note::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_call_is_that_of_the_one_who_made_it_among_those_who_share_an_object() {
        let note = |member: &str| Note::read(&format!(r#"{{"model":"m","input":1,"output":1{member}}}"#)).unwrap();
        let (own, shared, plain) = (note(r#","member":"a""#), note(r#","member":"""#), note(""));
        for (note, whose) in [(own, Some("a")), (shared, Some("")), (plain, None)] {
            for member in [Some("a"), Some("b"), Some(""), None] {
                assert_eq!(note.is_of(&principal(member)), member == whose, "{note:?} {member:?}");
            }
        }
    }
}
