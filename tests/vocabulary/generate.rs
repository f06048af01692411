//! Writes the data files of the token counter: `cargo run --release --example vocabulary`.
//!
//! With `--check` nothing is written; the exit status says whether the files that are checked in
//! are what this program would write. The vocabularies come from the `tiktoken-rs` package and are
//! accepted only if the original file, rebuilt byte for byte, has the SHA-256 that is published for it.

mod classes;
mod source;
mod trie;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Everything that belongs in the data directory: file name and content.
fn files() -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    Ok(vec![
        ("o200k.bin", trie::encode(&source::o200k()?)?),
        ("cl100k.bin", trie::encode(&source::cl100k()?)?),
        ("classes.bin", classes::encode()?),
    ])
}

fn check(path: &Path, wanted: &[u8]) -> Result<String, String> {
    match std::fs::read(path) {
        Ok(found) if found == wanted => Ok(format!("same   {}", path.display())),
        Ok(_) => Err(format!("differs {}", path.display())),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

fn write(path: &Path, wanted: &[u8]) -> Result<String, String> {
    std::fs::write(path, wanted)
        .map(|()| format!("wrote  {} ({} bytes)", path.display(), wanted.len()))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn run(only_check: bool) -> Result<String, String> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tokens/data");
    let act = if only_check { check } else { write };
    let lines: Result<Vec<String>, String> =
        files()?.iter().map(|(name, bytes)| act(&directory.join(name), bytes)).collect();
    Ok(lines?.join("\n"))
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command reports to its terminal")]
fn main() -> ExitCode {
    let only_check = std::env::args().any(|argument| argument == "--check");
    match run(only_check) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
