//! Compiling, modules, script text and plugin settings.

use super::add as put;
use crate::headless::{
    errors::{raise, text_of},
    json, scripts,
    world::world,
};
use mlua::prelude::*;
use rbx_dom_weak::types::Variant;

type Instance = LuaUserDataRef<crate::headless::instance::Inst>;

pub(super) fn add(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    loading(lua, host)?;
    texts(lua, host)?;
    settings(lua, host)
}

fn loading(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "modules", |lua, ()| {
        let world = world(lua);
        Ok(world.contexts.get(world.scheduler.current())?.modules)
    })?;
    // -> function, or nil and the message of the compiler
    put(lua, host, "loadModule", |lua, module: Instance| {
        let world = world(lua);
        let context = world.scheduler.current();
        Ok(match scripts::compile_script(lua, &world, module.referent, context, scripts::Sees::Script) {
            Ok(function) => (Some(function), None),
            Err(error) => (None, Some(text_of(&error))),
        })
    })?;
    put(lua, host, "compile", |lua, (source, name, environment): (LuaString, String, LuaTable)| {
        Ok(match scripts::compile(lua, &source.as_bytes(), &name, environment) {
            Ok(function) => (Some(function), None),
            Err(error) => (None, Some(text_of(&error))),
        })
    })?;
    put(lua, host, "environment", |lua, ()| {
        scripts::environment(lua, world(lua).scheduler.current(), scripts::Sees::Nothing)
    })
}

fn texts(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "source", |lua, script: Instance| Ok(world(lua).source(script.referent)))?;
    put(lua, host, "setSource", |lua, (script, source): (Instance, LuaString)| {
        let Ok(source) = source.to_str() else {
            return raise("a Source that is not UTF-8 is not simulated by the headless Studio");
        };
        world(lua).store_and_tell(lua, script.referent, "Source", Variant::String(source.to_owned()), &["Source"])
    })?;
    put(lua, host, "draft", |lua, script: Instance| Ok(world(lua).drafts.borrow().get(&script.referent).cloned()))?;
    put(lua, host, "setDraft", |lua, (script, text): (Instance, Option<String>)| {
        let world = world(lua);
        match text {
            Some(text) => world.drafts.borrow_mut().insert(script.referent, text),
            None => world.drafts.borrow_mut().remove(&script.referent),
        };
        Ok(())
    })
}

fn settings(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "getSetting", |lua, key: String| match world(lua).shared.settings.borrow().get(&key) {
        Some(value) => json::to_lua(lua, value),
        None => Ok(LuaValue::Nil),
    })?;
    put(lua, host, "setSetting", |lua, (key, value): (String, LuaValue)| {
        let world = world(lua);
        if value.is_nil() {
            world.shared.settings.borrow_mut().remove(&key);
            return Ok(());
        }
        match serde_json::from_str(&json::encode(&value)?) {
            Ok(value) => world.shared.settings.borrow_mut().insert(key, value),
            // Bare `nan` and `inf`: what Studio's settings file makes of them is unknown.
            Err(_) => return raise("plugin:SetSetting of nan or inf is not simulated by the headless Studio"),
        };
        Ok(())
    })
}
