//! JSON, services, instances, tags and files.

use super::add as put;
use crate::headless::{errors::raise, json, reflection, stored::TagChange, world::world};
use mlua::prelude::*;
use rbx_dom_weak::{
    types::{Ref, Variant},
    ustr,
};
use sha1::{Digest, Sha1};
use std::fmt::Write as _;

/// The name under which files hold what is in a LocalizationTable.
const CONTENTS: &str = "Contents";

type Instance = LuaUserDataRef<crate::headless::instance::Inst>;

pub(super) fn add(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    texts(lua, host)?;
    instances(lua, host)?;
    place(lua, host)?;
    tags(lua, host)?;
    contents(lua, host)?;
    put(lua, host, "serialize", serialize)?;
    put(lua, host, "deserialize", deserialize)
}

fn texts(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "jsonEncode", |_, value: LuaValue| json::encode(&value))?;
    put(lua, host, "jsonDecode", |lua, text: LuaString| json::decode(lua, &text.as_bytes()))?;
    put(lua, host, "guid", |_, ()| Ok(uuid::Uuid::new_v4().to_string().to_uppercase()))?;
    put(lua, host, "sha1", |lua, text: LuaString| {
        let digest = Sha1::digest(text.as_bytes());
        if !world(lua).shared.knobs.hash_as_hex {
            return lua.create_string(digest);
        }
        let hex = digest.iter().try_fold(String::new(), |mut hex, byte| write!(hex, "{byte:02x}").map(|()| hex));
        lua.create_string(hex.expect("writing to a String cannot fail"))
    })
}

fn instances(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "service", |lua, class: String| {
        let world = world(lua);
        if !reflection::is_service(&class) {
            return raise(format!("'{class}' is not a valid Service name"));
        }
        world.to_lua(lua, world.service(&class))
    })?;
    put(lua, host, "findService", |lua, class: String| {
        let world = world(lua);
        if !reflection::is_service(&class) {
            return raise(format!("'{class}' is not a valid Service name"));
        }
        world.to_lua(lua, world.find_service(&class).unwrap_or_else(Ref::none))
    })?;
    put(lua, host, "create", |lua, class: String| {
        let world = world(lua);
        world.to_lua(lua, world.create(&class))
    })?;
    put(lua, host, "isA", |_, (class, ancestor): (String, String)| Ok(reflection::is_a(&class, &ancestor)))?;
    put(lua, host, "game", |lua, ()| {
        let world = world(lua);
        world.to_lua(lua, world.game)
    })
}

fn place(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "placeId", |lua, ()| Ok(world(lua).place_id.get()))?;
    put(lua, host, "setPlaceId", |lua, id: u64| {
        let world = world(lua);
        if world.place_id.replace(id) == id {
            return Ok(());
        }
        world.changed(lua, world.game, "PlaceId")
    })?;
    put(lua, host, "gameId", |lua, ()| Ok(world(lua).game_id.get()))?;
    put(lua, host, "setGameId", |lua, id: u64| {
        let world = world(lua);
        if world.game_id.replace(id) == id {
            return Ok(());
        }
        world.changed(lua, world.game, "GameId")
    })
}

fn tags(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "tagged", |lua, tag: String| {
        let world = world(lua);
        world.list_to_lua(lua, &world.tagged(&tag))
    })?;
    put(lua, host, "allTags", |lua, ()| Ok(world(lua).all_tags()))?;
    put(lua, host, "tagAdded", |lua, tag: String| Ok(world(lua).tag_signal(TagChange::Added, tag)))?;
    put(lua, host, "tagRemoved", |lua, tag: String| Ok(world(lua).tag_signal(TagChange::Removed, tag)))
}

/// What a LocalizationTable holds, which no property shows.
fn contents(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    put(lua, host, "contents", |lua, table: Instance| {
        let dom = &world(lua).dom;
        let stored =
            dom.borrow().get_by_ref(table.referent).and_then(|table| table.properties.get(&ustr(CONTENTS)).cloned());
        Ok(match stored {
            Some(Variant::String(text)) => text,
            _ => "[]".to_owned(),
        })
    })?;
    put(lua, host, "setContents", |lua, (table, text): (Instance, String)| {
        world(lua).store_and_tell(lua, table.referent, CONTENTS, Variant::String(text), &[])
    })
}

fn serialize(lua: &Lua, instances: Vec<Instance>) -> LuaResult<mlua::Buffer> {
    let world = world(lua);
    let roots: Vec<Ref> = instances.iter().map(|instance| instance.referent).collect();
    let mut bytes = Vec::new();
    match rbx_binary::to_writer(&mut bytes, &world.dom.borrow(), &roots) {
        Ok(()) => lua.create_buffer(bytes),
        Err(error) => raise(format!("SerializeInstancesAsync: {error}")),
    }
}

fn deserialize(lua: &Lua, bytes: mlua::Buffer) -> LuaResult<LuaTable> {
    let world = world(lua);
    let mut model = match rbx_binary::from_reader(&bytes.to_vec()[..]) {
        Ok(model) => model,
        Err(error) => return raise(format!("DeserializeInstancesAsync: {error}")),
    };
    let roots = model.root().children().to_vec();
    for root in &roots {
        // A transfer needs a parent in the other tree; nobody sees this one.
        let mut dom = world.dom.borrow_mut();
        model.transfer(*root, &mut dom, world.game);
        dom.transfer_within(*root, Ref::none());
    }
    world.list_to_lua(lua, &roots)
}
