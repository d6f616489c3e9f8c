//! One DataModel of a Studio: a VM, its place, and the plugin in it.

use super::{
    config::HeadlessError,
    net::{self, NetEvent, Response},
    scheduler::Work,
    scripts::{self, ContextId, Sees},
    shared::Shared,
    signal::{Signal, SignalName},
    vm,
    world::{Opening, Run, RunResult, World},
};
use mlua::prelude::*;
use rbx_dom_weak::{InstanceBuilder, types::Ref, ustr};
use std::rc::Rc;
use tokio::sync::oneshot;

/// The events of `RunService` that come with every frame, in their order.
const FRAME_EVENTS: [&str; 7] =
    ["PreRender", "RenderStepped", "PreAnimation", "PreSimulation", "Stepped", "PostSimulation", "Heartbeat"];
/// The folder plugins are loaded under; Studio names it after the file.
const PLUGIN_FOLDER: &str = "user_rojo-mcp.rbxm";

/// One DataModel. Dropping it releases its VM and tears its sockets.
pub(super) struct DataModel {
    pub(super) lua: Lua,
    pub(super) world: Rc<World>,
    plugin: Rc<[u8]>,
    context: ContextId,
    frame_signals: Vec<(&'static str, Signal)>,
    started: super::clock::Instant,
    last_frame: super::clock::Instant,
    run_command: LuaFunction,
}

impl DataModel {
    /// Build the VM over the place, start the plugin, then the game's scripts.
    pub(super) fn start(shared: &Rc<Shared>, opening: Opening, plugin: Rc<[u8]>) -> Result<Self, HeadlessError> {
        let lua = Lua::new();
        let world = Rc::new(World::new(&lua, shared, opening).map_err(vm_error)?);
        let run_command = vm::set_up(&lua, &world).map_err(vm_error)?;
        let run_service = world.service("RunService");
        let frame_signals =
            FRAME_EVENTS.map(|event| (event, world.signal(run_service, SignalName::Event(ustr(event)))));
        let now = super::clock::now();
        let mut model = Self {
            lua,
            world,
            plugin,
            context: ContextId::Plugin(0),
            frame_signals: frame_signals.to_vec(),
            started: now,
            last_frame: now,
            run_command,
        };
        model.load_plugin()?;
        model.world.scripts_moved(&model.world.descendants(model.world.game));
        model.turn();
        Ok(model)
    }

    /// Run what is due, for a slice of time. `true`: work is left.
    pub(super) fn turn(&self) -> bool {
        let busy = self.world.scheduler.drain(&self.lua);
        let started = or_logged("start scripts", self.world.start_due_scripts(&self.lua)) == Some(true);
        let busy = if started { self.world.scheduler.drain(&self.lua) } else { busy };
        self.world.sweep();
        busy
    }

    /// When something is due next.
    pub(super) fn next_wake(&self) -> Option<super::clock::Instant> {
        let scheduler = &self.world.scheduler;
        let frame = self.frame_signals.iter().any(|(_, signal)| signal.has_listeners()).then(|| scheduler.next_frame());
        [frame, scheduler.next_wake()].into_iter().flatten().min()
    }

    /// Fire the frame events anybody listens to.
    pub(super) fn frame(&mut self) {
        let now = super::clock::now();
        let delta = now.duration_since(self.last_frame).as_secs_f64();
        let time = now.duration_since(self.started).as_secs_f64();
        self.last_frame = now;
        for (name, signal) in self.frame_signals.iter().filter(|(_, signal)| signal.has_listeners()) {
            let args = if *name == "Stepped" { vec![time, delta] } else { vec![delta] };
            signal.fire(&self.lua, &self.world, &args.into_iter().map(LuaValue::Number).collect());
        }
    }

    /// Run a command, as a person types it into the command bar.
    pub(super) fn run_code(&self, code: &str, reply: oneshot::Sender<RunResult>) {
        let id = self.world.next_serial();
        match self.command_thread(id, code) {
            Ok((thread, args)) => {
                self.world.runs.borrow_mut().insert(id, Run { reply, thread: thread.clone() });
                self.world.scheduler.push(ContextId::CommandBar, Work::Resume(thread, args));
            }
            Err(error) => {
                // The caller may have stopped waiting.
                let _unwanted = reply.send(Err(super::errors::text_of(&error)));
            }
        }
    }

    fn command_thread(&self, id: u64, code: &str) -> LuaResult<(LuaThread, LuaMultiValue)> {
        let environment = scripts::environment(&self.lua, ContextId::CommandBar, Sees::CommandBar)?;
        let chunk = scripts::compile(&self.lua, code.as_bytes(), "=cmd", environment)?;
        let thread = self.lua.create_thread(self.run_command.clone())?;
        Ok((thread, (id, chunk).into_lua_multi(&self.lua)?))
    }

