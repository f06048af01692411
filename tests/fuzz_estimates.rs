//! Prompts that nobody wrote down, in the dialects whose counting is public: what is held is never below what
//! `tiktoken-rs` makes of them by the public recipes.
//!
//! A small part always runs; `TOLLGATE_FUZZ=1000000 cargo test --release --test fuzz_estimates` makes as many prompts
//! for each dialect as it says.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::shapes::{self, Dice};
use tiktoken_rs::CoreBPE;
use tollgate::dialect::chat::CHAT;
use tollgate::dialect::completions::COMPLETIONS;
use tollgate::dialect::embeddings::EMBEDDINGS;
use tollgate::dialect::prompt::{CountMethod, CountRules, ModelCount, TextCounter};
use tollgate::dialect::request::{Allowances, Request};
use tollgate::dialect::responses::RESPONSES;
use tollgate::dialect::rules::Dialect;
use tollgate::limit::Tokens;
use tollgate::tokens::Encoding;

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod fuzz;
    pub(crate) mod shapes;
}

/// Prompts of each dialect that always run.
const ALWAYS: u32 = 250;

/// One vocabulary's reference.
struct Recipe(&'static CoreBPE);

impl Recipe {
    fn of(encoding: Encoding) -> Self {
        Self(match encoding {
            Encoding::O200k => tiktoken_rs::o200k_base_singleton(),
            Encoding::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        })
    }

    fn text(&self, text: &str) -> u64 {
        self.0.count_ordinary(text) as u64
    }

    /// Every text in a value that is a text or a list of parts.
    fn texts(&self, value: &Value) -> u64 {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(parts) => parts.iter().map(|part| self.texts(part)).sum(),
            Value::Object(members) => members.values().map(|value| self.texts(value)).sum(),
            _ => 0,
        }
    }

    /// A message: 3, its texts, and 1 more for a name. JSON that is no text is written out.
    fn message(&self, message: &Value) -> u64 {
        let members = message.as_object().unwrap().iter();
        3 + members.map(|(name, value)| self.member(name, value)).sum::<u64>()
            + u64::from(message.get("name").is_some())
    }

    fn member(&self, name: &str, value: &Value) -> u64 {
        match (name, value) {
            ("arguments" | "input_schema", Value::Object(_)) => self.text(&value.to_string()),
            ("tool_calls" | "tools", Value::Array(list)) => list.iter().map(|item| self.member("", item)).sum(),
            (_, Value::Object(members)) if !name.starts_with("x_") => {
                members.iter().map(|(name, value)| self.member(name, value)).sum()
            }
            _ if name.starts_with("x_") => self.text(&format!("{}:{value},", Value::from(name))),
            _ => self.texts(value),
        }
    }

    /// The public recipe for function tools.
    fn tools(&self, tools: &[Value]) -> u64 {
        if tools.is_empty() { 0 } else { tools.iter().map(|tool| self.tool(tool)).sum::<u64>() + 12 }
    }

    fn tool(&self, tool: &Value) -> u64 {
        let function = tool.get("function").unwrap_or(tool);
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let properties = function.pointer("/parameters/properties").and_then(Value::as_object).unwrap();
        let mut tokens = 7 + self.text(&format!("{}:{}", text(function, "name"), text(function, "description")));
        tokens += if properties.is_empty() { 0 } else { 3 };
        for (key, property) in properties {
            tokens += 3 + self.text(&format!("{key}:{}:{}", text(property, "type"), text(property, "description")));
            let choices = property.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
            tokens += choices.iter().map(|choice| 3 + self.texts(choice)).sum::<u64>();
            tokens -= if choices.is_empty() { 0 } else { 3 };
        }
        tokens
    }
}

fn text(dice: &mut Dice, most: usize) -> String {
    let length = dice.throw(most + 1);
    shapes::text(dice, length)
}

fn several<T>(dice: &mut Dice, most: usize, mut make: impl FnMut(&mut Dice) -> T) -> Vec<T> {
    (0..dice.throw(most + 1)).map(|_| make(dice)).collect()
}

