//! Requests that nobody wrote down, in every dialect: what is refused says why, what is accepted is sent as it came.
//!
//! A small part always runs; `TOLLGATE_FUZZ=1000000 cargo test --release --test fuzz_requests` makes as many bodies
//! for each test as it says, and measures whether work grows with the length of a body alone.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{TestCaseError, TestRunner};
use support::bodies::{Pair, bodies, deciding, is_asked, json, names, pairs, sent_as, texts};
use support::spelling::{folded, lookalikes};
use tollgate::dialect::DIALECTS;
use tollgate::dialect::bad_request::BadRequest;
use tollgate::dialect::prompt::{CountMethod, CountRules, ModelCount, PromptSize, TextCounter};
use tollgate::dialect::request::{Allowances, Forwarding, Request};
use tollgate::dialect::rules::{CapRule, Dialect, RequestRules};
use tollgate::limit::Tokens;
use tollgate::tokens::Encoding;

mod support {
    pub(crate) mod bodies;
    pub(crate) mod fuzz;
    pub(crate) mod spelling;
}

type Checked = Result<(), TestCaseError>;

fn allowed(everything: bool) -> Allowances {
    if !everything {
        return Allowances::default();
    }
    let provider_tools = vec!["web_search".to_owned()];
    Allowances { provider_tools, tool_calls_max: 7, unseen_input: true, background: true }
}

/// Whatever decides what a call costs, but for its prompt's size and for what is set before it is sent.
fn kept(request: &Request<'_>) -> impl PartialEq + std::fmt::Debug + use<> {
    let answers = (request.candidates, request.prompts, request.predicted, request.extra);
    (answers, request.stream, request.tier, request.tools.calls, request.background)
}

/// What is set before it is sent.
fn replaced(request: &Request<'_>) -> impl PartialEq + std::fmt::Debug + use<> {
    (request.model.clone(), request.output_cap(), request.usage_asked)
}

fn size(request: &Request<'_>, method: CountMethod) -> Result<PromptSize, BadRequest> {
    let (per_message, per_call, per_tool) = (Tokens(8), Tokens(8), Tokens(16));
    let rules = CountRules { method, exact_max: 100_000, steps_max: 400_000, per_message, per_call, per_tool };
    let encoding = Some(Encoding::O200k);
    let model = ModelCount { encoding, percent: 100, context: Tokens(1_000_000_000), ..ModelCount::default() };
    request.prompt(&mut TextCounter::new(&rules, &model))
}

/// The field at fault is one that is there or one that has to be; without one it is said where the text breaks.
fn names_its_place(rules: &RequestRules, body: &[u8], fault: &BadRequest) -> Checked {
    prop_assert!(fault.message.len() <= 400, "{} bytes: {}", fault.message.len(), fault.message);
    let Some(param) = &fault.param else {
        let places = ["at line ", "from byte ", "levels deep", "want a JSON object"];
        prop_assert!(places.iter().any(|place| fault.message.contains(place)), "{fault:?}");
        return Ok(());
    };
    let root = param.split(['.', '[']).next().unwrap();
    let there = pairs(str::from_utf8(body).unwrap()).unwrap();
    let known = there.iter().any(|(name, _)| name == root || name == param);
    prop_assert!(known || root == "model" || rules.required == Some(root), "{fault:?}");
    Ok(())
}

