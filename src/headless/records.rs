//! Small datatypes lune-roblox lacks: values with read-only fields.

use super::errors::raise;
use mlua::prelude::*;

/// Declares a datatype of named fields with a `new` that takes them in order.
macro_rules! record {
    ($name:ident, $type:literal, [$($field:literal = $default:expr),* $(,)?]) => {
        struct $name(Vec<(&'static str, LuaValue)>);

        impl $name {
            fn new(lua: &Lua, given: &LuaMultiValue) -> LuaResult<Self> {
                let defaults: Vec<(&'static str, LuaValue)> = vec![$(($field, ($default)(lua)?)),*];
                let fields = defaults.into_iter().enumerate().map(|(index, (name, default))| {
                    (name, given.get(index).filter(|value| !value.is_nil()).cloned().unwrap_or(default))
                });
                Ok(Self(fields.collect()))
            }
        }

        impl LuaUserData for $name {
            fn add_fields<F: LuaUserDataFields<Self>>(fields: &mut F) {
                fields.add_meta_field(LuaMetaMethod::Type, $type);
            }

            fn add_methods<M: LuaUserDataMethods<Self>>(methods: &mut M) {
                methods.add_meta_method(LuaMetaMethod::Index, |_, this, key: String| {
                    match this.0.iter().find(|(name, _)| *name == key) {
                        Some((_, value)) => Ok(value.clone()),
                        None => raise(format!("{key} is not a valid member of {}", $type)),
                    }
                });
                methods.add_meta_method(LuaMetaMethod::ToString, |_, _, ()| Ok($type));
            }
        }
    };
}

fn number(value: f64) -> impl Fn(&Lua) -> LuaResult<LuaValue> {
    move |_| Ok(LuaValue::Number(value))
}

fn boolean(value: bool) -> impl Fn(&Lua) -> LuaResult<LuaValue> {
    move |_| Ok(LuaValue::Boolean(value))
}

fn item(enum_name: &'static str, value: u32) -> impl Fn(&Lua) -> LuaResult<LuaValue> {
    move |lua| super::values::enum_item(lua, enum_name, value)
}

record!(
    TweenInfo,
    "TweenInfo",
    [
        "Time" = number(1.0),
        "EasingStyle" = item("EasingStyle", 3),
        "EasingDirection" = item("EasingDirection", 1),
        "RepeatCount" = number(0.0),
        "Reverses" = boolean(false),
        "DelayTime" = number(0.0),
    ]
);

record!(
    DockWidgetPluginGuiInfo,
    "DockWidgetPluginGuiInfo",
    [
        "InitialDockState" = item("InitialDockState", 0),
        "InitialEnabled" = boolean(false),
        "InitialEnabledShouldOverrideRestore" = boolean(false),
        "FloatingXSize" = number(0.0),
        "FloatingYSize" = number(0.0),
        "MinWidth" = number(0.0),
        "MinHeight" = number(0.0),
    ]
);

/// Make the globals of these types.
pub(super) fn register(lua: &Lua) -> LuaResult<()> {
    let constructor = |name: &str, new: LuaFunction| -> LuaResult<()> {
        let table = lua.create_table()?;
        table.raw_set("new", new)?;
        table.set_readonly(true);
        lua.globals().raw_set(name, table)
    };
    constructor("TweenInfo", lua.create_function(|lua, given: LuaMultiValue| TweenInfo::new(lua, &given))?)?;
    constructor(
        "DockWidgetPluginGuiInfo",
        lua.create_function(|lua, given: LuaMultiValue| DockWidgetPluginGuiInfo::new(lua, &given))?,
    )
}
