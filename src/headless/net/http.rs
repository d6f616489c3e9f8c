//! One HTTP request as a task: plain HTTP/1.1 to this machine.

use super::{NetEvent, Target};
use crate::headless::shared::NetSender;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method,
    body::Bytes,
    client::conn::http1,
    header::{HOST, HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use tokio::task::AbortHandle;

/// The largest body that is read.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// What `RequestAsync` was given.
#[derive(Debug)]
pub(in crate::headless) struct Request {
    pub(in crate::headless) method: String,
    pub(in crate::headless) url: String,
    pub(in crate::headless) headers: Vec<(String, String)>,
    pub(in crate::headless) body: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(in crate::headless) struct Response {
    pub(in crate::headless) status: u16,
    pub(in crate::headless) reason: String,
    pub(in crate::headless) headers: Vec<(String, String)>,
    pub(in crate::headless) body: Vec<u8>,
}

/// Send a request; the answer comes as [`NetEvent::Answered`].
pub(in crate::headless) fn send(id: u64, request: Request, events: NetSender) -> AbortHandle {
    let task = tokio::spawn(async move {
        let result = exchange(request).await;
        events.send(NetEvent::Answered { request: id, result });
    });
    task.abort_handle()
}

async fn exchange(request: Request) -> Result<Response, String> {
    let socket = Target::parse(&request.url, "http")?.connect().await?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(socket)).await.map_err(|error| format!("HttpError: {error}"))?;
    let answer = async {
        let response = sender.send_request(build(request)?).await.map_err(|error| format!("HttpError: {error}"))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY_LIMIT).collect().await.map_err(|error| format!("HttpError: {error}"))?;
        Ok::<_, String>((head, body))
    };
    // The connection works for as long as the answer is waited for, and ends with it.
    let driver = async {
        let _ended = connection.await;
        std::future::pending::<Infallible>().await
    };
    let (head, body) = tokio::select! {
        answer = answer => answer?,
        never = driver => match never {},
    };
    Ok(Response {
        status: head.status.as_u16(),
        reason: head.status.canonical_reason().unwrap_or_default().to_owned(),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body: body.to_bytes().to_vec(),
    })
}

fn build(request: Request) -> Result<hyper::Request<Full<Bytes>>, String> {
    let uri: hyper::Uri = request.url.parse().map_err(|error| format!("invalid URL: {error}"))?;
    let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| error.to_string())?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let host = uri.authority().map(ToString::to_string).unwrap_or_default();
    let mut built = hyper::Request::new(Full::new(Bytes::from(request.body)));
    *built.method_mut() = method;
    *built.uri_mut() = path.parse().map_err(|error| format!("invalid URL: {error}"))?;
    built.headers_mut().insert(HOST, HeaderValue::try_from(host).map_err(|error| error.to_string())?);
    for (name, value) in request.headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|_| format!("Header \"{name}\" is not allowed!"))?;
        built.headers_mut().insert(name, HeaderValue::try_from(value).map_err(|error| error.to_string())?);
    }
    Ok(built)
}
