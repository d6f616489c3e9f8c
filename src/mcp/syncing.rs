//! The tools that bring files and Studio together.

use std::{collections::HashSet, sync::Arc, time::Duration};

use super::{
    answers::Synced,
    args::{ResolveArgs, SyncArgs, Take, UndoArgs},
    backend::{Backend, ProgressSink},
    operations::claim,
    tools::{self, wrong_answer},
};
use crate::{
    core::{
        bridge::{Answer, Ask, Call},
        error::ToolError,
        ids::{OpId, RequestId},
        operations::{Claim, Intent, Intention, Outcome},
        protocol::SyncMode,
        sync::{self, Forced, Resolution, Undo},
    },
    deletions,
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
    let claim = claim("sync", args.operation_id.as_deref(), &args)?;
    let SyncArgs { studio, mode, paths, overrides, allow_removals, operation_id: _ } = args;
    let overrides = overrides.unwrap_or_default();
    check_overrides(&overrides)?;
    let paths = paths.map(|paths| project_paths(&backend, paths)).transpose()?;
    for gone in paths.iter().flatten().filter(|path| is_gone(&backend, path)) {
        check_gone(&backend, studio.clone(), gone).await?;
    }
    let may_take_long = |sink: &ProgressSink| sink.is_seen || (sink.calls_again && mode == SyncMode::Manual);
    let asks = progress.as_ref().is_some_and(|sink| sink.asks);
    let patience = if progress.as_ref().is_some_and(may_take_long) { REVIEW_PATIENCE } else { SYNC_PATIENCE };
    let args = sync::SyncArgs { mode, paths, overrides, allow_removals, asks, ..sync::SyncArgs::default() };
    run(&backend, Call { studio, patience, ask: Ask::Sync(args), operation: claim }, progress).await
}

async fn run(backend: &Backend, call: Call, progress: Option<ProgressSink>) -> Result<Synced, ToolError> {
    match backend.change(call, progress).await? {
        Answer::Receipt(mut receipt) => {
            backend.name_files(&mut receipt);
            Ok(Synced::new(receipt, &backend.session.problems(), backend.session.warning()))
        }
        _ => Err(wrong_answer("sync")),
    }
}

pub(super) async fn resolve(
    backend: Arc<Backend>,
    args: ResolveArgs,
    progress: Option<ProgressSink>,
) -> Result<Synced, ToolError> {
    let claim = claim("resolve", args.operation_id.as_deref(), &args)?;
    let ResolveArgs { studio, id, take, text, disk_hash, studio_hash, operation_id: _ } = args;
    check_id("id", &id)?;
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
    let call = Call { studio, patience: SYNC_PATIENCE, ask: Ask::Sync(args), operation: claim };
    run(&backend, call, progress).await
}

pub(super) async fn undo(
    backend: Arc<Backend>,
    args: UndoArgs,
    progress: Option<ProgressSink>,
) -> Result<Synced, ToolError> {
    let claim = claim("undo", args.operation_id.as_deref(), &args)?;
    let UndoArgs { studio, change, partial, operation_id: _ } = args;
    if let Some(entry) = deletion(&backend, change, claim.as_ref()).await? {
        return bring_back(&backend, entry, partial, claim).await;
    }
    let mode = if partial { SyncMode::Standard } else { SyncMode::Fastfail };
    let undo = Some(Undo { journal: change, both_live: false });
    let args = sync::SyncArgs { mode, undo, ..sync::SyncArgs::default() };
    let call = Call { studio, patience: SYNC_PATIENCE, ask: Ask::Sync(args), operation: claim };
    run(&backend, call, progress).await
}

/// The entry that is to be taken back, if that needs no Studio. A call that was made before has its
/// outcome, whatever the last entry is by now.
async fn deletion(backend: &Backend, change: Option<u64>, claim: Option<&Claim>) -> Result<Option<u64>, ToolError> {
    let (store, id) = (backend.store.clone(), claim.map(|claim| claim.id.clone()));
    blocking(move || {
        let known = match id {
            Some(id) => store.operation(&id)?.is_some_and(|known| !known.never_ran),
            None => false,
        };
        Ok(if known { None } else { deletions::last(&store, change)? })
    })
    .await
}

/// Put deleted files back. Noted like what is sent to a Studio: a call with the same id has the same
/// outcome, from the store.
async fn bring_back(backend: &Backend, entry: u64, partial: bool, claim: Option<Claim>) -> Result<Synced, ToolError> {
    let (session, store, who) = (Arc::clone(&backend.session), backend.store.clone(), backend.who.clone());
    let receipt = blocking(move || {
        if let Some(Claim { id, tool, args_hash }) = &claim {
            let request_id = RequestId::from(uuid::Uuid::new_v4().to_string());
            let intent = Intent { tool: tool.clone(), args_hash: args_hash.clone(), request_id, session: None };
            if store.intend(id, &intent)? != Intention::Fresh {
                return Err(ToolError::outcome_unknown("the server", "it is under way").ask_get_call(id.as_str()));
            }
        }
        let outcome = deletions::bring_back(&session, &store, (entry, who), partial);
        if let Some(Claim { id, .. }) = &claim {
            let kept = match &outcome {
                Ok(receipt) => store.settle(id, tools::to_json(&Outcome::Receipt(receipt.clone()))),
                Err(_) => store.never_ran(id),
            };
            if let Err(error) = kept {
                log::error!("the outcome of operation {id} is not kept: {error}");
            }
        }
        Ok(outcome?)
    });
    Ok(Synced::new(receipt.await?, &backend.session.problems(), backend.session.warning()))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ToolError::failed(error.to_string(), "this is a fault of the server; report it")))
}

/// Each is about something, and no two about the same: one of them would be left out.
fn check_overrides(overrides: &[sync::Override]) -> Result<(), ToolError> {
    let mut seen = HashSet::new();
    for (at, one) in overrides.iter().enumerate() {
        check_id(&format!("overrides[{at}].id"), &one.id)?;
        if !seen.insert(&one.id) {
            return Err(ToolError::bad_arguments(format!("argument `overrides[{at}].id`: it is there twice")));
        }
    }
    Ok(())
}

fn check_id(argument: &str, id: &OpId) -> Result<(), ToolError> {
    let OpId::Temp(temp) = id else { return Ok(()) };
    let number = temp.as_str().strip_prefix('x').unwrap_or_default();
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(());
    }
    let shown: String = temp.as_str().chars().take(80).collect();
    Err(ToolError::bad_arguments(format!(
        "argument `{argument}`: an id is 32 hex digits and a tempId is x with a number, got {shown:?}"
    )))
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
            Ok(below)
        })
        .collect()
}

/// Neither the disk nor the tree has it.
fn is_gone(backend: &Backend, path: &str) -> bool {
    let folder = &backend.session.project().folder;
    !folder.join(path).exists() && backend.session.find(&Target::FsPath(path)).is_empty()
}

/// A file that was deleted may still have its instance in Studio; a path without one is a mistake.
async fn check_gone(backend: &Backend, studio: Option<String>, path: &str) -> Result<(), ToolError> {
    let args =
        sync::SyncArgs { mode: SyncMode::Dryrun, paths: Some(vec![path.to_owned()]), ..sync::SyncArgs::default() };
    let call = Call { studio, patience: SYNC_PATIENCE, ask: Ask::Sync(args), operation: None };
    match backend.change(call, None).await? {
        Answer::Receipt(receipt) if receipt.changes.is_empty() => Err(ToolError::bad_arguments(format!(
            "argument `paths`: there is no {path:?}, and Studio has nothing that could have been made from it"
        ))),
        _ => Ok(()),
    }
}
