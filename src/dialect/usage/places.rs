//! Where an answer has its usage.

use serde_json::value::RawValue;

use super::{Usage, read};
use crate::dialect::members::members;

/// The members of a whole answer, or of an event of a stream, in or beside which its usage may stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct UsagePlaces<'b> {
    /// `usage`: nearly everybody's.
    pub usage: Option<&'b RawValue>,
    /// `x_groq`: Groq's, in streams.
    pub x_groq: Option<&'b RawValue>,
    /// `response`: in events of the Responses API.
    pub response: Option<&'b RawValue>,
    /// `message`: in Anthropic's first event.
    pub message: Option<&'b RawValue>,
    /// `result`: in Cloudflare's own envelope.
    pub result: Option<&'b RawValue>,
    /// `service_tier`: the tier that the call was served in.
    pub service_tier: Option<&'b RawValue>,
}

impl UsagePlaces<'_> {
    /// The first usage that says something: `usage`, else that inside of `response`, `message`, `result` or `x_groq`. A
    /// tier that it does not name itself is the one beside it, or the answer's.
    #[must_use]
    pub fn find(&self) -> Option<Usage> {
        let found = said(self.usage).or_else(|| {
            let opening = || Some(Usage { opening: true, ..nested(self.message?)? });
            let later = || [self.result, self.x_groq].into_iter().flatten().find_map(nested);
            self.response.and_then(nested).or_else(opening).or_else(later)
        })?;
        Some(found.or_tier(read::tier(self.service_tier)))
    }
}

fn nested(outer: &RawValue) -> Option<Usage> {
    let [usage, tier] = members(outer.get(), ["usage", "service_tier"])?;
    Some(said(usage)?.or_tier(read::tier(tier)))
}

fn said(usage: Option<&RawValue>) -> Option<Usage> {
    Usage::read(usage?.get()).filter(Usage::says_something)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Tokens;
    use crate::pricing::Tier;

    fn found(body: &str) -> Option<Usage> {
        let names = ["usage", "x_groq", "response", "message", "result", "service_tier"];
        let [usage, x_groq, response, message, result, service_tier] = members(body, names).unwrap();
        UsagePlaces { usage, x_groq, response, message, result, service_tier }.find()
    }

    #[test]
    fn usage_is_found_wherever_it_is_put() {
        for body in [
            r#"{"usage":{"input_tokens":7}}"#,
            r#"{"x_groq":{"id":"r","usage":{"input_tokens":7}}}"#,
            r#"{"response":{"usage":{"input_tokens":7}},"usage":null}"#,
            r#"{"message":{"usage":{"input_tokens":7}},"usage":{}}"#,
            r#"{"result":{"response":"Volga","usage":{"input_tokens":7}},"response":"Volga"}"#,
            r#"{"usage":{"queue_time":1},"response":null,"message":"Volga","x_groq":{"usage":{"input_tokens":7}}}"#,
        ] {
            assert_eq!(found(body).and_then(|usage| usage.input()), Some(Tokens(7)), "{body}");
        }
        for body in ["{}", r#"{"usage":[7]}"#, r#"{"service_tier":"flex","response":{"usage":null}}"#] {
            assert_eq!(found(body), None, "{body}");
        }
    }

    #[test]
    fn a_tier_is_the_nearest_that_is_named() {
        let tiers = [
            (r#"{"usage":{"input_tokens":7},"service_tier":"priority"}"#, Some(Tier::Priority)),
            (r#"{"usage":{"input_tokens":7,"service_tier":"flex"},"service_tier":"priority"}"#, Some(Tier::Flex)),
            (r#"{"response":{"service_tier":"flex","usage":{"input_tokens":7}}}"#, Some(Tier::Flex)),
            (r#"{"usage":{"input_tokens":7},"service_tier":"of its own"}"#, None),
            (r#"{"usage":{"input_tokens":7},"service_tier":null}"#, None),
        ];
        for (body, want) in tiers {
            assert_eq!(found(body).and_then(|usage| usage.tier()), want, "{body}");
        }
    }
}
