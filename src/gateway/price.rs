//! From a request to what it may cost, and from an answer to what it did.
//!
//! Invariant: what is held is what can be charged. The output cap that is priced is the one that is sent upstream, and
//! a usage beyond what the model can take is charged at what it can take.

use super::media;
use crate::dialect::bad_request::{BadRequest, bad, unsupported};
use crate::dialect::prompt::{CountMethod, CountRules, PromptTokens, TextCounter};
use crate::dialect::reply::{OutputCounter, Seen};
use crate::dialect::request::{Forwarding, Request};
use crate::dialect::rules::{CapRule, Medium, RequestRules};
use crate::dialect::usage::Usage;
use crate::limit::{Charge, Cost, Estimate, NanoUsd, Tokens};
use crate::policy::{AboveMax, Model, NamedModel, Plan, Policy, ReportedCost, Upstream};
use crate::pricing::{Price, Quantities, Tier};
use crate::rejection::Rejection;

/// A request with its price.
#[derive(Clone, Debug)]
pub struct Priced<'p> {
    /// The model that serves it.
    pub named: NamedModel<'p>,
    /// The upstream that serves it.
    pub upstream: &'p Upstream,
    /// The cap that is held and sent.
    pub output_cap: Tokens,
    /// The tokens of its prompt.
    pub prompt: PromptTokens,
    /// The most that it can cost.
    pub estimate: Estimate,
    /// What is known of the call before it is made.
    pub(super) asked: Asked,
}

/// What is known of a call before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The prices that it is charged by.
    pub(super) price: Price,
    /// What it is about.
    pub(super) medium: Medium,
    /// What it takes at most.
    pub(super) bound: Quantities,
    /// What the model can take for it at most, cap or not.
    pub(super) ceiling: Quantities,
    /// The tier of service that it asks for.
    pub(super) tier: Tier,
    /// Whether its answer is text.
    pub(super) writes: bool,
    /// Whether its answer says what it used.
    pub(super) has_usage: bool,
}

