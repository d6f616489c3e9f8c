//! Syncs and undos in any order, by the whole way: an undo takes back what the last sync did and nothing
//! else, all of it or nothing; the next one takes back the one before; and every text that somebody
//! saved stays on disk, in Studio or in the journal.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use rojo_mcp::{core::text::TextHash, headless::HeadlessStudio, store::Store};
use serde_json::{Value, json};

use crate::support::{Agent, TestServer, delete, demo, save};

const FOLDER: &str = "src/shared/Lot";
const IN_STUDIO: &str = "game.ReplicatedStorage.Shared.Lot";
/// How many scripts there are at first.
const SCRIPTS: usize = 12;

/// A small generator: the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

/// The texts of one side, by name. A folder or model has none.
type Side = BTreeMap<String, Option<String>>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    disk: Side,
    studio: Side,
}

/// What somebody does before a sync.
#[derive(Debug, Clone, Copy)]
enum Change {
    SaveFile,
    EditInStudio,
    NewFile,
    DeleteFile,
    RenameFile,
    MakeInStudio,
    DeleteInStudio,
}

const CHANGES: [Change; 7] = [
    Change::SaveFile,
    Change::EditInStudio,
    Change::NewFile,
    Change::DeleteFile,
    Change::RenameFile,
    Change::MakeInStudio,
    Change::DeleteInStudio,
];

struct World<'a> {
    project: &'a Path,
    agent: Agent,
    studio: &'a HeadlessStudio,
    store: Store,
    dice: Dice,
    /// Names that no change was about yet but edits.
    fresh: Vec<String>,
    made: usize,
    /// Every text that somebody saved.
    saved: BTreeSet<String>,
}

/// One sync, with what stood before and after it, and the names of what was deleted.
struct Done {
    journal: Value,
    before: State,
    after: State,
    deleted: Vec<String>,
}

