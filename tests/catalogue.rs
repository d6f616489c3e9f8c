//! The tools as MCP clients see them: small, plain, and taken by every client.

use rojo_mcp::mcp::{Kind, catalogue};
use serde_json::{Map, Value, json};

fn walk(value: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(object);
            object.values().for_each(|value| walk(value, visit));
        }
        Value::Array(items) => items.iter().for_each(|value| walk(value, visit)),
        _ => {}
    }
}

#[test]
fn c74_schemas_are_plain_objects() {
    for tool in catalogue() {
        for schema in [&tool.input, &tool.output] {
            assert_eq!(schema.get("type"), Some(&json!("object")), "{}", tool.name);
            assert!(schema.get("properties").is_some_and(Value::is_object), "{}", tool.name);
            for word in ["oneOf", "anyOf", "allOf", "not", "enum", "$ref", "$defs"] {
                assert!(!schema.contains_key(word), "{}: {word} at the root", tool.name);
            }
            walk(&Value::Object(Map::clone(schema)), &mut |object| {
                for word in ["$ref", "$defs", "oneOf", "allOf"] {
                    assert!(!object.contains_key(word), "{}: {word} in {object:?}", tool.name);
                }
                let format = object.get("format").and_then(Value::as_str).unwrap_or_default();
                assert!(!format.contains("int"), "{}: format {format}", tool.name);
            });
        }
        let properties = tool.input["properties"].as_object().expect("checked above");
        for (name, property) in properties {
            assert!(property.get("type").is_some_and(Value::is_string), "{}.{name} has no type: {property}", tool.name);
            let description = property["description"].as_str().unwrap_or_default();
            assert!((1..100).contains(&description.len()), "{}.{name}: {description:?}", tool.name);
        }
        assert_eq!(tool.input.get("additionalProperties"), Some(&json!(false)), "{}", tool.name);
        assert!(tool.output.get("required").is_none(), "{}: the error form must fit too", tool.name);
        assert!(tool.output["properties"]["error"].is_object(), "{}", tool.name);
    }
}

#[test]
fn c76_names_and_descriptions_are_short() {
    for tool in catalogue() {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        assert!((1..=40).contains(&tool.name.len()) && tool.name.bytes().all(fits), "{:?}", tool.name);
        assert!((1..200).contains(&tool.description.len()), "{}: {}", tool.name, tool.description.len());
        assert!(!tool.description.contains('\n'), "{}", tool.name);
        assert!(!tool.title.is_empty());
    }
}

#[test]
fn the_whole_list_costs_an_agent_little() {
    let list: Vec<Value> = catalogue()
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name, "title": tool.title, "description": tool.description,
                "inputSchema": *tool.input, "outputSchema": *tool.output, "annotations": tool.annotations()
            })
        })
        .collect();
    let size = serde_json::to_string(&list).expect("JSON").len();
    assert!(size < 20_000, "{size} characters");
}

#[test]
fn every_tool_has_all_four_hints() {
    for tool in catalogue() {
        let hints = tool.annotations();
        let reads = tool.kind == Kind::Read;
        assert_eq!(hints.read_only_hint, Some(reads), "{}", tool.name);
        assert_eq!(hints.destructive_hint, Some(!reads), "{}", tool.name);
        assert_eq!(hints.idempotent_hint, Some(reads), "{}", tool.name);
        assert_eq!(hints.open_world_hint, Some(false), "{}", tool.name);
    }
}
