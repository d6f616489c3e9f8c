//! The Studios that are linked or were a moment ago: who each one is and what it was sent.
//!
//! Each DataModel has a plugin and a link of its own, so a [`Studio`] here is one DataModel: the edit
//! one, or the server of a play test. Those of one place are one Studio to agents (`core/choice.rs`),
//! and the clients of a play test answer through its server (`core/clients.rs`).

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use super::{
    agreement::Agreement,
    calls::Moment,
    clients::Clients,
    console::Console,
    gathered::Gathered,
    ids::{InstanceId, LogicalId, SessionId},
    live::Live,
    protocol::{Hello, Patch, Role, TreePart},
    standing::{Rival, Standing},
    targets::Target,
};

/// One WebSocket connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u64);

/// One Studio in the registry, for as long as it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StudioKey(u64);

#[cfg(test)]
impl StudioKey {
    /// A key of no Studio.
    pub(super) const fn for_tests(number: u64) -> Self {
        Self(number)
    }
}

/// One DataModel: that of a link, or a play client behind it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataModel {
    /// Whose link it is.
    pub studio: StudioKey,
    /// The play client; `None`: the link's own.
    pub client: Option<LogicalId>,
}

/// How long a Studio whose link was lost may take to come back.
pub const GRACE: Duration = Duration::from_secs(15);

/// Silence after which a newer window of the same place may take over.
pub const SUSPECT: Duration = Duration::from_secs(11);

/// Silence after which a link is dropped.
pub const SILENCE: Duration = Duration::from_secs(30);

/// How many Studios may be linked.
pub const MAX_STUDIOS: usize = 64;

/// One DataModel with a link.
#[derive(Debug)]
pub struct Studio {
    /// Its place in the registry.
    pub key: StudioKey,
    /// What agents call its Studio: `place:123`, `anon:…`, with a number where that is needed.
    pub window: String,
    /// What it is called itself: as its Studio, with its role where that is not `edit`.
    pub name: String,
    /// What it said of itself.
    pub hello: Hello,
    /// Its connection; `None` while it may still come back.
    pub link: Option<LinkId>,
    /// When the connection was lost.
    pub lost_at: Option<Moment>,
    /// When its last frame came.
    pub heard_at: Moment,
    /// The number of its next request.
    pub next_n: u64,
    /// How much of the tree it has.
    pub tree: TreeState,
    /// What it and the tree last agreed on.
    pub agreement: Agreement,
    /// What the store knows of its place is in there.
    pub recalled: bool,
    /// What it printed.
    pub console: Console,
    /// What of it is to be compared unasked.
    pub live: Live,
    /// Another session that wants this place.
    pub rival: Option<Rival>,
    /// How its window was told that it stands.
    pub told: Standing,
    /// What came so far of a comparison that takes several frames.
    pub gathered: Gathered,
    /// The play clients that answer through it.
    pub clients: Clients,
    /// Its play test was told to end: the next one need not wait until this one falls silent.
    pub ending: bool,
}

/// How much of the tree a Studio has.
#[derive(Debug)]
pub enum TreeState {
    /// It takes no tree (level 0).
    None,
    /// The parts are being made, or sent one by one, or paired by the plugin. Patches wait.
    Sending {
        /// What was not sent yet.
        parts: VecDeque<TreePart>,
        /// The version that the parts add up to; `None` while they are made.
        cursor: Option<u32>,
        /// What changed since.
        patches: Vec<Arc<Patch>>,
    },
    /// It has everything; patches go out as they come.
    Ready {
        /// The version it has; a patch at or below it is old.
        cursor: u32,
    },
}

impl TreeState {
    /// Nothing was sent yet.
    pub fn wanted() -> Self {
        Self::Sending { parts: VecDeque::new(), cursor: None, patches: Vec::new() }
    }
}

impl Studio {
    /// Our own plugin, which speaks level 1.
    pub fn is_level1(&self) -> bool {
        self.hello.level1.is_some()
    }

    /// Nobody else edits its place.
    pub fn is_alone(&self) -> bool {
        self.hello.level1.as_ref().is_some_and(|hello| hello.other_editors == 0)
    }

    /// It has the whole tree.
    pub fn is_ready(&self) -> bool {
        matches!(self.tree, TreeState::Ready { .. })
    }

    /// It is compared with the tree: a play test is a copy that ends with it.
    pub fn takes_tree(&self) -> bool {
        self.is_level1() && self.role() == Role::Edit
    }

    /// What calls name it by, within its Studio.
    pub fn target(&self) -> Target {
        self.role().into()
    }

    fn session(&self) -> Option<&SessionId> {
        self.hello.level1.as_ref().map(|hello| &hello.session_id)
    }

    fn place_and_role(&self) -> Option<(&InstanceId, Role)> {
        self.hello.level1.as_ref().map(|hello| (&hello.instance_id, hello.role))
    }

    /// Its role; a foreign plugin says none.
    pub fn role(&self) -> Role {
        self.hello.level1.as_ref().map_or(Role::Edit, |hello| hello.role)
    }

    /// The place's name, as Studio says it.
    pub fn place_name(&self) -> &str {
        self.hello.level1.as_ref().map_or("", |hello| &hello.place_name)
    }

    /// A newer window of the same place and role may take over at `now`.
    pub fn may_be_taken_over(&self, now: Moment) -> bool {
        self.link.is_none() || self.ending || now.saturating_sub(self.heard_at) > SUSPECT
    }
}

/// What a DataModel and its Studio are called.
struct Names {
    window: String,
    name: String,
}

