//! From rbx_dom's values to the encoded form of `core::values`.

use rbx_dom_weak::types::{ContentType, Ref, Variant, Vector2, Vector3};
use serde_json::{Value, json};

use super::wire::node_id;

/// `value`, encoded. `None`: a plugin can do nothing with it.
pub(super) fn encode(value: &Variant) -> Option<Value> {
    match value {
        Variant::Ref(target) => Some(json!({ "Ref": reference(*target) })),
        Variant::Content(content) => match content.value() {
            ContentType::Object(_) => None,
            _ => plain(value),
        },
        Variant::Tags(tags) => {
            let mut tags: Vec<&str> = tags.iter().collect();
            tags.sort_unstable();
            Some(json!({ "Tags": tags }))
        }
        Variant::Font(font) => {
            let (weight, style) = (format!("{:?}", font.weight), format!("{:?}", font.style));
            Some(json!({ "Font": { "family": font.family, "weight": weight, "style": style } }))
        }
        Variant::SharedString(_)
        | Variant::OptionalCFrame(_)
        | Variant::UniqueId(_)
        | Variant::SecurityCapabilities(_)
        | Variant::MaterialColors(_)
        | Variant::NetAssetRef(_)
        | Variant::Attributes(_) => None,
        _ if is_finite(value) => plain(value),
        Variant::Float32(number) => Some(json!({ "Float32": float((*number).into()) })),
        Variant::Float64(number) => Some(json!({ "Float64": float(*number) })),
        Variant::Vector2(Vector2 { x, y }) => Some(json!({ "Vector2": floats(&[*x, *y]) })),
        Variant::Vector3(Vector3 { x, y, z }) => Some(json!({ "Vector3": floats(&[*x, *y, *z]) })),
        Variant::NumberRange(range) => Some(json!({ "NumberRange": floats(&[range.min, range.max]) })),
        _ => None,
    }
}

fn reference(target: Ref) -> String {
    if target.is_none() { String::new() } else { node_id(target).to_string() }
}

/// As text and back: 32-bit floats keep their short form.
fn plain(value: &Variant) -> Option<Value> {
    serde_json::from_str(&serde_json::to_string(value).ok()?).ok()
}

/// JSON has null for a number that is not finite.
fn is_finite(value: &Variant) -> bool {
    let no_null = |text: String| !text.contains("null");
    match value {
        Variant::Bool(_)
        | Variant::String(_)
        | Variant::Enum(_)
        | Variant::Int32(_)
        | Variant::Int64(_)
        | Variant::ContentId(_)
        | Variant::BinaryString(_) => true,
        other => serde_json::to_string(other).is_ok_and(no_null),
    }
}

fn floats(numbers: &[f32]) -> Value {
    numbers.iter().map(|number| float((*number).into())).collect()
}

fn float(number: f64) -> Value {
    if number.is_finite() {
        json!(number)
    } else if number.is_nan() {
        json!("nan")
    } else {
        json!(if number > 0.0 { "inf" } else { "-inf" })
    }
}

#[cfg(test)]
mod tests {
    use rbx_dom_weak::types::{CFrame, Enum, Matrix3, NumberRange, Tags};

    use super::*;

    #[test]
    fn values_are_written_as_rbx_dom_writes_them() {
        let encoded = |value: Variant| encode(&value).expect("a plugin knows it");
        assert_eq!(encoded(Variant::Vector3(Vector3::new(1.0, 0.1, 3.0))), json!({ "Vector3": [1.0, 0.1, 3.0] }));
        assert_eq!(encoded(Variant::Enum(Enum::from_u32(256))), json!({ "Enum": 256 }));
        let frame = CFrame::new(Vector3::new(0.0, 5.0, 0.0), Matrix3::identity());
        assert_eq!(encoded(Variant::CFrame(frame))["CFrame"]["position"], json!([0.0, 5.0, 0.0]));
        let tags = Tags::from(vec!["b".to_owned(), "a".to_owned()]);
        assert_eq!(encoded(Variant::Tags(tags)), json!({ "Tags": ["a", "b"] }), "in one order");
        assert_eq!(encoded(Variant::Ref(Ref::none())), json!({ "Ref": "" }));
    }

    #[test]
    fn numbers_that_json_cannot_hold_are_texts() {
        assert_eq!(encode(&Variant::Float32(f32::INFINITY)), Some(json!({ "Float32": "inf" })));
        assert_eq!(encode(&Variant::Float64(f64::NAN)), Some(json!({ "Float64": "nan" })));
        let range = NumberRange::new(0.0, f32::INFINITY);
        assert_eq!(encode(&Variant::NumberRange(range)), Some(json!({ "NumberRange": [0.0, "inf"] })));
    }
}
