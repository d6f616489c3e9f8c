//! The tree follows the files.

use std::{fs, io::Write, thread, time::Duration};

use super::kit::{BASE, Project, find, messages_add_up};

#[test]
fn an_edit_is_seen_and_keeps_the_instance() {
    let project = Project::base();
    let alpha = project.id("game.ServerStorage.Kit.Alpha");
    project.write("src/Alpha.luau", "return 2");
    project.until("the edit", |_| project.text("ServerStorage.Kit.Alpha").as_deref() == Some("return 2"));
    assert_eq!(project.id("ServerStorage/Kit/Alpha"), alpha);
    project.oracle();
    messages_add_up(project.session());
}

#[test]
fn an_addition_is_seen() {
    let project = Project::base();
    project.write("src/New/Inner/init.luau", "return 'inner'");
    project.until("the addition", |session| !find(session, "ServerStorage.Kit.New.Inner").is_empty());
    project.oracle();
}
