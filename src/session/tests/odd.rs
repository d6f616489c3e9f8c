//! Odd files, links, and projects that lead in circles.

use std::{fs, process};

use super::kit::{BASE, Project, find};
use crate::session::{ServeSession, SessionError};

#[cfg(unix)]
fn link(project: &Project, target: &str, at: &str) {
    std::os::unix::fs::symlink(target, project.path(at)).expect("a link can be made");
}

#[cfg(unix)]
#[test]
fn c09_the_target_of_a_link_is_edited() {
    let project = Project::new(&BASE.map(|(path, text)| (path, text)));
    let outside = tempfile::TempDir::new().expect("a temporary folder");
    let target = outside.path().join("ext/Lib.luau");
    let write = |text: &str| {
        fs::create_dir_all(outside.path().join("ext/Folder")).expect("folders can be made");
        fs::write(&target, text).expect("a file can be written");
        fs::write(outside.path().join("ext/Folder/Inner.luau"), text).expect("a file can be written");
    };
    write("return 1");
    link(&project, target.to_str().expect("UTF-8"), "src/Lib.luau");
    link(&project, outside.path().join("ext/Folder").to_str().expect("UTF-8"), "src/Linked");
    let project = project.serve();
    let is = |text: &str, path: &str| project.text(path).as_deref() == Some(text);
    let seen = |text: &str| {
        project.until("the link's target", |_| {
            is(text, "ServerStorage.Kit.Lib") && is(text, "ServerStorage.Kit.Linked.Inner")
        });
    };
    seen("return 1");
    write("return 2");
    seen("return 2");
    fs::write(outside.path().join("ext/new"), "return 3").expect("a file can be written");
    fs::rename(outside.path().join("ext/new"), &target).expect("it can be renamed");
    project.until("the rename", |_| is("return 3", "ServerStorage.Kit.Lib"));
    project.oracle();
}

#[cfg(unix)]
#[test]
fn c11_links_that_lead_in_circles() {
    let project = Project::new(&BASE);
    link(&project, ".", "src/loop");
    link(&project, "nowhere", "src/Dangling.luau");
    let project = project.serve();
    assert!(find(project.session(), "ServerStorage.Kit.loop").is_empty());
    assert_eq!(project.session().problems().len(), 2, "{:#?}", project.session().problems());
    link(&project, "../..", "src/Deep/up");
    link(&project, "../Deep", "src/Beta/across");
    link(&project, "../Beta", "src/Deep/back");
    project.until("the links are listed", |session| session.problems().len() > 3);
    project.oracle();
    project.remove("src/loop");
    project.oracle();
}

#[cfg(unix)]
#[test]
fn c27_what_is_no_file_is_skipped() {
    let project = Project::new(&BASE);
    let fifo = |at: &str| {
        let made = process::Command::new("mkfifo").arg(project.path(at)).status();
        assert!(made.expect("mkfifo runs").success());
    };
    fifo("src/pipe.luau");
    let _socket = std::os::unix::net::UnixListener::bind(project.path("src/s.luau")).expect("a socket");
    project.write("src/Latin.luau", b"return '\xe9'");
    project.write("src/Empty.rbxm", "");
    let project = project.serve();
    assert_eq!(project.session().problems().len(), 4, "{:#?}", project.session().problems());
    assert!(project.text("ServerStorage.Kit.Alpha").is_some());
    let made = process::Command::new("mkfifo").arg(project.path("src/Beta/pipe.luau")).status();
    assert!(made.expect("mkfifo runs").success());
    project.write("src/Latin.luau", "return 'é'");
    project.until("the text is UTF-8 now", |session| !find(session, "ServerStorage.Kit.Latin").is_empty());
    project.write("src/Later.luau", b"return '\xe9'");
    let lists = |session: &ServeSession, name: &str| {
        session.problems().iter().any(|problem| problem.path.as_ref().is_some_and(|path| path.ends_with(name)))
    };
    project.until("the new one is listed", |session| lists(session, "src/Later.luau"));
    project.remove("src/Later.luau");
    project.until("and no longer once it is gone", |session| !lists(session, "src/Later.luau"));
    project.oracle();

    let catch_up = || project.session().catch_up(None).expect("the disk can be read");
    project.write("src/Gone.luau", b"return '\xe9'");
    catch_up();
    assert!(lists(project.session(), "src/Gone.luau"));
    project.remove("src/Gone.luau");
    catch_up();
    assert!(!lists(project.session(), "src/Gone.luau"), "{:#?}", project.session().problems());
}

