//! `WebStreamClient`: an Object, not an Instance, and it has no `Destroy`.

use super::{
    NetEvent,
    websocket::{self, StreamCommand},
};
use crate::headless::{
    config::LossEvents,
    errors::raise,
    shared::Counted,
    signal::Signal,
    values,
    world::{World, world},
};
use mlua::prelude::*;
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// `Enum.WebStreamClientState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting = 0,
    Open = 1,
    Error = 2,
    Closed = 3,
}

struct Client {
    opened: Signal,
    message_received: Signal,
    error: Signal,
    closed: Signal,
    state: Cell<State>,
    closing: Cell<bool>,
    commands: UnboundedSender<StreamCommand>,
}

#[derive(Clone)]
pub(in crate::headless) struct WebStreamClient(Rc<Client>);

/// The streams that are open or connecting.
#[derive(Default)]
pub(in crate::headless) struct Streams(RefCell<HashMap<u64, (WebStreamClient, Counted)>>);

impl Streams {
    /// Tear every connection without a close frame.
    pub(in crate::headless) fn drop_all(&self) {
        for (stream, _) in self.0.borrow().values() {
            stream.command(StreamCommand::Drop);
        }
    }

    /// Whether a stream still waits for its close frame to be answered.
    pub(in crate::headless) fn any_closing(&self) -> bool {
        self.0.borrow().values().any(|(stream, _)| stream.0.closing.get())
    }

    fn get(&self, id: u64) -> Option<WebStreamClient> {
        self.0.borrow().get(&id).map(|(stream, _)| stream.clone())
    }
}

/// `HttpService:CreateWebStreamClient` for a WebSocket.
pub(in crate::headless) fn open(lua: &Lua, url: String, headers: Vec<(String, String)>) -> LuaResult<WebStreamClient> {
    let world = world(lua);
    let limit = world.shared.knobs.stream_limit;
    if world.shared.streams.get() >= limit {
        // Roblox documents the limit, not the text.
        return raise(format!("CreateWebStreamClient: no more than {limit} WebStreamClients may be open at once"));
    }
    let (commands, receiver) = unbounded_channel();
    let stream = WebStreamClient(Rc::new(Client {
        opened: Signal::default(),
        message_received: Signal::default(),
        error: Signal::default(),
        closed: Signal::default(),
        state: Cell::new(State::Connecting),
        closing: Cell::new(false),
        commands,
    }));
    let id = world.next_serial();
    let counted = Counted::new(&world.shared, |shared| &shared.streams);
    world.streams.0.borrow_mut().insert(id, (stream.clone(), counted));
    tokio::spawn(websocket::carry(id, url, headers, receiver, world.net.clone()));
    Ok(stream)
}

impl WebStreamClient {
    fn command(&self, command: StreamCommand) {
        // A task that has ended needs no commands.
        let _ended = self.0.commands.send(command);
    }

    fn send(&self, text: &LuaString) -> LuaResult<()> {
        if self.0.state.get() != State::Open || self.0.closing.get() {
            return raise("WebStreamClient:Send can only be called when the connection is open");
        }
        match text.to_str() {
            Ok(text) => self.command(StreamCommand::Send(text.to_owned())),
            Err(_) => {
                return raise(
                    "WebStreamClient:Send of a text that is not UTF-8 is not simulated by the headless Studio",
                );
            }
        }
        Ok(())
    }
}

/// Carry out what a socket task told.
pub(in crate::headless) fn handle(lua: &Lua, world: &World, event: NetEvent) -> LuaResult<()> {
    match event {
        NetEvent::Opened { stream, status, headers } => {
            let Some(client) = world.streams.get(stream) else { return Ok(()) };
            client.0.state.set(State::Open);
            client.0.opened.fire(lua, world, &(status, headers).into_lua_multi(lua)?);
        }
        NetEvent::Message { stream, bytes } => {
            let Some(client) = world.streams.get(stream) else { return Ok(()) };
            client.0.message_received.fire(lua, world, &lua.create_string(bytes)?.into_lua_multi(lua)?);
        }
        NetEvent::Lost { stream, status, message } => lost(lua, world, stream, status, message)?,
        NetEvent::Closed { stream } => close(lua, world, stream),
        NetEvent::AfterLoss { stream, message: Some((status, message)) } => fail(lua, world, stream, status, &message)?,
        NetEvent::AfterLoss { stream, message: None } => close(lua, world, stream),
        NetEvent::Answered { .. } => {}
    }
    Ok(())
}

