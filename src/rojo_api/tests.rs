//! The routes over a real connection, as the official plugin uses them.
#![expect(clippy::disallowed_methods, reason = "tests write fixtures")]

mod delete;
mod write;

use std::{convert::Infallible, fs, path::Path, sync::Arc, time::Duration};

use futures_util::StreamExt;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, StatusCode,
    body::{Bytes, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use librojo::web_api::{
    ErrorResponse, RefPatchRequest, RefPatchResponse, SerializeRequest, SerializeResponse, ServerInfoResponse,
    SocketPacket, SocketPacketBody,
};
use rbx_dom_weak::{types::Variant, ustr};
use serde::{Deserialize, de::DeserializeOwned};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};

use super::{RojoApi, answer};
use crate::{
    session::{ServeSession, Target},
    store::Store,
};

struct Server {
    folder: TempDir,
    session: Arc<ServeSession>,
    store: Store,
    api: Arc<RojoApi>,
    address: std::net::SocketAddr,
}

impl Server {
    async fn start(files: &[(&str, &str)]) -> Self {
        Self::with_patience(files, super::socket::PATIENCE).await
    }

    /// With so much patience for clients that take no messages.
    async fn with_patience(files: &[(&str, &str)], patience: Duration) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it lies in the folder")).expect("folders can be made");
            fs::write(path, text).expect("a file can be written");
        }
        Self::at(folder.path().to_path_buf().as_path(), folder, patience).await
    }

    async fn at(path: &Path, folder: TempDir, patience: Duration) -> Self {
        let session = ServeSession::start(path).expect("the project starts");
        session.catch_up(None).expect("the session lives");
        let store = Store::in_memory();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let api = RojoApi::with(Arc::clone(&session), store.clone(), opens_scripts, patience);
        let served = Arc::clone(&api);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("the stream is open");
                let api = Arc::clone(&served);
                let service = service_fn(move |request: Request<Incoming>| {
                    let api = Arc::clone(&api);
                    // As the HTTP layer takes it from the connection; a test can be elsewhere.
                    let peer = request.headers().get("x-test-peer").and_then(|peer| peer.to_str().ok());
                    let peer = peer.unwrap_or("127.0.0.1").parse().expect("an address");
                    async move { Ok::<_, Infallible>(api.call(peer, request).await) }
                });
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
            }
        });
        Self { folder, session, store, api, address }
    }

    async fn request(&self, method: Method, path: &str, body: Vec<u8>) -> (StatusCode, Bytes) {
        self.request_from("127.0.0.1", method, path, body).await
    }

    async fn request_from(&self, peer: &str, method: Method, path: &str, body: Vec<u8>) -> (StatusCode, Bytes) {
        let stream = TcpStream::connect(self.address).await.expect("the server listens");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("it speaks HTTP");
        tokio::spawn(connection);
        let request =
            Request::builder().method(method).uri(path).header("x-test-peer", peer).body(Full::new(Bytes::from(body)));
        let response = sender.send_request(request.expect("a request")).await.expect("an answer");
        assert_eq!(response.headers()["content-type"], "application/msgpack");
        let status = response.status();
        (status, response.into_body().collect().await.expect("a body").to_bytes())
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        let (status, body) = self.request(Method::GET, path, Vec::new()).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        decode(&body)
    }

    async fn socket(&self, cursor: u32) -> WebSocketStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.expect("the server listens");
        stream.set_nodelay(true).expect("the stream is open");
        let url = format!("ws://{}/api/socket/{cursor}", self.address);
        client_async(url, stream).await.expect("a WebSocket").0
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.folder.path().join(path), text).expect("a file can be written");
    }
}

/// Instead of the person's desktop.
fn opens_scripts(path: &Path) -> Result<(), String> {
    if path.extension().is_some_and(|extension| extension == "luau") && path.is_file() {
        Ok(())
    } else {
        Err(path.display().to_string())
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
    let mut deserializer = rmp_serde::Deserializer::new(bytes).with_human_readable();
    T::deserialize(&mut deserializer).expect("msgpack of that shape")
}

async fn packet(socket: &mut WebSocketStream<TcpStream>) -> SocketPacket<'static> {
    let message = tokio::time::timeout(Duration::from_secs(30), socket.next()).await.expect("within 30 s");
    match message.expect("the socket is open").expect("a frame") {
        Message::Binary(bytes) => decode(&bytes),
        other => panic!("expected a packet, got {other:?}"),
    }
}

