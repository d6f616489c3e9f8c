//! What is saved while the project is being read.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::kit::{BASE, Project, find};

type Deed = Box<dyn FnOnce() + Send>;

/// What to do once the walk has looked at a path.
static PLANNED: Mutex<Vec<(PathBuf, Deed)>> = Mutex::new(Vec::new());

/// The walk has listed the folder `path`, or read the file.
pub(in crate::session) fn looked_at(path: &Path) {
    let mut planned = PLANNED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(at) = planned.iter().position(|(planned, _)| planned == path) else { return };
    let (_, deed) = planned.swap_remove(at);
    drop(planned);
    deed();
}

pub(super) fn plan(path: PathBuf, deed: impl FnOnce(&Path) + Send + 'static) {
    let at = path.clone();
    PLANNED.lock().unwrap_or_else(PoisonError::into_inner).push((path, Box::new(move || deed(&at))));
}

fn save(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders can be made");
    std::fs::write(path, text).expect("a file can be written");
}

#[test]
fn what_is_saved_while_the_project_is_read_ends_in_the_tree() {
    let project = Project::new(&BASE);
    plan(project.path("src/Beta"), |beta| {
        save(&beta.join("New.luau"), "return 'came after its folder was listed'");
        save(&beta.join("Fresh/Inner.luau"), "return 'and so did its folder'");
    });
    plan(project.path("src/Alpha.luau"), |alpha| {
        save(alpha, "return 'saved after it was read'");
        std::fs::remove_file(alpha.with_file_name("Beta").join("Gamma.luau")).expect("it was read");
    });
    let project = project.serve_unasked();
    project.until("what came", |session| {
        ["New", "Fresh.Inner"].iter().all(|name| !find(session, &format!("ServerStorage.Kit.Beta.{name}")).is_empty())
    });
    project.until("what went", |session| find(session, "ServerStorage.Kit.Beta.Gamma").is_empty());
    project.until("what changed", |_| {
        project.text("ServerStorage.Kit.Alpha").is_some_and(|text| text.contains("saved after"))
    });
    project.oracle();
}

/// More files than one thread reads.
#[test]
fn a_large_folder_is_read_whole() {
    let project = Project::new(&BASE);
    let name = |number: usize| format!("src/Many/{}/M{number}.luau", number % 7);
    for number in 0..500 {
        project.write(&name(number), format!("return {number}"));
    }
    project.write("src/Many/3/M3.meta.json", r#"{"properties":{"Disabled":true}}"#);
    plan(project.path("src/Many/6"), |folder| {
        std::fs::remove_file(folder.join("M6.luau")).expect("it was listed and not read");
    });
    let project = project.serve_unasked();
    let text = |number: usize| project.text(&format!("ServerStorage.Kit.Many.{}.M{number}", number % 7));
    for number in (0..500).filter(|number| *number != 6) {
        assert_eq!(text(number), Some(format!("return {number}")));
    }
    project.until("what went", |session| find(session, "ServerStorage.Kit.Many.6.M6").is_empty());
    project.oracle();
}
