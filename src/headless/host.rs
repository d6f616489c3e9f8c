//! The thread of a headless Studio: it owns the VM and runs everything in turn.

use super::{
    config::{HeadlessConfig, HeadlessError},
    net::{self, NetEvent, Response},
    scheduler::Work,
    scripts::{self, ContextId, Sees},
    signal::{Signal, SignalName},
    vm,
    world::{Run, RunResult, SharedLog, World},
};
use mlua::prelude::*;
use rbx_dom_weak::{
    InstanceBuilder, WeakDom,
    types::{Ref, Variant},
    ustr,
};
use std::{
    rc::Rc,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, unbounded_channel},
        oneshot,
    },
    time::{sleep_until, timeout},
};

/// What the handle asks of the thread.
pub(super) enum Command {
    Run { code: String, reply: oneshot::Sender<RunResult> },
    DropSockets { done: oneshot::Sender<()> },
    ReloadPlugin { done: oneshot::Sender<()> },
    Stop,
}

/// The events of `RunService` that come with every frame, in their order.
const FRAME_EVENTS: [&str; 7] =
    ["PreRender", "RenderStepped", "PreAnimation", "PreSimulation", "Stepped", "PostSimulation", "Heartbeat"];
/// How long sockets that are closing may take when the Studio stops.
const GOODBYE: Duration = Duration::from_millis(500);
/// The plugin's setting that says whether it asks the person at the screen.
const ASKS_SETTING: &str = "RojoMcpReviews";
/// The folder plugins are loaded under; Studio names it after the file.
const PLUGIN_FOLDER: &str = "user_rojo-mcp.rbxm";

/// One simulated Studio on its own thread.
pub(super) struct Host {
    lua: Lua,
    world: Rc<World>,
    events: UnboundedReceiver<NetEvent>,
    commands: UnboundedReceiver<Command>,
    plugin: Vec<u8>,
    context: ContextId,
    frame_signals: Vec<(&'static str, Signal)>,
    started: super::clock::Instant,
    last_frame: super::clock::Instant,
    run_command: LuaFunction,
}

impl Host {
    /// Build the VM, fill the place, and start the plugin.
    pub(super) fn start(
        config: HeadlessConfig,
        commands: UnboundedReceiver<Command>,
        log: SharedLog,
    ) -> Result<Self, HeadlessError> {
        let place = read_place(&config.place)?;
        rbx_binary::from_reader(&config.plugin[..]).map_err(HeadlessError::Plugin)?;
        let (sender, events) = unbounded_channel();
        let lua = Lua::new();
        let mut settings = config.settings;
        if !config.knobs.somebody_watches {
            settings.entry(ASKS_SETTING).or_insert(false.into());
        }
        let world = World::new(&lua, config.knobs, sender, log).map_err(vm_error)?;
        world.place_id.set(config.place_id);
        *world.settings.borrow_mut() = settings;
        if let Some(place) = place {
            fill(&world, place);
        }
        let name = if config.place_name.is_empty() { "Place1" } else { &config.place_name };
        world.dom.borrow_mut().root_mut().name = name.to_owned();

        let world = Rc::new(world);
        let run_command = vm::set_up(&lua, &world).map_err(vm_error)?;
        let run_service = world.service("RunService");
        let frame_signals =
            FRAME_EVENTS.map(|event| (event, world.signal(run_service, SignalName::Event(ustr(event)))));
        let now = super::clock::now();
        let mut host = Self {
            lua,
            world,
            events,
            commands,
            plugin: config.plugin,
            context: ContextId::Plugin(0),
            frame_signals: frame_signals.to_vec(),
            started: now,
            last_frame: now,
            run_command,
        };
        host.load_plugin()?;
        host.world.scheduler.drain(&host.lua);
        Ok(host)
    }

    pub(super) fn stop_flag(&self) -> Arc<AtomicBool> {
        self.world.scheduler.stop_flag()
    }

