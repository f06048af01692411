//! Cutting `multipart/form-data` into its parts.
//!
//! Invariant: a body that two servers could cut, or name the parts of, in two ways is refused. The boundary stands in it
//! only where it cuts; a part has the headers that its kind needs and no others, written in one way. One pass, linear in
//! the body.

use core::ops::Range;

use memchr::memmem::{Finder, find};

use super::bad_request::{BadRequest, bad};

/// How many parts a form may have: OpenAI takes 16 images, and no route has 30 fields.
const PARTS_MAX: usize = 64;
/// How long the headers of one part may be.
const HEAD_MAX: usize = 2_048;
/// How long a boundary may be (RFC 2046).
const BOUNDARY_MAX: usize = 70;
/// How long the name of a field may be.
const NAME_MAX: usize = 64;

/// One part of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part<'b> {
    /// The name of its field.
    pub(super) name: &'b str,
    /// Whether it is a file: it has the name of one.
    pub(super) is_file: bool,
    /// Where its content stands in the body.
    pub(super) content: Range<usize>,
}

/// Cuts a body.
pub(super) fn parts<'b>(content_type: &str, body: &'b [u8]) -> Result<Vec<Part<'b>>, BadRequest> {
    let want = || malformed("the content type is not multipart/form-data with a boundary and nothing else");
    let delimiter = format!("--{}", boundary(content_type).ok_or_else(want)?);
    let mut parts = Vec::new();
    let mut begun = None;
    for place in Finder::new(&delimiter).find_iter(body) {
        if let Some(begin) = begun {
            if parts.len() == PARTS_MAX {
                return Err(malformed(&format!("the form has more than {PARTS_MAX} parts")));
            }
            let end = place.checked_sub(2).filter(|end| *end >= begin && body.get(*end..place) == Some(b"\r\n"));
            parts.push(part(body, begin..end.ok_or_else(|| malformed("the boundary stands in a part"))?)?);
        } else if place > 0 {
            return Err(malformed("the form does not begin with its boundary"));
        }
        let behind = place + delimiter.len();
        match body.get(behind..).unwrap_or_default() {
            b"--" | b"--\r\n" => return Ok(parts),
            rest if rest.starts_with(b"\r\n") => begun = Some(behind + 2),
            _ => return Err(malformed("something stands behind a boundary")),
        }
    }
    Err(malformed("the form does not end with its boundary"))
}

/// The boundary that a content type names.
fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameter) = content_type.split_once(';')?;
    let (name, value) = parameter.trim().split_once('=')?;
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let marks = if quoted.is_some() { "'()+_,-./:=?" } else { "'+_-." };
    let boundary = quoted.unwrap_or(value);
    let valid = (1..=BOUNDARY_MAX).contains(&boundary.len())
        && boundary.chars().all(|letter| letter.is_ascii_alphanumeric() || marks.contains(letter));
    let is_form = kind.trim().eq_ignore_ascii_case("multipart/form-data") && name.eq_ignore_ascii_case("boundary");
    (is_form && valid).then_some(boundary)
}

/// Reads what stands between two boundaries.
fn part(body: &[u8], span: Range<usize>) -> Result<Part<'_>, BadRequest> {
    const BLANK: &[u8] = b"\r\n\r\n";
    let block = body.get(span.clone()).unwrap_or_default();
    let head = block.get(..HEAD_MAX.min(block.len())).unwrap_or_default();
    let length = find(head, BLANK).ok_or_else(|| malformed("the headers of a part do not end, or are too long"))?;
    let head = head.get(..length).and_then(|head| core::str::from_utf8(head).ok());
    let head = head.ok_or_else(|| malformed("the headers of a part are not UTF-8"))?;
    let content = span.start + length + BLANK.len()..span.end;
    let headers = Headers::read(head, content.len())?;
    let (name, is_file) = headers.disposition.ok_or_else(|| malformed("a part has no content-disposition"))?;
    // Some servers read a text by the content type of its part.
    let plain = |kind: &str| matches!(kind, "text/plain" | "text/plain;charset=utf-8");
    let kind = headers.kind.map(|kind| kind.to_ascii_lowercase().replace(' ', "")).unwrap_or_default();
    if is_file && kind.starts_with("multipart/") || !is_file && !kind.is_empty() && !plain(&kind) {
        return Err(bad(name, format!("`{name}` has a content type that is not supported for it")));
    }
    Ok(Part { name, is_file, content })
}

