//! What lies above: sources above other sources, and the folders above the project.

use super::kit::{Project, find};
use crate::session::Target;

/// A project file whose nodes are the given `$path`s.
fn nodes(paths: &[(&str, &str)]) -> String {
    let nodes: Vec<String> = paths.iter().map(|(name, path)| format!(r#""{name}":{{"$path":"{path}"}}"#)).collect();
    format!(r#"{{"name":"Demo","tree":{{"$className":"Folder",{}}}}}"#, nodes.join(","))
}

const INNER: [(&str, &str); 4] = [
    ("src/Top.luau", "return 0"),
    ("src/Beta/init.luau", "return {}"),
    ("src/Beta/init.meta.json", "{}"),
    ("src/Beta/Gamma.txt", "text"),
];

/// Files that are older than a moment are not read again as long as they look the same.
fn settle(project: &Project) {
    let newest = ["src/Top.luau", "src/Beta/init.luau", "src/Beta/init.meta.json", "src/Beta/Gamma.txt"];
    for file in newest.map(|file| std::fs::File::open(project.path(file)).expect("it is there")) {
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)).expect("the time can be set");
    }
}

fn has(project: &Project, path: &str) -> bool {
    !project.session().find(&Target::InstancePath(path)).is_empty()
}

#[test]
fn a_source_above_one_that_is_served_is_whole() {
    let before = nodes(&[("Part", "src/Beta")]);
    for after in [nodes(&[("Part", "src/Beta"), ("All", "src")]), nodes(&[("All", "src")])] {
        let project = Project::new(&INNER);
        settle(&project);
        project.write("default.project.json", &before);
        let project = project.serve();
        assert!(has(&project, "Part.Gamma"));
        project.write("default.project.json", &after);
        project.until("the folder above", |session| !find(session, "All.Top").is_empty());
        assert!(has(&project, "All.Beta.Gamma"), "{:#?}", project.shape());
        project.equals_fresh();
        project.write("src/Beta/Gamma.txt", "another");
        project.write("src/Beta/New.luau", "return 1");
        project.until("what is new below it", |session| !find(session, "All.Beta.New").is_empty());
        project.equals_fresh();
    }
}

#[test]
fn a_nested_project_may_name_a_folder_above_a_source() {
    let project = Project::new(&INNER);
    settle(&project);
    project.write("lib/default.project.json", r#"{"name":"Lib","tree":{"$path":"../src"}}"#);
    project.write("default.project.json", nodes(&[("Part", "src/Beta"), ("Lib", "lib")]));
    let project = project.serve();
    for path in ["Part.Gamma", "Lib.Top", "Lib.Beta.Gamma"] {
        assert!(has(&project, path), "{path}: {:#?}", project.shape());
    }
}

#[test]
fn a_nested_project_stays_whole_where_a_source_above_it_is_named_no_longer() {
    let project = Project::new(&INNER);
    project.write("src/Beta/Nested/default.project.json", r#"{"name":"Nested","tree":{"$path":"../../../out/./lib"}}"#);
    project.write("out/lib/Far.luau", "return 1");
    project.write("default.project.json", nodes(&[("All", "src")]));
    let project = project.serve();
    assert!(has(&project, "All.Beta.Nested.Far"), "{:#?}", project.shape());
    project.write("default.project.json", nodes(&[("Part", "src/Beta")]));
    project.until("the inner folder", |session| !find(session, "Part.Gamma").is_empty());
    project.equals_fresh();
    project.write("out/lib/New.luau", "return 2");
    project.until("what is new in the nested one", |session| !find(session, "Part.Nested.New").is_empty());
    project.equals_fresh();
}

/// The folder of the project goes, or another comes in its place; nothing in it says so.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod folder {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::session::tests::kit::BASE;

    /// The base tree in `folder`, with a module of that name.
    fn make(project: &Project, folder: &str, name: &str) {
        for (path, text) in BASE {
            project.write(&format!("{folder}/{path}"), text);
        }
        project.write(&format!("{folder}/src/{name}.luau"), "return 1");
    }

    fn served() -> Project {
        let project = Project::new(&[]);
        make(&project, "above/app", "First");
        let path = project.path("above/app");
        project.serve_at(&path)
    }

    fn until(project: &Project, name: &str) {
        let path = format!("ServerStorage.Kit.{name}");
        project.until(name, |session| !find(session, &path).is_empty());
    }

    /// What is there is followed.
    fn is_followed(project: &Project) {
        project.equals_fresh();
        project.write("above/app/src/Later.luau", "return 2");
        until(project, "Later");
        project.equals_fresh();
    }

    #[test]
    fn another_comes_in_its_place() {
        for place in ["above/app", "above"] {
            let project = served();
            project.rename(place, "old");
            make(&project, "above/app", "Second");
            until(&project, "Second");
            is_followed(&project);
            // And again, by then below other folders.
            make(&project, "new", "Third");
            project.rename("above/app", "older");
            project.rename("new", "above/app");
            until(&project, "Third");
            is_followed(&project);
        }
    }

    #[test]
    fn it_goes_and_comes_back_changed() {
        let project = served();
        project.rename("above", "elsewhere");
        project.until("it is missed", |session| {
            session.problems().iter().any(|problem| problem.message.contains("the last good tree is kept"))
        });
        project.write("elsewhere/app/src/Meanwhile.luau", "return 1");
        assert!(!has(&project, "ServerStorage.Kit.Meanwhile"));
        assert!(has(&project, "ServerStorage.Kit.First"));
        project.rename("elsewhere", "above");
        until(&project, "Meanwhile");
        is_followed(&project);
    }

    #[test]
    fn a_link_comes_in_its_place_and_leads_elsewhere_later() {
        let project = served();
        make(&project, "one", "One");
        make(&project, "two", "Two");
        project.rename("above/app", "old");
        symlink(project.path("one"), project.path("above/app")).expect("a link can be made");
        until(&project, "One");
        is_followed(&project);
        symlink(project.path("two"), project.path("above/next")).expect("a link can be made");
        project.rename("above/next", "above/app");
        until(&project, "Two");
        is_followed(&project);
    }

    #[test]
    fn what_a_link_leads_to_moves_with_a_folder_above_it() {
        let project = Project::base();
        project.write("libs/deep/lib/One.luau", "return 1");
        symlink(project.path("libs/deep/lib"), project.path("src/Lib")).expect("a link can be made");
        until(&project, "Lib.One");
        project.rename("libs", "away");
        project.write("libs/deep/lib/Two.luau", "return 2");
        until(&project, "Lib.Two");
        project.oracle();
    }
}
