//! Where the state of a project lies: with the user, not in the project.
//!
//! A project that is cloned or downloaded must not bring bases, ports or tokens of its own, so all
//! that we keep is in the user's state folder, in a folder of its own for each project.

use std::{
    fs, io,
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
        let root = match std::env::var_os(STATE_FOLDER_VARIABLE) {
            Some(root) => PathBuf::from(root),
            None => dirs::state_dir()
                .or_else(dirs::data_local_dir)
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the system names no folder for state"))?
                .join("rojo-mcp"),
        };
        Self::below(&root, project)
    }

    /// That of the project at `project`, below `root`.
    ///
    /// # Errors
    /// The project does not exist, or the folder cannot be made.
    pub fn below(root: &Path, project: &Path) -> io::Result<Self> {
        let canonical = project.canonicalize()?;
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
