//! The members that are looked for in an object, without a tree of the rest.
//!
//! Invariant: one pass, linear in the text, no deeper than one level. A value of any type is a value, and of a repeated
//! name the last one counts: nothing in an object makes the rest of it unreadable but what is no JSON.

use core::fmt::Formatter;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The values of the members called `names` in the object `json`, in that order; `None` if it is no object.
pub(super) fn members<'b, const N: usize>(json: &'b str, names: [&str; N]) -> Option<[Option<&'b RawValue>; N]> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let found = reader.deserialize_map(Named(names)).ok()?;
    reader.end().is_ok().then_some(found)
}

struct Named<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for Named<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(place) = map.next_key_seed(Place(&self.0))? {
            match place.and_then(|place| found.get_mut(place)) {
                Some(value) => *value = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// Reads a name as its place among those that are looked for.
struct Place<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // As bytes, since a name may have escapes that are half a character; it is not one of ours then.
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Place<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        f.write_str("a name")
    }

    fn visit_bytes<E: Error>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|ours| ours.as_bytes() == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str) -> Option<[Option<&str>; 2]> {
        members(json, ["a", "b"]).map(|found| found.map(|value| value.map(RawValue::get)))
    }

    #[test]
    fn members_are_found_whatever_stands_beside_them() {
        assert_eq!(found(r#"{"c":[{"a":1}],"b":"x"}"#), Some([None, Some("\"x\"")]));
        assert_eq!(found(r#" {"\u0061":1.50,"a":2,"\ud800":3} "#), Some([Some("2"), None]));
        assert_eq!(found(r#"{"a":1,"a":null}"#), Some([Some("null"), None]));
        assert_eq!(found("{}"), Some([None, None]));
    }

    #[test]
    fn depth_costs_nothing() {
        let deep = format!(r#"{{"a":{0}{1},"c":{0}{1},"b":1}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(found(&deep).unwrap()[1], Some("1"));
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for json in ["", "null", "[]", "[1,2]", "\"a\"", "7", r#"{"a":1"#, r#"{"a":1} x"#, r#"{"a":}"#] {
            assert_eq!(found(json), None, "{json}");
        }
    }
}
