//! Questions about the tree, and the tree against librojo's own reading of the disk.

use std::{path::Path, sync::Arc};

use librojo::{InstanceContext, snapshot_from_vfs};
use memofs::{StdBackend, Vfs};

use super::kit::{BASE, Project, find, shape_of};
use crate::{
    core::{protocol::PatchOp, text::TextHash},
    session::{CursorGone, ServeSession, Target, state::State},
};

/// A bit of everything that a project can hold.
const MIXED: [(&str, &str); 19] = [
    (
        "default.project.json",
        r#"{ // with comments
          "name":"Mixed", "globIgnorePaths":["**/*.spec.luau"], "emitLegacyScripts": false,
          "syncRules":[{"pattern":"*.note","use":"text"},{"pattern":"*.legacy.server.luau","use":"legacyServerScript","suffix":".legacy.server.luau"}],
          "tree":{"$className":"DataModel",
            "ReplicatedStorage":{"$path":"src/shared","Extra":{"$className":"Folder","$attributes":{"A":1.5}}},
            "ServerScriptService":{"Main":{"$path":"src/server"}},
            "Workspace":{"$properties":{"Gravity":50.0},"M":{"$path":"models"}},
            "Opt":{"$className":"Folder","Maybe":{"$path":{"optional":"opt"}}}}}"#,
    ),
    ("src/shared/util.luau", "return 1"),
    ("src/shared/util.meta.json", r#"{"ignoreUnknownInstances":true,"attributes":{"Z":true}}"#),
    ("src/shared/pkg/init.luau", "return {}\r\n"),
    ("src/shared/pkg/init.meta.json", r#"{"properties":{"Tags":["t"]}}"#),
    ("src/shared/pkg/child.lua", "return 'c'"),
    ("src/shared/x.spec.luau", "ignored"),
    ("src/shared/data.json", r#"{"a":[1,2]}"#),
    ("src/shared/conf.toml", "a = 1"),
    ("src/shared/more.yaml", "b: 2"),
    ("src/shared/loc.csv", "Key,Source,Context,Example,en\nk,s,c,e,hi\n"),
    ("src/shared/read.txt", "some text"),
    ("src/shared/own.note", "by a rule"),
    ("src/server/main.server.luau", "print('hi')"),
    ("src/server/old.legacy.server.luau", "print('old')"),
    ("src/server/nested/default.project.json", r#"{"name":"Nested","tree":{"$path":"lib"}}"#),
    ("src/server/nested/lib/a.client.luau", "return 'a'"),
    (
        "models/thing.model.json",
        r#"{"className":"Model","children":[{"name":"P","className":"Part","id":"p"}],"attributes":{"Rojo_Target_PrimaryPart":"p"}}"#,
    ),
    (
        "models/refs.rbxmx",
        r#"<roblox version="4"><Item class="Folder" referent="R0"><Properties><string name="Name">refs</string></Properties><Item class="Part" referent="R1"><Properties><string name="Name">T</string></Properties></Item><Item class="ObjectValue" referent="R2"><Properties><string name="Name">ov</string><Ref name="Value">R1</Ref></Properties></Item></Item></roblox>"#,
    ),
];

/// The tree as librojo reads it from the disk itself.
fn stock(path: &Path) -> super::kit::Shape {
    let vfs = Vfs::new(StdBackend::new().expect("a backend"));
    vfs.set_watch_enabled(false);
    let snapshot = snapshot_from_vfs(&InstanceContext::new(), &vfs, path).expect("librojo reads it");
    shape_of(&State::new(snapshot.expect("an instance")).tree)
}

#[test]
fn c33_the_tree_is_the_one_that_librojo_reads() {
    let project = Project::new(&MIXED).serve();
    assert_eq!(project.session().problems(), []);
    assert_eq!(project.shape(), stock(&project.path("")));
    let text = MIXED[0].1;
    let variants = [
        text.replace("\"emitLegacyScripts\": false", "\"emitLegacyScripts\": true"),
        text.replace("*.note", "*.nothing"),
        text.replace("**/*.spec.luau", "**/*.lua"),
        text.replace("\"$path\":\"src/shared\"", "\"$path\":\"src/server\""),
        text.to_owned(),
    ];
    for variant in variants {
        project.write("default.project.json", &variant);
        let wanted = stock(&project.path(""));
        project.session().catch_up(None).expect("the session lives");
        assert_eq!(project.shape(), wanted, "{variant}");
    }
    project.equals_fresh();
}

#[test]
fn the_tree_is_told_parents_first_with_hashes() {
    let project = Project::base();
    let (cursor, nodes) = project.session().nodes();
    assert_eq!(cursor, 0);
    let place = |id| nodes.iter().position(|node| node.id == id);
    for node in &nodes {
        assert!(node.parent.is_none_or(|parent| place(parent) < place(node.id)));
        assert_eq!(node.hash.is_some(), node.class_name.ends_with("Script"), "{node:?}");
    }
    assert_eq!(nodes[0].id, project.session().root());
    let alpha = nodes.iter().find(|node| node.name == "Alpha").expect("it is there");
    assert_eq!(alpha.hash, Some(TextHash::of("return 1")));
    assert!(nodes.iter().any(|node| node.ignore_unknown));

    project.write("src/Alpha.luau", "return 2");
    project.session().catch_up(None).expect("the session lives");
    let batch = project.session().messages_since(0).expect("the history reaches there");
    let [message] = batch.messages.as_slice() else { panic!("one change, one message: {batch:?}") };
    let [PatchOp::Put { node }] = message.ops.as_slice() else { panic!("one step: {message:?}") };
    assert_eq!((node.id, node.hash), (alpha.id, Some(TextHash::of("return 2"))));
}

#[test]
fn instances_are_found_by_file_and_by_path() {
    let project = Project::new(&BASE);
    project.write("src/Dotted.Name.luau", "return 'dotted'");
    project.write("src/Beta.model.json", r#"{"className":"Folder"}"#);
    let project = project.serve();
    let session = project.session();
    let file = |path: &str| session.find(&Target::FsPath(path));
    assert_eq!(file("src/Alpha.luau"), [project.id("game.ServerStorage.Kit.Alpha")]);
    assert_eq!(file("./src/Beta/../Alpha.luau"), file("src/Alpha.luau"));
    assert_eq!(file("src/Beta/init.luau"), file("src/Beta"));
    assert!(file("src/Beta/init.server.luau").is_empty(), "there is no such file");
    assert!(file("src/Nowhere.luau").is_empty());
    assert_eq!(find(session, "ServerStorage/Kit/Beta").len(), 2, "twins");
    assert_eq!(find(session, "game.ServerStorage.Kit.Dotted.Name").len(), 1);
    assert_eq!(find(session, "game"), [session.root()]);
    assert!(find(session, "game.ServerStorage.").len() == 1 && find(session, "Nowhere").is_empty());

    let ids = [file("src/Beta/init.luau")[0], file("src/Deep/One")[0], crate::core::ids::NodeId(7)];
    let (_, looks) = session.look(&ids);
    let beta = looks[0].as_ref().expect("it is in the tree");
    assert_eq!((beta.path.as_str(), beta.class_name.as_str()), ("ServerStorage.Kit.Beta", "ModuleScript"));
    assert_eq!(beta.fs_path.as_deref(), Some(Path::new("src/Beta/init.luau")));
    assert_eq!((beta.source.as_deref(), beta.hash), (Some("return {}"), Some(TextHash::of("return {}"))));
    let one = looks[1].as_ref().expect("it is in the tree");
    assert_eq!((one.fs_path.as_deref(), &one.source), (Some(Path::new("src/Deep/One")), &None));
    assert_eq!(looks[2], None);
}

#[test]
fn subtrees_and_models_are_whole() {
    let project = Project::base();
    let beta = project.session().new_node(project.id("ServerStorage.Kit.Beta")).expect("it is in the tree");
    assert_eq!((beta.source.as_deref(), beta.children[0].source.as_deref()), (Some("return {}"), Some("return 3")));

    let model = rbx_binary::from_reader(project.session().place_model().as_slice()).expect("a model");
    let names: Vec<&str> =
        model.root().children().iter().filter_map(|&id| Some(model.get_by_ref(id)?.name.as_str())).collect();
    assert_eq!(names, ["ServerStorage"], "the services are on top");
    assert_eq!(model.descendants().count(), project.shape().len());

    let library = Project::new(&[
        ("default.project.json", r#"{"name":"Lib","tree":{"$path":"src"}}"#),
        ("src/init.luau", "return 'lib'"),
    ])
    .serve();
    let model = rbx_binary::from_reader(library.session().place_model().as_slice()).expect("a model");
    assert_eq!(model.root().children().len(), 1);
    assert_eq!(find(library.session(), "Lib"), [library.session().root()]);
}

#[test]
fn the_history_is_bounded_and_says_so() {
    let project = Project::base();
    let session = project.session();
    assert_eq!(session.messages_since(1).err(), Some(CursorGone { asked: 1, oldest: 0, newest: 0 }));
    let big = "x".repeat(9 << 20);
    for round in 0..9 {
        project.write("src/Alpha.luau", format!("return '{round}{big}'"));
        session.catch_up(None).expect("the session lives");
    }
    let gone = session.messages_since(0).expect_err("64 MiB do not hold all of that");
    assert!(gone.oldest > 0 && gone.newest >= 9, "{gone}");
    let batch = session.messages_since(gone.oldest).expect("the oldest that is left");
    assert_eq!(u32::try_from(batch.messages.len()), Ok(gone.newest - gone.oldest));
}

#[test]
fn a_session_that_nobody_holds_ends() {
    let mut project = Project::base();
    let board = Arc::downgrade(&project.session().board);
    let mut health = project.session().health();
    project.end();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let ended = async { tokio::time::timeout(std::time::Duration::from_secs(30), health.changed()).await };
    assert!(runtime.block_on(ended).expect("within 30 s").is_err(), "the board is gone");
    assert!(board.upgrade().is_none());
}

#[test]
fn a_root_behind_a_link_that_is_no_part_of_the_project() {
    let outside = tempfile::TempDir::new().expect("a temporary folder");
    std::fs::create_dir_all(outside.path().join("sub")).expect("folders can be made");
    let text = r#"{"name":"Demo","tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"src"},"Out":{"$path":"away/sub"}}}}"#;
    let project = Project::new(&BASE);
    project.write("default.project.json", text);
    #[cfg(unix)]
    std::os::unix::fs::symlink(outside.path(), project.path("away")).expect("a link can be made");
    if !project.path("away").exists() {
        return; // no links here
    }
    let project = project.serve();
    std::fs::write(outside.path().join("sub/Far.luau"), "return 'far'").expect("a file can be written");
    project.until("the far file", |session| !find(session, "ServerStorage.Out.Far").is_empty());
    project.oracle();
    _ = ServeSession::start(&project.path("")).expect("two sessions can serve one project");
}

#[test]
fn what_a_script_had_while_it_was_served_is_remembered() {
    let project = Project::base();
    let had = |text: &str| project.session().had("src/Alpha.luau", TextHash::of(text));
    assert!(!had("return 1"), "it still has it");
    project.write("src/Alpha.luau", "return 2");
    project.session().catch_up(None).expect("it reads");
    project.write("src/Alpha.luau", "return 3");
    project.write("src/Beta/init.luau", "return 4");
    project.session().catch_up(None).expect("it reads");
    assert!(had("return 1") && had("return 2") && !had("return 3") && !had("return {}"));
    project.session().note_written(TextHash::of("return 2"));
    assert!(had("return 1") && !had("return 2"), "that was Studio's");
}
