//! `GET /api/socket/<cursor>`: every change since that version of the tree, as it happens.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use hyper::{Request, Response, body::Incoming};
use librojo::{
    SessionId,
    web_api::{SocketPacketType, SubscribeMessage},
};
use serde::Serialize;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::{
    Message, Utf8Bytes,
    protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
};

use super::{Body, RojoApi, answer};
use crate::{
    session::{Health, MessageBatch},
    upgrade::{Socket, upgrade},
};

/// A client that takes nothing for so long is dropped. What it misses meanwhile is not kept for
/// it: it lies in the session's history, which is bounded.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The plugin sends nothing but pings and farewells; much room for a message would only cost memory.
const MAX_FROM_CLIENT: usize = 64 << 10;

/// The close code for a cursor that leads nowhere; the range is free for applications.
const CURSOR_GONE: u16 = 4004;

/// How far each open socket has been sent.
#[derive(Default)]
pub(super) struct Sockets {
    sent: Mutex<Sent>,
    /// How many are open.
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct Sent {
    opened: u64,
    cursors: HashMap<u64, u32>,
    /// The newest version that anybody was told.
    told: u32,
}

impl Sockets {
    /// The oldest version that some open socket is at. Where none is open, nobody has seen more than
    /// what was told before.
    pub fn slowest(&self) -> u32 {
        let sent = self.sent();
        sent.cursors.values().min().copied().unwrap_or(sent.told)
    }

    /// Somebody was told the version `cursor`.
    pub fn told(&self, cursor: u32) {
        let mut sent = self.sent();
        sent.told = sent.told.max(cursor);
    }

    /// How many are open, now and from now on.
    pub fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    fn open(&self, cursor: u32) -> Place<'_> {
        let mut sent = self.sent();
        sent.opened += 1;
        let number = sent.opened;
        sent.cursors.insert(number, cursor);
        sent.told = sent.told.max(cursor);
        self.count.send_replace(sent.cursors.len());
        Place { sockets: self, number }
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One socket among the others, while it is open.
struct Place<'a> {
    sockets: &'a Sockets,
    number: u64,
}

impl Place<'_> {
    fn reached(&self, cursor: u32) {
        self.sockets.sent().cursors.insert(self.number, cursor);
        self.sockets.told(cursor);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut sent = self.sockets.sent();
        sent.cursors.remove(&self.number);
        self.sockets.count.send_replace(sent.cursors.len());
    }
}

pub(super) fn answer(api: Arc<RojoApi>, cursor: &str, mut request: Request<Incoming>) -> Response<Body> {
    let cursor = match cursor.parse::<u32>() {
        Ok(cursor) => cursor,
        Err(error) => return answer::bad_request(format!("Malformed message cursor: {error}")),
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(4 << 10)
        .max_message_size(Some(MAX_FROM_CLIENT))
        .max_frame_size(Some(MAX_FROM_CLIENT));
    match upgrade(&mut request, Some(config), move |socket| serve(api, socket, cursor)) {
        Ok(response) => response,
        Err(_) => answer::bad_request("/api/socket must be called as a websocket upgrade request"),
    }
}

async fn serve(api: Arc<RojoApi>, socket: Socket, cursor: u32) {
    let (mut sender, mut receiver) = socket.split();
    let farewell = tokio::select! {
        farewell = send_changes(&api, &mut sender, cursor) => farewell,
        () = read_until_closed(&mut receiver) => None,
    };
    drop(api);
    if let Some(frame) = farewell {
        let closing = async {
            sender.send(Message::Close(Some(frame))).await?;
            sender.close().await
        };
        _ = tokio::time::timeout(Duration::from_secs(2), closing).await; // it may be gone already
    }
}

/// Returns how to take leave; `None`: the client is gone.
async fn send_changes(api: &RojoApi, sender: &mut SplitSink<Socket, Message>, mut cursor: u32) -> Option<CloseFrame> {
    let session = &api.session;
    let place = api.sockets.open(cursor);
    let (mut newest, mut health) = (session.cursor(), session.health());
    loop {
        newest.mark_unchanged();
        let batch = match session.messages_since(cursor) {
            Ok(batch) => batch,
            Err(gone) => return Some(close(CloseCode::Library(CURSOR_GONE), &gone.to_string())),
        };
        if !batch.messages.is_empty() {
            let packet = match encode(session.id(), &batch) {
                Ok(packet) => packet,
                Err(error) => return Some(close(CloseCode::Error, &error.to_string())),
            };
            let sent = tokio::time::timeout(api.patience, sender.send(Message::Binary(packet.into()))).await;
            if sent.is_err() {
                log::info!("a client that takes no messages any more is let go");
            }
            sent.ok()?.ok()?;
            cursor = batch.cursor;
            place.reached(cursor);
        }
        tokio::select! {
            changed = newest.changed() => changed.ok()?,
            dead = health.wait_for(|health| matches!(health, Health::Dead { .. })) => {
                dead.ok()?;
                return Some(close(CloseCode::Error, "the server no longer follows the files; restart it"));
            }
        }
    }
}

/// The plugin says nothing but pings and farewells; the library answers both.
async fn read_until_closed(receiver: &mut SplitStream<Socket>) {
    while let Some(Ok(message)) = receiver.next().await {
        if message.is_close() {
            return;
        }
    }
}

/// A close frame. Its reason may be no longer than 123 bytes.
fn close(code: CloseCode, reason: &str) -> CloseFrame {
    let mut short = String::new();
    short.extend(reason.chars().take_while({
        let mut bytes = 0;
        move |letter| {
            bytes += letter.len_utf8();
            bytes <= 123
        }
    }));
    CloseFrame { code, reason: Utf8Bytes::from(short) }
}

/// As librojo's `SocketPacket`, whose messages cannot be borrowed from the history.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Packet<'a> {
    session_id: SessionId,
    packet_type: SocketPacketType,
    body: Messages<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Messages<'a> {
    message_cursor: u32,
    messages: Vec<&'a SubscribeMessage<'static>>,
}

fn encode(session_id: SessionId, batch: &MessageBatch) -> Result<Vec<u8>, rmp_serde::encode::Error> {
    let messages = batch.messages.iter().map(|message| &message.rojo).collect();
    let body = Messages { message_cursor: batch.cursor, messages };
    answer::encode(&Packet { session_id, packet_type: SocketPacketType::Messages, body })
}
