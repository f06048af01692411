//! Reading JSON without building a tree of it.
//!
//! Invariant: one pass each for the depth and for the members, linear in the text, whatever the text. What is not
//! looked at stays a slice of the text, so it can be forwarded byte for byte.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How many levels of lists and objects a body may have. It is the reader's own bound; no client comes near it.
pub const DEPTH_MAX: usize = 128;

/// How many members an object may have; each takes memory of its own, and no client comes near it.
pub const MEMBERS_MAX: usize = 1_000;

/// Why a body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

/// One member of an object.
#[derive(Clone, Debug)]
pub struct Member<'b> {
    /// Its name, escapes undone.
    pub name: Cow<'b, str>,
    /// Its value as it stands in the text.
    pub value: &'b RawValue,
}

impl Member<'_> {
    /// Where the value stands in `text`, which the member was read from.
    #[must_use]
    pub fn span(&self, text: &str) -> Range<usize> {
        let value = self.value.get();
        let start = value.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        start..start.saturating_add(value.len())
    }

    /// Whether the value is `null`, which clients send for "absent".
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.value.get() == "null"
    }
}

/// The members of an object in the order of the text, repeated names included.
#[derive(Clone, Debug, Default)]
pub struct Members<'b>(pub Vec<Member<'b>>);

impl<'b> Members<'b> {
    /// Reads a whole body: one JSON object in UTF-8, nothing before it but white space, nothing after it.
    ///
    /// # Errors
    /// If it is not that, or nested too deeply; the message says which, and where.
    pub fn of_body(body: &'b [u8]) -> Result<(&'b str, Self), Malformed> {
        let text = core::str::from_utf8(body)
            .map_err(|fault| Malformed(format!("the body is not UTF-8 from byte {} on", fault.valid_up_to())))?;
        check_depth(text)?;
        let members = serde_json::from_str(text).map_err(|fault| malformed(text, &fault))?;
        Ok((text, members))
    }

    /// The member called `name`; `None` if there is none or it is `null`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Member<'b>> {
        self.0.iter().find(|member| member.name == name).filter(|member| !member.is_null())
    }

    /// The first of `names` that stands more than once. Readers disagree on which one counts, so none may.
    #[must_use]
    pub fn repeated<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.0.iter().filter(|member| member.name == **name).count() > 1)
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for Members<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    if members.len() == MEMBERS_MAX {
                        return Err(serde::de::Error::custom(format!("more than {MEMBERS_MAX} members in one object")));
                    }
                    members.push(Member { name, value });
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Reads an object; `None` if it is none. A derived reader takes a list as well, by position, which nobody means.
#[must_use]
pub fn object<'b, T: Deserialize<'b>>(json: &'b str) -> Option<T> {
    if json.trim_start().starts_with('{') { serde_json::from_str(json).ok() } else { None }
}

/// A string that borrows from the text where it has no escapes.
#[derive(Deserialize)]
pub(super) struct Text<'b>(#[serde(borrow)] pub(super) Cow<'b, str>);

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Why a body cannot be read. Of one that is another value nothing is shown: it may be a prompt.
fn malformed(text: &str, fault: &serde_json::Error) -> Malformed {
    if fault.is_data() && !text.trim_start().starts_with('{') {
        return Malformed("could not parse the JSON body: want a JSON object".to_owned());
    }
    Malformed(format!("could not parse the JSON body: {fault}"))
}

/// Raw values are skipped without a bound on their depth, so it is checked before anything reads them.
fn check_depth(text: &str) -> Result<(), Malformed> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(Malformed(format!("the body is nested more than {DEPTH_MAX} levels deep")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_their_text_and_their_place() {
        let body = br#" {"a": 1.50, "b\u0063": [ {"x":null} ], "a":9007199254740993} "#;
        let (text, members) = Members::of_body(body).unwrap();
        let seen: Vec<_> = members.0.iter().map(|member| (&*member.name, member.value.get())).collect();
        assert_eq!(seen, [("a", "1.50"), ("bc", r#"[ {"x":null} ]"#), ("a", "9007199254740993")]);
        assert_eq!(text.get(members.0[1].span(text)), Some(r#"[ {"x":null} ]"#));
        assert_eq!(members.repeated(&["bc", "a"]), Some("a"));
    }

    #[test]
    fn what_is_not_one_object_in_utf8_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(128), "]".repeat(128));
        let bodies: [&[u8]; 10] = [
            b"",
            b"[]",
            b"42",
            b"null",
            b"{} x",
            b"{\"a\":NaN}",
            b"{\"a\":",
            b"\xef\xbb\xbf{}",
            b"{\"a\":\"\x97\"}",
            deep.as_bytes(),
        ];
        for body in bodies {
            assert!(Members::of_body(body).is_err(), "{:?}", String::from_utf8_lossy(body));
        }
        let prompt = format!("\"{}\"", "secret".repeat(1_000));
        assert!(!Members::of_body(prompt.as_bytes()).unwrap_err().0.contains("secret"));
        let many = format!("{{{}\"a\":0}}", "\"a\":0,".repeat(MEMBERS_MAX));
        assert!(Members::of_body(many.as_bytes()).is_err());
        let shallow = format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127));
        assert!(Members::of_body(shallow.as_bytes()).is_ok());
        assert!(Members::of_body(br#"{"a":"[[[[\"[[[["}"#).is_ok());
    }
}
