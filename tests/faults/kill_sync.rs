//! The server binary is killed in the middle of a sync, at each step of it. Whatever a side had saved
//! is afterwards on the disk, in Studio or in the journal, and the next sync goes on.

use std::{collections::BTreeMap, time::Duration};

use rojo_mcp::{
    core::text::TextHash, headless::HeadlessStudio, session::ServeSession, state::StateFolder, store::EntryState,
    store::Store,
};
use serde_json::{Value, json};

use crate::{
    kill::{Killed, call, free_port, is_live, serve_through},
    say,
    support::{BOUND, delete, demo, headless, save, state_root, until},
    tap::{Fate, Tap, Wanted},
};

/// When the server is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The plugin is asked to compare.
    Compare,
    /// It is asked for texts.
    Fetch,
    /// The journal has its entry, and the plan is lost.
    PlanLost,
    /// The plan is carried out, and its result is lost.
    Planned,
    /// The first of the files was written.
    Written,
    /// The caller has the answer.
    Answered,
}

impl At {
    const ALL: [Self; 6] = [Self::Compare, Self::Fetch, Self::PlanLost, Self::Planned, Self::Written, Self::Answered];

    fn wanted(self) -> Option<Wanted> {
        let (frame, fate) = match self {
            Self::Compare => ("\"type\":\"sync\"", Fate::Delivered),
            Self::Fetch => ("\"type\":\"getScript\"", Fate::Delivered),
            Self::PlanLost => ("\"type\":\"plan\"", Fate::Lost),
            Self::Planned => ("\"type\":\"plan\"", Fate::Delivered),
            Self::Written | Self::Answered => return None,
        };
        Some(Wanted { frame, fate })
    }

    /// Something may have changed and its end was not noted.
    fn leaves_an_entry(self) -> bool {
        matches!(self, Self::PlanLost | Self::Planned)
    }
}

const FOLDER: &str = "src/shared";
pub const PULLS: [&str; 6] = ["Pull0", "Pull1", "Pull2", "Pull3", "Pull4", "Pull5"];
const LINES: &str = "local a = 1\n-- 1\n-- 2\nlocal b = 2\nreturn a + b\n";

/// Every text that somebody saved, with where.
pub type Saved = Vec<(String, String)>;

pub struct Place {
    pub project: tempfile::TempDir,
    studio: HeadlessStudio,
    pub tap: Tap,
    pub port: u16,
    saved: Saved,
}

impl Place {
    pub async fn open() -> (Self, Killed) {
        let project = demo();
        let mut saved = Saved::new();
        let mut write = |name: &str, text: &str| {
            save(project.path(), &format!("{FOLDER}/{name}.luau"), text);
            saved.push((name.to_owned(), text.to_owned()));
        };
        PULLS.iter().for_each(|name| write(name, &format!("return 'base of {name}'\n")));
        for name in ["Push", "Forced", "Gone", "Old"] {
            write(name, &format!("return 'base of {name}'\n"));
        }
        write("Merge", LINES);
        let port = free_port();
        let folder = project.path().to_path_buf();
        let session = tokio::task::spawn_blocking(move || ServeSession::start(&folder)).await.expect("no panic");
        let tap = Tap::start(port).await;
        let studio = headless(tap.port, session.expect("the project loads").place_model());
        let server = serve_through(project.path(), port, tap.port);
        until("it is live", || is_live(port)).await;
        let place = Self { project, studio, tap, port, saved };
        assert_eq!(place.sync(json!({})).await["status"], "empty");
        (place, server)
    }

    pub async fn sync(&self, args: Value) -> Value {
        call(self.port, "sync", args).await.expect("the server lives")
    }

    pub async fn problems(&self) -> String {
        call(self.port, "status", json!({})).await.expect("the server lives")["problems"].to_string()
    }

    fn edit_file(&mut self, name: &str, text: &str) {
        save(self.project.path(), &format!("{FOLDER}/{name}.luau"), text);
        self.saved.push((name.to_owned(), text.to_owned()));
    }