/// What a call is charged, and whether its usage was beyond belief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The charge.
    pub charge: Charge,
    /// The usage was beyond what the model can take.
    pub implausible: bool,
    /// The provider reports another price than ours.
    pub cost_differs: bool,
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
    /// Prices a request under a plan, as it is served by `named`.
    ///
    /// # Errors
    /// If it is not served there, or a number is beyond what the plan allows.
    pub fn of(
        policy: &'p Policy,
        plan: &Plan,
        (request, named): (&Request<'_>, NamedModel<'p>),
        when: Count,
    ) -> Result<Self, Rejection> {
        let upstream = upstream_of(policy, &named, request)?;
        let model = named.model;
        let price = media::price_of(model, request).map_err(Rejection::BadRequest)?;
        let output_cap = output_cap(plan, model, request)?;
        let thoughts = if request.extra.reasoning < output_cap { Tokens(0) } else { request.extra.reasoning };
        let over_all = |each: Tokens| {
            let each = each.0.saturating_add(request.extra.output.0).saturating_add(thoughts.0);
            Tokens(each.saturating_mul(request.answers()).saturating_add(request.predicted.0))
        };
        let output = over_all(output_cap);
        let exactly = when == Count::Always || matters(plan, model, request, output);
        let rules = &policy.counting;
        let mut counter =
            if exactly { TextCounter::new(rules, &model.count) } else { TextCounter::bytes(&model.count) };
        let size = request.prompt(&mut counter).map_err(Rejection::BadRequest)?;
        if let Some(name) = size.opaque_name.filter(|_| !plan.allowances.unseen_input) {
            return Err(unpriced(name, format!("`{name}` is not allowed here: its size in tokens does not show")));
        }
        let mut prompt = size.tokens(rules, &model.count);
        prompt.upper = Tokens(prompt.upper.0.saturating_add(request.tools.tokens)).min(model.count.context);
        if prompt.lower > model.count.context {
            return Err(Rejection::BadRequest(too_long(request, prompt, model)));
        }
        // Every use of a tool of the provider's has the model read the conversation once more, as long as it may be.
        let turns = request.tools.calls.saturating_add(1);
        let context = Tokens(model.count.context.0.saturating_mul(turns));
        let read = Tokens(prompt.upper.0.saturating_add(media::tokens_of_files(request).0)).min(model.count.context);
        let input = match request.tools.calls {
            _ if request.dialect.request.free => Tokens(0),
            0 => read,
            _ => context,
        };
        let text = Quantities {
            cache_write_long: if request.may_cache_long() { input } else { Tokens(0) },
            audio_input: if size.sounds > 0 { input } else { Tokens(0) },
            image_input: Tokens(size.image_tokens),
            tool_calls: request.tools.calls,
            ..bound(request, input, output)
        };
        let bound = media::bound(request, &price, text);
        let estimate = price.estimate(&bound, request.tier);
        let ceiling = Quantities { input: context, output: over_all(ceiling_of(model, request)), ..bound };
        let RequestRules { medium, cap, .. } = request.dialect.request;
        let writes = cap != CapRule::Nothing && matches!(medium, Medium::Text | Medium::Transcript(_));
        let has_usage = request.dialect.reply.has_usage;
        let asked = Asked { price, medium, bound, ceiling, tier: request.tier, writes, has_usage };
        Ok(Self { named, upstream, output_cap, prompt, estimate, asked })
    }

    /// Whether the usage of a stream is asked for, whoever wants to see it.
    #[must_use]
    pub fn asks_for_usage(&self, request: &Request<'_>) -> bool {
        request.stream && request.dialect.request.asks_for_usage && self.upstream.stream_usage
    }

    /// What has to be changed in the body.
    #[must_use]
    pub fn forwarding(&self, request: &Request<'_>) -> Forwarding<'_> {
        let cap_field = match request.dialect.request.cap {
            CapRule::Model => Some(self.named.model.cap_field.as_str()),
            CapRule::Field(name) => Some(name),
            // Without a cap the API's own holds, and it is what was priced.
            CapRule::Api(_) => request.output_cap().and_then(|_| request.dialect.request.caps.first().copied()),
            CapRule::Ceiling | CapRule::Nothing => None,
        };
        let ask_usage = self.asks_for_usage(request);
        Forwarding { model: &self.named.sent_as, output_cap: self.output_cap, cap_field, ask_usage }
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
        let Asked { price, medium, bound, ceiling, tier, writes, has_usage } = &self.asked;
        let all = usage.unwrap_or_default();
        let usage = if media::counts(*medium, &all.partial()) { all } else { Usage::default() };
        let said = usage.quantities().is_some();
        let seen = if *writes { seen.tokens().min(bound.output) } else { Tokens(0) };
        let mut known = usage.quantities().unwrap_or_else(|| Quantities {
            input: usage.input().unwrap_or(bound.input),
            output: usage.output().unwrap_or(seen),
            ..usage.partial()
        });
        if !whole {
            known.output = known.output.max(seen);
        }
        let (known, is_known) = media::taken(*medium, price, bound, known, said);
        let believed = media::believed(ceiling, &known);
        let tier = all.tier().unwrap_or_else(|| price.tiers.unless_cheaper(*tier));
        let own = price.cost(&believed, tier);
        let most = price.estimate(ceiling, tier).0.usd;
        let reported = all.reported_cost().map(|cost| cost.min(most));
        let usd = match (self.upstream.reported_cost, reported) {
            (ReportedCost::Ignore, _) | (_, None) => own.usd,
            (ReportedCost::Check, Some(reported)) => own.usd.max(reported),
            (ReportedCost::Use, Some(reported)) => reported,
        };
        let differs = reported.is_some_and(|reported| differ(reported, own.usd));
        let cost = Cost { usd, ..own };
        let exact = whole && (is_known || !has_usage);
        let charge = if exact { Charge::Exact(cost) } else { Charge::AtLeast(cost) };
        Charged { charge, implausible: believed != known, cost_differs: differs }
    }
}

/// Whether what a provider reports is more than a hundredth away from what our prices say.
fn differ(reported: NanoUsd, own: NanoUsd) -> bool {
    const HUNDRED: u64 = 100;
    reported.0.abs_diff(own.0) > own.0 / HUNDRED
}

