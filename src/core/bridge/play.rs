//! Play tests: starting and ending them, who may, and what must wait for their end.
//!
//! A play tool asks the plugin, and is done when the DataModels say so: a test has started when its
//! server has said hello, and ended when only the edit DataModel is left.

use serde_json::{Value, json};

use super::{Answer, Bridge, Waiter, What, operations::Ran, targets::Destination};
use crate::core::{
    calls::Moment,
    choice::Window,
    error::{ErrorCode, ToolError},
    ids::{RequestId, RunId},
    play::{Goal, OwnerId, PlayMode},
    protocol::{RequestBody, Role, SyncMode},
    studios::{Studio, StudioKey},
    sync::SyncArgs,
    targets::Target,
};

/// What the plugin calls the tool.
const TOOL: &str = "start_stop_play";

impl Bridge {
    /// Start or end a play test, as request `id`.
    pub(super) fn play(
        &mut self,
        now: Moment,
        deadline: Moment,
        (id, who): (RequestId, Waiter),
        studio: Option<&str>,
        (mode, owner): (PlayMode, OwnerId),
    ) {
        let to = match self.admit_play(now, &id, studio, (mode, owner)) {
            Ok(Some(to)) => to,
            Ok(None) => return self.finish(who, Ok(answer(Goal::Editing)), Ran::Known),
            Err(error) => return self.finish(who, Err(error), Ran::Never),
        };
        let args = json!({ "mode": mode });
        self.open_request(deadline, to, id.clone(), who, RequestBody::Tool { name: TOOL.to_owned(), args });
        // What is copied for a test is not changed meanwhile. To end one waits for nobody.
        self.dispatch(now, &id, mode != PlayMode::Stop);
    }

    /// Whom to ask; `None`: it edits already.
    fn admit_play(
        &mut self,
        now: Moment,
        id: &RequestId,
        studio: Option<&str>,
        (mode, owner): (PlayMode, OwnerId),
    ) -> Result<Option<Destination>, ToolError> {
        let window = self.studios.window(studio)?;
        let (name, plays) = (window.name.to_owned(), window.is_played());
        // The edit DataModel starts a test, and passes a stop on to its server without the network.
        let by_hand = [Target::Edit, Target::Server].into_iter().filter_map(|target| window.find(target).ok());
        let chosen = by_hand.into_iter().find(|chosen| !chosen.is_lost());
        let is_edit = chosen.is_some_and(|chosen| chosen.studio.role() == Role::Edit);
        let Some(chosen) = chosen.filter(|_| is_edit || mode == PlayMode::Stop) else {
            return Err(ToolError::reconnecting(&name));
        };
        let is_level1 = chosen.studio.is_level1();
        let to = Destination { data_model: chosen.data_model(), target: chosen.sent_target() };
        match mode {
            PlayMode::Stop if is_level1 && !plays => return Ok(None),
            PlayMode::Stop => {}
            _ if plays => return Err(plays_already(&name, self.leases.held_by_another(&name, owner), now)),
            _ => {
                let taken = self.leases.take(&name, owner, id.clone(), now);
                taken.map_err(|since| plays_already(&name, Some(since), now))?;
            }
        }
        Ok(Some(to))
    }

    /// The plugin does what a play tool asked. The call stays open until the DataModels say so too.
    /// `false`: this was no such call, or it failed.
    pub(super) fn awaits_play(&mut self, id: &RequestId, status: &str) -> bool {
        let Some(waiting) = self.calls.get_mut(id) else { return false };
        let key = waiting.studio;
        let What::Request { request, .. } = &waiting.what else { return false };
        let RequestBody::Tool { name, args } = &request.body else { return false };
        let is_ours = self.studios.get(key).is_some_and(|studio| studio.is_level1());
        if name != TOOL || status != "success" || !is_ours {
            return false;
        }
        let Ok(mode) = serde_json::from_value::<PlayMode>(args["mode"].clone()) else { return false };
        waiting.what = What::Play(mode.goal());
        if mode == PlayMode::Stop {
            self.test_ends(key);
        }
        true
    }

