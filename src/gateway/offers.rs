//! Who may serve a call.
//!
//! Invariant: what is held is enough for whoever answers in the end. So the dearest of them decides, and no call has to
//! be asked for more, or refused, in the middle.

use super::price::{Count, Priced};
use crate::dialect::request::Request;
use crate::limit::{Cost, Estimate};
use crate::policy::{Plan, Policy};
use crate::rejection::Rejection;

/// A call as each of those who may serve it would serve it, in the order in which they are tried; at least one.
#[derive(Clone, Debug)]
pub struct Offers<'p> {
    /// The model's own upstream.
    pub first: Priced<'p>,
    /// The others.
    pub others: Vec<Priced<'p>>,
}

impl<'p> Offers<'p> {
    /// Prices a request with everybody who may serve it under a plan. A fallback that cannot serve this very call, by its
    /// length or its tier, is left out.
    ///
    /// # Errors
    /// If the model is not the plan's to call, or a number is beyond what the plan allows.
    pub fn of(policy: &'p Policy, plan: &Plan, request: &Request<'_>, when: Count) -> Result<Self, Rejection> {
        let unknown = || Rejection::ModelNotFound { model: request.model.clone() };
        let named = policy.model(plan, &request.model).ok_or_else(unknown)?;
        let fallbacks: Vec<_> = named.fallbacks().collect();
        let first = Priced::of(policy, plan, (request, named), when)?;
        // An answer in the background is fetched where it was begun.
        let fallbacks = fallbacks.into_iter().filter(|_| !request.background);
        let others = fallbacks.filter_map(|named| Priced::of(policy, plan, (request, named), when).ok());
        Ok(Self { first, others: others.collect() })
    }

    /// The most that the call can cost, whoever answers.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let all = self.others.iter().map(|other| other.estimate.0);
        Estimate(all.fold(self.first.estimate.0, |most, other| Cost {
            requests: most.requests.max(other.requests),
            input: most.input.max(other.input),
            output: most.output.max(other.output),
            usd: most.usd.max(other.usd),
        }))
    }
}
