//! The writer against an editor that does not wait for it.
#![expect(clippy::disallowed_methods, reason = "an editor is not the server")]

mod folders;
mod make;
mod removal;

use std::{fs, io::Write, path::PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::session::{ServeSession, Target};

/// A project with one `$path`, `src`.
struct Project(TempDir);

impl Project {
    fn new() -> Self {
        let project = Self(TempDir::new().expect("a temporary folder"));
        project.write("src/Alpha.luau", "return 1\n");
        project
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders can be made");
        fs::write(path, text).expect("a file can be written");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("a text")
    }

    fn sources(&self) -> Sources {
        Sources::new(self.0.path().to_path_buf(), vec![self.path("src")], false)
    }

    fn replace(&self, path: &str, base: &str, text: &str) -> Result<Written, WriteError> {
        replace(&self.sources(), &self.path(path), TextHash::of(base), &ScriptText::new(text))
    }

    /// Replace Alpha, with `editor` at work between decision and exchange.
    fn interrupted(&self, means: Means, mut editor: impl FnMut()) -> Result<Written, WriteError> {
        let one = Replace { means, before_exchange: &mut editor };
        one.run(&self.sources(), &self.path("src/Alpha.luau"), TextHash::of("return 1\n"), &ScriptText::new("ours"))
    }

    /// The names in `src`, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("src")).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

const BOTH: [Means; 2] = [Means::Exchange, Means::Aside];

#[test]
fn a_text_takes_the_place_of_its_base_and_keeps_its_dress() {
    let project = Project::new();
    project.write("src/Alpha.luau", "\u{feff}local a\r\nreturn a\r\n");
    let written = project.replace("src/Alpha.luau", "local a\nreturn a\n", "local b\nreturn b\n").expect("written");
    assert_eq!(written.hash, TextHash::of("local b\nreturn b\n"));
    assert_eq!(project.read("src/Alpha.luau"), "\u{feff}local b\r\nreturn b\r\n");
    assert_eq!(project.names(), ["Alpha.luau"], "nothing lies around that git could take up");
}

#[cfg(unix)]
#[test]
fn the_mode_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    let mode = |mode| fs::set_permissions(project.path("src/Alpha.luau"), fs::Permissions::from_mode(mode));
    mode(0o750).expect("it is ours");
    project.replace("src/Alpha.luau", "return 1\n", "return 2\n").expect("written");
    let after = fs::metadata(project.path("src/Alpha.luau")).expect("it is there").permissions().mode();
    assert_eq!(after & 0o777, 0o750);
}

#[test]
fn a_text_that_is_there_is_not_written_again_whatever_the_base() {
    let project = Project::new();
    project.write("src/Alpha.luau", "\u{feff}return 1\r\n");
    let before = fs::metadata(project.path("src/Alpha.luau")).expect("it is there");
    for base in ["return 1\n", "something else"] {
        let written = project.replace("src/Alpha.luau", base, "return 1\n").expect("no conflict");
        assert!(written.displaced.is_none());
    }
    let after = fs::metadata(project.path("src/Alpha.luau")).expect("it is there");
    assert_eq!(before.modified().ok(), after.modified().ok());
    assert_eq!(project.read("src/Alpha.luau"), "\u{feff}return 1\r\n");
}

#[test]
fn c41_a_newer_text_is_not_overwritten() {
    let project = Project::new();
    project.write("src/Alpha.luau", "editor");
    let error = project.replace("src/Alpha.luau", "return 1\n", "ours").expect_err("the disk is newer");
    assert!(matches!(error, WriteError::Changed { now, .. } if now == TextHash::of("editor")), "{error}");
    assert_eq!(project.read("src/Alpha.luau"), "editor");
}

#[test]
fn c41_a_save_between_decision_and_exchange_goes_back() {
    for means in BOTH {
        let project = Project::new();
        let in_place = project.interrupted(means, || project.write("src/Alpha.luau", "editor"));
        assert!(matches!(in_place, Err(WriteError::Changed { now, .. }) if now == TextHash::of("editor")));
        assert_eq!(project.read("src/Alpha.luau"), "editor");
        project.write("src/Alpha.luau", "return 1\n");
        let by_rename = project.interrupted(means, || {
            project.write("src/new", "editor 2");
            fs::rename(project.path("src/new"), project.path("src/Alpha.luau")).expect("a rename");
        });
        assert!(by_rename.is_err());
        assert_eq!(project.read("src/Alpha.luau"), "editor 2");
        assert_eq!(project.names(), ["Alpha.luau"], "nothing of ours stays");
    }
}

#[test]
fn c42_a_file_that_is_gone_stays_gone() {
    for means in BOTH {
        let project = Project::new();
        let gone = project.interrupted(means, || fs::remove_file(project.path("src/Alpha.luau")).expect("removed"));
        assert!(matches!(gone, Err(WriteError::Gone(_))), "{gone:?}");
        assert_eq!(project.names(), Vec::<String>::new());
        let gone = project.replace("src/Alpha.luau", "return 1\n", "ours");
        assert!(matches!(gone, Err(WriteError::Gone(_))), "{gone:?}");
        fs::remove_dir_all(project.path("src")).expect("removed");
        assert!(matches!(project.replace("src/Alpha.luau", "return 1\n", "ours"), Err(WriteError::Gone(_))));
    }
}

#[test]
fn c44_a_read_only_file_is_refused_and_the_next_is_written() {
    let project = Project::new();
    project.write("src/Other.luau", "return 1\n");
    let mut permissions = fs::metadata(project.path("src/Alpha.luau")).expect("it is there").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(project.path("src/Alpha.luau"), permissions).expect("it is ours");
    let refused = project.replace("src/Alpha.luau", "return 1\n", "ours");
    assert!(matches!(refused, Err(WriteError::ReadOnly(_))), "{refused:?}");
    assert_eq!(project.read("src/Alpha.luau"), "return 1\n");
    project.replace("src/Other.luau", "return 1\n", "ours").expect("written");
    assert_eq!(project.read("src/Other.luau"), "ours");
}

#[test]
fn an_editor_that_writes_into_what_was_displaced_has_the_last_word() {
    for means in BOTH {
        let project = Project::new();
        let mut open = fs::File::options().append(true).open(project.path("src/Alpha.luau")).expect("an editor");
        let written = project.interrupted(means, || {}).expect("written");
        assert_eq!(project.read("src/Alpha.luau"), "ours");
        open.write_all(b"return 'late'\n").expect("a save");
        written.displaced.expect("something was").settle();
        assert_eq!(project.read("src/Alpha.luau"), "return 1\nreturn 'late'\n");
        assert_eq!(project.names(), ["Alpha.luau"]);
    }
}

#[test]
fn a_late_text_whose_place_is_taken_is_kept_beside_it() {
    let project = Project::new();
    let mut open = fs::File::options().append(true).open(project.path("src/Alpha.luau")).expect("an editor");
    let written = project.interrupted(Means::best(), || {}).expect("written");
    open.write_all(b"late").expect("a save");
    project.write("src/Alpha.luau", "another editor");
    drop(written);
    assert_eq!(project.read("src/Alpha.luau"), "another editor");
    let kept = project.names().into_iter().find(|name| name.contains(".kept-")).expect("kept");
    assert_eq!(project.read(&format!("src/{kept}")), "return 1\nlate");
}

#[test]
fn a_late_text_is_kept_though_its_place_is_empty_and_goes_with_its_folder() {
    let project = Project::new();
    let late = |leave: &dyn Fn()| {
        let mut open = fs::File::options().append(true).open(project.path("src/Alpha.luau")).expect("an editor");
        let written = project.interrupted(Means::best(), || {}).expect("written");
        open.write_all(b"late").expect("a save");
        leave();
        drop(written);
    };
    late(&|| fs::remove_file(project.path("src/Alpha.luau")).expect("it was there"));
    let [kept] = project.names().try_into().expect("one file");
    assert_eq!(project.read(&format!("src/{kept}")), "return 1\nlate");
    project.write("src/Alpha.luau", "return 1\n");
    late(&|| fs::remove_dir_all(project.path("src")).expect("it was there"));
    assert!(!project.path("src").exists(), "nobody's folder comes back");
}

#[test]
fn what_is_taken_away_again_is_only_what_nobody_has_saved_since() {
    let project = Project::new();
    project.write("src/New/Mine.luau", "ours");
    project.write("src/New/Theirs.luau", "saved since");
    let file = |name: &str| (project.path(&format!("src/New/{name}")), Some(&b"ours"[..]));
    super::make::take_away(&[(project.path("src/New"), None), file("Mine.luau"), file("Theirs.luau")]);
    assert!(!project.path("src/New/Mine.luau").exists());
    assert_eq!(project.read("src/New/Theirs.luau"), "saved since");
}

#[test]
fn c84_nothing_outside_the_sources_is_written() {
    let project = Project::new();
    project.write("other/File.luau", "return 1\n");
    for path in ["other/File.luau", "src/../other/File.luau"] {
        assert!(matches!(project.replace(path, "return 1\n", "ours"), Err(WriteError::Outside(_))), "{path}");
    }
    let no_file = project.replace("src", "return 1\n", "ours");
    assert!(matches!(no_file, Err(WriteError::NotText(_))), "{no_file:?}");
    assert_eq!(project.read("other/File.luau"), "return 1\n");
    let outside = |allowed| {
        let sources = Sources::new(project.path("src"), vec![project.path("other")], allowed);
        replace(&sources, &project.path("other/File.luau"), TextHash::of("return 1\n"), &ScriptText::new("ours"))
    };
    assert!(matches!(outside(false), Err(WriteError::Outside(_))), "a root outside the project's folder");
    outside(true).expect("it was allowed");
}

#[cfg(unix)]
#[test]
fn c84_a_link_that_leads_out_is_not_followed() {
    use std::os::unix::fs::symlink;
    let project = Project::new();
    project.write("other/File.luau", "return 1\n");
    symlink(project.path("other/File.luau"), project.path("src/Link.luau")).expect("a link");
    symlink(project.path("other"), project.path("src/Folder")).expect("a link");
    symlink("Alpha.luau", project.path("src/Inner.luau")).expect("a link");
    for path in ["src/Link.luau", "src/Folder/File.luau"] {
        assert!(matches!(project.replace(path, "return 1\n", "ours"), Err(WriteError::Outside(_))), "{path}");
    }
    let new = create(&project.sources(), &project.path("src/Folder"), "New", ScriptFile::Module, &ScriptText::new(""));
    assert!(matches!(new, Err(WriteError::Outside(_))));
    project.replace("src/Inner.luau", "return 1\n", "ours").expect("its target is a source");
    assert_eq!(project.read("src/Alpha.luau"), "ours", "the link stays a link");
    assert!(fs::symlink_metadata(project.path("src/Inner.luau")).expect("a link").is_symlink());
}

#[test]
fn a_new_file_takes_nobodys_place() {
    let project = Project::new();
    let make = |name: &str, kind| {
        create(&project.sources(), &project.path("src"), name, kind, &ScriptText::new("return 'new'\n"))
    };
    let made = make("Beta", ScriptFile::Server).expect("made");
    assert!(made.ends_with("src/Beta.server.luau"));
    assert_eq!(project.read("src/Beta.server.luau"), "return 'new'\n");
    for name in ["Alpha", "alpha", "ALPHA", "Beta"] {
        assert!(matches!(make(name, ScriptFile::Module), Err(WriteError::Exists(_))), "{name}");
    }
    assert!(matches!(make("../Beta2", ScriptFile::Module), Err(WriteError::Name(_))));
    assert_eq!(project.names(), ["Alpha.luau", "Beta.server.luau"]);
}

/// Names of all sorts, and such as mean something in a file's name.
fn names() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-zA-Z0-9 _é🦊]{1,4}",
        "[.]",
        Just("init".to_owned()),
        Just(".server".to_owned()),
        Just(".client".to_owned()),
        Just(".plugin".to_owned()),
        Just(".model".to_owned()),
        Just(".meta".to_owned()),
        Just(".lua".to_owned()),
        Just(".luau".to_owned()),
        Just(".project".to_owned()),
        Just("default".to_owned())
    ];
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.concat())
}