    pub(super) fn handle_event(&self, event: NetEvent) {
        let handled = match event {
            NetEvent::Answered { request, result } => self.answer(request, result),
            event => net::handle_stream(&self.lua, &self.world, event),
        };
        or_logged("a network event", handled);
    }

    fn answer(&self, request: u64, result: Result<Response, String>) -> LuaResult<()> {
        let Some(requesting) = self.world.requests.borrow_mut().remove(&request) else { return Ok(()) };
        let args = match result {
            Ok(response) => (true, response_table(&self.lua, response)?).into_lua_multi(&self.lua)?,
            Err(message) => (false, message).into_lua_multi(&self.lua)?,
        };
        self.world.scheduler.push(requesting.context, Work::Resume(requesting.thread.clone(), args));
        Ok(())
    }

    /// Put the plugin beside the DataModel and start its scripts in a new context.
    pub(super) fn load_plugin(&mut self) -> Result<(), HeadlessError> {
        let mut model = rbx_binary::from_reader(&self.plugin[..]).map_err(HeadlessError::Plugin)?;
        let world = &self.world;
        let folder =
            world.dom.borrow_mut().insert(Ref::none(), InstanceBuilder::new("Folder").with_name(PLUGIN_FOLDER));
        for root in model.root().children().to_vec() {
            model.transfer(root, &mut world.dom.borrow_mut(), folder);
        }
        let is_started = |each: &Ref| world.class(*each) == "Script" && world.is_enabled(*each);
        let scripts: Vec<Ref> = world.descendants(folder).into_iter().filter(is_started).collect();
        if scripts.is_empty() {
            return Err(HeadlessError::NoPluginScript);
        }
        self.context = ContextId::Plugin(world.next_serial());
        self.start_scripts(&scripts).map_err(vm_error)
    }

    fn start_scripts(&self, scripts: &[Ref]) -> LuaResult<()> {
        let plugin = self.world.create("Plugin");
        self.world.contexts.add(&self.lua, self.context, self.world.to_lua(&self.lua, plugin)?)?;
        for script in scripts {
            match scripts::compile_script(&self.lua, &self.world, *script, self.context, Sees::Plugin) {
                Ok(chunk) => {
                    let thread = self.lua.create_thread(chunk)?;
                    self.world.scheduler.push(self.context, Work::Resume(thread, LuaMultiValue::new()));
                }
                Err(error) => self.world.print(&self.lua, 3, super::errors::text_of(&error).as_bytes())?,
            }
        }
        Ok(())
    }

    /// Fire `plugin.Unloading`, let its handlers run, and end everything of the plugin's.
    pub(super) fn unload_plugin(&self) {
        let Ok(context) = self.world.contexts.get(self.context) else { return };
        if let Some(plugin) = super::instance::as_instance(&context.plugin) {
            let unloading = self.world.signal(plugin, SignalName::Event(ustr("Unloading")));
            unloading.fire(&self.lua, &self.world, &LuaMultiValue::new());
            self.world.scheduler.drain(&self.lua);
        }
        self.world.end_context(self.context);
    }

    /// The end of this DataModel: its scripts end, the plugin has the last word, and each command that
    /// runs is answered.
    pub(super) fn end(self) {
        or_logged("the end of scripts", self.world.end_scripts(&self.lua));
        self.unload_plugin();
        let running: Vec<u64> = self.world.runs.borrow().keys().copied().collect();
        for run in running {
            self.world.finish_run(run, Err("the play test has ended".to_owned()));
        }
    }
}

/// Report what cannot fail unless the simulation is wrong.
pub(super) fn or_logged<T>(what: &str, result: LuaResult<T>) -> Option<T> {
    result.inspect_err(|error| log::error!("headless Studio: {what} failed: {error}")).ok()
}

#[expect(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn vm_error(error: LuaError) -> HeadlessError {
    HeadlessError::Vm(error.to_string())
}

fn response_table(lua: &Lua, response: Response) -> LuaResult<LuaTable> {
    let headers = lua.create_table()?;
    for (name, value) in response.headers {
        headers.raw_set(name, value)?;
    }
    let table = lua.create_table()?;
    table.raw_set("Success", (200..300).contains(&response.status))?;
    table.raw_set("StatusCode", response.status)?;
    table.raw_set("StatusMessage", response.reason)?;
    table.raw_set("Headers", headers)?;
    table.raw_set("Body", lua.create_string(response.body)?)?;
    Ok(table)
}
