//! Rojo's own protocol on the same port.

use futures_util::StreamExt;
use librojo::web_api::{ReadResponse, ServerInfoResponse, SocketPacket, SocketPacketBody, WriteRequest};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Agent, BOUND, TestServer, demo, save};

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
    T::deserialize(&mut rmp_serde::Deserializer::new(bytes).with_human_readable()).expect("as Rojo's plugin reads it")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_plugin_finds_what_it_knows_beside_an_agent() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let (status, _, body) = agent.http("GET", "/api/rojo", &[], String::new()).await;
    assert_eq!(status, 200);
    let info: ServerInfoResponse = decode(&body);
    assert_eq!((info.protocol_version, info.project_name.as_str()), (5, "Lantern Run"));
    let (_, _, body) = agent.http("GET", &format!("/api/read/{}", info.root_instance_id), &[], String::new()).await;
    let read: ReadResponse<'_> = decode(&body);
    let config = read.instances.values().find(|instance| instance.name == "Config").expect("the script");

    let stream = TcpStream::connect(("127.0.0.1", server.port)).await.expect("the server listens");
    let url = format!("ws://localhost:{}/api/socket/{}", server.port, read.message_cursor);
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.expect("an upgrade");
    save(project.path(), "src/shared/Config.luau", "return { lanternsToWin = 2 }\n");
    let message = tokio::time::timeout(BOUND, socket.next()).await.expect("in time").expect("open").expect("a frame");
    let packet: SocketPacket<'_> = decode(&message.into_data());
    let SocketPacketBody::Messages(batch) = packet.body;
    let update = batch.messages.iter().flat_map(|message| &message.updated).find(|update| update.id == config.id);
    let properties = &update.expect("the script changed").changed_properties;
    assert_eq!(properties[&"Source".into()], Some("return { lanternsToWin = 2 }\n".into()));
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1, "and the agent's side has it too");
}

/// The close code for a cursor that leads nowhere.
const CURSOR_GONE: u16 = 4004;

#[tokio::test(flavor = "multi_thread")]
async fn c51_a_plugin_of_the_server_before_is_not_left_waiting() {
    let project = demo();
    let first = TestServer::start(project.path()).await;
    for price in 1..=3 {
        save(project.path(), "src/shared/Config.luau", &format!("return {price}\n"));
        first.session.catch_up(None).expect("it is read");
    }
    let (cursor, port, session) = (*first.session.cursor().borrow(), first.port, first.session.id());
    assert!(cursor > 0);
    first.stop().await;

    let second = TestServer::start_with(project.path(), rojo_mcp::store::Store::in_memory(), port).await;
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
    let url = format!("ws://localhost:{port}/api/socket/{cursor}");
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.expect("an upgrade");
    let said = tokio::time::timeout(BOUND, socket.next()).await.expect("in time").expect("open").expect("a frame");
    let Message::Close(Some(farewell)) = said else { panic!("expected a farewell, got {said:?}") };
    assert_eq!(u16::from(farewell.code), CURSOR_GONE, "{farewell}");
    let request = WriteRequest { session_id: session, removed: vec![], added: Default::default(), updated: vec![] };
    let (status, _, body) = second.agent().http("POST", "/api/write", &[], encode(&request)).await;
    assert_eq!(status, 400);
    assert!(String::from_utf8_lossy(&body).contains("Wrong session ID"));
    assert_ne!(second.session.id(), session, "the plugin sees by it that it has to read the tree again");
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = rmp_serde::Serializer::new(&mut bytes).with_human_readable().with_struct_map();
    value.serialize(&mut encoder).expect("it encodes");
    bytes
}

/// Say that the script of this name was deleted in Studio.
async fn delete_in_studio(agent: &Agent, name: &str) {
    let (_, _, body) = agent.http("GET", "/api/rojo", &[], "").await;
    let ServerInfoResponse { session_id, root_instance_id, .. } = decode(&body);
    let (_, _, body) = agent.http("GET", &format!("/api/read/{root_instance_id}"), &[], "").await;
    let read: ReadResponse<'_> = decode(&body);
    let removed = read.instances.values().filter(|instance| instance.name == name).map(|instance| instance.id);
    let request =
        WriteRequest { session_id, removed: removed.collect(), added: Default::default(), updated: Vec::new() };
    let (status, ..) = agent.http("POST", "/api/write", &[], encode(&request)).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_through_the_official_plugin_comes_back_by_undo_without_a_studio_of_ours() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let file = |name: &str| project.path().join(format!("src/shared/{name}.luau"));
    let (config, rope) =
        (std::fs::read(file("Config")).expect("there"), std::fs::read(file("Items/Rope")).expect("there"));
    delete_in_studio(&agent, "Rope").await;
    delete_in_studio(&agent, "Config").await;
    assert!(!file("Config").exists() && !file("Items/Rope").exists());
    for round in 0..3 {
        let undone = agent.ask("undo", json!({ "operationId": "one" })).await;
        assert_eq!((&undone["status"], &undone["pulled"]), (&json!("success"), &json!(1)), "{round}: {undone}");
        assert_eq!(undone["changes"][0]["fsPath"], "src/shared/Config.luau");
        assert_eq!(std::fs::read(file("Config")).expect("it is back"), config);
        assert!(!file("Items/Rope").exists(), "an undo that is repeated takes nothing more back");
    }
    let told = agent.call("undo", json!({ "operationId": "one", "partial": true })).await;
    assert_eq!(told.structure["error"]["code"], "bad_arguments", "{}", told.text);
    let kept = agent.ask("get_call", json!({ "id": "one" })).await;
    assert_eq!((&kept["state"], &kept["answer"]["pulled"]), (&json!("done"), &json!(1)), "{kept}");
    let undone = agent.ask("undo", json!({ "change": 1 })).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert_eq!(std::fs::read(file("Items/Rope")).expect("it is back"), rope);
    let again = agent.ask("undo", json!({ "change": 1 })).await;
    assert!(again["message"].as_str().expect("why").contains("taken back already"), "{again}");
    assert_eq!(agent.ask("undo", json!({ "change": 3 })).await["status"], "error", "an undo is not undone");
    let told = agent.call("undo", json!({})).await;
    assert_eq!(told.structure["error"]["code"], "no_studio", "the rest needs one: {}", told.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_takes_back_what_was_done_last_whoever_did_it() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    delete_in_studio(&agent, "Rope").await;
    save(project.path(), "src/shared/Config.luau", "return { lanternsToWin = 2 }\n");
    let args = json!({ "paths": ["src/shared/Config.luau"] });
    assert_eq!(agent.ask("sync", args).await["pushed"], 1);
    let rope = project.path().join("src/shared/Items/Rope.luau");
    assert_eq!(agent.ask("undo", json!({})).await["changes"][0]["fsPath"], "src/shared/Config.luau");
    assert!(!rope.exists());
    assert_eq!(agent.ask("undo", json!({})).await["changes"][0]["fsPath"], "src/shared/Items/Rope.luau");
    assert!(rope.exists());
    let status = agent.ask("status", json!({})).await;
    assert!(!status["problems"].to_string().contains("cut off"), "{status}");
}
