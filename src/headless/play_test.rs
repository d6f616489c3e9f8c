//! A play test: a server, its clients, and what goes between them.

use super::{
    carried::Carried,
    config::{Play, Side},
    data_model::{DataModel, or_logged},
    place,
    remotes::{Outgoing, Recipient},
    scheduler::Work,
    shared::{ModelId, Shared, Waiter},
    world::{Opening, World},
};
use mlua::prelude::*;
use rbx_dom_weak::{
    InstanceBuilder, WeakDom,
    types::{Ref, Variant},
    ustr,
};
use std::rc::Rc;

/// The most clients of a test (creator documentation).
pub(super) const MOST_CLIENTS: u8 = 8;
/// Whose copies a client's Player gets, and where: below `Players.<name>`.
const STARTERS: [(&str, &str); 3] =
    [("StarterPlayerScripts", "PlayerScripts"), ("StarterGui", "PlayerGui"), ("StarterPack", "Backpack")];

/// The DataModels of a running test.
pub(super) struct PlayTest {
    shared: Rc<Shared>,
    plugin: Rc<[u8]>,
    server: DataModel,
    clients: Vec<DataModel>,
    /// How many clients ever joined.
    joined: u8,
    is_solo: bool,
    waiter: Option<Waiter>,
}

impl PlayTest {
    /// Copy the place that is edited, start the server, then let the players join.
    pub(super) fn start(
        shared: &Rc<Shared>,
        edit: &DataModel,
        plugin: &Rc<[u8]>,
        play: Play,
        waiter: Option<Waiter>,
    ) -> Result<Self, String> {
        let opening = Opening {
            side: Side::Server,
            is_run_mode: play == Play::Run,
            dom: place::server_copy(&edit.world),
            place_id: edit.world.place_id.get(),
            game_id: edit.world.game_id.get(),
            player: Ref::none(),
        };
        let server = DataModel::start(shared, opening, plugin.clone()).map_err(|error| error.to_string())?;
        let mut test = Self {
            shared: shared.clone(),
            plugin: plugin.clone(),
            server,
            clients: Vec::new(),
            joined: 0,
            is_solo: play == Play::Solo,
            waiter,
        };
        let players = match play {
            Play::Run => 0,
            Play::Solo => 1,
            Play::Clients(count) => count,
        };
        (0..players).try_for_each(|_| test.join())?;
        Ok(test)
    }

    /// One more client.
    pub(super) fn join(&mut self) -> Result<(), String> {
        if self.joined >= MOST_CLIENTS {
            return Err(format!("a test has at most {MOST_CLIENTS} clients"));
        }
        self.joined += 1;
        self.exchange();
        let world = &self.server.world;
        world.remotes.replicate();
        let player = add_player(&self.server.lua, world, self.joined, self.is_solo)
            .map_err(|error| super::errors::text_of(&error))?;
        // The server knows of the player before the player sees anything.
        self.server.turn();
        let mut dom = place::client_copy(world);
        furnish(&mut dom, player);
        let opening = Opening {
            side: Side::Client(self.joined),
            is_run_mode: false,
            dom,
            place_id: world.place_id.get(),
            game_id: world.game_id.get(),
            player,
        };
        let client = DataModel::start(&self.shared, opening, self.plugin.clone()).map_err(|error| error.to_string())?;
        self.clients.push(client);
        Ok(())
    }

    /// A client goes: its DataModel ends, and the server is told.
    pub(super) fn leave(&mut self, model: ModelId) {
        let Some(index) = self.clients.iter().position(|client| client.world.model == model) else { return };
        let client = self.clients.remove(index);
        let player = client.world.player;
        client.end();
        let (lua, world) = (&self.server.lua, &self.server.world);
        let left = world
            .tell_of_player(lua, "PlayerRemoving", player)
            .and_then(|()| world.fail_calls_to(lua, Recipient::Player(player)))
            .and_then(|()| world.destroy(lua, player));
        or_logged("a player leaves", left);
    }

