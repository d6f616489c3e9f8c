//! Live mode: runs that nobody called.

use std::time::Duration;

use super::{Bridge, runs::ActiveRun};
use crate::core::{
    calls::Moment,
    error::ToolError,
    ids::RunId,
    live::{Edited, LiveMode},
    protocol::{Notice, Role, ServerFrame},
    studios::{LinkId, Studio, StudioKey, TreeState},
    sync::{ChangeResult, Receipt, Run, SyncArgs, Unasked},
};

/// How long such a run may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Bridge {
    /// A person changed something in Studio.
    pub(super) fn edited(&mut self, (link, key): (LinkId, StudioKey), now: Moment, edited: Edited) {
        let Some(studio) = self.studios.get_mut(key) else { return };
        if studio.live_mode() == LiveMode::TwoWay {
            studio.live.edited(now, edited);
        } else {
            self.send(link, ServerFrame::Notice(Notice::Edited { seq: edited.seq }));
        }
    }

    /// The plugin has taken the whole tree in.
    pub(super) fn live_tree_ready(&mut self, key: StudioKey) {
        let is_listed = |place: u64| self.places.serve.as_ref().is_some_and(|serve| serve.contains(&place));
        if let Some(studio) = self.studios.get_mut(key).filter(|studio| studio.live_mode() != LiveMode::Off) {
            let listed = is_listed(studio.hello.place_id);
            studio.live.tree_ready(&studio.hello.confirmation_behavior, listed);
        }
    }

    /// Nobody else hears of it.
    pub(super) fn note_unasked_failure(&mut self, unasked: bool, key: StudioKey, error: &ToolError) {
        if unasked {
            self.note(format!("a comparison with {} that nobody called failed: {error}", self.studio_name(key)));
        }
    }

    /// End what has ended, and begin what may begin.
    pub(super) fn live_turn(&mut self, now: Moment) {
        let keys: Vec<StudioKey> =
            self.studios.iter().filter(|studio| !studio.live.is_settled()).map(|studio| studio.key).collect();
        for key in keys {
            self.end_live_run(now, key);
            if !self.stopping && self.may_go_live(key) {
                self.start_live_run(now, key);
            }
        }
    }

    fn end_live_run(&mut self, now: Moment, key: StudioKey) {
        let is_played = self.studios.get(key).is_some_and(|studio| self.is_played(studio));
        let Some(studio) = self.studios.get_mut(key) else { return };
        let Some(run) = studio.live.running() else { return };
        if self.runs.contains_key(run) {
            return;
        }
        match studio.link.filter(|_| studio.is_ready() && !is_played) {
            Some(link) => {
                for seq in studio.live.ended() {
                    self.send(link, ServerFrame::Notice(Notice::Edited { seq }));
                }
            }
            // Nobody knows how far it came, or a play test came between: it is compared again.
            None => studio.live.interrupted(),
        }
        self.resume_parked(now, key);
    }

    /// Something waits, and neither a person, an agent nor a play test is in the way.
    fn may_go_live(&self, key: StudioKey) -> bool {
        let Some(studio) = self.studios.get(key) else { return false };
        studio.live.is_due()
            && studio.live_mode() != LiveMode::Off
            && studio.link.is_some()
            && studio.is_ready()
            && studio.recalled
            && !self.official
            && !self.is_played(studio)
            && !self.runs.values().any(|run| run.studio == key)
    }

    /// Why live mode waits although it is on.
    pub(super) fn paused(&self, studio: &Studio) -> Option<&'static str> {
        match studio.live_mode() {
            LiveMode::Off => None,
            _ if self.official => Some("the official Rojo plugin is connected and syncs by itself"),
            _ if self.is_played(studio) => Some("a play test runs"),
            _ => None,
        }
    }

    /// A play test of its place runs.
    pub(super) fn is_played(&self, studio: &Studio) -> bool {
        let place = studio.hello.level1.as_ref().map(|hello| &hello.instance_id);
        self.studios
            .iter()
            .filter_map(|other| other.hello.level1.as_ref())
            .any(|other| Some(&other.instance_id) == place && (other.role != Role::Edit || other.is_running))
    }

    fn start_live_run(&mut self, now: Moment, key: StudioKey) {
        let id = RunId::from((self.new_id)().as_str());
        let Some(studio) = self.studios.get_mut(key) else { return };
        let TreeState::Ready { cursor } = studio.tree else { return };
        let (scope, deleted) = studio.live.begin(now, id.clone());
        let unasked = Unasked { scope, takes: studio.live_mode() == LiveMode::TwoWay, deleted };
        let args = SyncArgs { unasked: Some(Box::new(unasked)), ..SyncArgs::default() };
        let (mut run, _) = Run::start(id.clone(), args, studio.is_alone());
        let step = run.caught_up(cursor, &studio.agreement);
        self.runs.insert(id.clone(), ActiveRun::unasked(run, key, now + PATIENCE));
        self.follow(now, &id, step);
    }

    /// A run of the Studio has ended with `receipt`.
    pub(super) fn note_receipt(&mut self, key: StudioKey, id: &RunId, receipt: &Receipt, run: &Run) {
        // An undo looks at what it takes back, and at nothing else.
        self.hold(key, receipt, run.is_whole() && !run.is_undo(), run.seen());
        let is_live = self.studios.get(key).is_some_and(|studio| studio.live.running() == Some(id));
        if !is_live {
            return;
        }
        for change in &receipt.changes {
            let what = match change.result {
                ChangeResult::Done => {
                    format!("{} of {}", format!("{:?}", change.direction).to_lowercase(), change.path)
                }
                _ => format!("{} is held", change.path),
            };
            let reason = change.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            self.note(format!("live: {what}{reason}"));
        }
    }
}
