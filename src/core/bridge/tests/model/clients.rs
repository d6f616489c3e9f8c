//! The clients of a play server, which keep to the protocol as it does.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::core::{
    ids::{LogicalId, RequestId},
    protocol::Request,
    targets::Target,
};

/// The clients behind one plugin.
#[derive(Default)]
pub(super) struct Clients {
    /// With what the server calls them.
    here: Vec<(LogicalId, Option<Target>)>,
    made: u64,
    /// For whom the requests are that came for clients.
    requests: HashMap<RequestId, LogicalId>,
}

impl Clients {
    /// Two players, as a test begins. `loads` sets them apart from those of the plugin before.
    pub fn two(loads: u64) -> Self {
        let mut clients = Self { made: loads * 1_000, ..Self::default() };
        clients.come();
        clients.come();
        clients
    }

    fn come(&mut self) -> LogicalId {
        self.made += 1;
        let id = LogicalId::from(format!("client {}", self.made));
        self.here.push((id.clone(), None));
        id
    }

    /// What the plugin says of them after a welcome, when these still run.
    pub fn announce(&self, running: &[RequestId]) -> Vec<Value> {
        let attach = |(id, role): &(LogicalId, Option<Target>)| {
            let role = role.map_or_else(|| "client".to_owned(), |role| role.to_string());
            let its: Vec<&RequestId> =
                running.iter().filter(|request| self.requests.get(*request) == Some(id)).collect();
            json!({"type": "attach", "logicalId": id, "role": role, "player": "someone", "inFlight": its})
        };
        self.here.iter().map(attach).collect()
    }

    pub fn attached(&mut self, id: &LogicalId, role: Target) {
        if let Some((_, known)) = self.here.iter_mut().find(|(client, _)| client == id) {
            *known = Some(role);
        }
    }

    /// One comes or goes: what the plugin says, and the requests that the one that goes leaves open.
    pub fn change(&mut self, which: usize) -> (Value, Vec<RequestId>) {
        if self.here.len() < 2 || which >= 4 {
            self.come();
            return (self.announce(&[]).pop().expect("one has come"), Vec::new());
        }
        let (gone, _) = self.here.remove(which % self.here.len());
        let its = self.requests.iter().filter(|(_, client)| **client == gone).map(|(id, _)| id.clone()).collect();
        (json!({"type": "detach", "logicalId": gone}), its)
    }

    /// A request came. `false`: it is for a client that has gone, or is called otherwise.
    pub fn take(&mut self, request: &Request) -> bool {
        let Some(id) = &request.logical_id else { return true };
        self.requests.insert(request.request_id.clone(), id.clone());
        self.here.iter().any(|(client, role)| client == id && *role == request.target)
    }

    /// Both are for the same DataModel.
    pub fn are_together(&self, one: &RequestId, other: &RequestId) -> bool {
        self.requests.get(one) == self.requests.get(other)
    }
}
