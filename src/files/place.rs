//! Where files may be written: inside the project's sources, as they are at that moment.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::WriteError;

/// The places that a project takes its files from.
#[derive(Debug, Clone)]
pub struct Sources {
    folder: PathBuf,
    roots: Vec<PathBuf>,
    outside: bool,
}

impl Sources {
    /// The `$path`s of the project in `folder`. Those that lead out of that folder count only if
    /// `outside`.
    pub fn new(folder: PathBuf, roots: Vec<PathBuf>, outside: bool) -> Self {
        Self { folder, roots, outside }
    }

    /// Where the existing file `path` really is.
    pub(super) fn file(&self, path: &Path) -> Result<PathBuf, WriteError> {
        let real = fs::canonicalize(path).map_err(|error| WriteError::io(path, error))?;
        if !self.contain(&real) {
            return Err(WriteError::Outside(path.to_path_buf()));
        }
        if real.is_file() { Ok(real) } else { Err(WriteError::NotText(path.to_path_buf())) }
    }

    /// Where the existing folder `path` really is.
    pub(super) fn folder(&self, path: &Path) -> Result<PathBuf, WriteError> {
        let real = fs::canonicalize(path).map_err(|error| WriteError::io(path, error))?;
        if self.contain(&real) && real.is_dir() { Ok(real) } else { Err(WriteError::Outside(path.to_path_buf())) }
    }

    fn contain(&self, real: &Path) -> bool {
        let Ok(folder) = fs::canonicalize(&self.folder) else { return false };
        let roots = self.roots.iter().filter_map(|root| fs::canonicalize(root).ok());
        let mut allowed = roots.filter(|root| self.outside || root.starts_with(&folder));
        allowed.any(|root| real.starts_with(&root))
    }
}

const MARK: &str = ".rojo-mcp-";

/// A name for a file of ours beside `place`.
pub(super) fn scratch_name(place: &Path) -> String {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    // A name may have 255 bytes.
    let start: String = name.chars().take(40).collect();
    format!(".{start}{MARK}{}", uuid::Uuid::new_v4().simple())
}

pub(super) fn is_scratch(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with('.') && name.contains(MARK))
}
