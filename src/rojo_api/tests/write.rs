//! Writing and opening files, as the official plugin asks for it.

use librojo::{
    SessionId,
    web_api::{InstanceUpdate, WriteRequest},
};
use rbx_dom_weak::{UstrMap, types::Ref};

use super::*;
use crate::session::wire;

pub(super) const KIT: [(&str, &str); 5] = [
    (
        "default.project.json",
        r#"{"name":"Demo","tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"src"}}}}"#,
    ),
    ("src/Alpha.luau", "return 1\n"),
    ("src/Beta/init.luau", "return {}\r\n"),
    ("src/Gamma.luau", "return 3\n"),
    ("src/Ov.model.json", r#"{"className":"ModuleScript","properties":{"Source":"return 'model'"}}"#),
];

impl Server {
    pub(super) fn id(&self, path: &str) -> Ref {
        wire::referent(self.session.find(&Target::InstancePath(&format!("ServerStorage.Kit.{path}")))[0])
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join(path)).ok()
    }

    /// Ask for these edits. Returns the status and, if it is an error, Rojo's words for it.
    pub(super) async fn edit(&self, edits: &[(Ref, &str)]) -> (StatusCode, String) {
        let updated = edits.iter().map(|(id, text)| source(*id, text)).collect();
        self.send(&WriteRequest {
            session_id: self.session.id(),
            removed: Vec::new(),
            added: Default::default(),
            updated,
        })
        .await
    }

    pub(super) async fn send(&self, request: &WriteRequest) -> (StatusCode, String) {
        let body = answer::encode(request).expect("it encodes");
        let (status, body) = self.request(Method::POST, "/api/write", body).await;
        let error = (!status.is_success()).then(|| format!("{:?}", decode::<ErrorResponse>(&body)));
        (status, error.unwrap_or_default())
    }

    /// Wait until the tree has the text of the file.
    pub(super) async fn until_seen(&self, path: &str) {
        let mut cursor = self.session.cursor();
        let seen = async {
            loop {
                cursor.mark_unchanged();
                let (_, looks) = self.session.look(&self.session.find(&Target::FsPath(path)));
                if looks.into_iter().flatten().next().and_then(|look| look.source) == self.text(path) {
                    return;
                }
                cursor.changed().await.expect("the session lives");
            }
        };
        tokio::time::timeout(Duration::from_secs(10), seen).await.expect("within 10 s");
    }
}

fn source(id: Ref, text: &str) -> InstanceUpdate {
    InstanceUpdate {
        id,
        changed_name: None,
        changed_class_name: None,
        changed_properties: UstrMap::from_iter([(ustr("Source"), Some(Variant::from(text)))]),
        changed_metadata: None,
    }
}

#[tokio::test]
async fn an_edit_made_in_studio_goes_to_its_file() {
    let server = Server::start(&KIT).await;
    let (alpha, beta) = (server.id("Alpha"), server.id("Beta"));
    for text in ["return 2\n", "return 22\n", "return 222\n"] {
        assert_eq!(server.edit(&[(alpha, text)]).await, (StatusCode::OK, String::new()), "typing goes on");
        assert_eq!(server.text("src/Alpha.luau").as_deref(), Some(text));
    }
    assert_eq!(server.edit(&[(beta, "return { 1 }\n")]).await.0, StatusCode::OK);
    assert_eq!(server.text("src/Beta/init.luau").as_deref(), Some("return { 1 }\r\n"), "as its lines ended");
    let (_, looks) = server.session.look(&[wire::node_id(alpha)]);
    let look = looks.into_iter().flatten().next().expect("it is in the tree");
    assert_eq!(look.source.as_deref(), Some("return 222\n"), "the tree has it at once");
}

#[tokio::test]
async fn c41_an_edit_never_overwrites_a_newer_save() {
    let server = Server::start(&KIT).await;
    let (alpha, gamma) = (server.id("Alpha"), server.id("Gamma"));
    for round in 0..60 {
        let saved = format!("return 'editor {round}'\n");
        server.write("src/Alpha.luau", &saved);
        if round % 2 == 0 {
            // The tree has it; the plugin may not.
            server.until_seen("src/Alpha.luau").await;
        }
        let (status, words) = server.edit(&[(alpha, "return 'studio'\n"), (gamma, &format!("return {round}\n"))]).await;
        assert_eq!(status, StatusCode::CONFLICT, "{words}");
        assert!(words.contains("Alpha.luau"), "{words}");
        assert_eq!(server.text("src/Alpha.luau"), Some(saved));
        assert_eq!(server.text("src/Gamma.luau"), Some(format!("return {round}\n")), "the other is written");
    }
}

#[tokio::test]
async fn c41_a_plugin_that_shows_that_it_has_the_newer_text_may_edit_it_at_once() {
    let server = Server::start(&KIT).await;
    let alpha = server.id("Alpha");
    server.write("src/Alpha.luau", "return 'editor'\n");
    server.until_seen("src/Alpha.luau").await;
    for text in ["return 'editor'\n", "return 'editor and studio'\n"] {
        assert_eq!(server.edit(&[(alpha, text)]).await, (StatusCode::OK, String::new()));
        assert_eq!(server.text("src/Alpha.luau").as_deref(), Some(text));
    }
}

#[tokio::test]
async fn c41_a_plugin_that_reads_nothing_more_has_seen_nothing_more() {
    let server = Server::start(&KIT).await;
    let alpha = server.id("Alpha");
    let moved = |since, seen| server.session.text_moved(wire::node_id(alpha), since, seen);
    let start = crate::clock::now();
    assert!(!moved(start, u32::MAX));
    server.write("src/Alpha.luau", "return 'editor'\n");
    server.until_seen("src/Alpha.luau").await;
    assert!(moved(start, u32::MAX), "too new");
    let later = crate::clock::now();
    assert!(!moved(later, u32::MAX), "old enough");
    assert!(moved(later, 0) && !moved(later, 1), "unless a socket was not sent it");
}