#[test]
fn a_new_file_is_read_back_as_the_instance_that_it_was_made_for() {
    let project = Project::new();
    project.write("default.project.json", r#"{"name":"Names","tree":{"$path":"src"}}"#);
    let session = ServeSession::start(project.0.path()).expect("it starts");
    let config = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    let kinds =
        [(ScriptFile::Module, "ModuleScript"), (ScriptFile::Server, "Script"), (ScriptFile::Client, "LocalScript")];
    proptest::test_runner::TestRunner::new(config)
        .run(&(names(), prop::sample::select(kinds.to_vec())), |(name, (kind, class))| {
            let text = ScriptText::new("return 1");
            let Ok(path) = create(&project.sources(), &project.path("src"), &name, kind, &text) else { return Ok(()) };
            session.catch_up(None).expect("it lives");
            let ids = session.find(&Target::FsPath(path.to_str().expect("UTF-8")));
            let (_, looks) = session.look(&ids);
            let look = looks.into_iter().flatten().next().expect("it is an instance");
            prop_assert_eq!((look.path, look.class_name), (format!("Names.{name}"), class.to_owned()));
            prop_assert_eq!(remove(&session.sources(), &path, text.hash()).expect("removed").held, "return 1");
            Ok(())
        })
        .expect("every name that is used is read back");
    assert_eq!(project.names(), ["Alpha.luau"], "and nothing is left");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whoever saves last between our steps, and however: no save of theirs is lost, ours is there
    /// only if nobody else saved, and nothing of ours lies around.
    #[test]
    fn no_save_is_lost(saves in prop::collection::vec(0..4_u8, 0..4), aside: bool) {
        let project = Project::new();
        let mut last = Some("return 1\n".to_owned());
        let alpha = project.path("src/Alpha.luau");
        let outcome = project.interrupted(if aside { Means::Aside } else { Means::best() }, || {
            for (number, save) in saves.iter().enumerate() {
                let text = format!("editor {number}");
                match save {
                    0 => fs::write(&alpha, &text).expect("a save"),
                    1 => {
                        fs::write(project.path("new"), &text).expect("a save");
                        fs::rename(project.path("new"), &alpha).expect("a rename");
                    }
                    2 => {
                        _ = fs::remove_file(&alpha); // it may be gone
                        last = None;
                        continue;
                    }
                    _ => fs::write(&alpha, "return 1\n").expect("a save"),
                }
                last = Some(if *save == 3 { "return 1\n".to_owned() } else { text });
            }
        });
        let written = outcome.is_ok();
        drop(outcome);
        let now = fs::read_to_string(&alpha).ok();
        if written {
            prop_assert_eq!(last.as_deref(), Some("return 1\n"));
            prop_assert_eq!(now.as_deref(), Some("ours"));
        } else {
            prop_assert_eq!(&now, &last);
        }
        prop_assert!(project.names().len() <= 1, "{:?}", project.names());
    }
}

#[test]
fn what_was_displaced_and_cannot_be_read_is_kept_under_a_name_that_is_seen() {
    for means in BOTH {
        let project = Project::new();
        let outcome = project.interrupted(means, || {
            fs::remove_file(project.path("src/Alpha.luau")).expect("it was there");
            project.write("src/Alpha.luau/Inner.luau", "return 'inner'");
        });
        assert!(outcome.is_err(), "{means:?}");
        let names = project.names();
        let kept = names.iter().find(|name| name.contains(".kept-")).unwrap_or_else(|| panic!("{means:?}: {names:?}"));
        assert_eq!(project.read(&format!("src/{kept}/Inner.luau")), "return 'inner'");
    }
}
