//! Field cases about what files hold, what they are called, and what the project says of them.

use super::kit::{BASE, Project, find};
use crate::{
    core::text::ScriptText,
    files::{self, ScriptFile, WriteError},
    session::{Health, ProblemKind, ServeSession},
};

/// Files that librojo cannot use, each of another kind.
const BAD: [(&str, &[u8]); 7] = [
    ("src/Bad/Cut.meta.json", b"{\"properties\":"),
    ("src/Bad/Property.model.json", br#"{"className":"Part","properties":{"NoSuchProperty":{"Nonsense":1}}}"#),
    ("src/Bad/Data.json", b"{\"a\":}"),
    ("src/Bad/Ragged.csv", b"Key,Source\na,b,c\n\"open"),
    ("src/Bad/Junk.rbxm", b"<roblox!junk"),
    ("src/Bad/Junk.rbxmx", b"<roblox"),
    ("src/Bad/Latin.luau", b"return '\xe9'"),
];

fn lists(session: &ServeSession, name: &str) -> bool {
    session.problems().iter().any(|problem| {
        let named = problem.path.as_ref().is_some_and(|path| path.ends_with(name));
        named && problem.kind == ProblemKind::LeftOut && !problem.message.is_empty()
    })
}

#[test]
fn c28_one_bad_file_fails_nobody_else_at_the_start() {
    let project = Project::new(&BASE);
    project.write("src/Bad/Good.luau", "return 'good'");
    project.write("src/Bad/Cut.luau", "return 'its meta is cut'");
    BAD.iter().for_each(|(path, bytes)| project.write(path, bytes));
    let project = project.serve();
    for (path, _) in BAD {
        assert!(lists(project.session(), path), "{path}: {:#?}", project.session().problems());
    }
    assert_eq!(project.text("ServerStorage.Kit.Bad.Good").as_deref(), Some("return 'good'"));
    assert!(project.text("ServerStorage.Kit.Bad.Cut").is_some(), "without its meta");
    assert!(project.session().warning().expect("the tree lacks something").contains("7 files"));
}

#[test]
fn c28_siblings_of_a_file_that_goes_bad_keep_syncing() {
    let project = Project::base();
    project.write("src/Bad/Sibling.luau", "return 0");
    project.write("src/Bad/Cut.luau", "return 'its meta will be cut'");
    project.until("the sibling", |session| !find(session, "ServerStorage.Kit.Bad.Sibling").is_empty());
    for (round, (path, bytes)) in BAD.iter().enumerate() {
        project.write(path, bytes);
        project.until(&format!("{path} is listed"), |session| lists(session, path));
        let text = format!("return {round}");
        project.write("src/Bad/Sibling.luau", &text);
        project.until("the sibling's edit", |_| project.text("ServerStorage.Kit.Bad.Sibling").as_ref() == Some(&text));
    }
    project.oracle();
    BAD.iter().for_each(|(path, _)| project.remove(path));
    project.until("nothing is left out", |session| session.problems().is_empty());
    assert_eq!(project.session().warning(), None);
    project.oracle();
}

#[test]
fn c31_unicode_names_and_contents_are_exact() {
    let text = "return '🦊', 'a\0b', 'line\u{2028}end', '\\u{D800}', '\u{feff}'\n";
    let names = ["\u{e9}t\u{e9}", "e\u{301}te\u{301}", "🦊", " led", "trailed ", ".", "日本語", "a\u{200b}b"];
    let project = Project::new(&BASE);
    names.iter().for_each(|name| project.write(&format!("src/U/{name}.luau"), text));
    let project = project.serve();
    let check = |wanted: &str| {
        for name in names {
            let session = project.session();
            let file = format!("src/U/{name}.luau");
            let ids = session.find(&crate::session::Target::FsPath(&file));
            assert_eq!(ids.len(), 1, "{name:?} is one instance");
            let look = session.look(&ids).1.remove(0).expect("it is in the tree");
            assert_eq!(look.path, format!("ServerStorage.Kit.U.{name}"));
            assert_eq!(look.source.as_deref(), Some(wanted), "{name:?}");
        }
    };
    check(text);
    let edited = format!("-- Ünïcode\n{text}");
    names.iter().for_each(|name| project.write(&format!("src/U/{name}.luau"), &edited));
    project.session().catch_up(None).expect("the session lives");
    check(&edited);
    project.rename("src/U/\u{e9}t\u{e9}.luau", "src/U/ete.luau");
    project.oracle();
    assert_eq!(find(project.session(), "ServerStorage.Kit.U.e\u{301}te\u{301}").len(), 1, "the other form stays");
}

#[test]
fn c21_globs_reach_above_the_project_and_count_as_soon_as_they_are_edited() {
    let with = |globs: &str| {
        format!(
            r#"{{"name":"App","globIgnorePaths":[{globs}],"tree":{{"$className":"DataModel","ServerStorage":{{"Kit":{{"$path":".."}}}}}}}}"#
        )
    };
    let project = Project::new(&[
        ("all/Alpha.luau", "return 1"),
        ("all/Alpha.spec.luau", "return 'spec'"),
        ("all/.cache/x.luau", "return 'cached'"),
        ("all/lib/Inner.luau", "return 'inner'"),
    ]);
    project.write("all/app/main.project.json", with(r#""*.project.json","**/*.spec.luau","**/.cache""#));
    let app = project.path("all/app/main.project.json");
    let project = project.serve_at(&app);
    let has = |session: &ServeSession, path: &str| !find(session, &format!("ServerStorage.Kit.{path}")).is_empty();
    assert_eq!(project.session().problems(), []);
    assert!(has(project.session(), "Alpha") && has(project.session(), "lib.Inner"));
    assert!(!has(project.session(), "Alpha.spec") && !has(project.session(), ".cache"));

    project.write("all/Other.spec.luau", "ignored");
    project.write("all/.cache/deep/y.luau", "ignored");
    project.write("all/app/inner.spec.luau", "ignored");
    project.session().catch_up(None).expect("the session lives");
    assert_eq!(*project.session().cursor().borrow(), 0, "ignored files make no message");

    project.write("all/app/main.project.json", with(r#""*.project.json","../lib""#));
    project.until("the other list counts", |session| has(session, "Alpha.spec") && !has(session, "lib"));
    project.equals_fresh();
    assert!(has(project.session(), ".cache.deep.y"));
    project.write("all/app/main.project.json", with(r#""*.project.json","**/*.spec.luau","**/.cache""#));
    project.until("and the first again", |session| !has(session, "Alpha.spec") && has(session, "lib.Inner"));
    project.equals_fresh();
}

#[cfg(target_os = "linux")]
#[test]
fn c27_a_file_that_cannot_be_read_is_left_out() {
    let project = Project::new(&BASE);
    // Whoever we are: it is a regular file, can be opened, and cannot be read at its start.
    std::os::unix::fs::symlink("/proc/self/mem", project.path("src/Memory.luau")).expect("a link can be made");
    let project = project.serve();
    assert!(lists(project.session(), "src/Memory.luau"), "{:#?}", project.session().problems());
    project.oracle();
}

#[test]
fn c37_what_counts_at_the_start_only_says_so_until_it_is_edited_back() {
    let project = Project::base();
    let restart = |session: &ServeSession| {
        let problems = session.problems().into_iter();
        let mut restart = problems.filter(|problem| problem.kind == ProblemKind::Restart);
        restart.next().map(|problem| problem.to_string())
    };
    let save = |settings: &str| {
        project.write(
            "default.project.json",
            BASE[0].1.replace(r#""name":"Demo""#, &format!(r#""name":"Demo"{settings}"#)),
        );
    };
    assert_eq!(restart(project.session()), None);
    for (settings, named) in [
        (r#","servePort":4000"#, "servePort was"),
        (r#","serveAddress":"127.0.0.2""#, "serveAddress was"),
        (r#","serveAllowedHosts":["pc.lan"]"#, "serveAllowedHosts was"),
        (r#","servePort":4000,"serveAddress":"127.0.0.2""#, "servePort and serveAddress was"),
    ] {
        save(settings);
        project.until("it says so", |session| restart(session).is_some_and(|said| said.contains(named)));
        assert_eq!(project.session().warning(), None, "the tree is as it should be");
        save("");
        project.until("and no longer", |session| restart(session).is_none());
    }
    save(r#","gameId":5,"placeId":6,"blockedPlaceIds":[7]"#);
    project.until("the ids are current", |session| session.project().game_id == Some(5));
    let now = project.session().project();
    assert_eq!((now.place_id, now.blocked_place_ids.clone()), (Some(6), Some([7].into())));
    assert_eq!(restart(project.session()), None, "they count at once");
}

#[test]
fn c37_script_classes_are_those_of_the_setting_as_it_is_now() {
    let project = Project::new(&BASE);
    let with = |setting: &str| BASE[0].1.replace(r#""name":"Demo""#, &format!(r#""name":"Demo"{setting}"#));
    project.write("default.project.json", with(r#","emitLegacyScripts":false"#));
    project.write("src/Local.client.luau", "print(1)");
    let project = project.serve();
    let class = |session: &ServeSession| {
        let ids = find(session, "ServerStorage.Kit.Local");
        session.look(&ids).1.into_iter().flatten().next().map(|look| look.class_name)
    };
    assert_eq!(class(project.session()).as_deref(), Some("Script"));
    for (setting, wanted) in [
        ("", "LocalScript"),
        (r#","emitLegacyScripts":false"#, "Script"),
        (r#","emitLegacyScripts":true"#, "LocalScript"),
    ] {
        project.write("default.project.json", with(setting));
        project.until("the class", |session| class(session).as_deref() == Some(wanted));
        project.equals_fresh();
    }
}

#[test]
fn a_script_that_the_projects_rules_would_not_read_back_is_not_made() {
    let project = Project::new(&BASE);
    let rules = r#""name":"Demo","globIgnorePaths":["**/*.spec.luau","**/Hidden*"],
        "syncRules":[{"pattern":"**/T*.luau","use":"text","suffix":".luau"},{"pattern":"*.luau","exclude":"*.server.luau","use":"moduleScript","suffix":".luau"}]"#;
    project.write("default.project.json", BASE[0].1.replace(r#""name":"Demo""#, rules));
    project.write("away/Known.luau", "return 1");
    let project = project.serve();
    let text = ScriptText::new("return 'new'");
    let create = |folder: &str, name: &str, kind| {
        files::create(&project.session().sources(), &project.path(folder), name, kind, &text)
    };
    for (folder, name, kind) in [
        ("src", "New", ScriptFile::Module),
        ("src/Beta", "New", ScriptFile::Module),
        ("src/Deep/One", "Main", ScriptFile::Server),
    ] {
        let path = create(folder, name, kind).expect("it reads back");
        project.session().catch_up(None).expect("the session lives");
        let below = folder.replace('/', ".").replacen("src", "ServerStorage.Kit", 1);
        assert_eq!(project.text(&format!("{below}.{name}")).as_deref(), Some("return 'new'"), "{path:?}");
    }
    for (folder, name, kind, why) in [
        ("src", "Alpha.spec", ScriptFile::Module, "globIgnorePaths"),
        ("src", "HiddenTruth", ScriptFile::Server, "globIgnorePaths"),
        ("src", "Text", ScriptFile::Module, "StringValue"),
        ("src", "Other", ScriptFile::Client, "ModuleScript"),
        ("away", "New", ScriptFile::Module, "its folder"),
    ] {
        let error = create(folder, name, kind).expect_err(name);
        assert!(matches!(&error, WriteError::NotReadBack { .. }) && error.to_string().contains(why), "{name}: {error}");
        let there = std::fs::read_dir(project.path(folder)).expect("a folder");
        let there: Vec<_> = there.map(|entry| entry.expect("an entry").file_name()).collect();
        assert!(there.iter().all(|other| !other.to_string_lossy().starts_with(name)), "{there:?}");
    }
    assert_eq!(*project.session().health().borrow(), Health::Live);
}
