//! Where the state of a project lies: with the user, not in the project.
//!
//! A project that is cloned or downloaded must not bring bases, ports or tokens of its own, so all
//! that we keep is in the user's state folder, in a folder of its own for each project.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use sha1::{Digest, Sha1};

/// Names another state folder than the user's, for tests and unusual set-ups.
pub const STATE_FOLDER_VARIABLE: &str = "ROJO_MCP_STATE";

/// The state folder of one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// That of the project file at `project` ([`find_project`] names it for a folder), in the user's
    /// state folder: `$ROJO_MCP_STATE`, or `rojo-mcp` below the place that the system has for such
    /// things. A folder and the project file in it would have two.
    ///
    /// [`find_project`]: crate::session::find_project
    ///
    /// # Errors
    /// The project does not exist, the user has no such folder, or it cannot be made.
    pub fn of(project: &Path) -> io::Result<Self> {
        Self::below(&root()?, project)
    }

    /// That of the user, for what is no single project's.
    ///
    /// # Errors
    /// The user has no such folder, or it cannot be made.
    pub fn of_user() -> io::Result<Self> {
        let root = root()?;
        make_private(&root)?;
        Ok(Self(root))
    }

    /// That of the project at `project`, below `root`.
    ///
    /// # Errors
    /// The project does not exist, or the folder cannot be made.
    pub fn below(root: &Path, project: &Path) -> io::Result<Self> {
        let canonical = project.canonicalize()?;
        // A folder's own project file may be a link to one that other folders have as well.
        let canonical = match as_folder(project) {
            folder if folder == project => canonical,
            folder if folder.as_os_str().is_empty() => Path::new(".").canonicalize()?,
            folder => folder.canonicalize()?,
        };
        let canonical = as_folder(&canonical);
        let digest = Sha1::digest(canonical.as_os_str().as_encoded_bytes());
        let folder = root.join(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        make_private(&folder)?;
        Ok(Self(folder))
    }

    /// The path of something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// The user's state folder.
fn root() -> io::Result<PathBuf> {
    match std::env::var_os(STATE_FOLDER_VARIABLE) {
        Some(root) => Ok(PathBuf::from(root)),
        None => Ok(dirs::state_dir()
            .or_else(dirs::data_local_dir)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the system names no folder for state"))?
            .join("rojo-mcp")),
    }
}

/// Write a file of ours in a state folder, for the user's eyes alone, whole or not at all.
///
/// # Errors
/// As the system says.
pub fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = write_new(&beside, text).and_then(|()| replace(&beside, path));
    if written.is_err() {
        remove_own(&beside);
    }
    written
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    remove_own(path);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

#[expect(clippy::disallowed_methods, reason = "a file of ours in the user's state folder, not one of the project")]
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Take a file of ours away, if it is there.
#[expect(clippy::disallowed_methods, reason = "a file of ours in the user's state folder, not one of the project")]
pub fn remove_own(path: &Path) {
    // It may be gone already; that is what is wanted.
    let _ = fs::remove_file(path);
}

/// A folder stands for its default project file.
fn as_folder(project: &Path) -> &Path {
    let is_default = project
        .file_name()
        .is_some_and(|name| ["default.project.json", "default.project.jsonc"].iter().any(|default| name == *default));
    project.parent().filter(|_| is_default).unwrap_or(project)
}

/// Make `folder`, for the user's eyes alone.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_project_has_a_folder_of_its_own_whatever_path_leads_to_it() {
        let root = tempfile::tempdir().expect("a folder");
        let projects = tempfile::tempdir().expect("a folder");
        let (one, two) = (projects.path().join("one"), projects.path().join("two"));
        fs::create_dir_all(&one).expect("a project");
        fs::create_dir_all(&two).expect("a project");

        let state = |project: &Path| StateFolder::below(root.path(), project).expect("a state folder");
        assert_eq!(state(&one), state(&two.join("../one")));
        assert_ne!(state(&one), state(&two));
        fs::File::create(one.join("default.project.json")).expect("a project file");
        fs::File::create(one.join("test.project.json")).expect("another");
        assert_eq!(state(&one), state(&one.join("default.project.json")));
        assert_ne!(state(&one), state(&one.join("test.project.json")));
        #[cfg(unix)]
        {
            let shared = two.join("default.project.json");
            std::os::unix::fs::symlink(one.join("default.project.json"), &shared).expect("a link");
            assert_eq!(state(&shared), state(&two), "a folder's own, though its project file lies elsewhere");
        }
        assert!(state(&one).path("store.redb").starts_with(root.path()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = state(&one).0.metadata().expect("it was made").permissions().mode();
            assert_eq!(mode & 0o077, 0, "others may not look into it");
        }
    }

    #[test]
    fn a_project_that_is_not_there_has_none() {
        let root = tempfile::tempdir().expect("a folder");
        let error = StateFolder::below(root.path(), &root.path().join("nowhere")).expect_err("no project");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
