//! The tools that bring files and Studio together.

use std::{collections::HashSet, sync::Arc, time::Duration};

use super::{
    answers::Synced,
    args::{ResolveArgs, SyncArgs, Take},
    backend::{Backend, ProgressSink},
    tools::{problem_lines, wrong_answer},
};
use crate::{
    core::{
        bridge::{Answer, Ask},
        error::ToolError,
        protocol::SyncMode,
        sync::{self, Forced, Resolution},
    },
    session::Target,
};

/// How long a sync waits: below the minute after which clients give up.
const SYNC_PATIENCE: Duration = Duration::from_secs(50);
/// How long it waits for a caller that sees progress: a person may take ten minutes to answer.
const REVIEW_PATIENCE: Duration = Duration::from_secs(11 * 60);

pub(super) async fn run_sync(
    backend: Arc<Backend>,
    args: SyncArgs,
    progress: Option<ProgressSink>,
) -> Result<Synced, ToolError> {
    let SyncArgs { studio, mode, paths, overrides, allow_removals } = args;
    let overrides = overrides.unwrap_or_default();
    check_overrides(&overrides)?;
    let paths = paths.map(|paths| project_paths(&backend, paths)).transpose()?;
    let patience = if progress.is_some() { REVIEW_PATIENCE } else { SYNC_PATIENCE };
    let args = sync::SyncArgs { mode, paths, overrides, allow_removals, ..sync::SyncArgs::default() };
    run(&backend, studio, patience, args, progress).await
}

async fn run(
    backend: &Backend,
    studio: Option<String>,
    patience: Duration,
    args: sync::SyncArgs,
    progress: Option<ProgressSink>,
) -> Result<Synced, ToolError> {
    match backend.call(studio, patience, Ask::Sync(args), progress).await? {
        Answer::Receipt(mut receipt) => {
            backend.name_files(&mut receipt);
            Ok(Synced::new(receipt, problem_lines(backend)))
        }
        _ => Err(wrong_answer("sync")),
    }
}

pub(super) async fn resolve(
    backend: Arc<Backend>,
    args: ResolveArgs,
    progress: Option<ProgressSink>,
) -> Result<Synced, ToolError> {
    let ResolveArgs { studio, id, take, text, disk_hash, studio_hash } = args;
    let take = match (take, text) {
        (Take::Disk, None) => Forced::Push,
        (Take::Studio, None) => Forced::Pull,
        (Take::Text, Some(text)) => Forced::Text(text),
        (Take::Text, None) => return Err(ToolError::bad_arguments("argument `text`: `take` says text, so give it")),
        (_, Some(_)) => {
            return Err(ToolError::bad_arguments("argument `text`: it counts only where `take` says text"));
        }
    };
    let resolution = Some(Resolution { id, take, disk: disk_hash, studio: studio_hash });
    let args = sync::SyncArgs { mode: SyncMode::Fastfail, resolution, ..sync::SyncArgs::default() };
    run(&backend, studio, SYNC_PATIENCE, args, progress).await
}

/// Two decisions about one change would leave one of them out.
fn check_overrides(overrides: &[sync::Override]) -> Result<(), ToolError> {
    let mut seen = HashSet::new();
    match overrides.iter().position(|one| !seen.insert(&one.id)) {
        Some(at) => Err(ToolError::bad_arguments(format!("argument `overrides[{at}].id`: it is there twice"))),
        None => Ok(()),
    }
}

/// Paths as a person or agent writes them, as paths below the project's folder.
fn project_paths(backend: &Backend, paths: Vec<String>) -> Result<Vec<String>, ToolError> {
    let folder = backend.session.project().folder.clone();
    paths
        .into_iter()
        .map(|path| {
            let below = crate::core::paths::relative_to(&folder, &path).ok_or_else(|| {
                let folder = folder.display();
                ToolError::bad_arguments(format!("argument `paths`: {path:?} is not a path below {folder}"))
            })?;
            if !folder.join(&below).exists() && backend.session.find(&Target::FsPath(&below)).is_empty() {
                return Err(ToolError::bad_arguments(format!(
                    "argument `paths`: there is no {path:?}; a file that was deleted shows in a sync without `paths`"
                )));
            }
            Ok(below)
        })
        .collect()
}
