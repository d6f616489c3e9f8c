//! The clients of a play test, which answer through its server.

use super::{Bridge, Effect, What, operations::Ran};
use crate::core::{
    calls::Moment,
    clients::MAX_CLIENTS,
    error::ToolError,
    ids::{LogicalId, RequestId},
    protocol::{Notice, Role, ServerFrame},
    studios::{DataModel, LinkId, StudioKey},
    targets::Target,
};

/// Longest id of a client.
const LONGEST_ID: usize = 64;

impl Bridge {
    pub(super) fn attach(
        &mut self,
        link: LinkId,
        key: StudioKey,
        id: LogicalId,
        wanted: Option<Target>,
        player: String,
    ) {
        let Some(studio) = self.studios.get_mut(key) else { return };
        let name = studio.name.clone();
        if studio.role() != Role::Server {
            return self.note(format!("ignored a play client of {name}, which is no play server"));
        }
        if id.as_str().is_empty() || id.as_str().len() > LONGEST_ID || id.as_str().chars().any(char::is_control) {
            return self.note(format!("ignored a play client of {name}: its id must be printable and not empty"));
        }
        let is_new = studio.clients.get(&id).is_none();
        let Some(role) = studio.clients.attach(id.clone(), wanted, player.clone()) else {
            return self.note(format!("ignored a play client of {name}, which has {MAX_CLIENTS} already"));
        };
        if is_new {
            self.note(format!("{name} has {role}, the client of {player}"));
        }
        self.send(link, ServerFrame::Notice(Notice::Attached { logical_id: id, role }));
    }

    /// What a client runs holds up that client, and nobody else. (A server that comes after the one that asked
    /// for it hears first that the play server runs it.)
    pub(super) fn runs_in(&mut self, now: Moment, key: StudioKey, client: &LogicalId, in_flight: &[RequestId]) {
        if self.studios.get(key).is_none_or(|studio| studio.clients.get(client).is_none()) {
            return;
        }
        for id in in_flight {
            if let Some(next) = self.lanes.runs_in(key, client, id, now) {
                self.its_turn(now, key, &next);
            }
        }
    }

    /// A client is gone: what was sent to it may have run.
    pub(super) fn detach(&mut self, now: Moment, key: StudioKey, id: &LogicalId) {
        let Some(studio) = self.studios.get_mut(key) else { return };
        let Some(client) = studio.clients.detach(id) else { return };
        let (window, target) = (studio.window.clone(), client.target());
        self.studios.keep_printed(&window, target, client.console);
        let name = format!("{window}/{target}");
        self.note(format!("{name} has left"));
        let error = ToolError::player_left(&name);
        self.lanes.end(&DataModel { studio: key, client: Some(id.clone()) });
        let is_its =
            |what: &What| matches!(what, What::Request { request, .. } if request.logical_id.as_ref() == Some(id));
        let its: Vec<RequestId> = self
            .calls
            .iter()
            .filter(|(_, waiting)| waiting.studio == key && is_its(&waiting.what))
            .map(|(id, _)| id.clone())
            .collect();
        for request in its {
            self.fail(now, &request, error.clone(), Ran::Unknown);
        }
    }

    /// The plugin has said all that it says after a welcome: clients that it did not name are gone.
    pub(super) fn drop_doubted(&mut self, now: Moment, key: StudioKey) {
        let doubted = self.studios.get(key).map(|studio| studio.clients.doubted()).unwrap_or_default();
        for id in doubted {
            self.detach(now, key, &id);
        }
    }
    /// A line was printed: by the link's own DataModel, or by a client behind it.
    pub(super) fn printed(&mut self, key: StudioKey, client: Option<LogicalId>, level: u8, message: String) {
        let Some(studio) = self.studios.get_mut(key) else { return };
        let (name, console) = match client {
            None => (studio.name.clone(), &mut studio.console),
            Some(id) => match studio.clients.get_mut(&id) {
                Some(client) => (format!("{}/{}", studio.window, client.target()), &mut client.console),
                None => return self.ignored_frames += 1,
            },
        };
        console.push(level.into(), message.clone());
        self.effects.push(Effect::Output { studio: name, level, message });
    }
}
