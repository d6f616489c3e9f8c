//! Script contexts: who a piece of code runs for, and the environment it sees.
//!
//! The command bar, each load of the plugin and the game's scripts are contexts of their own: each
//! has its own `_G`, `shared` and module cache, and nothing of an unloaded plugin runs on.

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
    /// One script of the game; all of them share what a context has.
    Script(u64),
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

impl Context {
    fn new(lua: &Lua, plugin: LuaValue) -> LuaResult<Self> {
        Ok(Self { globals: lua.create_table()?, shared: lua.create_table()?, modules: lua.create_table()?, plugin })
    }
}

/// All contexts that are alive.
#[derive(Default)]
pub(super) struct Contexts {
    known: RefCell<HashMap<ContextId, Context>>,
    game: RefCell<Option<Context>>,
}

impl Contexts {
    pub(super) fn add(&self, lua: &Lua, id: ContextId, plugin: LuaValue) -> LuaResult<()> {
        let context = Context::new(lua, plugin)?;
        self.known.borrow_mut().insert(id, context);
        Ok(())
    }

    /// A script of the game.
    pub(super) fn add_script(&self, lua: &Lua, id: ContextId) -> LuaResult<()> {
        let mut game = self.game.borrow_mut();
        let context = match &*game {
            Some(context) => context.clone(),
            None => game.insert(Context::new(lua, LuaValue::Nil)?).clone(),
        };
        self.known.borrow_mut().insert(id, context);
        Ok(())
    }

    pub(super) fn remove(&self, id: ContextId) -> Option<Context> {
        self.known.borrow_mut().remove(&id)
    }

    pub(super) fn get(&self, id: ContextId) -> LuaResult<Context> {
        match self.known.borrow().get(&id) {
            Some(context) => Ok(context.clone()),
            None => raise("this script's plugin was unloaded"),
        }
    }
}

/// What a chunk may see beyond the shared globals.
pub(super) enum Sees {
    /// A script of a plugin: `script` and `plugin`.
    Plugin(LuaValue),
    /// A module, or a script of the game: `script`. The documentation gives `plugin` to plugin scripts only.
    Script(LuaValue),
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
        Sees::Script(script) => environment.raw_set("script", script)?,
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
    sees: fn(LuaValue) -> Sees,
) -> LuaResult<LuaFunction> {
    let environment = environment(lua, context, sees(world.to_lua(lua, script)?))?;
    compile(lua, world.source(script).as_bytes(), &format!("={}", world.full_name(script)), environment)
}
