//! What becomes of a play test that is being started when somebody wants it to end, and the steps of a
//! restart: a stop, and a start once the DataModels say that the test is over.
//!
//! A test that is being started cannot be stopped before its server is there. So the wish is kept: the
//! plugin is told at once, and the server of the test as soon as it has said hello.

use std::time::Duration;

use super::{
    Bridge, Waiter, Waiting, What,
    operations::Ran,
    play::{Asked, ask, late_play, plays_already, starts_test},
    targets::Destination,
};
use crate::core::{
    calls::Moment,
    error::{ErrorCode, ToolError},
    ids::RequestId,
    play::{Goal, OwnerId, PlayMode, TestKind},
    protocol::{RequestBody, Role},
    studios::StudioKey,
    targets::Target,
};

/// How long the server of a test may take to say that it ends.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

impl Bridge {
    /// End the test that runs and start another one of its kind, as the call `id`.
    pub(super) fn restart_play(
        &mut self,
        now: Moment,
        deadline: Moment,
        (id, who): (RequestId, Waiter),
        studio: Option<&str>,
        owner: OwnerId,
    ) {
        let (to, kind) = match self.admit_restart(now, &id, studio, owner) {
            Ok(admitted) => admitted,
            Err(error) => return self.finish(who, Err(error), Ran::Never),
        };
        let what = What::Play(Goal::Again(kind), None);
        self.calls.open(id.clone(), deadline, Waiting { studio: to.data_model.studio, who, what });
        self.play_step(now, Moment::MAX, id, to, PlayMode::Stop);
    }

    fn admit_restart(
        &mut self,
        now: Moment,
        id: &RequestId,
        studio: Option<&str>,
        owner: OwnerId,
    ) -> Result<(Destination, TestKind), ToolError> {
        let Asked { name, plays, is_level1, to } = self.whom_to_ask(studio, PlayMode::Restart)?;
        if !is_level1 {
            return Err(no_restart());
        }
        // One that has left cannot mind. (Who calls without a session has left after each call.)
        let holder = self.leases.holder(&name).filter(|holder| holder.owner != owner && !holder.has_left);
        if let Some(holder) = holder {
            return Err(plays_already(&name, Some(holder.since), now));
        }
        let is_starting = self.leases.is_starting(&name);
        if !plays && !is_starting {
            return Err(nothing_plays(&name));
        }
        let kind = self.leases.kind(&name).unwrap_or_else(|| self.kind_of(&name));
        self.call_starts_off(now, &name);
        self.leases.give(&name, (owner, kind), id.clone(), now);
        if plays {
            self.leases.started(&name);
        } else {
            self.leases.call_off(&name, id.clone(), now);
        }
        Ok((to, kind))
    }

    /// What kind of test a person has started.
    fn kind_of(&self, window: &str) -> TestKind {
        let has_client = self.studios.iter().any(|studio| studio.window == window && studio.clients.iter().count() > 0);
        if has_client { TestKind::WithPlayer } else { TestKind::ServerOnly }
    }

    /// One request of the play call `of`, which ends it with itself.
    fn play_step(&mut self, now: Moment, deadline: Moment, of: RequestId, to: Destination, mode: PlayMode) {
        let step = (self.new_id)();
        self.open_request(deadline, to, step.clone(), Waiter::Play(of), ask(mode));
        self.dispatch(now, &step, mode != PlayMode::Stop);
    }

    /// Somebody wants to edit: starts that were not sent are not, and the others are told when theirs is over.
    pub(super) fn call_starts_off(&mut self, now: Moment, window: &str) {
        let keys: Vec<StudioKey> =
            self.studios.iter().filter(|studio| studio.window == window).map(|studio| studio.key).collect();
        let mut unsent = Vec::new();
        for (id, call) in self.calls.iter_mut().filter(|(_, call)| keys.contains(&call.studio)) {
            match &mut call.what {
                What::Play(goal @ (Goal::Playing | Goal::Running | Goal::Again(_)), _) => *goal = Goal::Stopped,
                What::Request { request, sent: false, .. } if starts_test(&request.body) => unsent.push(id.clone()),
                _ => {}
            }
        }
        for id in unsent {
            self.leases.started(window);
            self.fail(now, &id, called_off(window), Ran::Never);
        }
    }

    /// The server of a test that was being started has come: if the test was called off, it is stopped now.
    pub(super) fn see_starts(&mut self, now: Moment) {
        let starting: Vec<String> = self.leases.starting().map(str::to_owned).collect();
        for name in starting {
            let windows = self.studios.windows();
            let window = windows.iter().find(|window| window.name == name);
            let server = window.and_then(|window| window.find(Target::Server).ok());
            let Some(server) = server.filter(|server| !server.is_lost()) else { continue };
            let to = Destination { data_model: server.data_model(), target: server.sent_target() };
            if let Some(stops) = self.leases.started(&name) {
                self.play_step(now, now + STOP_PATIENCE, stops, to, PlayMode::Stop);
            }
        }
    }