const PLACE: [(&str, &str); 3] = [
    (
        "default.project.json",
        r#"{"name":"Demo","servePlaceIds":[7],"tree":{"$className":"DataModel","ServerStorage":{"$path":"src"}}}"#,
    ),
    ("src/Alpha.luau", "return 1"),
    ("src/Ov.model.json", r#"{"className":"ObjectValue","id":"me","attributes":{"Rojo_Target_Value":"me"}}"#),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    message_cursor: u32,
    instances: std::collections::HashMap<String, serde_json::Value>,
}

#[tokio::test]
async fn the_plugin_reads_the_tree() {
    let server = Server::start(&PLACE).await;
    let info: ServerInfoResponse = server.get("/api/rojo").await;
    assert_eq!(info.session_id, server.session.id());
    assert_eq!((info.protocol_version, info.server_version.as_str()), (5, "7.7.1"));
    assert_eq!((info.project_name.as_str(), info.expected_place_ids), ("Demo", Some([7].into())));
    let read: Read = server.get(&format!("/api/read/{}", info.root_instance_id)).await;
    let mut names: Vec<&str> = read.instances.values().filter_map(|each| each["Name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!((read.message_cursor, names), (0, vec!["Alpha", "Demo", "Ov", "ServerStorage"]));
    let alpha = read.instances.values().find(|each| each["Name"] == "Alpha").expect("it is there");
    assert_eq!(alpha["Properties"]["Source"]["String"], "return 1");
    assert_eq!(alpha["Metadata"]["ignoreUnknownInstances"], false);
}

#[tokio::test]
async fn what_is_no_route_or_no_id_is_refused_in_rojos_words() {
    let server = Server::start(&PLACE).await;
    let refusals = [
        (Method::GET, "/api/nowhere", StatusCode::NOT_FOUND, "Route not found: /api/nowhere"),
        (Method::POST, "/api/rojo", StatusCode::NOT_FOUND, "Route not found: /api/rojo"),
        (Method::GET, "/api/read/xyz", StatusCode::BAD_REQUEST, "Malformed ID list"),
        (Method::GET, "/api/socket/-1", StatusCode::BAD_REQUEST, "Malformed message cursor"),
        (Method::GET, "/api/socket/0", StatusCode::BAD_REQUEST, "must be called as a websocket upgrade request"),
        (Method::POST, "/api/serialize", StatusCode::BAD_REQUEST, "Invalid body"),
    ];
    for (method, path, wanted, words) in refusals {
        let (status, body) = server.request(method, path, Vec::new()).await;
        let error: ErrorResponse = decode(&body);
        assert!(status == wanted && format!("{error:?}").contains(words), "{path}: {status} {error:?}");
    }
}

#[tokio::test]
async fn a_socket_tells_every_change() {
    let server = Server::start(&PLACE).await;
    let mut socket = server.socket(0).await;
    let alpha = server.session.find(&Target::FsPath("src/Alpha.luau"))[0];
    for text in ["return 2", "return 3"] {
        server.write("src/Alpha.luau", text);
        let SocketPacketBody::Messages(body) = packet(&mut socket).await.body;
        let update = &body.messages[0].updated[0];
        assert_eq!(crate::session::wire::node_id(update.id), alpha);
        assert_eq!(update.changed_properties[&ustr("Source")], Some(Variant::from(text)));
    }
    let mut late = server.socket(1).await;
    let SocketPacketBody::Messages(body) = packet(&mut late).await.body;
    assert_eq!((body.message_cursor, body.messages.len()), (2, 1), "only what came after");
}

#[tokio::test]
async fn c51_a_cursor_from_another_life_is_refused() {
    let server = Server::start(&PLACE).await;
    let mut socket = server.socket(500).await;
    let message = tokio::time::timeout(Duration::from_secs(5), socket.next()).await.expect("within 5 s");
    let Some(Ok(Message::Close(Some(frame)))) = message else { panic!("expected a farewell, got {message:?}") };
    assert_eq!(u16::from(frame.code), 4004);
    assert!(frame.reason.contains("cursor 500"), "{}", frame.reason);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_reading_is_cut_and_slows_nobody() {
    let server = Server::with_patience(&PLACE, Duration::from_millis(500)).await;
    let mut stuck = server.socket(0).await;
    let mut reading = server.socket(0).await;
    // More than two sockets of the system hold.
    let text = "x".repeat(3 << 20);
    let mut newest = 0;
    for round in 0..8 {
        server.write("src/Alpha.luau", &format!("return '{round}{text}'"));
        let SocketPacketBody::Messages(body) = packet(&mut reading).await.body;
        assert!(body.message_cursor > newest, "each edit arrives while the other client takes nothing");
        newest = body.message_cursor;
    }
    let cut = async {
        while server.api.sockets.slowest() < newest {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), cut).await.is_ok(), "the other is let go");
    let rest = async { while let Some(Ok(_)) = stuck.next().await {} };
    assert!(tokio::time::timeout(Duration::from_secs(20), rest).await.is_ok(), "its connection has ended");
    server.write("src/Alpha.luau", "return 'after'");
    packet(&mut reading).await;
}

/// The scripts in a packet that are new, and its version.
async fn added(socket: &mut WebSocketStream<TcpStream>) -> (usize, u32) {
    let SocketPacketBody::Messages(body) = packet(socket).await.body;
    let added = body.messages.iter().flat_map(|message| message.added.values());
    (added.filter(|instance| instance.class_name == "ModuleScript").count(), body.message_cursor)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c23_thousands_of_scripts_reach_a_slow_client_whole_and_hold_up_nobody() {
    const SCRIPTS: usize = 2_000;
    let server = Server::start(&PLACE).await;
    let (mut slow, mut quick) = (server.socket(0).await, server.socket(0).await);
    let text = "-".repeat(4 << 10);
    for number in 0..SCRIPTS {
        let folder = server.folder.path().join(format!("away/d{}", number / 50));
        fs::create_dir_all(&folder).expect("folders can be made");
        fs::write(folder.join(format!("m{number}.luau")), format!("--{text}{number}")).expect("a file can be written");
    }
    fs::rename(server.folder.path().join("away"), server.folder.path().join("src/Moved")).expect("it is moved");
    let mut seen = 0;
    while seen < SCRIPTS {
        let answer = server.get::<ServerInfoResponse>("/api/rojo");
        tokio::time::timeout(Duration::from_secs(30), answer).await.expect("it answers throughout");
        seen += added(&mut quick).await.0;
    }
    assert_eq!(seen, SCRIPTS, "each once");
    // More than the sockets of the system hold, and no answer is waited for.
    let mut newest = 0;
    for round in 0..4 {
        server.write("src/Alpha.luau", &format!("return '{round}{}'", "x".repeat(3 << 20)));
        newest = added(&mut quick).await.1;
    }

    let (mut seen, mut cursor) = (0, 0);
    while cursor < newest {
        let (more, reached) = added(&mut slow).await;
        assert!(reached > cursor, "in their order");
        (seen, cursor) = (seen + more, reached);
    }
    assert_eq!((seen, cursor), (SCRIPTS, newest), "the slow one has missed nothing");
}

#[tokio::test]
async fn models_and_who_points_at_them() {
    let server = Server::start(&PLACE).await;
    let info: ServerInfoResponse = server.get("/api/rojo").await;
    let id = crate::session::wire::referent(server.session.find(&Target::FsPath("src/Ov.model.json"))[0]);
    let request = |session_id, ids| answer::encode(&SerializeRequest { session_id, ids }).expect("it encodes");
    let body = request(info.session_id, vec![id]);
    let (status, body) = server.request(Method::POST, "/api/serialize", body).await;
    assert_eq!(status, StatusCode::OK);
    let model = rbx_binary::from_reader(decode::<SerializeResponse>(&body).model_contents.as_slice());
    assert_eq!(model.expect("a model").descendants().count(), 4, "root, folder, value, copy");
    let body = request(librojo::SessionId::new(), vec![id]);
    let (status, _) = server.request(Method::POST, "/api/serialize", body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);

    let request = RefPatchRequest { session_id: info.session_id, ids: [id].into() };
    let body = answer::encode(&request).expect("it encodes");
    let (_, body) = server.request(Method::POST, "/api/ref-patch", body).await;
    let patch = decode::<RefPatchResponse<'static>>(&body).patch;
    assert_eq!(patch.updated[0].changed_properties[&ustr("Value")], Some(Variant::Ref(id)));
}
