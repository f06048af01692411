//! A request: what we read of it, whatever its dialect, and what we write into it.
//!
//! Invariant: a field that we read is read the way every provider reads it, or the call is refused and the field named:
//! nothing is guessed that decides what a call costs.

use core::ops::Range;

use super::bad_request::{BadRequest, bad, shown, unsupported};
use super::edit::{Edit, insert_member};
use super::fields::{NullCap, OutputCap, flag, model, output_caps, usage_option, whole_number};
use super::form::{Files, Form};
use super::json::{Members, quoted};
use super::lists::items;
use super::prompt::{PromptSize, TextCounter};
use super::refused;
use super::rules::{Dialect, RequestRules};
use super::tools::ToolUse;
use crate::limit::Tokens;
use crate::pricing::{Quantities, Tier};

/// What a plan lets its subjects ask for, beyond what a request shows by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowances {
    /// The tools of the provider's own that may be used, by their `type`.
    pub provider_tools: Vec<String>,
    /// How often one call may use them.
    pub tool_calls_max: u64,
    /// Whether input may have a size that does not show, as files and what the provider keeps; it counts as a whole context.
    pub unseen_input: bool,
    /// Whether a call may go on in the background, to be settled when its answer is fetched.
    pub background: bool,
}

/// What a request says that decides its cost and its route.
#[derive(Clone, Debug)]
pub struct Request<'b> {
    /// Its dialect.
    pub dialect: &'static Dialect,
    body: &'b str,
    members: Members<'b>,
    form: Option<&'b Form>,
    /// The model, as the caller calls it.
    pub model: String,
    model_span: Option<Range<usize>>,
    caps: Vec<OutputCap>,
    null_caps: Vec<NullCap<'b>>,
    /// How many answers are asked for to each prompt; at least 1.
    pub candidates: u64,
    /// How many prompts are answered; at least 1.
    pub prompts: u64,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether the caller asked for the usage event.
    pub usage_asked: bool,
    usage_edit: Option<Edit>,
    /// Tokens of a prediction at most: those that turn out wrong are charged as output.
    pub predicted: Tokens,
    /// The tier of service that was asked for.
    pub tier: Tier,
    /// The provider's own tools.
    pub tools: ToolUse,
    /// Whether the answer will have to be fetched.
    pub background: bool,
    /// What else the call takes: characters, images, sound.
    pub extra: Quantities,
}

/// What has to be changed in the body before it is forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding<'p> {
    /// The model's real name.
    pub model: &'p str,
    /// The output cap that was held.
    pub output_cap: Tokens,
    /// Under what name a cap is written where the caller gave none; `None` if none is.
    pub cap_field: Option<&'p str>,
    /// Whether to ask for the usage event of a stream.
    pub ask_usage: bool,
}

impl<'b> Request<'b> {
    /// Reads a body.
    ///
    /// # Errors
    /// If it is not a request of the dialect, or one whose cost has no bound.
    pub fn read(dialect: &'static Dialect, body: &'b [u8], allowed: &Allowances) -> Result<Self, BadRequest> {
        let (body, members) = Members::of_body(body)?;
        Self::of(dialect, (body, members), allowed)
    }

    /// Reads a form.
    ///
    /// # Errors
    /// As for a body.
    pub fn of_form(dialect: &'static Dialect, form: &'b Form, allowed: &Allowances) -> Result<Self, BadRequest> {
        let (fields, members) = Members::of_body(form.fields.as_bytes())?;
        let request = Self::of(dialect, (fields, members), allowed)?;
        Ok(Self { form: Some(form), ..request })
    }

