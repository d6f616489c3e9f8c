//! Plugins of level 0. They carry out a sync by themselves, and their connection is all that is
//! known of who they are.

use std::{collections::VecDeque, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Bridge, Effect, Waiter, Waiting, What, calls::ledger_deadline, operations::Ran};
use crate::core::{
    calls::Moment,
    error::{ErrorCode, ToolError},
    ids::{RequestId, RunId},
    protocol::{PluginResult, Request, RequestBody, ServerFrame},
    studios::StudioKey,
    sync::{Change, ChangeResult, Direction, PatchType, Receipt, SyncArgs, SyncStatus},
};

/// How long an older window may take to answer when another one has the same place open.
const PROBE: Duration = Duration::from_secs(5);

impl Bridge {
    /// Have the plugin sync. It reads the tree on its own way, so the disk is read first.
    pub(super) fn relay_sync(
        &mut self,
        deadline: Moment,
        studio: StudioKey,
        id: RequestId,
        who: Waiter,
        args: SyncArgs,
    ) {
        let SyncArgs { mode, paths, overrides, resolution, undo, .. } = args;
        if resolution.is_some() || undo.is_some() {
            let error = ToolError::new(
                ErrorCode::Unsupported,
                "this Studio's plugin settles conflicts and takes changes back by itself and cannot be asked from here",
                "sync with `overrides`, or install our plugin (`rojo-mcp plugin install`)",
            );
            return self.finish(who, Err(error), Ran::Never);
        }
        if paths.is_some() {
            let error = ToolError::new(
                ErrorCode::Unsupported,
                "argument `paths`: this Studio's plugin syncs everything at once; nothing was sent",
                "call again without `paths`, or install our plugin (`rojo-mcp plugin install`)",
            );
            return self.finish(who, Err(error), Ran::Never);
        }
        let overrides =
            overrides.iter().map(|one| serde_json::to_value(one).expect("an override is plain data")).collect();
        let what = What::CatchUp(RequestBody::Sync { run_id: None, cursor: None, scope: None, mode, overrides });
        let run = RunId::from(id.as_str());
        self.calls.open(id, ledger_deadline(&who, deadline), Waiting { studio, who, what });
        self.effects.push(Effect::CatchUp { run, paths: None });
    }

    /// The disk was read for a sync that is to be relayed.
    pub(super) fn relay_caught_up(&mut self, now: Moment, run: &RunId, result: Result<u32, ToolError>) {
        let id = RequestId::from(run.as_str());
        let Some(waiting) = self.calls.get_mut(&id) else { return };
        let What::CatchUp(body) = &waiting.what else { return };
        let version = match result {
            Ok(version) => version,
            Err(error) => return self.fail(now, &id, error, Ran::Never),
        };
        let (who, studio) = (waiting.who.clone(), waiting.studio);
        let request =
            Request { request_id: id, n: None, remaining_ms: None, logical_id: None, target: None, body: body.clone() };
        let mut noted = request.clone();
        if let RequestBody::Sync { cursor, .. } = &mut noted.body {
            *cursor = Some(version);
        }
        // Noted for the receipt; the plugin knows no cursor. It orders its syncs itself, and a person
        // may take long to answer one, so it holds no lane.
        waiting.what = What::Request { request: noted, rest: VecDeque::new(), next_part: 1, sent: true };
        let Some(link) = self.studios.get(studio).and_then(|studio| studio.link) else { return };
        let message = Some(format!("{} syncs; a person may be asked there", self.studio_name(studio)));
        self.send(link, ServerFrame::Request(request));
        for caller in self.callers(&who) {
            self.effects.push(Effect::Progress { caller, progress: 0.0, total: None, message: message.clone() });
        }
    }

    /// Another window of this one's place, or the same one without the end of its old connection
    /// having been seen: ask the older ones for a sign of life.
    pub(super) fn probe_older(&mut self, now: Moment, newer: StudioKey) {
        let Some(place) = self.studios.get(newer).filter(|new| !new.is_level1()).map(|new| new.hello.place_id) else {
            return;
        };
        let older: Vec<StudioKey> = self
            .studios
            .iter()
            .filter(|studio| studio.key != newer && !studio.is_level1() && studio.hello.place_id == place)
            .map(|studio| studio.key)
            .collect();
        for key in older {
            let body = RequestBody::Tool { name: "get_studio_mode".to_owned(), args: json!({}) };
            self.ask(now, now + PROBE, key, Waiter::Probe { newer }, body);
        }
    }

