//! The history of changes, for `ChangeHistoryService`.

use super::add as put;
use crate::headless::{
    errors::raise,
    history::{Direction, Ending},
    world::world,
};
use mlua::prelude::*;

pub(super) fn add(lua: &Lua, host: &LuaTable) -> LuaResult<()> {
    // -> the recording's id, or nil when there is a recording
    put(lua, host, "beginRecording", |lua, (name, display_name): (String, Option<String>)| {
        let id = uuid::Uuid::new_v4().to_string().to_uppercase();
        Ok(world(lua).history.borrow_mut().begin(id, name, display_name).map(str::to_owned))
    })?;
    // -> name, display name and id; nothing when there is no such recording
    put(lua, host, "finishRecording", |lua, (id, ending): (String, String)| {
        let ending = match ending.as_str() {
            "Commit" => Ending::Commit,
            "Append" => Ending::Append,
            "Cancel" => Ending::Cancel,
            _ => return raise("FinishRecording: a FinishRecordingOperation is expected"),
        };
        match world(lua).finish_recording(lua, &id, ending)? {
            Some(finished) => (finished.name, finished.display_name, finished.id).into_lua_multi(lua),
            None => Ok(LuaMultiValue::new()),
        }
    })?;
    put(lua, host, "isRecording", |lua, id: Option<String>| {
        Ok(world(lua).history.borrow().is_recording(id.as_deref()))
    })?;
    put(lua, host, "setWaypoint", |lua, name: String| {
        let world = world(lua);
        let mut history = world.history.borrow_mut();
        if !history.is_recording(None) {
            history.cut(&name, false);
        }
        Ok(())
    })?;
    put(lua, host, "undo", |lua, ()| world(lua).step(lua, Direction::Undo))?;
    put(lua, host, "redo", |lua, ()| world(lua).step(lua, Direction::Redo))?;
    put(lua, host, "nextUndo", |lua, ()| Ok(world(lua).history.borrow_mut().next(Direction::Undo)))?;
    put(lua, host, "nextRedo", |lua, ()| Ok(world(lua).history.borrow_mut().next(Direction::Redo)))?;
    put(lua, host, "resetHistory", |lua, ()| {
        world(lua).history.borrow_mut().reset();
        Ok(())
    })?;
    put(lua, host, "enableHistory", |lua, enabled: bool| {
        world(lua).history.borrow_mut().enable(enabled);
        Ok(())
    })
}
