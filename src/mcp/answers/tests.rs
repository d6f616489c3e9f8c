use serde_json::json;

use super::*;

fn ran(answer: Value) -> RunCode {
    serde_json::from_value::<RunCode>(answer).expect("as the plugin says it").bounded()
}

#[test]
fn what_the_plugin_has_left_out_of_the_output_is_said() {
    let all = json!({ "ok": true, "output": [{ "level": "output", "text": "1" }], "returns": [] });
    assert!(!ran(all.clone()).truncated);
    let Value::Object(mut cut) = all else { unreachable!("made as one") };
    cut.insert("outputTruncated".into(), json!(true));
    let answer = ran(Value::Object(cut));
    assert!(answer.truncated && answer.to_string().contains("truncated"), "{answer}");
}

#[test]
fn an_error_of_any_size_floods_nobody() {
    let short = json!({ "message": "run_code:3: boom", "line": 3, "stack": ["run_code:3"] });
    let answer = ran(json!({ "ok": false, "error": short }));
    assert_eq!((answer.truncated, answer.error), (false, Some(short)));
    for long in [
        json!({ "message": "é".repeat(1_000_000), "line": 3 }),
        json!({ "message": "boom", "line": 3, "stack": vec!["frame"; 100_000] }),
        json!("é".repeat(1_000_000)),
    ] {
        let answer = ran(json!({ "ok": false, "error": long }));
        let size = serde_json::to_string(&answer).expect("JSON").len();
        assert!(answer.truncated && size < 2 * MAX_TEXT && answer.to_string().len() < 2 * MAX_TEXT, "{size}");
        assert_eq!(long["line"], answer.error.unwrap_or_default()["line"]);
    }
}
