//! What calls take beside text, and what they are charged by: images, speech, sound.
//!
//! Invariant: a call is charged by what its provider bills: its tokens, or its images, characters or minutes, never both.
//! A model without the price that its route needs is not called there, so nothing is unmetered.

use crate::dialect::bad_request::{BadRequest, unsupported};
use crate::dialect::request::Request;
use crate::dialect::rules::Medium;
use crate::limit::{NanoUsd, Tokens};
use crate::policy::Model;
use crate::pricing::{PerMillion, Price, Quantities};

/// The slowest sound that is believed: 8 kbit/s, what the sparsest settings of MP3, Opus and AMR come to. A file that
/// has less (silence, in a format that leaves it out) is settled by what its provider says all the same.
const SOUND_BYTES_PER_SECOND: u64 = 1_000;
/// OpenAI counts a token for each 100 ms of sound that it reads ("Managing costs" of its guide to realtime; the prices a
/// minute that it gives for its transcribing models come to the same).
const MS_PER_SOUND_TOKEN: u64 = 100;
/// The most that an image counts that is to be changed: a base of 65 tokens, 129 for each of the tiles of 512 pixels that
/// an image of which the shorter side is scaled to 512 can have (16, at sides of 16 to 1), and 6,240 for high fidelity
/// ("Images and vision", "gpt-image" input).
const EDITED_IMAGE: u64 = 65 + 16 * 129 + 6_240;
/// The most uses of the provider's own tools that are believed of a call that did not bound them itself: the longest known
/// researches come to a few hundred.
const TOOL_CALLS_BELIEVED: u64 = 1_000;
/// The longest sound that is believed of one call, in milliseconds: a day. A body of 25 MB is one at 2.4 kbit/s.
const SOUND_BELIEVED: u64 = 86_400_000;

/// The prices that a request is charged by.
///
/// # Errors
/// If the model has none for what the request is about.
pub(super) fn price_of(model: &Model, request: &Request<'_>) -> Result<Price, BadRequest> {
    let price = model.price;
    let free = PerMillion::default();
    let writes = model.output_max > Tokens(0);
    let lacks = |what: &str| unsupported("model", format!("the model `{}` has no price for {what}", request.model));
    match request.dialect.request.medium {
        Medium::Text if request.dialect.request.free => Ok(Price::default()),
        Medium::Text => Ok(price),
        Medium::Images(_) => {
            let by_tokens = writes && price.image_output.unwrap_or(price.output) > free;
            if by_tokens || price.image > NanoUsd(0) { Ok(price) } else { Err(lacks("images")) }
        }
        Medium::Speech if says_usage(&price, request) && writes => Ok(Price { character: free, ..price }),
        Medium::Speech if price.character > free => {
            Ok(Price { character: price.character, call: price.call, tiers: price.tiers, ..Price::default() })
        }
        Medium::Speech => Err(lacks("speech")),
        Medium::Transcript(_) => {
            let by_tokens = price.audio_input.unwrap_or(price.input) > free;
            if by_tokens || price.minute > NanoUsd(0) { Ok(price) } else { Err(lacks("transcripts")) }
        }
    }
}

/// Whether speech is charged by tokens: it has a price for them, and says how many they were, or has no other price.
fn says_usage(price: &Price, request: &Request<'_>) -> bool {
    let says = request.extra.audio_output > Tokens(0);
    price.audio_output.is_some_and(|token| token > PerMillion::default())
        && (says || price.character == PerMillion::default())
}

/// How many tokens the files of a request count at most.
pub(super) fn tokens_of_files(request: &Request<'_>) -> Tokens {
    match request.dialect.request.medium {
        Medium::Text | Medium::Speech => Tokens(0),
        Medium::Images(_) => Tokens(request.files().count.saturating_mul(EDITED_IMAGE)),
        Medium::Transcript(_) => Tokens(sound_ms(request).div_ceil(MS_PER_SOUND_TOKEN)),
    }
}

/// How long the sound of a request can be, in milliseconds; a begun second is billed as one.
fn sound_ms(request: &Request<'_>) -> u64 {
    request.files().bytes.div_ceil(SOUND_BYTES_PER_SECOND).saturating_add(1).saturating_mul(1_000)
}

