//! The client's side: reach the server that `serve.json` names, and make sure that it is that one.

use std::{io, net::SocketAddr, time::Duration};

use http_body_util::{BodyExt, Empty, Limited};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
    header::{AUTHORIZATION, CONNECTION, HOST, UPGRADE as UPGRADE_HEADER},
    http::request::Builder,
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{PAIRING_ROUTE, ROUTE, ServeFile, ServerCard, Token, UPGRADE};
use crate::pairing::PairingReport;

/// How long a server of this machine may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// How much of an answer is read; what answers may be anything.
const MAX_ANSWER: usize = 64 * 1024;

/// Lines of JSON-RPC, both ways.
pub type Stream = TokioIo<Upgraded>;

/// Why there is no connection to the server that `serve.json` names.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Nothing listens there, or it went away.
    #[error("nothing answers at {0}: {1}")]
    Silent(SocketAddr, io::Error),
    /// Something listens that is not that server.
    #[error("what listens at {0} is not the server that said so")]
    Stranger(SocketAddr),
    /// It is that server, and it does not take us in.
    #[error("the server at {0} refuses: {1}")]
    Refused(SocketAddr, StatusCode),
}

/// Attach to the server that `file` names. The token is sent only once the peer has proven that it
/// has it.
///
/// # Errors
/// It is not there, or is not what it should be.
pub async fn connect(file: &ServeFile) -> Result<Stream, DialError> {
    let address = file.dial();
    let silent = |error: io::Error| DialError::Silent(address, error);
    let attach = async {
        let mut sender = open_proven(file).await?;
        let request = with_token(file, ROUTE).header(CONNECTION, "Upgrade").header(UPGRADE_HEADER, UPGRADE);
        let request = request.body(Empty::<Bytes>::new()).expect("all its parts are well formed");
        let response = send(&mut sender, request).await.map_err(silent)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(DialError::Refused(address, response.status()));
        }
        let io = hyper::upgrade::on(response).await.map_err(|error| silent(io::Error::other(error)))?;
        Ok(TokioIo::new(io))
    };
    let late = |_| silent(io::Error::new(io::ErrorKind::TimedOut, "it took too long"));
    tokio::time::timeout(PATIENCE, attach).await.map_err(late)?
}

/// How the pairing of Studios stands at the server that `file` names; a code is made if one is needed.
pub async fn pairing_of(file: &ServeFile) -> Option<PairingReport> {
    let ask = async {
        let mut sender = open_proven(file).await.ok()?;
        let request = with_token(file, PAIRING_ROUTE).body(Empty::new()).ok()?;
        let response = send(&mut sender, request).await.ok()?;
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await.ok()?.to_bytes();
        serde_json::from_slice(&body).ok()
    };
    tokio::time::timeout(PATIENCE, ask).await.ok().flatten()
}

/// A connection to the server that `file` names, which has proven that it is that one.
async fn open_proven(file: &ServeFile) -> Result<SendRequest<Empty<Bytes>>, DialError> {
    let address = file.dial();
    let mut sender = open(address).await.map_err(|error| DialError::Silent(address, error))?;
    // As hard to guess as a token.
    let challenge = Token::random().secret().to_owned();
    let answer = ask_for(&mut sender, address, &format!("{ROUTE}?challenge={challenge}")).await;
    let card = answer.and_then(|answer| serde_json::from_slice::<ServerCard>(&answer).ok());
    let proof = card.and_then(|card| card.proof).unwrap_or_default();
    if file.token.is_proven(address.port(), &challenge, &proof) {
        Ok(sender)
    } else {
        Err(DialError::Stranger(address))
    }
}

fn with_token(file: &ServeFile, path: &str) -> Builder {
    let token = format!("Bearer {}", file.token.secret());
    Request::get(path).header(HOST, file.dial().to_string()).header(AUTHORIZATION, token)
}

/// What the server at `address` says of itself, if it is one of ours. Nothing proves it.
pub async fn who_is_at(address: SocketAddr) -> Option<ServerCard> {
    serde_json::from_slice(&get(address, ROUTE).await?).ok()
}

/// What a server of this machine answers to a `GET`, whatever its status.
pub async fn get(address: SocketAddr, path: &str) -> Option<Bytes> {
    let ask = async {
        let mut sender = open(address).await.ok()?;
        ask_for(&mut sender, address, path).await
    };
    tokio::time::timeout(PATIENCE, ask).await.ok().flatten()
}

async fn open(address: SocketAddr) -> io::Result<SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // How it ends is what the requests on it say.
    tokio::spawn(connection.with_upgrades());
    Ok(sender)
}

async fn ask_for(sender: &mut SendRequest<Empty<Bytes>>, address: SocketAddr, path: &str) -> Option<Bytes> {
    let request = Request::get(path).header(HOST, address.to_string()).body(Empty::new()).ok()?;
    let response = send(sender, request).await.ok()?;
    Some(Limited::new(response.into_body(), MAX_ANSWER).collect().await.ok()?.to_bytes())
}

/// The connection takes a request when it is done with the one before.
async fn send(
    sender: &mut SendRequest<Empty<Bytes>>,
    request: Request<Empty<Bytes>>,
) -> io::Result<Response<Incoming>> {
    sender.ready().await.map_err(io::Error::other)?;
    sender.send_request(request).await.map_err(io::Error::other)
}
