//! `POST /api/write`: what was edited in Studio goes to the files, with two-way sync.
//!
//! The plugin does not say which text its edit was made to. It is the one that it was last sent;
//! so an edit is a conflict where the file holds another one, or one that the plugin may not have
//! taken in when it sent this. A conflict leaves the file as it is. The same holds for a script that
//! was deleted: its file goes only if it holds that text.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hyper::{Response, StatusCode, body::Incoming};
use librojo::web_api::{ErrorResponse, InstanceUpdate, WriteRequest, WriteResponse};
use rbx_dom_weak::{
    types::{Ref, Variant},
    ustr,
};

use super::{Body, RojoApi, answer, open::script_file};
use crate::{
    clock,
    core::text::{ScriptText, TextHash},
    deletions,
    files::{self, Displaced},
    session::{OwnFiles, wire},
};

/// A text that was sent so short a time ago may not have reached the plugin's side of the edit: it
/// gathers edits for 0.2 s, and both ways take their time.
const UNDERWAY: Duration = Duration::from_secs(1);

/// More scripts than these are not deleted at once: that is how a place goes that is being closed.
const MAX_DELETED: usize = 20;

/// So many refusals of one request are said, in the answer and in the log; the rest is counted.
const MOST_SAID: usize = 20;

/// So close together is at once.
const AT_ONCE: Duration = Duration::from_secs(2);

/// What came from the plugin, one write at a time.
#[derive(Default)]
pub(super) struct Writes(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The texts that came.
    texts: HashMap<Ref, TextHash>,
    /// How many scripts were to be deleted, and when.
    deleted: Vec<(Instant, usize)>,
}

pub(super) async fn answer(api: Arc<RojoApi>, body: Incoming) -> Response<Body> {
    let request: WriteRequest = match answer::read(body).await {
        Ok(request) => request,
        Err(refusal) => return refusal,
    };
    let session_id = api.session.id();
    if request.session_id != session_id {
        return answer::bad_request("Wrong session ID");
    }
    let outcome = match tokio::task::spawn_blocking(move || write(&api, &request)).await {
        Ok(outcome) => outcome,
        Err(error) => return answer::internal_error(error.to_string()),
    };
    let refused = outcome.words();
    tokio::spawn(files::displaced::let_go(outcome.displaced));
    if outcome.refused.is_empty() {
        return answer::ok(&WriteResponse { session_id });
    }
    answer::msgpack(StatusCode::CONFLICT, &ErrorResponse::bad_request(refused))
}

#[derive(Default)]
struct Outcome {
    displaced: Vec<Displaced>,
    /// What was not written, and why; the rest was.
    refused: Vec<String>,
}

fn write(api: &RojoApi, request: &WriteRequest) -> Outcome {
    let mut known = api.writes.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut outcome = Outcome::default();
    let mut written = delete(api, &mut known, &request.removed, &mut outcome);
    for update in request.updated.iter().filter(|update| !request.removed.contains(&update.id)) {
        match write_one(api, &known.texts, update) {
            Ok(None) => {}
            Ok(Some(one)) => {
                known.texts.insert(update.id, one.hash);
                written.push(one.file);
                outcome.displaced.extend(one.displaced);
            }
            Err(reason) => outcome.refuse(reason),
        }
    }
    // The next edit is made to these texts.
    if !written.is_empty()
        && let Err(error) = api.session.take_in(&written)
    {
        outcome.refused.push(error.to_string());
    }
    outcome
}

impl Outcome {
    fn refuse(&mut self, reason: String) {
        match self.refused.len() {
            0..MOST_SAID => log::warn!("an edit made in Studio was not written: {reason}"),
            MOST_SAID => log::warn!("more edits of the same request were not written"),
            _ => {}
        }
        self.refused.push(reason);
    }

    /// Why some of it was not written, in one text.
    fn words(&self) -> String {
        let said = self.refused.iter().take(MOST_SAID).cloned();
        let more = self.refused.len().saturating_sub(MOST_SAID);
        let more = (more > 0).then(|| format!("and {more} more"));
        said.chain(more).collect::<Vec<_>>().join("; ")
    }
}

