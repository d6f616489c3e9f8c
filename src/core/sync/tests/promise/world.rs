//! One Studio and the servers that its scripts are synced with, and what must hold at any moment.

use super::{server::Killed, *};

/// No run over so few scripts takes more steps.
const MOST_STEPS: usize = 100;

/// Everything there is.
#[derive(Debug, Clone)]
pub(in super::super) struct World {
    pub studio: Studio,
    pub servers: Vec<Server>,
    /// The place is edited by several people: it has no unsaved state to go back to.
    is_shared: bool,
    /// Every text that a side ever had, but for those that a person took away.
    owed: BTreeMap<String, TextHash>,
    /// What the files of each server, and what Studio ever had under each name.
    had_on_disk: Vec<BTreeSet<(String, Option<TextHash>)>>,
    had_in_studio: BTreeSet<(String, Option<TextHash>)>,
    /// Counts what people and other programs do.
    pub moves: u32,
}

/// What one run came to.
#[derive(Debug)]
pub(in super::super) struct Ran {
    /// `None`: the server or the plugin session ended before it.
    pub receipt: Option<Receipt>,
    /// Something else happened meanwhile.
    pub moved: bool,
}

impl World {
    pub fn new(texts: &Files, editors: usize) -> Self {
        let servers: Vec<Server> = (0..editors).map(|_| Server::new(texts)).collect();
        let mut world = Self {
            studio: Studio::new(texts),
            had_on_disk: vec![BTreeSet::new(); editors],
            servers,
            is_shared: editors > 1,
            owed: BTreeMap::new(),
            had_in_studio: BTreeSet::new(),
            moves: 0,
        };
        world.note();
        for whose in 0..editors {
            world.connect(whose);
        }
        world
    }

    /// A server begins, and compares.
    pub fn connect(&mut self, whose: usize) {
        let session = self.studio.session;
        self.servers[whose].restart(session);
        self.run(whose, SyncArgs::comparison(), &mut |_| {});
    }

    /// A person, or another program, does something. What that takes away itself nobody is owed.
    pub fn moved_by(&mut self, doing: impl FnOnce(&mut Self)) {
        self.moves += 1;
        let before = self.on_sides();
        doing(self);
        let after = self.on_sides();
        before.difference(&after).for_each(|text| _ = self.owed.remove(text));
        self.note();
    }

    fn on_sides(&self) -> BTreeSet<String> {
        let studio = self.studio.scripts.iter().map(|script| &script.source);
        self.servers.iter().flat_map(Server::texts).chain(studio).cloned().collect()
    }

    /// What both sides have now they have had, and are owed.
    fn note(&mut self) {
        for text in self.on_sides() {
            self.owed.entry(text).or_insert_with_key(|text| hash(text));
        }
        for (server, had) in self.servers.iter().zip(&mut self.had_on_disk) {
            had.extend(NAMES.iter().map(|name| ((*name).to_owned(), server.disk.get(*name).map(|text| hash(text)))));
        }
        let in_studio = |name: &&str| ((*name).to_owned(), self.studio.find(name).map(|script| hash(script.text())));
        let now: Vec<_> = NAMES.iter().map(in_studio).collect();
        self.had_in_studio.extend(now);
    }

    /// The promise, and that a base is what both sides have had.
    pub fn check(&mut self, after: &str) {
        let there = self.on_sides();
        for (text, hash) in &self.owed {
            let is_kept = there.contains(text) || self.servers.iter().any(|server| server.store.keeps(*hash));
            assert!(is_kept, "{text:?} is lost after {after}\n{self:#?}");
        }
        self.note();
        for (server, on_disk) in self.servers.iter().zip(&self.had_on_disk) {
            let of_nodes = server
                .tree
                .nodes
                .iter()
                .filter_map(|(name, (id, _))| Some((name.clone(), server.agreement.standing(*id).last?)));
            let of_rows = server.store.last().filter_map(|(key, last)| Some((key.split_last()?.1, last)));
            for base in of_nodes.chain(of_rows).filter(|(_, side)| side.is_some()) {
                let was_had = on_disk.contains(&base) && self.had_in_studio.contains(&base);
                assert!(was_had, "{base:?} was agreed after {after}, and was not on both sides\n{self:#?}");
            }
        }
    }