    fn of(
        dialect: &'static Dialect,
        (body, members): (&'b str, Members<'b>),
        allowed: &Allowances,
    ) -> Result<Self, BadRequest> {
        let rules = &dialect.request;
        refused::check(rules, &members)?;
        let (model, model_span) = model(body, &members, rules.default_model)?;
        let (caps, null_caps) = output_caps(body, &members, rules.caps)?;
        let stream = flag(&members, "stream")?;
        let asks = stream && rules.asks_for_usage;
        let (usage_asked, usage_edit) = if asks { usage_option(body, &members)? } else { (false, None) };
        if let Some(required) = rules.required.filter(|required| members.get(required).is_none()) {
            return Err(bad(required, format!("`{required}` is missing")));
        }
        Ok(Self {
            dialect,
            body,
            model,
            model_span,
            caps,
            null_caps,
            candidates: candidates(rules, &members)?,
            prompts: prompts(rules, &members),
            stream,
            usage_asked,
            usage_edit,
            predicted: Tokens(members.get("prediction").map_or(0, |prediction| prediction.value.get().len() as u64)),
            tier: tier(&members)?,
            tools: ToolUse::of(body, rules, &members, allowed)?,
            background: background(rules, &members, allowed)?,
            extra: rules.extra.map_or_else(|| Ok(Quantities::default()), |extra| extra(&members))?,
            members,
            form: None,
        })
    }

    /// How large the prompt is; this is the one time that its texts are read.
    ///
    /// # Errors
    /// If a member with the prompt is not what it has to be.
    pub fn prompt(&self, counter: &mut TextCounter) -> Result<PromptSize, BadRequest> {
        PromptSize::of(&self.dialect.request, &self.members, counter)
    }

    /// How many bytes of text the prompt can have at most, without reading it.
    #[must_use]
    pub fn text_bytes_max(&self) -> u64 {
        PromptSize::bytes_max(&self.dialect.request, &self.members)
    }

    /// The output cap that the caller gave: of several, the largest.
    #[must_use]
    pub fn output_cap(&self) -> Option<Tokens> {
        self.caps.iter().map(|cap| cap.tokens).max()
    }

    /// How many answers the call makes in all.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.candidates.saturating_mul(self.prompts)
    }

    /// The files of a form.
    #[must_use]
    pub fn files(&self) -> Files {
        self.form.map_or_else(Files::default, |form| form.files)
    }

    /// Whether the request asks for the longer of the times that a prompt can be cached.
    #[must_use]
    pub fn may_cache_long(&self) -> bool {
        // A letter of the name may be escaped, which nothing but a disguise does.
        ["\"ttl\"", "\\u0074", "\\u006c", "\\u006C"].iter().any(|spelling| self.body.contains(spelling))
    }

    /// What makes the caller's body the one to be sent upstream: the fields that must be set.
    #[must_use]
    pub fn edits_for(&self, forwarding: &Forwarding<'_>) -> Vec<Edit> {
        let mut edits = Vec::new();
        if forwarding.model != self.model {
            edits.push(self.model_edit(forwarding.model));
        }
        let cap = forwarding.output_cap;
        if let Some(field) = forwarding.cap_field {
            for too_large in self.caps.iter().filter(|written| written.tokens > cap) {
                edits.push(Edit { span: too_large.span.clone(), text: cap.0.to_string() });
            }
            if self.caps.is_empty() {
                let member = || format!("{}:{}", quoted(field), cap.0);
                // A `null` of another name stays: an upstream that obeys only `field` would not see a cap there.
                edits.push(self.null_caps.iter().find(|(name, _)| name == field).map_or_else(
                    || insert_member(self.body, 0..self.body.len(), &member()),
                    |(_, null)| Edit { span: null.clone(), text: cap.0.to_string() },
                ));
            }
        }
        if forwarding.ask_usage {
            edits.extend(self.usage_edit.clone());
        }
        edits.extend(self.tools.edit.clone());
        edits
    }

    /// Names another model than the caller did.
    fn model_edit(&self, model: &str) -> Edit {
        if let Some(span) = self.form.and_then(|form| form.model.clone()) {
            return Edit { span, text: model.to_owned() };
        }
        match self.model_span.clone() {
            Some(span) => Edit { span, text: quoted(model) },
            None => insert_member(self.body, 0..self.body.len(), &format!("\"model\":{}", quoted(model))),
        }
    }
}

