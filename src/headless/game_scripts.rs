//! The scripts of the game, which run in the DataModels of a play test.

use super::{
    config::Side,
    errors::text_of,
    scheduler::Work,
    scripts::{self, ContextId, Sees},
    world::World,
};
use mlua::prelude::*;
use rbx_dom_weak::{
    types::{Ref, Variant},
    ustr,
};
use std::{cell::RefCell, collections::HashMap};

/// Where server scripts run.
const SERVER_PLACES: [&str; 2] = ["Workspace", "ServerScriptService"];
/// Where client scripts run, besides below the client's own Player.
const CLIENT_PLACES: [&str; 1] = ["ReplicatedFirst"];
/// Where a script runs whose `RunContext` says on which side.
const CONTEXT_PLACES: [&str; 4] = ["Workspace", "ServerScriptService", "ReplicatedStorage", "ReplicatedFirst"];

/// Values of `Enum.RunContext`.
const RUN_ON_SERVER: u32 = 1;
pub(super) const RUN_ON_CLIENT: u32 = 2;

/// Which scripts run, and which are to start.
#[derive(Default)]
pub(super) struct GameScripts {
    running: RefCell<HashMap<Ref, ContextId>>,
    due: RefCell<Vec<Ref>>,
    /// `game:BindToClose`.
    pub(super) at_close: RefCell<Vec<(ContextId, LuaFunction)>>,
}

impl World {
    /// Instances got another place: scripts among them may have to start.
    pub(super) fn scripts_moved(&self, moved: &[Ref]) {
        if self.side != Side::Edit {
            let mut due = self.game_scripts.due.borrow_mut();
            due.extend(moved.iter().copied().filter(|each| self.is_script(*each)));
        }
    }

    /// A script was enabled or disabled.
    pub(super) fn script_switched(&self, this: Ref) {
        if self.side == Side::Edit || !self.is_script(this) {
            return;
        }
        if self.is_enabled(this) {
            self.game_scripts.due.borrow_mut().push(this);
        } else {
            self.end_script(this);
        }
    }

    /// End the threads and connections of a script that was destroyed or disabled.
    pub(super) fn end_script(&self, this: Ref) {
        let Some(context) = self.game_scripts.running.borrow_mut().remove(&this) else { return };
        self.end_context(context);
    }

    /// Call what is bound to the close, up to its first pause, and end all scripts.
    pub(super) fn end_scripts(&self, lua: &Lua) -> LuaResult<()> {
        for (context, callback) in std::mem::take(&mut *self.game_scripts.at_close.borrow_mut()) {
            self.scheduler.run(lua, context, Work::Resume(lua.create_thread(callback)?, LuaMultiValue::new()));
        }
        let running = std::mem::take(&mut *self.game_scripts.running.borrow_mut());
        running.into_values().for_each(|context| self.end_context(context));
        Ok(())
    }

    /// Nothing of a context runs any more.
    pub(super) fn end_context(&self, context: ContextId) {
        self.scheduler.end_context(context);
        self.remotes.end_context(context);
        self.contexts.remove(context);
    }

    /// Start what is due. `true`: there was something.
    pub(super) fn start_due_scripts(&self, lua: &Lua) -> LuaResult<bool> {
        let due = std::mem::take(&mut *self.game_scripts.due.borrow_mut());
        let mut started = false;
        for script in due {
            if self.may_run(script) && !self.game_scripts.running.borrow().contains_key(&script) {
                self.start_script(lua, script)?;
                started = true;
            }
        }
        Ok(started)
    }

    fn start_script(&self, lua: &Lua, script: Ref) -> LuaResult<()> {
        let context = ContextId::Script(self.next_serial());
        self.contexts.add_script(lua, context)?;
        self.game_scripts.running.borrow_mut().insert(script, context);
        match scripts::compile_script(lua, self, script, context, Sees::Script) {
            Ok(chunk) => self.scheduler.push(context, Work::Resume(lua.create_thread(chunk)?, LuaMultiValue::new())),
            Err(error) => self.print(lua, 3, text_of(&error).as_bytes())?,
        }
        Ok(())
    }

    fn is_script(&self, this: Ref) -> bool {
        matches!(self.class(this).as_str(), "Script" | "LocalScript")
    }

    pub(super) fn is_enabled(&self, this: Ref) -> bool {
        let dom = self.dom.borrow();
        let stored = dom.get_by_ref(this).and_then(|instance| instance.properties.get(&ustr("Disabled")));
        !matches!(stored, Some(Variant::Bool(true)))
    }

    /// Whether the script's place and settings let it run on this side.
    fn may_run(&self, this: Ref) -> bool {
        if !self.has(this) || !self.is_enabled(this) || self.destroyed.borrow().contains(&this) {
            return false;
        }
        let is_in = |places: &[&str]| self.service_above(this).is_some_and(|class| places.contains(&class.as_str()));
        match (self.side, self.class(this).as_str(), self.run_context(this)) {
            (Side::Server, "Script", RUN_ON_SERVER) => is_in(&CONTEXT_PLACES),
            (Side::Server, "Script", context) => context != RUN_ON_CLIENT && is_in(&SERVER_PLACES),
            (Side::Client(_), "Script", RUN_ON_CLIENT) => is_in(&CONTEXT_PLACES) || self.is_inside(this, self.player),
            (Side::Client(_), "LocalScript", _) => is_in(&CLIENT_PLACES) || self.is_inside(this, self.player),
            _ => false,
        }
    }

    fn run_context(&self, this: Ref) -> u32 {
        let dom = self.dom.borrow();
        match dom.get_by_ref(this).and_then(|instance| instance.properties.get(&ustr("RunContext"))) {
            Some(Variant::Enum(context)) => context.to_u32(),
            _ => 0,
        }
    }

    /// The class of the child of the DataModel that `this` is or is in.
    pub(super) fn service_above(&self, this: Ref) -> Option<rbx_dom_weak::Ustr> {
        let mut below = this;
        for each in self.ancestors(this) {
            if each == self.game {
                return Some(self.class(below));
            }
            below = each;
        }
        None
    }
}