/// All Studios, in the order of their first hello.
#[derive(Debug, Default)]
pub struct Studios {
    all: Vec<Studio>,
    next_key: u64,
    /// What the DataModels of each Studio's last play test printed that are gone.
    printed: HashMap<String, BTreeMap<Target, Console>>,
}

impl Studios {
    /// A Studio said hello for the first time.
    pub fn add(&mut self, hello: Hello, link: LinkId, now: Moment, next_n: u64) -> StudioKey {
        let key = StudioKey(self.next_key);
        self.next_key += 1;
        let Names { window, name } = self.free_names(&hello, None);
        if hello.level1.as_ref().is_some_and(|level1| level1.role == Role::Server) {
            self.printed.remove(&window);
        }
        self.all.push(Studio {
            key,
            window,
            name,
            hello,
            link: Some(link),
            lost_at: None,
            heard_at: now,
            next_n,
            tree: TreeState::None,
            agreement: Agreement::default(),
            recalled: false,
            live: Live::default(),
            console: Console::default(),
            rival: None,
            told: Standing::default(),
            gathered: Gathered::default(),
            clients: Clients::default(),
            ending: false,
        });
        let studio = self.all.last_mut().expect("pushed above");
        studio.tree = if studio.takes_tree() { TreeState::wanted() } else { TreeState::None };
        key
    }

    /// The Studio at `key` said hello again. Where its place is another by now (it was published
    /// meanwhile), so is its name.
    pub fn said_hello_again(&mut self, key: StudioKey, hello: Hello) -> Option<&mut Studio> {
        let place = |hello: &Hello| hello.level1.as_ref().map(|level1| (level1.instance_id.clone(), level1.role));
        let moved = place(&self.get(key)?.hello) != place(&hello);
        let names = moved.then(|| self.free_names(&hello, Some(key)));
        let studio = self.get_mut(key)?;
        studio.hello = hello;
        if let Some(Names { window, name }) = names {
            (studio.window, studio.name) = (window, name);
        }
        Some(studio)
    }

    /// The Studio at `key` is called what it would be called if it came now.
    pub fn rename(&mut self, key: StudioKey) {
        let Some(hello) = self.get(key).map(|studio| studio.hello.clone()) else { return };
        let Names { window, name } = self.free_names(&hello, Some(key));
        let studio = self.get_mut(key).expect("found above");
        (studio.window, studio.name) = (window, name);
    }

    /// What a DataModel is called that says `hello`; `own`, if it is there already.
    fn free_names(&self, hello: &Hello, own: Option<StudioKey>) -> Names {
        let others = || self.all.iter().filter(|studio| Some(studio.key) != own);
        let level1 = hello.level1.as_ref();
        let place = level1.map(|level1| &level1.instance_id);
        let shared = others().find(|other| place.is_some() && other.place_and_role().map(|(place, _)| place) == place);
        let window = shared.map_or_else(
            || {
                let base = place.map_or_else(|| format!("place:{}", hello.place_id), ToString::to_string);
                let taken = |name: &str| others().any(|other| other.window == name);
                let numbered = (2..).map(|number| format!("{base}#{number}"));
                std::iter::once(base.clone()).chain(numbered).find(|name| !taken(name)).expect("numbers do not run out")
            },
            |shared| shared.window.clone(),
        );
        let name = match level1.map_or(Role::Edit, |level1| level1.role) {
            Role::Edit => window.clone(),
            Role::Server => format!("{window}/server"),
            Role::Client => format!("{window}/client"),
        };
        Names { window, name }
    }

    /// Forget a Studio.
    pub fn remove(&mut self, key: StudioKey) -> Option<Studio> {
        let index = self.all.iter().position(|studio| studio.key == key)?;
        let mut studio = self.all.remove(index);
        if studio.role() == Role::Edit {
            if self.all.iter().all(|other| other.window != studio.window) {
                self.printed.remove(&studio.window);
            }
            return Some(studio);
        }
        self.keep_printed(&studio.window, studio.target(), std::mem::take(&mut studio.console));
        for (target, console) in std::mem::take(&mut studio.clients).into_consoles() {
            self.keep_printed(&studio.window, target, console);
        }
        Some(studio)
    }

    /// A DataModel of a play test is gone; what it printed can be read until the next test.
    pub fn keep_printed(&mut self, window: &str, target: Target, console: Console) {
        if self.all.iter().any(|studio| studio.window == window) {
            self.printed.entry(window.to_owned()).or_default().insert(target, console);
        }
    }

    /// What a DataModel printed in the last play test.
    pub fn printed_before(&self, window: &str, target: Target) -> Option<&Console> {
        self.printed.get(window)?.get(&target)
    }

    /// The Studio at `key`.
    pub fn get(&self, key: StudioKey) -> Option<&Studio> {
        self.all.iter().find(|studio| studio.key == key)
    }

    /// The Studio at `key`.
    pub fn get_mut(&mut self, key: StudioKey) -> Option<&mut Studio> {
        self.all.iter_mut().find(|studio| studio.key == key)
    }

    /// The Studio whose plugin session this is.
    pub fn of_session(&self, session: &SessionId) -> Option<&Studio> {
        self.all.iter().find(|studio| studio.session() == Some(session))
    }

    /// The Studio that has this place open in this role.
    pub fn of_place(&self, place: &InstanceId, role: Role) -> Option<&Studio> {
        self.all.iter().find(|studio| studio.place_and_role() == Some((place, role)))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Studio> {
        self.all.iter()
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Studio> {
        self.all.iter_mut()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
