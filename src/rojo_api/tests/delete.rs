//! Scripts that are deleted in Studio, with two-way sync.

use librojo::web_api::{InstanceUpdate, WriteRequest};
use rbx_dom_weak::{UstrMap, types::Ref};

use super::{write::KIT, *};
use crate::{
    core::{sync::SyncStatus, text::TextHash},
    deletions,
    store::EntryState,
};

impl Server {
    async fn delete(&self, ids: &[Ref]) -> (StatusCode, String) {
        let session_id = self.session.id();
        self.send(&WriteRequest { session_id, removed: ids.to_vec(), added: Default::default(), updated: Vec::new() })
            .await
    }

    fn is_in_tree(&self, path: &str) -> bool {
        !self.session.find(&Target::InstancePath(&format!("ServerStorage.Kit.{path}"))).is_empty()
    }

    /// Take the last deletion back.
    fn undo(&self, partial: bool) -> crate::core::sync::Receipt {
        let last = deletions::last(&self.store, None).expect("the store is read").expect("there is one");
        deletions::bring_back(&self.session, &self.store, (last, None), partial).expect("the store is read")
    }

    fn entries(&self) -> Vec<(EntryState, usize)> {
        let entries = self.store.entries(9).expect("the store is read").into_iter();
        entries.map(|entry| (entry.state, entry.entry["changes"].as_array().map_or(0, Vec::len))).collect()
    }
}

const DONE: (StatusCode, String) = (StatusCode::OK, String::new());

#[tokio::test]
async fn a_script_that_is_deleted_in_studio_goes_with_its_file_and_undo_brings_it_back() {
    let server = Server::start(&KIT).await;
    assert_eq!(server.delete(&[server.id("Alpha"), server.id("Beta")]).await, DONE);
    assert_eq!((server.text("src/Alpha.luau"), server.text("src/Beta/init.luau")), (None, None));
    assert!(!server.folder.path().join("src/Beta").exists(), "nothing else was in it");
    assert!(!server.is_in_tree("Alpha") && !server.is_in_tree("Beta"), "the tree knows it at once");
    assert_eq!(server.entries(), [(EntryState::Done, 1), (EntryState::Done, 1)]);
    for (path, text) in [("src/Beta/init.luau", "return {}\r\n"), ("src/Alpha.luau", "return 1\n")] {
        let receipt = server.undo(false);
        assert_eq!((receipt.status, receipt.pulled), (SyncStatus::Success, 1), "{receipt:?}");
        assert_eq!(server.text(path).as_deref(), Some(text), "byte for byte");
    }
    assert!(server.is_in_tree("Alpha") && server.is_in_tree("Beta"));
    assert_eq!(deletions::last(&server.store, None).expect("read"), None, "there is no more to take back");
    let again = deletions::bring_back(&server.session, &server.store, (1, None), false).expect("read");
    assert_eq!(again.message.as_deref(), Some("entry 1 was taken back already"));
}

#[tokio::test]
async fn a_folder_goes_with_all_its_scripts_and_comes_back_with_them() {
    let server = Server::start(&[&KIT[..], &[("src/Beta/In/Deep.server.luau", "\u{feff}print(1)\r\n")]].concat()).await;
    // As the plugin says it when the whole of it was destroyed.
    let ids = [server.id("Beta.In.Deep"), server.id("Beta"), server.id("Beta.In")];
    assert_eq!(server.delete(&ids).await, DONE);
    assert!(!server.folder.path().join("src/Beta").exists());
    assert_eq!(server.entries(), [(EntryState::Done, 2)], "one entry");
    assert_eq!(server.undo(false).pulled, 2);
    assert_eq!(server.text("src/Beta/In/Deep.server.luau").as_deref(), Some("\u{feff}print(1)\r\n"));
    assert!(server.is_in_tree("Beta.In.Deep"));
}

