//! A person is asked what to do: in Studio's window, over the HTTP API, by the agent's client.

#[path = "review/elicitation.rs"]
mod elicitation;

use std::path::Path;

use hyper::StatusCode;
use rojo_mcp::headless::HeadlessStudio;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{Agent, TestServer, demo, save, until};

const CONFIG: &str = "src/shared/Config.luau";
const MONEY: &str = "src/shared/Money.luau";
const ROPE: &str = "src/shared/Items/Rope.luau";
const SHARED: &str = "game.ReplicatedStorage.Shared";
const MINE: &str = "return 'from the file'\n";
const THEIRS: &str = "return 'from Studio'\n";

fn read(project: &Path, path: &str) -> String {
    std::fs::read_to_string(project.join(path)).expect("a text")
}

/// One script was changed on disk, one in Studio, and one on both sides.
async fn change_three(project: &Path, studio: &HeadlessStudio) {
    save(project, CONFIG, MINE);
    save(project, ROPE, MINE);
    for script in ["Money", "Items.Rope"] {
        studio.run(&format!("{SHARED}.{script}.Source = {THEIRS:?}")).await.expect("typed");
    }
}

fn sync(agent: Agent, args: Value) -> JoinHandle<Value> {
    tokio::spawn(async move { agent.ask("sync", args).await })
}

/// Read something of the review's window.
async fn window(studio: &HeadlessStudio, code: &str) -> Value {
    let code = format!("local window = game:GetService('PluginGuiService').RojoMcpReview return {code}");
    studio.run(&code).await.expect("the window is there").into_iter().next().unwrap_or_default()
}

/// Press a button of the window: of the change at `path`, or below the list.
async fn press(studio: &HeadlessStudio, path: Option<&str>, name: &str) {
    let code = match path {
        None => format!("local row = window.Review.Actions Headless.fire(row[{name:?}], 'Activated')"),
        Some(path) => format!(
            "for _, row in window.Review.Changes:GetChildren() do
                 if row:FindFirstChild('Open') and row.Open.Text == {path:?} then
                     Headless.fire(row[{name:?}], 'Activated')
                 end
             end"
        ),
    };
    let code = format!("local window = game:GetService('PluginGuiService').RojoMcpReview {code}");
    studio.run(&code).await.expect("the button is there");
}

async fn until_window(studio: &HeadlessStudio, what: &str, code: &str) {
    until(what, || async { window(studio, code).await == json!(true) }).await;
}

async fn until_shown(studio: &HeadlessStudio, heading: &str) {
    let begins = format!("string.sub(window.Review.Heading.Text, 1, {}) == {heading:?}", heading.len());
    until_window(studio, heading, &begins).await;
}

pub async fn reviews(agent: &Agent) -> Vec<Value> {
    let (status, _, body) = agent.http("GET", "/api/mcp/reviews", &[], String::new()).await;
    assert_eq!(status, StatusCode::OK);
    let answer: Value = serde_json::from_slice(&body).expect("JSON");
    answer["reviews"].as_array().expect("a list").clone()
}

async fn get(agent: &Agent, path: &str) -> (StatusCode, Value) {
    let (status, _, body) = agent.http("GET", path, &[], String::new()).await;
    (status, serde_json::from_slice(&body).expect("JSON"))
}

pub async fn post(agent: &Agent, review: &Value, answer: &Value) -> (StatusCode, Value) {
    let path = format!("/api/mcp/reviews/{}", review.as_str().expect("an id"));
    let (status, _, body) = agent.http("POST", &path, &[], answer.to_string()).await;
    (status, serde_json::from_slice(&body).expect("JSON"))
}

/// Wait for a review that somebody waits for.
pub async fn asked(agent: &Agent) -> Value {
    let waits = |review: &Value| review["state"] == "waiting" && review["standing"] == false;
    until("a person is asked", || async { reviews(agent).await.iter().any(waits) }).await;
    reviews(agent).await.into_iter().find(waits).expect("found a moment ago")
}

