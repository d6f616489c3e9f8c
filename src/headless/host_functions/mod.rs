//! What the Luau half of the simulation may ask of the Rust half.
//!
//! Each prelude file gets the table made here as its one argument; scripts never see it.

mod data;
mod history;
mod network;
mod play;
mod running;
mod scripts;

use super::world::World;
use mlua::prelude::*;

/// Make the table of host functions.
pub(super) fn create(lua: &Lua, world: &World) -> LuaResult<LuaTable> {
    let host = lua.create_table()?;
    host.raw_set("methods", &world.members.methods)?;
    host.raw_set("getters", &world.members.getters)?;
    host.raw_set("setters", &world.members.setters)?;
    running::add(lua, &host)?;
    scripts::add(lua, &host)?;
    data::add(lua, &host)?;
    history::add(lua, &host)?;
    network::add(lua, &host)?;
    play::add(lua, &host)?;
    Ok(host)
}

/// Put a Rust function into the table.
fn add<F, A, R>(lua: &Lua, host: &LuaTable, name: &str, function: F) -> LuaResult<()>
where
    F: Fn(&Lua, A) -> LuaResult<R> + 'static,
    A: FromLuaMulti,
    R: IntoLuaMulti,
{
    host.raw_set(name, lua.create_function(function)?)
}
