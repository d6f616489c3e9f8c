//! Rojo's own protocol on the same port.

use futures_util::StreamExt;
use librojo::web_api::{ReadResponse, ServerInfoResponse, SocketPacket, SocketPacketBody};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::net::TcpStream;

use crate::support::{BOUND, TestServer, demo, save};

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
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
