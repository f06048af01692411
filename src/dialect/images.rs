//! `POST /v1/images/generations` and `POST /v1/images/edits`: images are made, from words or from other images.
//!
//! Images travel as base64, which is no text: what is charged is what the usage says, or the number of images.

use super::bad_request::{BadRequest, bad, shown, unsupported};
use super::fields::{flag, whole_number};
use super::json::Members;
use super::reply::{Answer, Chunk, OutputCounter, is_list};
use super::rules::{CapRule, Dialect, ErrorEvent, Family, Medium, PromptShape, ReplyRules, RequestRules};
use super::seen::Seen;
use crate::limit::Tokens;
use crate::pricing::Quantities;

/// What a partial image of a stream costs on top ("Partial images cost" in OpenAI's guide to image generation).
const PARTIAL_IMAGE: u64 = 100;
/// The most of them that can be asked for.
const PARTIAL_IMAGES_MAX: u64 = 3;

/// The dialect of images that are made from words.
pub static GENERATIONS: Dialect = Dialect {
    path: "/v1/images/generations",
    family: Family::OpenAi,
    request: RequestRules { medium: Medium::Images(&[]), ..RULES },
    reply: REPLY,
};

/// The dialect of images that are made from others.
pub static EDITS: Dialect = Dialect {
    path: "/v1/images/edits",
    family: Family::OpenAi,
    request: RequestRules { medium: Medium::Images(&["image", "image[]", "mask", "markup"]), ..RULES },
    reply: REPLY,
};

/// Why images to be changed come as files alone.
const ELSEWHERE: &str = "an image that is to be changed has to be a file of a form, or it does not count";

const RULES: RequestRules = RequestRules {
    prompt: &[("prompt", PromptShape::Input)],
    required: Some("prompt"),
    // The API's own depends on the other fields.
    not_read: &[
        "background",
        "complexity",
        "input_fidelity",
        "moderation",
        "output_compression",
        "output_format",
        "partial_images",
        "quality",
        "response_format",
        "safety_identifier",
        "size",
        "stream",
        "style",
        "user",
    ],
    cap: CapRule::Ceiling,
    candidates: &["n"],
    decisive: &["output_format", "partial_images", "quality", "size"],
    unbounded: &[
        ("image", ELSEWHERE),
        ("images", ELSEWHERE),
        ("image_url", ELSEWHERE),
        ("frame_count", "what the frames of a moving image cost is not known before"),
        ("prompt_rewriter", "the prompt would not be what was counted"),
        ("svg", "another model would be paid for too"),
    ],
    extra: Some(partial_images),
    ..RequestRules::NONE
};

const REPLY: ReplyRules = ReplyRules { whole, event, raw: true, error_event: ErrorEvent::Plain, has_usage: true };

/// A stream ends with the usage of its image: of several, it is not known to which the last one belongs. Moving images
/// have an unknown price, and drawings (`svg`) that of another model, in a usage of their own.
fn check(members: &Members<'_>) -> Result<(), BadRequest> {
    const FORMATS: [&str; 3] = [r#""png""#, r#""jpeg""#, r#""webp""#];
    let format = members.get("output_format");
    if let Some(format) = format.filter(|format| !FORMATS.contains(&format.value.get())) {
        let message = format!("`output_format` is {}, want \"png\", \"jpeg\" or \"webp\"", shown(format));
        return Err(unsupported("output_format", message));
    }
    let images = members.get("n").map_or(Ok(1), whole_number)?;
    if images > 1 && flag(members, "stream")? {
        return Err(unsupported("n", format!("`n` is {images} together with `stream`, want 1")));
    }
    Ok(())
}

fn partial_images(members: &Members<'_>) -> Result<Quantities, BadRequest> {
    check(members)?;
    let Some(member) = members.get("partial_images") else { return Ok(Quantities::default()) };
    match member.value.get().parse::<u64>() {
        Ok(number) if number <= PARTIAL_IMAGES_MAX => {
            Ok(Quantities { output: Tokens(number * PARTIAL_IMAGE), ..Quantities::default() })
        }
        _ => {
            let want = format!("`partial_images` is {}, want 0 to {PARTIAL_IMAGES_MAX}", shown(member));
            Err(bad("partial_images", want))
        }
    }
}

fn whole(answer: &Answer<'_>, _: &mut OutputCounter) -> Option<Seen> {
    is_list(answer.data).then(Seen::default)
}

fn event(answer: &Answer<'_>, _: &mut OutputCounter, chunk: &mut Chunk) {
    match answer.kind().unwrap_or_default().as_ref() {
        "image_generation.completed" | "image_edit.completed" => chunk.done = true,
        "error" => chunk.error = true,
        // That there was one is all that can be told.
        _ => chunk.seen.add_unread(1),
    }
}