fn of_path<'a>(review: &'a Value, path: &str) -> &'a Value {
    let changes = review["changes"].as_array().expect("a list");
    changes.iter().find(|change| change["fsPath"] == path).expect("it is shown")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manual_sync_is_answered_in_studio_one_pushed_one_pulled_one_left() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.watched_studio().await;
    let agent = server.agent();
    change_three(project.path(), &studio).await;
    let call = sync(agent, json!({ "mode": "manual" }));
    until_shown(&studio, "A sync asks what to do: 1 push, 1 pull, 1 unresolved").await;
    assert_eq!(window(&studio, "window.Enabled").await, json!(true), "the window opens by itself");
    assert_eq!(agent.eval(&format!("return {SHARED}.Config.Source ~= {MINE:?}")).await, json!(true), "nothing yet");

    press(&studio, Some("ReplicatedStorage.Shared.Items.Rope"), "Open").await;
    let both = "window.Review.Texts:FindFirstChild('Line') ~= nil
        and window.Review.Texts.Line.File.Text == \"1  return 'from the file'\"
        and window.Review.Texts.Line.Studio.Text == \"1  return 'from Studio'\"";
    until_window(&studio, "both texts side by side", both).await;

    press(&studio, Some("ReplicatedStorage.Shared.Config"), "push").await;
    press(&studio, Some("ReplicatedStorage.Shared.Money"), "pull").await;
    press(&studio, Some("ReplicatedStorage.Shared.Items.Rope"), "skip").await;
    press(&studio, None, "Answer").await;
    let receipt = call.await.expect("it ends");
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("partial"), &json!(1)), "{receipt}");
    assert_eq!((&receipt["pulled"], &receipt["unresolved"]), (&json!(1), &json!(1)), "{receipt}");
    assert_eq!(agent.eval(&format!("return {SHARED}.Config.Source")).await, json!(MINE));
    assert_eq!(read(project.path(), MONEY), THEIRS);
    assert_eq!(read(project.path(), ROPE), MINE, "what was left is left on both sides");
    assert_eq!(agent.eval(&format!("return {SHARED}.Items.Rope.Source")).await, json!(THEIRS));
    until_shown(&studio, "These differences wait for a choice: 1 unresolved").await;

    let undone = agent.ask("undo", json!({ "change": receipt["journal"] })).await;
    assert_eq!(undone["status"], "success", "what a person chose can be taken back: {undone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_shown_and_answered_over_http_once() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.watched_studio().await;
    let agent = server.agent();
    change_three(project.path(), &studio).await;
    let call = sync(agent, json!({ "mode": "manual" }));
    let review = asked(&agent).await;
    let rope = of_path(&review, ROPE);
    assert_eq!((&rope["direction"], &of_path(&review, CONFIG)["direction"]), (&json!("unresolved"), &json!("push")));
    let id = review["id"].as_str().expect("an id");
    let (_, one) = get(&agent, &format!("/api/mcp/reviews/{id}")).await;
    assert_eq!((&one["id"], &one["changes"]), (&review["id"], &review["changes"]));
    let (_, texts) = get(&agent, &format!("/api/mcp/reviews/{id}/{}", rope["id"].as_str().expect("an id"))).await;
    assert_eq!((&texts["disk"], &texts["studio"]), (&json!(MINE), &json!(THEIRS)));
    assert_eq!((&texts["diskHash"], &texts["studioHash"]), (&rope["diskHash"], &rope["studioHash"]));

    for wrong in [json!({}), json!({ "all": "nothing" }), json!({ "choices": [{ "id": "x77", "choice": "push" }] })] {
        assert_eq!(post(&agent, &review["id"], &wrong).await.0, StatusCode::BAD_REQUEST, "{wrong}");
    }
    assert_eq!(post(&agent, &json!("no-such"), &json!({ "all": "push" })).await.0, StatusCode::NOT_FOUND);
    let choices = json!([{ "id": rope["id"], "choice": "pull" }]);
    let (status, _) = post(&agent, &review["id"], &json!({ "choices": choices, "all": "accept" })).await;
    assert_eq!(status, StatusCode::OK);
    let (status, late) = post(&agent, &review["id"], &json!({ "all": "skip" })).await;
    assert_eq!((status, &late["error"]), (StatusCode::CONFLICT, &json!("answered on the page")));
    let receipt = call.await.expect("it ends");
    assert_eq!((&receipt["status"], &receipt["pulled"]), (&json!("success"), &json!(2)), "{receipt}");
    assert_eq!(read(project.path(), ROPE), THEIRS);
    until_shown(&studio, "1 pushed, 2 pulled").await;
    let (_, over) = get(&agent, &format!("/api/mcp/reviews/{id}")).await;
    assert_eq!((&over["state"], &over["outcome"]), (&json!("over"), &json!("1 pushed, 2 pulled")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_while_the_person_thought_is_not_overwritten() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.watched_studio().await;
    let agent = server.agent();
    change_three(project.path(), &studio).await;
    let call = sync(agent, json!({ "mode": "manual" }));
    until_shown(&studio, "A sync asks").await;
    studio.run(&format!("{SHARED}.Items.Rope.Source = 'return 1'")).await.expect("typed on");
    save(project.path(), MONEY, "return 2\n");
    press(&studio, None, "push").await;
    press(&studio, None, "Answer").await;
    let receipt = call.await.expect("it ends");
    assert_eq!((&receipt["pushed"], &receipt["unresolved"]), (&json!(1), &json!(2)), "{receipt}");
    for path in [ROPE, MONEY] {
        let reason = of_path(&receipt, path)["reason"].as_str().expect("a reason");
        assert_eq!(reason, "it changed since it was shown, so it was left alone", "{path}");
    }
    assert_eq!(agent.eval(&format!("return {SHARED}.Items.Rope.Source")).await, json!("return 1"));
    assert_eq!(read(project.path(), MONEY), "return 2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sync_leaves_waits_in_studio_for_a_choice() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.watched_studio().await;
    let agent = server.agent();
    change_three(project.path(), &studio).await;
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["status"], &receipt["unresolved"]), (&json!("partial"), &json!(1)), "nobody is waited for");
    until_shown(&studio, "These differences wait for a choice: 1 unresolved").await;
    assert_eq!(window(&studio, "window.Enabled").await, json!(false), "and nobody is disturbed");
    let status = agent.ask("status", json!({})).await;
    let told = status["studios"][0]["review"].as_str().expect("status names it");
    assert!(told.starts_with("1 change waits for a choice"), "{told}");

    press(&studio, Some("ReplicatedStorage.Shared.Items.Rope"), "push").await;
    press(&studio, None, "Answer").await;
    until("Studio has the file's text", || async {
        agent.eval(&format!("return {SHARED}.Items.Rope.Source")).await == json!(MINE)
    })
    .await;
    until_shown(&studio, "1 pushed").await;
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(
        (&undone["status"], &undone["total"]),
        (&json!("success"), &json!(1)),
        "it is a sync like any: {undone}"
    );
    assert_eq!(agent.eval(&format!("return {SHARED}.Items.Rope.Source")).await, json!(THEIRS));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_lost_while_a_person_thinks_brings_the_question_back() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.watched_studio().await;
    let agent = server.agent();
    save(project.path(), CONFIG, MINE);
    let call = sync(agent, json!({ "mode": "manual" }));
    until_shown(&studio, "A sync asks").await;
    studio.drop_sockets().await;
    until("the link is lost", || async { agent.ask("status", json!({})).await["studios"][0]["link"] != "live" }).await;
    server.until_live(1).await;
    until_shown(&studio, "A sync asks").await;
    press(&studio, None, "Answer").await;
    let receipt = call.await.expect("it ends");
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_game_cannot_answer_a_review() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    for (method, path) in [("GET", "/api/mcp/reviews"), ("POST", "/api/mcp/reviews/1")] {
        let (status, _, _) = agent.http(method, path, &[("roblox-id", "1")], "{}".to_owned()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{method}");
        let (status, _, _) = agent.http(method, path, &[("origin", "http://evil.example")], "{}".to_owned()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{method}");
    }
}
