//! The server binary is killed in the middle of an undo, at each step of it. Nothing is lost, `status`
//! names it, and called again it goes on.

use std::time::Duration;

use rojo_mcp::store::EntryState;
use serde_json::{Value, json};

use crate::{
    kill::{Killed, call, is_live, serve_through},
    kill_sync::{PULLS, Place, brief},
    say,
    support::{BOUND, until},
    tap::{Fate, Wanted},
};

/// When the server is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The plugin is asked to compare.
    Compare,
    /// The journal has its entry, and the plan is lost.
    PlanLost,
    /// The plan is carried out, and its result is lost.
    Planned,
    /// The first of the files is back.
    Written,
    /// The caller has the answer.
    Answered,
}

impl At {
    const ALL: [Self; 5] = [Self::Compare, Self::PlanLost, Self::Planned, Self::Written, Self::Answered];

    fn wanted(self) -> Option<Wanted> {
        let (frame, fate) = match self {
            Self::Compare => ("\"type\":\"sync\"", Fate::Delivered),
            Self::PlanLost => ("\"type\":\"plan\"", Fate::Lost),
            Self::Planned => ("\"type\":\"plan\"", Fate::Delivered),
            Self::Written | Self::Answered => return None,
        };
        Some(Wanted { frame, fate })
    }
}

async fn undo_and_kill(place: &Place, at: At, server: Killed, journal: &Value) {
    if let Some(wanted) = at.wanted() {
        place.tap.arm(wanted);
    }
    let undoing = tokio::spawn(call(place.port, "undo", json!({ "change": journal })));
    if at == At::Written {
        let is_back = || place.on_disk().iter().any(|(name, text)| is_pulled(name) && text.contains("base of"));
        let wait = async {
            while !is_back() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(BOUND, wait).await.expect("files are written");
    } else if at.wanted().is_some() {
        tokio::time::timeout(BOUND, place.tap.struck()).await.unwrap_or_else(|_| panic!("{at:?} does not come"));
    } else {
        let answer = undoing.await.expect("no panic").expect("an answer");
        assert_eq!(answer["status"], "success", "{answer}");
        drop(server);
        return;
    }
    if at == At::Planned {
        until("the plan is carried out", || async { place.in_studio().await["Push"].contains("base") }).await;
    }
    drop(server);
    place.tap.release();
    undoing.await.expect("no panic");
}

fn is_pulled(name: &str) -> bool {
    PULLS.contains(&name)
}

/// Both sides are as before the sync, but what was deleted is on both.
async fn is_taken_back(place: &Place, at: At) {
    let (disk, studio) = (place.on_disk(), place.in_studio().await);
    for name in PULLS {
        assert!(disk[name].contains("base of") && studio[name].contains("typed"), "{at:?}: {name}");
    }
    assert!(disk["Push"].contains("pushed") && studio["Push"].contains("base of"), "{at:?}");
    assert!(disk["Forced"].contains("forced") && studio["Forced"].contains("overridden"), "{at:?}");
    assert!(disk["Merge"].contains("b = 2\n") && studio["Merge"].contains("a = 1\n"), "{at:?}");
    assert!(disk.contains_key("New") && !studio.contains_key("New"), "{at:?}");
    assert!(disk.contains_key("Renamed") && !studio.contains_key("Renamed") && studio.contains_key("Old"), "{at:?}");
    assert!(disk.contains_key("Gone") && disk.get("Gone") == studio.get("Gone"), "{at:?}");
    assert!(!place.project.path().join("src/shared/Kit").exists(), "{at:?}: it was made in Studio");
}

async fn killed_at(at: At) {
    let (mut place, server) = Place::open().await;
    place.edit().await;
    place.make_folder("Kit").await;
    let overrides = json!([
        { "id": place.forced().await, "direction": "push" },
        { "id": place.id_of("Kit").await, "direction": "pull" },
    ]);
    let receipt = place.sync(json!({ "overrides": overrides })).await;
    assert_eq!(receipt["status"], "success", "{receipt}");
    let journal = receipt["journal"].clone();
    undo_and_kill(&place, at, server, &journal).await;
    {
        let store = place.store();
        assert_eq!(place.lost(&store).await, [], "{at:?}: right after the kill");
    }
    let server = serve_through(place.project.path(), place.port, place.tap.port);
    until("the plugin is back without a hand", || is_live(place.port)).await;
    let problems = place.problems().await;
    let is_open = matches!(at, At::PlanLost | At::Planned);
    // Between two files it may come to its end all the same.
    assert!(at == At::Written || problems.contains("undo 2 of") == is_open, "{at:?}: {problems}");
    if at != At::Answered {
        let again = call(place.port, "undo", json!({ "change": journal })).await.expect("the server lives");
        say(&format!("killed at {at:?}, then {}", brief(Some(&again))));
        let already = at == At::Written && again.to_string().contains("taken back already");
        assert!(again["status"] == "success" || already, "{at:?}: {again}");
    }
    is_taken_back(&place, at).await;
    until("nothing is said of it any more", || async { !place.problems().await.contains("was cut off") }).await;
    let first = place.sync(json!({})).await;
    say(&format!("after an undo that was killed at {at:?}: {}", brief(Some(&first))));
    assert_eq!((&first["removed"], &first["renamed"]), (&json!(0), &json!(1)), "{at:?}: as the first sync: {first}");
    if !matches!(at, At::Written | At::Answered) {
        let counts = ["pushed", "pulled", "merged"].map(|count| &first[count]);
        assert_eq!(counts, [&json!(2), &json!(6), &json!(1)], "{at:?}: {first}");
    }
    let second = place.sync(json!({})).await;
    for count in ["pushed", "pulled", "merged", "removed", "renamed", "failed"] {
        assert_eq!(second[count], 0, "{at:?}: it is settled: {second}");
    }
    drop(server);
    let store = place.store();
    assert_eq!(place.lost(&store).await, [], "{at:?}: in the end");
    let entries = store.entries(100).expect("the journal is read");
    let settled = |state: EntryState| matches!(state, EntryState::Done | EntryState::Undone);
    assert!(entries.iter().all(|entry| settled(entry.state)), "{at:?}: {entries:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_at_any_step_of_an_undo_loses_no_text_and_goes_on_when_called_again() {
    for at in At::ALL {
        tokio::time::timeout(Duration::from_secs(180), killed_at(at)).await.unwrap_or_else(|_| panic!("{at:?} hangs"));
    }
}
