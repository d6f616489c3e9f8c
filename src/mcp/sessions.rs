//! The sessions of agents: how many there may be, and what is under way in each.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Instant,
};

use hyper::body::{Bytes, Frame, SizeHint};
use rmcp::transport::streamable_http_server::session::{SessionManager, local::LocalSessionManager};
use serde_json::Value;

use crate::{clock, http::Body};

/// A session is kept for a day, and agents may open one each time they start. Beyond so many, the
/// one that was idle for longest goes; its agent is told so at its next request, and opens another.
pub(super) const MAX_SESSIONS: usize = 128;

/// All sessions.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    known: Mutex<HashMap<Arc<str>, Session>>,
}

struct Session {
    used: Instant,
    /// Answers that are being sent.
    open: usize,
    /// The ids of requests that have no answer yet.
    requests: HashSet<String>,
}

impl Sessions {
    pub fn new(manager: Arc<LocalSessionManager>) -> Arc<Self> {
        Arc::new(Self { manager, known: Mutex::default() })
    }

    /// Make room for another session. `false`: all are in use.
    pub async fn make_room(&self) -> bool {
        let kept: HashSet<Arc<str>> = self.manager.sessions.read().await.keys().cloned().collect();
        let oldest = {
            let mut known = self.known();
            // One that has ended may still be answering, and one that has just begun is not among those kept.
            known.retain(|id, session| session.open > 0 || kept.contains(id));
            if kept.len() < MAX_SESSIONS {
                return true;
            }
            let idle = known.iter().filter(|(_, session)| session.open == 0);
            let oldest = idle.min_by_key(|(_, session)| session.used).map(|(id, _)| Arc::clone(id));
            oldest.inspect(|id| _ = known.remove(id))
        };
        let Some(oldest) = oldest else { return false };
        log::info!("there are {MAX_SESSIONS} sessions of agents; the one that was idle for longest ends");
        if let Err(error) = self.manager.close_session(&oldest).await {
            log::warn!("a session of an agent did not end well: {error}");
        }
        true
    }

    /// Whether there is such a session.
    pub async fn has(&self, id: &str) -> bool {
        self.manager.sessions.read().await.contains_key(id)
    }

    /// A request is answered in a session. `None`: one with the same id is under way.
    pub fn begin(self: &Arc<Self>, session: &str, request: Option<&Value>) -> Option<InUse> {
        let session: Arc<str> = session.into();
        let request = request.map(Value::to_string);
        let mut known = self.known();
        let here = known.entry(Arc::clone(&session)).or_insert_with(|| Session {
            used: clock::now(),
            open: 0,
            requests: HashSet::new(),
        });
        if let Some(request) = &request
            && !here.requests.insert(request.clone())
        {
            return None;
        }
        here.open += 1;
        Some(InUse { sessions: Arc::clone(self), session, request })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Arc<str>, Session>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session in use, until this is dropped.
pub(super) struct InUse {
    sessions: Arc<Sessions>,
    session: Arc<str>,
    request: Option<String>,
}

impl InUse {
    /// For as long as `body` is being sent.
    pub fn during(self, body: Body) -> Body {
        Body::new(Answer { body, _in_use: self })
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.known().get_mut(&self.session) {
            session.used = clock::now();
            session.open -= 1;
            if let Some(request) = &self.request {
                session.requests.remove(request);
            }
        }
    }
}

/// An answer that is being sent.
struct Answer {
    body: Body,
    _in_use: InUse,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sessions_that_have_ended_are_forgotten_and_those_in_use_are_not() {
        let sessions = Sessions::new(Arc::default());
        let in_use = sessions.begin("in use", Some(&Value::from(1))).expect("it is the first");
        for number in 0..1000 {
            drop(sessions.begin(&number.to_string(), None));
        }
        assert!(sessions.make_room().await);
        assert_eq!(sessions.known().keys().map(|id| &**id).collect::<Vec<_>>(), ["in use"]);
        assert!(sessions.begin("in use", Some(&Value::from(1))).is_none(), "that request is under way");
        drop(in_use);
        assert!(sessions.begin("in use", Some(&Value::from(1))).is_some());
    }
}
