//! Callers that keep calling whatever happens, and what each of them knows of its changes in the end.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rojo_mcp::{
    core::{
        bridge::{Answer, Ask, Call},
        error::ErrorCode,
        ids::OperationId,
        operations::Claim,
        status::LinkStatus,
        sync::{SyncArgs, SyncStatus},
        targets::Target,
        text::TextHash,
    },
    mcp::Backend,
};
use serde_json::{Value, json};

use crate::support::save;

/// How long a caller waits for one answer.
const PATIENCE: Duration = Duration::from_secs(8);
/// A call that takes longer than this hangs.
const HANGS: Duration = Duration::from_secs(40);
/// How often one change is asked for again before its caller gives up.
const TRIES: usize = 6;

/// What a caller knows of its change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Known {
    Done,
    /// Sent, not confirmed.
    Unknown,
    NeverSent,
}

/// Calls that are still to be made.
pub struct Budget(AtomicU64);

impl Budget {
    pub fn new(calls: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(calls)))
    }

    fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// What a change is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    /// A call; whatever becomes of it, it is not repeated.
    Once,
    /// A call with an id, repeated until it has an outcome, and once more then.
    Operation,
    /// A file that is saved, and synced until Studio has it.
    Sync,
}

/// One caller of one Studio.
pub struct Caller {
    pub backend: Arc<Backend>,
    /// The Studio's name.
    pub studio: String,
    /// Its place's id.
    pub place: u64,
    pub number: u64,
    pub budget: Arc<Budget>,
    /// The project, and the file in it that is this caller's own.
    pub file: (PathBuf, String),
    /// What counts a key and returns it, with the place's id.
    pub command: fn(caller: u64, key: &str) -> String,
    /// What that returns, from the tool's response.
    pub returned: fn(response: &Value) -> Value,
    /// Studio has the file's text once a sync has succeeded.
    pub syncs_files: bool,
}

impl Caller {
    /// Call until nothing is left to call; what is known of each change, by its key.
    pub async fn run(self) -> HashMap<String, Known> {
        let mut known = HashMap::new();
        for round in 0.. {
            let key = format!("k{}_{round}", self.number);
            let means = match round % 8 {
                1 | 5 => Means::Operation,
                3 if self.syncs_files => Means::Sync,
                _ => Means::Once,
            };
            let Some(what) = self.change(&key, means).await else { break };
            known.insert(key, what);
        }
        known
    }

    /// `None`: no more calls may be made, and this was not begun.
    async fn change(&self, key: &str, means: Means) -> Option<Known> {
        if means == Means::Sync {
            save(&self.file.0, &self.file.1, &format!("return '{key}'\n"));
        }
        let tries = if means == Means::Once { 1 } else { TRIES };
        let mut known = None;
        for _ in 0..tries {
            if !self.budget.take() {
                break;
            }
            let (what, answer) = match means {
                Means::Once => self.call(key, None).await,
                Means::Operation => self.call(key, Some(key)).await,
                Means::Sync => (self.sync(key).await, None),
            };
            // What may have run stays so until it is known.
            known = match (known, what) {
                (Some(Known::Unknown), Known::NeverSent) => Some(Known::Unknown),
                (_, what) => Some(what),
            };
            if what == Known::Done {
                if means == Means::Operation && self.budget.take() {
                    assert_eq!(self.call(key, Some(key)).await, (Known::Done, answer), "{key}, called again");
                }
                break;
            }
            self.until_live().await;
        }
        known
    }

    async fn call(&self, key: &str, operation: Option<&str>) -> (Known, Option<Value>) {
        let command = (self.command)(self.number, key);
        let claim = operation.map(|id| Claim {
            id: OperationId::from(format!("{} {id}", self.studio)),
            tool: "run_code".into(),
            args_hash: TextHash::of(&command).to_string(),
        });
        let ask =
            Ask::Tool { name: "run_code", args: json!({ "command": command }), changes: true, target: Target::Edit };
        match self.ask(key, ask, claim).await {
            Ok(Answer::Tool(response)) => {
                assert_eq!((self.returned)(&response), json!([key, self.place]), "the answer of another call");
                (Known::Done, Some(response))
            }
            Ok(other) => panic!("{key}: {other:?}"),
            Err(known) => (known, None),
        }
    }

    async fn sync(&self, key: &str) -> Known {
        let args = SyncArgs { paths: Some(vec![self.file.1.clone()]), ..SyncArgs::default() };
        match self.ask(key, Ask::Sync(args), None).await {
            // Nothing to do: an earlier one, of which nobody heard, has done it.
            Ok(Answer::Receipt(receipt)) => match receipt.status {
                SyncStatus::Success | SyncStatus::Empty => Known::Done,
                SyncStatus::Error | SyncStatus::Partial => Known::Unknown,
                _ => panic!("{key}: {receipt:?}"),
            },
            Ok(other) => panic!("{key}: {other:?}"),
            Err(known) => known,
        }
    }

    async fn ask(&self, key: &str, ask: Ask, operation: Option<Claim>) -> Result<Answer, Known> {
        let call = Call { studio: Some(self.studio.clone()), patience: PATIENCE, ask, operation };
        let outcome = tokio::time::timeout(HANGS, self.backend.hub.call(call, None)).await;
        outcome.unwrap_or_else(|_| panic!("{key} hangs")).map_err(|error| match error.code {
            ErrorCode::OutcomeUnknown | ErrorCode::StudioLeft => Known::Unknown,
            ErrorCode::Reconnecting | ErrorCode::NoStudio | ErrorCode::TimedOut => Known::NeverSent,
            ErrorCode::Failed if error.message.contains("did not run") => Known::NeverSent,
            code => panic!("{key}: {code}: {error}"),
        })
    }

    async fn until_live(&self) {
        until_live(&self.backend, &self.studio).await;
    }
}

async fn is_live(backend: &Backend, name: &str) -> bool {
    let answer =
        backend.call(None, PATIENCE, Ask::Status(backend.hub.owner()), None).await.expect("status always answers");
    let Answer::Status { studios, .. } = answer else { panic!("not a status") };
    studios.iter().any(|studio| studio.studio == name && matches!(studio.link, LinkStatus::Live))
}

/// Longer than it takes both sides to give a silent link up and to come back.
pub async fn until_live(backend: &Backend, name: &str) {
    let wait = async {
        while !is_live(backend, name).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(90), wait).await.is_ok(), "{name} does not come back");
}

/// How many changes ended how.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    pub done: usize,
    /// Of those that nobody knows of.
    pub ran: usize,
    pub lost: usize,
    pub unsent: usize,
}

impl Sums {
    /// Compare what callers know with how often each change ran.
    pub fn add(&mut self, known: &HashMap<String, Known>, ran: &HashMap<String, u64>) {
        for (key, what) in known {
            let times = ran.get(key).copied().unwrap_or(0);
            match what {
                Known::Done => assert_eq!(times, 1, "{key} was answered as done"),
                Known::Unknown => assert!(times <= 1, "{key} ran {times} times"),
                Known::NeverSent => assert_eq!(times, 0, "{key} was said not to have been sent"),
            }
            match (what, times) {
                (Known::Done, _) => self.done += 1,
                (Known::Unknown, 1..) => self.ran += 1,
                (Known::Unknown, 0) => self.lost += 1,
                (Known::NeverSent, _) => self.unsent += 1,
            }
        }
        let strange: Vec<_> = ran.keys().filter(|key| !known.contains_key(*key)).collect();
        assert!(strange.is_empty(), "something ran that nobody called: {strange:?}");
    }
}
