//! Schemas from the types that validate, in the plain form that every client takes.

use rmcp::model::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

/// The schema of a tool's arguments, and the description that their type carries.
pub fn input<T: JsonSchema>() -> (JsonObject, String) {
    let mut schema = plain::<T>();
    let description = match schema.remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    schema.entry("properties").or_insert_with(|| json!({}));
    (schema, description)
}

/// The schema of a tool's answer. It admits the error form, because some clients validate that
/// against it too; so no field is required at the root.
pub fn output<T: JsonSchema>() -> JsonObject {
    let mut schema = plain::<T>();
    schema.remove("required");
    schema.remove("description");
    schema.remove("additionalProperties");
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.values_mut().for_each(undescribe);
        let error = json!({
            "type": "object",
            "properties": { "code": { "type": "string" }, "message": { "type": "string" }, "hint": { "type": "string" } }
        });
        properties.insert("error".into(), error);
    }
    schema
}

/// Take the descriptions away, and that no count is below 0: what is in an answer says by its name what it
/// is, and every agent pays for the list.
fn undescribe(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("minimum").is_some_and(|least| *least == json!(0)) {
                object.remove("minimum");
            }
            if object.get("description").is_some_and(Value::is_string) {
                object.remove("description");
            }
            object.values_mut().for_each(undescribe);
        }
        Value::Array(items) => items.iter_mut().for_each(undescribe),
        _ => {}
    }
}

fn plain<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut value = schema.to_value();
    simplify(&mut value);
    match value {
        Value::Object(mut object) => {
            object.insert("type".into(), json!("object"));
            object
        }
        _ => unreachable!("tools take and give objects"),
    }
}

/// Drop what clients stumble over: Rust's number formats, titles, and `null` beside a type (an
/// absent optional field says the same); turn documented enums into plain ones.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.remove("title");
            object.remove("default");
            object.remove("writeOnly");
            if object.get("format").and_then(Value::as_str).is_some_and(is_rust_format) {
                object.remove("format");
            }
            drop_null(object);
            flatten_enum(object);
            object.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn is_rust_format(format: &str) -> bool {
    format.starts_with("uint") || format.starts_with("int") || matches!(format, "float" | "double")
}

fn drop_null(object: &mut JsonObject) {
    if let Some(Value::Array(types)) = object.get("type") {
        let left: Vec<Value> = types.iter().filter(|kind| *kind != "null").cloned().collect();
        if let [only] = left.as_slice() {
            object.insert("type".into(), only.clone());
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(variants)) = object.get("anyOf") {
        let left: Vec<Value> = variants.iter().filter(|v| v.get("type") != Some(&json!("null"))).cloned().collect();
        if let [Value::Object(only)] = left.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}

/// `oneOf` of constants (an enum whose variants have docs) becomes `enum`.
fn flatten_enum(object: &mut JsonObject) {
    let Some(Value::Array(variants)) = object.get("oneOf") else { return };
    let mut words = Vec::new();
    for variant in variants {
        match (variant.get("const"), variant.get("enum")) {
            (Some(word), _) => words.push(word.clone()),
            (None, Some(Value::Array(several))) => words.extend(several.iter().cloned()),
            _ => return,
        }
    }
    object.remove("oneOf");
    object.insert("type".into(), json!("string"));
    object.insert("enum".into(), Value::Array(words));
}
