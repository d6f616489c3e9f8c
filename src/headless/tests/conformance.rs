//! Runs `conformance/*.luau` in the command bar, and what differs with immediate signals.

use super::{super::*, plugin};

const CHECKS: &str = include_str!("../conformance/checks.luau");
const FILES: [(&str, &str); 8] = [
    ("instances", include_str!("../conformance/instances.luau")),
    ("tree", include_str!("../conformance/tree.luau")),
    ("signals", include_str!("../conformance/signals.luau")),
    ("threads", include_str!("../conformance/threads.luau")),
    ("network", include_str!("../conformance/network.luau")),
    ("services", include_str!("../conformance/services.luau")),
    ("history", include_str!("../conformance/history.luau")),
    ("datatypes", include_str!("../conformance/datatypes.luau")),
];
/// Checks must not vanish silently: raise this with them.
const FEWEST: f64 = 242.0;

#[tokio::test]
async fn the_simulation_behaves_as_the_engine() {
    let config = HeadlessConfig { plugin: plugin("", &[]), place_name: "Test".to_owned(), ..HeadlessConfig::default() };
    let studio = HeadlessStudio::start(config).expect("the Studio starts");
    let (mut count, mut failed) = (0.0, Vec::new());
    for (name, checks) in FILES {
        let values = studio.run(&format!("{CHECKS}\n{checks}\nreturn count, failures")).await.expect(name);
        count += values[0].as_f64().expect("a number of checks");
        let lines = values[1].as_array().expect("a list of failures").iter();
        failed.extend(lines.map(|line| format!("{name}: {}", line.as_str().unwrap_or_default())));
    }
    assert!(failed.is_empty(), "{} of {count} checks failed:\n{}", failed.len(), failed.join("\n"));
    assert!(count >= FEWEST, "only {count} checks");
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
