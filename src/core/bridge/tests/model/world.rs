//! The bridge among plugins, links and a serve session, with the promises that hold at every step.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use serde_json::{Value, json};

use super::{
    super::*,
    Do, PLAYS,
    kept::Kept,
    plugin::{Plugin, TEXT},
    wire::{Task, Wire, caller_of, check_request, noise, plugins, view},
};
use crate::core::{
    ids::{ReviewId, RunId},
    play::PlayMode,
    protocol::{Notice, PluginFrame, Request, ServerFrame},
};

pub(super) struct World {
    pub(super) rig: Rig,
    pub(super) plugins: Vec<Plugin>,
    pub(super) wires: BTreeMap<LinkId, Wire>,
    pub(super) tasks: VecDeque<Task>,
    /// Who still waits, and until when.
    pub(super) waiting: BTreeMap<CallerId, Moment>,
    pub(super) abandoned: HashSet<CallerId>,
    /// What each caller of an operation is answered.
    pub(super) wanted: HashMap<CallerId, Value>,
    pub(super) kept: Kept,
    pub(super) runs: HashMap<RunId, CallerId>,
    /// Which button each caller pressed, and in which place.
    pub(super) pressed: HashMap<CallerId, (u64, PlayMode)>,
    /// Reviews that callers were offered.
    pub(super) offered: Vec<ReviewId>,
    /// Requests as they were first sent, and on which links.
    sent: BTreeMap<RequestId, (Request, Vec<LinkId>)>,
    ran: HashSet<RequestId>,
    cursor: u32,
    pub(super) successes: usize,
    pub(super) events: u64,
}

impl World {
    /// Two Studios, a second window of the first and its play server, and two level-0 windows of one place.
    pub fn new() -> Self {
        Self {
            rig: Rig { keeps: false, ..Rig::new() },
            plugins: plugins(),
            wires: BTreeMap::new(),
            tasks: VecDeque::new(),
            waiting: BTreeMap::new(),
            abandoned: HashSet::new(),
            wanted: HashMap::new(),
            kept: Kept::default(),
            runs: HashMap::new(),
            pressed: HashMap::new(),
            offered: Vec::new(),
            sent: BTreeMap::new(),
            ran: HashSet::new(),
            cursor: 0,
            successes: 0,
            events: 0,
        }
    }

    /// How many events the bridge took.
    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn successes(&self) -> usize {
        self.successes
    }

    pub fn step(&mut self, step: Do) {
        match step {
            Do::Connect(plugin) => self.connect(plugin),
            Do::Reload(plugin) => self.plugins[plugin].reload(),
            Do::Read(plugin) => self.read(plugin),
            Do::Serve(which) => self.serve(which),
            Do::Finish(plugin, which) => self.plugins[plugin].finish(which),
            Do::Repeat(plugin, which) => self.plugins[plugin].repeat(which),
            Do::Noise(plugin, which) => self.noise(plugin, which),
            Do::Client(which) => self.plugins[PLAYS].client(which),
            Do::Bye(plugin) => self.plugins[plugin].says.push_back(json!({"type": "bye", "reason": "Unloading"})),
            Do::Cut(plugin) => self.cut(plugin),
            Do::SeeClosed(which) => self.see_closed(which),
            Do::NotSent(which) => self.not_sent(which),
            Do::Call { place, ask, patience } => self.call(place, ask, millis(patience)),
            Do::Change { number, otherwise, patience } => {
                let place = self.plugins[number % self.plugins.len()].place;
                self.change(number as u64, place, otherwise, millis(patience));
            }
            Do::Abandon(which) => {
                if let Some(caller) = self.waiting.keys().nth(which).copied() {
                    self.abandoned.insert(caller);
                    self.event(Event::Abandon { caller });
                    assert!(!self.waiting.contains_key(&caller), "whoever gives up is settled at once");
                }
            }
            Do::Answer(well) => self.answer(well),
            Do::Answers(plugin, which) => self.plugins[plugin].answers(which),
            Do::Elsewhere(which, choice) => self.answer_elsewhere(which, choice),
            Do::Patch => {
                self.cursor += 1;
                self.event(patch(self.cursor, script(1, TEXT)));
            }
            Do::Pass(time) => {
                self.pass(millis(time));
                (0..self.plugins.len()).for_each(|plugin| self.plugin_time(plugin, millis(time)));
            }
            Do::PluginsSleep(time) => self.pass(millis(time)),
            Do::ServerSleeps(time) => {
                (0..self.plugins.len()).for_each(|plugin| self.plugin_time(plugin, millis(time)));
            }
            Do::Crash { kept, arrives } => self.crash(kept, arrives),
            Do::Restart => self.restart(),
            Do::Quiet => self.quiet(),
            Do::Oversleep(time) => {
                self.rig.now += millis(time);
                self.event(Event::Tick);
                self.nothing_overdue();
            }
            Do::Places(which) => {
                let lists = [PlacePolicy::default(), serves(&[1, 3]), serves(&[2]), PlacePolicy::default()];
                self.event(Event::Places(lists[which].clone()));
            }
        }
        self.transmit();
    }

