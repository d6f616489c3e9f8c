//! Folders that get another name or place.

use super::*;

impl Project {
    fn move_folder(&self, path: &str, folder: &str, name: &str) -> Result<PathBuf, WriteError> {
        let (sources, path, folder) = (self.sources(), self.path(path), self.path(folder));
        let checked = check_move_folder(&sources, &path, (&folder, name));
        let moved = move_folder(&sources, &path, (&folder, name));
        assert_eq!(checked.is_ok(), moved.is_ok(), "{checked:?} {moved:?}");
        moved
    }
}

#[test]
fn a_folder_takes_along_whatever_lies_in_it() {
    let project = Project::new();
    project.write("src/Deep/Inner/init.luau", "return 1\n");
    project.write("src/Deep/notes.txt", "mine");
    project.write("src/Other/a.luau", "");
    let path = project.move_folder("src/Deep", "src/Other", "Low").expect("moved");
    assert!(path.ends_with("src/Other/Low"), "{path:?}");
    assert_eq!(project.read("src/Other/Low/Inner/init.luau"), "return 1\n");
    assert_eq!(project.read("src/Other/Low/notes.txt"), "mine");
    project.move_folder("src/Other", "src", "OTHER").expect("letters of another size");
    assert_eq!(project.names(), ["Alpha.luau", "OTHER"]);
}

#[test]
fn a_folder_stays_where_it_is_if_its_new_place_is_taken_or_none_of_ours() {
    let project = Project::new();
    project.write("src/Deep/a.luau", "");
    fs::create_dir_all(project.path("src/Empty")).expect("made");
    for (folder, name) in [("src", "Empty"), ("src", "empty"), ("src", "alpha"), ("src", "a/b"), ("src/Deep", "In")] {
        assert!(project.move_folder("src/Deep", folder, name).is_err(), "{folder} {name}");
    }
    assert!(matches!(project.move_folder("src/Deep", ".", "Out"), Err(WriteError::Outside(_))));
    assert!(matches!(project.move_folder("src", "src", "Out"), Err(WriteError::Outside(_))), "it is a `$path`");
    assert_eq!(project.names(), ["Alpha.luau", "Deep", "Empty"]);
}

#[test]
fn a_name_is_given_in_one_step_that_replaces_nothing() {
    let project = Project::new();
    project.write("src/Deep/a.luau", "return 'deep'");
    let at = |name: &str| project.path(&format!("src/{name}"));
    fs::create_dir(at("Empty")).expect("made");
    project.write("src/File.luau", "return 'file'");
    for taken in ["Empty", "File.luau"] {
        // As where it has come after everything was looked at.
        let error = crate::files::folders::give_name(&at("Deep"), &at(taken)).expect_err("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{taken}: {error}");
    }
    let error = crate::files::folders::give_name(&at("File.luau"), &at("Alpha.luau")).expect_err("it is taken");
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
    assert_eq!(project.names(), ["Alpha.luau", "Deep", "Empty", "File.luau"]);
    assert_eq!(project.read("src/Deep/a.luau"), "return 'deep'");
    crate::files::folders::give_name(&at("Deep"), &at("New")).expect("nothing is there");
    assert_eq!((project.read("src/New/a.luau"), at("Deep").exists()), ("return 'deep'".into(), false));
}

#[test]
fn where_letters_are_not_told_apart_by_their_size_a_folder_goes_by_way_of_another_name() {
    let project = Project::new();
    project.write("src/Deep/a.luau", "return 'deep'");
    let at = |name: &str| project.path(&format!("src/{name}"));
    crate::files::folders::by_way_of_a_scratch(&at("Deep"), &at("deep")).expect("nothing is there");
    assert_eq!(
        (project.names(), project.read("src/deep/a.luau")),
        (vec!["Alpha.luau".into(), "deep".into()], "return 'deep'".into())
    );
    project.write("src/Other/b.luau", "");
    crate::files::folders::by_way_of_a_scratch(&at("deep"), &at("Other")).expect_err("it is taken");
    assert_eq!(project.names(), ["Alpha.luau", "Other", "deep"], "it has its old name");
}
