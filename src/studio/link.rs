//! One WebSocket of a Studio: text in, frames out, nothing decided.

use std::time::Duration;

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use tokio_tungstenite::tungstenite::{
    self, Message,
    error::CapacityError,
    protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
};
use tokio_util::sync::CancellationToken;

use super::outbox::{Inside, bounds};
use crate::core::{
    ids::RequestId,
    protocol::{FrameError, HARD_FRAME_BYTES, MAX_FRAME_BYTES, Notice, PluginFrame, ServerFrame},
};

/// How long a close may take before the connection is cut.
pub(super) const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// What goes out on a link.
#[derive(Debug)]
pub(super) enum Out {
    /// A frame.
    Frame(Box<ServerFrame>),
    /// A WebSocket ping.
    Ping,
    /// The end, with its reason.
    Close(String),
}

/// What a link reports while it runs.
#[derive(Debug)]
pub(super) enum In {
    /// A frame, or something that should have been one.
    Frame(Result<PluginFrame, FrameError>),
    /// The answer to a ping.
    Pong,
    /// A frame was larger than the limit and was not sent.
    NotSent { request: Option<RequestId>, size: usize },
}

/// The bounds we set on a Studio's WebSocket.
pub(super) fn web_socket_config() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(HARD_FRAME_BYTES)).max_frame_size(Some(HARD_FRAME_BYTES))
}

/// Carry frames both ways until either side ends it. Returns why it ended.
pub(super) async fn run<S, F>(
    socket: S,
    mut outbox: Inside,
    cut: CancellationToken,
    mut report: impl FnMut(In) -> F,
    mut report_unsent: impl FnMut(In),
) -> String
where
    S: Stream<Item = Result<Message, tungstenite::Error>> + Sink<Message, Error = tungstenite::Error> + Unpin,
    F: Future<Output = ()>,
{
    let (mut sink, mut stream) = socket.split();
    let ended = {
        let write = write_frames(&mut sink, &mut outbox, &mut report_unsent);
        let read = read_frames(&mut stream, &mut report);
        tokio::pin!(write, read);
        tokio::select! {
            end = &mut read => end,
            end = &mut write => match end {
                // Our close frame is out; the peer answers it or is cut off.
                End::Ours(_) => match tokio::time::timeout(CLOSE_PATIENCE, &mut read).await {
                    Ok(_) | Err(_) => end,
                },
                End::Theirs(_) | End::TooLarge(_) | End::Cut(_) => end,
            },
            () = cut.cancelled() => End::Cut(format!("it does not read what it is sent: {}", bounds())),
        }
    };
    let code = match &ended {
        End::TooLarge(_) => Some(CloseCode::Size),
        End::Cut(_) => Some(CloseCode::Policy),
        End::Ours(_) | End::Theirs(_) => None,
    };
    let (End::Ours(reason) | End::Theirs(reason) | End::TooLarge(reason) | End::Cut(reason)) = ended;
    if let Some(code) = code {
        let frame = CloseFrame { code, reason: close_reason(&reason).into() };
        // The peer may be gone already, or still not read; then there is nobody to tell.
        let _ = tokio::time::timeout(CLOSE_PATIENCE, sink.send(Message::Close(Some(frame)))).await;
    }
    reason
}

/// Why a link ended.
enum End {
    /// We closed it.
    Ours(String),
    /// The peer did, or the network.
    Theirs(String),
    /// A frame was above the hard limit.
    TooLarge(String),
    /// The peer does not read.
    Cut(String),
}

async fn write_frames(
    sink: &mut (impl Sink<Message, Error = tungstenite::Error> + Unpin),
    outbox: &mut Inside,
    report: &mut impl FnMut(In),
) -> End {
    while let Some(queued) = outbox.next().await {
        let message = match &queued.out {
            Out::Close(reason) => {
                let frame = CloseFrame { code: CloseCode::Normal, reason: close_reason(reason).into() };
                // A peer that is gone needs no close frame.
                let _ = sink.send(Message::Close(Some(frame))).await;
                return End::Ours(reason.clone());
            }
            Out::Ping => Message::Ping(Vec::new().into()),
            Out::Frame(frame) => match encode(frame) {
                Ok(text) => Message::Text(text.into()),
                Err(size) => {
                    let request = match &**frame {
                        ServerFrame::Request(request) => Some(request.request_id.clone()),
                        ServerFrame::Notice(Notice::PlanPart { request_id, .. }) => Some(request_id.clone()),
                        ServerFrame::Notice(_) => None,
                    };
                    report(In::NotSent { request, size });
                    continue;
                }
            },
        };
        if let Err(error) = sink.send(message).await {
            return End::Theirs(error.to_string());
        }
    }
    End::Ours("the server dropped it".into())
}

/// A frame's text, or its size if it is over the limit.
fn encode(frame: &ServerFrame) -> Result<String, usize> {
    let text = serde_json::to_string(frame).expect("frames hold only what JSON can say");
    if text.len() > MAX_FRAME_BYTES { Err(text.len()) } else { Ok(text) }
}

async fn read_frames<F: Future<Output = ()>>(
    stream: &mut (impl Stream<Item = Result<Message, tungstenite::Error>> + Unpin),
    report: &mut impl FnMut(In) -> F,
) -> End {
    while let Some(message) = stream.next().await {
        match message {
            Ok(Message::Text(text)) => report(In::Frame(PluginFrame::parse(&text))).await,
            Ok(Message::Binary(bytes)) => {
                let detail = format!("a frame must be text; {} binary bytes came", bytes.len());
                report(In::Frame(Err(FrameError { request_id: None, detail }))).await;
            }
            Ok(Message::Close(frame)) => {
                let reason = frame.map(|frame| frame.reason.to_string()).filter(|reason| !reason.is_empty());
                return End::Theirs(reason.unwrap_or_else(|| "the plugin closed it".into()));
            }
            Ok(Message::Pong(_)) => report(In::Pong).await,
            Ok(Message::Ping(_) | Message::Frame(_)) => {}
            Err(tungstenite::Error::Capacity(CapacityError::MessageTooLong { size, .. })) => {
                return End::TooLarge(format!("a frame of {size} bytes is over the limit of {MAX_FRAME_BYTES}"));
            }
            Err(error) => return End::Theirs(error.to_string()),
        }
    }
    End::Theirs("the connection ended".into())
}

/// A close frame holds at most 123 bytes of reason.
pub(super) fn close_reason(reason: &str) -> String {
    let mut short = String::new();
    for letter in reason.chars() {
        if short.len() + letter.len_utf8() > 123 {
            break;
        }
        short.push(letter);
    }
    short
}
