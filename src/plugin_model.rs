//! Our Studio plugin as a model file.
//!
//! The sources are inside the binary, so what `plugin install` writes and what the
//! headless Studio loads are the same bytes on every machine, without a network or
//! a build script.

use include_dir::{Dir, DirEntry, include_dir};
use librojo::{InstanceContext, RojoTree, snapshot_from_vfs};
use memofs::{InMemoryFs, Vfs, VfsSnapshot};
use rbx_dom_weak::types::Variant;
use std::path::Path;

use crate::pairing::Key;

static SOURCES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/plugin");
const PROJECT: &str = include_str!("../default.project.json");
/// Where the project lies in the file system that exists only here.
const ROOT: &str = "/rojo-mcp";
/// The module that holds the key of an installed plugin.
const KEY_MODULE: &str = "InstalledKey";
const KEY_QUOTE: char = '"';
/// Specs are for our tests, not for Studio.
const SPEC_SUFFIX: &str = ".spec.luau";

/// Why the plugin could not be built. Each is a mistake in `plugin/` or the project file.
#[derive(Debug, thiserror::Error)]
pub enum PluginModelError {
    /// The in-memory file system refused the sources.
    #[error("lay out the plugin's sources: {0}")]
    Layout(#[source] std::io::Error),
    /// Rojo could not make instances of the sources.
    #[error("snapshot the plugin's project: {0:#}")]
    Snapshot(anyhow::Error),
    /// The project file is none.
    #[error("snapshot the plugin's project: it has no instances")]
    Empty,
    /// The instances could not be written.
    #[error("write the plugin's model: {0}")]
    Write(#[source] rbx_binary::EncodeError),
}

/// Build the plugin as the bytes of an `.rbxm` file: one Script with its modules. It carries no key.
///
/// # Errors
/// Only if the embedded sources are not a Rojo project; a test rules that out.
pub fn build() -> Result<Vec<u8>, PluginModelError> {
    build_with(None)
}

/// The same, with a key in it by which the servers of this user know it.
///
/// # Errors
/// As for [`build`].
pub fn build_with(key: Option<&Key>) -> Result<Vec<u8>, PluginModelError> {
    let mut files = InMemoryFs::new();
    let mut plugin = folder(&SOURCES);
    if let (Some(key), VfsSnapshot::Dir { children }) = (key, &mut plugin)
        && let Some(VfsSnapshot::Dir { children }) = children.get_mut("src")
    {
        let module = format!("--!strict\nreturn {KEY_QUOTE}{}{KEY_QUOTE}\n", key.secret());
        children.insert(format!("{KEY_MODULE}.luau"), VfsSnapshot::file(module));
    }
    let project = VfsSnapshot::dir([("default.project.json", VfsSnapshot::file(PROJECT)), ("plugin", plugin)]);
    files.load_snapshot(ROOT, project).map_err(PluginModelError::Layout)?;
    let snapshot = snapshot_from_vfs(&InstanceContext::default(), &Vfs::new(files), Path::new(ROOT))
        .map_err(PluginModelError::Snapshot)?
        .ok_or(PluginModelError::Empty)?;
    let tree = RojoTree::new(snapshot);
    let mut bytes = Vec::new();
    rbx_binary::to_writer(&mut bytes, tree.inner(), &[tree.get_root_id()]).map_err(PluginModelError::Write)?;
    Ok(bytes)
}

/// The version of our plugin in a model file. `None`: the file holds something else.
pub fn version_of(model: &[u8]) -> Option<String> {
    let protocol = source_of(model, "Protocol")?;
    let version = protocol.lines().find_map(|line| line.trim().strip_prefix("pluginVersion = "))?;
    Some(version.trim_end_matches(',').trim_matches('"').to_owned())
}

/// The key in a model file of our plugin. `None`: there is none in it.
pub fn key_of(model: &[u8]) -> Option<Key> {
    Key::read(source_of(model, KEY_MODULE)?.split(KEY_QUOTE).nth(1)?)
}

/// The source of one of our plugin's modules.
fn source_of(model: &[u8], module: &str) -> Option<String> {
    let model = rbx_binary::from_reader(model).ok()?;
    let [root] = model.root().children() else { return None };
    let root = model.get_by_ref(*root).filter(|root| root.name == "RojoMcp" && root.class == "Script")?;
    let children = root.children().iter().filter_map(|child| model.get_by_ref(*child));
    let module = children.into_iter().find(|child| child.name == module)?;
    match module.properties.get(&"Source".into()) {
        Some(Variant::String(source)) => Some(source.clone()),
        _ => None,
    }
}

fn is_spec(name: &str) -> bool {
    name.ends_with(SPEC_SUFFIX)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn folder(dir: &Dir<'_>) -> VfsSnapshot {
    let entries = dir.entries().iter().map(|entry| match entry {
        DirEntry::Dir(dir) => (file_name(dir.path()), folder(dir)),
        DirEntry::File(file) => (file_name(file.path()), VfsSnapshot::file(file.contents())),
    });
    VfsSnapshot::dir(entries.filter(|(name, _)| !is_spec(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_model_is_one_script_without_specs() {
        let bytes = build().expect("the embedded sources are a project");
        let model = rbx_binary::from_reader(&bytes[..]).expect("the model can be read");
        let roots = model.root().children();
        assert_eq!(roots.len(), 1);
        let root = model.get_by_ref(roots[0]).expect("the root is in the model");
        assert_eq!(root.class, "Script");
        for instance in model.descendants_of(roots[0]) {
            assert!(!instance.name.ends_with(".spec"), "{} is a spec", instance.name);
            if instance.class != "Folder" {
                let source = instance.properties.get(&"Source".into());
                assert!(
                    matches!(source, Some(Variant::String(text)) if !text.is_empty()),
                    "{} is empty",
                    instance.name
                );
            }
        }
    }

    #[test]
    fn the_plugin_is_known_by_its_version() {
        let bytes = build().expect("the embedded sources are a project");
        assert_eq!(version_of(&bytes).as_deref(), Some(crate::VERSION));
        assert_eq!(version_of(b"<roblox!"), None);
        assert_eq!(version_of(b""), None);
    }

    #[test]
    fn a_key_is_in_the_plugin_that_is_installed_and_in_no_other() {
        let (plain, key) = (build().expect("it builds"), Key::random());
        let with = build_with(Some(&key)).expect("it builds");
        assert_eq!(key_of(&with), Some(key.clone()));
        assert_eq!((key_of(&plain), key_of(b"")), (None, None));
        assert_eq!(version_of(&with), version_of(&plain));
        assert_eq!(build_with(Some(&key)).expect("it builds"), with, "the same again");
    }

    #[test]
    fn folders_keep_their_files_and_lose_their_specs() {
        let VfsSnapshot::Dir { children } = folder(&SOURCES) else { panic!("a folder becomes a folder") };
        assert!(children.keys().all(|name| !is_spec(name)));
        assert!(is_spec("Calls.spec.luau") && !is_spec("Calls.luau"));
    }

    /// The macro does not notice new files: touch this file when this fails.
    #[test]
    fn the_embedded_sources_are_those_on_disk() {
        let mut on_disk = BTreeMap::new();
        read_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin"), Path::new(""), &mut on_disk);
        let mut embedded = BTreeMap::new();
        collect(&SOURCES, &mut embedded);
        assert_eq!(embedded.keys().collect::<Vec<_>>(), on_disk.keys().collect::<Vec<_>>());
        for (path, contents) in &on_disk {
            assert!(embedded.get(path) == Some(contents), "{path} is older in the binary");
        }
    }

    type Files = BTreeMap<String, Vec<u8>>;

    fn read_folder(folder: &Path, below: &Path, found: &mut Files) {
        for entry in std::fs::read_dir(folder).expect("plugin/ can be read") {
            let entry = entry.expect("plugin/ can be read");
            let path = below.join(entry.file_name());
            if entry.path().is_dir() {
                read_folder(&entry.path(), &path, found);
            } else {
                found.insert(unix(&path), std::fs::read(entry.path()).expect("plugin/ can be read"));
            }
        }
    }

    fn collect(dir: &Dir<'_>, found: &mut Files) {
        for file in dir.files() {
            found.insert(unix(file.path()), file.contents().to_vec());
        }
        dir.dirs().for_each(|dir| collect(dir, found));
    }

    fn unix(path: &Path) -> String {
        path.to_string_lossy().replace('\\', "/")
    }
}
