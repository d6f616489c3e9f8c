//! Tables of translations, which are `.csv` files.

use serde_json::json;

use crate::support::{Agent, TestServer, demo, save};

const FILE: &str = "src/shared/Words.csv";
const TABLE: &str = "game.ReplicatedStorage.Shared.Words";

/// What the table in Studio holds.
async fn held(agent: &Agent) -> String {
    let code = format!("return {TABLE}:GetContents()");
    let answer = agent.ask("run_code", json!({ "command": code })).await;
    answer["returns"][0].as_str().unwrap_or_else(|| panic!("no text in {answer}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn translations_go_to_studio_are_taken_back_and_win_over_nothing_newer() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), FILE, "Key,Source,de\nhi,Hi,Hallo\n");
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1);
    assert!(held(&agent).await.contains("Hallo"), "a new table comes with what is in it");

    save(project.path(), FILE, "Key,Source,de\nhi,Hi,Moin\nbye,Bye,\n");
    let edited = agent.ask("sync", json!({})).await;
    assert_eq!(edited["pushed"], 1, "{edited}");
    assert!(edited["changes"][0]["properties"]["Contents"].is_object(), "{edited}");
    assert!(held(&agent).await.contains("Moin"));

    // As Studio writes it: other words, another order, the same meaning.
    let same = r#"[{"key":"bye","context":"","examples":"","source":"Bye","values":{}},
        {"values":{"de":"Moin"},"source":"Hi","examples":"","context":"","key":"hi"}]"#;
    studio.run(&format!("{TABLE}:SetContents([==[{same}]==])")).await.expect("set");
    let equal = agent.ask("sync", json!({})).await;
    assert_eq!(equal["status"], "empty", "{equal}");

    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert!(held(&agent).await.contains("Hallo"), "{undone}");
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1, "and done again");

    studio.run(&format!("{TABLE}:SetContents('[]')")).await.expect("set");
    let changed = agent.ask("sync", json!({})).await;
    assert_eq!((&changed["unresolved"], held(&agent).await.as_str()), (&json!(1), "[]"), "{changed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_was_made_in_studio_is_pulled_with_what_is_in_it() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio
        .run(
            "local words = Instance.new('LocalizationTable') words.Name = 'Words' \
             words:SetContents('[{\"key\":\"hi\",\"source\":\"Hi\",\"values\":{\"de\":\"Hallo\"}}]') \
             words.Parent = game.ReplicatedStorage.Shared",
        )
        .await
        .expect("made");
    let found = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    let pull = json!({ "overrides": [{ "id": found["changes"][0]["tempId"], "direction": "pull" }] });
    let receipt = agent.ask("sync", pull).await;
    assert_eq!((&receipt["pulled"], &receipt["failed"]), (&json!(1), &json!(0)), "{receipt}");
    let file = project.path().join("src/shared/Words.rbxm");
    let model = rbx_binary::from_reader(&std::fs::read(&file).expect("the file")[..]).expect("a model");
    let table = model.get_by_ref(model.root().children()[0]).expect("the table");
    assert!(format!("{:?}", table.properties).contains("Hallo"), "{:?}", table.properties);
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
}