/// The headers of a part.
#[derive(Default)]
struct Headers<'b> {
    disposition: Option<(&'b str, bool)>,
    kind: Option<&'b str>,
}

impl<'b> Headers<'b> {
    fn read(head: &'b str, content: usize) -> Result<Self, BadRequest> {
        let mut headers = Self::default();
        for line in head.split("\r\n") {
            let header = line.split_once(':').filter(|_| !line.bytes().any(|byte| byte.is_ascii_control()));
            let (name, value) = header.ok_or_else(|| malformed("a part has a header that is none"))?;
            let value = value.trim_matches(' ');
            let fits = match name.to_ascii_lowercase().as_str() {
                "content-disposition" => {
                    let read = disposition(value).ok_or_else(|| {
                        malformed(
                            "a content-disposition is not `form-data; name=\"…\"`, with a plain `filename` at most",
                        )
                    })?;
                    headers.disposition.replace(read).is_none()
                }
                "content-type" => headers.kind.replace(value).is_none(),
                // Anything else would have to be decoded.
                "content-transfer-encoding" => matches!(value, "binary" | "8bit" | "7bit"),
                "content-length" => value == content.to_string(),
                _ => false,
            };
            if !fits {
                let shown: String = name.chars().take(NAME_MAX).collect();
                return Err(malformed(&format!("the header `{shown}` of a part is not supported as it stands")));
            }
        }
        Ok(headers)
    }
}

/// Reads `form-data; name="…"` and, of a file, `; filename="…"`: the name, and whether it is a file. An escape, a
/// `filename*`, or a second name would be read in one way here and in another there.
fn disposition(value: &str) -> Option<(&str, bool)> {
    let mut rest = value.strip_prefix("form-data")?.trim_start_matches(' ');
    let (mut name, mut file) = (None, None);
    while !rest.is_empty() {
        let (parameter, after) = rest.strip_prefix(';')?.trim_start_matches(' ').split_once('=')?;
        let (text, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find([' ', ';']).unwrap_or(after.len())),
        };
        let slot = match parameter {
            "name" => &mut name,
            "filename" => &mut file,
            _ => return None,
        };
        if slot.replace(text).is_some() || text.contains(['\\', ';', '"']) {
            return None;
        }
        rest = after.trim_start_matches(' ');
    }
    let name = name.filter(|name| (1..=NAME_MAX).contains(&name.len()))?;
    let valid = |letter: char| letter.is_ascii_alphanumeric() || "_-.[]".contains(letter);
    name.chars().all(valid).then_some((name, file.is_some()))
}

