//! Bodies of requests as nobody would write them, grown from what each dialect says of itself.

use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use tollgate::dialect::DIALECTS;
use tollgate::dialect::edit::edited;
use tollgate::dialect::request::{Forwarding, Request};
use tollgate::dialect::rules::{PromptShape, RequestRules};

use super::spelling::spelled;

/// Members that are read in every dialect, whether its table names them or not.
const EVERYWHERE: [&str; 7] = ["model", "stream", "stream_options", "service_tier", "tools", "functions", "prediction"];

/// Options of a stream in which readers disagree on what is asked for.
const TWICE: &str = r#"{"include_usage":true,"include_us\u0061ge":false}"#;

/// A member as it stands in the text: its name with escapes undone, and its value.
pub(crate) type Pair = (String, String);

/// The members of a body, read by nothing of ours.
pub(crate) fn pairs(body: &str) -> Option<Vec<Pair>> {
    serde_json::from_str::<Pairs>(body).ok().map(|pairs| pairs.0)
}

/// Whether the usage event of a stream is asked for, whoever reads it.
pub(crate) fn is_asked(sent: &[Pair]) -> bool {
    let options = sent.iter().find(|(name, _)| name == "stream_options").and_then(|(_, value)| pairs(value));
    let asked = options.iter().flatten().filter(|(name, _)| name == "include_usage");
    asked.map(|(_, value)| value.as_str()).collect::<Vec<_>>() == ["true"]
}

struct Pairs(Vec<Pair>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Pairs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value: Box<RawValue> = map.next_value().map_err(de::Error::custom)?;
                    pairs.push((name, value.get().to_owned()));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

/// The names of all members that decide something.
pub(crate) fn deciding(rules: &RequestRules) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = EVERYWHERE.to_vec();
    names.extend(rules.prompt.iter().map(|(name, _)| *name));
    names.extend(rules.unbounded.iter().map(|(name, _)| *name));
    names.extend(rules.required.into_iter().chain(rules.tool_calls_cap));
    names.extend([rules.caps, rules.candidates, rules.decisive].concat());
    names.sort_unstable();
    names.dedup();
    names
}

/// Every name that a dialect's table has.
pub(crate) fn names(rules: &RequestRules) -> Vec<&'static str> {
    let mut names = [&deciding(rules), rules.not_read].concat();
    names.sort_unstable();
    names.dedup();
    names
}

