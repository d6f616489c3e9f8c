//! Play tests: starting and ending them, who may, and what must wait for their end.
//!
//! A play tool asks the plugin, and is done when the DataModels say so: a test has started when its
//! server has said hello, and ended when only the edit DataModel is left.

use serde_json::{Value, json};

use super::{
    Answer, Bridge, Waiter, Waiting, What, operations::Ran, play_steps::over_before_it_was_up, targets::Destination,
};
use crate::core::{
    calls::Moment,
    choice::Window,
    error::{ErrorCode, ToolError},
    ids::{RequestId, RunId},
    play::{Goal, OwnerId, PlayMode},
    protocol::{PluginResult, RequestBody, Role, SyncMode},
    studios::{Studio, StudioKey},
    sync::SyncArgs,
    targets::Target,
};

/// What the plugin calls the tool.
pub(super) const TOOL: &str = "start_stop_play";
const SCRIPT_TOOL: &str = "run_script_in_play_mode";

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
        if mode == PlayMode::Restart {
            return self.restart_play(now, deadline, (id, who), studio, owner);
        }
        let to = match self.admit_play(now, &id, studio, (mode, owner)) {
            Ok(Some(to)) => to,
            Ok(None) => return self.finish(who, Ok(answer(Goal::Editing)), Ran::Known),
            Err(error) => return self.finish(who, Err(error), Ran::Never),
        };
        self.open_request(deadline, to, id.clone(), who, ask(mode));
        // What is copied for a test is not changed meanwhile. To end one waits for nobody.
        self.dispatch(now, &id, mode != PlayMode::Stop);
    }

    /// Run code in a play test that the plugin starts and ends, as request `id`.
    pub(super) fn play_script(
        &mut self,
        now: Moment,
        deadline: Moment,
        (id, who): (RequestId, Waiter),
        studio: Option<&str>,
        (args, owner): (Value, OwnerId),
    ) {
        let mode = serde_json::from_value(args["mode"].clone()).unwrap_or(PlayMode::StartPlay);
        let to = match self.admit_play(now, &id, studio, (mode, owner)) {
            Ok(Some(to)) => to,
            Ok(None) => unreachable!("only a stop may be done already"),
            Err(error) => return self.finish(who, Err(error), Ran::Never),
        };
        self.open_request(deadline, to, id.clone(), who, RequestBody::Tool { name: SCRIPT_TOOL.to_owned(), args });
        self.dispatch(now, &id, true);
    }

    /// Whom to ask; `None`: it edits already.
    fn admit_play(
        &mut self,
        now: Moment,
        id: &RequestId,
        studio: Option<&str>,
        (mode, owner): (PlayMode, OwnerId),
    ) -> Result<Option<Destination>, ToolError> {
        let Asked { name, plays, is_level1, to } = self.whom_to_ask(studio, mode)?;
        match mode.starts() {
            None => {
                self.call_starts_off(now, &name);
                if plays {
                    self.leases.started(&name);
                } else if is_level1 {
                    if !self.leases.is_starting(&name) {
                        return Ok(None);
                    }
                    self.leases.call_off(&name, id.clone(), now);
                }
            }
            Some(_) if plays => return Err(plays_already(&name, self.leases.held_by_another(&name, owner), now)),
            Some(_) if self.leases.is_called_off(&name) => return Err(may_still_come(&name)),
            Some(kind) => {
                let taken = self.leases.take(&name, (owner, kind), id.clone(), now);
                taken.map_err(|since| plays_already(&name, Some(since), now))?;
            }
        }
        Ok(Some(to))
    }

    /// Whom to ask for a start or a stop.
    pub(super) fn whom_to_ask(&self, studio: Option<&str>, mode: PlayMode) -> Result<Asked, ToolError> {
        let window = self.studios.window(studio)?;
        // The edit DataModel starts a test, and passes a stop on to its server without the network.
        let by_hand = [Target::Edit, Target::Server].into_iter().filter_map(|target| window.find(target).ok());
        let chosen = by_hand.into_iter().find(|chosen| !chosen.is_lost());
        let is_edit = chosen.is_some_and(|chosen| chosen.studio.role() == Role::Edit);
        let Some(chosen) = chosen.filter(|_| is_edit || mode == PlayMode::Stop) else {
            return Err(ToolError::reconnecting(window.name));
        };
        Ok(Asked {
            name: window.name.to_owned(),
            plays: window.is_played(),
            is_level1: chosen.studio.is_level1(),
            to: Destination { data_model: chosen.data_model(), target: chosen.sent_target() },
        })
    }

    /// The plugin does what a play tool asked, or has run its script. The call stays open until the
    /// DataModels say so too. `false`: this was no such call, or it failed.
    pub(super) fn awaits_play(&mut self, id: &RequestId, result: &PluginResult) -> bool {
        let Some((waiting, deadline)) = self.calls.get(id) else { return false };
        let (key, deadline) = (waiting.studio, self.patience_of(waiting, deadline));
        let What::Request { request, .. } = &waiting.what else { return false };
        let Some(mode) = asked(&request.body) else { return false };
        let is_script = matches!(mode, Asks::Script);
        let Some(window) = self.studios.get(key).filter(|studio| studio.is_level1()).map(|one| one.window.clone())
        else {
            return false;
        };
        let has_failed = result.status != "success";
        if is_script || mode.has_ended(result) || (mode.starts() && has_failed) {
            // What was started has ended, or has not begun.
            self.leases.started(&window);
        }
        if has_failed {
            return false;
        }
        let goal = match mode {
            Asks::Script => Goal::Editing,
            Asks::Mode(mode) if mode.starts().is_some() && self.leases.is_called_off(&window) => Goal::Stopped,
            Asks::Mode(mode) => mode.goal(),
        };
        if goal == Goal::Editing {
            self.test_ends(key);
        }
        let Some(waiting) = self.calls.get_mut(id).filter(|waiting| !matches!(waiting.who, Waiter::Play(_))) else {
            return false;
        };
        let response = is_script.then(|| result.fields.get("response").cloned().unwrap_or(Value::Null));
        waiting.what = What::Play(goal, response);
        self.calls.postpone(id, deadline);
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
            if call.studio == gone && matches!(call.what, What::Play(..)) {
                call.studio = other;
            }
        }
    }

    /// Settle the play tools whose Studio has come to what they want.
    pub(super) fn play_turn(&mut self, now: Moment) {
        if self.leases.is_empty() && !self.calls.iter().any(|(_, call)| matches!(call.what, What::Play(..))) {
            return;
        }
        self.see_starts(now);
        let windows = self.studios.windows();
        let of = |name: &str| windows.iter().find(|window| window.name == name);
        let reached: Vec<(RequestId, Goal)> = self
            .calls
            .iter()
            .filter_map(|(id, call)| {
                let What::Play(goal, _) = call.what else { return None };
                let studio = self.studios.get(call.studio)?;
                // One that has not been seen may still come up.
                let is_over = goal.mode() != "edit" || !self.leases.is_starting(&studio.window);
                let has_come = is_over && of(&studio.window).is_some_and(|window| has_reached(window, goal));
                has_come.then(|| (id.clone(), goal))
            })
            .collect();
        let calls = &self.calls;
        let plays = |name: &str| of(name).is_some_and(Window::is_played);
        let goes_on =
            |(id, goal): &(RequestId, Goal), request: &RequestId| id != request || matches!(goal, Goal::Again(_));
        let is_open =
            |request: &RequestId| calls.get(request).is_some() && reached.iter().all(|one| goes_on(one, request));
        self.leases.retain(plays, is_open);
        for (id, goal) in reached {
            match goal {
                Goal::Again(kind) => self.start_again(now, &id, kind),
                goal => self.play_is_done(&id, goal),
            }
        }
    }

    fn play_is_done(&mut self, id: &RequestId, goal: Goal) {
        let Some(Waiting { studio, who, what: What::Play(_, response), .. }) = self.calls.settle(id) else { return };
        self.drop_steps(id);
        let outcome = match (goal, response) {
            (_, Some(response)) => Ok(Answer::Tool(response)),
            (Goal::Stopped, None) => Err(over_before_it_was_up(&self.studio_name(studio))),
            (goal, None) => Ok(answer(goal)),
        };
        self.finish(who, outcome, Ran::Known);
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

/// Whom to ask for a start or a stop, and what is known of its Studio.
#[derive(Debug)]
pub(super) struct Asked {
    pub name: String,
    pub plays: bool,
    pub is_level1: bool,
    pub to: Destination,
}

/// What a play tool asks of the plugin.
#[derive(Debug, Clone, Copy)]
enum Asks {
    Mode(PlayMode),
    Script,
}

impl Asks {
    fn starts(self) -> bool {
        matches!(self, Self::Script) || matches!(self, Self::Mode(mode) if mode.starts().is_some())
    }

    /// The plugin says of a stop that the test that it had started itself is over.
    fn has_ended(self, result: &PluginResult) -> bool {
        let response = result.fields.get("response");
        matches!(self, Self::Mode(PlayMode::Stop)) && response.is_some_and(|response| response["ended"] == true)
    }
}

/// What this asks, if it is a play tool's.
fn asked(body: &RequestBody) -> Option<Asks> {
    let RequestBody::Tool { name, args } = body else { return None };
    match name.as_str() {
        SCRIPT_TOOL => Some(Asks::Script),
        TOOL => serde_json::from_value(args["mode"].clone()).ok().map(Asks::Mode),
        _ => None,
    }
}

/// It asks for a test to be started.
pub(super) fn starts_test(body: &RequestBody) -> bool {
    asked(body).is_some_and(Asks::starts)
}

/// What is sent to a plugin.
pub(super) fn ask(mode: PlayMode) -> RequestBody {
    RequestBody::Tool { name: TOOL.to_owned(), args: json!({ "mode": mode }) }
}

/// The tool of a call that waits for the DataModels.
pub(super) fn tool(is_script: bool) -> &'static str {
    if is_script { SCRIPT_TOOL } else { TOOL }
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
        Goal::Editing | Goal::Stopped | Goal::Again(_) => {
            !window.is_played() && here.any(|target| target == Target::Edit)
        }
    }
}

/// A test that was called off may still be on its way.
fn may_still_come(studio: &str) -> ToolError {
    let what =
        format!("a play test of {studio} was stopped while it started, and may still come up; nothing was started");
    ToolError::failed(what, "call again in a few seconds")
}

pub(super) fn plays_already(studio: &str, another_since: Option<Moment>, now: Moment) -> ToolError {
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
        Goal::Stopped => "the play test was told to end before it was up, and it is not known whether it has",
        Goal::Again(_) => "the play test was told to end, it has not left, and no other one was started",
    };
    let next = "`status` lists the DataModels that are there; a test that cannot be reached is stopped in Studio";
    ToolError::new(ErrorCode::OutcomeUnknown, format!("{what} ({studio})"), next)
}