/// JSON such as a tool's arguments are.
fn free(dice: &mut Dice, depth: usize) -> Value {
    match dice.throw(if depth == 0 { 3 } else { 5 }) {
        0 => Value::from(text(dice, 20)),
        1 => Value::from(dice.throw(100_000)),
        2 => Value::from(dice.throw(2) == 0),
        3 => Value::from(several(dice, 4, |dice| free(dice, depth - 1))),
        _ => object(dice, depth - 1),
    }
}

fn object(dice: &mut Dice, depth: usize) -> Value {
    let members = several(dice, 5, |dice| {
        let name =
            if dice.throw(3) == 0 { dice.pick(&["type", "text", "id", "name"]).to_owned() } else { text(dice, 12) };
        (name, free(dice, depth))
    });
    Value::Object(members.into_iter().collect())
}

fn arguments(dice: &mut Dice) -> Value {
    let arguments = object(dice, 3);
    if dice.throw(2) == 0 { arguments } else { Value::from(arguments.to_string()) }
}

fn function(dice: &mut Dice) -> Value {
    let properties = several(dice, 4, |dice| {
        let mut property = json!({"type": "string", "description": text(dice, 60)});
        if dice.throw(2) == 0 {
            let short = dice.throw(2) == 0;
            let choices = several(dice, 60, |dice| if short { text(dice, 1) } else { text(dice, 12) });
            property.as_object_mut().unwrap().insert("enum".to_owned(), Value::from(choices));
        }
        (text(dice, 12), property)
    });
    let properties = Value::Object(properties.into_iter().collect());
    json!({"name": text(dice, 20), "description": text(dice, 100), "parameters": {"type": "object", "properties": properties}})
}

fn chat_message(dice: &mut Dice) -> Value {
    match dice.throw(5) {
        0 => json!({"role": "user", "content": text(dice, 300), "name": text(dice, 12)}),
        1 => {
            let parts = several(dice, 4, |dice| json!({"type": "text", "text": text(dice, 100)}));
            json!({"role": "user", "content": parts})
        }
        2 => {
            let calls = several(
                dice,
                3,
                |dice| json!({"id": text(dice, 9), "type": "function", "function": {"name": text(dice, 9), "arguments": arguments(dice)}}),
            );
            json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": calls})
        }
        3 => json!({"role": "tool", "tool_call_id": text(dice, 9), "content": text(dice, 200)}),
        _ => {
            let mut message = json!({"role": "system", "content": text(dice, 2_000)});
            for place in 0..dice.throw(20) {
                message[format!("x_{place}")] = free(dice, 1);
            }
            message
        }
    }
}

fn chat(dice: &mut Dice, recipe: &Recipe) -> (Value, u64) {
    let messages = several(dice, 6, chat_message);
    let tools = several(dice, 2, |dice| json!({"type": "function", "function": function(dice)}));
    let tokens = messages.iter().map(|message| recipe.message(message)).sum::<u64>() + 3 + recipe.tools(&tools);
    (json!({"model": "m", "messages": messages, "tools": tools, "user": text(dice, 9)}), tokens)
}

fn item(dice: &mut Dice) -> Value {
    match dice.throw(5) {
        0 => json!({"role": "user", "content": text(dice, 300)}),
        1 => {
            let parts = several(dice, 4, |dice| json!({"type": "input_text", "text": text(dice, 100)}));
            json!({"type": "message", "role": "user", "content": parts})
        }
        2 => {
            json!({"type": "function_call", "call_id": text(dice, 9), "name": text(dice, 9), "arguments": arguments(dice)})
        }
        3 => json!({"type": "function_call_output", "call_id": text(dice, 9), "output": text(dice, 300)}),
        _ => {
            let tools = several(
                dice,
                3,
                |dice| json!({"name": text(dice, 9), "description": text(dice, 30), "input_schema": object(dice, 3)}),
            );
            json!({"type": "mcp_list_tools", "server_label": "s", "tools": tools})
        }
    }
}

