//! Plain scripts, which librojo does not read: the tree is as if it had.

use std::path::Path;

use librojo::{InstanceContext, RojoTree, snapshot_from_vfs};
use memofs::{StdBackend, Vfs};
use rbx_dom_weak::types::Ref;

use super::kit::{Project, Shape, find, shape, shape_of};
use crate::session::{ServeSession, state::State};

const PROJECT: &str = r#"{"name":"Plain","globIgnorePaths":["**/*.spec.luau","**/hidden.luau"],"tree":{
    "$className":"DataModel",
    "ReplicatedStorage":{"$path":"src","Added":{"$className":"Folder"}},
    "ServerStorage":{"Again":{"$path":"src"},"Alone":{"$path":"src/alone.luau"}}}}"#;

/// Every kind of script among everything that may lie beside one.
const FILES: [(&str, &str); 22] = [
    ("default.project.json", PROJECT),
    ("src/a.luau", "return 'a'\r\n"),
    ("src/b.txt", "text"),
    ("src/c.server.luau", "print('c')"),
    ("src/c/init.luau", "return {}"),
    ("src/c/inner.client.lua", "print('inner')"),
    ("src/c/init.meta.json", r#"{"ignoreUnknownInstances":true}"#),
    ("src/d.lua", ""),
    ("src/d.meta.json", r#"{"properties":{"Tags":["d"]}}"#),
    ("src/dotted.name.luau", "return 'dotted'"),
    ("src/dotted.legacy.server.luau", "print('dotted')"),
    ("src/e.plugin.luau", "print('e')"),
    ("src/hidden.luau", "hidden"),
    ("src/k.spec.luau", "hidden"),
    ("src/nested/default.project.json", r#"{"name":"n","emitLegacyScripts":false,"tree":{"$path":"lib"}}"#),
    ("src/nested/lib/x.server.luau", "print('x')"),
    ("src/nested/lib/y.client.luau", "print('y')"),
    ("src/other.project.json", r#"{"name":"o","tree":{"$className":"Folder"}}"#),
    ("src/table/init.csv", "Key,Source,Context,Example,en\nk,s,c,e,hi\n"),
    ("src/table/in.luau", "return 'in'"),
    ("src/z.luau", "return 'z'"),
    ("src/alone.luau", "return 'alone'"),
];

/// The tree with the order of siblings, which librojo takes from the names of the files.
fn ordered(tree: &RojoTree) -> Vec<(String, Vec<String>)> {
    let name = |id: &Ref| tree.get_instance(*id).map(|child| child.name().to_owned()).unwrap_or_default();
    let instances = tree.descendants(tree.get_root_id());
    instances.map(|instance| (instance.name().to_owned(), instance.children().iter().map(name).collect())).collect()
}

/// The tree as librojo reads it from the disk itself.
fn stock<R>(path: &Path, read: impl FnOnce(&RojoTree) -> R) -> R {
    let vfs = Vfs::new(StdBackend::new().expect("a backend"));
    vfs.set_watch_enabled(false);
    let snapshot = snapshot_from_vfs(&InstanceContext::new(), &vfs, path).expect("librojo reads it");
    read(&State::new(snapshot.expect("an instance")).tree)
}

fn equals_stock(project: &Project, what: &str) {
    let live: Shape = shape(project.session());
    assert_eq!(live, stock(&project.path(""), shape_of), "{what}");
}

#[test]
fn the_tree_is_the_one_that_librojo_reads_in_the_same_order() {
    let project = Project::new(&FILES).serve();
    assert_eq!(project.session().problems(), []);
    equals_stock(&project, "at the start");
    assert_eq!(project.session().with_tree(|tree, _| ordered(tree)), stock(&project.path(""), ordered));
}

#[test]
fn what_makes_a_script_more_than_its_text_counts_at_once() {
    let project = Project::new(&FILES).serve();
    let a = project.id("ReplicatedStorage.a");
    let steps: [(&str, Option<&str>); 9] = [
        ("src/a.meta.json", Some(r#"{"properties":{"Tags":["t"]}}"#)),
        ("src/a.luau", Some("return 'a again'")),
        ("src/a.meta.json", Some(r#"{"properties":{"Tags":["u"]}}"#)),
        ("src/a.meta.json", None),
        ("src/a.meta.jsonc", Some(r#"{"ignoreUnknownInstances":true}"#)),
        ("src/e.meta.json", Some(r#"{"attributes":{"E":true}}"#)),
        ("src/z.meta.json", Some("broken")),
        ("src/z.meta.json", Some(r#"{"attributes":{"Z":true}}"#)),
        ("src/z.luau", None),
    ];
    for (path, text) in steps {
        match text {
            Some(text) => project.write(path, text),
            None => project.remove(path),
        }
        project.session().catch_up(None).expect("the session lives");
        if text != Some("broken") {
            equals_stock(&project, path);
        }
    }
    assert_eq!(project.id("ReplicatedStorage.a"), a, "it stays the instance that it was");
}

#[test]
fn a_script_may_become_a_root_or_fall_under_a_rule() {
    let project = Project::new(&FILES).serve();
    let variants = [
        PROJECT.replace("src/alone.luau", "src/a.luau"),
        PROJECT.replace(r#""tree""#, r#""syncRules":[{"pattern":"z.luau","use":"text"}],"tree""#),
        PROJECT.replace("**/hidden.luau", "**/z.luau"),
        PROJECT.replace(r#""tree""#, r#""emitLegacyScripts":false,"tree""#),
        PROJECT.to_owned(),
    ];
    for variant in variants {
        project.write("default.project.json", &variant);
        project.write("src/new.server.luau", variant.len().to_string());
        project.session().catch_up(None).expect("the session lives");
        equals_stock(&project, &variant);
    }
}

#[test]
fn folders_of_scripts_go_and_come_back() {
    let project = Project::new(&FILES).serve();
    project.remove("src/c");
    project.session().catch_up(None).expect("the session lives");
    equals_stock(&project, "gone");
    project.write("src/c", "now a file that is nothing");
    project.session().catch_up(None).expect("the session lives");
    equals_stock(&project, "a file");
    project.remove("src/c");
    project.write("src/c/inner.luau", "return 'other'");
    project.session().catch_up(None).expect("the session lives");
    equals_stock(&project, "back");
    assert!(find(project.session(), "ReplicatedStorage.c.inner").len() == 1);
    let fresh = ServeSession::start(&project.path("")).expect("the files make a project");
    assert_eq!(shape(project.session()), shape(&fresh));
}
