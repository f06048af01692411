//! JSON of any size, read without its long strings.
//!
//! Invariant: what is kept is JSON if what came was, but for the ends of its long strings, and it is bounded. One pass.
//! Images and sound travel as base64 in answers of which we want the usage alone, and a Worker has 128 MB.

use memchr::memchr2;

/// How many bytes of a string are kept at least: nothing that we act upon is longer.
const STRING_MAX: usize = 1_024;
/// How much is kept in all; of an answer beyond that nothing is.
const KEPT_MAX: usize = 256 * 1024;
/// Digits of a `\u` escape.
const DIGITS: usize = 4;

/// What is kept of a text that comes in pieces.
#[derive(Debug, Default)]
pub struct Elided {
    kept: Vec<u8>,
    in_string: bool,
    /// Bytes of the string so far.
    length: usize,
    /// Bytes that still belong to an escape.
    escape: usize,
    /// The rest of the string is left out.
    cut: bool,
    /// There was too much to be kept.
    beyond: bool,
}

impl Elided {
    /// Takes the next piece.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.cut && self.escape == 0 {
                let run = memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
                if run > 0 {
                    bytes = bytes.get(run..).unwrap_or_default();
                    continue;
                }
            }
            bytes = rest;
            self.byte(byte);
        }
    }

    /// What was kept; then it begins anew.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(self).kept
    }

    fn byte(&mut self, byte: u8) {
        let ends = self.in_string && self.escape == 0 && byte == b'"';
        if self.in_string && !ends {
            let is_boundary = self.escape == 0 && byte & 0xc0 != 0x80;
            self.cut |= is_boundary && self.length >= STRING_MAX;
            self.length += 1;
            self.escape = match (self.escape, byte) {
                (0, b'\\') => 1,
                (1, b'u') => DIGITS + 1,
                (left, _) if left > 2 => left - 1,
                _ => 0,
            };
        } else if byte == b'"' {
            (self.in_string, self.length, self.cut) = (!self.in_string, 0, false);
        }
        if !self.cut {
            self.keep(byte);
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.beyond || self.kept.len() == KEPT_MAX {
            self.beyond = true;
            self.kept = Vec::new();
        } else {
            self.kept.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use serde_json::Value;

    use super::*;

    fn elided(text: &str, size: usize) -> Vec<u8> {
        let mut elided = Elided::default();
        for piece in text.as_bytes().chunks(size) {
            elided.push(piece);
        }
        elided.take()
    }

    #[test]
    fn an_image_is_left_out_and_the_usage_kept() {
        let image = "A".repeat(3_000_000);
        let text =
            format!(r#"{{"data":[{{"b64_json":"{image}"}},{{"b64_json":"{image}"}}],"usage":{{"input_tokens":7}}}}"#);
        for size in [7, 1_000, 10_000_000] {
            let kept = elided(&text, size);
            assert!(kept.len() < 3_000, "{}", kept.len());
            let value: Value = serde_json::from_slice(&kept).unwrap();
            assert_eq!(value["usage"]["input_tokens"], 7);
            assert_eq!(value["data"].as_array().unwrap().len(), 2);
        }
    }

    #[test]
    fn no_escape_and_no_letter_is_cut_in_two() {
        for piece in ["\\\"", "\\\\", "\\u00e9", "é", "\u{1f600}", "\\n", "\\uffff"] {
            for before in 0..8 {
                let text = format!("{{\"a\":\"{}{}\",\"b\":1}}", "x".repeat(before), piece.repeat(1_000));
                let value: Value = serde_json::from_slice(&elided(&text, 3)).unwrap();
                assert_eq!(value["b"], 1, "{piece} after {before}");
            }
        }
    }

    #[test]
    fn there_is_a_bound_to_what_is_kept() {
        let text = format!("[{}0]", "1,".repeat(KEPT_MAX));
        assert_eq!(elided(&text, 1_000), b"");
    }

    proptest! {
        #[test]
        fn short_strings_stay_as_they_are(text in any::<String>(), size in 1_usize..20) {
            let json = serde_json::to_string(&text).unwrap();
            let kept = elided(&json, size);
            if json.len() < STRING_MAX {
                prop_assert_eq!(kept, json.into_bytes());
            } else {
                prop_assert!(kept.len() <= json.len());
            }
        }
    }
}