/// The second event follows in a later turn, so that handlers see the state of the first.
fn lost(lua: &Lua, world: &World, stream: u64, status: u16, message: String) -> LuaResult<()> {
    let later = |message| {
        world.net.send(NetEvent::AfterLoss { stream, message });
    };
    match world.shared.knobs.loss_events {
        LossEvents::ErrorOnly => fail(lua, world, stream, status, &message)?,
        LossEvents::ClosedOnly => close(lua, world, stream),
        LossEvents::ErrorThenClosed => {
            fail(lua, world, stream, status, &message)?;
            later(None);
            return Ok(());
        }
        LossEvents::ClosedThenError => {
            if let Some(client) = world.streams.get(stream) {
                client.0.state.set(State::Closed);
                client.0.closed.fire(lua, world, &LuaMultiValue::new());
            }
            later(Some((status, message)));
            return Ok(());
        }
    }
    world.streams.0.borrow_mut().remove(&stream);
    Ok(())
}

fn fail(lua: &Lua, world: &World, stream: u64, status: u16, message: &str) -> LuaResult<()> {
    let Some(client) = world.streams.get(stream) else { return Ok(()) };
    if client.0.state.get() == State::Closed {
        // `Closed` came first: this is the last event.
        world.streams.0.borrow_mut().remove(&stream);
    } else {
        client.0.state.set(State::Error);
    }
    client.0.error.fire(lua, world, &(status, message).into_lua_multi(lua)?);
    Ok(())
}

fn close(lua: &Lua, world: &World, stream: u64) {
    let Some((client, _counted)) = world.streams.0.borrow_mut().remove(&stream) else { return };
    client.0.state.set(State::Closed);
    client.0.closed.fire(lua, world, &LuaMultiValue::new());
}

impl LuaUserData for WebStreamClient {
    fn add_fields<F: LuaUserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(LuaMetaMethod::Type, "Object");
        fields.add_field_method_get("ClassName", |_, _| Ok("WebStreamClient"));
        fields.add_field_method_get("ConnectionState", |lua, this| {
            values::enum_item(lua, "WebStreamClientState", this.0.state.get() as u32)
        });
        fields.add_field_method_get("Opened", |_, this| Ok(this.0.opened.clone()));
        fields.add_field_method_get("MessageReceived", |_, this| Ok(this.0.message_received.clone()));
        fields.add_field_method_get("Error", |_, this| Ok(this.0.error.clone()));
        fields.add_field_method_get("Closed", |_, this| Ok(this.0.closed.clone()));
    }

    fn add_methods<M: LuaUserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("Send", |_, this, text: LuaString| this.send(&text));
        methods.add_method("Close", |_, this, ()| {
            if !this.0.closing.replace(true) {
                this.command(StreamCommand::Close);
            }
            Ok(())
        });
        methods.add_method("IsA", |_, _, class: String| Ok(class == "WebStreamClient" || class == "Object"));
        methods.add_meta_method(LuaMetaMethod::Index, |_, _, key: String| -> LuaResult<()> {
            if key == "Changed" || key == "GetPropertyChangedSignal" {
                return raise(crate::headless::instance::not_simulated("WebStreamClient", &key));
            }
            raise(format!("{key} is not a valid member of WebStreamClient \"WebStreamClient\""))
        });
        methods.add_meta_method(LuaMetaMethod::ToString, |_, _, ()| Ok("WebStreamClient"));
    }
}
