//! Running code: results, errors, contexts, the time limit, loading and unloading.

use super::{super::*, log_text, model, plugin, studio, studio_with};
use rbx_dom_weak::InstanceBuilder;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_command_returns_its_values_as_json() {
    let studio = studio();
    let values = studio.run("task.wait() return 1, 'two', { 3, 4 }, { a = true }, nil, workspace").await;
    assert_eq!(
        values,
        Ok(vec![json!(1), json!("two"), json!([3, 4]), json!({"a": true}), json!(null), json!("Workspace")])
    );
}

#[tokio::test]
async fn an_error_is_its_text_with_the_position() {
    let studio = studio();
    assert_eq!(studio.run("\nerror('boom')").await, Err("cmd:2: boom".to_owned()));
    assert_eq!(
        studio.run("return workspace.Nope").await,
        Err("Nope is not a valid member of Workspace \"Workspace\"".to_owned())
    );
    assert!(studio.run("return return").await.is_err_and(|text| text.starts_with("cmd:1:")));
}