#[tokio::test]
async fn c42_an_edit_brings_no_deleted_file_back() {
    let server = Server::start(&KIT).await;
    let alpha = server.id("Alpha");
    fs::remove_file(server.folder.path().join("src/Alpha.luau")).expect("it can be removed");
    let (status, words) = server.edit(&[(alpha, "return 'studio'\n")]).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(words.contains("is gone"), "{words}");
    assert_eq!(server.text("src/Alpha.luau"), None);
}

#[tokio::test]
async fn c44_a_read_only_file_is_an_error_for_itself() {
    let server = Server::start(&KIT).await;
    let (alpha, gamma) = (server.id("Alpha"), server.id("Gamma"));
    let file = server.folder.path().join("src/Alpha.luau");
    let mut permissions = fs::metadata(&file).expect("it is there").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&file, permissions).expect("it is ours");
    let (status, words) = server.edit(&[(alpha, "return 'studio'\n"), (gamma, "return 'studio'\n")]).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(words.contains("read-only") && !words.contains("Gamma"), "{words}");
    assert_eq!(server.text("src/Gamma.luau").as_deref(), Some("return 'studio'\n"));
    let (_, looks) = server.session.look(&[wire::node_id(alpha)]);
    assert_eq!(looks[0].as_ref().and_then(|look| look.source.as_deref()), Some("return 1\n"));
}

#[tokio::test]
async fn what_is_no_text_of_a_script_file_changes_no_file() {
    let server = Server::start(&KIT).await;
    let (alpha, model) = (server.id("Alpha"), server.id("Ov"));
    let (status, words) = server.edit(&[(model, "return 'studio'")]).await;
    assert!(status == StatusCode::CONFLICT && words.contains("no") && words.contains("Ov"), "{words}");
    assert!(server.text("src/Ov.model.json").is_some_and(|text| text.starts_with('{')));
    let (status, _) = server.edit(&[(Ref::new(), "return 'studio'")]).await;
    assert_eq!(status, StatusCode::CONFLICT);

    let base = WriteRequest {
        session_id: server.session.id(),
        removed: Vec::new(),
        added: Default::default(),
        updated: vec![InstanceUpdate {
            changed_name: Some("Omega".to_owned()),
            changed_properties: UstrMap::from_iter([(ustr("Disabled"), Some(Variant::Bool(true)))]),
            ..source(alpha, "")
        }],
    };
    assert_eq!(server.send(&base).await, (StatusCode::OK, String::new()), "as Rojo answers");
    assert_eq!(server.text("src/Alpha.luau").as_deref(), Some("return 1\n"));
    let foreign = WriteRequest { session_id: SessionId::new(), ..base };
    let (status, words) = server.send(&foreign).await;
    assert!(status == StatusCode::BAD_REQUEST && words.contains("Wrong session ID"), "{words}");
}

#[tokio::test]
async fn only_this_machine_opens_a_file_and_only_that_of_a_script() {
    let server = Server::start(&KIT).await;
    let open = |id: String, peer: &'static str| {
        let server = &server;
        async move {
            let (status, body) = server.request_from(peer, Method::POST, &format!("/api/open/{id}"), Vec::new()).await;
            let words =
                if status.is_success() { String::new() } else { format!("{:?}", decode::<ErrorResponse>(&body)) };
            (status.as_u16(), words)
        }
    };
    let alpha = server.id("Alpha").to_string();
    for peer in ["192.168.1.7", "::ffff:192.168.1.7", "2001:db8::1"] {
        let (status, words) = open(alpha.clone(), peer).await;
        assert!(status == 403 && words.contains("only available to local clients"), "{peer}: {words}");
    }
    for peer in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(open(alpha.clone(), peer).await.0, 200, "{peer}");
    }
    assert_eq!(open(server.id("Beta").to_string(), "127.0.0.1").await.0, 200, "the init script of a folder");
    assert_eq!(open(server.id("Ov").to_string(), "127.0.0.1").await.0, 404, "its text lies in a model");
    assert_eq!(open("xyz".to_owned(), "127.0.0.1").await.0, 400);
    assert_eq!(open(Ref::new().to_string(), "127.0.0.1").await.0, 404);
}

#[tokio::test]
async fn c41_who_was_told_nothing_newer_has_seen_nothing_newer_though_its_socket_is_gone() {
    let server = Server::start(&KIT).await;
    let alpha = server.id("Alpha");
    let root = wire::referent(server.session.root());
    let mut socket = server.socket(0).await;
    let before = server.api.sockets.slowest();
    socket.close(None).await.expect("it can be closed");
    let mut open = server.api.open_sockets();
    open.wait_for(|count| *count == 0).await.expect("the server lives");
    server.write("src/Alpha.luau", "return 'editor'\n");
    server.until_seen("src/Alpha.luau").await;
    assert_eq!(server.api.sockets.slowest(), before, "nobody was told");
    assert_eq!(server.edit(&[(alpha, "return 'studio'\n")]).await.0, StatusCode::CONFLICT);
    server.request(Method::GET, &format!("/api/read/{root}"), Vec::new()).await;
    assert!(server.api.sockets.slowest() > before, "now somebody was");
}

#[tokio::test]
async fn of_many_refusals_the_first_are_said() {
    let server = Server::start(&KIT).await;
    let unknown: Vec<(Ref, &str)> = (1..=500).map(|number| (Ref::some(number), "")).collect();
    let (status, words) = server.edit(&unknown).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(words.contains("and 480 more") && words.len() < 3_000, "{} bytes: {words}", words.len());
}
