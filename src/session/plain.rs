//! Plain scripts: those that are a name and a text and nothing more. They are most of a project, and
//! what librojo makes of one is known once it was seen; so they are kept apart from the files that
//! librojo reads, and put into its snapshots afterwards (`graft`).

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::state::Shared;

/// What tells the kind of a script, the longer ones first.
const ENDINGS: [&str; 8] =
    [".server.luau", ".server.lua", ".client.luau", ".client.lua", ".plugin.luau", ".plugin.lua", ".luau", ".lua"];

/// The instance's name and the ending, if `name` is that of a script without peculiarities.
pub(super) fn split(name: &OsStr) -> Option<(&str, &'static str)> {
    let name = name.to_str()?;
    let (stem, ending) = ENDINGS.iter().find_map(|ending| Some((name.strip_suffix(ending)?, *ending)))?;
    (!stem.is_empty() && stem != "init" && !stem.contains('.')).then_some((stem, ending))
}

/// The names of the files that would add something to the script at `path`, if its name is without peculiarities.
pub(super) fn companions(path: &Path) -> Option<[OsString; 2]> {
    let (stem, _) = split(path.file_name()?)?;
    Some(["json", "jsonc"].map(|kind| format!("{stem}.meta.{kind}").into()))
}

/// The scripts that the file at `path` adds something to, wherever there are such.
pub(super) fn beside_companion(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    match name.strip_suffix(".meta.json").or_else(|| name.strip_suffix(".meta.jsonc")) {
        Some(stem) => ENDINGS.iter().map(|ending| path.with_file_name(format!("{stem}{ending}"))).collect(),
        None => Vec::new(),
    }
}

/// The texts of one folder's plain scripts, in the order in which librojo lists them.
pub(super) type Texts = BTreeMap<OsString, String>;

/// All plain scripts by their folder. A clone is the same.
#[derive(Debug, Clone, Default)]
pub(super) struct PlainScripts(Arc<Shared<HashMap<PathBuf, Texts>>>);

impl PlainScripts {
    pub fn holds(&self, path: &Path) -> bool {
        self.with(path, |_| ()).is_some()
    }

    pub fn text(&self, path: &Path) -> Option<String> {
        self.with(path, str::to_owned)
    }

    pub fn insert(&self, path: &Path, text: String) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        let mut scripts = self.0.write();
        match scripts.get_mut(folder) {
            Some(texts) => _ = texts.insert(name.to_owned(), text),
            None => _ = scripts.insert(folder.to_path_buf(), Texts::from([(name.to_owned(), text)])),
        }
    }

    /// It is plain no more, or gone.
    pub fn take(&self, path: &Path) -> Option<String> {
        let mut scripts = self.0.write();
        let texts = scripts.get_mut(path.parent()?)?;
        let text = texts.remove(path.file_name()?);
        if texts.is_empty() {
            scripts.remove(path.parent()?);
        }
        text
    }

    /// The folder is gone, with all scripts in it.
    pub fn take_folder(&self, folder: &Path) {
        self.0.write().remove(folder);
    }

    pub fn all(&self) -> Vec<PathBuf> {
        let scripts = self.0.read();
        scripts.iter().flat_map(|(folder, texts)| texts.keys().map(|name| folder.join(name))).collect()
    }

    /// Read the texts of one folder.
    pub fn in_folder<R>(&self, folder: &Path, read: impl FnOnce(&Texts) -> R) -> Option<R> {
        self.0.read().get(folder).map(read)
    }

    fn with<R>(&self, path: &Path, read: impl FnOnce(&str) -> R) -> Option<R> {
        let scripts = self.0.read();
        scripts.get(path.parent()?)?.get(path.file_name()?).map(|text| read(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_simple_names_are_plain() {
        let plain = |name: &'static str| split(OsStr::new(name));
        assert_eq!(plain("A.luau"), Some(("A", ".luau")));
        assert_eq!(plain("A.server.lua"), Some(("A", ".server.lua")));
        for name in ["init.luau", "init.server.luau", "A.b.luau", "A.legacy.server.luau", ".luau", "A.json", "A"] {
            assert_eq!(plain(name), None, "{name}");
        }
    }
}
