//! Who serves a project: one process at a time.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
};

use super::ServeFile;
use crate::state::StateFolder;

/// The right to serve a project, held by a lock that the system takes back when the process ends,
/// however it ends.
#[derive(Debug)]
pub struct Claim {
    state: StateFolder,
    /// Locked as long as it is open.
    #[expect(dead_code, reason = "held, not used")]
    lock: File,
    published: Option<ServeFile>,
}

impl Claim {
    /// Take it. `None`: another process has it, which serves the project or is about to.
    ///
    /// # Errors
    /// The state folder cannot be written, or its file system knows no locks.
    pub fn take(state: &StateFolder) -> io::Result<Option<Self>> {
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(state.path("serve.lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { state: state.clone(), lock, published: None })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Say where the server is.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn publish(&mut self, server: ServeFile) -> io::Result<()> {
        server.write(&self.state)?;
        self.published = Some(server);
        Ok(())
    }

    /// Say that the server is gone, and keep the lock until the process is: it may still have the
    /// project's state open.
    pub fn retire(self) {
        if let Some(server) = &self.published {
            server.remove(&self.state);
        }
        std::mem::forget(self);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(server) = &self.published {
            server.remove(&self.state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::Token;

    fn server(state: &StateFolder, token: &Token) -> ServeFile {
        ServeFile {
            pid: std::process::id(),
            address: "127.0.0.1:34872".parse().expect("an address"),
            token: token.clone(),
            version: crate::VERSION.into(),
            requires_token: false,
            project: state.path("default.project.json"),
        }
    }

    #[test]
    fn one_process_at_a_time_serves_a_project() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::below(folder.path(), folder.path()).expect("a state folder");
        let mut claim = Claim::take(&state).expect("it can be locked").expect("nobody has it");
        assert!(Claim::take(&state).expect("it can be tried").is_none());

        assert_eq!(ServeFile::read(&state), None);
        let told = server(&state, &Token::random());
        claim.publish(told.clone()).expect("written");
        assert_eq!(ServeFile::read(&state), Some(told));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = ServeFile::path(&state).metadata().expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "the token is for the user alone");
        }

        drop(claim);
        assert_eq!(ServeFile::read(&state), None, "a clean stop leaves nothing behind");
        let mut claim = Claim::take(&state).expect("it can be locked").expect("nobody has it");
        claim.publish(server(&state, &Token::random())).expect("written");
        claim.retire();
        assert_eq!(ServeFile::read(&state), None);
        assert!(Claim::take(&state).expect("it can be tried").is_none(), "this process has not ended");
    }

    #[test]
    fn a_stop_leaves_the_file_of_another_server_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::below(folder.path(), folder.path()).expect("a state folder");
        let mut claim = Claim::take(&state).expect("it can be locked").expect("nobody has it");
        claim.publish(server(&state, &Token::random())).expect("written");
        let other = server(&state, &Token::random());
        other.write(&state).expect("written");
        drop(claim);
        assert_eq!(ServeFile::read(&state), Some(other));
    }
}
