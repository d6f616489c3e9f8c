//! Snapshots that one bad file cannot spoil. librojo fails a whole folder for it; here the file is
//! found, withdrawn from memory and listed, and the rest is served.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use librojo::{DEFAULT_PROJECT_NAMES, InstanceContext, InstanceSnapshot, Project, ProjectNode, snapshot_from_vfs};
use memofs::{InMemoryFs, Vfs, VfsSnapshot};
use rbx_dom_weak::ustr;

use super::{
    check,
    globs::{self, is_ignored},
    graft::Grafter,
    mirror::Mirror,
    projects::{self, companions, stand_in},
};

/// Files that make a folder what it is, the likelier culprits first.
const INIT_FILES: [&str; 11] = [
    "init.meta.json",
    "init.meta.jsonc",
    "init.csv",
    "init.luau",
    "init.lua",
    "init.server.luau",
    "init.server.lua",
    "init.client.luau",
    "init.client.lua",
    "init.plugin.luau",
    "init.plugin.lua",
];

/// What librojo could not use.
#[derive(Debug)]
pub(super) struct Withdrawn {
    /// Its words.
    pub message: String,
    /// What memory held.
    content: Vec<u8>,
}

type Attempt = Result<Option<InstanceSnapshot>, String>;

impl Mirror {
    /// What stands at `path` as instances. Files that spoil it are withdrawn.
    ///
    /// # Errors
    /// The main project file cannot be used.
    pub fn snapshot(&mut self, context: &InstanceContext, path: &Path) -> Attempt {
        if self.plain.holds(path) {
            return Ok(Grafter::new(&self.plain).script(context, path));
        }
        let mut attempt = self.attempt(context, path);
        if attempt.is_err() {
            self.isolate(context, path);
            attempt = self.attempt(context, path).map_err(|message| self.diagnose(path).unwrap_or(message));
        }
        if let Ok(Some(snapshot)) = &mut attempt {
            Grafter::new(&self.plain).complete(snapshot);
            if self.roots.reach_outside() {
                globs::prune(snapshot);
            }
        }
        attempt
    }

    /// Try everything again that was withdrawn. Returns what that is.
    pub fn restore_withdrawn(&mut self) -> Vec<PathBuf> {
        let withdrawn = std::mem::take(&mut self.withdrawn);
        self.told = withdrawn.iter().map(|(path, file)| (path.clone(), file.message.clone())).collect();
        for (path, file) in &withdrawn {
            if self.originals.get(path) == Some(&file.content) {
                self.originals.remove(path);
            }
            self.store(path, file.content.clone());
        }
        withdrawn.into_keys().collect()
    }

    /// Withdraw project files that lead back to themselves.
    ///
    /// # Errors
    /// The main project file does.
    pub fn break_cycles(&mut self) -> Result<(), String> {
        loop {
            let withdrawn = &self.withdrawn;
            let skip = |path: &Path| withdrawn.contains_key(path);
            let Some(cycle) = check::find(&self.roots.projects, self.roots.file(), skip) else { return Ok(()) };
            let message = format!("its $path leads back to {}", cycle.to.display());
            if cycle.file == self.roots.file() {
                return Err(message);
            }
            self.withdraw(&cycle.file, message);
        }
    }

    fn attempt(&mut self, context: &InstanceContext, path: &Path) -> Attempt {
        match catch_unwind(AssertUnwindSafe(|| snapshot_from_vfs(context, &self.vfs, path))) {
            Ok(Ok(snapshot)) => Ok(snapshot),
            Ok(Err(error)) => Err(format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")),
            Err(_) => {
                self.vfs = Vfs::new(self.fs.clone()); // the panic may have poisoned its lock
                Err("Rojo's library panicked on it".to_owned())
            }
        }
    }

    /// What is wrong with the text of a project file.
    fn diagnose(&self, file: &Path) -> Option<String> {
        let is_project = Project::is_project_file(file);
        is_project.then(|| projects::diagnose(self.vfs.read(file).ok()?.as_slice())).flatten()
    }

    fn isolate(&mut self, context: &InstanceContext, path: &Path) {
        let Err(message) = self.attempt(context, path) else { return };
        if Project::is_project_file(path) {
            return self.isolate_project(context, path, message);
        }
        if !self.is_folder(path) {
            let metas = companions(path);
            if !self.withdraw_one_of(context, path, &metas, &message) {
                self.withdraw(path, message);
            }
            return;
        }
        let default = DEFAULT_PROJECT_NAMES.iter().map(|name| path.join(name)).find(|file| self.exists(file));
        if let Some(file) = default {
            return self.isolate_project(context, &file, message);
        }
        for child in self.children(path) {
            if !is_ignored(context, &child) {
                self.isolate(context, &child);
            }
        }
        let own: Vec<PathBuf> = INIT_FILES.iter().map(|name| path.join(name)).collect();
        if let Err(message) = self.attempt(context, path)
            && !self.withdraw_one_of(context, path, &own, &message)
        {
            for file in own {
                self.withdraw(&file, message.clone());
            }
        }
    }

    fn isolate_project(&mut self, context: &InstanceContext, file: &Path, message: String) {
        let Some(project) = self.roots.projects.get(file) else {
            let message = self.diagnose(file).unwrap_or(message);
            return self.withdraw(file, message);
        };
        let inner = context_inside(context, &project.project);
        for root in project.roots.clone() {
            if self.exists(&root) {
                self.isolate(&inner, &root);
            }
        }
        if let Err(message) = self.attempt(context, file) {
            self.withdraw(file, message);
        }
    }

    /// Withdraw the one file without which `path` can be used, if there is such a one.
    fn withdraw_one_of(
        &mut self,
        context: &InstanceContext,
        path: &Path,
        candidates: &[PathBuf],
        message: &str,
    ) -> bool {
        for candidate in candidates {
            let Ok(content) = self.vfs.read(candidate) else { continue };
            _ = self.vfs.remove_file(candidate); // it has just been read
            let helps = self.attempt(context, path).is_ok();
            self.store(candidate, content.to_vec());
            if helps {
                self.withdraw(candidate, message.to_owned());
                return true;
            }
        }
        false
    }

    fn withdraw(&mut self, path: &Path, message: String) {
        if path == self.roots.file() {
            return; // nothing can stand in for the project
        }
        let Ok(content) = self.vfs.read(path) else { return };
        let content = content.to_vec();
        if self.told.get(path) != Some(&message) {
            log::warn!("{}: {message}", path.display());
        }
        self.originals.entry(path.to_path_buf()).or_insert_with(|| content.clone());
        if Project::is_project_file(path) {
            self.store(path, stand_in());
        } else {
            _ = self.vfs.remove_file(path); // it has just been read
        }
        self.withdrawn.insert(path.to_path_buf(), Withdrawn { message, content });
    }
}

/// The context that `project` gives to what is in it. Its rules cannot be named from here, so
/// librojo makes it: of the same project with an empty tree.
fn context_inside(context: &InstanceContext, project: &Project) -> InstanceContext {
    let empty = ProjectNode { class_name: Some(ustr("Folder")), ..ProjectNode::default() };
    let mut hollow = project.clone();
    hollow.tree = empty;
    let inside = || {
        let mut fs = InMemoryFs::new();
        let bytes = serde_json::to_vec(&hollow).ok()?;
        fs.load_snapshot(&project.file_location, VfsSnapshot::file(bytes)).ok()?;
        let snapshot = snapshot_from_vfs(context, &Vfs::new(fs), &project.file_location).ok()??;
        Some(snapshot.metadata.context)
    };
    inside().unwrap_or_else(|| context.clone())
}
