//! With which status a command ends.

use std::process::ExitCode;

use crate::core::{
    error::ErrorCode,
    sync::{Receipt, SyncStatus},
};

/// What `--help` says of the statuses.
pub(super) const STATUSES: &str = "\
Exit status:
  0  done, or nothing to do
  1  anything that is not below
  2  the command line is wrong, or an argument of it (such as a path outside the project)
  3  no Studio is connected, or none of that name
  4  something is unresolved: it needs a decision, and is listed
  5  rejected: nothing was applied, because nobody agreed to it
  6  something was tried and failed; what was done is listed
  7  several Studios are connected: say which with --studio";

/// The statuses of the commands that work with Studio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    NoStudio = 3,
    Unresolved = 4,
    Rejected = 5,
    Partial = 6,
    Ambiguous = 7,
}

impl Exit {
    /// Of a call that failed.
    pub(super) fn of_error(code: ErrorCode) -> Self {
        match code {
            ErrorCode::BadArguments => Self::Usage,
            ErrorCode::NoStudio | ErrorCode::NoTarget | ErrorCode::StudioLeft | ErrorCode::Reconnecting => {
                Self::NoStudio
            }
            ErrorCode::AmbiguousStudio => Self::Ambiguous,
            _ => Self::Failed,
        }
    }

    /// Of a sync. What needs a decision comes before what failed: it will not go away by itself.
    pub(super) fn of_receipt(receipt: &Receipt) -> Self {
        match receipt.status {
            _ if receipt.unresolved > 0 => Self::Unresolved,
            SyncStatus::FastfailUnresolved => Self::Unresolved,
            SyncStatus::Rejected => Self::Rejected,
            _ if receipt.failed > 0 => Self::Partial,
            SyncStatus::Success | SyncStatus::Empty | SyncStatus::Dryrun => Self::Done,
            SyncStatus::Partial => Self::Partial,
            SyncStatus::Error | SyncStatus::AlreadyConnected | SyncStatus::SyncInProgress => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
