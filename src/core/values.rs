//! Values of properties as both sides write them: rbx_dom's encoded form, `{"Vector3": [1, 2, 3]}`.
//!
//! A number that JSON cannot hold is the text `inf`, `-inf` or `nan`; a reference is the id of a
//! node, or empty. What there is not (an attribute that an instance lacks) is `{"Nil": true}`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::text::TextHash;

/// Encoded values by the name of the property. An attribute's name has an `@` before it.
pub type Properties = BTreeMap<String, Value>;

/// Values that differ by less are equal, as Rojo has it.
const TOLERANCE: f64 = 0.0001;
/// A 32-bit float cannot tell large numbers apart any finer.
const RELATIVE: f64 = 1e-6;
/// Many colours are kept as bytes.
const COLOR_TOLERANCE: f64 = 0.51 / 255.0;
/// Texts above this are remembered by their hash.
const LONGEST_KEPT: usize = 256;

/// What there is not.
pub fn nil() -> Value {
    json!({ "Nil": true })
}

/// About how many bytes they take on the wire.
pub fn weight(properties: &Properties) -> usize {
    properties.iter().map(|(name, value)| 8 + name.len() + value_weight(value)).sum()
}

fn value_weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 12,
        Value::String(text) => 2 + text.len() * 6 / 5,
        Value::Array(all) => 2 + all.iter().map(|one| 1 + value_weight(one)).sum::<usize>(),
        Value::Object(all) => 2 + all.iter().map(|(key, one)| 4 + key.len() + value_weight(one)).sum::<usize>(),
    }
}

/// The same value, but for what a float loses on its way.
pub fn is_close(one: &Value, other: &Value) -> bool {
    let color = |value: &Value| tag(value).is_some_and(|tag| tag.starts_with("Color"));
    let tolerance = if color(one) { COLOR_TOLERANCE } else { TOLERANCE };
    is_near(one, other, tolerance)
}

fn tag(value: &Value) -> Option<&str> {
    value.as_object()?.keys().next().map(String::as_str)
}

fn is_near(one: &Value, other: &Value, tolerance: f64) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap_or(f64::NAN), other.as_f64().unwrap_or(f64::NAN));
            one == other || (one - other).abs() <= tolerance.max(RELATIVE * one.abs().max(other.abs()))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_near(one, other, tolerance))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|same| is_near(value, same, tolerance)))
        }
        // An empty table of Luau.
        (Value::Object(one), Value::Array(other)) | (Value::Array(other), Value::Object(one)) => {
            one.is_empty() && other.is_empty()
        }
        _ => one == other,
    }
}

/// `value` in a form that is short whatever it holds.
pub fn short(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONGEST_KEPT => json!({ "sha1": TextHash::of(text).to_string() }),
        Value::Array(all) => all.iter().map(short).collect(),
        Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), short(value))).collect::<Map<_, _>>().into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_compared_as_rojo_does() {
        assert!(is_close(&json!({ "Float32": 0.1 }), &json!({ "Float32": 0.100_000_001_49 })));
        assert!(!is_close(&json!({ "Float32": 0.1 }), &json!({ "Float32": 0.101 })));
        assert!(is_close(&json!({ "Float32": 123_456.78 }), &json!({ "Float32": 123_456.781_25 })), "32 bits");
        assert!(is_close(&json!({ "Color3": [0.1, 0, 1] }), &json!({ "Color3": [0.101_960, 0, 1] })), "a byte");
        assert!(!is_close(&json!({ "Vector3": [0.1, 0, 1] }), &json!({ "Vector3": [0.101_960, 0, 1] })));
        assert!(is_close(&json!({ "Float64": "inf" }), &json!({ "Float64": "inf" })));
    }

    #[test]
    fn other_types_and_more_values_are_others() {
        assert!(!is_close(&json!({ "Float32": 1 }), &json!({ "Int32": 1 })));
        assert!(!is_close(&json!({ "Tags": ["a"] }), &json!({ "Tags": ["a", "b"] })));
        assert!(!is_close(&nil(), &json!({ "Bool": false })));
        assert!(is_close(&json!({ "Faces": [] }), &json!({ "Faces": {} })), "Luau cannot tell them apart");
    }

    #[test]
    fn a_long_text_is_remembered_by_its_hash() {
        let (one, other) = ("a".repeat(300), "b".repeat(300));
        let kept = short(&json!({ "String": one }));
        assert!(kept.to_string().len() < 100);
        assert!(is_close(&kept, &short(&json!({ "String": one }))));
        assert!(!is_close(&kept, &short(&json!({ "String": other }))));
    }
}