    /// Serve until told to stop.
    pub(super) async fn run(mut self) {
        loop {
            let busy = self.world.scheduler.drain(&self.lua);
            self.world.sweep();
            let wake = self.next_wake();
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(Command::Stop) | None => break,
                    Some(command) => self.handle_command(command),
                },
                Some(event) = self.events.recv() => self.handle_event(event),
                () = tokio::task::yield_now(), if busy => {}
                () = wait_until(wake), if !busy => self.frame(),
            }
        }
        self.say_goodbye().await;
    }

    fn next_wake(&self) -> Option<super::clock::Instant> {
        let scheduler = &self.world.scheduler;
        let frame = self.frame_signals.iter().any(|(_, signal)| signal.has_listeners()).then(|| scheduler.next_frame());
        [frame, scheduler.next_wake()].into_iter().flatten().min()
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Run { code, reply } => self.run_code(&code, reply),
            Command::DropSockets { done } => {
                self.world.streams.drop_all();
                // The caller may be gone; the sockets are torn all the same.
                let _gone = done.send(());
            }
            Command::ReloadPlugin { done } => {
                self.unload_plugin();
                if let Err(error) = self.load_plugin() {
                    log::error!("headless Studio: reload the plugin: {error}");
                }
                self.world.scheduler.drain(&self.lua);
                let _gone = done.send(());
            }
            Command::Stop => {}
        }
    }

    fn run_code(&self, code: &str, reply: oneshot::Sender<RunResult>) {
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

    fn handle_event(&self, event: NetEvent) {
        let handled = match event {
            NetEvent::Answered { request, result } => self.answer(request, result),
            event => net::handle_stream(&self.lua, &self.world, event),
        };
        if let Err(error) = handled {
            log::error!("headless Studio: a network event failed: {error}");
        }
    }

    fn answer(&self, request: u64, result: Result<Response, String>) -> LuaResult<()> {
        let Some((context, thread)) = self.world.requests.borrow_mut().remove(&request) else { return Ok(()) };
        let args = match result {
            Ok(response) => (true, response_table(&self.lua, response)?).into_lua_multi(&self.lua)?,
            Err(message) => (false, message).into_lua_multi(&self.lua)?,
        };
        self.world.scheduler.push(context, Work::Resume(thread, args));
        Ok(())
    }

    /// Fire the frame events anybody listens to.
    fn frame(&mut self) {
        let now = super::clock::now();
        let delta = now.duration_since(self.last_frame).as_secs_f64();
        let time = now.duration_since(self.started).as_secs_f64();
        self.last_frame = now;
        for (name, signal) in self.frame_signals.iter().filter(|(_, signal)| signal.has_listeners()) {
            let args = if *name == "Stepped" { vec![time, delta] } else { vec![delta] };
            signal.fire(&self.lua, &self.world, &args.into_iter().map(LuaValue::Number).collect());
        }
    }

    /// Put the plugin beside the DataModel and start its scripts in a new context.
    fn load_plugin(&mut self) -> Result<(), HeadlessError> {
        let mut model = rbx_binary::from_reader(&self.plugin[..]).map_err(HeadlessError::Plugin)?;
        let world = &self.world;
        let folder =
            world.dom.borrow_mut().insert(Ref::none(), InstanceBuilder::new("Folder").with_name(PLUGIN_FOLDER));
        for root in model.root().children().to_vec() {
            model.transfer(root, &mut world.dom.borrow_mut(), folder);
        }
        let scripts: Vec<Ref> =
            world.descendants(folder).into_iter().filter(|each| is_enabled_script(world, *each)).collect();
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
            match scripts::compile_script(&self.lua, &self.world, *script, self.context, false) {
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
    fn unload_plugin(&self) {
        let Ok(context) = self.world.contexts.get(self.context) else { return };
        if let Some(plugin) = super::instance::as_instance(&context.plugin) {
            let unloading = self.world.signal(plugin, SignalName::Event(ustr("Unloading")));
            unloading.fire(&self.lua, &self.world, &LuaMultiValue::new());
            self.world.scheduler.drain(&self.lua);
        }
        self.world.scheduler.end_context(self.context);
        self.world.contexts.remove(self.context);
    }

    /// The plugin's last words get out; sockets it forgot are torn.
    async fn say_goodbye(mut self) {
        self.unload_plugin();
        let closing = async {
            while self.world.streams.any_closing() {
                match self.events.recv().await {
                    Some(event) => self.handle_event(event),
                    None => break,
                }
            }
        };
        // Whoever does not answer the close frame in time is left behind.
        let _in_time = timeout(GOODBYE, closing).await;
    }
}

async fn wait_until(wake: Option<super::clock::Instant>) {
    match wake {
        Some(wake) => sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn vm_error(error: LuaError) -> HeadlessError {
    HeadlessError::Vm(error.to_string())
}

fn read_place(bytes: &[u8]) -> Result<Option<WeakDom>, HeadlessError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    rbx_binary::from_reader(bytes).map(Some).map_err(HeadlessError::Place)
}

/// Move a place's roots into the DataModel; a second root of a service joins the first.
fn fill(world: &World, mut place: WeakDom) {
    for root in place.root().children().to_vec() {
        let Some(instance) = place.get_by_ref(root) else { continue };
        let class = instance.class;
        let known = super::reflection::is_service(&class).then(|| world.find_service(&class)).flatten();
        let Some(service) = known else {
            place.transfer(root, &mut world.dom.borrow_mut(), world.game);
            continue;
        };
        let (properties, children) = (instance.properties.clone(), instance.children().to_vec());
        if let Some(existing) = world.dom.borrow_mut().get_by_ref_mut(service) {
            existing.properties.extend(properties);
        }
        for child in children {
            place.transfer(child, &mut world.dom.borrow_mut(), service);
        }
    }
}

fn is_enabled_script(world: &World, this: Ref) -> bool {
    let dom = world.dom.borrow();
    let Some(instance) = dom.get_by_ref(this) else { return false };
    let disabled = matches!(instance.properties.get(&ustr("Disabled")), Some(Variant::Bool(true)));
    instance.class == "Script" && !disabled
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
