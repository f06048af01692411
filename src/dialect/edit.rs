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

/// `body` with all edits made in it: a body may be a large file, of which there is to be no second copy. Spans must not
/// overlap; one that lies outside the body changes nothing.
#[must_use]
pub fn edited(mut body: Vec<u8>, mut edits: Vec<Edit>) -> Vec<u8> {
    edits.sort_by_key(|edit| edit.span.start);
    // From the end, so that what comes before stays where it is.
    for Edit { span, text } in edits.into_iter().rev() {
        if span.start <= span.end && span.end <= body.len() {
            body.splice(span, text.into_bytes());
        }
    }
    body
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
        let want = r#" {"n":1,"seed":9007199254740993, "o" : {"u":true } ,"x":2}"#;
        assert_eq!(edited(body.into(), edits), want.as_bytes());
        assert_eq!(edited(body.into(), vec![]), body.as_bytes());
        let outside = Edit { span: 0..body.len() + 1, text: String::new() };
        assert_eq!(edited(body.into(), vec![outside]), body.as_bytes());
    }

    #[test]
    fn insertions_at_one_place_stand_in_the_order_in_which_they_were_made() {
        let edits = ["1,", "2,"].map(|member| insert_member("{}", 0..2, member)).to_vec();
        assert_eq!(edited(b"{}".to_vec(), edits), b"{1,2,}");
    }
}
