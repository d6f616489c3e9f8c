//! Before a link begins: a Studio shows that it is paired, where that is asked of it.

use std::{sync::Arc, time::Duration};

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{
    self, Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use super::link::{CLOSE_PATIENCE, close_reason};
use crate::{
    core::protocol::{HELLO_DEADLINE, Hello, Notice, PluginFrame, RejectCode, ServerFrame},
    pairing::{BadCode, KeyHash, Pairing},
};

/// How often it is looked whether a key still counts.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What a Studio must show before its link begins.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Whom to let in.
    pairing: Arc<Pairing>,
    /// What the Studio dialled: the `Host` of its request.
    host: String,
    /// How long each of its answers may take.
    patience: Duration,
}

/// A Studio that has shown it.
pub(super) struct Admitted {
    /// Its first frame.
    pub(super) hello: PluginFrame,
    /// With which key.
    pub(super) key: KeyHash,
}

/// Why one is not let in.
struct Refusal {
    code: RejectCode,
    reason: String,
}

impl Refusal {
    fn new(code: RejectCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

const NOT_PAIRED: &str = "this server takes only paired Studios, and this one is not: type the code that \
    `rojo-mcp status` shows, or run `rojo-mcp plugin install` there and start Studio again";

/// A plugin that knows no challenge does not answer it.
const OLDER: &str =
    "its plugin did not prove who it is, so it is older than this server: run `rojo-mcp plugin install`";

impl Gate {
    /// One for a Studio that dialled `host`.
    pub fn new(pairing: Arc<Pairing>, host: String) -> Self {
        Self { pairing, host, patience: HELLO_DEADLINE }
    }

    /// Ask the Studio at `socket` who it is. `None`: it was refused and told why, or has left.
    pub(super) async fn admit<S>(&self, socket: &mut S) -> Option<Admitted>
    where
        S: Stream<Item = Result<Message, tungstenite::Error>> + Sink<Message, Error = tungstenite::Error> + Unpin,
    {
        match self.ask(socket).await {
            Ok(admitted) => Some(admitted),
            Err(refusal) => {
                log::debug!("a Studio was refused before its link began: {}", refusal.reason);
                refuse(socket, refusal).await;
                None
            }
        }
    }

    /// Ends when `key` counts no more.
    pub(super) async fn revoked(&self, key: &KeyHash) {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            let (pairing, looked_for) = (Arc::clone(&self.pairing), key.clone());
            let look = tokio::task::spawn_blocking(move || pairing.still_counts(&looked_for));
            if matches!(look.await, Ok(false)) {
                return;
            }
        }
    }

    async fn ask<S>(&self, socket: &mut S) -> Result<Admitted, Refusal>
    where
        S: Stream<Item = Result<Message, tungstenite::Error>> + Sink<Message, Error = tungstenite::Error> + Unpin,
    {
        let late = |_| Refusal::new(RejectCode::HelloTimeout, format!("no hello within {:?}", self.patience));
        let hello = match timeout(self.patience, next_frame(socket)).await.map_err(late)?? {
            PluginFrame::Hello(hello) => hello,
            _ => return Err(Refusal::new(RejectCode::BadHello, "the first frame must be a hello")),
        };
        let studio = name_of(&hello);
        let admitted = match &hello.level1 {
            Some(_) => {
                let challenge = timeout(self.patience, self.challenge(socket, &studio)).await;
                challenge.unwrap_or_else(|_| Err(Refusal::new(RejectCode::NotPaired, OLDER)))
            }
            None => Err(Refusal::new(
                RejectCode::NotPaired,
                "its plugin cannot prove who it is, which this server wants; install ours: \
                 `rojo-mcp plugin install`",
            )),
        };
        match admitted {
            Ok(key) => {
                self.pairing.came_in(&studio);
                Ok(Admitted { hello: PluginFrame::Hello(hello), key })
            }
            Err(refusal) => {
                // One that left was not refused.
                if matches!(refusal.code, RejectCode::NotPaired | RejectCode::BadCode) {
                    self.pairing.refused(&studio, &in_short(&refusal));
                }
                Err(refusal)
            }
        }
    }

    /// Have the plugin prove that it has a key, or take the code that was typed there.
    async fn challenge<S>(&self, socket: &mut S, studio: &str) -> Result<KeyHash, Refusal>
    where
        S: Stream<Item = Result<Message, tungstenite::Error>> + Sink<Message, Error = tungstenite::Error> + Unpin,
    {
        let not_paired = |why: String| Refusal::new(RejectCode::NotPaired, why);
        let unreadable = |error| not_paired(format!("the list of pairings cannot be used: {error}"));
        let realm = self.apart(|pairing, _| pairing.realm()).await.map_err(unreadable)?;
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        say(socket, Notice::Challenge { realm, nonce: nonce.clone() }).await;
        match next_frame(socket).await? {
            PluginFrame::Proof { proofs } => {
                let proven = self.apart(move |pairing, host| pairing.proven(host, &nonce, &proofs)).await;
                proven.map_err(unreadable)?.ok_or_else(|| not_paired(NOT_PAIRED.to_owned()))
            }
            PluginFrame::Pair { code, hash } => {
                let bad_code = |error: BadCode| Refusal::new(RejectCode::BadCode, error.to_string());
                let hash = KeyHash::read(&hash).ok_or(BadCode::NoHash).map_err(bad_code)?;
                let (studio, kept) = (studio.to_owned(), hash.clone());
                self.apart(move |pairing, _| pairing.pair(&code, kept, &studio)).await.map_err(bad_code)?;
                log::info!("a Studio was paired");
                Ok(hash)
            }
            _ => Err(not_paired(NOT_PAIRED.to_owned())),
        }
    }

    /// The list is a file.
    async fn apart<T: Send + 'static>(&self, work: impl FnOnce(&Pairing, &str) -> T + Send + 'static) -> T {
        let Self { pairing, host, .. } = self.clone();
        let work = tokio::task::spawn_blocking(move || work(&pairing, &host));
        match work.await {
            Ok(done) => done,
            // It was not cancelled, so it has panicked.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// What is said of a refusal where what to do about it follows.
fn in_short(refusal: &Refusal) -> String {
    if refusal.reason == NOT_PAIRED { "it is not paired".to_owned() } else { refusal.reason.clone() }
}

fn name_of(hello: &Hello) -> String {
    let named = hello.level1.as_ref().map(|level1| level1.place_name.clone()).filter(|name| !name.is_empty());
    named.unwrap_or_else(|| format!("place {}", hello.place_id))
}

/// The next frame that is one.
async fn next_frame<S>(socket: &mut S) -> Result<PluginFrame, Refusal>
where
    S: Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
{
    let bad = |why: String| Refusal::new(RejectCode::BadHello, why);
    while let Some(message) = socket.next().await {
        match message {
            Ok(Message::Text(text)) => {
                return PluginFrame::parse(&text).map_err(|error| bad(format!("the frame could not be read: {error}")));
            }
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
            Ok(Message::Binary(_)) => return Err(bad("a frame must be text".to_owned())),
            Ok(Message::Close(_)) | Err(_) => break,
        }
    }
    Err(bad("it has left".to_owned()))
}

async fn say<S: Sink<Message, Error = tungstenite::Error> + Unpin>(socket: &mut S, notice: Notice) {
    let text = serde_json::to_string(&ServerFrame::Notice(notice)).expect("frames hold only what JSON can say");
    // A peer that is gone is noticed at the next read.
    let _ = socket.send(Message::Text(text.into())).await;
}

async fn refuse<S>(socket: &mut S, refusal: Refusal)
where
    S: Stream<Item = Result<Message, tungstenite::Error>> + Sink<Message, Error = tungstenite::Error> + Unpin,
{
    let Refusal { code, reason } = refusal;
    let close = CloseFrame { code: CloseCode::Normal, reason: close_reason(&reason).into() };
    let farewell = async {
        say(socket, Notice::Rejected { code, reason, retry_after: None }).await;
        // A peer that is gone needs no close frame; one that is there answers it.
        let _ = socket.send(Message::Close(Some(close))).await;
        while let Some(Ok(_)) = socket.next().await {}
    };
    // Who does not answer is cut off.
    let _ = timeout(CLOSE_PATIENCE, farewell).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::PairingList;
    use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};

    type Socket = WebSocketStream<tokio::io::DuplexStream>;

    async fn sockets() -> (Socket, Socket) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let ours = WebSocketStream::from_raw_socket(ours, Role::Server, None).await;
        (ours, WebSocketStream::from_raw_socket(theirs, Role::Client, None).await)
    }

    /// What the plugin hears that says `said` and no more, and whom the server remembers as refused.
    async fn hears(said: &[&str], patience: Duration) -> (Vec<String>, Vec<String>) {
        let (mut ours, mut theirs) = sockets().await;
        let pairing = Arc::new(Pairing::new(PairingList::in_memory(), true));
        let gate = Gate { patience, ..Gate::new(Arc::clone(&pairing), "localhost:1".into()) };
        let plugin = async move {
            for text in said {
                theirs.send(Message::text(*text)).await.expect("it is open");
            }
            let mut heard = Vec::new();
            while let Some(Ok(message)) = theirs.next().await {
                if let Message::Text(text) = message {
                    heard.push(text.to_string());
                }
            }
            heard
        };
        let server = async move {
            // With the socket, the connection ends; until then the plugin waits.
            gate.admit(&mut ours).await.is_some()
        };
        let (admitted, heard) = tokio::join!(server, plugin);
        assert!(!admitted);
        (heard, pairing.refused_of_late().iter().map(crate::pairing::RefusedStudio::sentence).collect())
    }

    /// For who does not answer anyway.
    const SHORT: Duration = Duration::from_millis(20);

    const HELLO: &str = include_str!("../../tests/fixtures/wire/from_plugin_hello.json");

    #[tokio::test]
    async fn who_says_nothing_is_closed_and_remembered_as_nobody() {
        let (heard, refused) = hears(&[], SHORT).await;
        assert!(heard.len() == 1 && heard[0].contains("hello_timeout"), "{heard:?}");
        assert_eq!(refused, [] as [&str; 0]);
    }

    #[tokio::test]
    async fn a_plugin_that_knows_no_challenge_is_told_to_be_renewed() {
        let (heard, refused) = hears(&[HELLO], SHORT).await;
        assert!(heard.len() == 2 && heard[0].contains("challenge"), "{heard:?}");
        assert!(heard[1].contains("not_paired") && heard[1].contains("plugin install"), "{heard:?}");
        assert!(refused[0].contains("older than this server"), "{refused:?}");
    }

    #[tokio::test]
    async fn what_is_no_proof_and_no_hash_is_refused() {
        let (heard, _) = hears(&[HELLO, r#"{"type":"proof","proofs":["", "é", "ab"]}"#], HELLO_DEADLINE).await;
        assert!(heard[1].contains("not_paired"), "{heard:?}");
        let (heard, refused) =
            hears(&[HELLO, r#"{"type":"pair","code":"123456","hash":"short"}"#], HELLO_DEADLINE).await;
        assert!(heard[1].contains("bad_code") && heard[1].contains("`hash`"), "{heard:?}");
        assert!(refused[0].contains("`hash`"), "{refused:?}");
        let (heard, refused) = hears(&["nonsense"], HELLO_DEADLINE).await;
        assert!(heard[0].contains("bad_hello"), "{heard:?}");
        assert_eq!(refused, [] as [&str; 0]);
    }
}
