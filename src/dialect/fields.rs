//! Single fields of a request.

use std::borrow::Cow;
use std::ops::Range;

use super::bad_request::{BadRequest, bad, shown};
use super::edit::{Edit, insert_member};
use super::json::{Member, Members};
use crate::limit::Tokens;

/// An output cap as the caller wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputCap {
    pub(super) span: Range<usize>,
    pub(super) tokens: Tokens,
}

/// The name of an output cap that is `null`, and where the `null` stands.
pub(super) type NullCap<'b> = (Cow<'b, str>, Range<usize>);

/// The output caps among the members, and the names and places of those that are `null`.
pub(super) fn output_caps<'b>(
    body: &str,
    members: &Members<'b>,
    names: &[&str],
) -> Result<(Vec<OutputCap>, Vec<NullCap<'b>>), BadRequest> {
    let (mut caps, mut nulls) = (Vec::new(), Vec::new());
    for member in members.0.iter().filter(|member| names.contains(&&*member.name)) {
        if member.is_null() {
            nulls.push((member.name.clone(), member.span(body)));
        } else {
            caps.push(OutputCap { span: member.span(body), tokens: Tokens(whole_number(member)?) });
        }
    }
    Ok((caps, nulls))
}

/// The model's name, and where it stands if it does.
pub(super) fn model(
    body: &str,
    members: &Members<'_>,
    default: Option<&str>,
) -> Result<(String, Option<Range<usize>>), BadRequest> {
    let Some(member) = members.get("model") else {
        let none = || bad("model", "`model` is missing; it names the model to call".to_owned());
        return default.map(|model| (model.to_owned(), None)).ok_or_else(none);
    };
    match serde_json::from_str::<String>(member.value.get()) {
        Ok(name) if !name.trim().is_empty() => Ok((name, Some(member.span(body)))),
        _ => Err(bad("model", format!("`model` is {}, want a non-empty string", shown(member)))),
    }
}

/// A whole number of at least 1.
pub(super) fn whole_number(member: &Member<'_>) -> Result<u64, BadRequest> {
    match member.value.get().parse::<u64>() {
        Ok(number) if number >= 1 => Ok(number),
        _ => {
            Err(bad(&member.name, format!("`{}` is {}, want a whole number of at least 1", member.name, shown(member))))
        }
    }
}

/// `true`, `false`, or absent.
pub(super) fn flag(members: &Members<'_>, name: &str) -> Result<bool, BadRequest> {
    match members.get(name) {
        None => Ok(false),
        Some(member) => match member.value.get() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(bad(name, format!("`{name}` is {}, want true or false", shown(member)))),
        },
    }
}

/// Whether the caller asks for the usage event, and the edit that asks for it where the caller does not.
pub(super) fn usage_option(body: &str, members: &Members<'_>) -> Result<(bool, Option<Edit>), BadRequest> {
    const OPTIONS: &str = "stream_options";
    const ASK: &str = r#""include_usage":true"#;
    let Some(options) = members.0.iter().find(|member| member.name == OPTIONS) else {
        return Ok((false, Some(insert_member(body, 0..body.len(), &format!(r#""{OPTIONS}":{{{ASK}}}"#)))));
    };
    let span = options.span(body);
    if options.is_null() {
        return Ok((false, Some(Edit { span, text: format!("{{{ASK}}}") })));
    }
    let inner: Members<'_> = serde_json::from_str(options.value.get())
        .map_err(|_| bad(OPTIONS, format!("`{OPTIONS}` is {}, want an object", shown(options))))?;
    if inner.repeated(&["include_usage"]).is_some() {
        return Err(bad("stream_options.include_usage", "`include_usage` stands more than once".to_owned()));
    }
    match inner.0.iter().find(|member| member.name == "include_usage") {
        None => Ok((false, Some(insert_member(body, span, ASK)))),
        Some(member) => match member.value.get() {
            "true" => Ok((true, None)),
            "false" | "null" => Ok((false, Some(Edit { span: member.span(body), text: "true".to_owned() }))),
            _ => Err(bad(
                "stream_options.include_usage",
                format!("`include_usage` is {}, want true or false", shown(member)),
            )),
        },
    }
}
