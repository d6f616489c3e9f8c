//! Who may come in.

use serde_json::json;

use crate::support::{TestServer, demo};

#[tokio::test(flavor = "multi_thread")]
async fn c83_a_web_page_reaches_no_route() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let port = server.port;
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }).to_string();
    let routes = [
        ("POST", "/mcp", list.as_str(), &upgrade[..0]),
        ("GET", "/mcp", "", &upgrade[..0]),
        ("GET", "/api/mcp/stream", "", &upgrade[..]),
        ("GET", "/api/mcp/server", "", &upgrade[..0]),
        ("GET", "/api/mcp/server", "", &upgrade[..]),
        ("GET", "/api/socket/0", "", &upgrade[..]),
        ("GET", "/api/rojo", "", &upgrade[..0]),
        ("POST", "/api/write", "", &upgrade[..0]),
        ("GET", "/", "", &upgrade[..0]),
    ];
    let own = format!("localhost:{port}");
    let other_port = format!("http://localhost:{}", port.wrapping_add(1));
    let foreign: Vec<Vec<(&str, &str)>> = vec![
        vec![("host", "evil.example")],
        vec![("host", "localhost.evil.example")],
        vec![("host", &own), ("origin", "http://evil.example")],
        vec![("host", &own), ("origin", "null")],
        vec![("host", &own), ("origin", "http://localhost.evil.example")],
        vec![("host", &own), ("origin", &other_port)],
    ];
    for (method, path, body, extra) in routes {
        for headers in &foreign {
            let mut all = vec![("content-type", "text/plain")];
            all.extend(extra);
            all.extend(headers);
            let (status, _, body) = agent.http(method, path, &all, body.to_owned()).await;
            assert!(status.is_client_error(), "{method} {path} {headers:?}: {status}");
            if path.starts_with("/api/") && !path.starts_with("/api/mcp/") {
                assert_eq!(status, 404, "Rojo's routes answer as Rojo does");
                assert!(body.is_empty());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_game_cannot_drive_the_agents_side() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }).to_string();
    for header in [("roblox-id", "0"), ("user-agent", "Roblox/Linux")] {
        let headers = [("content-type", "application/json"), header];
        let (status, _, _) = server.agent().http("POST", "/mcp", &headers, list.clone()).await;
        assert_eq!(status, 403, "{header:?}");
    }
}