    pub(super) fn event(&mut self, event: Event) {
        self.events += 1;
        let out = self.rig.event(event);
        self.carry_out(out);
    }

    pub(super) fn pass(&mut self, time: Duration) {
        let out = self.rig.pass(time);
        self.carry_out(out);
        self.nothing_overdue();
    }

    /// A plugin's clock runs; what it does not hear for 20 s it drops.
    fn plugin_time(&mut self, index: usize, time: Duration) {
        if self.plugins[index].silent_for(time) {
            self.cut(index);
        }
    }

    fn nothing_overdue(&self) {
        let now = self.rig.now;
        assert!(self.waiting.values().all(|deadline| *deadline > now), "overdue at {now:?}: {:?}", self.waiting);
        assert!(self.rig.bridge.next_tick() > now, "a tick leaves nothing to do at the same moment");
    }

    fn connect(&mut self, index: usize) {
        self.rig.links += 1;
        let link = LinkId(self.rig.links);
        let plugin = &mut self.plugins[index];
        plugin.connect(link, index);
        let wire = Wire::of(plugin, plugin.last_n(&self.rig.server));
        self.wires.insert(link, wire);
        self.event(Event::Opened { link });
    }

    /// What the plugins say gets onto their links.
    pub(super) fn transmit(&mut self) {
        for plugin in &mut self.plugins {
            let Some(wire) = plugin.link.and_then(|link| self.wires.get_mut(&link)) else {
                plugin.says.clear();
                continue;
            };
            if !wire.broken {
                wire.to_server.append(&mut plugin.says);
            }
        }
    }

    pub(super) fn read(&mut self, index: usize) {
        let plugin = &mut self.plugins[index];
        let Some(wire) = plugin.link.and_then(|link| self.wires.get_mut(&link)) else { return };
        // Its WebSocket answers pings by itself.
        for _ in 0..std::mem::take(&mut wire.pings) {
            wire.to_server.push_back(json!("pong"));
        }
        match wire.to_plugin.pop_front() {
            Some(frame) => {
                if let ServerFrame::Notice(Notice::Ack { request_id, .. }) = &frame {
                    self.kept.acknowledged(request_id);
                }
                if let Some(request) = plugin.read(frame) {
                    self.kept.begins(&request);
                    let id = request.request_id;
                    assert!(self.ran.insert(id.clone()), "{id} runs twice");
                }
            }
            None if wire.closing => plugin.link = None,
            None => {}
        }
    }

    pub(super) fn serve(&mut self, which: usize) {
        let busy: Vec<LinkId> =
            self.wires.iter().filter(|(_, wire)| !wire.to_server.is_empty()).map(|(link, _)| *link).collect();
        let Some(link) = busy.get(which % busy.len().max(1)).copied() else { return };
        let wire = self.wires.get_mut(&link).expect("found a moment ago");
        let frame = wire.to_server.pop_front().expect("busy");
        if wire.closed {
            return;
        }
        self.event(match frame {
            Value::String(_) => Event::Pong { link },
            frame => Event::Frame { link, frame: PluginFrame::parse(&frame.to_string()) },
        });
    }

    /// A request was too large. What is so for one link is so for each.
    fn not_sent(&mut self, which: usize) {
        if let Some(id) = self.sent.keys().nth(which).filter(|id| !self.ran.contains(*id)).cloned()
            && self.wires.values_mut().filter_map(|wire| wire.takes_back(&id).then_some(())).count() > 0
        {
            self.event(Event::NotSent { request: Some(id), size: 20_000_000 });
        }
    }

    fn noise(&mut self, index: usize, which: usize) {
        self.plugins[index].says.push_back(noise(which));
    }

    fn cut(&mut self, index: usize) {
        let Some(link) = self.plugins[index].link.take() else { return };
        let wire = self.wires.get_mut(&link).expect("links are never forgotten");
        wire.broken = true;
        wire.to_plugin.clear();
        wire.to_server.clear();
    }

    /// Links that have ended, of which the server does not know yet.
    pub(super) fn over(&self) -> Vec<LinkId> {
        let in_use: Vec<LinkId> = self.plugins.iter().filter_map(|plugin| plugin.link).collect();
        let is_over =
            |link: &LinkId, wire: &Wire| !wire.closed && (wire.broken || wire.closing || !in_use.contains(link));
        self.wires.iter().filter(|(link, wire)| is_over(link, wire)).map(|(link, _)| *link).collect()
    }

