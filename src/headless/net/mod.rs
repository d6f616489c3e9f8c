//! The network of the simulated Studio: loopback only, over real sockets.
//!
//! Socket tasks know ids and bytes; everything Luau happens in the host's loop,
//! which they reach through [`NetEvent`].

mod http;
mod stream;
mod websocket;

pub(super) use http::{Request, Response, send};
pub(super) use stream::{Streams, handle as handle_stream, open};

use std::net::SocketAddr;
use tokio::net::{TcpStream, lookup_host};

/// What a socket task tells the host.
#[derive(Debug)]
pub(super) enum NetEvent {
    /// The handshake is done.
    Opened {
        stream: u64,
        status: u16,
        headers: String,
    },
    Message {
        stream: u64,
        bytes: Vec<u8>,
    },
    /// Refused, or broken without a close frame; `status` 0 is no HTTP answer.
    Lost {
        stream: u64,
        status: u16,
        message: String,
    },
    /// Closed with a close frame, by either side.
    Closed {
        stream: u64,
    },
    /// The rest of a loss: `Closed` after `Error`, or the reverse.
    AfterLoss {
        stream: u64,
        message: Option<(u16, String)>,
    },
    /// An HTTP request is settled.
    Answered {
        request: u64,
        result: Result<Response, String>,
    },
}

/// Where a URL leads: host and port of a plain `http` or `ws` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    host: String,
    port: u16,
}

impl Target {
    fn parse(url: &str, scheme: &str) -> Result<Self, String> {
        let uri: hyper::Uri = url.parse().map_err(|error| format!("invalid URL: {error}"))?;
        match uri.scheme_str() {
            Some(given) if given == scheme => {}
            other => {
                let other = other.unwrap_or("no scheme");
                return Err(format!("{other} is not simulated by the headless Studio, only {scheme}://"));
            }
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Ok(Self { host, port: uri.port_u16().unwrap_or(80) })
    }

    /// Connect without delay; only this machine is reachable.
    async fn connect(&self) -> Result<TcpStream, String> {
        let found =
            lookup_host((self.host.as_str(), self.port)).await.map_err(|_| "HttpError: DnsResolve".to_owned())?;
        let addresses: Vec<SocketAddr> = found.filter(|address| address.ip().is_loopback()).collect();
        if addresses.is_empty() {
            return Err(format!("the headless Studio reaches this machine only, not {}", self.host));
        }
        // Roblox names the kind of failure, nothing more.
        let socket = TcpStream::connect(&addresses[..]).await.map_err(|_| "HttpError: ConnectFail".to_owned())?;
        socket.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_plain_and_has_a_port() {
        let target = Target::parse("ws://127.0.0.1:34872/api", "ws").expect("a valid URL");
        assert_eq!(target, Target { host: "127.0.0.1".to_owned(), port: 34872 });
        assert!(Target::parse("wss://localhost/", "ws").is_err_and(|e| e.contains("not simulated")));
        assert_eq!(Target::parse("http://[::1]/", "http").expect("a valid URL").host, "::1");
    }
}