fn responses(dice: &mut Dice, recipe: &Recipe) -> (Value, u64) {
    let (instructions, items) = (text(dice, 500), several(dice, 6, item));
    let tools = several(dice, 2, |dice| {
        let mut tool = function(dice);
        tool.as_object_mut().unwrap().insert("type".to_owned(), Value::from("function"));
        tool
    });
    let system = recipe.message(&json!({"role": "system", "content": instructions}));
    let tokens = items.iter().map(|item| recipe.message(item)).sum::<u64>() + system + 3 + recipe.tools(&tools);
    (json!({"model": "m", "instructions": instructions, "input": items, "tools": tools}), tokens)
}

/// A text, texts, token ids or lists of those, and how many tokens that is.
fn plain(dice: &mut Dice, recipe: &Recipe) -> (Value, u64) {
    let ids = |dice: &mut Dice| several(dice, 40, |dice| dice.throw(200_000));
    match dice.throw(4) {
        0 => {
            let text = text(dice, 2_000);
            (Value::from(text.as_str()), recipe.text(&text))
        }
        1 => {
            let texts = several(dice, 6, |dice| text(dice, 400));
            let tokens = texts.iter().map(|text| recipe.text(text)).sum();
            (Value::from(texts), tokens)
        }
        2 => {
            let ids = ids(dice);
            let tokens = ids.len() as u64;
            (Value::from(ids), tokens)
        }
        _ => {
            let lists = several(dice, 5, ids);
            let tokens = lists.iter().map(|list| list.len() as u64).sum();
            (Value::from(lists.into_iter().map(Value::from).collect::<Vec<_>>()), tokens)
        }
    }
}

fn completions(dice: &mut Dice, recipe: &Recipe) -> (Value, u64) {
    let (prompt, tokens) = plain(dice, recipe);
    let suffix = text(dice, 30);
    let all = tokens + recipe.text(&suffix);
    (json!({"model": "m", "prompt": prompt, "suffix": suffix}), all)
}

fn embeddings(dice: &mut Dice, recipe: &Recipe) -> (Value, u64) {
    let (input, tokens) = plain(dice, recipe);
    (json!({"model": "m", "input": input}), tokens)
}

/// What is held of a prompt, with no more on top of its texts than the public recipes name.
fn held(dialect: &'static Dialect, body: &str, encoding: Encoding, method: CountMethod, exact_max: u64) -> u64 {
    let (per_message, per_call, per_tool) = (Tokens(4), Tokens(7), Tokens(12));
    let rules = CountRules { method, exact_max, steps_max: 4_000_000, per_message, per_call, per_tool };
    let model =
        ModelCount { encoding: Some(encoding), percent: 100, context: Tokens(1_000_000_000), ..ModelCount::default() };
    let request = Request::read(dialect, body.as_bytes(), &Allowances::default()).unwrap();
    let size = request.prompt(&mut TextCounter::new(&rules, &model)).unwrap();
    size.tokens(&rules, &model).upper.0
}

type Make = fn(&mut Dice, &Recipe) -> (Value, u64);

fn compare(dialect: &'static Dialect, make: Make) {
    for encoding in [Encoding::O200k, Encoding::Cl100k] {
        let recipe = Recipe::of(encoding);
        for seed in 0..u64::from(support::fuzz::cases(ALWAYS)) {
            let (body, tokens) = make(&mut Dice::new(seed), &recipe);
            let body = body.to_string();
            for method in [CountMethod::Exact, CountMethod::Bounds, CountMethod::Bytes] {
                for exact_max in [100_000, 200] {
                    let held = held(dialect, &body, encoding, method, exact_max);
                    assert!(held >= tokens, "{encoding:?} {method:?}, seed {seed}: {held} for {tokens}: {body}");
                }
            }
        }
    }
}

#[test]
fn a_chat_is_held_at_what_it_is_or_more() {
    compare(&CHAT, chat);
}

#[test]
fn a_response_is_held_at_what_it_is_or_more() {
    compare(&RESPONSES, responses);
}

#[test]
fn a_completion_is_held_at_what_it_is_or_more() {
    compare(&COMPLETIONS, completions);
}

#[test]
fn an_embedding_is_held_at_what_it_is_or_more() {
    compare(&EMBEDDINGS, embeddings);
}
