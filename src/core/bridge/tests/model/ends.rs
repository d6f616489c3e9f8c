//! How a server ends and the next one begins, and what must hold when nothing is on its way any more.

use super::{super::*, plugin::Plugin, wire::Task, world::World};
use crate::core::bridge::{Waiting, What};

impl World {
    /// The server stops; then all that was on its way still arrives.
    pub fn end(&mut self) {
        if self.events().is_multiple_of(2) {
            self.quiet();
        }
        self.event(Event::Shutdown);
        assert!(self.waiting.is_empty(), "never settled: {:?}", self.waiting);
        while !self.tasks.is_empty() {
            self.answer(true);
        }
        while self.wires.values().any(|wire| !wire.to_server.is_empty()) {
            self.serve(0);
        }
        let links: Vec<LinkId> = self.wires.keys().copied().collect();
        for link in links {
            self.tell_closed(link);
        }
        while !self.tasks.is_empty() {
            self.answer(true);
        }
        self.pass(seconds(60));
        let bridge = &self.rig.bridge;
        let nothing = bridge.operations.is_empty() && bridge.lanes.is_empty() && bridge.turns.is_empty();
        assert!(nothing && bridge.owed.is_empty(), "something still runs");
        assert!(bridge.reviews.is_settled(), "something is still asked");
        let empty = bridge.links.is_empty() && bridge.studios.is_empty() && bridge.runs.is_empty();
        assert!(empty && bridge.calls.is_empty() && bridge.next_tick() == Moment::MAX, "something is left behind");
    }

    /// The server process is killed and started again. Nobody hears anything of the old one; but some of
    /// what it gave to the store may be `kept`, and what it has sent may still arrive.
    pub(super) fn crash(&mut self, kept: usize, arrives: bool) {
        let is_for_store = |task: &Task| matches!(task, Task::Intend(..) | Task::Record(..) | Task::Recover(..));
        for task in std::mem::take(&mut self.tasks).into_iter().filter(is_for_store).take(kept) {
            match task {
                Task::Intend(operation, intent) => _ = self.kept.intend(&operation, intent, true),
                Task::Record(operation, request, outcome) => self.kept.record(&operation, &request, outcome),
                Task::Recover(request, outcome) => self.kept.recover(&request, &outcome),
                Task::Tree(_) | Task::CatchUp(_) | Task::Look(..) => unreachable!("filtered out"),
            }
        }
        self.waiting.clear();
        self.next_server(arrives);
    }

    /// The server is stopped and started again: everyone is answered, and the store has it all.
    pub(super) fn restart(&mut self) {
        self.event(Event::Shutdown);
        assert!(self.waiting.is_empty(), "never settled: {:?}", self.waiting);
        self.crash(usize::MAX, true);
    }

    fn next_server(&mut self, arrives: bool) {
        self.rig.restart();
        for wire in self.wires.values_mut() {
            wire.closed = true;
            wire.broken = true;
            wire.to_server.clear();
            if !arrives {
                wire.to_plugin.clear();
            }
        }
    }

    /// Everything that is on its way arrives and everything that runs ends, without time passing: then
    /// nothing waits, and nobody holds a turn, where a link is.
    pub(super) fn quiet(&mut self) {
        let mut moves = 0;
        while self.moves() {
            moves += 1;
            assert!(moves < 1_000, "it never comes to rest");
        }
        let bridge = &self.rig.bridge;
        for studio in bridge.studios.iter().filter(|studio| studio.link.is_some()) {
            let key = studio.key;
            // A person may think for as long as the caller waits, and a play test may take as long to come.
            let is_asked = |waiting: &Waiting| matches!(waiting.what, What::Review(_) | What::Play(..));
            let open = bridge.calls.iter().filter(|(_, waiting)| waiting.studio == key && !is_asked(waiting));
            let open: Vec<_> = open.collect();
            assert!(open.is_empty(), "{} is done, and these still wait: {open:?}", studio.name);
            assert_eq!(bridge.lanes.holders(key).next(), None, "{} is done, and its lane is held", studio.name);
        }
        let is_up = |plugin: &Plugin| {
            let wire = plugin.link.and_then(|link| self.wires.get(&link));
            plugin.is_welcome() && wire.is_some_and(|wire| !wire.broken)
        };
        for plugin in self.plugins.iter().filter(|plugin| is_up(plugin)) {
            assert!(!plugin.is_busy(), "a result was never acknowledged");
        }
    }

    fn moves(&mut self) -> bool {
        let mut moved = !self.tasks.is_empty();
        while !self.tasks.is_empty() {
            self.answer(true);
        }
        for index in 0..self.plugins.len() {
            moved |= self.plugins[index].runs();
            while self.plugins[index].runs() {
                self.plugins[index].finish(0);
            }
            let link = self.plugins[index].link;
            while link.is_some_and(|link| self.wires.get(&link).is_some_and(|wire| !wire.to_plugin.is_empty())) {
                self.read(index);
                moved = true;
            }
            // It sees that the link is being closed.
            self.read(index);
        }
        self.transmit();
        while self.wires.values().any(|wire| !wire.to_server.is_empty()) {
            self.serve(0);
            moved = true;
        }
        for link in self.over() {
            self.tell_closed(link);
            moved = true;
        }
        moved
    }
}