/// Where a cap is written; a model's policy may choose among the names.
fn cap_field(request: &Request<'_>, choice: u64) -> Option<&'static str> {
    let rules = &request.dialect.request;
    match rules.cap {
        CapRule::Model => rules.caps.get(usize::from(choice.is_multiple_of(2))).or(rules.caps.first()).copied(),
        CapRule::Field(name) => Some(name),
        CapRule::Api(_) => request.output_cap().and(rules.caps.first().copied()),
        CapRule::Ceiling | CapRule::Nothing => None,
    }
}

/// The members of `before` stand in `after` as they were, but for those that are set; whatever is new is one of those.
fn only_what_must_differs(rules: &RequestRules, before: &[Pair], after: &[Pair]) -> Checked {
    let set = |name: &str| {
        name == "model" || name == "stream_options" || rules.caps.contains(&name) || rules.tool_calls_cap == Some(name)
    };
    let kept = |pairs: &[Pair]| pairs.iter().filter(|(name, _)| !set(name)).cloned().collect::<Vec<_>>();
    prop_assert_eq!(kept(before), kept(after));
    let order = |pairs: &[Pair]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let added = after.len() - before.len();
    prop_assert!(order(after).ends_with(&order(before)), "{after:?}");
    let fresh = order(after)[..added].to_vec();
    for (place, name) in fresh.iter().enumerate() {
        prop_assert!(set(name) && !fresh[..place].contains(name), "{name} was added");
        prop_assert!(!before.iter().any(|(old, _)| old == name), "{name} stands twice");
    }
    for (name, old) in before.iter().filter(|(name, _)| name == "stream_options") {
        let new = &after[added..].iter().find(|(new, _)| new == name).unwrap().1;
        let inner = |json: &str| {
            let inner = pairs(json).unwrap_or_default().into_iter();
            inner.filter(|(name, _)| name != "include_usage").collect::<Vec<_>>()
        };
        prop_assert!(new == old || inner(new) == inner(old), "{old} became {new}");
    }
    Ok(())
}

/// What was to be set is set, whoever reads it.
fn is_set(request: &Request<'_>, sent: &[Pair], held: Tokens, cap_field: Option<&str>) -> Checked {
    let rules = &request.dialect.request;
    let value = |name: &str| sent.iter().find(|(sent, _)| sent == name).map_or("", |(_, value)| value);
    if let Some(field) = cap_field {
        let caps = rules.caps.iter().filter_map(|name| value(name).parse::<u64>().ok());
        prop_assert_eq!(caps.max(), Some(held.0));
        prop_assert!(request.output_cap().is_some() || value(field) == held.0.to_string(), "no `{field}`: {sent:?}");
    }
    if let Some(cap) = rules.tool_calls_cap.filter(|_| request.tools.calls > 0) {
        prop_assert_eq!(value(cap), request.tools.calls.to_string());
    }
    Ok(())
}

/// What is sent is what came, but for what has to be set, and to read and set it once more changes nothing.
fn is_sent_as_it_came(request: &Request<'_>, body: &[u8], cap: u64, ask_usage: bool, allowed: &Allowances) -> Checked {
    let body = str::from_utf8(body).unwrap();
    let output_cap = request.output_cap().unwrap_or(Tokens(2_000)).min(Tokens(cap));
    let cap_field = cap_field(request, cap);
    let forwarding = Forwarding { model: "real \"é\"", output_cap, cap_field, ask_usage };
    let sent = sent_as(body, request, &forwarding);
    let (before, Some(after)) = (pairs(body).unwrap(), pairs(&sent)) else {
        return Err(TestCaseError::fail(format!("no JSON: {sent}")));
    };
    only_what_must_differs(&request.dialect.request, &before, &after)?;
    is_set(request, &after, output_cap, cap_field)?;
    let again = Request::read(request.dialect, sent.as_bytes(), allowed);
    prop_assert!(again.is_ok(), "{again:?}: {sent}");
    let again = again.unwrap();
    if before.iter().any(|(name, _)| name == "model") {
        prop_assert_eq!(&again.model, forwarding.model);
    }
    let asks = request.stream && request.dialect.request.asks_for_usage;
    prop_assert_eq!(again.usage_asked, asks && (request.usage_asked || ask_usage));
    prop_assert!(!again.usage_asked || is_asked(&after), "{sent}");
    prop_assert_eq!(kept(&again), kept(request));
    prop_assert_eq!(size(&again, CountMethod::Bytes), size(request, CountMethod::Bytes));
    prop_assert_eq!(sent_as(&sent, &again, &forwarding), sent);
    Ok(())
}

/// Readers disagree on which of repeated members counts, and on whether case does: it must not matter.
fn reads_the_same_however_it_is_read(request: &Request<'_>, body: &[u8], allowed: &Allowances) -> Checked {
    let before = pairs(str::from_utf8(body).unwrap()).unwrap();
    let last = |pairs: &[Pair]| {
        let later = |place: usize, name: &str| pairs[place + 1..].iter().any(|(later, _)| later == name);
        let kept = pairs.iter().enumerate().filter(|(place, (name, _))| !later(*place, name));
        kept.map(|(_, pair)| pair.clone()).collect::<Vec<_>>()
    };
    let backwards = |pairs: &[Pair]| pairs.iter().rev().cloned().collect::<Vec<_>>();
    let known = names(&request.dialect.request);
    let plain = |(name, value): &Pair| {
        let read = known.iter().find(|known| folded(known) == folded(name));
        (read.map_or_else(|| name.clone(), |known| (*known).to_owned()), value.clone())
    };
    let without_case: Vec<Pair> = before.iter().map(plain).collect();
    for read in [last(&before), backwards(&last(&backwards(&before))), last(&without_case)] {
        let members: Vec<String> =
            read.iter().map(|(name, value)| format!("{}:{value}", serde_json::Value::from(name.as_str()))).collect();
        let text = format!("{{{}}}", members.join(","));
        let other = Request::read(request.dialect, text.as_bytes(), allowed);
        prop_assert!(other.is_ok(), "{other:?}: {text}");
        let other = other.unwrap();
        prop_assert_eq!(kept(&other), kept(request), "{}", text);
        prop_assert_eq!(replaced(&other), replaced(request), "{}", text);
    }
    Ok(())
}

/// Everything that has to hold of a body; whether it was accepted.
fn check(
    dialect: &'static Dialect,
    body: &[u8],
    cap: u64,
    ask_usage: bool,
    everything: bool,
) -> Result<bool, TestCaseError> {
    let allowed = allowed(everything);
    let request = match Request::read(dialect, body, &allowed) {
        Ok(request) => request,
        Err(fault) => return names_its_place(&dialect.request, body, &fault).map(|()| false),
    };
    prop_assert!(request.candidates >= 1 && request.prompts >= 1 && request.answers() >= 1);
    for method in [CountMethod::Exact, CountMethod::Bounds, CountMethod::Bytes] {
        match size(&request, method) {
            Ok(size) => prop_assert!(size.text.lower <= size.text.upper, "{size:?}"),
            Err(fault) => names_its_place(&dialect.request, body, &fault)?,
        }
    }
    is_sent_as_it_came(&request, body, cap, ask_usage, &allowed)?;
    reads_the_same_however_it_is_read(&request, body, &allowed)?;
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(support::fuzz::cases(300)))]

    #[test]
    fn any_bytes_are_refused_or_read(body in proptest::collection::vec(any::<u8>(), 0..200), place in 0..DIALECTS.len()) {
        check(DIALECTS[place], &body, 100, true, true)?;
    }

    #[test]
    fn any_json_is_refused_or_read(body in prop_oneof![json(), texts()], place in 0..DIALECTS.len(), everything in any::<bool>()) {
        check(DIALECTS[place], body.as_bytes(), 100, true, everything)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(support::fuzz::cases(2_000)))]

    #[test]
    fn what_is_nearly_a_request_is_refused_with_its_reason_or_sent_as_it_came(
        (place, body) in bodies(), cap in 1..3_000_u64, ask_usage in any::<bool>(), everything in any::<bool>(),
    ) {
        check(DIALECTS[place], &body.0, cap, ask_usage, everything)?;
    }
}