impl World<'_> {
    async fn state(&self) -> State {
        let mut disk = Side::new();
        for entry in std::fs::read_dir(self.project.join(FOLDER)).expect("a folder").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(entry.path()).ok();
            disk.insert(name.trim_end_matches(".luau").to_owned(), text);
        }
        let list = format!(
            "local all = {{}} for _, one in {IN_STUDIO}:GetChildren() do \
             all[one.Name] = if one:IsA('ModuleScript') then one.Source else '' end \
             return game:GetService('HttpService'):JSONEncode(all)"
        );
        let listed = self.agent.eval(&list).await;
        let studio: BTreeMap<String, String> = serde_json::from_str(listed.as_str().expect("JSON")).unwrap_or_default();
        State { disk, studio: studio.into_iter().map(|(name, text)| (name, Some(text))).collect() }
    }

    fn new_text(&mut self) -> String {
        self.made += 1;
        let text = format!("return 'text {}'\n", self.made);
        self.saved.insert(text.clone());
        text
    }

    fn new_name(&mut self) -> String {
        self.made += 1;
        format!("New{}", self.made)
    }

    async fn run(&self, code: &str) {
        self.studio.run(code).await.expect("it runs");
    }

    /// Do one change. Gives the name that an override has to be about, and its direction.
    async fn change(&mut self, change: Change, deleted: &mut Vec<String>) -> Option<(String, &'static str)> {
        let uses_text = !matches!(change, Change::DeleteFile | Change::RenameFile | Change::DeleteInStudio);
        let text = if uses_text { self.new_text() } else { String::new() };
        let at = self.dice.below(self.fresh.len());
        let name = self.fresh.remove(at);
        let file = |name: &str| format!("{FOLDER}/{name}.luau");
        match change {
            Change::SaveFile => _ = save(self.project, &file(&name), &text),
            Change::EditInStudio => self.run(&format!("{IN_STUDIO}.{name}.Source = {text:?}")).await,
            Change::NewFile => _ = save(self.project, &file(&self.new_name()), &text),
            Change::DeleteFile => {
                delete(self.project, &file(&name));
                deleted.push(name);
            }
            Change::RenameFile => {
                let to = self.new_name();
                rename(&self.project.join(file(&name)), &self.project.join(file(&to)));
            }
            Change::MakeInStudio => {
                let name = self.new_name();
                let make = format!(
                    "local it = Instance.new('ModuleScript') it.Name = '{name}' it.Source = {text:?} \
                     it.Parent = {IN_STUDIO}"
                );
                self.run(&make).await;
                return Some((name, "pull"));
            }
            Change::DeleteInStudio => {
                self.run(&format!("{IN_STUDIO}.{name}:Destroy()")).await;
                deleted.push(name.clone());
                return Some((name, "pull"));
            }
        }
        None
    }

    /// Some changes, and a sync that does them all.
    async fn sync(&mut self) -> Done {
        let (mut overrides, mut deleted) = (Vec::new(), Vec::new());
        for _ in 0..=self.dice.below(3) {
            let change = CHANGES[self.dice.below(CHANGES.len())];
            if self.fresh.len() > 3 {
                overrides.extend(self.change(change, &mut deleted).await);
            }
        }
        let text = self.new_text();
        save(self.project, &format!("{FOLDER}/Edited.luau"), &text);
        let before = self.state().await;
        let found = self.agent.ask("sync", json!({ "mode": "dryrun" })).await;
        let wishes: Vec<Value> = overrides
            .iter()
            .map(|(name, direction)| {
                let lines = found["changes"].as_array().expect("a list");
                let path = format!("ReplicatedStorage.Shared.Lot.{name}");
                let line = lines.iter().find(|line| line["path"] == path).unwrap_or_else(|| panic!("{name}: {found}"));
                let id = line.get("id").or_else(|| line.get("tempId")).expect("an id");
                json!({ "id": id, "direction": direction })
            })
            .collect();
        let receipt = self.agent.ask("sync", json!({ "overrides": wishes, "allowRemovals": true })).await;
        assert_eq!(receipt["status"], "success", "{receipt}");
        let after = self.state().await;
        assert_eq!(after.disk, after.studio, "both are the same: {receipt}");
        Done { journal: receipt["journal"].clone(), before, after, deleted }
    }

    /// What an undo of `done` brings: each side as before it, where the sync changed it. What was
    /// deleted comes back on both.
    fn taken_back(done: &Done, now: &State) -> State {
        let back = |before: &Side, after: &Side, now: &Side, deleted: &Side| {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            let mut side = now.clone();
            for name in names.into_iter().filter(|name| before.get(*name) != after.get(*name)) {
                match before.get(name) {
                    Some(text) => _ = side.insert(name.clone(), text.clone()),
                    None => _ = side.remove(name),
                }
            }
            side.extend(deleted.clone());
            side
        };
        let had = |name: &String| done.before.disk.get(name).or_else(|| done.before.studio.get(name)).cloned();
        let deleted: Side = done.deleted.iter().filter_map(|name| Some((name.clone(), had(name)?))).collect();
        State {
            disk: back(&done.before.disk, &done.after.disk, &now.disk, &deleted),
            studio: back(&done.before.studio, &done.after.studio, &now.studio, &deleted),
        }
    }

    async fn undo(&mut self, done: &Done) {
        let now = self.state().await;
        let expected = Self::taken_back(done, &now);
        if self.dice.below(3) == 0 {
            // Somebody has typed something newer: all of it stays.
            let typed = "return 'typed, and typed away again'";
            let edited = format!("{IN_STUDIO}.Edited");
            let as_it_was = now.studio["Edited"].clone().expect("a text");
            self.run(&format!("{edited}.Source = {typed:?}")).await;
            let tampered = self.state().await;
            let held = self.agent.ask("undo", json!({})).await;
            assert_eq!(held["status"], "fastfail_unresolved", "{held}");
            assert_eq!(self.state().await, tampered, "all or nothing: {held}");
            self.run(&format!("{edited}.Source = {as_it_was:?}")).await;
        }
        let undone = self.agent.ask("undo", json!({})).await;
        assert_eq!(undone["status"], "success", "{undone}");
        let message = undone["message"].as_str().expect("it says what");
        assert!(message.contains(&format!("undid sync {}", done.journal)), "in order: {message}");
        assert_eq!(self.state().await, expected, "{undone}");
    }

    /// Every text is somewhere.
    async fn nothing_is_lost(&self) {
        let State { disk, studio } = self.state().await;
        for text in &self.saved {
            let there = || disk.values().chain(studio.values()).any(|side| side.as_ref() == Some(text));
            let kept = || self.store.text(TextHash::of(text)).expect("the store is read").is_some();
            assert!(there() || kept(), "{text:?} is lost");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a person is not the server")]
fn rename(from: &Path, to: &Path) {
    std::fs::rename(from, to).expect("renamed");
}

async fn schedule(seed: u64) {
    let project = demo();
    let mut fresh = Vec::new();
    let mut saved = BTreeSet::new();
    for name in (0..SCRIPTS).map(|at| format!("S{at}")).chain(["Edited".to_owned()]) {
        let text = format!("return '{name}'\n");
        save(project.path(), &format!("{FOLDER}/{name}.luau"), &text);
        saved.insert(text);
        fresh.push(name);
    }
    fresh.pop();
    let store = Store::in_memory();
    let server = TestServer::start_with(project.path(), store.clone(), 0).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let dice = Dice(seed);
    let mut world = World { project: project.path(), agent, studio: &studio, store, dice, fresh, made: 0, saved };
    let mut done: Vec<Done> = Vec::new();
    for _ in 0..3 {
        done.push(world.sync().await);
        world.nothing_is_lost().await;
    }
    while let Some(last) = done.pop() {
        world.undo(&last).await;
        world.nothing_is_lost().await;
    }
    let none = world.agent.ask("undo", json!({})).await;
    assert_eq!(none["status"], "error", "all of it was taken back: {none}");
    // What the files still say is done again; what only an override had decided is not.
    let again = world.agent.ask("sync", json!({ "allowRemovals": true })).await;
    assert_eq!(again["failed"], 0, "{again}");
    world.nothing_is_lost().await;
    let settled = world.agent.ask("sync", json!({ "allowRemovals": true })).await;
    for count in ["pushed", "pulled", "merged", "removed", "renamed", "failed"] {
        assert_eq!(settled[count], 0, "it is settled: {settled}");
    }
    assert_eq!(settled["unresolved"], again["unresolved"], "{settled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_any_order_an_undo_takes_back_the_last_sync_and_no_text_is_lost() {
    for seed in 1..=8 {
        eprintln!("seed {seed}");
        schedule(seed).await;
    }
}