/// The upstream that serves a model in the request's dialect.
fn upstream_of<'p>(
    policy: &'p Policy,
    named: &NamedModel<'p>,
    request: &Request<'_>,
) -> Result<&'p Upstream, Rejection> {
    let upstream = policy.upstream(named.model).ok_or(Rejection::PolicyInvalid)?;
    if !upstream.serves(request.dialect) {
        return Err(Rejection::ModelElsewhere { model: request.model.clone(), path: request.dialect.path });
    }
    let price = &named.model.price;
    if !price.tiers.has_price(request.tier) {
        return Err(unpriced("service_tier", format!("the model `{}` has no price for this tier", request.model)));
    }
    let is_text = request.dialect.request.medium == Medium::Text;
    if is_text && request.extra.audio_output > Tokens(0) && price.audio_output.is_none() {
        return Err(unpriced("modalities", format!("the model `{}` has no price for sound", request.model)));
    }
    Ok(upstream)
}

/// The output cap that is held and sent, for each answer.
fn output_cap(plan: &Plan, model: &Model, request: &Request<'_>) -> Result<Tokens, Rejection> {
    if request.candidates > plan.candidates_max {
        let name = request.dialect.request.candidates.first().unwrap_or(&"n");
        let want = format!("`{name}` is {}, want at most {}", request.candidates, plan.candidates_max);
        return Err(out_of_range(name, want));
    }
    let max = plan.output_max_for(model);
    let default = match request.dialect.request.cap {
        CapRule::Nothing => return Ok(Tokens(0)),
        CapRule::Ceiling => return Ok(model.output_max),
        CapRule::Api(default) => Tokens(default),
        CapRule::Model | CapRule::Field(_) => plan.output_default,
    };
    if max == Tokens(0) {
        return Err(out_of_range("model", format!("the model `{}` writes no text", request.model)));
    }
    if let Some(asked) = request.output_cap().filter(|asked| *asked > max)
        && plan.output_above_max == AboveMax::Refuse
    {
        let name = request.dialect.request.caps.first().unwrap_or(&"max_tokens");
        return Err(out_of_range(name, format!("the output cap is {}, want at most {}", asked.0, max.0)));
    }
    Ok(request.output_cap().unwrap_or(default).min(max))
}

/// The most that the model can write for one answer, cap or not.
fn ceiling_of(model: &Model, request: &Request<'_>) -> Tokens {
    if request.dialect.request.cap == CapRule::Nothing { Tokens(0) } else { model.output_max }
}

/// Beyond its context the provider would refuse, or ask for another price.
fn too_long(request: &Request<'_>, prompt: PromptTokens, model: &Model) -> BadRequest {
    BadRequest {
        message: format!(
            "the prompt has at least {} tokens, beyond the maximum context length of {} tokens",
            prompt.lower.0, model.count.context.0
        ),
        param: request.dialect.request.prompt.first().map(|(name, _)| (*name).to_owned()),
        code: Some("context_length_exceeded"),
    }
}

/// The bound of a call that reads and writes so much text.
fn bound(request: &Request<'_>, input: Tokens, output: Tokens) -> Quantities {
    Quantities { input, output, ..request.extra }
}

/// Whether counting could lower what is held of any of the plan's limits by more than a twentieth; if not, the bytes
/// decide at once.
fn matters(plan: &Plan, model: &Model, request: &Request<'_>, output: Tokens) -> bool {
    const WORTH_COUNTING: u64 = 20;
    let held = |input: u64| model.price.estimate(&bound(request, Tokens(input), output), request.tier).0;
    let (most, least) = (held(request.text_bytes_max()), held(0));
    plan.limits.iter().any(|limit| {
        let (most, least) = (most.of(limit.unit).0, least.of(limit.unit).0);
        most.saturating_sub(least) > most / WORTH_COUNTING
    })
}

fn out_of_range(param: &str, message: String) -> Rejection {
    Rejection::BadRequest(bad(param, message))
}

fn unpriced(param: &str, message: String) -> Rejection {
    Rejection::BadRequest(unsupported(param, message))
}