#[test]
fn what_decides_stands_once_and_is_spelt_right() {
    for dialect in DIALECTS {
        for name in deciding(&dialect.request) {
            let field = |members: &str| {
                let body = format!("{{{members}}}");
                Request::read(dialect, body.as_bytes(), &allowed(true)).err().and_then(|fault| fault.param)
            };
            assert_eq!(field(&format!("\"{name}\":null,\"{name}\":[]")).as_deref(), Some(name), "{}", dialect.path);
            for lookalike in lookalikes(name) {
                assert_eq!(field(&format!("\"{lookalike}\":1")), Some(lookalike), "{}", dialect.path);
            }
        }
    }
}

#[test]
fn enough_of_every_dialects_bodies_are_requests() {
    let mut runner = TestRunner::deterministic();
    let mut accepted = [(0, 0); DIALECTS.len()];
    for _ in 0..100 * DIALECTS.len() {
        let (place, body) = bodies().new_tree(&mut runner).unwrap().current();
        let is_read = check(DIALECTS[place], &body.0, 100, true, true).unwrap();
        accepted[place] = (accepted[place].0 + usize::from(is_read), accepted[place].1 + 1);
    }
    for ((read, all), dialect) in accepted.iter().zip(DIALECTS) {
        assert!(all / 10 < *read, "{read} of {all} for {}", dialect.path);
    }
}

#[test]
fn a_long_run_finds_no_body_whose_work_grows_faster_than_its_length() {
    let items = [
        "1",
        "null",
        "{}",
        "\"\"",
        "[]",
        r#"{"type":"function"}"#,
        r#"{"content":"a"}"#,
        r#"{"a":1,"b":[2]}"#,
        r#""\u00e9\n""#,
        r#"{"image_url":{}}"#,
        r#"{"source":{"type":"text"}}"#,
        r#"{"type":"image","source":{"source":{}}}"#,
    ];
    for dialect in DIALECTS {
        for name in names(&dialect.request) {
            for item in items {
                let body = |length: usize| {
                    let others = dialect.request.required.into_iter().chain(["model"]).filter(|other| *other != name);
                    let others: Vec<String> = others.map(|other| format!("\"{other}\":\"m\",")).collect();
                    let list = vec![item; length / (item.len() + 1)].join(",");
                    format!("{{{}\"{name}\":[{list}]}}", others.concat()).into_bytes()
                };
                support::fuzz::assert_linear(&format!("{} {name} {item}", dialect.path), body, |body| {
                    if let Ok(request) = Request::read(dialect, body, &allowed(true)) {
                        let _ = std::hint::black_box(size(&request, CountMethod::Bytes));
                        std::hint::black_box(request.edits_for(&Forwarding {
                            model: "real",
                            output_cap: Tokens(1),
                            cap_field: cap_field(&request, 0),
                            ask_usage: true,
                        }));
                    }
                });
            }
        }
    }
}
