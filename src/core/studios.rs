//! The Studios that are linked or were a moment ago: who each one is and what it was sent.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    agreement::Agreement,
    calls::Moment,
    console::Console,
    error::{ErrorCode, ToolError},
    gathered::Gathered,
    ids::{InstanceId, SessionId},
    live::Live,
    protocol::{Hello, Patch, Role, TreePart},
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

/// How long a Studio whose link was lost may take to come back.
pub const GRACE: Duration = Duration::from_secs(15);

/// Silence after which a newer window of the same place may take over.
pub const SUSPECT: Duration = Duration::from_secs(11);

/// Silence after which a link is dropped.
pub const SILENCE: Duration = Duration::from_secs(30);

/// How many Studios may be linked.
pub const MAX_STUDIOS: usize = 64;

/// One Studio.
#[derive(Debug)]
pub struct Studio {
    /// Its place in the registry.
    pub key: StudioKey,
    /// What agents call it: `place:123`, `anon:…`, with the role or a number where that is needed.
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
    /// Another session that wants this place, and when it said so first.
    pub rival: Option<(SessionId, Moment)>,
    /// What came so far of a comparison that takes several frames.
    pub gathered: Gathered,
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

/// How many held changes `status` names.
const MOST_HELD: usize = 20;

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

    fn session(&self) -> Option<&SessionId> {
        self.hello.level1.as_ref().map(|hello| &hello.session_id)
    }

    fn place_and_role(&self) -> Option<(&InstanceId, Role)> {
        self.hello.level1.as_ref().map(|hello| (&hello.instance_id, hello.role))
    }

    fn role(&self) -> Role {
        self.hello.level1.as_ref().map_or(Role::Edit, |hello| hello.role)
    }

    fn place_name(&self) -> &str {
        self.hello.level1.as_ref().map_or("", |hello| &hello.place_name)
    }

    /// A newer window of the same place and role may take over at `now`.
    pub fn may_be_taken_over(&self, now: Moment) -> bool {
        self.link.is_none() || now.saturating_sub(self.heard_at) > SUSPECT
    }

    /// What `status` says about it.
    pub fn status(&self, now: Moment) -> StudioStatus {
        let level1 = self.hello.level1.as_ref();
        let silent = now.saturating_sub(self.heard_at);
        let link = match (self.link, &self.tree) {
            (None, _) => LinkStatus::Reconnecting,
            (Some(_), _) if silent > SUSPECT => LinkStatus::Silent,
            (Some(_), TreeState::Sending { .. }) => LinkStatus::Loading,
            (Some(_), _) => LinkStatus::Live,
        };
        StudioStatus {
            studio: self.name.clone(),
            place: self.place_name().to_owned(),
            place_id: self.hello.place_id,
            role: match self.role() {
                Role::Edit => "edit",
                Role::Server => "server",
                Role::Client => "client",
            }
            .to_owned(),
            link,
            mode: match (self.hello.one_shot_sync, self.hello.two_way_sync) {
                (true, _) => "one-shot",
                (false, true) => "two-way",
                (false, false) => "live",
            }
            .to_owned(),
            running: level1.is_some_and(|hello| hello.is_running),
            paused: None,
            held: self.live.held().take(MOST_HELD).map(|change| change.path.clone()).collect(),
            review: None,
            plugin_version: level1.map(|hello| hello.plugin_version.clone()),
            protocol: level1.map_or(0, |hello| hello.protocol),
            busy: None,
        }
    }
}

/// What `status` says about a Studio.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StudioStatus {
    /// The name to give as `studio`.
    pub studio: String,
    /// The place's name, as Studio says it.
    pub place: String,
    /// 0: never published.
    pub place_id: u64,
    /// edit, server or client.
    pub role: String,
    /// How the link is.
    pub link: LinkStatus,
    /// one-shot, live or two-way: what the plugin's settings say.
    pub mode: String,
    /// A play test runs.
    pub running: bool,
    /// Why live mode waits although it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Paths of what differs and nobody could decide, as the last runs found it; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
    /// What a person is asked there, or could choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// Absent for a foreign plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_version: Option<String>,
    /// 0 for a foreign plugin.
    pub protocol: u32,
    /// What runs there and may change something; further changes wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Busy>,
}

