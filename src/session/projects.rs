//! Project files as the mirror needs them: which paths they bring in, and in a form in which
//! librojo finds those in memory.

use std::path::{Path, PathBuf};

use librojo::{DEFAULT_PROJECT_NAMES, InstanceContext, PathNode, Project, ProjectNode, snapshot_from_vfs};
use memofs::{InMemoryFs, Vfs, VfsSnapshot};

use super::{disk, jsonc};

/// A project file that could be read.
#[derive(Debug)]
pub(super) struct ProjectFile {
    pub project: Project,
    /// Its `$path`s, absolute.
    pub roots: Vec<PathBuf>,
    /// What stands for the file in memory; `None`: the file itself will do.
    pub rewritten: Option<Vec<u8>>,
}

/// Read the project file at `path` from memory.
///
/// # Errors
/// Rojo's words for what is wrong with it, all causes in one line.
pub(super) fn load(vfs: &Vfs, path: &Path) -> Result<ProjectFile, String> {
    let name = instance_name(path);
    let mut project = Project::load_exact(vfs, path, Some(name)).map_err(|error| causes(&error))?;
    let folder = project.folder_location().to_path_buf();
    let mut roots = Vec::new();
    let moved = resolve(&mut project.tree, &folder, &mut roots);
    // Memory knows no `..`: a path that holds one is spelled out.
    let rewritten = moved.then(|| serde_json::to_vec(&project).map_err(|error| error.to_string())).transpose()?;
    Ok(ProjectFile { project, roots, rewritten })
}

/// What is wrong with the text of a project file, with the line: librojo's own error keeps that to
/// itself. `None`: nothing that this finds.
pub(super) fn diagnose(bytes: &[u8]) -> Option<String> {
    let plain = jsonc::plain(bytes);
    if plain.iter().all(u8::is_ascii_whitespace) {
        return Some("line 1: it is empty, and must hold a JSON object with a `tree`".to_owned());
    }
    // As a plain JSON module the same text makes librojo say where the syntax goes wrong.
    let mut fs = InMemoryFs::new();
    let file = Path::new("/project.json");
    fs.load_snapshot(file, VfsSnapshot::file(bytes)).ok()?;
    if let Err(error) = snapshot_from_vfs(&InstanceContext::new(), &Vfs::new(fs), file) {
        return Some(error.root_cause().to_string());
    }
    let error = serde_json::from_slice::<Project>(&plain).err()?;
    error.is_data().then(|| error.to_string())
}

/// What the file `x.project.json` calls its instance, unless it says so itself.
fn instance_name(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_suffix(".project.json").or_else(|| name.strip_suffix(".project.jsonc")).unwrap_or(name)
}

/// Make every `$path` below `node` known; returns whether any had to be spelled differently.
fn resolve(node: &mut ProjectNode, folder: &Path, roots: &mut Vec<PathBuf>) -> bool {
    let mut moved = false;
    if let Some(path) = &mut node.path {
        let spelled = folder.join(path.path());
        let normal = disk::normal(&spelled);
        if normal != spelled {
            moved = true;
            match path {
                PathNode::Required(path) => path.clone_from(&normal),
                PathNode::Optional(path) => path.optional.clone_from(&normal),
            }
        }
        roots.push(normal);
    }
    for child in node.children.values_mut() {
        moved |= resolve(child, folder, roots);
    }
    moved
}

/// A project that stands in for one that cannot be used: an empty folder, whose children in Studio
/// are left alone.
pub(super) fn stand_in() -> Vec<u8> {
    br#"{"tree":{"$className":"Folder"}}"#.to_vec()
}

/// Whether `path` is the project file that stands for its folder.
pub(super) fn is_default(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| DEFAULT_PROJECT_NAMES.contains(&name))
}

/// Files beside `root` that librojo reads with it, if `root` is a file.
pub(super) fn companions(root: &Path) -> Vec<PathBuf> {
    let Some(name) = root.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    name.match_indices('.')
        .filter_map(|(at, _)| name.get(..at))
        .flat_map(|stem| ["json", "jsonc"].map(|kind| root.with_file_name(format!("{stem}.meta.{kind}"))))
        .collect()
}

/// An error with its causes, in one line.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