#[tokio::test]
async fn c38_a_folder_stays_where_something_in_it_would_be_lost() {
    for odd in
        ["src/Beta/README.md", "src/Beta/init.meta.json", "src/Beta/In/notes.spec.luau", "src/Beta/In/Part.model.json"]
    {
        let files = [
            ("src/Beta/In/Deep.luau", "return 2"),
            (odd, r#"{"className":"Part"}"#),
            (
                "default.project.json",
                r#"{"name":"Demo","globIgnorePaths":["**/*.spec.luau"],"tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"src"}}}}"#,
            ),
        ];
        let server = Server::start(&[&KIT[..], &files].concat()).await;
        let (status, words) = server.delete(&[server.id("Beta")]).await;
        let name = odd.rsplit_once('/').map_or(odd, |(_, name)| name);
        assert!(
            status == StatusCode::CONFLICT && words.contains(name.split('.').next().expect("a name")),
            "{odd}: {words}"
        );
        assert_eq!(server.text("src/Beta/init.luau").as_deref(), Some("return {}\r\n"), "{odd}");
        assert_eq!(server.text("src/Beta/In/Deep.luau").as_deref(), Some("return 2"), "{odd}");
        assert!(server.text(odd).is_some() && server.entries().is_empty());
    }
}

#[tokio::test]
async fn c41_a_deletion_never_takes_a_newer_save_with_it() {
    let server = Server::start(&[&KIT[..], &[("src/Beta/Kid.luau", "return 'kid'")]].concat()).await;
    let (alpha, beta, gamma) = (server.id("Alpha"), server.id("Beta"), server.id("Gamma"));
    for round in 0..10 {
        let saved = format!("return 'editor {round}'\n");
        server.write("src/Alpha.luau", &saved);
        server.write("src/Beta/Kid.luau", &saved);
        if round % 2 == 0 {
            // The tree has it; the plugin may not.
            server.until_seen("src/Alpha.luau").await;
            server.until_seen("src/Beta/Kid.luau").await;
        }
        let (status, words) = server.delete(&[alpha, beta]).await;
        assert!(
            status == StatusCode::CONFLICT && words.contains("Alpha.luau") && words.contains("Kid.luau"),
            "{words}"
        );
        assert_eq!(server.text("src/Alpha.luau").as_deref(), Some(&*saved));
        assert_eq!(server.text("src/Beta/Kid.luau"), Some(saved));
        assert_eq!(server.text("src/Beta/init.luau").as_deref(), Some("return {}\r\n"), "all of it or nothing");
    }
    assert_eq!(server.delete(&[gamma]).await, DONE, "another one goes");
}

#[tokio::test]
async fn c41_what_the_plugin_wrote_itself_it_may_delete_at_once() {
    let server = Server::start(&KIT).await;
    let alpha = server.id("Alpha");
    assert_eq!(server.edit(&[(alpha, "return 'typed'\n")]).await, DONE);
    assert_eq!(server.delete(&[alpha]).await, DONE);
    assert_eq!(server.text("src/Alpha.luau"), None);
    server.undo(false);
    assert_eq!(server.text("src/Alpha.luau").as_deref(), Some("return 'typed'\n"));
}

#[tokio::test]
async fn c42_a_file_that_is_gone_meanwhile_is_no_conflict() {
    let server = Server::start(&KIT).await;
    let (alpha, beta) = (server.id("Alpha"), server.id("Beta"));
    fs::remove_file(server.folder.path().join("src/Alpha.luau")).expect("it can be removed");
    fs::remove_dir_all(server.folder.path().join("src/Beta")).expect("it can be removed");
    assert_eq!(server.delete(&[alpha]).await, DONE);
    assert_eq!(server.entries(), [], "nothing was deleted by us");
    let (status, words) = server.delete(&[beta, Ref::new()]).await;
    assert!(status == StatusCode::OK || words.contains("cannot be read"), "{words}");
    assert!(!server.folder.path().join("src/Beta").exists());
}

#[tokio::test]
async fn c44_a_read_only_file_stays_and_says_so() {
    let server = Server::start(&KIT).await;
    let file = server.folder.path().join("src/Alpha.luau");
    let mut permissions = fs::metadata(&file).expect("it is there").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&file, permissions).expect("it is ours");
    let (status, words) = server.delete(&[server.id("Alpha"), server.id("Gamma")]).await;
    assert!(status == StatusCode::CONFLICT && words.contains("read-only") && !words.contains("Gamma"), "{words}");
    assert!(server.text("src/Alpha.luau").is_some() && server.text("src/Gamma.luau").is_none());
    assert!(server.is_in_tree("Alpha"), "the tree is what the files say");
}

