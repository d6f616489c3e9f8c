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
