//! Counting what lists hold, without keeping it.
//!
//! Invariant: linear in the text, and no memory of its own.

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::texts::{TextSink, walk};

/// How many elements of a list are no numbers, but at least 1: a list of token ids is one prompt, like a text.
pub(super) fn items(json: &str) -> u64 {
    serde_json::from_str::<Items>(json).map_or(1, |items| items.0.max(1))
}

/// How many elements the lists in a piece of JSON have, however deep they stand.
pub(super) fn listed(json: &str) -> u64 {
    let mut elements = Elements(0);
    // In what cannot be read, an element stands behind a bracket or a comma.
    let begins = || json.bytes().filter(|byte| matches!(byte, b'[' | b',')).count() as u64;
    walk(json, &mut elements).map_or_else(|_| begins(), |()| elements.0)
}

struct Items(u64);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Items;

            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items, A::Error> {
                let mut items = 0;
                while let Some(element) = list.next_element::<&RawValue>()? {
                    let is_number = element.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
                    items += u64::from(!is_number);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(Each)
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
