//! What the DataModels of a play test send each other, and the calls that wait for an answer.
//!
//! Nothing of one VM touches another: each World has an outbox, which the Studio empties between
//! two turns, in order. So an instance that was made before an event was fired is there when the
//! event arrives.

use super::{
    carried::{Carried, give_all},
    history::Change,
    scheduler::Work,
    scripts::ContextId,
    shared::ModelId,
    signal::SignalName,
    world::World,
};
use mlua::prelude::*;
use rbx_dom_weak::{types::Ref, ustr};
use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
};

/// Who gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recipient {
    Server,
    Everyone,
    Player(Ref),
}

/// One thing in the outbox.
pub(super) enum Outgoing {
    /// A change of the server's DataModel.
    Change(Change),
    Event {
        remote: Ref,
        to: Recipient,
        args: Vec<Carried>,
    },
    Call {
        remote: Ref,
        to: Recipient,
        call: Call,
    },
    Answer {
        to: ModelId,
        id: u64,
        result: Result<Vec<Carried>, String>,
    },
}

/// A `RemoteFunction` that was invoked.
pub(super) struct Call {
    pub(super) from: ModelId,
    pub(super) id: u64,
    pub(super) args: Vec<Carried>,
}

struct Waiting {
    context: ContextId,
    thread: LuaThread,
    to: Recipient,
}

/// The remote events and functions of one DataModel.
#[derive(Default)]
pub(super) struct Remotes {
    outgoing: RefCell<Vec<Outgoing>>,
    replicates: Cell<bool>,
    waiting: RefCell<HashMap<u64, Waiting>>,
    callbacks: RefCell<HashMap<Ref, (ContextId, LuaFunction)>>,
    /// Calls of functions that have no callback yet.
    held: RefCell<HashMap<Ref, Vec<Call>>>,
    /// `function(callback, from, id, ...)`: calls and answers.
    runner: OnceCell<LuaFunction>,
}

impl Remotes {
    /// From now on, changes go into the outbox.
    pub(super) fn replicate(&self) {
        self.replicates.set(true);
    }

    pub(super) fn replicates(&self) -> bool {
        self.replicates.get()
    }

    pub(super) fn send(&self, outgoing: Outgoing) {
        self.outgoing.borrow_mut().push(outgoing);
    }

    pub(super) fn take_outgoing(&self) -> Vec<Outgoing> {
        std::mem::take(&mut *self.outgoing.borrow_mut())
    }

    pub(super) fn set_runner(&self, runner: LuaFunction) {
        // The prelude runs once per VM.
        let _first = self.runner.set(runner);
    }

    /// Nothing of an ended context answers any more.
    pub(super) fn end_context(&self, context: ContextId) {
        self.callbacks.borrow_mut().retain(|_, (owner, _)| *owner != context);
    }
}

impl World {
    /// Call the function on another side; `thread` is resumed with `true, results` or `false, text`.
    pub(super) fn invoke(&self, thread: LuaThread, remote: Ref, to: Recipient, args: Vec<Carried>) {
        let id = self.next_serial();
        let waiting = Waiting { context: self.scheduler.current(), thread, to };
        self.remotes.waiting.borrow_mut().insert(id, waiting);
        self.remotes.send(Outgoing::Call { remote, to, call: Call { from: self.model, id, args } });
    }

    /// Set or clear `OnServerInvoke` or `OnClientInvoke`.
    pub(super) fn bind_remote(&self, lua: &Lua, remote: Ref, callback: Option<LuaFunction>) -> LuaResult<()> {
        let Some(callback) = callback else {
            self.remotes.callbacks.borrow_mut().remove(&remote);
            return Ok(());
        };
        self.remotes.callbacks.borrow_mut().insert(remote, (self.scheduler.current(), callback));
        let held = self.remotes.held.borrow_mut().remove(&remote).unwrap_or_default();
        held.into_iter().try_for_each(|call| self.receive_call(lua, remote, call))
    }

    /// A remote event was fired on the other side.
    pub(super) fn receive_event(&self, lua: &Lua, remote: Ref, event: &str, args: &[Carried]) -> LuaResult<()> {
        if !self.has(remote) {
            return Ok(());
        }
        let args = give_all(lua, self, args)?;
        if self.signal(remote, SignalName::Event(ustr(event))).fire_or_hold(lua, self, args) {
            return Ok(());
        }
        let name = self.full_name(remote);
        let text = format!(
            "Remote event invocation queue exhausted for {name}; did you forget to implement {event}? (1 events dropped)"
        );
        self.print(lua, 2, text.as_bytes())
    }

    /// A remote function was invoked on the other side.
    pub(super) fn receive_call(&self, lua: &Lua, remote: Ref, call: Call) -> LuaResult<()> {
        let bound = self.remotes.callbacks.borrow().get(&remote).cloned();
        let Some((context, callback)) = bound else {
            self.remotes.held.borrow_mut().entry(remote).or_default().push(call);
            return Ok(());
        };
        let runner = self.remotes.runner.get().expect("the prelude sets the runner");
        let thread = lua.create_thread(runner.clone())?;
        let mut args = (callback, call.from, call.id).into_lua_multi(lua)?;
        args.extend(give_all(lua, self, &call.args)?);
        self.scheduler.push(context, Work::Resume(thread, args));
        Ok(())
    }

    pub(super) fn receive_answer(&self, lua: &Lua, id: u64, result: &Result<Vec<Carried>, String>) -> LuaResult<()> {
        let Some(waiting) = self.remotes.waiting.borrow_mut().remove(&id) else { return Ok(()) };
        let args = match result {
            Ok(values) => {
                let mut args = true.into_lua_multi(lua)?;
                args.extend(give_all(lua, self, values)?);
                args
            }
            Err(text) => (false, text.as_str()).into_lua_multi(lua)?,
        };
        self.scheduler.push(waiting.context, Work::Resume(waiting.thread, args));
        Ok(())
    }

    /// A player has left: nobody answers what was asked of it. The text is ours.
    pub(super) fn fail_calls_to(&self, lua: &Lua, to: Recipient) -> LuaResult<()> {
        let ids: Vec<u64> =
            self.remotes.waiting.borrow().iter().filter(|(_, each)| each.to == to).map(|(id, _)| *id).collect();
        let gone = Err("InvokeClient: the player left the game".to_owned());
        ids.into_iter().try_for_each(|id| self.receive_answer(lua, id, &gone))
    }
}
