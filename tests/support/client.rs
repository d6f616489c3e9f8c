//! A client of Rojo's protocol, for either server.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, body::Bytes};
use hyper_util::rt::TokioIo;
use librojo::web_api::{ReadResponse, ServerInfoResponse};
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

/// A server that takes longer to answer hangs.
pub const ANSWER: Duration = Duration::from_secs(20);

/// Why there is no answer.
pub type Silence = String;

/// The body of the answer to a `GET`.
pub async fn get(port: u16, path: &str) -> Result<Bytes, Silence> {
    send(port, Method::GET, path, Bytes::new()).await
}

/// One request on a connection of its own. An answer that is an error is one here.
pub async fn send(port: u16, method: Method, path: &str, body: Bytes) -> Result<Bytes, Silence> {
    let talk = async {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let request = Request::builder().method(method).uri(path).header("host", format!("localhost:{port}"));
        let request = request.body(Full::new(body)).expect("a request");
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        if status.is_success() { Ok(body) } else { Err(format!("{path}: {status}")) }
    };
    tokio::time::timeout(ANSWER, talk).await.map_err(|_| format!("{path}: no answer within {ANSWER:?}"))?
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
    T::deserialize(&mut rmp_serde::Deserializer::new(bytes).with_human_readable()).expect("as Rojo's plugin reads it")
}

pub async fn info(port: u16) -> Result<ServerInfoResponse, Silence> {
    Ok(decode(&get(port, "/api/rojo").await?))
}

/// The whole tree, as the plugin reads it.
pub async fn read(port: u16) -> Result<ReadResponse<'static>, Silence> {
    let root = info(port).await?.root_instance_id;
    Ok(decode(&get(port, &format!("/api/read/{root}")).await?))
}
