//! From an HTTP request to a WebSocket.

use std::future::Future;

use http_body_util::{BodyExt, Empty};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Version,
    body::Incoming,
    header::{self, HeaderName, HeaderValue},
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};

use crate::rojo_api::Body;

/// The server's end of a WebSocket.
pub type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// What a request lacks to become a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnUpgrade {
    /// Not `GET`, or older than HTTP/1.1.
    #[error("a WebSocket starts with GET and HTTP/1.1")]
    Method,
    /// `Connection` and `Upgrade` do not ask for it.
    #[error("the request does not ask for an upgrade to websocket")]
    Upgrade,
    /// `Sec-WebSocket-Version` is not 13.
    #[error("only version 13 of WebSocket is spoken here")]
    Version,
    /// `Sec-WebSocket-Key` is absent or not 16 bytes in base64.
    #[error("Sec-WebSocket-Key must be 16 bytes in base64")]
    Key,
}

/// Answer `request` with the switch to a WebSocket, and run `serve` on it once it has happened.
///
/// # Errors
/// The request does not ask for one, or not properly.
pub fn upgrade<F, Fut>(
    request: &mut Request<Incoming>,
    config: Option<WebSocketConfig>,
    serve: F,
) -> Result<Response<Body>, NotAnUpgrade>
where
    F: FnOnce(Socket) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let accept = accept_key(request)?;
    let switched = hyper::upgrade::on(request);
    tokio::spawn(async move {
        match switched.await {
            Ok(io) => serve(WebSocketStream::from_raw_socket(TokioIo::new(io), Role::Server, config).await).await,
            Err(error) => log::debug!("a client left before its WebSocket began: {error}"),
        }
    });
    let mut response = Response::new(Empty::new().boxed());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

fn accept_key<B>(request: &Request<B>) -> Result<HeaderValue, NotAnUpgrade> {
    let headers = request.headers();
    if request.method() != Method::GET || request.version() < Version::HTTP_11 {
        return Err(NotAnUpgrade::Method);
    }
    if !lists(headers, &header::CONNECTION, "upgrade") || !lists(headers, &header::UPGRADE, "websocket") {
        return Err(NotAnUpgrade::Upgrade);
    }
    if !lists(headers, &header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(NotAnUpgrade::Version);
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).ok_or(NotAnUpgrade::Key)?;
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let well_formed = key.len() == 24 && key.ends_with(b"==") && key.iter().take(22).all(base64);
    let accept = well_formed.then(|| derive_accept_key(key)).ok_or(NotAnUpgrade::Key)?;
    HeaderValue::from_str(&accept).map_err(|_| NotAnUpgrade::Key)
}

/// Whether a header, which may come several times, lists `wanted`.
fn lists(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| item.trim().eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(headers: &[(&str, &str)]) -> Result<String, NotAnUpgrade> {
        let mut request = Request::builder().uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let accept = accept_key(&request.body(()).expect("a well-formed request"))?;
        Ok(accept.to_str().expect("base64 is ASCII").to_owned())
    }

    #[test]
    fn the_handshake_is_checked_header_by_header() {
        let good = [
            ("Connection", "keep-alive, Upgrade"),
            ("Upgrade", "WebSocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        // The example of RFC 6455, section 1.3.
        assert_eq!(key_of(&good).as_deref(), Ok("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        let spoilt = |at: usize, value: &'static str| {
            let mut headers = good;
            headers[at].1 = value;
            key_of(&headers)
        };
        assert_eq!(spoilt(0, "close"), Err(NotAnUpgrade::Upgrade));
        assert_eq!(spoilt(1, "h2c"), Err(NotAnUpgrade::Upgrade));
        assert_eq!(spoilt(2, "8"), Err(NotAnUpgrade::Version));
        assert_eq!(spoilt(3, "short=="), Err(NotAnUpgrade::Key));
        assert_eq!(key_of(good.get(..3).expect("there are four")), Err(NotAnUpgrade::Key));
    }
}
