//! What a tool can reach.

use std::{sync::Arc, time::Duration};

use crate::{
    core::{
        bridge::{Answer, Ask, Call},
        error::{ErrorCode, ToolError},
        ids::NodeId,
        play::OwnerId,
        review::ReviewAsk,
        sync::Receipt,
    },
    pairing::Pairing,
    session::{ServeSession, Target},
    store::Store,
    studio::{Hub, Report},
};

/// How long the text of a change may take that a review shows.
const REVIEW_PATIENCE: Duration = Duration::from_secs(10);

/// Files, Studios, and what the server says of itself.
pub struct Backend {
    /// Files and tree.
    pub session: Arc<ServeSession>,
    /// Studios.
    pub hub: Hub,
    /// What outlives the process.
    pub store: Store,
    /// For `status`.
    pub server: ServerInfo,
    /// Who calls, as the client calls itself.
    pub who: Option<String>,
    /// Which Studios may come in.
    pub pairing: Arc<Pairing>,
}

/// What the server says of itself.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    /// Our version.
    pub version: String,
    /// Where it listens, as a URL.
    pub url: String,
}

/// Where the reports of a call go.
#[derive(Debug, Clone)]
pub struct ProgressSink {
    /// There.
    pub to: tokio::sync::mpsc::UnboundedSender<Report>,
    /// The caller sees them, so it waits longer than a minute.
    pub is_seen: bool,
    /// The caller can ask a person.
    pub asks: bool,
    /// It does so between two calls, so nothing waits for the answer.
    pub calls_again: bool,
}

impl Backend {
    /// The same, for the calls of `owner`, who calls itself `who`.
    pub fn of(&self, owner: OwnerId, who: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            session: Arc::clone(&self.session),
            hub: self.hub.of(owner),
            store: self.store.clone(),
            server: self.server.clone(),
            who,
            pairing: Arc::clone(&self.pairing),
        })
    }

    /// Call a Studio.
    ///
    /// # Errors
    /// As the bridge settles it.
    pub async fn call(
        &self,
        studio: Option<String>,
        patience: Duration,
        ask: Ask,
        progress: Option<ProgressSink>,
    ) -> Result<Answer, ToolError> {
        self.hub.call(Call { studio, patience, ask, operation: None }, progress.map(|sink| sink.to)).await
    }

    /// Call a Studio for a change, which has one outcome if its caller gave it an id.
    ///
    /// # Errors
    /// As the bridge settles it.
    pub async fn change(&self, mut call: Call, progress: Option<ProgressSink>) -> Result<Answer, ToolError> {
        if let Ask::Sync(args) = &mut call.ask {
            args.who.clone_from(&self.who);
        }
        self.hub.call(call, progress.map(|sink| sink.to)).await
    }

    /// Ask about reviews.
    ///
    /// # Errors
    /// The server stops, or a text cannot be had.
    pub async fn review(&self, ask: ReviewAsk) -> Result<Answer, ToolError> {
        self.call(None, REVIEW_PATIENCE, Ask::Review(ask), None).await
    }

    /// Have the tree hold what the disk holds now.
    ///
    /// # Errors
    /// The disk could not be read.
    pub async fn catch_up(&self) -> Result<(), ToolError> {
        let session = Arc::clone(&self.session);
        let result = tokio::task::spawn_blocking(move || session.catch_up(None)).await;
        match result {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(ToolError::failed(format!("the project could not be read: {error}"), error.hint())),
            Err(error) => Err(ToolError::failed(
                format!("reading the project failed: {error}"),
                "this is a fault of the server; its log says more",
            )),
        }
    }

    /// Name the file of each change that has none. (A foreign plugin knows ids and no files.)
    pub fn name_files(&self, receipt: &mut Receipt) {
        let nameless = receipt.changes.iter_mut().filter(|change| change.fs_path.is_none());
        for (change, id) in nameless.filter_map(|change| change.id.map(|id| (change, id))) {
            let look = self.session.look(&[id]).1.into_iter().flatten().next();
            change.fs_path = look.and_then(|look| look.fs_path).map(|path| path.to_string_lossy().replace('\\', "/"));
        }
    }

    /// The one instance that `wanted` means.
    ///
    /// # Errors
    /// None, or several: they are listed with their ids.
    pub fn find_one(&self, wanted: &Target<'_>) -> Result<NodeId, ToolError> {
        let found = self.session.find(wanted);
        let name = match wanted {
            Target::FsPath(path) | Target::InstancePath(path) => path,
        };
        match found.as_slice() {
            [id] => Ok(*id),
            [] => Err(ToolError::new(
                ErrorCode::BadArguments,
                format!("nothing in the project is at {name:?}"),
                "correct it; what only Studio has can be read with run_code, as `return game.….Source`",
            )),
            several => {
                let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
                Err(ToolError::bad_arguments(format!(
                    "{} instances are at {name:?}; name one by `id`: {}",
                    several.len(),
                    ids.join(", ")
                )))
            }
        }
    }
}
