//! Values on their way from one DataModel to another: copies, as `RemoteEvent` makes them.
//!
//! A table is an array or it has string keys; what else it has is lost, and so are metatables and
//! functions. An instance is the same one over there, or `nil` where it does not exist.

use super::{
    errors::raise,
    instance::as_instance,
    values::{self, as_number},
    world::World,
};
use mlua::prelude::*;
use rbx_dom_weak::types::{Ref, Variant};

/// Deeper tables are taken for cyclic ones.
const DEPTH_LIMIT: usize = 200;

/// One value, without a VM.
#[derive(Debug, Clone, Default)]
pub(super) enum Carried {
    #[default]
    Nil,
    Bool(bool),
    Number(f64),
    String(Vec<u8>),
    Buffer(Vec<u8>),
    Instance(Ref),
    Datatype(Variant),
    List(Vec<Carried>),
    Dictionary(Vec<(Vec<u8>, Carried)>),
}

impl Carried {
    pub(super) fn take(lua: &Lua, value: &LuaValue) -> LuaResult<Self> {
        take(lua, value, 0)
    }

    /// The value in another DataModel.
    pub(super) fn give(&self, lua: &Lua, world: &World) -> LuaResult<LuaValue> {
        Ok(match self {
            Self::Nil => LuaValue::Nil,
            Self::Bool(value) => LuaValue::Boolean(*value),
            Self::Number(value) => LuaValue::Number(*value),
            Self::String(bytes) => LuaValue::String(lua.create_string(bytes)?),
            Self::Buffer(bytes) => LuaValue::Buffer(lua.create_buffer(bytes)?),
            Self::Instance(referent) => world.to_lua(lua, *referent)?,
            Self::Datatype(value) => values::to_lua(lua, value)?,
            Self::List(items) => {
                let table = lua.create_table_with_capacity(items.len(), 0)?;
                for (index, item) in items.iter().enumerate() {
                    table.raw_set(index + 1, item.give(lua, world)?)?;
                }
                LuaValue::Table(table)
            }
            Self::Dictionary(fields) => {
                let table = lua.create_table_with_capacity(0, fields.len())?;
                for (key, value) in fields {
                    table.raw_set(lua.create_string(key)?, value.give(lua, world)?)?;
                }
                LuaValue::Table(table)
            }
        })
    }
}

/// Arguments or results: `nil`s among them keep their places.
pub(super) fn take_all(lua: &Lua, values: &LuaMultiValue) -> LuaResult<Vec<Carried>> {
    values.iter().map(|value| Carried::take(lua, value)).collect()
}

pub(super) fn give_all(lua: &Lua, world: &World, values: &[Carried]) -> LuaResult<LuaMultiValue> {
    values.iter().map(|value| value.give(lua, world)).collect()
}

fn take(lua: &Lua, value: &LuaValue, depth: usize) -> LuaResult<Carried> {
    if depth > DEPTH_LIMIT {
        return raise("tables cannot be cyclic");
    }
    Ok(match value {
        LuaValue::Boolean(value) => Carried::Bool(*value),
        LuaValue::Integer(_) | LuaValue::Number(_) => Carried::Number(as_number(value).unwrap_or_default()),
        LuaValue::String(text) => Carried::String(text.as_bytes().to_vec()),
        LuaValue::Buffer(buffer) => Carried::Buffer(buffer.to_vec()),
        LuaValue::Table(table) => take_table(lua, table, depth + 1)?,
        LuaValue::UserData(userdata) => match as_instance(value) {
            Some(referent) => Carried::Instance(referent),
            None => match values::any_datatype(value) {
                Some(value) => Carried::Datatype(value),
                None => {
                    let name = values::describe_type(&LuaValue::UserData(userdata.clone()));
                    return raise(format!(
                        "a {name} that goes to another DataModel is not simulated by the headless Studio"
                    ));
                }
            },
        },
        // Functions and threads do not travel.
        _ => Carried::Nil,
    })
}

fn take_table(lua: &Lua, table: &LuaTable, depth: usize) -> LuaResult<Carried> {
    let length = table.raw_len();
    if length > 0 {
        let items = (1..=length).map(|index| take(lua, &table.raw_get(index)?, depth));
        return Ok(Carried::List(items.collect::<LuaResult<_>>()?));
    }
    let mut fields = Vec::new();
    for pair in table.pairs::<LuaValue, LuaValue>() {
        let (key, value) = pair?;
        let key = match &key {
            LuaValue::String(text) => text.as_bytes().to_vec(),
            other => other.to_string()?.into_bytes(),
        };
        fields.push((key, take(lua, &value, depth)?));
    }
    Ok(Carried::Dictionary(fields))
}
