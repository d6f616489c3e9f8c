//! `RBXScriptSignal` and `RBXScriptConnection`.

use super::{
    errors::raise,
    scheduler::Work,
    scripts::ContextId,
    world::{World, world},
};
use mlua::prelude::*;
use rbx_dom_weak::Ustr;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

/// The registry key of the Luau half of `signal:Wait()`, which has to yield.
pub(super) const WAIT: &str = "headless.signal_wait";

/// How many times a remote event may be fired before anybody listens.
const MOST_HELD: usize = 256;

/// Which of an instance's signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SignalName {
    Event(Ustr),
    Property(Ustr),
    Attribute(Ustr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    Connected,
    /// By `Destroy`: no new calls, but those already queued still run.
    Released,
    /// By `Disconnect`: queued calls are dropped.
    Disconnected,
}

/// A connected function.
pub(super) struct Handler {
    pub(super) function: LuaFunction,
    pub(super) context: ContextId,
    state: Cell<ConnectionState>,
    once: bool,
}

impl Handler {
    /// Whether a queued call may run now; a `Once` handler gives this once.
    pub(super) fn take_turn(&self) -> bool {
        if self.state.get() == ConnectionState::Disconnected {
            return false;
        }
        if self.once {
            self.state.set(ConnectionState::Disconnected);
        }
        true
    }

    fn is_connected(&self) -> bool {
        self.state.get() == ConnectionState::Connected
    }
}

#[derive(Default)]
struct Listeners {
    handlers: RefCell<Vec<Rc<Handler>>>,
    waiting: RefCell<Vec<(ContextId, LuaThread)>>,
    /// What a remote event was fired with before anybody listened.
    held: RefCell<Vec<LuaMultiValue>>,
}

/// An event that Luau code can connect to. Clones are the same signal.
#[derive(Clone, Default)]
pub(super) struct Signal(Rc<Listeners>);

impl Signal {
    pub(super) fn has_listeners(&self) -> bool {
        !self.0.handlers.borrow().is_empty() || !self.0.waiting.borrow().is_empty()
    }

    /// Call every handler: now if signals are immediate, else when the queue gets to it.
    pub(super) fn fire(&self, lua: &Lua, world: &World, args: &LuaMultiValue) {
        let handlers: Vec<_> =
            self.0.handlers.borrow().iter().filter(|handler| handler.is_connected()).cloned().collect();
        let waiting = std::mem::take(&mut *self.0.waiting.borrow_mut());
        if world.shared.knobs.immediate_signals {
            // Immediate mode calls the newest connection first.
            for handler in handlers.into_iter().rev() {
                world.scheduler.run(lua, handler.context, Work::Handler(handler.clone(), args.clone()));
            }
            for (context, thread) in waiting {
                world.scheduler.run(lua, context, Work::Resume(thread, args.clone()));
            }
        } else {
            for handler in handlers {
                world.scheduler.push(handler.context, Work::Handler(handler.clone(), args.clone()));
            }
            for (context, thread) in waiting {
                world.scheduler.push(context, Work::Resume(thread, args.clone()));
            }
        }
        self.0.handlers.borrow_mut().retain(|handler| handler.is_connected());
    }

    /// Fire, or keep the arguments for the first who listens. `false`: too many are kept.
    pub(super) fn fire_or_hold(&self, lua: &Lua, world: &World, args: LuaMultiValue) -> bool {
        if self.has_listeners() {
            self.fire(lua, world, &args);
            return true;
        }
        let mut held = self.0.held.borrow_mut();
        if held.len() >= MOST_HELD {
            return false;
        }
        held.push(args);
        true
    }

    /// Somebody listens: what was held comes now.
    fn release_held(&self, lua: &Lua, world: &World) {
        let held = std::mem::take(&mut *self.0.held.borrow_mut());
        held.iter().for_each(|args| self.fire(lua, world, args));
    }

    pub(super) fn connect(&self, context: ContextId, function: LuaFunction, once: bool) -> Connection {
        let handler = Rc::new(Handler { function, context, state: Cell::new(ConnectionState::Connected), once });
        self.0.handlers.borrow_mut().push(handler.clone());
        Connection { handler, signal: self.clone() }
    }

    /// What `Destroy` does to the signals of an instance.
    pub(super) fn release(&self) {
        for handler in self.0.handlers.borrow_mut().drain(..) {
            if handler.is_connected() {
                handler.state.set(ConnectionState::Released);
            }
        }
    }
}

impl LuaUserData for Signal {
    fn add_fields<F: LuaUserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(LuaMetaMethod::Type, "RBXScriptSignal");
    }

    fn add_methods<M: LuaUserDataMethods<Self>>(methods: &mut M) {
        let connecting = |once: bool| {
            move |lua: &Lua, signal: &Self, function: LuaFunction| {
                let world = world(lua);
                let connection = signal.connect(world.scheduler.current(), function, once);
                signal.release_held(lua, &world);
                Ok(connection)
            }
        };
        methods.add_method("Connect", connecting(false));
        methods.add_method("Once", connecting(true));
        methods.add_meta_method(LuaMetaMethod::Index, |lua, _, key: String| match key.as_str() {
            "Wait" => lua.named_registry_value::<LuaFunction>(WAIT),
            "ConnectParallel" => {
                raise("RBXScriptSignal.ConnectParallel exists in Roblox but is not simulated by the headless Studio")
            }
            _ => raise(format!("{key} is not a valid member of RBXScriptSignal")),
        });
        methods.add_meta_method(LuaMetaMethod::ToString, |_, _, ()| Ok("Signal"));
        methods.add_meta_method(LuaMetaMethod::Eq, |_, signal, other: LuaUserDataRef<Self>| {
            Ok(Rc::ptr_eq(&signal.0, &other.0))
        });
    }
}

/// Put a thread to sleep until the signal fires; the caller yields.
pub(super) fn wait_for(lua: &Lua, (signal, thread): (LuaUserDataRef<Signal>, LuaThread)) -> LuaResult<()> {
    let world = world(lua);
    let held = if signal.0.held.borrow().is_empty() { None } else { Some(signal.0.held.borrow_mut().remove(0)) };
    match held {
        Some(args) => world.scheduler.push(world.scheduler.current(), Work::Resume(thread, args)),
        None => signal.0.waiting.borrow_mut().push((world.scheduler.current(), thread)),
    }
    Ok(())
}

/// What `Connect` returns.
pub(super) struct Connection {
    handler: Rc<Handler>,
    signal: Signal,
}

impl LuaUserData for Connection {
    fn add_fields<F: LuaUserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(LuaMetaMethod::Type, "RBXScriptConnection");
        fields.add_field_method_get("Connected", |_, connection| Ok(connection.handler.is_connected()));
    }

    fn add_methods<M: LuaUserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("Disconnect", |_, connection, ()| {
            connection.handler.state.set(ConnectionState::Disconnected);
            connection.signal.0.handlers.borrow_mut().retain(|handler| handler.is_connected());
            Ok(())
        });
        methods.add_meta_method(LuaMetaMethod::Index, |_, _, key: String| -> LuaResult<()> {
            raise(format!("{key} is not a valid member of RBXScriptConnection"))
        });
        methods.add_meta_method(LuaMetaMethod::ToString, |_, _, ()| Ok("Connection"));
    }
}
