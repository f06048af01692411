//! The rules of this repository.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::Table;

/// The top level belongs to the owner; beside it there is what the tools want, and dot-files.
const TOP_LEVEL: [&str; 9] = [
    "Cargo.lock",
    "Cargo.toml",
    "README.md",
    "package-lock.json",
    "package.json",
    "rust-toolchain.toml",
    "src",
    "tests",
    "wrangler.toml",
];
const FILE_LINES_MAX: usize = 300;
const FUNCTION_LINES_MAX: usize = 60;
const ARCHITECTURE_LINES_MAX: usize = 150;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// All Rust files below a folder, with their texts.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    let (mut folders, mut files) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// What of a file is not its tests.
fn production(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| *line != "#[cfg(test)]")
}

fn is_function(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
    let line = line.trim_start_matches("pub ").trim_start_matches("const ").trim_start_matches("async ");
    line.starts_with("fn ")
}

/// Functions by their first line, with their length, formatted as they are.
fn functions(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (start, line) in text.lines().enumerate().filter(|(_, line)| is_function(line) && !line.ends_with(';')) {
        let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
        let end = format!("{indent}}}");
        let length = text.lines().skip(start).position(|line| line == end).unwrap_or_default();
        found.push((line.trim().to_owned(), length + 1));
    }
    found
}

/// Every text between backticks.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_top_level_is_the_owners() {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    assert!(listed.status.success(), "git lists no files here");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let top: BTreeSet<&str> = listed.split('\0').filter_map(|path| path.split('/').next()).collect();
    let seen: Vec<&str> = top.into_iter().filter(|name| !name.is_empty() && !name.starts_with('.')).collect();
    assert_eq!(seen, TOP_LEVEL);
}

#[test]
fn files_and_functions_are_small() {
    let mut large = Vec::new();
    for (name, text) in rust_files("src") {
        let lines = production(&text).count();
        if lines > FILE_LINES_MAX {
            large.push(format!("{name}: {lines} lines"));
        }
        let functions = functions(&text).into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
        large.extend(functions.map(|(function, lines)| format!("{name}: `{function}` has {lines} lines")));
    }
    for (name, text) in rust_files("tests").into_iter().filter(|(_, text)| text.lines().count() > FILE_LINES_MAX) {
        large.push(format!("{name}: {} lines", text.lines().count()));
    }
    assert!(large.is_empty(), "{}", large.join("\n"));
}

