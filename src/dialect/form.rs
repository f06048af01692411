//! A request that is a form: files, and beside them the members that other requests have in JSON.
//!
//! Invariant: a field is a file or a text as the dialect says, never as its sender says; what two servers could read in
//! two ways is refused and named.

use core::ops::Range;

use super::bad_request::{BadRequest, bad};
use super::multipart::{Part, parts};
use super::refused::read_names;
use super::rules::RequestRules;

/// How many bytes of text a form may have beside its files; the samples of voices that it may bring are texts too.
const TEXT_MAX: usize = 4 * 1024 * 1024;

/// The files of a form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// How many there are.
    pub count: u64,
    /// How many bytes they have in all.
    pub bytes: u64,
}

/// A form that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Its texts, as the JSON that they would be.
    pub(super) fields: String,
    /// Where the model's name stands in the body.
    pub(super) model: Option<Range<usize>>,
    /// Its files.
    pub files: Files,
}

impl Form {
    /// Reads a body.
    ///
    /// # Errors
    /// If it is no form of the dialect.
    pub fn read(rules: &RequestRules, content_type: &str, body: &[u8]) -> Result<Self, BadRequest> {
        let names = rules.medium.files();
        let mut form = Self { fields: String::from("{"), model: None, files: Files::default() };
        let mut seen: Vec<&str> = Vec::new();
        for part in parts(content_type, body)? {
            let name = part.name;
            match (names.contains(&name), part.is_file) {
                (true, true) => {
                    if seen.contains(&name) && !name.ends_with("[]") {
                        return Err(bad(name, format!("`{name}` stands more than once")));
                    }
                    seen.push(name);
                    form.files.count += 1;
                    form.files.bytes = form.files.bytes.saturating_add(part.content.len() as u64);
                }
                (true, false) => return Err(bad(name, format!("`{name}` is a text, want a file with a `filename`"))),
                (false, true) => return Err(bad(name, format!("`{name}` is a file, want a text or nothing"))),
                (false, false) => form.field(rules, &part, body)?,
            }
        }
        form.fields.push('}');
        match names.first().filter(|_| form.files.count == 0) {
            Some(name) => Err(bad(name, format!("`{name}` is missing"))),
            None => Ok(form),
        }
    }

    /// Takes a text.
    fn field(&mut self, rules: &RequestRules, part: &Part<'_>, body: &[u8]) -> Result<(), BadRequest> {
        let name = part.name;
        // Some servers take `n[]` or `n.x` for `n`, or for a member of it.
        let plain = name.split(['[', '.']).next().unwrap_or_default();
        if plain != name && read_names(rules).iter().any(|own| own.eq_ignore_ascii_case(plain)) {
            return Err(bad(name, format!("`{name}` is not supported, or not spelt as the API spells it")));
        }
        let text = body.get(part.content.clone()).and_then(|text| core::str::from_utf8(text).ok());
        let text = text.ok_or_else(|| bad(name, format!("`{name}` is not UTF-8")))?;
        if self.fields.len().saturating_add(text.len()) > TEXT_MAX {
            return Err(bad(name, format!("the texts of the form have more than {TEXT_MAX} bytes")));
        }
        if name == "model" {
            self.model = Some(part.content.clone());
        }
        if self.fields.len() > 1 {
            self.fields.push(',');
        }
        let is_prompt = name == "model" || rules.prompt.iter().any(|(prompt, _)| *prompt == name);
        let is_plain = matches!(text, "true" | "false") || text.parse().is_ok_and(|n: u64| n.to_string() == text);
        let value = if is_plain && !is_prompt { text.to_owned() } else { serde_json::Value::from(text).to_string() };
        let name = serde_json::Value::from(name).to_string();
        self.fields.extend([name.as_str(), ":", value.as_str()]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::images::EDITS;

    /// A form of an image and of these texts, as the JSON that the texts would be.
    fn fields(texts: &[(&str, &str)]) -> Result<String, BadRequest> {
        let mut body =
            String::from("--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"\"\r\n\r\nabc\r\n");
        for (name, text) in texts {
            body += "--b\r\nContent-Disposition: form-data; name=";
            body.extend([*name, "\r\n\r\n", *text, "\r\n"]);
        }
        let form = Form::read(&EDITS.request, "multipart/form-data; boundary=b", (body.clone() + "--b--").as_bytes())?;
        assert_eq!(form.files, Files { count: 1, bytes: 3 });
        let model = form.model.and_then(|span| body.get(span));
        assert_eq!(model, texts.iter().find(|(name, _)| *name == "model").map(|(_, text)| *text));
        Ok(form.fields)
    }

    #[test]
    fn texts_are_read_as_the_json_that_they_would_be() {
        let read = [("model", "7"), ("n", "2"), ("stream", "true"), ("prompt", "\"\\\r\n\u{e9}"), ("user", "02")];
        let json = r#"{"model":"7","n":2,"stream":true,"prompt":"\"\\\r\né","user":"02"}"#;
        assert_eq!(fields(&read), Ok(json.to_owned()));
        assert_eq!(fields(&[]), Ok("{}".to_owned()));
        // Only what is written as an API's client writes it is a number or a flag.
        for text in ["+2", "-1", " 2", "2 ", "2.0", "1e1", "True", "null", "18446744073709551616", "\u{662}"] {
            assert_eq!(fields(&[("n", text)]), Ok(format!("{{\"n\":\"{text}\"}}")));
        }
    }

    #[test]
    fn there_is_a_bound_to_the_texts() {
        let long = "x".repeat(TEXT_MAX);
        assert_eq!(fields(&[("prompt", &long)]).map_err(|fault| fault.param), Err(Some("prompt".to_owned())));
    }
}
