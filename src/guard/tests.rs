//! Who may come in, route by route.

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
    assert_eq!(guard.admit(Face::Studio, remote, None, &plain), Ok(()));
    assert!(!guard.trusts(remote, &plain), "it must show that it is paired");
    assert!(guard.trusts(LOCAL, &agent), "as ever");
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

#[test]
fn every_face_with_and_without_the_token_and_the_flag() {
    use Refusal::{Game, NoRojo, Remote, Token as NoToken};
    let (local, remote) = (LOCAL, "192.168.7.8".parse().expect("an address"));
    let token = Token::random();
    let bearer = format!("Bearer {}", token.secret());
    let plain = [("host", "localhost:34872")];
    let wrong = [plain[0], ("authorization", "Bearer guess")];
    let right = [plain[0], ("authorization", bearer.as_str())];
    let game = [plain[0], ("authorization", bearer.as_str()), ("roblox-id", "0")];
    // The answers without a token, with a wrong one, with the token, and to a game with the token.
    type Row = (Face, IpAddr, [Result<(), Refusal>; 4]);
    let table = |required: bool, rows: &[Row]| {
        let guard = Guard::new(local, 34872, Vec::new()).with_token(token.clone()).requiring_token(required);
        for (face, peer, expected) in rows {
            let asked = [&plain[..], &wrong, &right, &game];
            let answers = asked.map(|pairs| guard.admit(*face, *peer, None, &headers(pairs)));
            assert_eq!(&answers, expected, "{face:?} from {peer}, required: {required}");
        }
        [local, remote].map(|peer| [&plain[..], &wrong, &right].map(|pairs| guard.trusts(peer, &headers(pairs))))
    };
    let all = || [Ok(()), Ok(()), Ok(()), Ok(())];
    let agents = |why: Refusal| [Err(why.clone()), Err(why), Ok(()), Err(Game)];
    let no_game = || [Ok(()), Ok(()), Ok(()), Err(Game)];
    let here = || [Err(Remote), Err(Remote), Err(Remote), Err(Game)];
    let off = || [Err(NoRojo), Err(NoRojo), Err(NoRojo), Err(NoRojo)];
    let trusted = table(
        false,
        &[
            (Face::Mcp, local, no_game()),
            (Face::Mcp, remote, agents(Remote)),
            (Face::Reviews, local, no_game()),
            (Face::Reviews, remote, agents(Remote)),
            (Face::Peer, local, no_game()),
            (Face::Peer, remote, here()),
            (Face::Rojo, local, all()),
            (Face::Rojo, remote, all()),
            (Face::Studio, local, all()),
            (Face::Studio, remote, all()),
            (Face::Page, local, all()),
        ],
    );
    assert_eq!(trusted, [[true, true, true], [false, false, true]], "without a proof: local, remote");
    let trusted = table(
        true,
        &[
            (Face::Mcp, local, agents(NoToken)),
            (Face::Mcp, remote, agents(Remote)),
            (Face::Reviews, local, agents(NoToken)),
            (Face::Reviews, remote, agents(Remote)),
            (Face::Peer, local, no_game()),
            (Face::Peer, remote, here()),
            (Face::Rojo, local, off()),
            (Face::Rojo, remote, off()),
            (Face::Studio, local, all()),
            (Face::Studio, remote, all()),
            (Face::Page, local, all()),
        ],
    );
    assert_eq!(trusted, [[false, false, true], [false, false, true]], "without a proof: local, remote");
}
