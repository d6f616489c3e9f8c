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
    /// The caller has the answer.
    Answered,
}

impl At {
    const ALL: [Self; 4] = [Self::Compare, Self::PlanLost, Self::Planned, Self::Answered];

    fn wanted(self) -> Option<Wanted> {
        let (frame, fate) = match self {
            Self::Compare => ("\"type\":\"sync\"", Fate::Delivered),
            Self::PlanLost => ("\"type\":\"plan\"", Fate::Lost),
            Self::Planned => ("\"type\":\"plan\"", Fate::Delivered),
            Self::Answered => return None,
        };
        Some(Wanted { frame, fate })
    }
}

async fn undo_and_kill(place: &Place, at: At, server: Killed, journal: &Value) {
    if let Some(wanted) = at.wanted() {
        place.tap.arm(wanted);
    }
    let undoing = tokio::spawn(call(place.port, "undo", json!({ "change": journal })));
    if at.wanted().is_some() {
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
    assert_eq!((disk.get("Gone"), disk.get("Gone").is_some()), (studio.get("Gone"), true), "{at:?}");
}

async fn killed_at(at: At) {
    let (mut place, server) = Place::open().await;
    place.edit().await;
    let overrides = json!([{ "id": place.forced().await, "direction": "push" }]);
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
    assert_eq!(problems.contains("undo 2 of"), is_open, "{at:?}: {problems}");
    if at != At::Answered {
        let again = call(place.port, "undo", json!({ "change": journal })).await.expect("the server lives");
        say(&format!("killed at {at:?}, then {}", brief(Some(&again))));
        assert_eq!(again["status"], "success", "{at:?}: {again}");
    }
    is_taken_back(&place, at).await;
    until("nothing is said of it any more", || async { !place.problems().await.contains("was cut off") }).await;
    let first = place.sync(json!({})).await;
    say(&format!("after an undo that was killed at {at:?}: {}", brief(Some(&first))));
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