#[test]
fn c27_a_folder_called_like_a_file_that_tells_of_another_is_skipped() {
    let project = Project::new(&BASE);
    for name in ["init.luau", "Alpha.meta.json", "Deep/init.meta.json", "Beta/default.project.json"] {
        project.write(&format!("src/{name}/Inner.luau"), "return 1");
    }
    let project = project.serve();
    assert_eq!(project.session().problems().len(), 4, "{:#?}", project.session().problems());
    assert!(project.text("ServerStorage.Kit.Alpha").is_some() && project.text("ServerStorage.Kit.Beta").is_some());
    project.oracle();
}

#[test]
fn c27_a_script_that_cannot_be_read_any_more_is_not_gone() {
    let project = Project::new(&BASE).serve();
    let text = |session: &ServeSession| {
        session.catch_up(None).expect("the disk can be read");
        (project.text("ServerStorage.Kit.Alpha"), session.problems().len())
    };
    let before = text(project.session());
    assert!(before.0.is_some() && before.1 == 0);
    project.write("src/Alpha.luau", b"return '\xe9'");
    assert_eq!(text(project.session()), (before.0, 1));
    project.write("src/Alpha.luau", "return 'mended'");
    assert_eq!(text(project.session()), (Some("return 'mended'".to_owned()), 0));
    project.write("src/Alpha.luau", b"return '\xe9'");
    assert_eq!(text(project.session()), (Some("return 'mended'".to_owned()), 1));
    project.remove("src/Alpha.luau");
    assert_eq!(text(project.session()), (None, 0), "now it is gone");
}

#[test]
fn c27_what_stands_in_a_scripts_place_is_no_deletion() {
    let project = Project::new(&BASE).serve();
    let look = || {
        project.session().catch_up(None).expect("the disk can be read");
        (project.text("ServerStorage.Kit.Alpha").is_some(), project.session().problems())
    };
    let kept = |what: &str| {
        let (is_there, problems) = look();
        let named = problems.iter().any(|problem| problem.to_string().contains("Alpha.luau"));
        assert!(is_there && named && problems.len() == 1, "{what}: {problems:#?}");
        assert!(problems[0].message.ends_with("its last good text is kept"), "{what}: {problems:#?}");
        assert!(find(project.session(), "ServerStorage.Kit.Alpha.luau").is_empty());
    };
    project.remove("src/Alpha.luau");
    project.write("src/Alpha.luau/Inside.luau", "return 1");
    kept("a folder");
    project.remove("src/Alpha.luau");
    #[cfg(unix)]
    {
        let made = process::Command::new("mkfifo").arg(project.path("src/Alpha.luau")).status();
        assert!(made.expect("mkfifo runs").success());
        kept("a pipe");
        project.remove("src/Alpha.luau");
        let socket = std::os::unix::net::UnixListener::bind(project.path("src/Alpha.luau")).expect("a socket");
        kept("a socket");
        drop(socket);
        project.remove("src/Alpha.luau");
        link(&project, "nowhere", "src/Alpha.luau");
        kept("a link to nothing");
        project.remove("src/Alpha.luau");
    }
    project.write("src/Alpha.luau", "return 'again'");
    assert_eq!(look(), (true, Vec::new()));
    assert_eq!(project.text("ServerStorage.Kit.Alpha").as_deref(), Some("return 'again'"));
    project.remove("src/Alpha.luau");
    assert_eq!(look(), (false, Vec::new()), "now it is gone");
}

