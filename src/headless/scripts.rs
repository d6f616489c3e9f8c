//! Script contexts: who a piece of code runs for, and the environment it sees.
//!
//! The command bar and each load of the plugin are contexts of their own: each has
//! its own `_G`, `shared` and module cache, and nothing of an unloaded plugin runs on.

use super::{
    errors::raise,
    world::{World, world},
};
use mlua::{chunk::ChunkMode, prelude::*};
use rbx_dom_weak::types::Ref;
use std::{cell::RefCell, collections::HashMap};

/// The registry key of the global `Headless`, which only the command bar sees.
pub(super) const HEADLESS: &str = "headless.headless";

/// Whose code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ContextId {
    /// `HeadlessStudio::run`.
    CommandBar,
    /// One load of the plugin.
    Plugin(u64),
}

/// What the scripts of one context share.
#[derive(Clone)]
pub(super) struct Context {
    globals: LuaTable,
    shared: LuaTable,
    /// Module instance -> its state; see `prelude/modules.luau`.
    pub(super) modules: LuaTable,
    /// The `plugin` global, for plugin scripts.
    pub(super) plugin: LuaValue,
}

/// All contexts that are alive.
#[derive(Default)]
pub(super) struct Contexts(RefCell<HashMap<ContextId, Context>>);

impl Contexts {
    pub(super) fn add(&self, lua: &Lua, id: ContextId, plugin: LuaValue) -> LuaResult<()> {
        let context =
            Context { globals: lua.create_table()?, shared: lua.create_table()?, modules: lua.create_table()?, plugin };
        self.0.borrow_mut().insert(id, context);
        Ok(())
    }

    pub(super) fn remove(&self, id: ContextId) -> Option<Context> {
        self.0.borrow_mut().remove(&id)
    }

    pub(super) fn get(&self, id: ContextId) -> LuaResult<Context> {
        match self.0.borrow().get(&id) {
            Some(context) => Ok(context.clone()),
            None => raise("this script's plugin was unloaded"),
        }
    }
}

/// What a chunk may see beyond the shared globals.
pub(super) enum Sees {
    /// A script of a plugin: `script` and `plugin`.
    Plugin(LuaValue),
    /// A module: `script`. The documentation gives `plugin` to plugin scripts only.
    Module(LuaValue),
    /// The command bar: neither, but `Headless`.
    CommandBar,
    /// A chunk whose maker is not known.
    Nothing,
}

/// A fresh environment over the read-only globals.
pub(super) fn environment(lua: &Lua, context: ContextId, sees: Sees) -> LuaResult<LuaTable> {
    let shared = world(lua).contexts.get(context)?;
    let environment = lua.create_table()?;
    environment.raw_set("_G", shared.globals)?;
    environment.raw_set("shared", shared.shared)?;
    match sees {
        Sees::Plugin(script) => {
            environment.raw_set("script", script)?;
            environment.raw_set("plugin", shared.plugin)?;
        }
        Sees::Module(script) => environment.raw_set("script", script)?,
        Sees::CommandBar => {
            environment.raw_set("Headless", lua.named_registry_value::<LuaTable>(HEADLESS)?)?;
        }
        Sees::Nothing => {}
    }
    let metatable = lua.create_table()?;
    metatable.raw_set("__index", lua.globals())?;
    metatable.raw_set("__metatable", "The metatable is locked")?;
    environment.set_metatable(Some(metatable))?;
    Ok(environment)
}

/// Compile Luau text; never bytecode.
pub(super) fn compile(lua: &Lua, source: &[u8], name: &str, environment: LuaTable) -> LuaResult<LuaFunction> {
    lua.load(source).set_name(name).set_mode(ChunkMode::Text).set_environment(environment).into_function()
}

/// Compile the source of a script under its full name, as error messages show it.
pub(super) fn compile_script(
    lua: &Lua,
    world: &World,
    script: Ref,
    context: ContextId,
    is_module: bool,
) -> LuaResult<LuaFunction> {
    let value = world.to_lua(lua, script)?;
    let sees = if is_module { Sees::Module(value) } else { Sees::Plugin(value) };
    let environment = environment(lua, context, sees)?;
    compile(lua, world.source(script).as_bytes(), &format!("={}", world.full_name(script)), environment)
}
