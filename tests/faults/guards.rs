//! Something changes in the middle of a sync: the step is held until it has. Nothing that was not
//! looked at is overwritten, whatever the mode.

mod places;

use rojo_mcp::{headless::HeadlessStudio, session::ServeSession};
use serde_json::{Value, json};

use crate::{
    kill::{Killed, call, free_port, is_live, serve_through},
    support::{BOUND, delete, demo, headless, save, until},
    tap::{Fate, Tap, Wanted},
};

const CONFIG: &str = "src/shared/Config.luau";
const MONEY: &str = "src/shared/Money.luau";
const IN_STUDIO: &str = "game.ReplicatedStorage.Shared.Config";
const PLAN: &str = "\"type\":\"plan\"";
const TEXT: &str = "\"type\":\"getScript\"";
/// The modes that change something.
const MODES: [&str; 2] = ["standard", "fastfail"];

struct Place {
    project: tempfile::TempDir,
    studio: HeadlessStudio,
    tap: Tap,
    port: u16,
    _server: Killed,
}

impl Place {
    /// The demo project with further files, in Studio and settled.
    async fn open(files: &[&str]) -> Self {
        let project = demo();
        for file in files {
            save(project.path(), file, &format!("return '{file}'\n"));
        }
        let port = free_port();
        let folder = project.path().to_path_buf();
        let session = tokio::task::spawn_blocking(move || ServeSession::start(&folder)).await.expect("no panic");
        let tap = Tap::start(port).await;
        let studio = headless(tap.port, session.expect("the project loads").place_model());
        let server = serve_through(project.path(), port, tap.port);
        until("it is live", || is_live(port)).await;
        let place = Self { project, studio, tap, port, _server: server };
        assert_eq!(place.sync(json!({})).await["status"], "empty");
        place
    }

    async fn sync(&self, args: Value) -> Value {
        call(self.port, "sync", args).await.expect("the server lives")
    }

    async fn run(&self, code: &str) -> Value {
        let values = self.studio.run(code).await.expect("it runs");
        values.into_iter().next().unwrap_or(Value::Null)
    }

    async fn source(&self) -> Value {
        self.run(&format!("return {IN_STUDIO}.Source")).await
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.project.path().join(path)).expect("a text")
    }

    /// Sync; when it comes to this frame, `meanwhile` happens first.
    async fn sync_with(&self, args: Value, frame: &'static str, meanwhile: impl AsyncFnOnce()) -> Value {
        self.tap.arm(Wanted { frame, fate: Fate::Held });
        let syncing = tokio::spawn(call(self.port, "sync", args));
        tokio::time::timeout(BOUND, self.tap.struck()).await.expect("the sync comes to it");
        meanwhile().await;
        self.tap.release();
        syncing.await.expect("no panic").expect("the server lives")
    }
}