/// Delete the files of what was deleted in Studio. Returns where something changed.
fn delete(api: &RojoApi, known: &mut Known, removed: &[Ref], outcome: &mut Outcome) -> Vec<PathBuf> {
    let mut changed = Vec::new();
    let mut all: Vec<OwnFiles> = Vec::new();
    for id in topmost(api, removed) {
        // What is not in the tree any more is gone on both sides.
        match api.session.own_files(wire::node_id(id)) {
            Some(Ok(own)) => all.push(own),
            Some(Err(reason)) => outcome.refuse(format!("what was deleted in Studio stays: {reason}")),
            None => {}
        }
    }
    let now = clock::now();
    known.deleted.retain(|(at, _)| now.duration_since(*at) < AT_ONCE);
    let wanted: usize = all.iter().map(|own| own.scripts.len()).sum();
    let at_once = wanted + known.deleted.iter().map(|(_, scripts)| scripts).sum::<usize>();
    if at_once > MAX_DELETED {
        known.deleted.push((now, wanted));
        outcome.refuse(format!(
            "{at_once} scripts were deleted in Studio at once, more than {MAX_DELETED}; if that was meant, delete the files"
        ));
        return changed;
    }
    for own in all {
        let underway = own.scripts.iter().find(|script| {
            let id = wire::referent(script.id);
            known.texts.get(&id) != Some(&script.hash) && is_underway(api, id)
        });
        let deleted = match underway {
            Some(script) => {
                Err(format!("{} changed on disk just now, and Studio had not taken that in", script.file.display()))
            }
            None => deletions::delete(&api.session, &api.store, &own),
        };
        match deleted {
            Ok(displaced) => {
                known.deleted.push((now, own.scripts.len()));
                outcome.displaced.extend(displaced);
            }
            Err(reason) => outcome.refuse(format!("what was deleted in Studio stays: {reason}")),
        }
        changed.extend(own.folders);
        changed.extend(own.scripts.into_iter().map(|script| script.file));
    }
    changed
}

/// Those of `ids` in the tree that are not below others of them.
fn topmost(api: &RojoApi, ids: &[Ref]) -> Vec<Ref> {
    let wanted: HashSet<Ref> = ids.iter().copied().collect();
    api.session.with_tree(|tree, _| {
        let parent = |id: Ref| tree.get_instance(id).map(|instance| instance.parent());
        let covered =
            |id: Ref| std::iter::successors(parent(id), |&id| parent(id)).any(|above| wanted.contains(&above));
        ids.iter().copied().filter(|&id| tree.get_instance(id).is_some() && !covered(id)).collect()
    })
}

struct One {
    file: PathBuf,
    hash: TextHash,
    displaced: Option<Displaced>,
}

/// Write one script. `None`: the update is of something that files do not take from Studio.
fn write_one(api: &RojoApi, ours: &HashMap<Ref, TextHash>, update: &InstanceUpdate) -> Result<Option<One>, String> {
    let Some(text) = update.changed_properties.get(&ustr("Source")) else {
        log::debug!("{} changed in Studio; only the Source of scripts is written to files", update.id);
        return Ok(None);
    };
    let Some(Variant::String(text)) = text else { return Err("Cannot change Source to non-string value.".to_owned()) };
    let file = script_file(&api.session, update.id).ok_or_else(|| format!("{} is not in the tree", update.id))?;
    let (_, looks) = api.session.look(&[wire::node_id(update.id)]);
    let look = looks.into_iter().flatten().next().ok_or_else(|| format!("{} is not in the tree", update.id))?;
    let (Some(file), Some(base)) = (file, look.hash) else {
        return Err(format!("{} does not come from a script file of its own", look.path));
    };
    let text = ScriptText::new(text);
    if text.hash() == base {
        return Ok(Some(One { file, hash: base, displaced: None })); // so it has taken that in
    }
    if ours.get(&update.id) != Some(&base) && is_underway(api, update.id) {
        return Err(format!("{} changed on disk just now, and Studio had not taken that in", file.display()));
    }
    let written = files::replace(&api.session.sources(), &file, base, &text).map_err(|error| error.to_string())?;
    Ok(Some(One { file, hash: written.hash, displaced: written.displaced }))
}

/// Whether the script's text is so new that some plugin may not have it yet.
fn is_underway(api: &RojoApi, id: Ref) -> bool {
    let now = clock::now();
    let since = now.checked_sub(UNDERWAY).unwrap_or(now);
    api.session.text_moved(wire::node_id(id), since, api.sockets.slowest())
}