#[test]
fn nothing_is_allowed_without_a_word_and_nothing_is_left_for_later() {
    // Not written out, so that this file does not find itself.
    let words = [concat!("[all", "ow("), concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    for (name, text) in rust_files("src").into_iter().chain(rust_files("tests")) {
        for (place, line) in text.lines().enumerate() {
            let found = words.iter().find(|word| line.contains(*word));
            assert_eq!(found, None, "{name}:{}: {line}", place + 1);
        }
    }
}

#[test]
fn only_the_edge_names_the_platform() {
    for (name, text) in rust_files("src").into_iter().filter(|(name, _)| !name.starts_with("src/edge/")) {
        for word in ["worker::", "wasm_bindgen", "js_sys", "web_sys", "Instant::now", "SystemTime", "thread_local"] {
            assert!(!text.contains(word), "{name} names {word}");
        }
    }
}

/// The text of the constant called `name` in a file.
fn constant(file: &str, name: &str) -> String {
    let text = read(file);
    let start = format!("const {name}: &str = \"");
    let value = text.split(start.as_str()).nth(1).unwrap();
    value.split('"').next().unwrap().to_owned()
}

#[test]
fn the_objects_names_are_those_of_the_code() {
    let wrangler: Table = read("wrangler.toml").parse().unwrap();
    let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
    let bindings = wrangler["durable_objects"]["bindings"].as_array().unwrap();
    let bound: Vec<_> = bindings.iter().map(|binding| (text(&binding["name"]), text(&binding["class_name"]))).collect();
    let class = "UserLimiter".to_owned();
    assert_eq!(bound, [(constant("src/edge/limiter.rs", "BINDING"), class.clone())]);
    assert!(read("src/edge/object.rs").contains(&format!("#[wasm_bindgen]\npub struct {class}")));
    let migrations = wrangler["migrations"].as_array().unwrap();
    // A tag that is out there stays as it is; a change takes a new one.
    assert_eq!(text(&migrations[0]["tag"]), "v1");
    assert_eq!(migrations[0]["new_sqlite_classes"].as_array().unwrap().iter().map(text).collect::<Vec<_>>(), [class]);
    let analytics = constant("src/edge/ports.rs", "ANALYTICS");
    assert!(read("wrangler.toml").contains(&format!("binding = \"{analytics}\"")));
}

#[test]
fn every_code_stands_in_the_readme() {
    let own = read("tests/support/rejections.txt");
    let told =
        own.split("\"code\":\"").skip(1).filter_map(|rest| rest.split('"').next()).filter(|code| *code != "busy");
    let sources = rust_files("src");
    let given = sources
        .iter()
        .flat_map(|(_, text)| text.split("code: Some(\"").skip(1))
        .filter_map(|rest| rest.split('"').next());
    let readme = read("README.md");
    let known = quoted(&readme);
    let missing: BTreeSet<&str> = told.chain(given).filter(|code| !known.contains(code)).collect();
    assert!(missing.is_empty(), "README.md does not explain {missing:?}");
}

#[test]
fn the_architecture_names_every_module_and_none_that_is_not_there() {
    let (architecture, library) = (read("src/ARCHITECTURE.md"), read("src/lib.rs"));
    assert!(architecture.lines().count() < ARCHITECTURE_LINES_MAX, "{} lines", architecture.lines().count());
    let names = quoted(&architecture);
    let modules: BTreeSet<&str> = library
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    let missing: Vec<_> = modules.iter().filter(|module| !names.contains(*module)).collect();
    assert!(missing.is_empty(), "not in ARCHITECTURE.md: {missing:?}");
    // Whatever stands there as `module::something` is a module, and the something is in it.
    for name in names.iter().filter(|name| name.chars().all(|letter| letter.is_alphanumeric() || "_:".contains(letter)))
    {
        let mut parts = name.split("::");
        let (Some(module), Some(item)) = (parts.next(), parts.next()) else { continue };
        if module.starts_with(char::is_lowercase) {
            assert!(modules.contains(module), "`{name}`: no module {module}");
            let files = rust_files("src").into_iter();
            let mut inside = files.filter(|(file, _)| file.starts_with(&format!("src/{module}")));
            let stem = format!("/{item}.rs");
            assert!(inside.any(|(file, text)| file.ends_with(&stem) || text.contains(item)), "`{name}`: no {item}");
        }
    }
}

#[test]
fn wasm_bindgen_is_pinned_to_the_version_of_its_program() {
    let manifest: Table = read("Cargo.toml").parse().unwrap();
    let wasm = &manifest["target"]["cfg(target_arch = \"wasm32\")"]["dependencies"];
    let pinned = wasm["wasm-bindgen"].as_str().unwrap().strip_prefix('=').unwrap();
    let lock: Table = read("Cargo.lock").parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    let locked = packages.iter().find(|package| package["name"].as_str() == Some("wasm-bindgen")).unwrap();
    assert_eq!(locked["version"].as_str(), Some(pinned));
    let direct = manifest["dependencies"].as_table().unwrap();
    for platform in ["worker", "wasm-bindgen", "js-sys", "web-sys"] {
        assert!(!direct.contains_key(platform), "{platform} is for wasm32 only");
    }
}

/// The modules in an order in which each uses only those before it.
const LAYERS: [&str; 15] = [
    "time",
    "limit",
    "pricing",
    "tokens",
    "placement",
    "visitor",
    "ledger",
    "dialect",
    "policy",
    "auth",
    "rate_headers",
    "rejection",
    "gateway",
    "edge",
    "lib",
];

#[test]
fn no_module_uses_one_that_uses_it() {
    for (name, text) in rust_files("src") {
        let module = name.trim_start_matches("src/").split('/').next().unwrap().trim_end_matches(".rs");
        let below = LAYERS.iter().position(|layer| *layer == module).unwrap_or_else(|| panic!("{name} has no layer"));
        for line in production(&text).filter(|line| !line.trim_start().starts_with("//")) {
            for used in line.split("crate::").skip(1) {
                let used = used.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap();
                assert!(used == module || LAYERS[..below].contains(&used), "{name} uses {used}: {line}");
            }
        }
    }
}
