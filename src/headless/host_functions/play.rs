//! Play tests: which DataModel this is, remote events and functions, `StudioTestService`.

use super::add as put;
use crate::headless::{
    carried::{Carried, take_all},
    config::{Play, Side},
    errors::raise,
    remotes::{Outgoing, Recipient},
    shared::{Asked, Waiter},
    world::world,
};
use mlua::prelude::*;
use rbx_dom_weak::types::Ref;

type Instance = LuaUserDataRef<crate::headless::instance::Inst>;

pub(super) fn add(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    // "edit", "server" or "client"
    put(lua, host, "side", |lua, ()| {
        Ok(match world(lua).side {
            Side::Edit => "edit",
            Side::Server => "server",
            Side::Client(_) => "client",
        })
    })?;
    put(lua, host, "isRunMode", |lua, ()| Ok(world(lua).is_run_mode))?;
    put(lua, host, "localPlayer", |lua, ()| {
        let world = world(lua);
        world.to_lua(lua, world.player)
    })?;
    put(lua, host, "bindToClose", |lua, callback: LuaFunction| {
        let world = world(lua);
        let context = world.scheduler.current();
        world.game_scripts.at_close.borrow_mut().push((context, callback));
        Ok(())
    })?;
    remotes(lua, host)?;
    tests(lua, host)
}

/// From a client it goes to the server; from the server to a player, or to all without one.
fn recipient(lua: &Lua, player: Option<Ref>) -> Recipient {
    match (world(lua).side, player) {
        (Side::Client(_), _) => Recipient::Server,
        (_, Some(player)) => Recipient::Player(player),
        (_, None) => Recipient::Everyone,
    }
}

fn remotes(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "fireRemote", |lua, (remote, player, args): (Instance, Option<Instance>, LuaMultiValue)| {
        let to = recipient(lua, player.map(|player| player.referent));
        let event = Outgoing::Event { remote: remote.referent, to, args: take_all(lua, &args)? };
        world(lua).remotes.send(event);
        Ok(())
    })?;
    // Answers by resuming `thread` with `true, results...` or `false, message`.
    put(
        lua,
        host,
        "invokeRemote",
        |lua, (thread, remote, player, args): (LuaThread, Instance, Option<Instance>, LuaMultiValue)| {
            let to = recipient(lua, player.map(|player| player.referent));
            let args = take_all(lua, &args)?;
            world(lua).invoke(thread, remote.referent, to, args);
            Ok(())
        },
    )?;
    put(lua, host, "bindRemote", |lua, (remote, callback): (Instance, Option<LuaFunction>)| {
        world(lua).bind_remote(lua, remote.referent, callback)
    })?;
    put(lua, host, "setRemoteRunner", |lua, runner: LuaFunction| {
        world(lua).remotes.set_runner(runner);
        Ok(())
    })?;
    put(lua, host, "answerRemote", |lua, (to, id, ok, values): (u64, u64, bool, LuaMultiValue)| {
        let result = match (ok, take_all(lua, &values)) {
            (true, Ok(values)) => Ok(values),
            (true, Err(error)) => Err(crate::headless::errors::text_of(&error)),
            (false, _) => Err(values.front().map_or_else(String::new, |text| text.to_string().unwrap_or_default())),
        };
        world(lua).remotes.send(Outgoing::Answer { to, id, result });
        Ok(())
    })
}

fn tests(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    // Resumes `thread` at the end of the test with `true, value`, or at once with `false, message`.
    put(lua, host, "startTest", |lua, (thread, kind, players, args): (LuaThread, String, u8, LuaValue)| {
        let world = world(lua);
        let play = match kind.as_str() {
            "run" => Play::Run,
            "play" => Play::Solo,
            _ => Play::Clients(players),
        };
        let waiter = Waiter { context: world.scheduler.current(), thread };
        let args = Carried::take(lua, &args)?;
        world.shared.asked.borrow_mut().push_back(Asked::Start { play, args, waiter });
        Ok(())
    })?;
    put(lua, host, "testArgs", |lua, ()| {
        let world = world(lua);
        let args = world.shared.test_args.borrow().clone();
        args.give(lua, &world)
    })?;
    put(lua, host, "endTest", |lua, value: LuaValue| {
        let value = Carried::take(lua, &value)?;
        world(lua).shared.asked.borrow_mut().push_back(Asked::End(value));
        Ok(())
    })?;
    put(lua, host, "addPlayers", |lua, count: u8| {
        world(lua).shared.asked.borrow_mut().push_back(Asked::Join(count));
        Ok(())
    })?;
    put(lua, host, "leaveTest", |lua, ()| {
        let world = world(lua);
        if !matches!(world.side, Side::Client(_)) {
            return raise("LeaveTest can only be called from a client DataModel of a running Studio play session");
        }
        world.shared.asked.borrow_mut().push_back(Asked::Leave(world.model));
        Ok(())
    })
}
