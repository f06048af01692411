//! Which encoding a model name stands for.

use tollgate::tokens::Encoding;

fn names(encoding: Option<Encoding>, names: &[&str]) {
    for name in names {
        assert_eq!(Encoding::for_model(name), encoding, "{name}");
    }
}

#[test]
fn newer_families_use_o200k() {
    names(
        Some(Encoding::O200k),
        &[
            "gpt-4o",
            "gpt-4o-mini",
            "gpt-4o-2024-08-06",
            "chatgpt-4o-latest",
            "gpt-4.1",
            "gpt-4.1-nano",
            "gpt-4.5-preview",
            "gpt-5",
            "gpt-5-mini",
            "gpt-5.1",
            "gpt-5.4-nano",
            "o1",
            "o1-pro",
            "o3",
            "o3-mini",
            "o4-mini",
            "o4-mini-high",
            "gpt-oss-120b",
            "ft:gpt-4o-mini:org::id",
            "ft:gpt-4.1-mini:org::id",
        ],
    );
}

#[test]
fn older_families_use_cl100k() {
    names(
        Some(Encoding::Cl100k),
        &[
            "gpt-4",
            "gpt-4-turbo",
            "gpt-4-32k",
            "gpt-3.5",
            "gpt-3.5-turbo",
            "gpt-3.5-turbo-0125",
            "gpt-35-turbo-16k",
            "text-embedding-3-small",
            "text-embedding-ada-002",
            "ft:gpt-4-0613:org::id",
            "davinci-002",
        ],
    );
}

#[test]
fn what_is_not_known_has_no_encoding() {
    names(None, &["", "gpt", "gpt-4x", "gpt-6", "o2", "GPT-4", "claude-opus-4", "llama-3", "text-davinci-003", "gpt2"]);
}
