//! What we hold at which path, by our last look at the disk.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use super::disk::Stamp;

/// A file that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownFile {
    stamp: Stamp,
    /// An equal stamp means an equal file.
    settled: bool,
}

impl KnownFile {
    /// Whether the file that now has this stamp is certainly the same.
    pub fn is_still(&self, stamp: Option<Stamp>) -> bool {
        self.settled && stamp == Some(self.stamp)
    }
}

/// A folder that was listed.
#[derive(Debug)]
pub(super) struct Folder {
    /// Where it is once links are resolved.
    pub real: PathBuf,
    /// Its files, and `None` for a folder.
    children: BTreeMap<OsString, Option<KnownFile>>,
}

impl Folder {
    pub fn names(&self) -> impl Iterator<Item = &OsString> {
        self.children.keys()
    }

    /// Those of its folders.
    pub fn folders(&self) -> impl Iterator<Item = &OsString> {
        self.children.iter().filter(|(_, file)| file.is_none()).map(|(name, _)| name)
    }

    pub fn has(&self, name: &OsStr) -> bool {
        self.children.contains_key(name)
    }
}

/// What stood at a path that is held no more.
pub(super) enum Removed {
    File,
    Folder(Folder),
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Entries {
    folders: HashMap<PathBuf, Folder>,
    /// Files whose folder is no part of the project.
    lone: HashMap<PathBuf, KnownFile>,
}

impl Entries {
    pub fn folder(&self, path: &Path) -> Option<&Folder> {
        self.folders.get(path)
    }

    pub fn file(&self, path: &Path) -> Option<&KnownFile> {
        match self.folders.get(path.parent()?) {
            Some(folder) => folder.children.get(path.file_name()?)?.as_ref(),
            None => self.lone.get(path),
        }
    }

    pub fn holds(&self, path: &Path) -> bool {
        self.file(path).is_some() || self.folders.contains_key(path)
    }

    pub fn add_file(&mut self, path: &Path, stamp: Stamp) {
        let file = KnownFile { stamp, settled: stamp.settled() };
        if !self.name_in_parent(path, Some(file)) {
            self.lone.insert(path.to_path_buf(), file);
        }
    }

    pub fn add_folder(&mut self, path: &Path, real: PathBuf) {
        self.name_in_parent(path, None);
        self.folders.insert(path.to_path_buf(), Folder { real, children: BTreeMap::new() });
    }

    /// Takes away what is at `path`: a folder with its files, but not the folders in it.
    pub fn remove(&mut self, path: &Path) -> Option<Removed> {
        let parent = path.parent().and_then(|parent| self.folders.get_mut(parent));
        let child = parent.and_then(|parent| parent.children.remove(path.file_name()?));
        let lone = self.lone.remove(path);
        match self.folders.remove(path) {
            Some(folder) => Some(Removed::Folder(folder)),
            None => child.flatten().or(lone).map(|_| Removed::File),
        }
    }

    /// Returns whether the parent is held.
    fn name_in_parent(&mut self, path: &Path, file: Option<KnownFile>) -> bool {
        let parent = path.parent().and_then(|parent| self.folders.get_mut(parent));
        let Some((parent, name)) = parent.zip(path.file_name()) else { return false };
        match parent.children.get_mut(name) {
            Some(known) => *known = file,
            None => _ = parent.children.insert(name.to_owned(), file),
        }
        true
    }
}
