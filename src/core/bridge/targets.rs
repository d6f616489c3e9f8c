//! Where a call goes: which Studio, which of its DataModels, and over which link.

use super::{Answer, Ask, Bridge, Waiter, Waiting, What};
use crate::core::{
    calls::Moment,
    choice::Window,
    console::Query,
    error::ToolError,
    play::{Holder, OwnerId},
    status::{Played, StudioStatus},
    studios::{DataModel, StudioKey},
    targets::Target,
};

/// Where a request goes.
#[derive(Debug)]
pub(super) struct Destination {
    pub data_model: DataModel,
    /// What the request says of it.
    pub target: Option<Target>,
}

impl Destination {
    /// To the link's own DataModel, whatever it is.
    pub fn link(studio: StudioKey) -> Self {
        Self { data_model: DataModel { studio, client: None }, target: None }
    }
}

impl Bridge {
    pub(super) fn status(&self, now: Moment, asker: OwnerId) -> Answer {
        let status = |window: &Window<'_>| {
            let mut status = window.status(now);
            for (of, (_, chosen)) in status.data_models.iter_mut().zip(window.data_models()) {
                of.busy = self.busy(now, &chosen.data_model());
            }
            let first = window.first();
            StudioStatus {
                busy: self.busy(now, &Destination::link(first.key).data_model),
                paused: self.paused(first).map(str::to_owned),
                review: self.review_status(first.key),
                played: self.played(now, window.name, asker),
                ..status
            }
        };
        let studios = self.studios.windows().iter().map(status).collect();
        let waiting = self.calls.iter().filter(|(_, call)| matches!(call.who, Waiter::Caller(_))).count();
        Answer::Status { studios, waiting: waiting + self.operations.waiting() }
    }

    fn played(&self, now: Moment, studio: &str, asker: OwnerId) -> Option<Played> {
        let Holder { owner, since, has_left } = self.leases.holder(studio)?;
        let (by, next) = match (owner == asker, has_left) {
            (true, _) => ("you", "end the test with start_stop_play, `mode` stop, when you are done"),
            (false, true) => {
                ("a caller that has left", "its hold ends within a minute, or with the test: anyone may stop it")
            }
            (false, false) => (
                "another caller",
                "use the test that runs; start_stop_play with `mode` stop ends it, for its caller too",
            ),
        };
        let seconds = now.saturating_sub(since).as_secs();
        Some(Played { by: by.to_owned(), seconds, next: next.to_owned() })
    }

    /// What a DataModel printed, from what is kept of it, even while its link is lost, and after its
    /// play test. `None`: a foreign plugin that may not forward its output has to be asked.
    pub(super) fn read_console(
        &self,
        wanted: Option<&str>,
        target: Target,
        query: &Query,
    ) -> Option<Result<Answer, ToolError>> {
        let window = match self.studios.window(wanted) {
            Ok(window) => window,
            Err(error) => return Some(Err(error)),
        };
        let console = match window.find(target) {
            Ok(chosen) if !chosen.studio.is_level1() => return None,
            Ok(chosen) => Ok(chosen.client.map_or(&chosen.studio.console, |client| &client.console)),
            Err(error) => self.studios.printed_before(window.name, target).ok_or(error),
        };
        Some(console.map(|console| Answer::Console(console.read(query))))
    }

    /// Where a call goes.
    pub(super) fn destination(&self, wanted: Option<&str>, ask: &Ask) -> Result<Destination, ToolError> {
        let window = self.studios.window(wanted)?;
        let target = match ask {
            Ask::Tool { target, .. } | Ask::Console { target, .. } => *target,
            Ask::Mode { target } => target.unwrap_or_else(|| window.telling()),
            _ => Target::Edit,
        };
        let chosen = window.find(target)?;
        if chosen.is_lost() {
            return Err(ToolError::reconnecting(&chosen.name()));
        }
        Ok(Destination { data_model: chosen.data_model(), target: chosen.sent_target() })
    }

    /// The DataModel that a call went to, for error texts.
    pub(super) fn name_of(&self, waiting: &Waiting) -> String {
        let What::Request { request, .. } = &waiting.what else { return self.studio_name(waiting.studio) };
        match (self.studios.get(waiting.studio), request.target) {
            (Some(studio), Some(target)) => format!("{}/{target}", studio.window),
            _ => self.studio_name(waiting.studio),
        }
    }
}