/// A bound of text with what the request takes beside it, under the prices that it is charged by.
pub(super) fn bound(request: &Request<'_>, price: &Price, bound: Quantities) -> Quantities {
    match request.dialect.request.medium {
        Medium::Text => bound,
        Medium::Images(_) => Quantities {
            image_input: tokens_of_files(request).min(bound.input),
            image_output: bound.output,
            images: request.candidates,
            ..bound
        },
        Medium::Speech if price.character > PerMillion::default() => {
            Quantities { output: Tokens(0), audio_output: Tokens(0), ..bound }
        }
        Medium::Speech => Quantities { audio_output: bound.output, ..bound },
        Medium::Transcript(_) => {
            Quantities { audio_input: tokens_of_files(request).min(bound.input), audio_ms: sound_ms(request), ..bound }
        }
    }
}

/// What is believed of what is known of a call that can take `ceiling` at most. Uses of tools and sound have no ceiling in
/// its request; one bogus figure must not lock a caller out for years all the same.
pub(super) fn believed(ceiling: &Quantities, known: &Quantities) -> Quantities {
    Quantities {
        input: known.input.min(ceiling.input),
        output: known.output.min(ceiling.output),
        tool_calls: known.tool_calls.min(ceiling.tool_calls.max(TOOL_CALLS_BELIEVED)),
        audio_ms: known.audio_ms.min(ceiling.audio_ms.max(SOUND_BELIEVED)),
        ..*known
    }
}

/// Whether a usage is one: some gateways send zeros for what they do not count.
pub(super) fn counts(medium: Medium, said: &Quantities) -> bool {
    match medium {
        Medium::Text => true,
        Medium::Images(_) | Medium::Speech => said.output > Tokens(0),
        Medium::Transcript(_) => said.input > Tokens(0) || said.audio_ms > 0,
    }
}

/// What is known of what a call took, by kind: `said` is whether its provider has told all of it. And whether that is
/// what it is to be charged, or only as much as there is to go by.
pub(super) fn taken(
    medium: Medium,
    price: &Price,
    bound: &Quantities,
    known: Quantities,
    said: bool,
) -> (Quantities, bool) {
    let unless_said = |part: Tokens, whole: Tokens| if part > Tokens(0) { part } else { whole };
    match (medium, said) {
        (Medium::Text, _) => (known, said),
        (Medium::Images(_), true) => {
            (Quantities { image_output: unless_said(known.image_output, known.output), ..known }, true)
        }
        (Medium::Images(_), false) => {
            let known = Quantities { image_input: bound.image_input, ..known };
            if price.image > NanoUsd(0) {
                return (Quantities { output: Tokens(0), images: bound.images, ..known }, true);
            }
            (Quantities { output: bound.output, image_output: bound.output, ..known }, false)
        }
        (Medium::Speech, _) if price.character > PerMillion::default() => {
            (Quantities { input: bound.input, characters: bound.characters, ..Quantities::default() }, true)
        }
        (Medium::Speech, true) => {
            (Quantities { audio_output: unless_said(known.audio_output, known.output), ..known }, true)
        }
        (Medium::Speech, false) => (Quantities { output: bound.output, audio_output: bound.output, ..known }, false),
        (Medium::Transcript(_), _) => heard(price, bound, known, said),
    }
}

/// The same of sound that was written down. A provider says minutes or tokens; where the model has a price for the other
/// only, one is taken for the other.
fn heard(price: &Price, bound: &Quantities, known: Quantities, said: bool) -> (Quantities, bool) {
    let by_minute = price.minute > NanoUsd(0);
    let tokens = known.audio_input.max(known.input);
    match (said, by_minute) {
        (true, true) if known.audio_ms == 0 && price.audio_input.unwrap_or(price.input) == PerMillion::default() => {
            (Quantities { audio_ms: tokens.0.saturating_mul(MS_PER_SOUND_TOKEN), ..known }, false)
        }
        (true, false) if tokens == Tokens(0) => {
            let tokens = Tokens(known.audio_ms.div_ceil(MS_PER_SOUND_TOKEN)).min(bound.input);
            (Quantities { input: tokens, audio_input: tokens, output: known.output.max(bound.output), ..known }, false)
        }
        (true, _) => (known, true),
        (false, true) => (Quantities { audio_ms: bound.audio_ms, ..known }, false),
        (false, false) => (Quantities { audio_input: bound.audio_input, ..known }, false),
    }
}
