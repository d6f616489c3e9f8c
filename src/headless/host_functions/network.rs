//! Streams and requests.

use super::add as put;
use crate::headless::{
    errors::raise,
    net::{self, Request},
    world::{Requesting, world},
};
use mlua::prelude::*;

pub(super) fn add(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "openStream", |lua, (url, headers): (String, LuaTable)| net::open(lua, url, pairs_of(&headers)?))?;
    put(lua, host, "escapeUrl", |lua, text: LuaString| {
        let escaped: String = text
            .as_bytes()
            .iter()
            .map(|byte| match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => char::from(*byte).to_string(),
                other => format!("%{other:02X}"),
            })
            .collect();
        lua.create_string(escaped)
    })?;
    // Answers by resuming `thread` with `true, response` or `false, message`.
    put(
        lua,
        host,
        "request",
        |lua, (thread, method, url, headers, body): (LuaThread, String, String, LuaTable, Option<LuaString>)| {
            let world = world(lua);
            let id = world.next_serial();
            let body = body.map_or_else(Vec::new, |body| body.as_bytes().to_vec());
            let request = Request { method, url, headers: pairs_of(&headers)?, body };
            let context = world.scheduler.current();
            let task = net::send(id, request, world.net.clone());
            world.requests.borrow_mut().insert(id, Requesting { context, thread, task });
            Ok(())
        },
    )
}

fn pairs_of(headers: &LuaTable) -> LuaResult<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    for pair in headers.pairs::<LuaValue, LuaValue>() {
        match pair? {
            (LuaValue::String(name), value @ (LuaValue::String(_) | LuaValue::Number(_) | LuaValue::Integer(_))) => {
                pairs.push((name.to_string_lossy(), value.to_string()?));
            }
            _ => return raise("Headers must be a dictionary of strings"),
        }
    }
    Ok(pairs)
}
