//! Questions about the tree: where an instance is, what a path names.

use std::path::{Path, PathBuf};

use librojo::{InstanceWithMeta, RojoTree};
use memofs::Vfs;
use rbx_dom_weak::{InstanceBuilder, WeakDom, types::Ref};

use super::{
    disk, engine::Board, mirror::is_script, place, plain::PlainScripts, roots::relative, state::State, types::Look,
    wire, writable,
};

/// Knows which files there are.
pub(super) struct Looker {
    files: Vfs,
    plain: PlainScripts,
    folder: PathBuf,
}

impl Looker {
    pub fn new(board: &Board) -> Self {
        let folder = board.project.read().folder.clone();
        Self { files: Vfs::new(board.files.clone()), plain: board.plain.clone(), folder }
    }

    /// A path below the project's folder.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        disk::normal(&self.folder.join(path))
    }

    fn exists(&self, path: &Path) -> bool {
        self.plain.holds(path) || self.files.exists(path).unwrap_or(false)
    }

    pub fn look(&self, state: &State, id: Ref) -> Option<Look> {
        let instance = state.tree.get_instance(id)?;
        Some(Look {
            id: wire::node_id(id),
            parent: instance.parent().is_some().then(|| wire::node_id(instance.parent())),
            path: path_of(&state.tree, instance),
            class_name: instance.class_name().as_str().to_owned(),
            fs_path: self.file_of(&state.tree, instance).map(|path| slashes(&relative(&self.folder, path))),
            source: wire::source(&instance).map(str::to_owned),
            hash: state.hash(instance),
            properties: writable::properties(&instance),
            ignore_unknown: instance.metadata().ignore_unknown_instances,
        })
    }

    /// The instances that come from the file or folder at `path`.
    pub fn at_file(&self, tree: &RojoTree, path: &str) -> Vec<Ref> {
        let path = disk::normal(&self.folder.join(path));
        let ids = tree.get_ids_at_path(&path).iter().copied();
        ids.filter(|_| self.exists(&path)).collect()
    }

    /// Its own file; of what lies inside a model, the model's.
    fn file_of<'a>(&self, tree: &'a RojoTree, instance: InstanceWithMeta<'a>) -> Option<&'a Path> {
        let own = self.own_file(instance);
        if own.is_some() || wire::source(&instance).is_some() {
            return own;
        }
        let above = std::iter::successors(tree.get_instance(instance.parent()), |one| tree.get_instance(one.parent()));
        above.map(|one| self.own_file(one)).find_map(|file| file)
    }

    /// The script's own file; of another instance the first of its paths that exists.
    fn own_file<'a>(&self, instance: InstanceWithMeta<'a>) -> Option<&'a Path> {
        let existing = instance.metadata().relevant_paths.iter().map(PathBuf::as_path);
        let existing: Vec<&Path> = existing.filter(|path| self.exists(path)).collect();
        if wire::source(&instance).is_some() {
            // Where a folder has both, `init.luau` counts.
            let scripts = || existing.iter().filter(|path| is_script(path));
            let luau = scripts().find(|path| path.extension().is_some_and(|extension| extension == "luau"));
            if let Some(file) = luau.or_else(|| scripts().next()) {
                return Some(file);
            }
        }
        existing.first().copied()
    }
}

fn slashes(path: &Path) -> PathBuf {
    if cfg!(windows) { PathBuf::from(path.to_string_lossy().replace('\\', "/")) } else { path.to_path_buf() }
}

fn path_of(tree: &RojoTree, instance: InstanceWithMeta<'_>) -> String {
    let up = std::iter::successors(Some(instance), |instance| tree.get_instance(instance.parent()));
    let named = up.filter(|instance| !is_data_model(instance));
    let mut names: Vec<&str> = named.map(|instance| instance.name()).collect();
    names.reverse();
    names.join(".")
}

fn is_data_model(instance: &InstanceWithMeta<'_>) -> bool {
    instance.parent().is_none() && instance.class_name().as_str() == "DataModel"
}

/// The instances at an instance path. Names may hold the separator, so every reading is followed.
pub(super) fn at_instance_path(tree: &RojoTree, path: &str) -> Vec<Ref> {
    let root = tree.root();
    let path = path.trim_matches(['.', '/']);
    let rest = path.strip_prefix("game").and_then(|rest| rest.strip_prefix(['.', '/'])).unwrap_or(path);
    if is_data_model(&root) {
        if path.is_empty() || path == "game" {
            return vec![root.id()];
        }
        return below(tree, root, rest);
    }
    let mut found = below(tree, root, rest);
    found.extend(step(root, rest).into_iter().flat_map(|rest| finish(tree, root, rest)));
    found
}

fn below(tree: &RojoTree, parent: InstanceWithMeta<'_>, path: &str) -> Vec<Ref> {
    let children = parent.children().iter().filter_map(|&child| tree.get_instance(child));
    let service = is_data_model(&parent);
    let mut found = Vec::new();
    for child in children {
        let by_class = || service.then(|| cut(child.class_name().as_str(), path)).flatten();
        if let Some(rest) = step(child, path).or_else(by_class) {
            found.extend(finish(tree, child, rest));
        }
    }
    found
}

fn finish(tree: &RojoTree, instance: InstanceWithMeta<'_>, rest: &str) -> Vec<Ref> {
    if rest.is_empty() { vec![instance.id()] } else { below(tree, instance, rest) }
}

/// What is left of `path` once it has named `instance`.
fn step<'a>(instance: InstanceWithMeta<'_>, path: &'a str) -> Option<&'a str> {
    cut(instance.name(), path)
}

fn cut<'a>(name: &str, path: &'a str) -> Option<&'a str> {
    let rest = path.strip_prefix(name)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(['.', '/']).filter(|rest| !rest.is_empty()) }
}

/// The tree as a binary model. Properties that cannot be written are left out.
pub(super) fn place_model(tree: &RojoTree) -> Vec<u8> {
    let root = tree.root();
    let roots = if is_data_model(&root) { root.children().to_vec() } else { vec![root.id()] };
    let framed = place::with_frames(tree.inner(), &roots);
    let (dom, tops) = framed.as_ref().map_or((tree.inner(), &roots), |(dom, tops)| (dom, tops));
    encode(dom, tops).unwrap_or_else(|error| {
        log::warn!("the tree cannot be written whole, so without properties but texts: {error}");
        let (plain, roots) = plain_copy(tree, &roots);
        encode(&plain, &roots).unwrap_or_default()
    })
}

fn encode(dom: &WeakDom, roots: &[Ref]) -> Result<Vec<u8>, rbx_binary::EncodeError> {
    let mut model = Vec::new();
    rbx_binary::to_writer(&mut model, dom, roots)?;
    Ok(model)
}

fn plain_copy(tree: &RojoTree, roots: &[Ref]) -> (WeakDom, Vec<Ref>) {
    let mut copy = WeakDom::new(InstanceBuilder::new("DataModel"));
    let top = copy.root_ref();
    let mut todo: Vec<(Ref, Ref)> = roots.iter().map(|&id| (top, id)).collect();
    while let Some((parent, id)) = todo.pop() {
        let Some(instance) = tree.get_instance(id) else { continue };
        let mut builder = InstanceBuilder::new(instance.class_name()).with_name(instance.name());
        if let Some(text) = wire::source(&instance) {
            builder = builder.with_property("Source", text);
        }
        let made = copy.insert(parent, builder);
        todo.extend(instance.children().iter().map(|&child| (made, child)));
    }
    let roots = copy.root().children().to_vec();
    (copy, roots)
}
