//! Values of the DataModel and of Luau, in both directions.
//!
//! Datatypes are lune-roblox's; its own conversions are private to it.

use super::errors::raise;
use lune_roblox::datatypes::types as luau;
use mlua::prelude::*;
use rbx_dom_weak::types::{
    BinaryString, CFrame, Content, ContentId, EnumItem, Matrix3, PhysicalProperties, Variant, VariantType, Vector2,
    Vector3,
};

/// Strings of this many bytes cannot be assigned to a property; `UpdateSourceAsync` can.
pub(super) const STRING_LIMIT: usize = 200_000;

/// The text Roblox gives for a string property that is too long.
pub(super) fn check_length(property: &str, length: usize) -> LuaResult<()> {
    if length < STRING_LIMIT {
        return Ok(());
    }
    raise(format!(
        "Unable to assign property {property}. Provided string length ({length}) is greater than or equal to max length ({STRING_LIMIT})"
    ))
}

/// The type of a value as `typeof` gives it.
pub(super) fn describe_type(value: &LuaValue) -> String {
    match value {
        LuaValue::UserData(userdata) => {
            userdata.type_name().map_or_else(|_| "userdata".to_owned(), |name| name.to_string_lossy())
        }
        LuaValue::Integer(_) => "number".to_owned(),
        other => other.type_name().to_owned(),
    }
}

/// An item of an enum; made through Luau, which keeps one value per item.
pub(super) fn enum_item(lua: &Lua, enum_name: &str, value: u32) -> LuaResult<LuaValue> {
    let all: LuaAnyUserData = lua.globals().get("Enum")?;
    let one: LuaAnyUserData = all.get(enum_name)?;
    one.call_method("FromValue", value)
}

/// The enum item in a value, if it is one.
pub(super) fn as_enum_item(value: &LuaValue) -> Option<EnumItem> {
    match value {
        LuaValue::UserData(userdata) => userdata.borrow::<luau::EnumItem>().ok().map(|item| item.clone().into()),
        _ => None,
    }
}

pub(super) fn as_number(value: &LuaValue) -> Option<f64> {
    match value {
        LuaValue::Number(number) => Some(*number),
        #[expect(clippy::cast_precision_loss, reason = "Luau numbers are doubles")]
        LuaValue::Integer(number) => Some(*number as f64),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "Luau numbers are doubles")]
fn wide(number: i64) -> LuaValue {
    LuaValue::Number(number as f64)
}

#[expect(clippy::cast_possible_truncation, reason = "a property of a narrower type saturates")]
fn narrow(number: f64, to: VariantType) -> Variant {
    match to {
        VariantType::Int32 => Variant::Int32(number as i32),
        VariantType::Int64 => Variant::Int64(number as i64),
        VariantType::Float32 => Variant::Float32(number as f32),
        _ => Variant::Float64(number),
    }
}

fn bytes(lua: &Lua, bytes: &[u8]) -> LuaResult<LuaValue> {
    Ok(LuaValue::String(lua.create_string(bytes)?))
}

/// Declares the datatypes that pass as they are: `Variant::$name` <-> lune's `$name`.
macro_rules! datatypes {
    ($($name:ident),*) => {
        fn datatype_to_lua(lua: &Lua, value: &Variant) -> LuaResult<LuaValue> {
            match value {
                $(Variant::$name(value) => {
                    Ok(LuaValue::UserData(lua.create_userdata(luau::$name::from(value.clone()))?))
                })*
                other => raise(format!("a value of type {:?} is not simulated by the headless Studio", other.ty())),
            }
        }

        fn datatype_from_lua(value: &LuaAnyUserData, to: VariantType) -> Option<Variant> {
            match to {
                $(VariantType::$name => {
                    Some(Variant::$name(value.borrow::<luau::$name>().ok()?.clone().into()))
                })*
                _ => None,
            }
        }

        const DATATYPES: &[VariantType] = &[$(VariantType::$name),*];
    };
}

datatypes!(
    Axes,
    BrickColor,
    CFrame,
    Color3,
    ColorSequence,
    Content,
    Faces,
    Font,
    NumberRange,
    NumberSequence,
    Ray,
    Rect,
    Region3,
    Region3int16,
    UDim,
    UDim2,
    UniqueId,
    Vector2,
    Vector2int16,
    Vector3,
    Vector3int16
);

/// The Luau value of a stored one. `Ref` and `Enum` need to know the property: see `properties.rs`.
pub(super) fn to_lua(lua: &Lua, value: &Variant) -> LuaResult<LuaValue> {
    match value {
        Variant::Bool(value) => Ok(LuaValue::Boolean(*value)),
        Variant::Int32(value) => Ok(wide((*value).into())),
        Variant::Int64(value) => Ok(wide(*value)),
        Variant::Float32(value) => Ok(LuaValue::Number((*value).into())),
        Variant::Float64(value) => Ok(LuaValue::Number(*value)),
        Variant::String(value) => value.as_str().into_lua(lua),
        Variant::BinaryString(value) => bytes(lua, value.as_ref()),
        Variant::SharedString(value) => bytes(lua, value.data()),
        Variant::ContentId(value) => value.as_str().into_lua(lua),
        Variant::EnumItem(value) => enum_item(lua, &value.ty, value.value),
        Variant::Color3uint8(value) => Ok(LuaValue::UserData(lua.create_userdata(luau::Color3::from(*value))?)),
        Variant::OptionalCFrame(None) | Variant::PhysicalProperties(PhysicalProperties::Default) => Ok(LuaValue::Nil),
        Variant::OptionalCFrame(Some(value)) => {
            Ok(LuaValue::UserData(lua.create_userdata(luau::CFrame::from(*value))?))
        }
        Variant::PhysicalProperties(PhysicalProperties::Custom(value)) => {
            Ok(LuaValue::UserData(lua.create_userdata(luau::PhysicalProperties::from(*value))?))
        }
        other => datatype_to_lua(lua, other),
    }
}

