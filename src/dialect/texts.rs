//! Walking over every text in a JSON value, without a tree.
//!
//! Invariant: linear in the text; depth is bounded by the reader's own bound of 128 levels. A value that was passed over
//! when it was read need not be walkable: half of a surrogate pair is no text, and 1e999 no number. So whoever walks has
//! to say what such a value is.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json::Text;

/// What wants to see the texts.
pub trait TextSink {
    /// A text: a string value, or the digits of a number in an object.
    fn text(&mut self, text: &str);
    /// The digits of a number that stands in no object.
    fn number(&mut self, digits: &str) {
        self.text(digits);
    }
    /// An element of a list was walked over.
    fn element(&mut self) {}
    /// The name of a member that is walked into.
    fn key(&mut self, _: &str) {}
    /// Whether the member called `key` is passed over.
    fn skips(&self, key: &str) -> bool;
    /// A member was passed over: its value as it stands.
    fn skipped(&mut self, key: &str, value: &str);
}

/// Shows `sink` every text in `json`.
///
/// # Errors
/// If `json` is not JSON.
pub fn walk(json: &str, sink: &mut impl TextSink) -> Result<(), serde_json::Error> {
    Texts { sink, place: Place::Outside }.deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// Shows `sink` every text of a list of objects, and says how many objects there are.
///
/// # Errors
/// If `json` is not a list of objects.
pub fn walk_objects(json: &str, sink: &mut impl TextSink) -> Result<u64, serde_json::Error> {
    Objects { sink }.deserialize(&mut serde_json::Deserializer::from_str(json))
}

struct Objects<'s, S> {
    sink: &'s mut S,
}

impl<'de, S: TextSink> DeserializeSeed<'de> for Objects<'_, S> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, S: TextSink> Visitor<'de> for Objects<'_, S> {
    type Value = u64;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u64, A::Error> {
        let mut objects = 0;
        while list.next_element_seed(Texts { sink: &mut *self.sink, place: Place::Wanted })?.is_some() {
            objects += 1;
        }
        Ok(objects)
    }
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In no object.
    Outside,
    /// Where an object has to stand.
    Wanted,
    /// In an object.
    Inside,
}

struct Texts<'s, S> {
    sink: &'s mut S,
    place: Place,
}

impl<S: TextSink> Texts<'_, S> {
    fn number(self, digits: &str) {
        if self.place == Place::Outside {
            self.sink.number(digits);
        } else {
            self.sink.text(digits);
        }
    }
}

impl<'de, S: TextSink> DeserializeSeed<'de> for Texts<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.place == Place::Wanted {
            deserializer.deserialize_map(self)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de, S: TextSink> Visitor<'de> for Texts<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if self.place == Place::Wanted { "an object" } else { "any value" })
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.sink.text(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Texts { sink: &mut *self.sink, place: self.place })?.is_some() {
            self.sink.element();
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = map.next_key()? {
            if self.sink.skips(&key) {
                let value = map.next_value::<&RawValue>()?;
                self.sink.skipped(&key, value.get());
            } else {
                self.sink.key(&key);
                map.next_value_seed(Texts { sink: &mut *self.sink, place: Place::Inside })?;
            }
        }
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.visit_str(if value { "true" } else { "false" })
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.number(&value.to_string());
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.number(&value.to_string());
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.number(&value.to_string());
        Ok(())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}
