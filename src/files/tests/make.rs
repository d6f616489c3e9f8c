//! Files that are made, also below others, and files that get another place.

use super::*;

impl Project {
    fn move_to(&self, base: &str, folder: &str, name: &str, text: &str) -> Result<PathBuf, WriteError> {
        let (folder, text) = (self.path(folder), ScriptText::new(text));
        let to = NewName { folder: &folder, was: "Alpha", name, kind: ScriptFile::Module };
        let moved = move_to(&self.sources(), &self.path("src/Alpha.luau"), TextHash::of(base), to, &text);
        moved.map(|moved| moved.path)
    }
}

#[test]
fn a_file_that_moves_keeps_its_dress_and_leaves_nothing_behind() {
    let project = Project::new();
    project.write("src/Deep/Other.luau", "");
    project.write("src/Alpha.luau", "\u{feff}local a\r\nreturn a\r\n");
    let path = project.move_to("local a\nreturn a\n", "src/Deep", "Beta", "local b\nreturn b\n").expect("moved");
    assert!(path.ends_with("src/Deep/Beta.luau"), "{path:?}");
    assert_eq!(project.read("src/Deep/Beta.luau"), "\u{feff}local b\r\nreturn b\r\n");
    assert_eq!(project.names(), ["Deep"]);
}

#[test]
fn what_says_more_of_a_script_goes_along_or_the_script_stays() {
    let project = Project::new();
    project.write("src/Deep/Other.luau", "");
    project.write("src/Alpha.meta.json", "{}");
    project.write("src/Alpha.meta.jsonc", "{ }");
    project.move_to("return 1\n", "src/Deep", "Beta", "return 1\n").expect("moved");
    assert_eq!(
        (project.read("src/Deep/Beta.meta.json"), project.read("src/Deep/Beta.meta.jsonc")),
        ("{}".into(), "{ }".into())
    );
    assert_eq!(project.names(), ["Deep"]);

    project.write("src/Alpha.luau", "return 1\n");
    project.write("src/Alpha.meta.json", "{}");
    project.write("src/Beta.meta.json", "another's");
    assert!(matches!(project.move_to("return 1\n", "src", "Beta", "return 1\n"), Err(WriteError::Exists(_))));
    project.write("src/Gamma.rbxmx", "");
    assert!(matches!(project.move_to("return 1\n", "src", "Gamma", "return 1\n"), Err(WriteError::Shared(_))));
    project.write("src/Alpha.server.luau", "");
    assert!(matches!(project.move_to("return 1\n", "src", "Delta", "return 1\n"), Err(WriteError::Shared(_))));
    assert_eq!(
        project.names(),
        ["Alpha.luau", "Alpha.meta.json", "Alpha.server.luau", "Beta.meta.json", "Deep", "Gamma.rbxmx"]
    );
    assert_eq!(project.read("src/Beta.meta.json"), "another's");
}

#[test]
fn a_file_that_is_saved_while_it_moves_stays_alone_and_what_lies_beside_it_comes_back() {
    let project = Project::new();
    project.write("src/Alpha.meta.json", "{}");
    let (sources, alpha, src) = (project.sources(), project.path("src/Alpha.luau"), project.path("src"));
    let one = moved::Move { before_remove: &mut || project.write("src/Alpha.luau", "saved") };
    let to = NewName { folder: &src, was: "Alpha", name: "Beta", kind: ScriptFile::Module };
    let moved = one.run(&sources, &alpha, TextHash::of("return 1\n"), to, &ScriptText::new("return 1\n"));
    assert!(matches!(moved, Err(WriteError::Changed { .. })), "{moved:?}");
    assert_eq!(
        (project.names(), project.read("src/Alpha.luau")),
        (vec!["Alpha.luau".into(), "Alpha.meta.json".into()], "saved".into())
    );
}

#[test]
fn how_the_name_of_a_file_ends_stays() {
    for ending in [".lua", ".plugin.luau", ".legacy.lua", ".client.luau"] {
        let project = Project::new();
        project.write(&format!("src/Alpha{ending}"), "return 1\n");
        let to = NewName { folder: &project.path("src"), was: "Alpha", name: "Beta", kind: ScriptFile::Server };
        let path = project.path(&format!("src/Alpha{ending}"));
        move_to(&project.sources(), &path, TextHash::of("return 1\n"), to, &ScriptText::new("return 1\n"))
            .expect("moved");
        assert_eq!(project.names(), ["Alpha.luau".to_owned(), format!("Beta{ending}")]);
    }
}