/// Texts, long ones and nearly texts among them.
pub(crate) fn texts() -> impl Strategy<Value = String> {
    let odd = select(vec![r#""\ud800""#, r#""\udc00 after""#, r#""\ud83d\ude00""#, r#""\u0074tl""#, r#""]}\"[{""#]);
    prop_oneof![
        6 => "\"[a-zé漢😀 ]{0,12}\"",
        3 => r#""(\\u00e9|\\n|\\\\|\\"|\\/|[a-z]){0,8}""#,
        1 => odd.prop_map(str::to_owned),
        1 => (300..600_usize).prop_map(|length| format!("\"{}\"", "é".repeat(length))),
    ]
}

fn numbers() -> impl Strategy<Value = String> {
    let odd = vec![
        "0",
        "1",
        "7",
        "-1",
        "-0",
        "12.50",
        "1e2",
        "1E+400",
        "1e-999",
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "100000000000000000000000000000000",
        "NaN",
        "-Infinity",
        "01",
        "1.",
    ];
    prop_oneof![4 => (0..5_000_u64).prop_map(|number| number.to_string()), 1 => select(odd).prop_map(str::to_owned)]
}

/// Any JSON, and now and then nearly.
pub(crate) fn json() -> BoxedStrategy<String> {
    let deep = select(vec![1_usize, 30, 126, 127, 128, 700]);
    let leaf = prop_oneof![
        8 => texts(),
        4 => numbers(),
        3 => select(vec!["null", "true", "false", "{}", "[]"]).prop_map(str::to_owned),
        1 => deep.prop_map(|levels| "[".repeat(levels) + &"]".repeat(levels)),
    ];
    let grown = leaf.prop_recursive(4, 24, 5, |inner| {
        let member = (names_in_messages(), inner.clone()).prop_map(|(name, value)| format!("{name}: {value}"));
        prop_oneof![
            vec(inner, 0..5).prop_map(|list| format!("[{}]", list.join(", "))),
            vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    });
    grown.boxed()
}

fn names_in_messages() -> impl Strategy<Value = String> {
    let known = [
        "\"role\"",
        "\"content\"",
        "\"type\"",
        "\"text\"",
        "\"name\"",
        "\"image_url\"",
        "\"file\"",
        "\"audio\"",
        "\"include_usage\"",
        "\"include_\\u0075sage\"",
        "\"source\"",
        "\"ttl\"",
        "\"max_uses\"",
        "\"enum\"",
    ];
    prop_oneof![3 => select(known.to_vec()).prop_map(str::to_owned), 1 => texts()]
}

fn list(each: impl Strategy<Value = String>, most: usize) -> impl Strategy<Value = String> {
    vec(each, 0..=most).prop_map(|list| format!("[{}]", list.join(" ,")))
}

fn messages() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        texts().prop_map(|text| format!(r#"{{"type":"text","text":{text}}}"#)),
        (select(vec!["image_url", "file", "source", "input"]), json())
            .prop_map(|(name, value)| format!(r#"{{"type":"image","{name}":{value}}}"#)),
    ];
    let content = prop_oneof![texts(), list(part, 3), json()];
    let message =
        (content, json()).prop_map(|(content, more)| format!(r#"{{"role":"user","content":{content},"x":{more}}}"#));
    list(message, 3)
}

fn tools() -> impl Strategy<Value = String> {
    let function = (texts(), json()).prop_map(|(name, parameters)| {
        format!(r#"{{"type":"function","function":{{"name":{name},"parameters":{parameters}}}}}"#)
    });
    let provided = select(vec![r#"{"type":"web_search"}"#, r#"{"ty\u0070e":"web_search","max_uses":3}"#]);
    list(prop_oneof![4 => function, 1 => provided.prop_map(str::to_owned), 1 => json()], 3)
}

fn any_of(values: &[&'static str]) -> BoxedStrategy<String> {
    select(values.to_vec()).prop_map(str::to_owned).boxed()
}

/// A value that a member of this name may have.
fn sensible(rules: &RequestRules, name: &str) -> BoxedStrategy<String> {
    let shape = rules.prompt.iter().find(|(prompt, _)| *prompt == name).map(|(_, shape)| *shape);
    let is_number =
        rules.caps.contains(&name) || rules.candidates.contains(&name) || rules.tool_calls_cap == Some(name);
    match (name, shape) {
        (_, Some(PromptShape::Messages)) => messages().boxed(),
        (_, Some(PromptShape::Unseen)) => any_of(&["\"pr_1\"", "null"]),
        (_, Some(PromptShape::Input)) => {
            let ids = list(numbers(), 4);
            prop_oneof![texts(), list(texts(), 3), ids, list(list(numbers(), 3), 3), messages(), list(json(), 3)]
                .boxed()
        }
        _ if is_number => {
            prop_oneof![(1..5_000_u64).prop_map(|n| n.to_string()), any_of(&["null", "1152921504606846976"])].boxed()
        }
        ("model", _) => any_of(&["\"m\"", "\"\\u006d\"", "\"real\""]),
        ("stream" | "background", _) => any_of(&["true", "false", "null"]),
        ("stream_options", _) => {
            any_of(&["null", "{ }", r#"{"include_usage":false}"#, r#"{"x":1,"include_us\u0061ge": true }"#, TWICE])
        }
        ("service_tier", _) => any_of(&["\"auto\"", "\"flex\"", "\"priority\"", "null"]),
        ("modalities", _) => any_of(&[r#"["text"]"#, r#"["text","audio"]"#]),
        ("tools" | "functions", _) => tools().boxed(),
        _ => json(),
    }
}

fn member(rules: &'static RequestRules) -> impl Strategy<Value = String> {
    let mut set = vec!["stream", "stream_options", "tools"];
    set.extend(rules.caps.iter().copied().chain(rules.tool_calls_cap));
    let known = prop_oneof![select(names(rules)), select(set)].prop_flat_map(move |name| {
        let value = prop_oneof![8 => sensible(rules, name), 2 => json(), 1 => Just("null".to_owned())];
        (Just(name.to_owned()), value)
    });
    let unknown = ("[a-z_]{1,9}", json());
    (prop_oneof![6 => known, 1 => unknown], 0..40_u8)
        .prop_map(|((name, value), how)| format!("{}:{value}", spelled(&name, how)))
}

/// Members that mean something together.
fn together(rules: &'static RequestRules) -> impl Strategy<Value = Vec<String>> {
    let named =
        |name: &'static str, value: BoxedStrategy<String>| value.prop_map(move |value| format!("\"{name}\":{value}"));
    let streamed = named("stream_options", sensible(rules, "stream_options"));
    let streamed = streamed.prop_map(|options| vec!["\"stream\":true".to_owned(), options]);
    let searching = r#""tools":[{"type":"web_search","max_uses":3}]"#.to_owned();
    let cap = rules.tool_calls_cap.unwrap_or("x");
    let provided = named(cap, sensible(rules, cap)).prop_map(move |cap| vec![searching.clone(), cap]);
    prop_oneof![streamed, provided]
}

/// A member that has to be there.
fn needed(rules: &'static RequestRules, name: &'static str) -> BoxedStrategy<String> {
    sensible(rules, name).prop_map(move |value| format!("\"{name}\" : {value}")).boxed()
}

/// A body that is mostly a request of the dialect.
fn request(rules: &'static RequestRules) -> BoxedStrategy<String> {
    let prompt = rules.prompt.first().map(|(name, _)| *name);
    let mut must: Vec<&'static str> = ["model"].into_iter().chain(prompt).chain(rules.required).collect();
    must.sort_unstable();
    must.dedup();
    let must: Vec<BoxedStrategy<String>> = must.into_iter().map(|name| needed(rules, name)).collect();
    let more = prop_oneof![
        12 => vec(member(rules), 0..7),
        3 => together(rules),
        1 => select(vec![990_usize, 1_001]).prop_map(|many| (0..many).map(|place| format!("\"x{place}\":0")).collect::<Vec<_>>()),
    ];
    let members = (must, more).prop_map(|(must, more)| [must, more].concat()).prop_shuffle();
    let space = select(vec!["", "", " ", "\r\n\t"]);
    (members, space)
        .prop_map(|(members, space)| format!("{space}{{{space}{}{space}}}{space}", members.join(",")))
        .boxed()
}

/// What may have happened to a body on its way.
fn damaged(body: String, damage: u8, place: usize) -> Body {
    let mut bytes = body.into_bytes();
    let place = place % bytes.len().max(1);
    match damage {
        0 => bytes.truncate(place),
        1 => bytes.splice(0..0, *b"\xef\xbb\xbf").for_each(drop),
        2 => bytes.extend_from_slice(b" {}"),
        3 => bytes.splice(place..place, [0xff]).for_each(drop),
        4 => bytes.splice(place..=place, *b"\"").for_each(drop),
        _ => {}
    }
    Body(bytes)
}

/// A body, shown as text.
#[derive(Clone)]
pub(crate) struct Body(pub(crate) Vec<u8>);

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.0);
        write!(f, "{} bytes: {}", self.0.len(), text.chars().take(2_000).collect::<String>())
    }
}

/// The place of a dialect in the table, and a body that is mostly a request of it.
pub(crate) fn bodies() -> impl Strategy<Value = (usize, Body)> {
    (0..DIALECTS.len()).prop_flat_map(|place| {
        let request =
            DIALECTS.get(place).map_or_else(|| Just(String::new()).boxed(), |dialect| request(&dialect.request));
        (Just(place), (request, 0..60_u8, any::<usize>()).prop_map(|(body, damage, at)| damaged(body, damage, at)))
    })
}

/// What a body is sent as.
pub(crate) fn sent_as(body: &str, request: &Request<'_>, forwarding: &Forwarding<'_>) -> String {
    String::from_utf8(edited(body.into(), request.edits_for(forwarding))).unwrap()
}
