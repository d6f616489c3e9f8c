//! Files that are taken away, and come back.

use super::*;
use crate::files::remove::Remove;

impl Project {
    fn remove(&self, path: &str, base: &str) -> Result<Removed, WriteError> {
        remove(&self.sources(), &self.path(path), TextHash::of(base))
    }

    /// Remove Alpha, with an editor at work before it is moved aside and before that is looked at.
    fn remove_interrupted(
        &self,
        mut before_move: impl FnMut(),
        mut before_verify: impl FnMut(),
    ) -> Result<Removed, WriteError> {
        let one = Remove { before_move: &mut before_move, before_verify: &mut before_verify };
        one.run(&self.sources(), &self.path("src/Alpha.luau"), TextHash::of("return 1\n"))
    }
}

#[test]
fn what_is_kept_is_written_again_where_its_folder_comes_back() {
    let project = Project::new();
    let kept = project.path("src/Deep/Alpha.luau.kept-1");
    let mut looks = 0;
    let wrote = write_kept_or_look(&kept, b"saved", &mut || {
        looks += 1;
        fs::create_dir_all(project.path("src/Deep")).expect("made");
    });
    wrote.expect("kept");
    assert_eq!((looks, project.read("src/Deep/Alpha.luau.kept-1")), (1, "saved".into()));
    let gone = project.path("src/Gone/Alpha.luau.kept-1");
    let error = write_kept_or_look(&gone, b"saved", &mut || looks += 1).expect_err("its folder is gone");
    assert_eq!((error.kind(), looks, project.path("src/Gone").exists()), (io::ErrorKind::NotFound, 6, false));
    let error = write_kept(&kept, b"another").expect_err("a name is used once");
    assert_eq!(
        (error.kind(), project.read("src/Deep/Alpha.luau.kept-1")),
        (io::ErrorKind::AlreadyExists, "saved".into())
    );
}

#[test]
fn what_is_removed_is_handed_back_as_it_was() {
    let project = Project::new();
    assert!(matches!(project.remove("src/Alpha.luau", "older"), Err(WriteError::Changed { .. })));
    assert_eq!(project.names(), ["Alpha.luau"]);
    let dressed = "\u{feff}return 1\r\n";
    project.write("src/Alpha.luau", dressed);
    assert_eq!(
        removable(&project.sources(), &project.path("src/Alpha.luau"), TextHash::of(dressed)).ok(),
        Some(dressed.into())
    );
    assert_eq!(project.names(), ["Alpha.luau"], "that was a question");
    assert_eq!(project.remove("src/Alpha.luau", "return 1\n").expect("removed").held, dressed);
    assert_eq!(project.names(), Vec::<String>::new());
    assert!(matches!(project.remove("src/Alpha.luau", "return 1\n"), Err(WriteError::Gone(_))));
}

#[test]
fn c41_a_save_between_decision_and_removal_goes_back() {
    let project = Project::new();
    let in_place = project.remove_interrupted(|| project.write("src/Alpha.luau", "editor"), || {});
    assert!(matches!(in_place, Err(WriteError::Changed { now, .. }) if now == TextHash::of("editor")), "{in_place:?}");
    assert_eq!(project.read("src/Alpha.luau"), "editor");
    project.write("src/Alpha.luau", "return 1\n");
    let by_rename = project.remove_interrupted(
        || {
            project.write("src/new", "editor 2");
            fs::rename(project.path("src/new"), project.path("src/Alpha.luau")).expect("a rename");
        },
        || {},
    );
    assert!(by_rename.is_err());
    assert_eq!(project.read("src/Alpha.luau"), "editor 2");
    assert_eq!(project.names(), ["Alpha.luau"], "nothing of ours stays");
}

#[test]
fn c42_a_file_that_goes_before_it_is_removed_is_gone() {
    let project = Project::new();
    let gone = project.remove_interrupted(|| fs::remove_file(project.path("src/Alpha.luau")).expect("removed"), || {});
    assert!(matches!(gone, Err(WriteError::Gone(_))), "{gone:?}");
    assert_eq!(project.names(), Vec::<String>::new());
}