    pub(super) fn is_probe(&self, id: &RequestId) -> bool {
        matches!(self.calls.get(id), Some((Waiting { who: Waiter::Probe { .. }, .. }, _)))
    }

    /// The older window is alive, so both stay. An answer that comes from the newer one shows that
    /// both are connections of one plugin: it keeps the newer, with what the older waits for.
    pub(super) fn probe_answered(&mut self, older: StudioKey, newer: StudioKey, from: StudioKey) {
        if from != newer {
            return;
        }
        for (_, waiting) in self.calls.iter_mut().filter(|(_, waiting)| waiting.studio == older) {
            waiting.studio = newer;
        }
        self.lanes.hand_over(older, newer);
        self.give_way(older, newer);
    }

    /// The older window is gone, or was silent for too long.
    pub(super) fn give_way(&mut self, older: StudioKey, newer: StudioKey) {
        if self.stopping || self.studios.get(newer).is_none() {
            return;
        }
        self.leave(older, "a newer window of its place took over");
        self.studios.rename(newer);
    }
}

/// The deadline of a sync passed while the disk was still being read.
pub(super) fn late_catch_up(studio: &str) -> ToolError {
    ToolError::new(
        ErrorCode::TimedOut,
        format!("reading the disk took too long; nothing was sent to {studio}"),
        "call again",
    )
}

/// A change as such a plugin tells it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Relayed {
    path: String,
    direction: Direction,
    patch_type: PatchType,
    #[serde(default)]
    class_name: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    fs_path: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The receipt of a sync that the plugin carried out by itself.
pub(super) fn read_relayed(studio: &str, cursor: u32, mut result: PluginResult) -> Result<Receipt, ToolError> {
    let malformed = |what: String| ToolError::outcome_unknown(studio, &what);
    let word = std::mem::take(&mut result.status);
    let Ok(status) = serde_json::from_value::<SyncStatus>(Value::String(word.clone())) else {
        return Err(malformed(format!("it answered {word:?}, which is no outcome of a sync that we know")));
    };
    let message = result.fields.get("message").and_then(Value::as_str).map(str::to_owned);
    let changes = match result.fields.remove("changes") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(none)) if none.is_empty() => Vec::new(),
        Some(changes) => serde_json::from_value::<Vec<Relayed>>(changes).map_err(|error| {
            malformed(format!("it answered {word:?}, but its `changes` could not be read: {error}"))
        })?,
    };
    let changes = changes.into_iter().map(|change| change.into_change(status)).collect();
    Ok(Receipt::new(status, cursor, changes, message.or_else(|| own_words(status).map(str::to_owned))))
}

fn own_words(status: SyncStatus) -> Option<&'static str> {
    match status {
        SyncStatus::AlreadyConnected => Some("the plugin is connected to Rojo already and did not run this sync"),
        SyncStatus::SyncInProgress => Some("the plugin is at another sync and did not run this one; call again later"),
        SyncStatus::Error => Some("the plugin gave no reason; read Studio's state before you repeat it"),
        _ => None,
    }
}

impl Relayed {
    /// Such a plugin says how the whole sync ended, not what became of each change.
    fn into_change(self, status: SyncStatus) -> Change {
        let result = match (self.direction, status) {
            (Direction::Unresolved, _) => ChangeResult::Unresolved,
            (_, SyncStatus::Success) => ChangeResult::Done,
            (_, SyncStatus::Dryrun) => ChangeResult::Planned,
            (_, SyncStatus::Partial | SyncStatus::Error) => ChangeResult::Unknown,
            _ => ChangeResult::Skipped,
        };
        let known = ["studioHash", "properties", "defaultSelection"];
        let mut foreign: Map<String, Value> =
            self.rest.into_iter().filter(|(key, _)| known.contains(&key.as_str())).collect();
        let id = self.id.as_deref().and_then(|id| id.parse().ok());
        if let (None, Some(theirs)) = (id, self.id) {
            foreign.insert("id".to_owned(), Value::String(theirs));
        }
        Change {
            path: self.path,
            fs_path: self.fs_path,
            id,
            class_name: self.class_name,
            direction: self.direction,
            patch_type: self.patch_type,
            disk_hash: None,
            studio_hash: None,
            result,
            reason: None,
            temp_id: None,
            conflict: Vec::new(),
            foreign,
        }
    }
}
