//! What the whole tree must keep to. Each failure says where.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

const LONGEST_FILE: usize = 400;
const LONGEST_FUNCTION: usize = 60;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below `folder` that end so, with their text.
fn files(folder: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let text = std::fs::read_to_string(&path).expect("text");
                found.push((path.strip_prefix(root()).expect("below the root").to_path_buf(), text));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_checks_below_look_at_something() {
    for (folder, ending) in [("src/core", ".rs"), ("src", ".rs"), ("tests", ".rs"), ("plugin", ".luau")] {
        assert!(files(folder, ending).len() > 1, "{folder} has no {ending}");
    }
}

fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

#[test]
fn the_core_does_nothing_itself() {
    let mut wrong = Vec::new();
    for (path, text) in files("src/core", ".rs") {
        for (number, line) in text.lines().enumerate() {
            for word in ["tokio", "std::fs", "Instant", "SystemTime", "log::", "println!", "std::net", "std::thread"] {
                if code_of(line).contains(word) {
                    wrong.push(format!("{}:{}: {word}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rojo_is_named_where_it_belongs_and_nowhere_else() {
    let wrong: Vec<String> = files("src", ".rs")
        .into_iter()
        .filter(|(path, _)| {
            !["src/session", "src/rojo_api", "src/cli", "src/plugin_model.rs", "src/headless"]
                .iter()
                .any(|place| path.starts_with(place))
        })
        .filter(|(_, text)| text.lines().any(|line| code_of(line).contains("librojo")))
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A longer file or function says why, in a comment that begins with `long:`.
#[test]
fn files_and_functions_are_short() {
    let mut wrong = Vec::new();
    for (path, text) in files("src", ".rs").into_iter().chain(files("tests", ".rs")).chain(files("plugin", ".luau")) {
        if text.lines().count() > LONGEST_FILE && !text.contains("long:") {
            wrong.push(format!("{}: {} lines", path.display(), text.lines().count()));
        }
        wrong.extend(long_functions(&path, &text));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Formatted code closes a function at the indentation that opened it.
fn long_functions(path: &Path, text: &str) -> Vec<String> {
    let luau = path.extension().is_some_and(|ending| ending == "luau");
    let mut open: Option<(usize, String, &str)> = None;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        let indent = line.strip_suffix(code).unwrap_or_default();
        match &open {
            Some((start, closing, name)) if line == closing || line.starts_with(&format!("{closing})")) => {
                let length = number - start + 1;
                let excused = text.lines().nth(start.saturating_sub(1)).is_some_and(|line| line.contains("long:"));
                if length > LONGEST_FUNCTION && !excused {
                    found.push(format!("{}:{}: {length} lines: {name}", path.display(), start + 1));
                }
                open = None;
            }
            Some(_) => {}
            None => {
                let opens = if luau { is_luau_function(code) } else { is_rust_function(code) };
                if opens {
                    let closing = format!("{indent}{}", if luau { "end" } else { "}" });
                    open = Some((number, closing, code));
                }
            }
        }
    }
    found
}

fn is_rust_function(code: &str) -> bool {
    let bare = code.trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ").trim_start_matches("pub ");
    ["fn ", "async fn ", "const fn "].iter().any(|start| bare.starts_with(start)) && !code.ends_with('}')
}

fn is_luau_function(code: &str) -> bool {
    (code.starts_with("function ") || code.starts_with("local function ")) && !code.ends_with("end")
}

#[test]
fn every_luau_file_of_the_plugin_is_strict() {
    for (path, text) in files("plugin", ".luau") {
        assert!(text.starts_with("--!strict\n"), "{}", path.display());
    }
}

#[test]
fn both_sides_have_the_same_versions_and_tools() {
    let protocol = std::fs::read_to_string(root().join("plugin/src/Protocol.luau")).expect("the plugin's protocol");
    let version = format!("\"{}\"", rojo_mcp::VERSION);
    assert!(protocol.contains(&version), "plugin/src/Protocol.luau must say version {version}");
    let number = format!("version = {}", rojo_mcp::core::protocol::PROTOCOL);
    assert!(protocol.contains(&number), "plugin/src/Protocol.luau must say {number}");

    let theirs: BTreeSet<String> = files("plugin/src/Tools", ".luau")
        .into_iter()
        .filter_map(|(path, _)| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .filter(|name| name != "init" && !name.ends_with(".spec"))
        .collect();
    let ours: BTreeSet<String> = rojo_mcp::mcp::catalogue()
        .into_iter()
        .map(|tool| tool.name.to_owned())
        .filter(|name| {
            !["status", "sync", "resolve", "undo", "get_script", "get_console_output", "get_call"]
                .contains(&name.as_str())
        })
        .collect();
    assert_eq!(theirs, ours, "a tool that is passed through is a row here and a file there");
}

#[test]
fn the_project_stands_alone() {
    // Spelt so that this file holds none of them.
    let mut foreign: Vec<String> = ["tmp", "root", "work"].iter().map(|folder| format!("/{folder}/")).collect();
    foreign.push("../shared/".to_owned());
    foreign.push(["crates", "io"].join("."));
    let mut wrong = Vec::new();
    let texts = ["src", "plugin", "tests", "docs"].iter().flat_map(|folder| {
        [".rs", ".luau", ".md", ".json", ".toml", ".py"].iter().flat_map(|ending| files(folder, ending))
    });
    for (path, text) in texts.filter(|(path, _)| !path.ends_with("tidy.rs")) {
        for word in &foreign {
            if text.contains(word) && !is_fixture_word(&path, word) {
                wrong.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A Rojo project may well have its sources in `../shared`; tests say so.
fn is_fixture_word(path: &Path, word: &str) -> bool {
    word == "../shared/" && path.components().any(|part| part.as_os_str() == "tests")
}
