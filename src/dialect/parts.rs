//! Parts of a message that are no text.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::image::{Detail, ImageRule, pixels, pixels_of_base64};
use super::json::{Text, object};
use super::rules::PartKind;
use crate::limit::Tokens;

/// What a part is to the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It is `null`.
    Nothing,
    /// An image.
    Image,
    /// Sound, whose size in tokens does not show.
    Sound,
    /// Something else whose size in tokens does not show.
    Opaque,
    /// Text, as it stands.
    Text,
}

/// What the last `type` in a message said: what the block is that a `source` stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    after_type: bool,
    image: bool,
}

impl Block {
    /// Takes the name of a member.
    pub(super) fn key(&mut self, key: &str) {
        self.after_type = key == "type";
    }

    /// Takes a text.
    pub(super) fn text(&mut self, text: &str) {
        if core::mem::take(&mut self.after_type) {
            self.image = text == "image";
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'b"))]
struct Source<'b> {
    #[serde(rename = "type")]
    kind: Option<&'b RawValue>,
    #[serde(borrow)]
    data: Option<Text<'b>>,
}

/// An image in OpenAI's chat completions.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'b"))]
struct Image<'b> {
    #[serde(borrow)]
    url: Option<Text<'b>>,
    #[serde(borrow)]
    detail: Option<Text<'b>>,
}

/// What an image counts, by the value that holds it: a URL, an object with one, or a source.
pub(super) fn image_tokens(rule: &ImageRule, value: &str) -> Tokens {
    if let Ok(Text(url)) = serde_json::from_str(value) {
        return rule.tokens(pixels(&url), Detail::High);
    }
    if let Some(Source { data: Some(Text(data)), .. }) = object(value) {
        return rule.tokens(pixels_of_base64(&data), Detail::High);
    }
    let Image { url, detail } = object(value).unwrap_or_default();
    let detail = detail.map_or(Detail::High, |Text(word)| Detail::of(&word));
    rule.tokens(url.and_then(|Text(url)| pixels(&url)), detail)
}

/// What the value of a part is.
pub(super) fn part(kind: PartKind, value: &str, block: Block) -> Part {
    match kind {
        _ if value == "null" => Part::Nothing,
        PartKind::Image => Part::Image,
        PartKind::Audio => Part::Sound,
        PartKind::File => Part::Opaque,
        PartKind::Json => Part::Text,
        // Where a search result comes from.
        PartKind::Source if value.starts_with('"') => Part::Text,
        PartKind::Source if block.image => Part::Image,
        PartKind::Source => {
            let source: Source<'_> = object(value).unwrap_or_default();
            match source.kind.map(RawValue::get) {
                // A document of plain text, or of blocks: never more tokens than bytes.
                Some(r#""text""# | r#""content""#) => Part::Text,
                _ => Part::Opaque,
            }
        }
    }
}