    /// The test of a restart is over: start another one.
    pub(super) fn start_again(&mut self, now: Moment, id: &RequestId, kind: TestKind) {
        let Some((waiting, _)) = self.calls.get(id) else { return };
        let Some(window) = self.studios.get(waiting.studio).map(|studio| studio.window.clone()) else { return };
        let edits = |key: &StudioKey| self.studios.get(*key).is_some_and(|studio| studio.role() == Role::Edit);
        let edit = self.studios.iter().filter(|studio| studio.window == window).map(|studio| studio.key).find(edits);
        let Some(edit) = edit else { return };
        if let Some(waiting) = self.calls.get_mut(id) {
            waiting.studio = edit;
            waiting.what = What::Play(kind.goal(), None);
        }
        self.leases.starts_again(&window);
        self.play_step(now, Moment::MAX, id.clone(), Destination::link(edit), kind.mode());
    }

    /// The plugin refused a step of the play call `of`, or nobody knows whether it did it.
    pub(super) fn play_step_failed(&mut self, of: &RequestId, asked: &RequestBody, error: &ToolError) {
        let Some((Waiting { what: What::Play(goal, _), .. }, _)) = self.calls.get(of) else { return };
        let (goal, starts) = (*goal, starts_test(asked));
        if !starts && !matches!(goal, Goal::Again(_)) {
            return;
        }
        let Some(Waiting { studio, who, .. }) = self.calls.settle(of) else { return };
        if starts && let Some(studio) = self.studios.get(studio) {
            self.leases.started(&studio.window.clone());
        }
        self.drop_steps(of);
        let ran = if error.code == ErrorCode::OutcomeUnknown { Ran::Unknown } else { Ran::Known };
        self.finish(who, Err(not_restarted(starts, error)), ran);
    }

    /// A step was lost on the way. A stop may have worked all the same: the DataModels say so.
    pub(super) fn play_step_lost(&mut self, of: &RequestId, asked: &RequestBody, error: &ToolError) {
        if starts_test(asked) {
            self.play_step_failed(of, asked, error);
        }
    }

    /// The deadline of a play call passed after its plugin was asked.
    pub(super) fn late_play(&self, id: &RequestId, studio: &str, goal: Goal) -> ToolError {
        let owner = Waiter::Play(id.clone());
        let is_unsent = |call: &Waiting| call.who == owner && matches!(call.what, What::Request { sent: false, .. });
        if self.calls.iter().any(|(_, call)| is_unsent(call)) {
            let what =
                format!("the play test of {studio} was ended, and no other one was started: its turn did not come");
            return ToolError::new(ErrorCode::TimedOut, what, "call with `mode` start_play or run_server");
        }
        late_play(studio, goal)
    }

    /// The play call `of` is over, and so are its steps.
    pub(super) fn drop_steps(&mut self, of: &RequestId) {
        let owner = Waiter::Play(of.clone());
        for (id, Waiting { studio, what, .. }) in self.calls.settle_where(|call| call.who == owner) {
            if let What::Request { sent: false, .. } = what {
                self.lanes.give_up(studio, &id);
                self.tell_places(studio);
            }
        }
    }
}

/// A stop came before a start was sent.
fn called_off(studio: &str) -> ToolError {
    ToolError::failed(
        format!("a stop came before a play test of {studio} was begun; nothing was started"),
        "start one if it is still wanted",
    )
}

/// A stop came after a start was sent.
pub(super) fn over_before_it_was_up(studio: &str) -> ToolError {
    ToolError::failed(
        format!("the play test of {studio} was stopped by another call before it was up; it has ended"),
        "start one if it is still wanted",
    )
}

fn nothing_plays(studio: &str) -> ToolError {
    ToolError::failed(
        format!("no play test of {studio} runs; nothing was restarted"),
        "call with `mode` start_play or run_server",
    )
}

fn no_restart() -> ToolError {
    ToolError::new(
        ErrorCode::Unsupported,
        "argument `mode`: this Studio's plugin does not say which test runs nor when it has ended; nothing was sent",
        "call with `mode` stop, then with start_play or run_server; or install our plugin (`rojo-mcp plugin install`)",
    )
}

/// A restart went no further.
fn not_restarted(has_ended: bool, error: &ToolError) -> ToolError {
    let how = if has_ended { "the play test was ended, and no other one was started" } else { "nothing was restarted" };
    ToolError::new(error.code, format!("{how}: {}", error.message), error.hint.clone())
}