/// What the receipt says of `path`.
fn line<'a>(receipt: &'a Value, path: &str) -> &'a Value {
    let lines = receipt["changes"].as_array().expect("a list");
    lines.iter().find(|line| line["path"] == path).unwrap_or_else(|| panic!("{path} is not in {receipt}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_changed_in_studio_before_the_plan_is_not_overwritten() {
    for mode in MODES {
        let place = Place::open(&[]).await;
        save(place.project.path(), CONFIG, "return 'file'\n");
        save(place.project.path(), MONEY, "return 'money'\n");
        let typed = format!("{IN_STUDIO}.Source = '-- typed meanwhile'");
        let receipt = place
            .sync_with(json!({ "mode": mode }), PLAN, async || {
                place.run(&typed).await;
            })
            .await;
        assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("error"), &json!(0)), "{mode}: {receipt}");
        assert_eq!(line(&receipt, "ReplicatedStorage.Shared.Config")["result"], "guard", "{receipt}");
        assert_eq!(line(&receipt, "ReplicatedStorage.Shared.Money")["result"], "skipped", "{receipt}");
        assert_eq!(place.source().await, "-- typed meanwhile");
        assert_eq!(place.read(CONFIG), "return 'file'\n");
        let next = place.sync(json!({})).await;
        assert_eq!((&next["pushed"], &next["unresolved"]), (&json!(1), &json!(1)), "both changed by now: {next}");
        assert_eq!(place.source().await, "-- typed meanwhile");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_property_that_changed_in_studio_before_the_plan_is_not_overwritten() {
    for mode in MODES {
        let place = Place::open(&[]).await;
        let lantern = "assets/Lantern.model.json";
        let text = place.read(lantern).replace("\"Transparency\": 0.4", "\"Transparency\": 0.1");
        save(place.project.path(), lantern, &text);
        save(place.project.path(), MONEY, "return 'money'\n");
        let glass = "game.ReplicatedStorage.Assets.Lantern.Glass";
        let receipt = place
            .sync_with(json!({ "mode": mode }), PLAN, async || {
                place.run(&format!("{glass}.Transparency = 0.75")).await;
            })
            .await;
        assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("error"), &json!(0)), "{mode}: {receipt}");
        assert_eq!(line(&receipt, "ReplicatedStorage.Assets.Lantern.Glass")["result"], "guard", "{receipt}");
        assert_eq!(place.run(&format!("return {glass}.Transparency")).await, 0.75);
        let next = place.sync(json!({})).await;
        assert_eq!((&next["pushed"], &next["unresolved"]), (&json!(1), &json!(1)), "both changed by now: {next}");
        assert_eq!(place.run(&format!("return {glass}.Transparency")).await, 0.75);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_that_was_opened_before_the_plan_is_not_overwritten() {
    for mode in MODES {
        let place = Place::open(&[]).await;
        save(place.project.path(), CONFIG, "return 'file'\n");
        let typing = format!("Headless.setDraft({IN_STUDIO}, '-- typing')");
        let receipt = place
            .sync_with(json!({ "mode": mode }), PLAN, async || {
                place.run(&typing).await;
            })
            .await;
        assert_eq!(line(&receipt, "ReplicatedStorage.Shared.Config")["result"], "guard", "{mode}: {receipt}");
        let next = place.sync(json!({})).await;
        assert_eq!((&next["pushed"], &next["unresolved"]), (&json!(0), &json!(1)), "{next}");
        let draft = call(place.port, "get_script", json!({ "fsPath": CONFIG, "fromDraft": true })).await;
        assert_eq!(draft.expect("the server lives")["source"], "-- typing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_put_into_something_before_its_removal_keeps_it() {
    let files = ["src/shared/Parts/One.luau", "src/shared/Parts/Two.luau", "src/shared/Parts/Three.luau"];
    for mode in MODES {
        let place = Place::open(&files).await;
        delete(place.project.path(), files[0]);
        let lamp = "Instance.new('Part').Parent = game.ReplicatedStorage.Shared.Parts.One";
        let receipt = place
            .sync_with(json!({ "mode": mode }), PLAN, async || {
                place.run(lamp).await;
            })
            .await;
        assert_eq!(receipt["removed"], 0, "{mode}: {receipt}");
        let line = line(&receipt, "ReplicatedStorage.Shared.Parts.One");
        assert_eq!(line["result"], "guard", "{receipt}");
        assert!(line["reason"].as_str().is_some_and(|reason| reason.contains("One.Part")), "{line}");
        assert_eq!(place.run("return #game.ReplicatedStorage.Shared.Parts.One:GetChildren()").await, 1.0);
        let next = place.sync(json!({})).await;
        assert_eq!((&next["removed"], &next["unresolved"]), (&json!(0), &json!(1)), "{next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_saved_before_it_is_written_keeps_its_text() {
    for mode in MODES {
        let place = Place::open(&[]).await;
        place.run(&format!("{IN_STUDIO}.Source = 'return \"Studio\"\\n'")).await;
        let receipt = place
            .sync_with(json!({ "mode": mode }), TEXT, async || {
                save(place.project.path(), CONFIG, "return 'saved meanwhile'\n");
            })
            .await;
        // The files are looked at before anything changes.
        let status = if mode == "fastfail" { "fastfail_unresolved" } else { "rejected" };
        assert_eq!((&receipt["status"], &receipt["pulled"]), (&json!(status), &json!(0)), "{mode}: {receipt}");
        assert_eq!(line(&receipt, "ReplicatedStorage.Shared.Config")["result"], "moved_on", "{receipt}");
        assert_eq!(place.read(CONFIG), "return 'saved meanwhile'\n");
        assert_eq!(place.source().await, "return \"Studio\"\n");
        let next = place.sync(json!({})).await;
        assert_eq!(next["unresolved"], 1, "both changed by now: {next}");
        assert_eq!(place.read(CONFIG), "return 'saved meanwhile'\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_whose_file_was_saved_meanwhile_says_what_studio_has() {
    let place = Place::open(&[]).await;
    let lines = "local a = 1\n-- 1\n-- 2\nlocal b = 2\nreturn a + b\n";
    save(place.project.path(), CONFIG, lines);
    assert_eq!(place.sync(json!({})).await["pushed"], 1);
    save(place.project.path(), CONFIG, &lines.replace("a = 1", "a = 10"));
    place.run(&format!("{IN_STUDIO}.Source = {:?}", lines.replace("b = 2", "b = 20"))).await;
    let saved = lines.replace("a = 1", "a = 11");
    let receipt = place
        .sync_with(json!({}), PLAN, async || {
            save(place.project.path(), CONFIG, &saved);
        })
        .await;
    let change = line(&receipt, "ReplicatedStorage.Shared.Config");
    assert_eq!(change["result"], "moved_on", "{receipt}");
    assert!(change["reason"].as_str().is_some_and(|reason| reason.contains("Studio has the new text")), "{change}");
    assert_eq!(place.read(CONFIG), saved);
    let undone = call(place.port, "undo", json!({ "change": receipt["journal"], "partial": true })).await;
    let undone = undone.expect("the server lives");
    assert_eq!(place.read(CONFIG), saved, "{undone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_holds_for_the_text_that_was_seen_only() {
    for mode in MODES {
        let place = Place::open(&[]).await;
        save(place.project.path(), CONFIG, "return 'file'\n");
        place.run(&format!("{IN_STUDIO}.Source = 'return \"seen\"'")).await;
        let seen = place.sync(json!({ "mode": "dryrun" })).await;
        let seen = line(&seen, "ReplicatedStorage.Shared.Config").clone();
        let wish = json!([{ "id": seen["id"], "direction": "push", "studioHash": seen["studioHash"] }]);
        let args = json!({ "mode": mode, "overrides": wish });
        let later = format!("{IN_STUDIO}.Source = 'return \"later\"'");
        // Between the comparison and the plan the plugin refuses it, before the comparison the server.
        let receipt = place
            .sync_with(args.clone(), PLAN, async || {
                place.run(&later).await;
            })
            .await;
        assert_eq!(line(&receipt, "ReplicatedStorage.Shared.Config")["result"], "guard", "{mode}: {receipt}");
        let receipt = place.sync(args).await;
        assert_eq!((&receipt["pushed"], &receipt["rejected"][0]["id"]), (&json!(0), &seen["id"]), "{mode}: {receipt}");
        assert_eq!(place.source().await, "return \"later\"");
        assert_eq!(place.read(CONFIG), "return 'file'\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_modes_that_change_something_do() {
    for (mode, status, pushed) in
        [("dryrun", "dryrun", 0), ("manual", "rejected", 0), ("fastfail", "success", 1), ("standard", "success", 1)]
    {
        let place = Place::open(&[]).await;
        let before = place.source().await;
        save(place.project.path(), CONFIG, "return 'file'\n");
        place.run("game.ReplicatedStorage.Shared.Money.Source = 'return \"Studio\"\\n'").await;
        let receipt = place.sync(json!({ "mode": mode })).await;
        let counted = (receipt["pushed"].as_u64(), receipt["pulled"].as_u64());
        let applied = pushed == 1;
        assert_eq!(receipt["status"], status, "{receipt}");
        assert!(!applied || counted == (Some(1), Some(1)), "{receipt}");
        assert_eq!(place.source().await == before, !applied, "{mode}");
        assert_eq!(place.read(MONEY) == "return \"Studio\"\n", applied, "{mode}");
        assert_eq!(receipt["journal"].is_null(), !applied, "{mode}: {receipt}");
    }
}
