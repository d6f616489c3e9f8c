//! Runs `conformance.luau` in the command bar, under both signal behaviours where they agree.

use super::{super::*, plugin};

#[tokio::test]
async fn the_simulation_behaves_as_the_engine() {
    let config = HeadlessConfig { plugin: plugin("", &[]), place_name: "Test".to_owned(), ..HeadlessConfig::default() };
    let studio = HeadlessStudio::start(config).expect("the Studio starts");
    let values = studio.run(include_str!("../conformance.luau")).await.expect("the checks run");
    let failures = values.first().and_then(|failures| failures.as_array()).expect("a list of failures");
    let lines: Vec<&str> = failures.iter().filter_map(|line| line.as_str()).collect();
    assert!(lines.is_empty(), "{} checks failed:\n{}", lines.len(), lines.join("\n"));
}

#[tokio::test]
async fn immediate_signals_run_at_once_and_newest_first() {
    let knobs = Knobs { immediate_signals: true, ..Knobs::default() };
    let studio = super::studio_with("", knobs);
    let code = r#"
        local log, event = {}, Instance.new("BindableEvent")
        event.Event:Connect(function() table.insert(log, "first") end)
        event.Event:Connect(function() table.insert(log, "second") end)
        event:Fire()
        table.insert(log, "after")
        return table.concat(log, " ")
    "#;
    assert_eq!(studio.run(code).await, Ok(vec![serde_json::json!("second first after")]));
}
