//! Building the Luau VM: datatypes, host functions, prelude, then the sandbox.

use super::{
    datatypes, datetime, host_functions, instance_methods, records,
    scripts::{ContextId, HEADLESS},
    world::World,
};
use mlua::prelude::*;
use std::rc::Rc;

/// The Luau half of the simulation, in the order it is run.
const PRELUDE: [(&str, &str); 18] = [
    ("errors", include_str!("prelude/errors.luau")),
    ("tasks", include_str!("prelude/tasks.luau")),
    ("globals", include_str!("prelude/globals.luau")),
    ("modules", include_str!("prelude/modules.luau")),
    ("instances", include_str!("prelude/instances.luau")),
    ("data_model", include_str!("prelude/data_model.luau")),
    ("debris", include_str!("prelude/debris.luau")),
    ("encoding", include_str!("prelude/encoding.luau")),
    ("localization", include_str!("prelude/localization.luau")),
    ("network", include_str!("prelude/network.luau")),
    ("history", include_str!("prelude/history.luau")),
    ("editor", include_str!("prelude/editor.luau")),
    ("selection", include_str!("prelude/selection.luau")),
    ("tweens", include_str!("prelude/tweens.luau")),
    ("players", include_str!("prelude/players.luau")),
    ("remotes", include_str!("prelude/remotes.luau")),
    ("play_tests", include_str!("prelude/play_tests.luau")),
    ("plugin", include_str!("prelude/plugin.luau")),
];

/// Make `lua` a Studio: afterwards its globals are read-only. Returns the function that
/// runs a command: `function(id, chunk)`.
pub(super) fn set_up(lua: &Lua, world: &Rc<World>) -> LuaResult<LuaFunction> {
    lua.set_app_data(world.clone());
    datatypes::register(lua)?;
    for pair in lune_roblox::module(lua.clone())?.pairs::<String, LuaValue>() {
        let (name, value) = pair?;
        // The instances are ours.
        if name != "Instance" {
            lua.globals().raw_set(name, value)?;
        }
    }
    instance_methods::register(lua, world)?;
    records::register(lua)?;
    datetime::register(lua)?;
    let game = world.to_lua(lua, world.game)?;
    lua.globals().raw_set("game", &game)?;
    lua.globals().raw_set("Game", game)?;

    let host = host_functions::create(lua, world)?;
    let headless = lua.create_table()?;
    host.raw_set("headless", &headless)?;
    lua.set_named_registry_value(HEADLESS, headless)?;
    world.contexts.add(lua, ContextId::CommandBar, LuaValue::Nil)?;
    for (name, source) in PRELUDE {
        lua.load(source).set_name(format!("=headless.{name}")).call::<()>(&host)?;
    }
    let watched = world.clone();
    lua.set_interrupt(move |lua| watched.scheduler.interrupt(lua));
    lua.sandbox(true)?;
    host.raw_get("runCommand")
}