#[tokio::test]
async fn what_is_no_script_file_of_its_own_stays() {
    let server = Server::start(&KIT).await;
    for path in ["Ov", ""] {
        let (status, words) = server.delete(&[server.id(path)]).await;
        assert!(status == StatusCode::CONFLICT && words.contains("of its own"), "{path}: {words}");
    }
    assert!(KIT.iter().all(|(path, _)| server.text(path).is_some()));
    let foreign = WriteRequest {
        session_id: librojo::SessionId::new(),
        removed: vec![server.id("Alpha")],
        added: Default::default(),
        updated: Vec::new(),
    };
    assert_eq!(server.send(&foreign).await.0, StatusCode::BAD_REQUEST);
    assert!(server.text("src/Alpha.luau").is_some());
}

#[tokio::test]
async fn c38_a_place_that_is_closed_deletes_no_project() {
    let names: Vec<String> = (0..21).map(|number| format!("src/Many{number}.luau")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "return 1")).collect();
    let server = Server::start(&[&KIT[..], &files].concat()).await;
    let ids: Vec<Ref> = (0..21).map(|number| server.id(&format!("Many{number}"))).collect();
    let (status, words) = server.delete(&ids).await;
    assert!(status == StatusCode::CONFLICT && words.contains("21 scripts"), "{words}");
    let (status, _) = server.delete(&ids[..1]).await;
    assert_eq!(status, StatusCode::CONFLICT, "so soon after is at once");
    assert!(names.iter().all(|name| server.text(name).is_some()));
}

#[tokio::test]
async fn undo_brings_nothing_over_a_file_that_is_there_again() {
    let server = Server::start(&KIT).await;
    assert_eq!(server.delete(&[server.id("Alpha")]).await, DONE);
    server.write("src/Alpha.luau", "return 'new'\n");
    let receipt = server.undo(true);
    assert_eq!((receipt.status, receipt.unresolved), (SyncStatus::FastfailUnresolved, 1), "{receipt:?}");
    assert_eq!(server.text("src/Alpha.luau").as_deref(), Some("return 'new'\n"));
    server.write("src/Alpha.luau", "return 1\r\n");
    assert_eq!(server.undo(false).status, SyncStatus::Empty, "that text is there");
    let kept = server.store.text(TextHash::of("return 1\n")).expect("the store is read");
    assert_eq!(kept.as_deref(), Some("return 1\n"), "whatever happens, the journal has it");
}

#[tokio::test]
async fn a_folder_comes_back_in_part_only_if_that_is_asked_for() {
    let server = Server::start(&[&KIT[..], &[("src/Beta/Kid.luau", "return 'kid'")]].concat()).await;
    assert_eq!(server.delete(&[server.id("Beta")]).await, DONE);
    fs::create_dir_all(server.folder.path().join("src/Beta")).expect("a folder");
    server.write("src/Beta/Kid.luau", "return 'other'");
    let receipt = server.undo(false);
    assert_eq!((receipt.status, receipt.unresolved), (SyncStatus::FastfailUnresolved, 1), "{receipt:?}");
    assert_eq!(server.text("src/Beta/init.luau"), None);
    let receipt = server.undo(true);
    assert_eq!((receipt.status, receipt.pulled, receipt.unresolved), (SyncStatus::Partial, 1, 1), "{receipt:?}");
    assert_eq!(server.text("src/Beta/init.luau").as_deref(), Some("return {}\r\n"));
    assert_eq!(server.text("src/Beta/Kid.luau").as_deref(), Some("return 'other'"));
}

#[tokio::test]
async fn an_edit_of_what_is_deleted_with_it_is_no_conflict() {
    let server = Server::start(&KIT).await;
    let alpha = server.id("Alpha");
    let edited = InstanceUpdate {
        id: alpha,
        changed_name: None,
        changed_class_name: None,
        changed_properties: UstrMap::from_iter([(ustr("Source"), Some(Variant::from("return 'typed'")))]),
        changed_metadata: None,
    };
    let request = WriteRequest {
        session_id: server.session.id(),
        removed: vec![alpha],
        added: Default::default(),
        updated: vec![edited],
    };
    assert_eq!(server.send(&request).await, DONE);
    assert_eq!(server.text("src/Alpha.luau"), None);
}