    /// The server, then the clients.
    pub(super) fn models(&self) -> impl Iterator<Item = &DataModel> {
        std::iter::once(&self.server).chain(&self.clients)
    }

    pub(super) fn models_mut(&mut self) -> impl Iterator<Item = &mut DataModel> {
        std::iter::once(&mut self.server).chain(&mut self.clients)
    }

    /// Empty the outboxes. `true`: something was in them.
    pub(super) fn exchange(&self) -> bool {
        let mut moved = false;
        for from in self.models() {
            for outgoing in from.world.remotes.take_outgoing() {
                moved = true;
                or_logged("what goes between DataModels", self.deliver(from, outgoing));
            }
        }
        moved
    }

    fn deliver(&self, from: &DataModel, outgoing: Outgoing) -> LuaResult<()> {
        match outgoing {
            Outgoing::Change(change) => {
                self.clients.iter().try_for_each(|each| each.world.replicate(&each.lua, &from.world, &change))
            }
            Outgoing::Event { remote, to: Recipient::Server, mut args } => {
                args.insert(0, Carried::Instance(from.world.player));
                self.server.world.receive_event(&self.server.lua, remote, "OnServerEvent", &args)
            }
            Outgoing::Event { remote, to, args } => self
                .clients
                .iter()
                .filter(|each| to == Recipient::Everyone || to == Recipient::Player(each.world.player))
                .try_for_each(|each| each.world.receive_event(&each.lua, remote, "OnClientEvent", &args)),
            Outgoing::Call { remote, to: Recipient::Server, mut call } => {
                call.args.insert(0, Carried::Instance(from.world.player));
                self.server.world.receive_call(&self.server.lua, remote, call)
            }
            Outgoing::Call { remote, to, call } => {
                match self.clients.iter().find(|each| to == Recipient::Player(each.world.player)) {
                    Some(client) => client.world.receive_call(&client.lua, remote, call),
                    None => from.world.fail_calls_to(&from.lua, to),
                }
            }
            Outgoing::Answer { to, id, result } => match self.models().find(|each| each.world.model == to) {
                Some(caller) => caller.world.receive_answer(&caller.lua, id, &result),
                None => Ok(()),
            },
        }
    }

    /// End the clients, then the server, and give `value` to who waits in the edit DataModel.
    pub(super) fn end(self, edit: &DataModel, value: &Carried) {
        self.clients.into_iter().for_each(DataModel::end);
        self.server.end();
        *self.shared.test_args.borrow_mut() = Carried::Nil;
        if let Some(waiter) = self.waiter {
            let value = value.give(&edit.lua, &edit.world).and_then(|value| (true, value).into_lua_multi(&edit.lua));
            if let Some(args) = or_logged("the value of a test", value) {
                edit.world.scheduler.push(waiter.context, Work::Resume(waiter.thread, args));
            }
        }
    }
}

/// A Player of the server. Alone, it is who is signed in to Studio; those of a test with several have
/// negative ids.
fn add_player(lua: &Lua, server: &World, number: u8, is_solo: bool) -> LuaResult<Ref> {
    let name = format!("Player{number}");
    let id = if is_solo { 1 } else { -i64::from(number) };
    let player = server.create("Player");
    if let Some(instance) = server.dom.borrow_mut().get_by_ref_mut(player) {
        instance.name.clone_from(&name);
        instance.properties.insert(ustr("UserId"), Variant::Int64(id));
        instance.properties.insert(ustr("DisplayName"), Variant::String(name));
    }
    server.set_parent(lua, player, server.service("Players"))?;
    server.tell_of_player(lua, "PlayerAdded", player)?;
    Ok(player)
}

/// Give the client's own Player what it starts with.
fn furnish(dom: &mut WeakDom, player: Ref) {
    for (from, to) in STARTERS {
        let own = dom.insert(player, InstanceBuilder::new(to));
        let starter = dom.descendants().find(|each| each.class == from).map(|each| each.children().to_vec());
        for child in starter.unwrap_or_default() {
            let copy = dom.clone_within(child);
            dom.transfer_within(copy, own);
        }
    }
}
