//! What the serve session says about itself and its tree.

use std::{collections::HashSet, net::IpAddr, path::PathBuf, sync::Arc, time::Instant};

use librojo::{Project, web_api::SubscribeMessage};

use crate::core::{ids::NodeId, protocol::PatchOp, text::TextHash, values::Properties};

/// Why a session cannot start or answer.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Nothing at the path, or a folder without a project file.
    #[error("no project file in {} (looked for {})", .folder.display(), .looked_for.join(", "))]
    NoProject {
        /// Where.
        folder: PathBuf,
        /// The file names that would have done.
        looked_for: Vec<String>,
    },
    /// The project file, or something that the project cannot do without, cannot be used.
    #[error("project {} cannot be used: {detail}", .file.display())]
    BrokenProject {
        /// The project file.
        file: PathBuf,
        /// Rojo's words, with the line where there is one.
        detail: String,
    },
    /// The path itself cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The thread that follows the files has ended.
    #[error("the session no longer follows the files: {reason}")]
    Dead {
        /// What ended it.
        reason: String,
    },
}

impl SessionError {
    /// What the person or agent can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoProject { .. } => "give the path of a project, or make one with `rojo-mcp init`",
            Self::BrokenProject { .. } => "correct the project file and start again",
            Self::Unreadable { .. } => "check that the path exists and that you may read it",
            Self::Dead { .. } => "restart rojo-mcp, and report the panic that its log shows",
        }
    }
}

/// The project's own settings, as they stand in the project file now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectInfo {
    /// The project's name: of the file's `name`, or of the folder.
    pub name: String,
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// The project file.
    pub file: PathBuf,
    /// `servePort`.
    pub serve_port: Option<u16>,
    /// `serveAddress`.
    pub serve_address: Option<IpAddr>,
    /// `serveAllowedHosts`.
    pub serve_allowed_hosts: Vec<String>,
    /// `servePlaceIds`. `None`: every place.
    pub serve_place_ids: Option<HashSet<u64>>,
    /// `blockedPlaceIds`.
    pub blocked_place_ids: Option<HashSet<u64>>,
    /// `gameId`.
    pub game_id: Option<u64>,
    /// `placeId`.
    pub place_id: Option<u64>,
}

impl ProjectInfo {
    pub(super) fn new(project: &Project) -> Self {
        Self {
            name: project.name.clone().unwrap_or_default(),
            folder: project.folder_location().to_path_buf(),
            file: project.file_location.clone(),
            serve_port: project.serve_port,
            serve_address: project.serve_address,
            serve_allowed_hosts: project.serve_allowed_hosts.clone(),
            serve_place_ids: project.serve_place_ids.clone(),
            blocked_place_ids: project.blocked_place_ids.clone(),
            game_id: project.game_id,
            place_id: project.place_id,
        }
    }

    /// Whether `other` wants to be served elsewhere, or to others.
    pub(super) fn listens_otherwise(&self, other: &Self) -> bool {
        let settings = |info: &Self| (info.serve_port, info.serve_address, info.serve_allowed_hosts.clone());
        settings(self) != settings(other)
    }
}

/// One change of the tree.
#[derive(Debug)]
pub struct Message {
    /// The version of the tree after it.
    pub cursor: u32,
    /// As Rojo's protocol says it.
    pub rojo: SubscribeMessage<'static>,
    /// As our own protocol says it. May be empty: it knows fewer properties.
    pub ops: Vec<PatchOp>,
    /// When.
    pub at: Instant,
}

/// Every change since some version of the tree.
#[derive(Debug)]
pub struct MessageBatch {
    /// The version after the last of them.
    pub cursor: u32,
    /// In order.
    pub messages: Vec<Arc<Message>>,
}

/// The history does not reach to that version of the tree: it is too old, or was never reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the changes since cursor {asked} are not known (history holds {oldest} to {newest}); read the tree again")]
pub struct CursorGone {
    /// The cursor that was asked for.
    pub asked: u32,
    /// The oldest from which the history leads on.
    pub oldest: u32,
    /// The current one.
    pub newest: u32,
}

/// One instance, looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Which.
    pub id: NodeId,
    /// Its parent; `None` for the root.
    pub parent: Option<NodeId>,
    /// Names from the root, joined by `.`; without the name of a DataModel root.
    pub path: String,
    /// `Instance.ClassName`.
    pub class_name: String,
    /// The script's file, or the file or folder that it comes from; relative to the project's
    /// folder, with `/`.
    pub fs_path: Option<PathBuf>,
    /// For scripts: the text.
    pub source: Option<String>,
    /// For scripts: the text's hash.
    pub hash: Option<TextHash>,
    /// What the files specify of it.
    pub properties: Properties,
    /// Children that the project does not know are left alone.
    pub ignore_unknown: bool,
}

/// How an instance can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// By its file or folder: relative to the project's folder, or absolute.
    FsPath(&'a str),
    /// By its path in the DataModel, separated by `.` or `/`; `game` may lead.
    InstancePath(&'a str),
}
