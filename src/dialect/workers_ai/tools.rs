//! The calls of tools in native answers: flat (`name`, `arguments`) or in OpenAI's shape, whole or in pieces.

use serde_json::value::RawValue;

use super::Stamp;
use crate::dialect::json::quoted;
use crate::dialect::members::members;

/// A call of a tool, or a piece of one.
#[derive(Clone, Debug)]
pub(super) struct ToolCall<'b> {
    /// Its place among the calls, if it says so.
    pub(super) index: Option<u64>,
    id: Option<&'b str>,
    name: Option<&'b str>,
    arguments: Option<&'b RawValue>,
}

impl<'b> ToolCall<'b> {
    /// The calls in a list; none if it is no list. What is no call is left out, and so is the end mark that some models
    /// send, a call without id, name and arguments.
    pub(super) fn list(json: &'b RawValue) -> Vec<Self> {
        let list = serde_json::from_str::<Vec<&RawValue>>(json.get()).unwrap_or_default();
        list.into_iter().filter_map(|call| Self::read(call.get())).collect()
    }

    fn read(json: &'b str) -> Option<Self> {
        let [index, id, function, flat_name, flat_arguments] =
            members(json, ["index", "id", "function", "name", "arguments"])?;
        let inner = function.and_then(|function| members(function.get(), ["name", "arguments"]));
        let [name, arguments] = inner.unwrap_or_default();
        let call = Self {
            index: index.and_then(|index| index.get().parse().ok()),
            id: text(id),
            name: text(name).or_else(|| text(flat_name)),
            arguments: said(arguments).or_else(|| said(flat_arguments)),
        };
        (call.id.is_some() || call.name.is_some() || call.arguments.is_some()).then_some(call)
    }

    /// The whole call as OpenAI's, the one at `place`; in a stream with its index.
    pub(super) fn whole(&self, stamp: &Stamp, place: u64, streamed: bool) -> String {
        let index = if streamed { format!("\"index\":{place},") } else { String::new() };
        let id = self.id.map_or_else(|| quoted(&format!("call_{}_{place}", stamp.id)), str::to_owned);
        let name = self.name.unwrap_or("\"\"");
        // Of a call in pieces the arguments come later.
        let none = if streamed && self.index.is_some() { "\"\"" } else { "\"{}\"" };
        let arguments = self.arguments().unwrap_or_else(|| none.to_owned());
        format!(r#"{{{index}"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#)
    }

    /// A further piece of the call at `place`.
    pub(super) fn piece(&self, place: u64) -> Option<String> {
        Some(format!(r#"{{"index":{place},"function":{{"arguments":{}}}}}"#, self.arguments()?))
    }

    /// The arguments as a text in JSON.
    fn arguments(&self) -> Option<String> {
        let json = self.arguments?.get();
        Some(if json.starts_with('"') { json.to_owned() } else { quoted(json) })
    }
}

/// A text that is there and not empty, as it stands.
fn text(value: Option<&RawValue>) -> Option<&str> {
    value.map(RawValue::get).filter(|json| json.starts_with('"') && *json != "\"\"")
}

/// A value that is neither `null` nor an empty text.
fn said(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| !matches!(value.get(), "null" | "\"\""))
}
