//! Where files may be written: inside the project's sources, as they are at that moment.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{ScriptFile, WriteError};

/// Says why a new file would not be read as a script of that name and kind.
pub type Rules = Arc<dyn Fn(&Path, &str, ScriptFile) -> Result<(), String> + Send + Sync>;

/// The places that a project takes its files from.
#[derive(Clone)]
pub struct Sources {
    folder: PathBuf,
    roots: Vec<PathBuf>,
    outside: bool,
    rules: Option<Rules>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Sources");
        shown.field("folder", &self.folder).field("roots", &self.roots).field("outside", &self.outside);
        shown.finish_non_exhaustive()
    }
}

impl Sources {
    /// The `$path`s of the project in `folder`. Those that lead out of that folder count only if
    /// `outside`.
    pub fn new(folder: PathBuf, roots: Vec<PathBuf>, outside: bool) -> Self {
        Self { folder, roots, outside, rules: None }
    }

    /// Make no file against the project's own rules: `globIgnorePaths` and `syncRules`.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { rules: Some(rules), ..self }
    }

    /// Whether a new file at `path` would be read as a script called `name`.
    pub(super) fn reads_back(&self, path: &Path, name: &str, kind: ScriptFile) -> Result<(), WriteError> {
        let Some(rules) = &self.rules else { return Ok(()) };
        rules(path, name, kind).map_err(|why| WriteError::NotReadBack { path: path.to_path_buf(), why })
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
