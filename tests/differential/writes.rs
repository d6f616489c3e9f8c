//! What the plugin writes and opens, sent to both servers on folders of their own.

use std::{collections::HashMap, fs, path::Path};

use hyper::{Method, body::Bytes};
use librojo::{
    SessionId,
    web_api::{InstanceUpdate, ReadResponse},
};
use rbx_dom_weak::types::{Ref, Variant};
use rojo_mcp::{Server, ServerConfig, session::ServeSession};
use serde::Serialize;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    client,
    pair::write,
    stock::{Spare, Stock},
};

/// As `WriteRequest`, but for what it takes as `added`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    session_id: SessionId,
    removed: Vec<Ref>,
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    added: HashMap<Ref, HashMap<String, String>>,
    updated: Vec<InstanceUpdate>,
}

/// One server with a folder of its own.
struct Side {
    folder: TempDir,
    port: u16,
    _stock: Option<Stock>,
}

const FILES: [(&str, &str); 3] = [
    ("default.project.json", r#"{"name":"W","tree":{"$className":"Folder","Kit":{"$path":"src"}}}"#),
    ("src/Alpha.luau", "return 1\n"),
    ("src/Gamma.server.luau", "print(3)\n"),
];

impl Side {
    fn folder() -> TempDir {
        let folder = TempDir::new().expect("a temporary folder");
        FILES.iter().for_each(|(path, text)| write(&folder.path().join(path), text));
        folder
    }

    async fn ours() -> Self {
        let folder = Self::folder();
        let session = ServeSession::start(folder.path()).expect("the project starts");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let server = Server::start(listener, ServerConfig::new(session, CancellationToken::new())).expect("it starts");
        Self { folder, port: server.address.port(), _stock: None }
    }

    async fn stock() -> Self {
        let folder = Self::folder();
        let stock = Spare::start().serve(folder.path());
        let side = Self { folder, port: stock.port, _stock: Some(stock) };
        let wait = async {
            while client::info(side.port).await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(15)).await;
            }
        };
        tokio::time::timeout(client::ANSWER, wait).await.expect("Rojo starts");
        side
    }

    async fn read(&self) -> ReadResponse<'static> {
        client::read(self.port).await.expect("a tree")
    }

    /// Ask for `change`, which is made for the ids that this side has. Returns the status where it
    /// is an error.
    async fn ask(&self, change: impl Fn(&dyn Fn(&str) -> Ref) -> Request, foreign: bool) -> Option<String> {
        let tree = self.read().await;
        let id = |name: &str| tree.instances.values().find(|each| each.name == name).expect("it is there").id;
        let session_id = if foreign { SessionId::new() } else { tree.session_id };
        let request = Request { session_id, ..change(&id) };
        let mut body = Vec::new();
        let mut writer = rmp_serde::Serializer::new(&mut body).with_human_readable().with_struct_map();
        request.serialize(&mut writer).expect("it encodes");
        client::send(self.port, Method::POST, "/api/write", body.into()).await.err()
    }

    /// Wait until the file holds `text`: Rojo answers before it writes.
    async fn until(&self, path: &str, text: &str) {
        let wait = async {
            while self.text(path) != text {
                tokio::time::sleep(std::time::Duration::from_millis(15)).await;
            }
        };
        assert!(tokio::time::timeout(client::ANSWER, wait).await.is_ok(), "{path} holds {:?}", self.text(path));
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("it is there")
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        Path::join(self.folder.path(), path)
    }
}

fn nothing() -> Request {
    Request { session_id: SessionId::new(), removed: Vec::new(), added: HashMap::new(), updated: Vec::new() }
}

fn update(id: Ref, properties: &[(&str, Variant)]) -> InstanceUpdate {
    InstanceUpdate {
        id,
        changed_name: None,
        changed_class_name: None,
        changed_properties: properties.iter().map(|(key, value)| ((*key).into(), Some(value.clone()))).collect(),
        changed_metadata: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_write_the_same() {
    let sides = [Side::ours().await, Side::stock().await];
    let mut answers = Vec::new();
    for side in &sides {
        let text = |text: &str| ("Source", Variant::from(text));
        let mut told = Vec::new();
        for edit in ["return 2\n", "return 'é'\n\n", ""] {
            told.push(
                side.ask(|id| Request { updated: vec![update(id("Alpha"), &[text(edit)])], ..nothing() }, false).await,
            );
            side.until("src/Alpha.luau", edit).await;
        }
        let disabled = ("Disabled", Variant::Bool(true));
        let other = |id: &dyn Fn(&str) -> Ref| {
            let renamed = InstanceUpdate { changed_name: Some("Omega".to_owned()), ..update(id("Alpha"), &[]) };
            Request { updated: vec![renamed, update(id("Gamma"), std::slice::from_ref(&disabled))], ..nothing() }
        };
        let new = HashMap::from([("Name".to_owned(), "New".to_owned())]);
        told.push(
            side.ask(|id| Request { added: HashMap::from([(id("Kit"), new.clone())]), ..nothing() }, false).await,
        );
        told.push(side.ask(|_| nothing(), true).await);
        told.push(side.ask(other, false).await);
        let garbage = Bytes::from_static(b"\xc1garbage");
        told.push(client::send(side.port, Method::POST, "/api/write", garbage).await.err());
        told.push(client::send(side.port, Method::POST, "/api/open/xyz", Bytes::new()).await.err());
        let nobody = format!("/api/open/{}", "1".repeat(32));
        told.push(client::send(side.port, Method::POST, &nobody, Bytes::new()).await.err());
        answers.push(told);
        assert_eq!(side.text("src/Gamma.server.luau"), "print(3)\n");
        assert!(side.path("src/Alpha.luau").exists() && !side.path("src/Omega.luau").exists());
    }
    assert_eq!(answers[0], answers[1]);
    let refused: Vec<&str> = answers[0].iter().map(|answer| answer.as_deref().unwrap_or("done")).collect();
    let bad = "/api/write: 400 Bad Request";
    assert_eq!(refused[..7], ["done", "done", "done", bad, bad, "done", bad]);
}

/// On purpose: what is deleted in Studio is deleted on disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_deletes_and_the_other_says_that_it_did() {
    for (side, stays) in [(Side::ours().await, false), (Side::stock().await, true)] {
        let told = side.ask(|id| Request { removed: vec![id("Gamma")], ..nothing() }, false).await;
        assert_eq!(told, None);
        // An edit that comes after it is written after it.
        let edit = |id: &dyn Fn(&str) -> Ref| update(id("Alpha"), &[("Source", Variant::from("return 'after'\n"))]);
        assert_eq!(side.ask(|id| Request { updated: vec![edit(id)], ..nothing() }, false).await, None);
        side.until("src/Alpha.luau", "return 'after'\n").await;
        assert_eq!(side.path("src/Gamma.server.luau").exists(), stays);
    }
}
