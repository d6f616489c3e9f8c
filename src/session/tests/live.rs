//! The tree follows the files, whatever is done to them.

use std::{fs, thread, time::Duration};

use librojo::web_api::SubscribeMessage;
use rbx_dom_weak::{types::Variant, ustr};

use super::kit::{BASE, Project, find, messages_add_up};
use crate::session::{Health, ServeSession, run::Command};

pub(super) const ALPHA: &str = "ServerStorage.Kit.Alpha";

pub(super) fn pause(millis: u64) {
    thread::sleep(Duration::from_millis(millis)); // what an editor does between two steps
}

/// Look through every message so far.
pub(super) fn each_message(session: &ServeSession, mut look: impl FnMut(&SubscribeMessage<'static>)) {
    let batch = session.messages_since(0).expect("the history reaches to the start");
    batch.messages.iter().for_each(|message| look(&message.rojo));
}

#[test]
fn an_edit_is_seen_and_keeps_the_instance() {
    let project = Project::base();
    let alpha = project.id("game.ServerStorage.Kit.Alpha");
    project.write("src/Alpha.luau", "return 2");
    project.until("the edit", |_| project.text(ALPHA).as_deref() == Some("return 2"));
    assert_eq!(project.id("ServerStorage/Kit/Alpha"), alpha);
    project.oracle();
    messages_add_up(project.session());
}

#[test]
fn an_addition_is_seen() {
    let project = Project::base();
    project.write("src/New/Inner/init.luau", "return 'inner'");
    project.until("the addition", |session| !find(session, "ServerStorage.Kit.New.Inner").is_empty());
    project.oracle();
}

#[test]
fn c01_a_nested_folder_is_deleted() {
    let project = Project::base();
    project.remove("src/Deep");
    project.until("it is gone", |session| find(session, "ServerStorage.Kit.Deep").is_empty());
    project.oracle();
    for folder in 0..40 {
        for file in 0..10 {
            project.write(&format!("src/Many/F{folder}/M{file}.luau"), format!("return {file}"));
        }
    }
    project.oracle();
    project.remove("src/Many");
    project.oracle();
    messages_add_up(project.session());
}

fn switch_branch(project: &Project, feature: bool) {
    for pack in 0..8 {
        let (folder, file) = (format!("src/Pack{pack}"), format!("src/Pack{pack}.luau"));
        let renamed = format!("src/Renamed{pack}");
        match (pack % 2 == 0, feature) {
            (true, true) => {
                project.remove(&folder);
                project.write(&file, "return 'one file'");
            }
            (true, false) => {
                project.remove(&file);
                (0..12).for_each(|n| project.write(&format!("{folder}/f{n}.luau"), format!("return {n}")));
            }
            (false, true) => project.rename(&folder, &renamed),
            (false, false) => project.rename(&renamed, &folder),
        }
    }
    let (from, to) = if feature { ("init.luau", "init.server.luau") } else { ("init.server.luau", "init.luau") };
    project.rename(&format!("src/Beta/{from}"), &format!("src/Beta/{to}"));
}

#[test]
fn c02_branches_are_switched() {
    let project = Project::new(&BASE);
    for pack in 0..8 {
        (0..12).for_each(|n| project.write(&format!("src/Pack{pack}/f{n}.luau"), format!("return {n}")));
    }
    let project = project.serve();
    for gap in [0, 50, 300] {
        for flip in 0..5 {
            switch_branch(&project, flip % 2 == 0);
            pause(gap);
        }
        project.oracle();
        switch_branch(&project, false);
        project.oracle();
    }
    messages_add_up(project.session());
}

#[test]
fn c04_a_panic_is_survived_and_three_are_the_end() {
    let project = Project::base();
    for _ in 0..2 {
        let mut health = project.session().health();
        health.mark_unchanged();
        project.session().commands.send(Command::Panic).expect("the thread lives");
        project.still_follows();
        assert!(health.has_changed().expect("the session lives"), "it said that the tree may be stale");
    }
    assert_eq!(*project.session().health().borrow(), Health::Live);
    project.session().commands.send(Command::Panic).expect("the thread lives");
    project.until("the session says that it is dead", |session| *session.health().borrow() != Health::Live);
    assert!(project.session().problems()[0].message.contains("no longer follows the files"));
    let error = project.session().catch_up(None).expect_err("nobody can look any more");
    assert!(error.to_string().contains("asked to"), "{error}");
}

#[test]
fn c05_the_root_is_deleted_and_made_again() {
    for gap in [0, 400] {
        let project = Project::base();
        project.remove("src");
        pause(gap);
        if gap > 0 {
            project.until("the lack is reported", |session| !session.problems().is_empty());
            assert!(project.text(ALPHA).is_some(), "the last good tree is kept");
        }
        project.write("src/New.luau", "return 1");
        project.until("it is back", |session| find(session, "ServerStorage.Kit.New").len() == 1);
        project.write("src/New.luau", "return 2");
        project.until("the second write", |_| project.text("ServerStorage.Kit.New").as_deref() == Some("return 2"));
        project.oracle();
        assert_eq!(project.session().problems(), []);
    }
}

#[test]
fn c08_a_sibling_of_a_broken_file_is_served() {
    let project = Project::base();
    project.write("src/Beta/init.meta.json", "{");
    project.write("src/Sibling.luau", "return 's'");
    project.until("the sibling", |session| !find(session, "ServerStorage.Kit.Sibling").is_empty());
    project.until("the problem is named", |session| {
        session
            .problems()
            .iter()
            .any(|problem| problem.path.as_deref() == Some(&project.path("src/Beta/init.meta.json")))
    });
    assert!(project.text("ServerStorage.Kit.Beta.Gamma").is_some(), "the folder is served without it");
    project.write("src/Beta/init.meta.json", r#"{"attributes":{"Mended":true}}"#);
    project.until("no problem is left", |session| session.problems().is_empty());
    project.oracle();
}

#[test]
fn broken_files_of_every_kind_fail_nobody_else() {
    let project = Project::base();
    project.write("src/Bad.model.json", "{");
    project.write("src/Bad.rbxm", "");
    project.write("src/Bad.toml", "= 1");
    project.write("src/Beta/Bad.csv", b"a,\xff\n\"");
    project.write("src/Nest/default.project.json", r#"{"tree":{"$path":"missing"}}"#);
    project.write("src/Good.luau", "return 'good'");
    project.oracle();
    assert!(project.text("ServerStorage.Kit.Good").is_some());
    assert!(project.session().problems().len() >= 4, "{:#?}", project.session().problems());
    project.write("src/Nest/missing/There.luau", "return 'there'");
    project.until("the nested project finds its folder", |session| {
        !find(session, "ServerStorage.Kit.Nest.There").is_empty()
    });
    project.oracle();
}

#[test]
fn c13_a_nested_project_comes_and_goes() {
    let project = Project::new(&BASE);
    project.write("src/Pak/default.project.json", r#"{"name":"Inner","tree":{"$path":"lib"}}"#);
    project.write("src/Pak/lib/init.luau", "return 'lib'");
    let project = project.serve();
    project.remove("src/Pak/default.project.json");
    project.until("it is a plain folder", |session| !find(session, "ServerStorage.Kit.Pak.lib").is_empty());
    project.oracle();
    project.write("src/Pak/default.project.json", r#"{"name":"Inner","tree":{"$path":"lib"}}"#);
    project.until("it is a project again", |session| find(session, "ServerStorage.Kit.Pak.lib").is_empty());
    project.oracle();
    project.remove("src/Pak");
    project.until("it is gone", |session| find(session, "ServerStorage.Kit.Inner").is_empty());
    project.oracle();
}

#[test]
fn c14_the_project_file_is_deleted_and_made_again() {
    let project = Project::base();
    let text = BASE[0].1;
    project.remove("default.project.json");
    project.until("the lack is reported", |session| !session.problems().is_empty());
    assert!(project.text(ALPHA).is_some(), "the last good tree is kept");
    project.write("src/Alpha.luau", "return 'meanwhile'");
    project.until("files are still followed", |_| project.text(ALPHA).as_deref() == Some("return 'meanwhile'"));
    project.write("default.project.json", text.replace("Kit", "Kit2"));
    project.until("the second name", |session| !find(session, "ServerStorage.Kit2.Alpha").is_empty());
    project.write("default.project.json", text.replace("Kit", "Kit3"));
    project.until("the third name", |session| !find(session, "ServerStorage.Kit3.Alpha").is_empty());
    project.equals_fresh();
    assert_eq!(project.session().problems(), []);
}

#[test]
fn c18_module_becomes_folder_and_back() {
    let (project, held) = Project::new(&BASE).serve_held();
    let (alpha, beta) = (project.id(ALPHA), project.id("ServerStorage.Kit.Beta"));
    project.remove("src/Beta");
    project.write("src/Beta.luau", "return 'file'");
    held.hand_on_until(&project, "src/Beta.luau");
    project.until("the file", |_| project.text("ServerStorage.Kit.Beta").as_deref() == Some("return 'file'"));
    project.equals_fresh();
    project.remove("src/Alpha.luau");
    project.write("src/Alpha/init.luau", "return 1");
    project.write("src/Alpha/Kid.luau", "return 'kid'");
    held.hand_on_until(&project, "src/Alpha");
    project.until("the folder", |session| !find(session, "ServerStorage.Kit.Alpha.Kid").is_empty());
    held.let_go();
    project.oracle();
    assert_eq!(project.id("ServerStorage.Kit.Beta"), beta, "it is the same instance");
    assert_eq!(project.id(ALPHA), alpha, "it is the same instance");
}

#[test]
fn c19_a_renamed_script_is_the_same_instance() {
    let project = Project::base();
    let (alpha, beta) = (project.id(ALPHA), project.id("ServerStorage.Kit.Beta"));
    project.rename("src/Alpha.luau", "src/alpha.luau");
    project.rename("src/Beta", "src/beta");
    project.oracle();
    assert_eq!(project.id("ServerStorage.Kit.alpha"), alpha);
    assert_eq!(project.id("ServerStorage.Kit.beta"), beta);
    assert!(find(project.session(), ALPHA).is_empty() && find(project.session(), "ServerStorage.Kit.Beta").is_empty());
}

#[test]
fn c21_ignored_files_make_no_message() {
    let project = Project::new(&BASE);
    let text =
        BASE[0].1.replace(r#""name":"Demo""#, r#""name":"Demo","globIgnorePaths":["**/*.spec.luau","**/.cache"]"#);
    project.write("default.project.json", &text);
    let project = project.serve();
    project.write("src/Alpha.spec.luau", "return 'spec'");
    project.write("src/.cache/x.luau", "return 'cached'");
    project.session().catch_up(None).expect("the session lives");
    assert_eq!(*project.session().cursor().borrow(), 0);
    project.write("default.project.json", text.replace("**/*.spec.luau", "nothing"));
    project.until("the list counts", |session| !find(session, "ServerStorage.Kit.Alpha.spec").is_empty());
    project.oracle();
}

#[test]
fn c23_many_files_at_once() {
    let project = Project::base();
    for n in 0..1500 {
        project.write(&format!("away/d{}/m{n}.luau", n / 50), format!("return {n}"));
        project.write(&format!("src/Live/d{}/m{n}.luau", n / 50), format!("return {n}"));
    }
    project.rename("away", "src/Moved");
    project.until("the folder that was moved in", |session| find(session, "ServerStorage.Kit.Moved").len() == 1);
    project.oracle();
    project.write("src/Moved/d29/m1499.luau", "return 'edited'");
    project.until("an edit in it", |_| {
        project.text("ServerStorage.Kit.Moved.d29.m1499").as_deref() == Some("return 'edited'")
    });
    project.rename("src/Moved", "away");
    project.oracle();
    messages_add_up(project.session());
}

#[test]
fn c24_c25_byte_order_marks() {
    let project = Project::new(&BASE);
    project.write("default.project.json", format!("\u{feff}{}", BASE[0].1));
    project.write("src/Cfg.json", "\u{feff}{\"a\": 1}");
    project.write("src/Alpha.meta.json", "\u{feff}{\"attributes\": {\"A\": 1}}");
    project.write("src/Beta/init.meta.json", "\u{feff}{\"attributes\": {\"B\": 1}}");
    project.write("src/Thing.model.json", "\u{feff}{\"className\": \"Part\", \"attributes\": {\"C\": 1}}");
    project.write(
        "src/Pak/default.project.json",
        "\u{feff}{\"tree\": {\"$className\": \"Folder\", \"$attributes\": {\"D\": 1}}}",
    );
    project.write("src/Win.luau", "\u{feff}local a = 1\r\nreturn a\r\n");
    let project = project.serve();
    assert_eq!(project.session().problems(), []);
    let win = project.id("ServerStorage.Kit.Win");
    let hash = |project: &Project| project.session().look(&[win]).1[0].as_ref().and_then(|look| look.hash);
    assert_eq!(hash(&project), Some(crate::core::text::TextHash::of("local a = 1\nreturn a\n")));
    let has = |path: &str, name: &str| attributes_of(&project, path).contains(name);
    assert!(has("Alpha", "\"A\"") && has("Beta", "\"B\"") && has("Thing", "\"C\"") && has("Pak", "\"D\""));
    project.write("src/Alpha.meta.json", "\u{feff}{\"attributes\": {\"E\": 1}}");
    project.until("the edit of the meta", |_| attributes_of(&project, "Alpha").contains("\"E\""));
    project.write("src/Cfg.json", "\u{feff}{\"a\": 2}");
    project.until("the edit", |_| project.text("ServerStorage.Kit.Cfg").is_some_and(|text| text.contains('2')));
    project.oracle();
}

/// The attributes of the one instance at this path below the kit, as they are shown.
fn attributes_of(project: &Project, path: &str) -> String {
    let id = crate::session::wire::referent(project.id(&format!("ServerStorage.Kit.{path}")));
    project.session().with_tree(|tree, _| {
        let instance = tree.get_instance(id);
        format!("{:?}", instance.and_then(|instance| instance.properties().get(&ustr("Attributes")).cloned()))
    })
}

fn target_of(project: &Project, path: &str) -> Option<crate::core::ids::NodeId> {
    let holder = project.id(path);
    project.session().with_tree(|tree, _| {
        match tree.get_instance(crate::session::wire::referent(holder))?.properties().get(&ustr("Value")) {
            Some(Variant::Ref(target)) => Some(crate::session::wire::node_id(*target)),
            _ => None,
        }
    })
}

/// What the messages so far say of the target, the last of them last. None of them may name what it removes.
fn told_target(project: &Project) -> Option<crate::core::ids::NodeId> {
    let ov = crate::session::wire::referent(project.id("ServerStorage.Kit.Ov"));
    let mut told = None;
    each_message(project.session(), |message| {
        for update in message.updated.iter().filter(|update| update.id == ov) {
            match update.changed_properties.get(&ustr("Value")) {
                Some(Some(Variant::Ref(target))) => {
                    assert!(!message.removed.contains(target), "{message:?}");
                    told = Some(crate::session::wire::node_id(*target));
                }
                Some(_) => told = None,
                None => {}
            }
        }
    });
    told
}

#[test]
fn c35_a_reference_follows_its_target() {
    let project = Project::new(&BASE);
    project.write("src/Ov.model.json", r#"{"className":"ObjectValue","attributes":{"Rojo_Target_Value":"it"}}"#);
    let target = r#"{"className":"Part","id":"it"}"#;
    project.write("src/It.model.json", target);
    let project = project.serve();
    let to = |project: &Project, path: &str| target_of(project, "ServerStorage.Kit.Ov") == Some(project.id(path));
    assert!(to(&project, "ServerStorage.Kit.It"));
    project.rename("src/It.model.json", "src/Renamed.model.json");
    project.until("the rename", |session| find(session, "ServerStorage.Kit.Renamed").len() == 1);
    project.equals_fresh();
    assert!(to(&project, "ServerStorage.Kit.Renamed"));
    project.write("src/Renamed.model.json", target.replace("Part", "Folder"));
    project.equals_fresh();
    assert!(to(&project, "ServerStorage.Kit.Renamed"));
    project.remove("src/Renamed.model.json");
    project.until("it points at nothing", |_| target_of(&project, "ServerStorage.Kit.Ov").is_none());
    project.write("src/Again.model.json", target);
    project.until("it points again", |_| target_of(&project, "ServerStorage.Kit.Ov").is_some());
    assert!(to(&project, "ServerStorage.Kit.Again"));
    project.oracle();
    assert_eq!(told_target(&project), target_of(&project, "ServerStorage.Kit.Ov"), "as the plugin was told");
}

#[test]
fn c37_settings_are_current() {
    let project = Project::base();
    assert_eq!(project.session().project().serve_place_ids, None);
    let text = BASE[0].1.replace(r#""name":"Demo""#, r#""name":"Other","servePlaceIds":[123],"servePort":4000"#);
    project.write("default.project.json", text);
    project.until("the settings", |session| session.project().name == "Other");
    let now = project.session().project();
    assert_eq!((now.serve_port, now.serve_place_ids.clone()), (Some(4000), Some([123].into())));
    project.oracle();
}

#[test]
fn a_file_that_is_being_written_is_never_seen_empty() {
    let project = Project::base();
    for round in 0..4 {
        let file = fs::File::create(project.path("src/Alpha.luau")).expect("it can be truncated");
        pause(120);
        let text = format!("return 'round {round}'");
        std::io::Write::write_all(&mut &file, text.as_bytes()).expect("it can be written");
        drop(file);
        project.until("the save", |_| project.text(ALPHA).as_ref() == Some(&text));
    }
    each_message(project.session(), |message| {
        for update in &message.updated {
            let text = update.changed_properties.get(&ustr("Source"));
            assert_ne!(text, Some(&Some(Variant::String(String::new()))));
        }
    });
    project.oracle();
}
