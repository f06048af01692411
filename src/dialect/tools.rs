//! Tools that the provider runs itself: each use costs a fee and reads the whole conversation again.

use super::bad_request::{BadRequest, bad, shown, unsupported};
use super::edit::{Edit, insert_member};
use super::json::{Member, Members, object};
use super::lists::each;
use super::members::members as find;
use super::refused::check_names;
use super::request::Allowances;
use super::rules::{PromptShape, RequestRules};

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
        let mut tally = Tally { place: 0, uses: Some(0), any: false, described: 0 };
        if let Some(tools) = members.get("tools")
            && !tally.take_all(tools.value.get(), rules, allowed)?
        {
            return Err(bad("tools", format!("`tools` is {}, want a list of tools", shown(tools))));
        }
        let holds_items = |name: &str| rules.prompt.contains(&(name, PromptShape::Items));
        for member in members.0.iter().filter(|member| holds_items(&member.name)) {
            tally.take_those_in_items(member, rules, allowed)?;
        }
        let Tally { place, uses, any, described } = tally;
        let own_words = if place == 0 { 0 } else { rules.tools_tokens };
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

/// What the tools of a request come to so far.
struct Tally {
    /// How many there were.
    place: u64,
    /// How often those that the provider runs may be used, if each has said so.
    uses: Option<u64>,
    /// Whether the provider runs one.
    any: bool,
    /// How many the provider describes itself.
    described: u64,
}

impl Tally {
    /// Takes a list of tools; whether it is one.
    fn take_all(&mut self, json: &str, rules: &RequestRules, allowed: &Allowances) -> Result<bool, BadRequest> {
        let mut fault = None;
        let read = each(json, |tool| {
            if fault.is_none() {
                fault = self.take(tool.get(), rules, allowed).err();
            }
        });
        fault.map_or(Ok(read.is_ok()), Err)
    }

    /// Takes the tools that items of a prompt bring with them.
    fn take_those_in_items(
        &mut self,
        member: &Member<'_>,
        rules: &RequestRules,
        allowed: &Allowances,
    ) -> Result<(), BadRequest> {
        let mut fault = None;
        // What is no list is a text, without tools.
        let _ = each(member.value.get(), |item| {
            if let Some([Some(tools)]) = find(item.get(), ["tools"])
                && fault.is_none()
            {
                fault = self.take_all(tools.get(), rules, allowed).err();
            }
        });
        let in_item = |fault: BadRequest| BadRequest { param: Some(member.name.clone().into_owned()), ..fault };
        fault.map_or(Ok(()), |fault| Err(in_item(fault)))
    }

    fn take(&mut self, json: &str, rules: &RequestRules, allowed: &Allowances) -> Result<(), BadRequest> {
        let place = self.place;
        self.place += 1;
        let Some(tool) = object::<Members<'_>>(json) else {
            return Err(bad(&format!("tools[{place}]"), format!("`tools[{place}]` is no object")));
        };
        check_names(&["type", "max_uses"], &tool).map_err(|fault| {
            let param = fault.param.map(|name| format!("tools[{place}].{name}"));
            BadRequest { param, ..fault }
        })?;
        let kind = tool.get("type").map_or("\"function\"", |kind| kind.value.get());
        let kind = serde_json::from_str::<String>(kind).unwrap_or_default();
        if matches!(kind.as_str(), "function" | "custom") {
            return Ok(());
        }
        self.described = self.described.saturating_add(1);
        if rules.client_tools.iter().any(|begin| kind.starts_with(begin)) {
            return Ok(());
        }
        if !allowed.provider_tools.contains(&kind) {
            let shown: String = kind.chars().take(40).collect();
            let message = format!("the tool `{shown}`, which the provider runs, is not allowed here");
            return Err(unsupported(&format!("tools[{place}].type"), message));
        }
        self.any = true;
        let own = tool.get("max_uses").and_then(|uses| uses.value.get().parse::<u64>().ok());
        self.uses = self.uses.zip(own).map(|(all, own)| all.saturating_add(own));
        Ok(())
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
