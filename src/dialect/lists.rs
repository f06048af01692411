//! Counting what lists hold, without keeping it.
//!
//! Invariant: linear in the text, and no memory of its own.

use std::borrow::Cow;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::members::members;
use super::texts::{TextSink, walk};

/// The type of an item that is only named.
pub(super) const REFERENCE: &str = "item_reference";

/// Shows `visit` every element of a list.
///
/// # Errors
/// If it is no list, or cannot be read to its end.
pub(super) fn each<'b>(json: &'b str, visit: impl FnMut(&'b RawValue)) -> Result<(), serde_json::Error> {
    serde_json::Deserializer::from_str(json).deserialize_seq(Each(visit))
}

/// Whether an item of a list is only named: it says so, or has an id and nothing that makes it an item.
pub(super) fn any_reference(json: &str) -> bool {
    let is_reference = |element: &RawValue| {
        let found = members(element.get(), ["type", "id", "content"])?;
        let [kind, id, content] = found.map(|value| value.filter(|value| value.get() != "null"));
        let Some(kind) = kind else { return Some(id.is_some() && content.is_none()) };
        Some(serde_json::from_str::<Cow<'_, str>>(kind.get()).is_ok_and(|kind| kind == REFERENCE))
    };
    let mut any = false;
    let read = each(json, |element| any |= is_reference(element).unwrap_or(false));
    any && read.is_ok()
}

/// How many elements of a list are no numbers, but at least 1: a list of token ids is one prompt, like a text.
pub(super) fn items(json: &str) -> u64 {
    let mut items = 0;
    let read = each(json, |element| {
        let is_number = element.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
        items += u64::from(!is_number);
    });
    if read.is_ok() { items.max(1) } else { 1 }
}

/// How many elements a list has; `None` if it is none.
pub(super) fn elements(json: &str) -> Option<u64> {
    let mut elements = 0;
    each(json, |_| elements += 1).ok().map(|()| elements)
}

/// How many elements the lists in a piece of JSON have, however deep they stand.
pub(super) fn listed(json: &str) -> u64 {
    let mut elements = Elements(0);
    // In what cannot be read, an element stands behind a bracket or a comma.
    let begins = || json.bytes().filter(|byte| matches!(byte, b'[' | b',')).count() as u64;
    walk(json, &mut elements).map_or_else(|_| begins(), |()| elements.0)
}

struct Each<F>(F);

impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            (self.0)(element);
        }
        Ok(())
    }
}

struct Elements(u64);

impl TextSink for Elements {
    fn text(&mut self, _: &str) {}

    fn element(&mut self) {
        self.0 += 1;
    }

    fn skips(&self, _: &str) -> bool {
        false
    }

    fn skipped(&mut self, _: &str, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_ids_are_one_item_whatever_stands_beside_them() {
        for (json, want) in [
            ("\"a\"", 1),
            ("[]", 1),
            ("[1,-2,3]", 1),
            ("[[1,2],[3]]", 2),
            ("[\"a\",\"b\",\"c\"]", 3),
            ("[null,\"a\",\"b\"]", 3),
            ("[1,\"a\",\"b\"]", 2),
        ] {
            assert_eq!(items(json), want, "{json}");
        }
    }

    #[test]
    fn elements_count_at_every_depth() {
        assert_eq!(listed(r#"{"a":[1,[2,"x,y"],{"b":["[c"]}],"d":1}"#), 6);
        assert_eq!(listed(r#"["\ud800","a"]"#), 2);
    }
}
