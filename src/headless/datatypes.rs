//! lune-roblox's datatypes with what Roblox adds to them: old names of members, and an error for
//! names there are not.

use super::{errors::raise, values::describe_type};
use lune_roblox::datatypes::types as luau;
use mlua::prelude::*;
use rbx_dom_weak::types as dom;

/// Old names that still work, and what they are called now (creator documentation, "deprecated").
type OldNames = &'static [(&'static str, &'static str)];

const NONE: OldNames = &[];
const VECTOR: OldNames =
    &[("x", "X"), ("y", "Y"), ("z", "Z"), ("magnitude", "Magnitude"), ("unit", "Unit"), ("lerp", "Lerp")];
const COLOR: OldNames = &[("r", "R"), ("g", "G"), ("b", "B"), ("lerp", "Lerp")];
const CFRAME: OldNames = &[
    ("p", "Position"),
    ("x", "X"),
    ("y", "Y"),
    ("z", "Z"),
    ("lookVector", "LookVector"),
    ("rightVector", "RightVector"),
    ("upVector", "UpVector"),
    ("inverse", "Inverse"),
    ("lerp", "Lerp"),
    ("toWorldSpace", "ToWorldSpace"),
    ("toObjectSpace", "ToObjectSpace"),
    ("pointToWorldSpace", "PointToWorldSpace"),
    ("pointToObjectSpace", "PointToObjectSpace"),
    ("vectorToWorldSpace", "VectorToWorldSpace"),
    ("vectorToObjectSpace", "VectorToObjectSpace"),
    ("toEulerAnglesXYZ", "ToEulerAnglesXYZ"),
    ("components", "GetComponents"),
];

/// Must run before the first value of any of these types is made.
pub(super) fn register(lua: &Lua) -> LuaResult<()> {
    vectors(lua)?;
    let (black, range) = (dom::Color3::new(0.0, 0.0, 0.0), dom::NumberRange::new(0.0, 0.0));
    add(lua, "Axes", NONE, luau::Axes::from(dom::Axes::empty()))?;
    add(lua, "BrickColor", NONE, luau::BrickColor::from(dom::BrickColor::MediumStoneGrey))?;
    add(lua, "Color3", COLOR, luau::Color3::from(black))?;
    let (color, number) =
        (dom::ColorSequenceKeypoint::new(0.0, black), dom::NumberSequenceKeypoint::new(0.0, 0.0, 0.0));
    add(lua, "ColorSequenceKeypoint", NONE, luau::ColorSequenceKeypoint::from(color))?;
    add(lua, "ColorSequence", NONE, luau::ColorSequence::from(dom::ColorSequence { keypoints: vec![color, color] }))?;
    add(lua, "Content", NONE, luau::Content::from(dom::Content::none()))?;
    let item = dom::EnumItem { ty: "Axis".to_owned(), value: 0 };
    add(lua, "EnumItem", NONE, luau::EnumItem::from(item))?;
    add(lua, "Faces", NONE, luau::Faces::from(dom::Faces::empty()))?;
    add(lua, "Font", NONE, luau::Font::from(dom::Font::default()))?;
    add(lua, "NumberRange", NONE, luau::NumberRange::from(range))?;
    add(lua, "NumberSequenceKeypoint", NONE, luau::NumberSequenceKeypoint::from(number))?;
    let sequence = dom::NumberSequence { keypoints: vec![number, number] };
    add(lua, "NumberSequence", NONE, luau::NumberSequence::from(sequence))?;
    add(lua, "UDim", NONE, luau::UDim::from(dom::UDim::new(0.0, 0)))?;
    let size = dom::UDim2::new(dom::UDim::new(0.0, 0), dom::UDim::new(0.0, 0));
    add(lua, "UDim2", NONE, luau::UDim2::from(size))?;
    add(lua, "UniqueId", NONE, luau::UniqueId::default())
}

fn vectors(lua: &Lua) -> LuaResult<()> {
    let (plane, space) = (dom::Vector2::new(0.0, 0.0), dom::Vector3::new(0.0, 0.0, 0.0));
    let whole = dom::Vector3int16::new(0, 0, 0);
    add(lua, "Vector2", VECTOR, luau::Vector2::from(plane))?;
    add(lua, "Vector3", VECTOR, luau::Vector3::from(space))?;
    add(lua, "Vector2int16", VECTOR, luau::Vector2int16::from(dom::Vector2int16::new(0, 0)))?;
    add(lua, "Vector3int16", VECTOR, luau::Vector3int16::from(whole))?;
    add(lua, "CFrame", CFRAME, luau::CFrame::from(dom::CFrame::new(space, dom::Matrix3::identity())))?;
    add(lua, "Ray", NONE, luau::Ray::from(dom::Ray::new(space, space)))?;
    add(lua, "Rect", NONE, luau::Rect::from(dom::Rect::new(plane, plane)))?;
    add(lua, "Region3", NONE, luau::Region3::from(dom::Region3::new(space, space)))?;
    add(lua, "Region3int16", NONE, luau::Region3int16::from(dom::Region3int16::new(whole, whole)))
}

/// `sample` is any value of the type: the VM makes the type's metatable with its first value.
fn add<T: LuaUserData + 'static>(lua: &Lua, name: &'static str, old_names: OldNames, sample: T) -> LuaResult<()> {
    lua.register_userdata_type::<T>(|registry| {
        T::register(registry);
        // Asked for what the type itself does not know.
        registry.add_meta_function(LuaMetaMethod::Index, move |_, (value, key): (LuaAnyUserData, LuaValue)| {
            let LuaValue::String(key) = &key else {
                return raise(format!("invalid argument #2 (string expected, got {})", describe_type(&key)));
            };
            let key = key.to_string_lossy();
            match old_names.iter().find(|(old, _)| *old == key) {
                Some((_, now)) => value.get::<LuaValue>(*now),
                None => raise(format!("{key} is not a valid member of {name}")),
            }
        });
    })?;
    lua.create_any_userdata(sample).map(drop)
}