    /// The play test of this Studio was told to end: the next one's hello need not wait for its silence.
    fn test_ends(&mut self, key: StudioKey) {
        let Some(window) = self.studios.get(key).map(|studio| studio.window.clone()) else { return };
        for studio in self.studios.iter_mut().filter(|studio| studio.window == window) {
            studio.ending = studio.role() != Role::Edit;
        }
    }

    /// A DataModel leaves: what waits for the Studio's mode waits for what is left of it.
    pub(super) fn hand_on_play(&mut self, gone: StudioKey) {
        let Some(window) = self.studios.get(gone).map(|studio| studio.window.as_str()) else { return };
        let is_other = |other: &&Studio| other.key != gone && other.window == window;
        let Some(other) = self.studios.iter().find(is_other).map(|other| other.key) else { return };
        for (_, call) in self.calls.iter_mut() {
            if call.studio == gone && matches!(call.what, What::Play(_)) {
                call.studio = other;
            }
        }
    }

    /// Settle the play tools whose Studio has come to what they want.
    pub(super) fn play_turn(&mut self) {
        if self.leases.is_empty() && !self.calls.iter().any(|(_, call)| matches!(call.what, What::Play(_))) {
            return;
        }
        let windows = self.studios.windows();
        let of = |name: &str| windows.iter().find(|window| window.name == name);
        let reached: Vec<(RequestId, Goal)> = self
            .calls
            .iter()
            .filter_map(|(id, call)| {
                let What::Play(goal) = call.what else { return None };
                let studio = self.studios.get(call.studio)?;
                of(&studio.window).is_some_and(|window| has_reached(window, goal)).then(|| (id.clone(), goal))
            })
            .collect();
        let calls = &self.calls;
        let plays = |name: &str| of(name).is_some_and(Window::is_played);
        self.leases.retain(plays, |request| calls.get(request).is_some());
        for (id, goal) in reached {
            let Some(waiting) = self.calls.settle(&id) else { continue };
            self.finish(waiting.who, Ok(answer(goal)), Ran::Known);
        }
    }

    /// What changes the place or its files is refused during a play test: what is played is a copy that
    /// would not see it, and what is edited meanwhile waits for edit mode.
    pub(super) fn refuse_in_play(&self, key: StudioKey, args: &SyncArgs) -> Option<ToolError> {
        let studio = self.studios.get(key)?;
        (args.mode != SyncMode::Dryrun && self.is_played(studio)).then(|| ToolError::in_play(&studio.window))
    }

    /// A play test has begun while a run was comparing: it changes nothing.
    pub(super) fn play_came_between(&self, run: &RunId) -> Option<ToolError> {
        let studio = self.studios.get(self.studio_of(run)?)?;
        self.is_played(studio).then(|| ToolError::in_play(&studio.window))
    }
}

fn answer(goal: Goal) -> Answer {
    Answer::Tool(Value::Object([("mode".to_owned(), json!(goal.mode()))].into_iter().collect()))
}

/// The mode that the DataModels report.
fn has_reached(window: &Window<'_>, goal: Goal) -> bool {
    let mut here = window.data_models().filter(|(_, chosen)| !chosen.is_lost()).map(|(target, _)| target);
    match goal {
        Goal::Playing => here.any(|target| matches!(target, Target::Client(_))),
        Goal::Running => here.any(|target| target == Target::Server),
        Goal::Editing => !window.is_played() && here.any(|target| target == Target::Edit),
    }
}

fn plays_already(studio: &str, another_since: Option<Moment>, now: Moment) -> ToolError {
    let by = another_since
        .map_or_else(String::new, |since| format!(", by another caller for {} s", now.saturating_sub(since).as_secs()));
    ToolError::failed(
        format!("{studio} plays already{by}; nothing was started"),
        "use the test that runs, or end it with `mode` stop and call again",
    )
}

/// The deadline of a play tool passed after the plugin had begun it.
pub(super) fn late_play(studio: &str, goal: Goal) -> ToolError {
    let what = match goal {
        Goal::Playing => "a play test was started, and no client of it has reported",
        Goal::Running => "a play test was started, and its server has not reported",
        Goal::Editing => "the play test was told to end, and it has not left",
    };
    let next = "`status` lists the DataModels that are there; a test that cannot be reached is stopped in Studio";
    ToolError::new(ErrorCode::OutcomeUnknown, format!("{what} ({studio})"), next)
}