/// The stored value of a Luau one; `None` if it does not fit the type.
pub(super) fn from_lua(value: &LuaValue, to: VariantType) -> Option<Variant> {
    match (to, value) {
        (VariantType::Bool, LuaValue::Boolean(value)) => Some(Variant::Bool(*value)),
        (VariantType::Int32 | VariantType::Int64 | VariantType::Float32 | VariantType::Float64, value) => {
            as_number(value).map(|number| narrow(number, to))
        }
        // A Luau string need not be UTF-8; the file formats store either form alike.
        (VariantType::String, LuaValue::String(value)) => Some(match value.to_str() {
            Ok(text) => Variant::String(text.to_owned()),
            Err(_) => Variant::BinaryString(BinaryString::from(value.as_bytes().to_vec())),
        }),
        (VariantType::String, value) => as_number(value).map(|number| Variant::String(number.to_string())),
        (VariantType::BinaryString, LuaValue::String(value)) => {
            Some(Variant::BinaryString(BinaryString::from(value.as_bytes().to_vec())))
        }
        (VariantType::ContentId, LuaValue::String(value)) => {
            Some(Variant::ContentId(ContentId::from(value.to_string_lossy())))
        }
        (VariantType::Content, LuaValue::String(value)) => {
            Some(Variant::Content(Content::from(value.to_string_lossy())))
        }
        (VariantType::OptionalCFrame, LuaValue::Nil) => Some(Variant::OptionalCFrame(None)),
        (VariantType::PhysicalProperties, LuaValue::Nil) => {
            Some(Variant::PhysicalProperties(PhysicalProperties::Default))
        }
        (_, LuaValue::UserData(value)) => userdata_from_lua(value, to),
        _ => None,
    }
}

fn userdata_from_lua(value: &LuaAnyUserData, to: VariantType) -> Option<Variant> {
    match to {
        VariantType::Color3uint8 => {
            let color: rbx_dom_weak::types::Color3 = (*value.borrow::<luau::Color3>().ok()?).into();
            Some(Variant::Color3uint8(color.into()))
        }
        VariantType::OptionalCFrame => {
            Some(Variant::OptionalCFrame(Some((*value.borrow::<luau::CFrame>().ok()?).into())))
        }
        VariantType::PhysicalProperties => Some(Variant::PhysicalProperties(PhysicalProperties::Custom(
            (*value.borrow::<luau::PhysicalProperties>().ok()?).into(),
        ))),
        _ => datatype_from_lua(value, to),
    }
}

/// The types an attribute may have (creator documentation).
const ATTRIBUTE_DATATYPES: [VariantType; 12] = [
    VariantType::BrickColor,
    VariantType::CFrame,
    VariantType::Color3,
    VariantType::ColorSequence,
    VariantType::Font,
    VariantType::NumberRange,
    VariantType::NumberSequence,
    VariantType::Rect,
    VariantType::UDim,
    VariantType::UDim2,
    VariantType::Vector2,
    VariantType::Vector3,
];

/// The attribute of a Luau value; `None` if attributes cannot hold it.
pub(super) fn attribute_from_lua(value: &LuaValue) -> Option<Variant> {
    match value {
        LuaValue::Boolean(_) => from_lua(value, VariantType::Bool),
        LuaValue::Integer(_) | LuaValue::Number(_) => from_lua(value, VariantType::Float64),
        LuaValue::String(_) => from_lua(value, VariantType::String),
        LuaValue::UserData(userdata) => as_enum_item(value)
            .map(Variant::EnumItem)
            .or_else(|| ATTRIBUTE_DATATYPES.iter().find_map(|to| datatype_from_lua(userdata, *to))),
        _ => None,
    }
}

/// The datatype in a Luau value, whichever it is.
pub(super) fn any_datatype(value: &LuaValue) -> Option<Variant> {
    let LuaValue::UserData(userdata) = value else { return None };
    as_enum_item(value)
        .map(Variant::EnumItem)
        .or_else(|| DATATYPES.iter().find_map(|to| datatype_from_lua(userdata, *to)))
        .or_else(|| userdata_from_lua(userdata, VariantType::PhysicalProperties))
}

/// The value of a property that has neither a stored value nor a default in the database.
pub(super) fn zero(ty: VariantType) -> Option<Variant> {
    Some(match ty {
        VariantType::Bool => Variant::Bool(false),
        VariantType::String => Variant::String(String::new()),
        VariantType::BinaryString => Variant::BinaryString(BinaryString::new()),
        VariantType::ContentId => Variant::ContentId(ContentId::new()),
        VariantType::Int32 | VariantType::Int64 | VariantType::Float32 | VariantType::Float64 => narrow(0.0, ty),
        VariantType::Vector2 => Variant::Vector2(Vector2::new(0.0, 0.0)),
        VariantType::Vector3 => Variant::Vector3(Vector3::new(0.0, 0.0, 0.0)),
        VariantType::CFrame => Variant::CFrame(CFrame::new(Vector3::new(0.0, 0.0, 0.0), Matrix3::identity())),
        VariantType::OptionalCFrame => Variant::OptionalCFrame(None),
        VariantType::PhysicalProperties => Variant::PhysicalProperties(PhysicalProperties::Default),
        _ => return None,
    })
}
