//! From a request to what it may cost, and from an answer to what it did.
//!
//! Invariant: what is held is what can be charged. The output cap that is priced is the one that is sent upstream, and
//! a usage beyond what the model can take is charged at what it can take.

use crate::dialect::bad_request::BadRequest;
use crate::dialect::chat::{ChatRequest, Forwarding};
use crate::dialect::prompt::{CountMethod, CountRules, PromptTokens, TextCounter};
use crate::dialect::reply::{OutputCounter, Seen};
use crate::dialect::usage::Usage;
use crate::limit::{Charge, Estimate, Tokens};
use crate::policy::{AboveMax, Model, NamedModel, Plan, Policy};
use crate::pricing::{Quantities, Tier};
use crate::rejection::Rejection;

/// A request with its price.
#[derive(Clone, Debug)]
pub struct Priced<'p> {
    /// The model that serves it.
    pub named: NamedModel<'p>,
    /// The cap that is held and sent.
    pub output_cap: Tokens,
    /// The tokens of its prompt.
    pub prompt: PromptTokens,
    /// The most that it can cost.
    pub estimate: Estimate,
    /// The most that the model can write for it, cap or not.
    output_ceiling: Tokens,
}

/// What a call is charged, and whether its usage was beyond belief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The charge.
    pub charge: Charge,
    /// The usage was beyond what the model can take.
    pub implausible: bool,
}

/// When a prompt is counted by its model's vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Where it can lower what is held by enough to be worth the work.
    WhereItMatters,
    /// Always: somebody asked for the number.
    Always,
}

impl<'p> Priced<'p> {
    /// Prices a request under a plan.
    ///
    /// # Errors
    /// If the model is not the plan's to call, or a number is beyond what the plan allows.
    pub fn of(policy: &'p Policy, plan: &Plan, request: &ChatRequest<'_>, when: Count) -> Result<Self, Rejection> {
        let named = policy
            .model(plan, &request.model)
            .ok_or_else(|| Rejection::ModelNotFound { model: request.model.clone() })?;
        let output_max = plan.output_max_for(named.model);
        if output_max == Tokens(0) {
            return Err(out_of_range("model", format!("the model `{}` writes no text", request.model)));
        }
        if request.candidates > plan.candidates_max {
            let want = format!("`n` is {}, want at most {}", request.candidates, plan.candidates_max);
            return Err(out_of_range("n", want));
        }
        let asked = request.output_cap().unwrap_or(plan.output_default);
        if asked > output_max && request.output_cap().is_some() && plan.output_above_max == AboveMax::Refuse {
            let want = format!("the output cap is {}, want at most {}", asked.0, output_max.0);
            return Err(out_of_range("max_completion_tokens", want));
        }
        let output_cap = asked.min(output_max);
        let over_all =
            |each: Tokens| Tokens(each.0.saturating_mul(request.candidates).saturating_add(request.predicted.0));
        let output = over_all(output_cap);
        let exactly = when == Count::Always || matters(plan, named.model, request, output);
        let rules = &policy.counting;
        let mut counter = if exactly { TextCounter::new(rules, &named.model.count) } else { TextCounter::bytes() };
        let prompt = request.prompt(&mut counter).map_err(Rejection::BadRequest)?;
        let prompt = prompt.tokens(rules, &named.model.count);
        let context = named.model.count.context;
        if prompt.lower > context {
            // Beyond it the provider would refuse, or ask for another price.
            return Err(Rejection::BadRequest(BadRequest {
                message: format!(
                    "the prompt has at least {} tokens, beyond the maximum context length of {} tokens",
                    prompt.lower.0, context.0
                ),
                param: Some("messages".to_owned()),
                code: Some("context_length_exceeded"),
            }));
        }
        let estimate = named.model.price.estimate(&bound(prompt.upper, output), Tier::Standard);
        let output_ceiling = over_all(named.model.output_max);
        Ok(Self { named, output_cap, prompt, estimate, output_ceiling })
    }

    /// What has to be changed in the body.
    #[must_use]
    pub fn forwarding(&self, ask_usage: bool) -> Forwarding<'_> {
        Forwarding {
            model: &self.named.sent_as,
            output_cap: self.output_cap,
            cap_field: &self.named.model.cap_field,
            ask_usage,
        }
    }

    /// A counter for the answer, in case its provider does not say what it used.
    #[must_use]
    pub fn output_counter(&self, rules: &CountRules) -> OutputCounter {
        OutputCounter::new(self.named.model.count.encoding.filter(|_| rules.method == CountMethod::Exact))
    }

    /// The charge for an answer: its usage if that is there, else what is known and, for the rest, what was seen. Of an
    /// answer that is not whole the usage may be a running one, so it is at least what was seen.
    #[must_use]
    pub fn charge(&self, usage: Option<Usage>, seen: Seen, whole: bool) -> Charged {
        let (ceiling, context) = (self.output_ceiling, self.named.model.count.context);
        let usage = usage.unwrap_or_default();
        let counts = usage.quantities();
        let mut known = counts.unwrap_or_else(|| Quantities {
            input: usage.input().unwrap_or(self.estimate.0.input),
            output: usage.output().unwrap_or_else(|| seen.tokens().min(self.estimate.0.output)),
            ..usage.partial()
        });
        if !whole {
            known.output = known.output.max(seen.tokens().min(self.estimate.0.output));
        }
        let believed = Quantities { input: known.input.min(context), output: known.output.min(ceiling), ..known };
        let cost = self.named.model.price.cost(&believed, Tier::Standard);
        let charge = if whole && counts.is_some() { Charge::Exact(cost) } else { Charge::AtLeast(cost) };
        Charged { charge, implausible: believed != known }
    }
}

/// The bound of a call that reads and writes so much text.
fn bound(input: Tokens, output: Tokens) -> Quantities {
    Quantities { input, output, ..Quantities::default() }
}

/// Whether counting could lower what is held of any of the plan's limits by more than a twentieth; if not, the bytes
/// decide at once.
fn matters(plan: &Plan, model: &Model, request: &ChatRequest<'_>, output: Tokens) -> bool {
    const WORTH_COUNTING: u64 = 20;
    let held = |input: u64| model.price.estimate(&bound(Tokens(input), output), Tier::Standard).0;
    let (most, least) = (held(request.text_bytes_max()), held(0));
    plan.limits.iter().any(|limit| {
        let (most, least) = (most.of(limit.unit).0, least.of(limit.unit).0);
        most.saturating_sub(least) > most / WORTH_COUNTING
    })
}

fn out_of_range(param: &str, message: String) -> Rejection {
    Rejection::BadRequest(BadRequest { message, param: Some(param.to_owned()), code: None })
}