    async fn edit_studio(&mut self, name: &str, text: &str) {
        self.studio.run(&format!("game.ReplicatedStorage.Shared.{name}.Source = {text:?}")).await.expect("typed");
        self.saved.push((name.to_owned(), text.to_owned()));
    }

    /// One change of each kind.
    pub async fn edit(&mut self) {
        for name in PULLS {
            self.edit_studio(name, &format!("return 'typed in {name}'\n")).await;
        }
        self.edit_file("Push", "return 'pushed'\n");
        self.edit_file("Forced", "return 'forced by the file'\n");
        self.edit_studio("Forced", "return 'overridden in Studio'\n").await;
        self.edit_file("Merge", &LINES.replace("a = 1", "a = 10"));
        self.edit_studio("Merge", &LINES.replace("b = 2", "b = 20")).await;
        self.edit_file("New", "return 'new'\n");
        self.edit_file("Renamed", "return 'base of Old'\n");
        for name in ["Gone", "Old"] {
            delete(self.project.path(), &format!("{FOLDER}/{name}.luau"));
        }
    }

    /// The id of what only an override settles.
    pub async fn forced(&self) -> Value {
        self.id_of("Forced").await
    }

    /// The id of something that differs.
    pub async fn id_of(&self, name: &str) -> Value {
        let planned = self.sync(json!({ "mode": "dryrun" })).await;
        let mut changes = planned["changes"].as_array().expect("a list").iter();
        let path = format!("ReplicatedStorage.Shared.{name}");
        let found = changes.find(|change| change["path"] == path).expect("it differs");
        found.get("id").or_else(|| found.get("tempId")).expect("an id").clone()
    }

    /// A folder with scripts, made in Studio.
    pub async fn make_folder(&self, name: &str) {
        let make = format!(
            "local it = Instance.new('Folder') it.Name = '{name}'
            for _, name in {{ 'One', 'Two' }} do
                local script = Instance.new('ModuleScript')
                script.Name = name script.Source = 'return 1\\n' script.Parent = it
            end
            it.Parent = game.ReplicatedStorage.Shared"
        );
        self.studio.run(&make).await.expect("made");
    }

