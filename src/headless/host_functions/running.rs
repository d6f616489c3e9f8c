//! Threads, signals, output and errors.

use super::add as put;
use crate::headless::{
    errors,
    scheduler::{Timer, Work},
    scripts::ContextId,
    signal::{self, Signal, SignalName},
    values,
    world::world,
};
use mlua::prelude::*;
use rbx_dom_weak::ustr;

type Instance = LuaUserDataRef<crate::headless::instance::Inst>;

pub(super) fn add(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "setStep", |lua, step: LuaFunction| {
        world(lua).scheduler.set_step(lua, step);
        Ok(())
    })?;
    put(lua, host, "setSignalWait", |lua, wait: LuaFunction| lua.set_named_registry_value(signal::WAIT, wait))?;
    put(lua, host, "errorText", |lua, value: LuaValue| match value {
        LuaValue::Error(error) => errors::text_of(&error).into_lua(lua),
        other => Ok(other),
    })?;
    threads(lua, host)?;
    signals(lua, host)?;
    output(lua, host)
}

fn threads(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "defer", |lua, (thread, args): (LuaThread, LuaMultiValue)| {
        let scheduler = &world(lua).scheduler;
        scheduler.push(scheduler.current(), Work::Resume(thread, args));
        Ok(())
    })?;
    put(lua, host, "sleep", |lua, (thread, seconds, gives_elapsed, args): (LuaThread, f64, bool, LuaMultiValue)| {
        world(lua).scheduler.sleep(Timer { thread, seconds, args, gives_elapsed });
        Ok(())
    })?;
    // The thread wakes even when the plugin that runs now is unloaded.
    put(lua, host, "sleepForStudio", |lua, (thread, seconds): (LuaThread, f64)| {
        let timer = Timer { thread, seconds, args: LuaMultiValue::new(), gives_elapsed: false };
        world(lua).scheduler.sleep_for(ContextId::CommandBar, timer);
        Ok(())
    })?;
    // Whether the thread was a command: its caller gets the error, not the output window.
    put(lua, host, "failRun", |lua, (thread, message): (LuaThread, String)| Ok(world(lua).fail_run(&thread, message)))?;
    put(lua, host, "finishRun", |lua, (id, ok, values): (u64, bool, LuaMultiValue)| {
        let outcome = if ok {
            Ok(values)
        } else {
            Err(values.front().map_or_else(String::new, |text| text.to_string().unwrap_or_default()))
        };
        world(lua).finish_run(id, outcome);
        Ok(())
    })
}

fn signals(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "newSignal", |_, ()| Ok(Signal::default()))?;
    put(lua, host, "waitFor", signal::wait_for)?;
    put(lua, host, "fire", |lua, (signal, args): (LuaUserDataRef<Signal>, LuaMultiValue)| {
        signal.fire(lua, &world(lua), &args);
        Ok(())
    })?;
    put(lua, host, "event", |lua, (this, event): (Instance, String)| {
        Ok(world(lua).signal(this.referent, SignalName::Event(ustr(&event))))
    })?;
    put(lua, host, "fireEvent", |lua, (this, event, args): (Instance, String, LuaMultiValue)| {
        let world = world(lua);
        world.signal(this.referent, SignalName::Event(ustr(&event))).fire(lua, &world, &args);
        Ok(())
    })?;
    put(lua, host, "changed", |lua, (this, property): (Instance, String)| {
        world(lua).changed(lua, this.referent, &property)
    })
}

fn output(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "print", |lua, (level, text): (u8, LuaString)| world(lua).print(lua, level, &text.as_bytes()))?;
    put(lua, host, "log", |lua, ()| {
        let history = lua.create_table()?;
        for line in world(lua).log_lines() {
            let entry = lua.create_table()?;
            entry.raw_set("message", lua.create_string(&line.text)?)?;
            entry.raw_set("messageType", values::enum_item(lua, "MessageType", line.level.into())?)?;
            history.raw_push(entry)?;
        }
        Ok(history)
    })
}
