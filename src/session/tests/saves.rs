//! Saves that are not one write, and what somebody asks in the middle of them.

use std::{fs, path::Path, thread, time::Duration};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::{
    during::plan,
    kit::{BASE, Project, find},
    live::{ALPHA, each_message, pause},
};
use crate::{clock, core::ids::NodeId, session::run::Command};

/// An editor takes no longer between the two steps of a save.
const BRIEF: Duration = Duration::from_millis(250);

/// Keeps the session from doing anything until it is dropped.
struct Hold {
    _release: Sender<()>,
}

/// Hold the session where it has done what it was asked for before; it says when it is there.
fn hold_then(project: &Project) -> (Hold, Receiver<()>) {
    let ((release, until), (begun, has_begun)) = (bounded::<()>(1), bounded(1));
    project.session().commands.send(Command::Hold { begun, until }).expect("the thread lives");
    (Hold { _release: release }, has_begun)
}

fn hold(project: &Project) -> Hold {
    let (held, has_begun) = hold_then(project);
    has_begun.recv().expect("it is held");
    held
}

/// Ask for a look at the whole project, or at one file.
fn ask(project: &Project, file: Option<&str>) -> Receiver<u32> {
    let (reply, answer) = bounded(1);
    let paths = file.map(|file| vec![project.path(file)]);
    project.session().commands.send(Command::CatchUp { paths, reply }).expect("the thread lives");
    answer
}

fn nothing_came_or_went(project: &Project) {
    each_message(project.session(), |message| {
        assert!(message.removed.is_empty() && message.added.is_empty(), "{message:?}");
    });
}

#[test]
fn c39_a_save_by_unlink_and_create_is_an_edit() {
    let project = Project::base();
    let alpha = project.id(ALPHA);
    for round in 0..8 {
        let text = format!("return 'round {round}'");
        let begun = clock::now();
        project.remove("src/Alpha.luau");
        pause(80);
        project.write("src/Alpha.luau", &text);
        let took = clock::now() - begun;
        project.until("the save", |_| project.text(ALPHA).as_ref() == Some(&text));
        if took > BRIEF {
            return; // on a machine as busy as that this is no save
        }
        assert_eq!(project.id(ALPHA), alpha);
    }
    nothing_came_or_went(&project);
    project.oracle();
}

/// An agent may ask at any moment, and its answer must not make a deletion of somebody's save.
#[test]
fn c39_whoever_asks_in_the_middle_of_a_save_waits_for_its_end() {
    // The script, its file, when it is saved: once the walk has seen that it is gone, or once it is
    // waited for; and what is asked for.
    let cases = [
        (ALPHA, "src/Alpha.luau", "src", None),
        (ALPHA, "src/Alpha.luau", "src/Alpha.luau", None),
        (ALPHA, "src/Alpha.luau", "src/Alpha.luau", Some("src/Alpha.luau")),
        ("ServerStorage.Kit.Beta", "src/Beta/init.luau", "src/Beta", None),
        ("ServerStorage.Kit.Beta", "src/Beta/init.luau", "src/Beta", Some("src/Beta")),
    ];
    for (script, file, seen_at, asked) in cases {
        let project = Project::base();
        let before: Vec<NodeId> = [script, "ServerStorage.Kit.Beta.Gamma"].map(|path| project.id(path)).to_vec();
        let held = hold(&project);
        project.remove(file);
        let saved = project.path(file);
        plan(project.path(seen_at), move |_: &Path| fs::write(saved, "return 'saved'").expect("it is saved"));
        let answer = ask(&project, asked);
        drop(held);
        answer.recv().expect("an answer");
        assert_eq!(project.text(script).as_deref(), Some("return 'saved'"), "{file}: the answer has the save in it");
        let after: Vec<NodeId> = [script, "ServerStorage.Kit.Beta.Gamma"].map(|path| project.id(path)).to_vec();
        assert_eq!(after, before, "{file}: the same instances");
        nothing_came_or_went(&project);
        project.oracle();
    }
}

/// With two-way sync, what is typed in Studio is written at any moment.
#[test]
fn c39_a_write_of_our_own_ends_nobody_elses_save() {
    let signals = unbounded();
    let (_, said) = signals.clone();
    let project = Project::new(&BASE).serve_with(signals);
    let alpha = project.id(ALPHA);
    let held = hold(&project);
    project.remove("src/Alpha.luau");
    project.write("src/Beta/Gamma.luau", "return 'ours'");
    while said.len() < 2 {
        thread::yield_now(); // until the watcher has told of both
    }
    let (reply, answer) = bounded(1);
    let written = vec![project.path("src/Beta/Gamma.luau")];
    project.session().commands.send(Command::TakeIn { written, reply }).expect("the thread lives");
    let (again, is_held) = hold_then(&project);
    drop(held);
    is_held.recv().expect("it is held again");
    assert_eq!(answer.recv().ok(), Some(1));
    assert_eq!(project.text("ServerStorage.Kit.Beta.Gamma").as_deref(), Some("return 'ours'"));
    assert_eq!(project.id(ALPHA), alpha, "its save has not ended");
    project.write("src/Alpha.luau", "return 'theirs'");
    drop(again);
    project.until("their save", |_| project.text(ALPHA).as_deref() == Some("return 'theirs'"));
    project.oracle();
}

#[test]
fn a_rename_by_creation_and_deletion_is_one_for_whoever_asks() {
    let project = Project::base();
    let alpha = project.id(ALPHA);
    let held = hold(&project);
    project.write("src/Omega.luau", "return 1");
    project.remove("src/Alpha.luau");
    let answer = ask(&project, None);
    drop(held);
    answer.recv().expect("an answer");
    assert_eq!(project.id("ServerStorage.Kit.Omega"), alpha);
    assert!(find(project.session(), ALPHA).is_empty());
    project.oracle();
}

#[test]
fn a_save_by_backup_and_create_is_an_edit() {
    let project = Project::base();
    let alpha = project.id(ALPHA);
    project.rename("src/Alpha.luau", "src/Alpha.luau~");
    project.write("src/Alpha.luau", "return 'saved'");
    project.remove("src/Alpha.luau~");
    project.until("the save", |_| project.text(ALPHA).as_deref() == Some("return 'saved'"));
    assert_eq!(project.id(ALPHA), alpha);
    project.oracle();
}

#[test]
fn catch_up_is_exact_at_once() {
    let project = Project::base();
    let session = project.session();
    for round in 0..20 {
        let text = format!("return {round}");
        project.write("src/Alpha.luau", &text);
        let cursor = session.catch_up(Some(&["src/Alpha.luau".into()])).expect("the session lives");
        assert_eq!(project.text(ALPHA), Some(text));
        assert_eq!(cursor, *session.cursor().borrow());
    }
    project.write("src/Fresh/init.luau", "return 'fresh'");
    project.remove("src/Deep");
    session.catch_up(None).expect("the session lives");
    assert!(project.text("ServerStorage.Kit.Fresh").is_some());
    assert!(find(session, "ServerStorage.Kit.Deep").is_empty(), "it does not come back");
    let cursor = session.catch_up(None).expect("the session lives");
    assert_eq!(session.catch_up(None).expect("the session lives"), cursor, "nothing more has changed");
    project.oracle();
}
