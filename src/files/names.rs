//! File names for instances: only such as are read back as the same instance.

use std::{fs, io, path::Path};

/// What a script's file makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptFile {
    /// `ModuleScript`.
    Module,
    /// `Script`.
    Server,
    /// `LocalScript`, or a `Script` that runs on clients.
    Client,
}

impl ScriptFile {
    fn ending(self) -> &'static str {
        match self {
            Self::Module => ".luau",
            Self::Server => ".server.luau",
            Self::Client => ".client.luau",
        }
    }
}

/// An instance's name that no file can bear.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no file can be named for an instance called {name:?}: {why}")]
pub struct NameError {
    name: String,
    why: &'static str,
}

/// Names that Windows keeps for devices, whatever follows a dot.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Ends of a name that would make another kind of script, or no script, of it.
const KINDS: [&str; 6] = [".server", ".client", ".plugin", ".legacy", ".meta", ".project"];

/// The file name of a script called `name`.
pub(super) fn file_name(name: &str, kind: ScriptFile) -> Result<String, NameError> {
    let lower = name.to_lowercase();
    let stem = lower.split('.').next().unwrap_or_default().trim_end();
    let numbered = |device: &str| {
        let digit =
            stem.strip_prefix(device).and_then(|rest| rest.chars().next().filter(|_| rest.chars().count() == 1));
        digit.is_some_and(|digit| digit.is_ascii_digit() || "¹²³".contains(digit))
    };
    let why = if name.is_empty() {
        "it is empty"
    } else if name.chars().any(|letter| letter.is_control() || "<>:\"/\\|?*".contains(letter)) {
        "it holds a letter that file names must not"
    } else if name.starts_with(['.', ' ']) || name.ends_with(['.', ' ']) {
        "it begins or ends with a dot or a space"
    } else if DEVICES.contains(&stem) || numbered("com") || numbered("lpt") {
        "it is a device on Windows"
    } else if lower == "init" {
        "a file of that name stands for its folder"
    } else if KINDS.iter().any(|end| lower.ends_with(end)) {
        "its end means a kind of file"
    } else if name.len() + kind.ending().len() > 255 {
        "it is too long"
    } else {
        return Ok(format!("{name}{}", kind.ending()));
    };
    Err(NameError { name: name.to_owned(), why })
}

/// Whether a file can bear the name of an instance.
///
/// # Errors
/// Why not.
pub fn check_name(name: &str) -> Result<(), NameError> {
    file_name(name, ScriptFile::Client).map(drop)
}

/// The folder of an instance called `name`.
pub(super) fn folder_name(name: &str) -> Result<&str, NameError> {
    file_name(name, ScriptFile::Module).map(|_| name)
}

/// The file that makes a script of its folder.
pub(super) fn init_name(kind: ScriptFile) -> String {
    format!("init{}", kind.ending())
}

/// The name of a file that was called `own` and whose instance `was`, and is called `name` now: what follows the
/// name stays. `None`: its name does not begin with the instance's.
pub(super) fn renamed(own: &str, was: &str, name: &str) -> Option<String> {
    let ending = own.strip_prefix(was).filter(|ending| ending.starts_with('.'))?;
    Some(format!("{name}{ending}"))
}

/// What follows the name in the name of a script's file.
pub(super) fn is_script_ending(ending: &str) -> bool {
    let script = [".luau", ".lua"].iter().find_map(|script| ending.strip_suffix(script));
    script.is_some_and(|kind| kind.is_empty() || KINDS.contains(&kind))
}

/// Whether the new file would stand beside another of the same instance name, or one that differs
/// in the size of letters only.
pub(super) fn is_taken(folder: &Path, file_name: &str, name: &str) -> io::Result<bool> {
    is_taken_but(folder, file_name, name, None)
}

/// The same for a file that takes the place of `own`.
pub(super) fn is_taken_but(folder: &Path, file_name: &str, name: &str, own: Option<&str>) -> io::Result<bool> {
    let (file_name, name) = (file_name.to_lowercase(), name.to_lowercase());
    for entry in fs::read_dir(folder)? {
        let other = entry?.file_name();
        if own.is_some_and(|own| other == own) {
            continue;
        }
        let other = other.to_string_lossy().to_lowercase();
        let twin = other.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || is_script_ending(rest));
        if other == file_name || twin {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_used_only_if_it_is_read_back() {
        for name in ["Money", "with space", "a.b", "été", "🦊", "con2", "Init2", "server"] {
            assert_eq!(file_name(name, ScriptFile::Module), Ok(format!("{name}.luau")), "{name}");
        }
        assert_eq!(file_name("Main", ScriptFile::Server).as_deref(), Ok("Main.server.luau"));
        for name in [
            "",
            ".",
            "..",
            ".hidden",
            "end.",
            "end ",
            " start",
            "a/b",
            "a\\b",
            "a:b",
            "a\0b",
            "a\nb",
            "CON",
            "con.x",
            "nul ",
            "COM1",
            "lpt9.txt",
            "com¹",
            "init",
            "INIT",
            "a.server",
            "a.Client",
            "x.meta",
            "x.project",
        ] {
            assert!(file_name(name, ScriptFile::Module).is_err(), "{name:?}");
        }
        let long = "x".repeat(251);
        assert!(file_name(&long, ScriptFile::Module).is_err());
    }
}