#[test]
fn c16_sources_above_the_project() {
    let project = Project::new(&[
        (
            "app/default.project.json",
            r#"{"name":"App","globIgnorePaths":["**/*.spec.luau"],"tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"../src"}}}}"#,
        ),
        ("src/Alpha.luau", "return 1"),
        ("src/Alpha.spec.luau", "ignored"),
        ("src/Pak/default.project.json", r#"{"name":"Pak","tree":{"$path":"lib"}}"#),
        ("src/Pak/lib/init.luau", "return 'lib'"),
    ]);
    let app = project.path("app");
    let project = project.serve_at(&app);
    assert!(find(project.session(), "ServerStorage.Kit.Alpha.spec").is_empty());
    let (_, looks) = project.session().look(&[project.id("ServerStorage.Kit.Alpha")]);
    let look = looks[0].as_ref().expect("it is in the tree");
    assert_eq!(look.fs_path.as_deref(), Some(std::path::Path::new("../src/Alpha.luau")));
    project.write("src/Alpha.luau", "return 2");
    project.write("src/More/Inner.luau", "return 3");
    project.write("src/More/Inner.spec.luau", "ignored");
    project.write("src/Pak/lib/Kid.luau", "return 'kid'");
    project.until("the edit", |_| project.text("ServerStorage.Kit.Alpha").as_deref() == Some("return 2"));
    project.oracle();
    project.remove("src/More");
    project.oracle();
}

#[cfg(unix)]
#[test]
fn c16_a_project_behind_a_link() {
    let project = Project::new(&BASE.map(|(path, text)| (path, text)));
    let outside = tempfile::TempDir::new().expect("a temporary folder");
    let alias = outside.path().join("alias");
    std::os::unix::fs::symlink(project.path(""), &alias).expect("a link can be made");
    let project = project.serve_at(&alias);
    project.write("src/Alpha.luau", "return 'through the link'");
    project.oracle();
}

#[test]
fn a_project_that_contains_itself_is_an_error_not_a_crash() {
    let start = |tree: &str, globs: &str| {
        let project = Project::new(&[]);
        // Above it lies our own folder, not the machine's.
        project.write("app/src/x.luau", "return 1");
        let text = format!(r#"{{"name":"Self","globIgnorePaths":[{globs}],"tree":{tree}}}"#);
        project.write("app/default.project.json", text);
        ServeSession::start(&project.path("app")).err()
    };
    for (tree, globs) in [
        (r#"{"$path":"."}"#, ""),
        (r#"{"$path":".."}"#, ""),
        (r#"{"$className":"Folder","A":{"$path":"src/.."}}"#, ""),
        // Rojo takes the project file of a folder whatever the globs say of it.
        (r#"{"$path":"."}"#, r#""default.project.json""#),
    ] {
        let error = start(tree, globs).expect("it does not start");
        assert!(
            matches!(&error, SessionError::BrokenProject { detail, .. } if detail.contains("leads back")),
            "{error}"
        );
    }
}

#[test]
fn nested_projects_in_a_circle_are_cut_and_mended() {
    let project = Project::base();
    project.write("src/Pak/default.project.json", r#"{"name":"Pak","tree":{"$path":"."}}"#);
    project.write("src/A/default.project.json", r#"{"name":"A","tree":{"$className":"Folder","B":{"$path":"../B"}}}"#);
    project.write("src/B/default.project.json", r#"{"name":"B","tree":{"$className":"Folder","A":{"$path":"../A"}}}"#);
    project.oracle();
    assert!(project.session().problems().iter().any(|problem| problem.message.contains("leads back")));
    project.write("src/Pak/default.project.json", r#"{"name":"Pak","tree":{"$path":"lib"}}"#);
    project.write("src/Pak/lib/init.luau", "return 'mended'");
    project.write("src/B/default.project.json", r#"{"name":"B","tree":{"$className":"Folder"}}"#);
    project.until("no problem is left", |session| session.problems().is_empty());
    project.oracle();
}

#[test]
fn a_start_without_a_usable_project_says_what_it_looked_for() {
    let project = Project::new(&[("src/Alpha.luau", "return 1")]);
    let error = ServeSession::start(&project.path("")).err().expect("there is no project");
    assert!(error.to_string().contains("default.project.json, default.project.jsonc"), "{error}");
    assert!(!error.hint().is_empty());
    project.write("default.project.json", "{\n\"name\": \"x\",\n!\n}");
    let error = ServeSession::start(&project.path("")).err().expect("it is broken");
    assert!(error.to_string().contains("line 3"), "{error}");
    assert!(ServeSession::start(&project.path("nowhere")).is_err());
}

#[test]
fn optional_paths_and_single_files() {
    let project = Project::new(&BASE);
    project.write(
        "default.project.json",
        r#"{"name":"Demo","tree":{"$className":"DataModel",
            "ServerStorage":{"Kit":{"$path":"src"},"Opt":{"$path":{"optional":"opt"}}},
            "ServerScriptService":{"Main":{"$path":"main.server.luau"}},
            "ReplicatedStorage":{"$path":"shared"}}}"#,
    );
    project.write("main.server.luau", "print('main')");
    let project = project.serve();
    project.write("opt/Inner.luau", "return 'optional'");
    project.write("shared/Common.luau", "return 'common'");
    project.write("main.meta.json", r#"{"properties":{"Disabled":true}}"#);
    project.until("the optional path", |session| !find(session, "ServerStorage.Opt.Inner").is_empty());
    project.oracle();
    project.write("main.server.luau", "print('edited')");
    project.remove("opt");
    project.remove("shared");
    project.oracle();
}

#[test]
fn a_project_that_is_mended_with_another_tree_makes_no_panic() {
    let project = Project::new(&BASE);
    project.write("opt/Inner.luau", "return 'optional'");
    let wide = r#"{"name":"Demo","tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"src"}},"Opt":{"$path":"opt"}}}"#;
    project.write("default.project.json", wide);
    let project = project.serve();
    // Three panics would end the session.
    for text in [BASE[0].1, wide, BASE[0].1, wide] {
        project.write("default.project.json", "{");
        project.until("the problem is named", |session| !session.problems().is_empty());
        project.write("opt/Inner.luau", format!("return {}", text.len()));
        project.write("src/Alpha.luau", format!("return {}", text.len()));
        project.remove("src/Beta");
        project.write("src/Beta.luau", "return 'Beta'");
        project.write("default.project.json", text);
        project.until("the problem is gone", |session| session.problems().is_empty());
        project.remove("src/Beta.luau");
        project.write("src/Beta/init.luau", "return {}");
        project.equals_fresh();
    }
    assert_eq!(*project.session().health().borrow(), crate::session::Health::Live);
}

#[test]
fn a_nested_project_gives_way_to_what_comes_beside_it() {
    let project = Project::new(&BASE);
    project.write("src/Pak/default.project.json", r#"{"name":"Inner","tree":{"$className":"Folder"}}"#);
    let project = project.serve();
    project.remove("src/Pak/default.project.json");
    project.write("src/Pak/New/init.luau", "return 'new'");
    project.session().catch_up(None).expect("it lives");
    assert_eq!(find(project.session(), "ServerStorage.Kit.Pak").len(), 1, "once, though two files say so");
    project.oracle();
}

#[test]
fn a_model_that_is_nested_too_deep_is_listed_and_does_not_end_the_process() {
    let mut dom = rbx_dom_weak::WeakDom::new(rbx_dom_weak::InstanceBuilder::new("Folder"));
    let mut deepest = dom.root_ref();
    for _ in 0..30_000 {
        deepest = dom.insert(deepest, rbx_dom_weak::InstanceBuilder::new("Folder"));
    }
    let mut model = Vec::new();
    rbx_binary::to_writer(&mut model, &dom, &[dom.root_ref()]).expect("it is written");
    let project = Project::new(&BASE);
    project.write("src/Deep.rbxm", model);
    let project = project.serve();
    assert!(project.session().problems().iter().any(|problem| problem.message.contains("deep")));
    assert!(project.text("ServerStorage.Kit.Alpha").is_some());
}

#[test]
fn what_a_killed_server_left_behind_is_named() {
    let left = "src/.Alpha.luau.rojo-mcp-0123456789abcdef";
    let project = Project::new(&BASE);
    project.write(left, "return 'displaced'");
    let project = project.serve();
    let names = |session: &ServeSession| {
        session.problems().iter().any(|problem| problem.path.as_ref().is_some_and(|path| path.ends_with(left)))
    };
    assert!(names(project.session()), "{:#?}", project.session().problems());
    project.remove(left);
    project.until("it is named no longer", |session| session.problems().is_empty());
    project.write(left, "return 'being written'");
    project.oracle();
    assert!(!names(project.session()), "one that is being used is nobody's business");
}

#[cfg(unix)]
#[test]
fn the_project_file_of_a_folder_may_be_a_link() {
    let project = Project::new(&BASE);
    project.rename("default.project.json", "shared.json");
    link(&project, "shared.json", "default.project.json");
    project.write("of.project.json", BASE[0].1);
    project.write("elsewhere/some.txt", "");
    link(&project, "../of.project.json", "elsewhere/linked.project.json");
    let folder = project.path("");
    for named in ["", "default.project.json", "elsewhere/linked.project.json"] {
        let session = ServeSession::start(&folder.join(named)).expect("it is served");
        assert_eq!(session.project().folder.join(""), folder.join(""), "{named:?}");
        assert_eq!(find(&session, "ServerStorage.Kit.Alpha").len(), 1, "{named:?}");
        // What is found is found again by its own name.
        let again = ServeSession::start(&session.project().file).expect("it is served");
        assert_eq!(again.project().file, session.project().file);
    }
}

#[cfg(unix)]
#[test]
fn of_what_the_project_names_no_longer_nothing_is_said() {
    let project = Project::new(&BASE);
    let named = r#"{"name":"Demo","tree":{"$path":"src","Pipe":{"$path":{"optional":"pipe"}}}}"#;
    project.write("default.project.json", named);
    let made = process::Command::new("mkfifo").arg(project.path("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let project = project.serve();
    assert_eq!(project.session().problems().len(), 1, "{:#?}", project.session().problems());
    project.write("default.project.json", r#"{"name":"Demo","tree":{"$path":"src"}}"#);
    project.until("the pipe is forgotten", |session| session.problems().is_empty());
}

#[test]
fn of_many_bad_files_the_first_are_named_and_all_are_counted() {
    let project = Project::new(&BASE);
    for number in 0..200 {
        project.write(&format!("src/Bad{number:03}.luau"), b"return '\xe9'");
    }
    let project = project.serve();
    let problems = project.session().problems();
    assert_eq!(problems.len(), 31);
    assert!(problems[30].message.starts_with("170 more"), "{}", problems[30]);
    let warning = project.session().warning().expect("there is one");
    assert!(warning.contains("200 files or folders"), "{warning}");
}