    fn see_closed(&mut self, which: usize) {
        let over = self.over();
        if let Some(link) = over.get(which % over.len().max(1)) {
            self.tell_closed(*link);
        }
    }

    pub(super) fn tell_closed(&mut self, link: LinkId) {
        let wire = self.wires.get_mut(&link).expect("links are never forgotten");
        if !std::mem::replace(&mut wire.closed, true) {
            self.event(Event::Closed { link, reason: "gone".into() });
        }
    }

    pub(super) fn answer(&mut self, well: bool) {
        let Some(task) = self.tasks.pop_front() else { return };
        let event = match task {
            Task::Tree(link) => {
                let nodes = vec![script(1, TEXT)];
                let part = TreePart { tree_id: TREE.into(), cursor: self.cursor, part: 0, last: true, nodes };
                Event::TreeBuilt { link, parts: vec![part] }
            }
            Task::CatchUp(run) => {
                let result = if well { Ok(self.cursor) } else { Err(ToolError::failed("no such file", "make it")) };
                Event::CaughtUp { run, result }
            }
            Task::Look(run, ids) => {
                let caller = self.runs.get(&run).copied();
                let views = ids.into_iter().map(|id| (id, view(id, &run, caller))).collect();
                Event::Looked { run, views }
            }
            Task::Intend(operation, intent) => {
                let intention = self.kept.intend(&operation, intent, well);
                Event::Intended { operation, intention }
            }
            Task::Record(operation, request, outcome) => {
                self.kept.record(&operation, &request, outcome);
                Event::Recorded { request }
            }
            Task::Recover(request, outcome) => {
                self.kept.recover(&request, &outcome);
                Event::Recorded { request }
            }
        };
        self.event(event);
    }

    pub(super) fn carry_out(&mut self, out: Out) {
        for effect in out.0 {
            match effect {
                Effect::Send { link, frame } => self.send(link, frame),
                Effect::Ping { link } => {
                    let wire = self.wires.get_mut(&link).expect("only links that were opened are pinged");
                    assert!(!wire.closed && !wire.closing && !wire.level1, "a ping to {link:?}");
                    wire.pings += usize::from(!wire.broken);
                }
                Effect::Close { link, .. } => {
                    let wire = self.wires.get_mut(&link).expect("only links that were opened are closed");
                    assert!(!wire.closed && !wire.closing, "{link:?} is closed twice");
                    wire.closing = true;
                }
                Effect::Settle { caller, outcome } => self.settled(caller, outcome),
                Effect::BuildTree { link } => self.tasks.push_back(Task::Tree(link)),
                Effect::CatchUp { run, paths } => {
                    if let Some(caller) = paths.iter().flatten().next().map(|folder| caller_of(folder)) {
                        self.runs.insert(run.clone(), caller);
                    }
                    self.tasks.push_back(Task::CatchUp(run));
                }
                Effect::Look { run, ids, .. } => self.tasks.push_back(Task::Look(run, ids)),
                Effect::Intend { operation, intent } => self.tasks.push_back(Task::Intend(operation, intent)),
                Effect::Record { operation, request, outcome } => {
                    self.tasks.push_back(Task::Record(operation, request, outcome));
                }
                Effect::Recover { request, outcome } => self.tasks.push_back(Task::Recover(request, outcome)),
                Effect::Progress { caller, .. } => {
                    assert!(self.waiting.contains_key(&caller), "progress after the end");
                }
                Effect::Offer { caller, review } => self.offer(caller, &review),
                Effect::Withdraw { caller } => {
                    assert!(self.waiting.contains_key(&caller), "a question is taken back after the end");
                }
                Effect::Output { .. } | Effect::Note(_) => {}
                other => panic!("the store answers by itself: {other:?}"),
            }
        }
    }

    fn send(&mut self, link: LinkId, frame: ServerFrame) {
        let wire = self.wires.get_mut(&link).expect("only links that were opened are sent to");
        assert!(!wire.closed && !wire.closing, "{frame:?} on a link that is closed");
        let (is_broken, level1) = (wire.broken, wire.level1);
        match &frame {
            ServerFrame::Request(request) => {
                let again = self.sent.contains_key(&request.request_id);
                check_request(wire, link, request, &mut self.sent);
                assert!(!again || self.is_wanted(&request.body), "sent again, and nobody waits: {request:?}");
            }
            ServerFrame::Notice(notice) => {
                let known = level1 || matches!(notice, Notice::Rejected { .. });
                assert!(known, "a level-0 plugin does not know {notice:?}");
            }
        }
        if !is_broken && let Some(wire) = self.wires.get_mut(&link) {
            wire.to_plugin.push_back(frame);
        }
    }
}
