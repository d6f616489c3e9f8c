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
            crate::attach::ROUTE => Self::Peer,
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
    #[error("agents on other machines must send the server's token (Authorization: Bearer); Studio cannot")]
    Remote,
}

impl Guard {
    /// The rule for a server at `bound_to`:`port`. `allowed` are further hosts, with or without a
    /// port, as `--allowed-hosts` takes them.
    pub fn new(bound_to: IpAddr, port: u16, allowed: Vec<String>) -> Self {
        let allowed = allowed.into_iter().map(|host| host.trim().to_ascii_lowercase()).collect();
        Self { port, bound_to, allowed, token: None }
    }

    /// Let agents of other machines in if they send `token`.
    pub fn with_token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
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
            Face::Mcp | Face::Reviews if !self.is_local(peer) && !self.is_authorized(headers) => Err(Refusal::Remote),
            Face::Studio | Face::Peer if !self.is_local(peer) => Err(Refusal::Remote),
            Face::Mcp | Face::Reviews | Face::Peer | Face::Studio | Face::Rojo | Face::Page => Ok(()),
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
mod tests {
    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a header value"));
        }
        headers
    }

    fn admit(bound_to: &str, allowed: &[&str], pairs: &[(&'static str, &str)]) -> Result<(), Refusal> {
        let allowed = allowed.iter().map(|host| (*host).to_owned()).collect();
        let guard = Guard::new(bound_to.parse().expect("an address"), 34872, allowed);
        let all = [Face::Rojo, Face::Studio, Face::Mcp, Face::Reviews, Face::Peer, Face::Page];
        let answers: Vec<_> = all.iter().map(|face| guard.admit(*face, LOCAL, None, &headers(pairs))).collect();
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "every route alike: {pairs:?} {answers:?}");
        answers.into_iter().next().expect("four answers")
    }

    #[test]
    fn c83_a_foreign_host_is_refused_on_every_route_and_bind_address() {
        for bound_to in ["127.0.0.1", "::1", "0.0.0.0", "::"] {
            for host in ["localhost:34872", "127.0.0.1:34872", "[::1]:34872", "LOCALHOST", "127.9.9.9:34872"] {
                assert_eq!(admit(bound_to, &[], &[("host", host)]), Ok(()), "{host} on {bound_to}");
            }
            for host in [
                "evil.example",
                "evil.example:34872",
                "localhost.evil.example:34872",
                "localhost:34873",
                "localhost:",
                "user@localhost:34872",
                "localhost:34872@evil.example",
                "0.0.0.0:34872",
                "[::ffff:10.0.0.1]:34872",
                "[::1",
                "",
            ] {
                assert!(admit(bound_to, &[], &[("host", host)]).is_err(), "{host:?} on {bound_to}");
            }
            assert!(admit(bound_to, &[], &[]).is_err(), "no Host at all");
            assert!(admit(bound_to, &[], &[("host", "localhost"), ("host", "evil.example")]).is_err());
        }
    }

    #[test]
    fn c83_a_foreign_origin_is_refused_on_every_route() {
        let host = ("host", "localhost:34872");
        for origin in ["http://localhost:34872", "http://127.0.0.1:34872", "http://[::1]:34872"] {
            assert_eq!(admit("127.0.0.1", &[], &[host, ("origin", origin)]), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost",
            "https://localhost:34872",
            "http://localhost:3000",
            "http://localhost.evil.example:34872",
            "http://user@localhost:34872",
            "file://",
        ] {
            assert!(admit("0.0.0.0", &[], &[host, ("origin", origin)]).is_err(), "{origin:?}");
        }
    }

    #[test]
    fn an_allowed_host_comes_in_with_or_without_a_port() {
        let allowed = ["MyPc.lan"];
        for host in ["mypc.lan", "mypc.lan:34872"] {
            assert_eq!(admit("0.0.0.0", &allowed, &[("host", host)]), Ok(()), "{host}");
        }
        let pairs = [("host", "mypc.lan:34872"), ("origin", "http://mypc.lan:34872")];
        assert_eq!(admit("0.0.0.0", &allowed, &pairs), Ok(()));
        assert!(admit("0.0.0.0", &allowed, &[("host", "other.lan")]).is_err());
        assert_eq!(admit("192.168.7.7", &[], &[("host", "192.168.7.7:34872")]), Ok(()), "the bind address");
    }

    #[test]
    fn a_request_for_a_foreign_url_is_refused_whatever_its_host_header() {
        let guard = Guard::new(LOCAL, 34872, Vec::new());
        let plain = headers(&[("host", "localhost:34872")]);
        let admit = |url: &'static str| guard.admit(Face::Mcp, LOCAL, Some(&Authority::from_static(url)), &plain);
        assert_eq!(admit("localhost:34872"), Ok(()));
        assert_eq!(admit("evil.example"), Err(Refusal::Host("evil.example".into())));
    }

    #[test]
    fn a_running_game_and_another_machine_do_not_reach_the_agents_side() {
        let guard = Guard::new(LOCAL, 34872, Vec::new());
        let game = headers(&[("host", "localhost:34872"), ("roblox-id", "0")]);
        assert_eq!(guard.admit(Face::Mcp, LOCAL, None, &game), Err(Refusal::Game));
        assert_eq!(guard.admit(Face::of("/api/mcp/reviews/1"), LOCAL, None, &game), Err(Refusal::Game));
        let agent = headers(&[("host", "localhost:34872"), ("user-agent", "RobloxStudio/WinInet")]);
        assert_eq!(guard.admit(Face::Mcp, LOCAL, None, &agent), Err(Refusal::Game));
        assert_eq!(guard.admit(Face::Studio, LOCAL, None, &agent), Ok(()), "the plugin is Roblox too");
        let remote = "192.168.7.8".parse().expect("an address");
        let plain = headers(&[("host", "localhost:34872")]);
        assert_eq!(guard.admit(Face::Mcp, remote, None, &plain), Err(Refusal::Remote));
        assert_eq!(guard.admit(Face::of("/api/mcp/reviews"), remote, None, &plain), Err(Refusal::Remote));
        assert_eq!(guard.admit(Face::Studio, remote, None, &plain), Err(Refusal::Remote));
        assert_eq!(guard.admit(Face::Peer, remote, None, &plain), Err(Refusal::Remote));
        assert_eq!(guard.admit(Face::Rojo, remote, None, &plain), Ok(()));
    }

    #[test]
    fn the_token_lets_an_agent_of_another_machine_in_but_not_a_game() {
        let token = Token::random();
        let guard = Guard::new(LOCAL, 34872, Vec::new()).with_token(token.clone());
        let remote = "192.168.7.8".parse().expect("an address");
        let bearer = format!("Bearer {}", token.secret());
        let with = |pairs: &[(&'static str, &str)]| {
            let mut all = headers(pairs);
            all.append("host", "localhost:34872".parse().expect("a header value"));
            guard.admit(Face::Mcp, remote, None, &all)
        };
        assert_eq!(with(&[("authorization", &bearer)]), Ok(()));
        assert_eq!(with(&[("authorization", "Bearer guess")]), Err(Refusal::Remote));
        assert_eq!(with(&[("authorization", &bearer), ("roblox-id", "1")]), Err(Refusal::Game));
    }
}
