//! Who may come in. One rule for every route, on every bind address.
//!
//! A web page can send requests to this port, and so can a script of a game that is play-tested.
//! A page is told by its `Host` (DNS rebinding) or `Origin`; a game by the headers that Roblox
//! adds to what its `HttpService` sends.

use std::net::IpAddr;

use hyper::{
    header::{HOST, HeaderMap, HeaderValue, ORIGIN, USER_AGENT},
    http::uri::Authority,
};

use crate::attach::Token;

/// Which part of the product a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// Rojo's own API, for the official plugin.
    Rojo,
    /// The link of our plugin.
    Studio,
    /// Agents.
    Mcp,
    /// Reviews over HTTP, for a page or a program.
    Reviews,
    /// Programs of this machine that look for the server of a project.
    Peer,
    /// A person with a browser.
    Page,
}

impl Face {
    /// The face that serves `path`.
    pub fn of(path: &str) -> Self {
        match path {
            "/mcp" | "/mcp/" => Self::Mcp,
            "/api/mcp/stream" => Self::Studio,
            crate::attach::ROUTE | crate::attach::PAIRING_ROUTE => Self::Peer,
            _ if path
                .strip_prefix(crate::reviews::ROUTE)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) =>
            {
                Self::Reviews
            }
            _ if path == "/api" || path.starts_with("/api/") => Self::Rojo,
            _ => Self::Page,
        }
    }
}

/// Who may come in.
#[derive(Debug, Clone)]
pub struct Guard {
    port: u16,
    bound_to: IpAddr,
    allowed: Vec<String>,
    token: Option<Token>,
    token_required: bool,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `Host` is not ours.
    #[error("the Host header {0:?} is neither this machine nor allowed; see --allowed-hosts")]
    Host(String),
    /// `Origin` is not ours.
    #[error("the Origin {0:?} is neither this server nor allowed; see --allowed-hosts")]
    Origin(String),
    /// A script of a running game asks.
    #[error("requests of running games are refused here")]
    Game,
    /// The peer is on another machine.
    #[error("from other machines this takes the server's token (Authorization: Bearer, from its serve.json)")]
    Remote,
    /// The server wants a token of everybody.
    #[error(
        "this server was started with --require-token: send its token (Authorization: Bearer, from its \
         serve.json), or let `rojo-mcp mcp` connect you"
    )]
    Token,
    /// Rojo's plugin cannot send a token.
    #[error("Rojo's own routes are turned off here, since the server was started with --require-token")]
    NoRojo,
}

impl Guard {
    /// The rule for a server at `bound_to`:`port`. `allowed` are further hosts, with or without a
    /// port, as `--allowed-hosts` takes them.
    pub fn new(bound_to: IpAddr, port: u16, allowed: Vec<String>) -> Self {
        let allowed = allowed.into_iter().map(|host| host.trim().to_ascii_lowercase()).collect();
        Self { port, bound_to, allowed, token: None, token_required: false }
    }

    /// Let agents of other machines in if they send `token`.
    pub fn with_token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Want it of everybody, of this machine too. Rojo's own routes are turned off then.
    pub fn requiring_token(mut self, required: bool) -> Self {
        self.token_required = required;
        self
    }

    /// Whether a Studio that asks from there, with these headers, is taken in without more ado.
    pub fn trusts(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        self.is_authorized(headers) || self.is_local(peer) && !self.token_required
    }

    /// Let a request in, or say why not.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn admit(
        &self,
        face: Face,
        peer: IpAddr,
        authority: Option<&Authority>,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        // A request for a whole URL: that counts before the header.
        if let Some(foreign) = authority.filter(|authority| !self.is_ours(&authority.as_str().to_ascii_lowercase())) {
            return Err(Refusal::Host(foreign.to_string()));
        }
        let host = one(headers.get_all(HOST).iter()).ok_or_else(|| Refusal::Host(String::new()))?;
        if !self.is_ours(&host) {
            return Err(Refusal::Host(host));
        }
        if headers.contains_key(ORIGIN) {
            let origin = one(headers.get_all(ORIGIN).iter()).unwrap_or_default();
            let ours = origin.strip_prefix("http://").is_some_and(|host| self.is_ours_with_port(host));
            let listed = self.allowed.contains(&origin);
            if !ours && !listed {
                return Err(Refusal::Origin(origin));
            }
        }
        match face {
            Face::Mcp | Face::Reviews | Face::Peer if is_game(headers) => Err(Refusal::Game),
            Face::Mcp | Face::Reviews if self.trusts(peer, headers) => Ok(()),
            Face::Mcp | Face::Reviews if self.is_local(peer) => Err(Refusal::Token),
            Face::Mcp | Face::Reviews => Err(Refusal::Remote),
            Face::Peer if !self.is_local(peer) => Err(Refusal::Remote),
            Face::Rojo if self.token_required => Err(Refusal::NoRojo),
            // A Studio that is not trusted must prove itself before its link begins.
            Face::Peer | Face::Studio | Face::Rojo | Face::Page => Ok(()),
        }
    }

    /// This machine, by loopback or by the one address that the server listens on.
    fn is_local(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        peer.is_loopback() || peer == self.bound_to.to_canonical()
    }

    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        self.token.as_ref().is_some_and(|token| token.is_in(headers))
    }

    /// `host` or `host:port`; an absent port is taken for ours.
    fn is_ours(&self, host: &str) -> bool {
        let Some((name, port)) = split(host) else { return false };
        let known = is_loopback_name(name)
            || name.trim_matches(['[', ']']).parse() == Ok(self.bound_to) && !self.bound_to.is_unspecified();
        known && port.is_none_or(|port| port == self.port) || self.allows(host, name)
    }

    fn is_ours_with_port(&self, host: &str) -> bool {
        let port = split(host).and_then(|(_, port)| port);
        let default_port = port.is_none() && self.port == 80;
        (port.is_some() || default_port || self.allows(host, host)) && self.is_ours(host)
    }

    fn allows(&self, host: &str, name: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == host || allowed == name)
    }
}

/// What was dialled, as the one `Host` header says, lower case.
pub fn dialled(headers: &HeaderMap) -> String {
    one(headers.get_all(HOST).iter()).unwrap_or_default()
}

/// The only value of a header, lower case. Two values are none: proxies disagree on which counts.
fn one<'a>(mut values: impl Iterator<Item = &'a HeaderValue>) -> Option<String> {
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok().map(str::to_ascii_lowercase),
        _ => None,
    }
}

/// A host and its port. `None`: malformed, for instance with a user name in it.
fn split(host: &str) -> Option<(&str, Option<u16>)> {
    if host.contains(['@', '/', '\\', '?', '#', ' ']) {
        return None;
    }
    let after_name = if host.starts_with('[') { host.find(']')? + 1 } else { host.find(':').unwrap_or(host.len()) };
    let (name, rest) = host.split_at_checked(after_name)?;
    match rest.strip_prefix(':') {
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => Some((name, Some(port.parse().ok()?))),
        Some(_) => None,
        None if rest.is_empty() => Some((name, None)),
        None => None,
    }
}

fn is_loopback_name(name: &str) -> bool {
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Roblox marks what a game's `HttpService` sends with `Roblox-Id`, and with its name as the user
/// agent.
fn is_game(headers: &HeaderMap) -> bool {
    let named =
        |agent: &HeaderValue| agent.as_bytes().get(..6).is_some_and(|start| start.eq_ignore_ascii_case(b"roblox"));
    headers.contains_key("roblox-id") || headers.get_all(USER_AGENT).iter().any(named)
}

#[cfg(test)]
mod tests;