#[test]
fn a_file_that_comes_while_one_is_removed_stays_and_so_does_an_edit_of_the_old_one() {
    let project = Project::new();
    let removed = project.remove_interrupted(|| {}, || project.write("src/Alpha.luau", "a new file"));
    removed.expect("what was there was removed").displaced.settle();
    assert_eq!(project.read("src/Alpha.luau"), "a new file");

    // The old one was edited as well, so neither may go.
    project.write("src/Alpha.luau", "return 1\n");
    let mut open = fs::File::options().append(true).open(project.path("src/Alpha.luau")).expect("an editor");
    let kept = project.remove_interrupted(
        || {},
        || {
            open.write_all(b"edited").expect("a save");
            project.write("src/Alpha.luau", "a new file");
        },
    );
    assert!(kept.is_err(), "{kept:?}");
    assert_eq!(project.read("src/Alpha.luau"), "a new file");
    let kept = project.names().into_iter().find(|name| name.contains(".kept-")).expect("kept");
    assert_eq!(project.read(&format!("src/{kept}")), "return 1\nedited");
}

#[test]
fn an_editor_that_writes_into_what_was_removed_has_it_back() {
    let project = Project::new();
    let mut open = fs::File::options().append(true).open(project.path("src/Alpha.luau")).expect("an editor");
    let removed = project.remove("src/Alpha.luau", "return 1\n").expect("removed");
    assert_eq!(project.names(), Vec::<String>::new());
    open.write_all(b"late").expect("a save");
    removed.displaced.settle();
    assert_eq!(project.read("src/Alpha.luau"), "return 1\nlate");
    assert_eq!(project.names(), ["Alpha.luau"]);
}

#[test]
fn what_was_moved_aside_and_cannot_be_read_goes_back() {
    let project = Project::new();
    let outcome = project.remove_interrupted(
        || {
            fs::remove_file(project.path("src/Alpha.luau")).expect("it was there");
            project.write("src/Alpha.luau/Inner.luau", "return 'inner'");
        },
        || {},
    );
    assert!(outcome.is_err());
    assert_eq!(project.names(), ["Alpha.luau"]);
    assert_eq!(project.read("src/Alpha.luau/Inner.luau"), "return 'inner'");
}

#[test]
fn c44_a_read_only_file_is_not_removed() {
    let project = Project::new();
    let mut permissions = fs::metadata(project.path("src/Alpha.luau")).expect("it is there").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(project.path("src/Alpha.luau"), permissions).expect("it is ours");
    assert!(matches!(project.remove("src/Alpha.luau", "return 1\n"), Err(WriteError::ReadOnly(_))));
    assert_eq!(project.read("src/Alpha.luau"), "return 1\n");
}

#[cfg(unix)]
#[test]
fn c84_nothing_outside_the_sources_goes_or_comes_and_no_link() {
    use std::os::unix::fs::symlink;
    let project = Project::new();
    project.write("other/File.luau", "return 1\n");
    symlink(project.path("other"), project.path("src/Folder")).expect("a link");
    symlink("Alpha.luau", project.path("src/Inner.luau")).expect("a link");
    for path in ["other/File.luau", "src/Folder/File.luau"] {
        assert!(matches!(project.remove(path, "return 1\n"), Err(WriteError::Outside(_))), "{path}");
    }
    assert!(matches!(project.remove("src/Inner.luau", "return 1\n"), Err(WriteError::Link(_))));
    assert_eq!(project.read("src/Alpha.luau"), "return 1\n");
    for path in ["other/New.luau", "src/Folder/New.luau", "src/Folder/New/Deep.luau", "src/../other/New.luau"] {
        let outside = restore(&project.sources(), &project.path(path), b"x");
        assert!(matches!(outside, Err(WriteError::Outside(_))), "{path}: {outside:?}");
    }
    let outside = remove_empty_folder(&project.sources(), &project.path("other"));
    assert!(matches!(outside, Err(WriteError::Outside(_))), "{outside:?}");
}

#[test]
fn a_folder_goes_only_if_nothing_is_in_it_and_files_come_back_with_their_folders() {
    let project = Project::new();
    project.write("src/Beta/init.luau", "return {}");
    let folder = project.path("src/Beta");
    assert!(!remove_empty_folder(&project.sources(), &folder).expect("asked"), "something is in it");
    project.remove("src/Beta/init.luau", "return {}").expect("removed");
    assert!(remove_empty_folder(&project.sources(), &folder).expect("asked"));
    assert!(!folder.exists());
    let back = |path: &str, text: &str| restore(&project.sources(), &project.path(path), text.as_bytes());
    back("src/Beta/Deep/Leaf.luau", "\u{feff}leaf\r\n").expect("it is back");
    assert_eq!(project.read("src/Beta/Deep/Leaf.luau"), "\u{feff}leaf\r\n");
    assert!(matches!(back("src/Alpha.luau", "another"), Err(WriteError::Exists(_))));
    assert_eq!(project.read("src/Alpha.luau"), "return 1\n");
    assert_eq!(project.names(), ["Alpha.luau", "Beta"], "nothing of ours stays");
}
