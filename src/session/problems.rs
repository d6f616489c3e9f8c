//! What a session says of itself that is not as it should be.

use std::path::{Path, PathBuf};

use super::types::ProjectInfo;

/// So many files that are not served are named; a whole folder of them would fill every answer.
pub(super) const MOST_LEFT_OUT: usize = 30;

/// Whether the tree follows the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Live,
    /// Something went wrong; until the session has looked at everything again, the tree may be
    /// stale.
    Behind {
        /// What went wrong.
        reason: String,
    },
    /// It does not, and will not again.
    Dead {
        /// What ended it.
        reason: String,
    },
}

/// Something that is not as it should be, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What sort of problem.
    pub kind: ProblemKind,
    /// The file or folder, where there is one.
    pub path: Option<PathBuf>,
    /// What is wrong with it.
    pub message: String,
}

/// What sort of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// A file or folder is not served; the rest is.
    LeftOut,
    /// The project file cannot be used; the last good tree is kept.
    LastGoodTree,
    /// The system does not report all changes.
    Unwatched,
    /// The session is looking at everything again.
    Behind,
    /// The session has ended.
    Dead,
    /// A setting of the project takes effect at the next start only.
    Restart,
}

impl Problem {
    pub(super) fn at(path: &Path, message: &str) -> Self {
        Self { kind: ProblemKind::LeftOut, path: Some(path.to_path_buf()), message: message.to_owned() }
    }

    /// What the person or agent can do about it.
    pub fn hint(&self) -> &'static str {
        match self.kind {
            ProblemKind::LeftOut => "mend the file; it is read again as soon as it is saved",
            ProblemKind::LastGoodTree => "mend the project file; it is read again as soon as it is saved",
            ProblemKind::Unwatched => {
                "let the system watch more files (Linux: fs.inotify.max_user_watches), and start rojo-mcp again"
            }
            ProblemKind::Behind => "wait a moment; `sync` looks at every file by itself",
            ProblemKind::Dead => "start rojo-mcp again, and report the panic that its log shows",
            ProblemKind::Restart => "start rojo-mcp again, or undo that edit",
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {}", path.display(), self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// What the health of a session says of its tree.
pub(super) fn of_health(health: &Health) -> Option<Problem> {
    let (kind, message) = match health {
        Health::Live => return None,
        Health::Behind { reason } => {
            (ProblemKind::Behind, format!("the tree may be stale ({reason}); every file is looked at again"))
        }
        Health::Dead { reason } => {
            (ProblemKind::Dead, format!("the tree is stale: the session no longer follows the files ({reason})"))
        }
    };
    Some(Problem { kind, path: None, message })
}

/// The settings that were taken at the start and read otherwise now.
pub(super) fn needing_restart(started: &ProjectInfo, now: &ProjectInfo) -> Option<Problem> {
    let settings = [
        ("servePort", started.serve_port != now.serve_port),
        ("serveAddress", started.serve_address != now.serve_address),
        ("serveAllowedHosts", started.serve_allowed_hosts != now.serve_allowed_hosts),
    ];
    let edited: Vec<&str> = settings.into_iter().filter(|(_, edited)| *edited).map(|(name, _)| name).collect();
    let message = format!("restart needed: {} was edited, and counts at the start only", edited.join(" and "));
    (!edited.is_empty()).then(|| Problem { kind: ProblemKind::Restart, path: Some(now.file.clone()), message })
}

/// The problems, with no more than [`MOST_LEFT_OUT`] files that are not served, and how many more there are.
pub(super) fn first(problems: Vec<Problem>) -> Vec<Problem> {
    let mut left_out = 0;
    let listed = problems.into_iter().filter(|problem| {
        left_out += usize::from(problem.kind == ProblemKind::LeftOut);
        problem.kind != ProblemKind::LeftOut || left_out <= MOST_LEFT_OUT
    });
    let mut listed: Vec<Problem> = listed.collect();
    let more = left_out.saturating_sub(MOST_LEFT_OUT);
    if more > 0 {
        let message = format!("{more} more files or folders are left out");
        listed.push(Problem { kind: ProblemKind::LeftOut, path: None, message });
    }
    listed
}

/// In one line, what makes the tree other than the files; `None`: nothing does.
pub(super) fn warning(problems: &[Problem]) -> Option<String> {
    let loud = [ProblemKind::Dead, ProblemKind::Behind, ProblemKind::LastGoodTree, ProblemKind::Unwatched];
    let mut said: Vec<String> =
        problems.iter().filter(|problem| loud.contains(&problem.kind)).map(ToString::to_string).collect();
    match problems.iter().filter(|problem| problem.kind == ProblemKind::LeftOut).count() {
        0 => {}
        1 => said.push("1 file or folder is left out of the tree; `status` names it".to_owned()),
        count => said.push(format!("{count} files or folders are left out of the tree; `status` names them")),
    }
    (!said.is_empty()).then(|| said.join("; "))
}
