//! `globIgnorePaths` where librojo's own reading of them does not reach: in memory every path is
//! spelled without `..`, so that it no longer sees which project led there.

use std::path::Path;

use librojo::{InstanceContext, InstanceSnapshot, Project};

use super::{projects::is_default, roots::relative};

/// Whether the globs of the projects that led to `path` leave it out of the folder it lies in. The
/// last that matches decides.
pub(super) fn is_ignored(context: &InstanceContext, path: &Path) -> bool {
    let mut matching = context.path_ignore_rules.iter().filter(|rule| {
        let outside = || !path.starts_with(&rule.base_path) && rule.glob.is_match(relative(&rule.base_path, path));
        rule.matches(path) || outside()
    });
    matching.next_back().is_some_and(|rule| !rule.is_negation())
}

/// Take out of `snapshot` what librojo would not have put in, had it seen the way to it.
pub(super) fn prune(snapshot: &mut InstanceSnapshot) {
    let context = &snapshot.metadata.context;
    let own = source(snapshot).map(Path::to_path_buf);
    snapshot.children.retain(|child| {
        let entry = source(child).and_then(|path| entry(path, own.as_deref()));
        entry.is_none_or(|entry| !is_ignored(context, entry))
    });
    snapshot.children.iter_mut().for_each(prune);
}

fn source(snapshot: &InstanceSnapshot) -> Option<&Path> {
    snapshot.metadata.instigating_source.as_ref().map(|source| source.path())
}

/// The file or folder at `path`, as its folder lists it. `None`: no folder did, but a node of the
/// project file `above`.
fn entry<'a>(path: &'a Path, above: Option<&Path>) -> Option<&'a Path> {
    if Project::is_project_file(path) && above == Some(path) {
        return None;
    }
    let name = path.file_name()?.to_str()?;
    if is_default(path) || name.starts_with("init.") { path.parent() } else { Some(path) }
}