#[test]
fn a_file_stays_where_its_new_place_is_taken_or_it_is_newer() {
    let project = Project::new();
    project.write("src/Beta.luau", "return 'beta'\n");
    assert!(matches!(project.move_to("return 1\n", "src", "Beta", "return 1\n"), Err(WriteError::Exists(_))));
    assert!(matches!(project.move_to("older", "src", "Gamma", "return 1\n"), Err(WriteError::Changed { .. })));
    assert!(matches!(project.move_to("return 1\n", ".", "Gamma", "return 1\n"), Err(WriteError::Outside(_))));
    assert!(matches!(project.move_to("return 1\n", "src", "a:b", "return 1\n"), Err(WriteError::Name(_))));
    assert_eq!(project.names(), ["Alpha.luau", "Beta.luau"]);
    assert_eq!(project.read("src/Beta.luau"), "return 'beta'\n");
}

#[test]
fn a_file_gets_its_name_in_letters_of_another_size() {
    let project = Project::new();
    project.write("src/Alpha.luau", "\u{feff}return 1\r\n");
    let check = |name: &str| {
        let to = NewName { folder: &project.path("src"), was: "Alpha", name, kind: ScriptFile::Module };
        check_move(&project.sources(), &project.path("src/Alpha.luau"), TextHash::of("return 1\n"), to)
    };
    check("ALPHA").expect("only its own file is there");
    project.move_to("return 1\n", "src", "alpha", "return 2\n").expect("moved");
    assert_eq!(
        (project.names(), project.read("src/alpha.luau")),
        (vec!["alpha.luau".to_owned()], "\u{feff}return 2\r\n".into())
    );
    project.write("src/Alpha.server.luau", "");
    project.write("src/Alpha.luau", "return 1\n");
    assert!(matches!(check("ALPHA"), Err(WriteError::Exists(_))), "another has it");
    assert!(matches!(project.move_to("return 1\n", "src", "ALPHA", "return 2\n"), Err(WriteError::Exists(_))));
}

#[test]
fn a_script_that_others_lie_below_is_the_init_file_of_a_folder() {
    let project = Project::new();
    let text = ScriptText::new("return 2\n");
    let make = |name: &str, kind| create_init(&project.sources(), &project.path("src"), name, kind, &text);
    make("New", ScriptFile::Server).expect("made");
    assert_eq!(project.read("src/New/init.server.luau"), "return 2\n");
    project.write("src/Empty/.gitkeep", "");
    make("Empty", ScriptFile::Module).expect("the folder is there already");
    assert_eq!(project.read("src/Empty/init.luau"), "return 2\n");
    assert!(matches!(make("New", ScriptFile::Module), Err(WriteError::Exists(_))), "it is a script already");
    assert!(matches!(make("Alpha", ScriptFile::Module), Err(WriteError::Exists(_))), "a file has that name");
    assert!(matches!(make("..", ScriptFile::Module), Err(WriteError::Name(_))));
    let folder = |name: &str| create_folder(&project.sources(), &project.path("src"), name);
    folder("Plain").expect("made");
    folder("Plain").expect("it is there");
    assert!(matches!(folder("alpha"), Err(WriteError::Exists(_))), "but for the size of letters it is taken");
    assert_eq!(project.names(), ["Alpha.luau", "Empty", "New", "Plain"]);
}

#[test]
fn what_is_in_the_way_is_said_before_anything_is_done() {
    let project = Project::new();
    let held = |base: &str| check_held(&project.sources(), &project.path("src/Alpha.luau"), TextHash::of(base));
    assert!(held("return 1\n").is_ok() && matches!(held("older"), Err(WriteError::Changed { .. })));
    let free = |name: &str| check_create(&project.sources(), &project.path("src"), name, ScriptFile::Module);
    assert!(free("Beta").is_ok() && matches!(free("Alpha"), Err(WriteError::Exists(_))));
    assert_eq!(project.names(), ["Alpha.luau"]);
}
