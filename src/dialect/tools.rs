//! Tools that the provider runs itself: each use costs a fee and reads the whole conversation again.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::bad_request::{BadRequest, bad, shown, unsupported};
use super::edit::{Edit, insert_member};
use super::json::{Members, object};
use super::request::Allowances;
use super::rules::RequestRules;

/// What the provider's description of one of its tools counts at most (735 for a computer, 499 more for its use).
const DESCRIBED_TOKENS: u64 = 1_300;

/// How often a request may use the provider's own tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUse {
    /// Uses at most; zero if there are no such tools.
    pub calls: u64,
    /// What the provider says of the tools itself, in tokens at most.
    pub tokens: u64,
    /// What bounds them in the body, where the caller did not.
    pub edit: Option<Edit>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'b"))]
struct Tool<'b> {
    #[serde(rename = "type")]
    kind: Option<&'b RawValue>,
    max_uses: Option<&'b RawValue>,
}

impl ToolUse {
    /// Reads `tools`.
    ///
    /// # Errors
    /// If one of them is the provider's and not allowed, or has no bound.
    pub fn of(
        body: &str,
        rules: &RequestRules,
        members: &Members<'_>,
        allowed: &Allowances,
    ) -> Result<Self, BadRequest> {
        let Some(tools) = members.get("tools") else { return Ok(Self::default()) };
        let list = serde_json::from_str::<Vec<&RawValue>>(tools.value.get())
            .map_err(|_| bad("tools", format!("`tools` is {}, want a list of tools", shown(tools))))?;
        let mut uses = Some(0_u64);
        let (mut any, mut described) = (false, 0_u64);
        for (place, raw) in list.iter().enumerate() {
            let Some(tool) = object::<Tool<'_>>(raw.get()) else {
                return Err(bad(&format!("tools[{place}]"), format!("`tools[{place}]` is no object")));
            };
            let kind = tool.kind.map_or("\"function\"", RawValue::get);
            let kind = serde_json::from_str::<String>(kind).unwrap_or_default();
            if matches!(kind.as_str(), "function" | "custom") {
                continue;
            }
            described = described.saturating_add(1);
            if rules.client_tools.iter().any(|begin| kind.starts_with(begin)) {
                continue;
            }
            if !allowed.provider_tools.contains(&kind) {
                let shown: String = kind.chars().take(40).collect();
                let message = format!("the tool `{shown}`, which the provider runs, is not allowed here");
                return Err(unsupported(&format!("tools[{place}].type"), message));
            }
            any = true;
            let own = tool.max_uses.and_then(|uses| uses.get().parse::<u64>().ok());
            uses = uses.zip(own).map(|(all, own)| all.saturating_add(own));
        }
        let own_words = if list.is_empty() { 0 } else { rules.tools_tokens };
        let tokens = described.saturating_mul(DESCRIBED_TOKENS).saturating_add(own_words);
        let max = allowed.tool_calls_max;
        let (calls, edit) = match (any, rules.tool_calls_cap) {
            (false, _) => (0, None),
            (true, Some(cap)) => capped(body, members, cap, max)?,
            (true, None) => (bounded_by_themselves(uses, max)?, None),
        };
        Ok(Self { calls, tokens, edit })
    }
}

/// The bound in a member of the request: it is written where it is missing and lowered where it is too large.
fn capped(body: &str, members: &Members<'_>, cap: &str, max: u64) -> Result<(u64, Option<Edit>), BadRequest> {
    let Some(member) = members.0.iter().find(|member| member.name == cap) else {
        let edit = insert_member(body, 0..body.len(), &format!("\"{cap}\":{max}"));
        return Ok((max, Some(edit)));
    };
    let given = if member.is_null() { u64::MAX } else { super::fields::whole_number(member)? };
    let edit = (given > max).then(|| Edit { span: member.span(body), text: max.to_string() });
    Ok((given.min(max), edit))
}

fn bounded_by_themselves(uses: Option<u64>, max: u64) -> Result<u64, BadRequest> {
    match uses {
        Some(calls) if calls <= max => Ok(calls),
        Some(calls) => Err(bad("tools", format!("the tools may be used {calls} times, want at most {max}"))),
        None => Err(bad("tools", format!("a tool that the provider runs lacks `max_uses`, want at most {max} in all"))),
    }
}