/// The largest of what multiplies the answers.
fn candidates(rules: &RequestRules, members: &Members<'_>) -> Result<u64, BadRequest> {
    let given = rules.candidates.iter().filter_map(|name| members.get(name));
    given.map(whole_number).try_fold(1, |most, number| Ok(most.max(number?)))
}

/// How many prompts a list of them is; a list of token ids is one.
fn prompts(rules: &RequestRules, members: &Members<'_>) -> u64 {
    let Some((name, _)) = rules.prompt.first().filter(|_| rules.each_prompt_answered) else { return 1 };
    members.get(name).map_or(1, |member| items(member.value.get()))
}

fn tier(members: &Members<'_>) -> Result<Tier, BadRequest> {
    let Some(member) = members.get("service_tier") else { return Ok(Tier::Standard) };
    let named = serde_json::from_str::<String>(member.value.get()).ok().and_then(|name| Tier::named(&name));
    named.ok_or_else(|| {
        unsupported("service_tier", format!("`service_tier` is {}, which has no known price", shown(member)))
    })
}

fn background(rules: &RequestRules, members: &Members<'_>, allowed: &Allowances) -> Result<bool, BadRequest> {
    let background = rules.decisive.contains(&"background") && flag(members, "background")?;
    if background && !allowed.background {
        let why = "`background` is not allowed here: what it costs is known only when its answer is fetched";
        return Err(unsupported("background", why.to_owned()));
    }
    Ok(background)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::chat::CHAT;
    use crate::dialect::edit::edited;
    use crate::dialect::prompt::ModelCount;

    const MESSAGES: &str = r#""messages":[{"role":"user","content":"Hi"}]"#;

    fn forwarded(members: &str, forwarding: &Forwarding<'_>) -> String {
        let body = format!(r#"{{"model":"m",{MESSAGES}{members}}}"#);
        let edits = Request::read(&CHAT, body.as_bytes(), &Allowances::default()).unwrap().edits_for(forwarding);
        String::from_utf8(edited(body.into_bytes(), edits)).unwrap().replace(MESSAGES, "M")
    }

    fn fault(members: &str) -> BadRequest {
        let body = format!("{{{members}}}");
        let read = Request::read(&CHAT, body.as_bytes(), &Allowances::default());
        read.and_then(|request| request.prompt(&mut TextCounter::bytes(&ModelCount::default()))).unwrap_err()
    }

    const PLAIN: Forwarding<'static> =
        Forwarding { model: "m", output_cap: Tokens(100), cap_field: Some("max_tokens"), ask_usage: false };

    #[test]
    fn nothing_to_set_means_not_a_byte_changed() {
        let members = r#","max_tokens":20,"seed":9007199254740993,"temperature":1.0,"x":{"k":[1,2.50]}"#;
        assert_eq!(forwarded(members, &PLAIN), format!(r#"{{"model":"m",M{members}}}"#));
    }

    #[test]
    fn the_cap_that_is_held_is_the_cap_that_is_sent() {
        assert_eq!(forwarded("", &PLAIN), r#"{"max_tokens":100,"model":"m",M}"#);
        assert_eq!(forwarded(r#","max_tokens":null"#, &PLAIN), r#"{"model":"m",M,"max_tokens":100}"#);
        assert_eq!(
            forwarded(r#","max_completion_tokens":null"#, &PLAIN),
            r#"{"max_tokens":100,"model":"m",M,"max_completion_tokens":null}"#
        );
        assert_eq!(
            forwarded(r#","max_tokens":1000000000000000000,"max_completion_tokens":7"#, &PLAIN),
            r#"{"model":"m",M,"max_tokens":100,"max_completion_tokens":7}"#
        );
    }

    #[test]
    fn an_alias_is_sent_under_the_real_name() {
        let forwarding = Forwarding { model: "real \"one\"", ..PLAIN };
        assert_eq!(forwarded(r#","max_tokens":1"#, &forwarding), r#"{"model":"real \"one\"",M,"max_tokens":1}"#);
    }

    #[test]
    fn usage_is_asked_for_once_and_only_in_a_stream() {
        let ask = Forwarding { ask_usage: true, ..PLAIN };
        let with = |options: &str| forwarded(&format!(r#","max_tokens":1,"stream":true{options}"#), &ask);
        let want = |options: &str| format!(r#"{{"model":"m",M,"max_tokens":1,"stream":true{options}}}"#);
        let asked = r#","stream_options":{"include_usage":true}"#;
        assert_eq!(with(""), r#"{"stream_options":{"include_usage":true},"model":"m",M,"max_tokens":1,"stream":true}"#);
        assert_eq!(with(r#","stream_options":null"#), want(asked));
        assert_eq!(with(r#","stream_options":{"include_usage":false}"#), want(asked));
        assert_eq!(with(asked), want(asked));
        assert_eq!(
            with(r#","stream_options":{"include_obfuscation":false}"#),
            want(r#","stream_options":{"include_usage":true,"include_obfuscation":false}"#)
        );
        let plain = r#","max_tokens":1,"stream":false"#;
        assert_eq!(forwarded(plain, &ask), format!(r#"{{"model":"m",M{plain}}}"#));
    }

    #[test]
    fn every_fault_names_its_field() {
        let faults = [
            (MESSAGES.to_owned(), "model"),
            (format!(r#""model":null,{MESSAGES}"#), "model"),
            (format!(r#""model":" ",{MESSAGES}"#), "model"),
            (format!(r#""model":7,{MESSAGES}"#), "model"),
            (format!(r#""model":"a","mod\u0065l":"b",{MESSAGES}"#), "model"),
            (r#""model":"m""#.to_owned(), "messages"),
            (r#""model":"m","messages":"hi""#.to_owned(), "messages"),
            (format!(r#""model":"m","max_tokens":2,"max_tokens":4,{MESSAGES}"#), "max_tokens"),
            (format!(r#""model":"m","stream":1,{MESSAGES}"#), "stream"),
            (format!(r#""model":"m","stream":true,"stream_options":1,{MESSAGES}"#), "stream_options"),
            (format!(r#""model":"m","service_tier":"warp",{MESSAGES}"#), "service_tier"),
            (format!(r#""model":"m","modalities":["text","smell"],{MESSAGES}"#), "modalities"),
            (format!(r#""model":"m","web_search_options":{{}},{MESSAGES}"#), "web_search_options"),
            (format!(r#""model":"m","models":["dearer"],{MESSAGES}"#), "models"),
            (format!(r#""model":"m","Max_Tokens":9,{MESSAGES}"#), "Max_Tokens"),
            (format!(r#""model":"m","max_to\u212aens":9,{MESSAGES}"#), "max_to\u{212a}ens"),
            (format!(r#""model":"m","meſſages":[],{MESSAGES}"#), "meſſages"),
            (format!(r#""model":"m","models":null,"models":["dearer"],{MESSAGES}"#), "models"),
            (format!(r#""model":"m","Plugins":[1],{MESSAGES}"#), "Plugins"),
        ];
        for (members, param) in faults {
            assert_eq!(fault(&members).param.as_deref(), Some(param), "{members}");
        }
        for number in ["0", "-1", "12.5", "[100]", "\"5\"", "1e2", "18446744073709551616", "true"] {
            for name in ["max_tokens", "max_completion_tokens", "n"] {
                let fault = fault(&format!(r#""model":"m",{MESSAGES},"{name}":{number}"#));
                assert_eq!(fault.param.as_deref(), Some(name), "{number}");
                assert!(fault.message.contains(number), "{}", fault.message);
            }
        }
    }
}
