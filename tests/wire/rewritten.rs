//! Nothing of a plugin's frame is passed over: what was read of it, written again, is the frame.

use std::collections::BTreeSet;

use rojo_mcp::core::{
    protocol::{Hello, PluginFrame},
    sync::SyncStatus,
};
use serde_json::{Map, Value, json};

use super::{Golden, golden};

/// Fields that mean nothing to the server.
const PASSED_OVER: [(&str, &str); 2] = [("alive", "timestamp"), ("unknown", "strength")];

#[test]
fn frames_from_the_plugin_come_out_as_they_went_in() {
    for Golden { name, text, value } in golden("from_plugin_") {
        let Value::Object(mut frame) = value else { panic!("{name} is an object") };
        for (_, field) in PASSED_OVER.iter().filter(|(of, _)| name == *of) {
            assert!(frame.remove(*field).is_some(), "{name} holds {field}");
        }
        let read = PluginFrame::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut again = written(&read);
        // What stands for its default may be left out.
        again.retain(|field, value| frame.contains_key(field) || !is_default(value));
        assert_eq!(Value::Object(again), Value::Object(frame), "{name}");
    }
}

fn is_default(value: &Value) -> bool {
    [json!(null), json!(0), json!(false), json!(""), json!([])].contains(value)
}

fn written(frame: &PluginFrame) -> Map<String, Value> {
    let value = match frame {
        PluginFrame::Hello(said) => hello(said),
        PluginFrame::RobloxLog { message, level, logical_id } => {
            json!({ "type": "roblox_log", "message": message, "level": level, "logicalId": logical_id })
        }
        PluginFrame::Attach { logical_id, role, player, in_flight } => {
            let role = role.map_or_else(|| "client".to_owned(), |role| role.to_string());
            json!({
                "type": "attach", "logicalId": logical_id, "role": role, "player": player, "inFlight": in_flight,
            })
        }
        PluginFrame::Detach { logical_id } => json!({ "type": "detach", "logicalId": logical_id }),
        PluginFrame::Result(result) => {
            let mut fields = result.fields.clone();
            fields.insert("requestId".into(), json!(result.request_id));
            fields.insert("status".into(), json!(result.status));
            Value::Object(fields)
        }
        PluginFrame::Cancelled { request_id } => json!({ "type": "cancelled", "requestId": request_id }),
        PluginFrame::StillRunning { request_id } => json!({ "type": "stillRunning", "requestId": request_id }),
        PluginFrame::Taken { request_id, part } => json!({ "type": "taken", "requestId": request_id, "part": part }),
        PluginFrame::TreeReady { tree_id, cursor, parts, facts } => {
            json!({ "type": "treeReady", "treeId": tree_id, "cursor": cursor, "parts": parts, "facts": facts })
        }
        PluginFrame::Edit { seq, nodes, removed, below } => {
            json!({ "type": "edit", "seq": seq, "nodes": nodes, "removed": removed, "below": below })
        }
        PluginFrame::Reviewed { review_id, answer } => {
            let mut said = serde_json::to_value(answer).expect("it is written");
            said["type"] = json!("reviewed");
            said["reviewId"] = json!(review_id);
            said["choices"] = json!(answer.choices);
            said
        }
        PluginFrame::ReviewText { review_id, id } => json!({ "type": "reviewText", "reviewId": review_id, "id": id }),
        PluginFrame::Facts { request_id, part, facts } => {
            json!({ "type": "facts", "requestId": request_id, "part": part, "facts": facts })
        }
        PluginFrame::Progress { request_id, progress, total, message } => {
            json!({ "type": "progress", "requestId": request_id, "progress": whole(*progress),
                    "total": total.map(whole), "message": message })
        }
        PluginFrame::Proof { proofs } => json!({ "type": "proof", "proofs": proofs }),
        PluginFrame::Pair { code, hash } => json!({ "type": "pair", "code": code, "hash": hash }),
        PluginFrame::Alive => json!({ "type": "alive" }),
        PluginFrame::Bye { reason } => json!({ "type": "bye", "reason": reason }),
        PluginFrame::Unknown { kind } => json!({ "type": kind }),
    };
    let Value::Object(fields) = value else { unreachable!("all of these are objects") };
    fields
}

/// As the plugin writes it: 3, not 3.0.
fn whole(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction")]
    if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
}

fn hello(hello: &Hello) -> Value {
    let mut said = json!({
        "type": "hello", "twoWaySync": hello.two_way_sync, "oneShotSync": hello.one_shot_sync,
        "confirmationBehavior": hello.confirmation_behavior, "placeId": hello.place_id
    });
    let Some(more) = &hello.level1 else { return said };
    let more = json!({
        "protocol": more.protocol, "pluginVersion": more.plugin_version, "sessionId": more.session_id,
        "instanceId": more.instance_id, "role": more.role, "placeName": more.place_name,
        "dataModelName": more.data_model_name, "gameId": more.game_id, "isRunning": more.is_running,
        "otherEditors": more.other_editors, "tools": more.tools, "serverId": more.server_id, "lastN": more.last_n,
        "treeId": more.tree_id, "cursor": more.cursor, "inFlight": more.in_flight, "pending": more.pending, "reviews": more.reviews
    });
    for (field, value) in more.as_object().expect("an object") {
        said[field] = value.clone();
    }
    said
}

#[test]
fn there_is_a_file_of_every_word_that_a_level_0_plugin_has_for_its_sync() {
    let said: BTreeSet<String> = golden("from_plugin_")
        .into_iter()
        .filter(|file| file.name.starts_with("result_sync_level0"))
        .map(|file| {
            let status: SyncStatus = serde_json::from_value(file.value["status"].clone()).expect("a word that we know");
            serde_json::to_value(status).expect("a word").as_str().expect("a text").to_owned()
        })
        .collect();
    let all = [
        "success",
        "empty",
        "rejected",
        "dryrun",
        "fastfail_unresolved",
        "already_connected",
        "sync_in_progress",
        "error",
    ];
    assert_eq!(said, all.map(str::to_owned).into());
}
