//! Events that never arrive, and what is said while the tree may lack them.

use std::{thread, time::Duration};

use crossbeam_channel::{bounded, unbounded};

use super::kit::{BASE, Project, find};
use crate::session::{Health, ProblemKind, run::Command, watch::Signal};

/// The queue of the system overflows for real: its reader is kept from reading.
#[cfg(target_os = "linux")]
#[test]
fn an_overflow_of_the_systems_queue_is_answered_by_a_look_at_everything() {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("Linux says it");
    let limit: usize = limit.trim().parse().expect("a number");
    // What the watcher reports is handed on one by one, and only when somebody takes it.
    let project = Project::new(&BASE).serve_with(bounded(0));
    let (begun, has_begun) = bounded(1);
    let (release, until) = bounded::<()>(1);
    project.session().commands.send(Command::Hold { begun, until }).expect("the thread lives");
    has_begun.recv().expect("it is held");
    // By turns, since equal events in a row are one.
    for round in 0..=limit {
        project.write(["src/Alpha.luau", "src/Beta/Gamma.luau"][round % 2], "return 'flood'");
        if round * 2 > limit + 2048 {
            break; // each write is at least two events, and some were taken before its reader was kept
        }
    }
    project.write("src/Unseen/Late.luau", "return 'nobody reported it'");
    project.remove("src/Deep");
    let mut health = project.session().health();
    health.mark_unchanged();
    release.send(()).expect("it is held");
    project.until("what was never reported", |session| !find(session, "ServerStorage.Kit.Unseen.Late").is_empty());
    assert!(health.has_changed().expect("the session lives"), "it said that the tree may be stale");
    project.oracle();
    project.until("the tree is as it should be", |session| *session.health().borrow() == Health::Live);
}

#[test]
fn a_tree_that_may_be_stale_says_so_until_everything_was_looked_at() {
    let signals = unbounded();
    let sender = signals.0.clone();
    let project = Project::new(&BASE).serve_with(signals);
    let session = project.session();
    assert_eq!(session.warning(), None);
    // A second loss so soon after the first is answered a moment later.
    let said = (0..50).find_map(|_| {
        sender.send(Signal::Lost("told by a test".to_owned())).expect("the thread lives");
        thread::sleep(Duration::from_millis(20));
        session.warning()
    });
    let said = said.expect("it says that the tree may be stale");
    assert!(said.contains("may be stale") && said.contains("told by a test"), "{said}");
    project.until("everything was looked at", |session| session.warning().is_none());
    project.oracle();
}

#[test]
fn a_whole_catch_up_ends_the_doubt() {
    let project = Project::base();
    let session = project.session();
    session.board.health.send_replace(Health::Behind { reason: "a test says so".to_owned() });
    assert_eq!(session.problems()[0].kind, ProblemKind::Behind);
    session.catch_up(Some(&["src/Alpha.luau".into()])).expect("the session lives");
    assert!(session.warning().is_some(), "one file is not all");
    session.catch_up(None).expect("the session lives");
    assert_eq!(session.warning(), None);
}