    /// One run; `between` acts before each step.
    pub fn run(&mut self, whose: usize, args: SyncArgs, between: &mut dyn FnMut(&mut Self)) -> Ran {
        let moves = self.moves;
        let receipt = self.run_to_its_end(whose, args, between);
        Ran { receipt, moved: self.moves > moves }
    }

    fn run_to_its_end(&mut self, whose: usize, args: SyncArgs, between: &mut dyn FnMut(&mut Self)) -> Option<Receipt> {
        let (life, alone) = (self.servers[whose].life, !self.is_shared);
        let (mut run, mut step) = Run::start("run-1".into(), args, alone);
        let mut compared = 0;
        for steps in 0.. {
            assert!(steps < MOST_STEPS, "it does not end: {step:#?}\n{run:#?}");
            between(self);
            if self.servers[whose].life != life {
                return None;
            }
            let what = name_of_step(&step);
            if matches!(step, Step::CatchUp { .. }) {
                compared = self.moves;
            }
            let still = self.moves == compared && !self.studio.has_hidden_draft(&self.servers[whose].tree);
            let (server, studio) = (&mut self.servers[whose], &mut self.studio);
            let next = match step {
                Step::Done(receipt) => match server.end(&run, &receipt, studio.session) {
                    Ok(()) => {
                        self.check(what);
                        return Some(receipt);
                    }
                    Err(Killed) => Err(Killed),
                },
                step => server.carry_out(&mut run, step, studio),
            };
            self.check(what);
            match next {
                Ok(next) => step = next,
                Err(Killed) => {
                    self.servers[whose].restart(self.studio.session);
                    return None;
                }
            }
            if still {
                nothing_stood_in_the_way(&run, what);
            }
        }
        unreachable!("a run ends")
    }

    /// Studio is closed without saving and opened again, or a copy of the place is opened.
    pub fn reopen(&mut self, copy: bool) {
        if self.is_shared {
            self.studio.begin_session();
        } else {
            self.studio.reopen(copy);
        }
        let session = self.studio.session;
        self.servers.iter_mut().for_each(|server| server.restart(session));
    }

    /// The names under which the two sides of a server have not the same.
    pub fn differing(&self, whose: usize) -> BTreeSet<&'static str> {
        let disk = &self.servers[whose].disk;
        let studio = |name: &str| self.studio.find(name).map(|script| script.text().to_owned());
        NAMES.into_iter().filter(|name| disk.get(*name).cloned() != studio(name)).collect()
    }
}

/// Where nothing moved since the comparison, everything is as it was decided on.
fn nothing_stood_in_the_way(run: &Run, after: &str) {
    let late = |decision: &&Decision| matches!(decision.change.result, ChangeResult::Guard | ChangeResult::MovedOn);
    if let Some(decision) = run.decisions.iter().find(late) {
        panic!("nothing moved, but {after} found {:?}", decision.change);
    }
}

fn name_of_step(step: &Step) -> &'static str {
    match step {
        Step::CatchUp { .. } => "CatchUp",
        Step::Compare { .. } => "Compare",
        Step::Recall(_) => "Recall",
        Step::Look { .. } => "Look",
        Step::History(_) => "History",
        Step::Fetch(_) => "Fetch",
        Step::Read(_) => "Read",
        Step::Describe { .. } => "Describe",
        Step::Merge(_) => "Merge",
        Step::Check(_) => "Check",
        Step::Begin(_) => "Begin",
        Step::Apply { .. } => "Apply",
        Step::Write(_) => "Write",
        Step::Conclude { .. } => "Conclude",
        Step::Ask { .. } => "Ask",
        Step::Done(_) => "Done",
    }
}