    pub fn on_disk(&self) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        for entry in std::fs::read_dir(self.project.path().join(FOLDER)).expect("the folder").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(".luau") {
                texts.insert(name.to_owned(), std::fs::read_to_string(entry.path()).expect("a text"));
            }
        }
        texts
    }

    pub async fn in_studio(&self) -> BTreeMap<String, String> {
        let code = "local all = {}
            for _, child in game.ReplicatedStorage.Shared:GetChildren() do
                if child:IsA('LuaSourceContainer') then all[child.Name] = child.Source end
            end
            return all";
        let values = self.studio.run(code).await.expect("it runs");
        let all = values.into_iter().next().expect("a value");
        serde_json::from_value(all).expect("texts by name")
    }

    /// Sync, and kill the server at this step. Its answer, if one came.
    async fn sync_and_kill(&self, at: At, server: Killed, forced: &Value) -> Option<Value> {
        if let Some(wanted) = at.wanted() {
            self.tap.arm(wanted);
        }
        let overrides = json!([{ "id": forced, "direction": "push" }]);
        let syncing = tokio::spawn(call(self.port, "sync", json!({ "overrides": overrides })));
        if at.wanted().is_some() {
            tokio::time::timeout(BOUND, self.tap.struck()).await.unwrap_or_else(|_| panic!("{at:?} does not come"));
        }
        if at == At::Planned {
            until("the plan is carried out", || async { self.in_studio().await["Push"].contains("pushed") }).await;
        }
        if at == At::Written {
            let first = self.project.path().join(FOLDER);
            let is_base = |name: &&str| {
                let text = std::fs::read_to_string(first.join(format!("{name}.luau")));
                text.is_ok_and(|text| text.contains("base of"))
            };
            let wait = async {
                while PULLS.iter().all(&is_base) {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(BOUND, wait).await.expect("files are written");
        }
        if at == At::Answered {
            let answer = syncing.await.expect("no panic");
            drop(server);
            return answer;
        }
        drop(server);
        self.tap.release();
        syncing.await.expect("no panic")
    }

    /// What is nowhere any more.
    pub async fn lost(&self, store: &Store) -> Saved {
        let (disk, studio) = (self.on_disk(), self.in_studio().await);
        let is_there = |text: &String| {
            disk.values().chain(studio.values()).any(|there| there == text)
                || store.text(TextHash::of(text)).expect("the store is read").is_some()
        };
        self.saved.iter().filter(|(_, text)| !is_there(text)).cloned().collect()
    }

    /// The store of a server that is dead.
    pub fn store(&self) -> Store {
        let folder = StateFolder::below(&state_root(self.project.path()), self.project.path());
        let store = Store::open(&folder.expect("its folder"));
        assert_eq!(store.problem(), None);
        store
    }
}

async fn killed_at(at: At) {
    let (mut place, server) = Place::open().await;
    place.edit().await;
    let forced = place.forced().await;
    let answer = place.sync_and_kill(at, server, &forced).await;
    {
        let store = place.store();
        assert_eq!(place.lost(&store).await, [], "{at:?}: right after the kill");
    }
    let server = serve_through(place.project.path(), place.port, place.tap.port);
    until("the plugin is back without a hand", || is_live(place.port)).await;
    let problems = place.problems().await;
    if at.leaves_an_entry() {
        assert!(problems.contains("was cut off"), "{at:?}: {problems}");
    } else if at != At::Written {
        assert!(!problems.contains("was cut off"), "{at:?}: {problems}");
    }
    let second = place.sync(json!({})).await;
    say(&format!("killed at {at:?}: {}, then {}", brief(answer.as_ref()), brief(Some(&second))));
    if at.leaves_an_entry() {
        // What the run had decided is gone on with; only what the caller had to force is not.
        let left = if at == At::PlanLost { 1 } else { 0 };
        assert_eq!(second["unresolved"], left, "{at:?}: {second}");
    }
    until("nothing is said of it any more", || async { !place.problems().await.contains("was cut off") }).await;
    let third = place.sync(json!({})).await;
    for count in ["pushed", "pulled", "merged", "removed", "renamed", "failed"] {
        assert_eq!(third[count], 0, "{at:?}: it is settled: {third}");
    }
    let open: Vec<&Value> = third["changes"].as_array().expect("a list").iter().map(|change| &change["path"]).collect();
    let (disk, studio) = (place.on_disk(), place.in_studio().await);
    for (name, text) in &disk {
        let path = json!(format!("ReplicatedStorage.Shared.{name}"));
        assert!(studio.get(name) == Some(text) || open.contains(&&path), "{at:?}: {name}: {third}");
    }
    drop(server);
    let store = place.store();
    assert_eq!(place.lost(&store).await, [], "{at:?}: in the end");
    let entries = store.entries(100).expect("the journal is read");
    assert!(entries.iter().all(|entry| entry.state == EntryState::Done), "{at:?}: {entries:?}");
}

pub fn brief(receipt: Option<&Value>) -> String {
    let Some(receipt) = receipt else { return "no answer".into() };
    let counts = ["pushed", "pulled", "merged", "removed", "renamed", "unresolved"];
    let counts = counts.map(|count| format!("{count} {}", receipt[count])).join(", ");
    format!("{} ({counts})", receipt["status"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_at_any_step_of_a_sync_loses_no_text_and_the_next_one_goes_on() {
    for at in At::ALL {
        tokio::time::timeout(Duration::from_secs(180), killed_at(at)).await.unwrap_or_else(|_| panic!("{at:?} hangs"));
    }
}
