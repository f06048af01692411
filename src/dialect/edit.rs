//! Changing a body in its text.
//!
//! Invariant: every byte outside the edits stays as the caller wrote it: big integers, spelling of numbers, key order,
//! members that we do not know.

use std::ops::Range;

/// One change: the bytes of `span` are replaced by `text`. An empty span inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub span: Range<usize>,
    /// What stands there then.
    pub text: String,
}

/// `body` with all edits made. Spans must not overlap; one that lies outside the body changes nothing.
#[must_use]
pub fn edited(body: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.span.start);
    let mut out = String::with_capacity(body.len() + edits.iter().map(|edit| edit.text.len()).sum::<usize>());
    let mut done = 0;
    for edit in edits {
        let Some(kept) = body.get(done..edit.span.start).filter(|_| edit.span.end <= body.len()) else { continue };
        out.push_str(kept);
        out.push_str(&edit.text);
        done = edit.span.end;
    }
    out.push_str(body.get(done..).unwrap_or_default());
    out
}

/// The edit that adds `member` (a name and a value in JSON) as the first one of the object that stands in `body` at
/// `object`.
#[must_use]
pub fn insert_member(body: &str, object: Range<usize>, member: &str) -> Edit {
    let text = body.get(object.clone()).unwrap_or_default();
    let inside = object.start + text.find('{').map_or(0, |brace| brace + 1);
    let empty = body.get(inside..object.end).is_none_or(|rest| rest.trim_start().starts_with('}'));
    let comma = if empty { "" } else { "," };
    Edit { span: inside..inside, text: format!("{member}{comma}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_spans_change() {
        let body = r#" {"seed":9007199254740993, "o" : { } ,"x":1.0}"#;
        let object = body.find("{ }").unwrap();
        let edits = vec![
            insert_member(body, object..object + 3, r#""u":true"#),
            insert_member(body, 0..body.len(), r#""n":1"#),
            Edit { span: body.len() - 4..body.len() - 1, text: "2".to_owned() },
        ];
        assert_eq!(edited(body, edits), r#" {"n":1,"seed":9007199254740993, "o" : {"u":true } ,"x":2}"#);
        assert_eq!(edited(body, vec![]), body);
    }
}
