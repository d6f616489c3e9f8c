//! One WebSocket connection as a task.

use super::{NetEvent, Target};
use crate::headless::shared::NetSender;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use std::time::Duration;
use tokio::{net::TcpStream, sync::mpsc::UnboundedReceiver, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        handshake::client::{Request, Response},
        http::{HeaderName, HeaderValue},
        protocol::WebSocketConfig,
    },
};

/// What Luau code wants of a connection.
#[derive(Debug)]
pub(super) enum StreamCommand {
    Send(String),
    /// Say goodbye and end.
    Close,
    /// End without a word, as a crash or a pulled cable does.
    Drop,
}

/// Frames of this size still arrive: more than the protocol allows.
const FRAME_LIMIT: usize = 64 * 1024 * 1024;
/// How long the other side may take to answer a close frame.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// How a connection ended.
enum End {
    Closed,
    Dropped,
    Lost { status: u16, message: String },
}

/// Connect, carry frames until the end, and say how it ended.
pub(super) async fn carry(
    stream: u64,
    url: String,
    headers: Vec<(String, String)>,
    mut commands: UnboundedReceiver<StreamCommand>,
    events: NetSender,
) {
    let end = match connect_unless_told(&url, headers, &mut commands).await {
        Ok((socket, response, is_torn)) => {
            let headers = headers_as_text(&response);
            events.send(NetEvent::Opened { stream, status: response.status().as_u16(), headers });
            if is_torn { End::Dropped } else { exchange(stream, socket, commands, &events).await }
        }
        Err(end) => end,
    };
    let event = match end {
        End::Closed => NetEvent::Closed { stream },
        End::Dropped => NetEvent::Lost { stream, status: 0, message: "connection dropped".to_owned() },
        End::Lost { status, message } => NetEvent::Lost { stream, status, message },
    };
    events.send(event);
}

/// Connect. Closing ends that, and so does the end of the Studio; a connection that is to be torn (`true`)
/// is made first.
async fn connect_unless_told(
    url: &str,
    headers: Vec<(String, String)>,
    commands: &mut UnboundedReceiver<StreamCommand>,
) -> Result<(WebSocketStream<TcpStream>, Response, bool), End> {
    let connecting = connect(url, headers);
    tokio::pin!(connecting);
    let mut is_torn = false;
    loop {
        tokio::select! {
            biased;
            connected = &mut connecting => return connected.map(|(socket, response)| (socket, response, is_torn)),
            command = commands.recv() => match command {
                Some(StreamCommand::Drop) => is_torn = true,
                // Nothing can be sent yet.
                Some(StreamCommand::Send(_)) => {}
                Some(StreamCommand::Close) => return Err(End::Closed),
                None => return Err(End::Dropped),
            },
        }
    }
}

async fn connect(url: &str, headers: Vec<(String, String)>) -> Result<(WebSocketStream<TcpStream>, Response), End> {
    let lost = |message: String| End::Lost { status: 0, message };
    let request = request(url, headers).map_err(lost)?;
    let socket = Target::parse(url, "ws").map_err(lost)?.connect().await.map_err(lost)?;
    let config = WebSocketConfig::default().max_message_size(Some(FRAME_LIMIT)).max_frame_size(Some(FRAME_LIMIT));
    client_async_with_config(request, socket, Some(config)).await.map_err(|error| match error {
        Error::Http(response) => {
            End::Lost { status: response.status().as_u16(), message: format!("HTTP {}", response.status()) }
        }
        other => lost(other.to_string()),
    })
}

fn request(url: &str, headers: Vec<(String, String)>) -> Result<Request, String> {
    let mut request = url.into_client_request().map_err(|error| error.to_string())?;
    for (name, value) in headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|_| format!("Header \"{name}\" is not allowed!"))?;
        let value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
        request.headers_mut().insert(name, value);
    }
    Ok(request)
}

fn headers_as_text(response: &Response) -> String {
    let lines =
        response.headers().iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or_default()));
    lines.collect::<Vec<_>>().join("\r\n")
}

/// Reading and writing side by side, so that a peer that does not read is still heard.
async fn exchange(
    stream: u64,
    socket: WebSocketStream<TcpStream>,
    mut commands: UnboundedReceiver<StreamCommand>,
    events: &NetSender,
) -> End {
    let (mut sink, mut source) = socket.split();
    let reading = read(stream, &mut source, events);
    tokio::pin!(reading);
    let closing = tokio::select! {
        end = &mut reading => return end,
        closing = write(&mut sink, &mut commands) => closing,
    };
    match closing {
        Some(end) => end,
        // Our close frame is out: the other side answers it, or has had its time.
        None => timeout(CLOSE_PATIENCE, reading).await.map_or(End::Closed, |end| match end {
            End::Lost { .. } => End::Closed,
            end => end,
        }),
    }
}

async fn read(
    stream: u64,
    source: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    events: &NetSender,
) -> End {
    loop {
        let bytes = match source.next().await {
            Some(Ok(Message::Text(text))) => text.as_bytes().to_vec(),
            Some(Ok(Message::Binary(bytes))) => bytes.to_vec(),
            Some(Ok(Message::Close(_))) => return End::Closed,
            Some(Ok(_)) => continue,
            Some(Err(error)) => return End::Lost { status: 0, message: error.to_string() },
            None => return End::Lost { status: 0, message: "connection reset".to_owned() },
        };
        events.send(NetEvent::Message { stream, bytes });
    }
}

/// Carry out commands; `None` once a close frame was sent.
async fn write(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    commands: &mut UnboundedReceiver<StreamCommand>,
) -> Option<End> {
    loop {
        let sent = match commands.recv().await {
            Some(StreamCommand::Send(text)) => sink.send(Message::text(text)).await,
            Some(StreamCommand::Close) => {
                return match sink.send(Message::Close(None)).await {
                    Ok(()) => None,
                    Err(_) => Some(End::Closed),
                };
            }
            Some(StreamCommand::Drop) | None => return Some(End::Dropped),
        };
        if let Err(error) = sent {
            return Some(End::Lost { status: 0, message: error.to_string() });
        }
    }
}
