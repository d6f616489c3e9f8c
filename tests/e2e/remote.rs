//! Peers on another machine. A connection to an address of this machine's network comes from that address, and a
//! server that listens everywhere cannot tell it from another machine's.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use hyper::StatusCode;
use rojo_mcp::pairing::{Key, PairingList};
use serde_json::{Value, json};

use crate::{
    faults::hello1,
    level0::FakePlugin,
    pairing::bearer,
    support::{TestServer, demo},
};

/// This machine's address in its network. `None`: it is in none. (Nothing is sent to find it.)
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("198.51.100.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

/// A server that listens everywhere, and where it is reached as from another machine.
async fn everywhere(project: &std::path::Path, own: IpAddr) -> (TestServer, SocketAddr) {
    let server = TestServer::start_everywhere(project, own.to_string(), PairingList::in_memory()).await;
    let address = SocketAddr::new(own, server.port);
    (server, address)
}

/// A Studio there that says hello, and what the server asks of it.
async fn studio(far: SocketAddr) -> (FakePlugin, Value) {
    let mut plugin = FakePlugin::connect_to(far, &far.to_string(), None).await;
    plugin.send(hello1("s", "place:1")).await;
    let asked = plugin.next().await.expect("an answer");
    (plugin, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn another_machine_reaches_agents_tools_only_with_the_token() {
    let Some(own) = own_address() else { return eprintln!("this machine is in no network") };
    let project = demo();
    let (server, far) = everywhere(project.path(), own).await;
    let agent = server.agent();
    let host = far.to_string();
    let bearer = bearer(&server, project.path());
    let token = ("authorization", bearer.as_str());
    let json = ("content-type", "application/json");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "status" } }).to_string();
    let ask = async |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        let headers = [&[("host", host.as_str())], headers].concat();
        let (status, _, answer) = agent.http_to(far.ip(), method, path, &headers, body.to_owned()).await;
        (status, String::from_utf8_lossy(&answer).into_owned())
    };
    for headers in [&[json][..], &[json, ("authorization", "Bearer guess")]] {
        let (status, answer) = ask("POST", "/mcp", headers, &body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
        assert!(answer.contains("from other machines this takes the server's token"), "{answer}");
    }
    let (status, answer) = ask("POST", "/mcp", &[json, token], &body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let told: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(told["result"]["structuredContent"]["project"]["name"], "Lantern Run");
    assert_eq!(ask("GET", "/api/mcp/reviews", &[], "").await.0, StatusCode::FORBIDDEN);
    assert_eq!(ask("GET", "/api/mcp/reviews", &[token], "").await.0, StatusCode::OK);
    // Programs attach from this machine alone, whatever they know.
    assert_eq!(ask("GET", "/api/mcp/server", &[token], "").await.0, StatusCode::FORBIDDEN);
    let (status, page) = ask("GET", "/", &[], "").await;
    assert_eq!(status, StatusCode::OK);
    assert!(!page.contains("Lantern Run") && page.contains("token"), "{page}");
    assert!(ask("GET", "/", &[token], "").await.1.contains("Lantern Run"));
    // The same server, from this machine.
    let (status, _, _) = server.agent().http("POST", "/mcp", &[json], body).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_studio_on_another_machine_is_paired_and_one_on_this_machine_need_not_be() {
    let Some(own) = own_address() else { return eprintln!("this machine is in no network") };
    let project = demo();
    let (server, far) = everywhere(project.path(), own).await;
    let key = Key::random();
    let proof = |asked: &Value| {
        let nonce = asked["nonce"].as_str().expect("a nonce");
        json!({ "type": "proof", "proofs": [key.prove(&far.to_string(), nonce)] })
    };
    let (mut plugin, asked) = studio(far).await;
    assert_eq!(asked["type"], "challenge", "{asked}");
    plugin.send(proof(&asked)).await;
    assert_eq!(plugin.next().await.expect("an answer")["code"], "not_paired");

    let code = server.pairing().report().code.expect("a code");
    let (mut plugin, _) = studio(far).await;
    plugin.send(json!({ "type": "pair", "code": code, "hash": key.hash() })).await;
    assert_eq!(plugin.next().await.expect("an answer")["type"], "welcome");
    drop(plugin);
    let (mut plugin, asked) = studio(far).await;
    plugin.send(proof(&asked)).await;
    assert_eq!(plugin.next().await.expect("an answer")["type"], "welcome", "it needs no code again");

    let mut near = FakePlugin::connect(server.port).await;
    near.send(hello1("near", "place:2")).await;
    assert_eq!(near.next().await.expect("an answer")["type"], "welcome", "the same server, from this machine");
}