/// A call that changes something and is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Busy {
    /// What it runs.
    pub tool: String,
    /// Its id, for `get_call`.
    pub call: String,
    /// For how long.
    pub seconds: u64,
    /// How many wait for it.
    pub queued: usize,
}

/// How a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkStatus {
    /// Ready.
    Live,
    /// Linked; it is still taking in the tree.
    Loading,
    /// Linked, but it has missed two heartbeats.
    Silent,
    /// Lost; it may come back.
    Reconnecting,
}

/// All Studios, in the order of their first hello.
#[derive(Debug, Default)]
pub struct Studios {
    all: Vec<Studio>,
    next_key: u64,
}

impl Studios {
    /// A Studio said hello for the first time.
    pub fn add(&mut self, hello: Hello, link: LinkId, now: Moment, next_n: u64) -> StudioKey {
        let key = StudioKey(self.next_key);
        self.next_key += 1;
        let tree = if hello.level1.is_some() { TreeState::wanted() } else { TreeState::None };
        let name = self.free_name(&hello);
        self.all.push(Studio {
            key,
            name,
            hello,
            link: Some(link),
            lost_at: None,
            heard_at: now,
            next_n,
            tree,
            agreement: Agreement::default(),
            recalled: false,
            live: Live::default(),
            console: Console::default(),
            rival: None,
            gathered: Gathered::default(),
        });
        key
    }

    /// The Studio at `key` said hello again. Where its place is another by now (it was published
    /// meanwhile), so is its name.
    pub fn said_hello_again(&mut self, key: StudioKey, hello: Hello) -> Option<&mut Studio> {
        let place = |hello: &Hello| hello.level1.as_ref().map(|level1| (level1.instance_id.clone(), level1.role));
        let moved = place(&self.get(key)?.hello) != place(&hello);
        let name = moved.then(|| self.free_name(&hello));
        let studio = self.get_mut(key)?;
        studio.hello = hello;
        studio.name = name.unwrap_or(std::mem::take(&mut studio.name));
        Some(studio)
    }

    /// The Studio at `key` is called what it would be called if it came now.
    pub fn rename(&mut self, key: StudioKey) {
        let Some(studio) = self.get_mut(key) else { return };
        studio.name.clear();
        let hello = studio.hello.clone();
        let name = self.free_name(&hello);
        self.get_mut(key).expect("found above").name = name;
    }

    fn free_name(&self, hello: &Hello) -> String {
        let base = match hello.level1.as_ref().map(|hello| (&hello.instance_id, hello.role)) {
            Some((place, Role::Edit)) => place.to_string(),
            Some((place, Role::Server)) => format!("{place}/server"),
            Some((place, Role::Client)) => format!("{place}/client"),
            None => format!("place:{}", hello.place_id),
        };
        let taken = |name: &str| self.all.iter().any(|studio| studio.name == name);
        if !taken(&base) {
            return base;
        }
        (2..).map(|number| format!("{base}#{number}")).find(|name| !taken(name)).expect("numbers do not run out")
    }

    /// Forget a Studio.
    pub fn remove(&mut self, key: StudioKey) -> Option<Studio> {
        let index = self.all.iter().position(|studio| studio.key == key)?;
        Some(self.all.remove(index))
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

    /// The Studio that a call means: the named one, or the only one.
    ///
    /// # Errors
    /// There is none, or several and the call did not say which.
    pub fn target(&self, wanted: Option<&str>) -> Result<&Studio, ToolError> {
        let fits = |studio: &&Studio| match wanted {
            None => true,
            Some(wanted) => studio.name == wanted || studio.place_name() == wanted,
        };
        let mut fitting = self.all.iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(studio), None) => Ok(studio),
            (Some(_), Some(_)) => Err(ToolError::new(
                ErrorCode::AmbiguousStudio,
                format!("several Studios are connected: {self}"),
                "say which with the argument `studio`",
            )),
            (None, _) if self.all.is_empty() => Err(ToolError::no_studio()),
            (None, _) => Err(ToolError::new(
                ErrorCode::NoStudio,
                format!("no Studio is called {:?}; connected: {self}", wanted.unwrap_or_default()),
                "use one of these names as `studio`",
            )),
        }
    }
}

impl fmt::Display for Studios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, studio) in self.all.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{:?} ({})", studio.name, studio.place_name())?;
        }
        Ok(())
    }
}
