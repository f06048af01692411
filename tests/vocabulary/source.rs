//! The public vocabularies, in rank order, proven to be the published ones.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use tiktoken_rs::CoreBPE;

/// SHA-256 of the published `o200k_base.tiktoken`.
const O200K: &str = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d";
/// SHA-256 of the published `cl100k_base.tiktoken`.
const CL100K: &str = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7";

pub(crate) fn o200k() -> Result<Vec<Vec<u8>>, String> {
    let bpe = tiktoken_rs::o200k_base().map_err(|error| error.to_string())?;
    verified(&bpe, 199_998, O200K)
}

pub(crate) fn cl100k() -> Result<Vec<Vec<u8>>, String> {
    let bpe = tiktoken_rs::cl100k_base().map_err(|error| error.to_string())?;
    verified(&bpe, 100_256, CL100K)
}

/// Reads `size` tokens out of `bpe` and refuses them unless the published file can be rebuilt.
fn verified(bpe: &CoreBPE, size: u32, sha256: &str) -> Result<Vec<Vec<u8>>, String> {
    let tokens: Vec<Vec<u8>> =
        (0..size).map(|rank| bpe.decode_bytes(&[rank]).map_err(|error| error.to_string())).collect::<Result<_, _>>()?;
    let found = hex(&Sha256::digest(published_text(&tokens)));
    if found == sha256 { Ok(tokens) } else { Err(format!("vocabulary has SHA-256 {found}, not {sha256}")) }
}

/// The published form: one line per token, its base64, a blank, its rank.
fn published_text(tokens: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for (rank, token) in tokens.iter().enumerate() {
        push_base64(&mut text, token);
        // Writing to a string cannot fail.
        let _ = writeln!(text, " {rank}");
    }
    text
}

fn push_base64(text: &mut String, bytes: &[u8]) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            match ALPHABET.get(index as usize) {
                Some(&letter) if digit <= group.len() => text.push(char::from(letter)),
                _ => text.push('='),
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