fn malformed(message: &str) -> BadRequest {
    BadRequest { message: message.to_owned(), param: None, code: None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    use super::*;

    const KIND: &str = "multipart/form-data; boundary=b0";

    fn cut(kind: &str, body: &str) -> Option<Vec<(String, bool, String)>> {
        let parts = parts(kind, body.as_bytes()).ok()?;
        let owned = |part: Part<'_>| (part.name.to_owned(), part.is_file, body.get(part.content).unwrap().to_owned());
        Some(parts.into_iter().map(owned).collect())
    }

    /// A form of one part with these headers.
    fn with_head(head: &str) -> Option<(String, bool)> {
        let parts = cut(KIND, &format!("--b0\r\n{head}\r\n\r\nx\r\n--b0--\r\n"))?;
        parts.into_iter().next().map(|(name, file, _)| (name, file))
    }

    #[test]
    fn parts_are_cut_at_the_boundary_and_their_content_is_as_it_stands() {
        let body = concat!(
            "--b0\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n",
            "--b0\r\ncontent-disposition: form-data; filename=\"a b.mp3\"; name=\"file\"\r\nContent-Type: audio/mpeg\r\n\r\n",
            "\r\n--b\r\n\r\n\r\n--b0\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n\r\n--b0--\r\n"
        );
        let want = [("model", false, "whisper-1"), ("file", true, "\r\n--b\r\n\r\n"), ("prompt", false, "")];
        let want = want.map(|(name, file, content)| (name.to_owned(), file, content.to_owned()));
        assert_eq!(cut(KIND, body), Some(want.to_vec()));
        assert_eq!(cut(KIND, body.trim_end()), Some(want.to_vec()));
    }

    #[test]
    fn content_types_have_a_boundary_and_nothing_else() {
        for (kind, want) in [
            ("multipart/form-data; boundary=b0", Some("b0")),
            ("Multipart/Form-Data;Boundary=\"b/0:=?\"", Some("b/0:=?")),
            ("multipart/form-data; boundary=b0; charset=utf-16", None),
            ("multipart/form-data; charset=utf-16; boundary=b0", None),
            ("multipart/form-data; boundary=", None),
            ("multipart/form-data; boundary=b 0", None),
            ("multipart/form-data; boundary=\"b0", None),
            ("multipart/form-data; boundary*=b0", None),
            ("multipart/mixed; boundary=b0", None),
            ("application/json", None),
            ("", None),
        ] {
            assert_eq!(boundary(kind), want, "{kind}");
        }
        assert_eq!(boundary(&format!("multipart/form-data; boundary={}", "b".repeat(71))), None);
    }

    #[test]
    fn a_body_that_could_be_cut_in_another_way_is_refused() {
        let part = "Content-Disposition: form-data; name=\"n\"\r\n\r\n1";
        for body in [
            String::new(),
            "{}".to_owned(),
            "--b0--\r\n--b0--".to_owned(),
            format!("--b0\r\n{part}\r\n"),
            format!("--b0\r\n{part}\r\n--b0"),
            format!("--b0\r\n{part}\r\n--b0-"),
            format!("--b0\r\n{part}\r\n--b0--\r\n "),
            format!("--b0\r\n{part}\r\n--b0--\r\n--b0\r\n{part}\r\n--b0--\r\n"),
            format!("\r\n--b0\r\n{part}\r\n--b0--"),
            format!("preamble\r\n--b0\r\n{part}\r\n--b0--"),
            format!("--b0\n{part}\n--b0--"),
            format!("--b0 \r\n{part}\r\n--b0--"),
            format!("--b0\r\n{part}\n--b0\r\n{part}\r\n--b0--"),
            format!("--b0\r\n{part}--b0\r\n{part}\r\n--b0--"),
            format!("--b0\r\n{part} --b0x\r\n--b0--"),
            format!("--b0\r\n--b0\r\n{part}\r\n--b0--"),
            format!("--b0\r\n\r\n--b0\r\n{part}\r\n--b0--"),
        ] {
            assert_eq!(cut(KIND, &body), None, "{body:?}");
        }
        let many = format!("--b0\r\n{part}\r\n").repeat(PARTS_MAX);
        assert_eq!(cut(KIND, &format!("{many}--b0--")).map(|parts| parts.len()), Some(PARTS_MAX));
        assert_eq!(cut(KIND, &format!("{many}--b0\r\n{part}\r\n--b0--")), None);
    }

    #[test]
    fn names_are_written_in_one_way() {
        let disposition = |value: &str| with_head(&format!("Content-Disposition: {value}"));
        for (value, name, is_file) in [
            ("form-data; name=\"n\"", "n", false),
            ("form-data; name=n", "n", false),
            ("form-data; name=file; filename=a.mp3", "file", true),
            ("form-data;name=\"image[]\";filename=\"\u{e9} %22.png\"", "image[]", true),
            ("form-data; name=\"file\"; filename=\"\"", "file", true),
        ] {
            assert_eq!(disposition(value), Some((name.to_owned(), is_file)), "{value}");
        }
        for value in [
            "form-data",
            "attachment; name=\"n\"",
            "form-data; name=\"\"",
            "form-data; name=\"n",
            "form-data; name=\"n\"x",
            "form-data; name=\"n\"; name=\"model\"",
            "form-data; name=\"a\\\"; name=\"model\"",
            "form-data; name=\"mod\\el\"",
            "form-data; name=\"mod%65l\"",
            "form-data; name*=utf-8''model",
            "form-data; name=\"n\"; name*=utf-8''model",
            "form-data; name=\"n\"; filename*=utf-8''a",
            "form-data; name=\"file\"; filename=\"a; name=model\"",
            "form-data; name=\"n\"; NAME=\"model\"",
            "form-data; name =\"n\"",
            "form-data; name=\"n n\"",
            "form-data; name=\"\u{ff4d}odel\"",
            "form-data; name=\"n\";",
            "form-data, name=\"n\"",
        ] {
            assert_eq!(disposition(value), None, "{value}");
        }
        assert_eq!(disposition(&format!("form-data; name=\"{}\"", "n".repeat(NAME_MAX + 1))), None);
    }

    #[test]
    fn a_part_has_the_headers_that_it_needs() {
        let name = "Content-Disposition: form-data; name=\"n\"";
        let file = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"";
        for head in [
            format!("{name}\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Length: 1"),
            format!("Content-Type: image/png\r\n{file}\r\nContent-Transfer-Encoding: binary"),
        ] {
            assert!(with_head(&head).is_some(), "{head}");
        }
        for more in [
            "\r\nContent-Type: text/plain; charset=utf-16",
            "\r\nContent-Type: application/json",
            "\r\nContent-Type: text/plain\r\nContent-Type: text/plain",
            "\r\nContent-Transfer-Encoding: base64",
            "\r\nContent-Length: 2",
            "\r\nX-Other: 1",
            "\r\n folded: 1",
            "\r\nContent-Type : text/plain",
            "\r\nno header",
            "\nContent-Type: text/plain",
            "\r\nContent-Type: text/plain\0",
            "\r\nContent-Disposition: form-data; name=\"model\"",
        ] {
            assert_eq!(with_head(&format!("{name}{more}")), None, "{more:?}");
        }
        assert_eq!(with_head(&format!("{file}\r\nContent-Type: multipart/mixed; boundary=c")), None);
        assert_eq!(with_head(&format!("{file}\r\nContent-Type: {}", "a".repeat(HEAD_MAX))), None);
        assert_eq!(with_head("Content-Type: text/plain"), None);
    }

    proptest! {
        #[test]
        fn whatever_is_put_into_a_form_comes_out_of_it(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
        ) {
            let mut body = Vec::new();
            for content in &contents {
                body.extend_from_slice(b"--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n");
                body.extend_from_slice(content);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"--b0--\r\n");
            let parts = parts(KIND, &body).unwrap();
            let found: Vec<_> = parts.iter().map(|part| body[part.content.clone()].to_vec()).collect();
            prop_assert_eq!(found, contents);
        }

        #[test]
        fn no_bytes_make_it_panic(pieces in prop::collection::vec(
            "(--b0|--|b0|\r\n|\r|\n|Content-Disposition: form-data; name=|\"|n|;|filename=|\\*|:|é| )", 0..30)) {
            let body = pieces.concat();
            if let Ok(parts) = parts(KIND, body.as_bytes()) {
                prop_assert!(parts.iter().all(|part| part.content.end <= body.len()));
            }
        }
    }
}
