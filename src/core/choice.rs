//! Which Studio a call means, and which of its DataModels. Never another one than was named.

use std::fmt;

use super::{
    calls::Moment,
    clients::Client,
    error::{ErrorCode, ToolError},
    protocol::Role,
    status::{DataModelStatus, LinkStatus, StudioStatus},
    studios::{DataModel, SUSPECT, Studio, Studios, TreeState},
    targets::Target,
};

/// How many held changes `status` names.
const MOST_HELD: usize = 20;

/// A Studio as agents see it: the DataModels of one place.
#[derive(Debug, Clone)]
pub struct Window<'a> {
    /// What agents call it.
    pub name: &'a str,
    /// Those with a link of their own, the edit one first. At least one.
    links: Vec<&'a Studio>,
}

/// The DataModel that a call means.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<'a> {
    /// The link that leads to it.
    pub studio: &'a Studio,
    /// The play client behind that link; `None`: the link's own DataModel.
    pub client: Option<&'a Client>,
}

impl Chosen<'_> {
    /// What it is called.
    pub fn name(&self) -> String {
        match self.client {
            Some(client) => format!("{}/{}", self.studio.window, client.target()),
            None => self.studio.name.clone(),
        }
    }

    /// Which it is.
    pub fn data_model(&self) -> DataModel {
        DataModel { studio: self.studio.key, client: self.client.map(|client| client.id.clone()) }
    }

    /// Nothing can be sent to it now.
    pub fn is_lost(&self) -> bool {
        self.studio.link.is_none() || self.client.is_some_and(|client| !client.here)
    }

    /// What a request to it says of where it belongs; absent for the edit DataModel.
    pub fn sent_target(&self) -> Option<Target> {
        let target = self.client.map_or_else(|| self.studio.target(), Client::target);
        (self.studio.is_level1() && target != Target::Edit).then_some(target)
    }

    fn link(&self, now: Moment) -> LinkStatus {
        if self.client.is_some_and(|client| !client.here) { LinkStatus::Reconnecting } else { self.studio.status(now) }
    }
}

impl<'a> Window<'a> {
    /// Its DataModels: edit, server, clients.
    pub fn data_models(&self) -> impl Iterator<Item = (Target, Chosen<'a>)> {
        let own = self.links.iter().map(|studio| (studio.target(), Chosen { studio, client: None }));
        let behind = self.links.iter().flat_map(|studio| {
            let studio: &'a Studio = studio;
            studio.clients.iter().map(move |client| (client.target(), Chosen { studio, client: Some(client) }))
        });
        own.chain(behind)
    }

    /// The one that the rest of its status is about.
    pub fn first(&self) -> &'a Studio {
        self.links[0]
    }

    /// A play test of its place runs, as its DataModels say.
    pub fn is_played(&self) -> bool {
        let runs = |studio: &&Studio| studio.hello.level1.as_ref().is_some_and(|hello| hello.is_running);
        self.links.iter().any(|studio| studio.role() != Role::Edit || runs(studio))
    }

    /// The DataModel that says what the whole Studio does.
    pub fn telling(&self) -> Target {
        let plays = self.links.iter().any(|studio| studio.role() == Role::Server);
        if plays { Target::Server } else { self.first().target() }
    }

    /// One of its DataModels.
    ///
    /// # Errors
    /// It has no such one now; the text says which it has.
    pub fn find(&self, target: Target) -> Result<Chosen<'a>, ToolError> {
        let found = self.data_models().find(|(name, _)| *name == target);
        found.map(|(_, chosen)| chosen).ok_or_else(|| self.lacks(target))
    }

    fn lacks(&self, target: Target) -> ToolError {
        let names: Vec<String> = self.data_models().map(|(name, _)| name.to_string()).collect();
        let (text, names) = (format!("{} has no {target} now", self.name), names.join(", "));
        let next = match target {
            _ if !self.first().is_level1() => "this Studio's plugin is not ours and knows the edit DataModel only",
            Target::Edit => {
                "its edit DataModel has not connected; stop the play test, or name one of these as `target`"
            }
            Target::Server => "start a play test first, and call again once `status` lists it",
            Target::Client(_) if self.is_played() => "name one of these as `target`, or start a test with more players",
            Target::Client(_) => "start a play test first, and call again once `status` lists it",
        };
        ToolError::new(ErrorCode::NoTarget, format!("{text}; it has {names}"), next)
    }

    /// What `status` says of it, without what runs there.
    pub fn status(&self, now: Moment) -> StudioStatus {
        let studio = self.first();
        let level1 = studio.hello.level1.as_ref();
        StudioStatus {
            studio: self.name.to_owned(),
            place: studio.place_name().to_owned(),
            place_id: studio.hello.place_id,
            role: studio.target(),
            link: studio.status(now),
            mode: match (studio.hello.one_shot_sync, studio.hello.two_way_sync) {
                (true, _) => "one-shot",
                (false, true) => "two-way",
                (false, false) => "live",
            }
            .to_owned(),
            running: self.is_played(),
            paused: None,
            held: studio.live.held().take(MOST_HELD).map(|change| change.path.clone()).collect(),
            review: None,
            plugin_version: level1.map(|hello| hello.plugin_version.clone()),
            protocol: level1.map_or(0, |hello| hello.protocol),
            busy: None,
            played: None,
            data_models: self
                .data_models()
                .map(|(target, chosen)| DataModelStatus {
                    target,
                    link: chosen.link(now),
                    player: chosen.client.map(|client| client.player.clone()),
                    busy: None,
                })
                .collect(),
        }
    }
}

/// As one of several choices: its place, its name, its DataModels, and what it does.
impl fmt::Display for Window<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.data_models().map(|(name, _)| name.to_string()).collect();
        let mode = if self.is_played() { "play test" } else { "edit mode" };
        write!(f, "{:?} ({}; {}; {mode})", self.name, self.first().place_name(), names.join(", "))
    }
}

impl Studio {
    /// How its link is.
    pub fn status(&self, now: Moment) -> LinkStatus {
        match (self.link, &self.tree) {
            (None, _) => LinkStatus::Reconnecting,
            (Some(_), _) if now.saturating_sub(self.heard_at) > SUSPECT => LinkStatus::Silent,
            (Some(_), TreeState::Sending { .. }) => LinkStatus::Loading,
            (Some(_), _) => LinkStatus::Live,
        }
    }
}

impl Studios {
    /// The Studios as agents see them, in the order in which they came.
    pub fn windows(&self) -> Vec<Window<'_>> {
        let mut windows: Vec<Window<'_>> = Vec::new();
        for studio in self.iter() {
            match windows.iter_mut().find(|window| window.name == studio.window) {
                Some(window) => window.links.push(studio),
                None => windows.push(Window { name: &studio.window, links: vec![studio] }),
            }
        }
        for window in &mut windows {
            window.links.sort_by_key(|studio| studio.target());
        }
        windows
    }

    /// The Studio that a call means: the named one, or the only one.
    ///
    /// # Errors
    /// There is none, or several and the call did not say which.
    pub fn window(&self, wanted: Option<&str>) -> Result<Window<'_>, ToolError> {
        let windows = self.windows();
        let fits = |window: &&Window<'_>| match wanted {
            None => true,
            Some(wanted) => window.name == wanted || window.first().place_name() == wanted,
        };
        let all = || windows.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let mut fitting = windows.iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(window), None) => Ok(window.clone()),
            (Some(_), Some(_)) => Err(ToolError::new(
                ErrorCode::AmbiguousStudio,
                format!("several Studios are connected: {}", all()),
                "say which with the argument `studio`",
            )),
            (None, _) if windows.is_empty() => Err(ToolError::no_studio()),
            (None, _) => Err(ToolError::new(
                ErrorCode::NoStudio,
                format!("no Studio is called {:?}; connected: {}", wanted.unwrap_or_default(), all()),
                "use one of these names as `studio`",
            )),
        }
    }

    /// The DataModel that a call means.
    ///
    /// # Errors
    /// As [`Studios::window`]; or that Studio has no such DataModel now.
    pub fn choose(&self, wanted: Option<&str>, target: Target) -> Result<Chosen<'_>, ToolError> {
        self.window(wanted)?.find(target)
    }

    /// The edit DataModel that a call means.
    ///
    /// # Errors
    /// As [`Studios::choose`].
    pub fn target(&self, wanted: Option<&str>) -> Result<&Studio, ToolError> {
        Ok(self.choose(wanted, Target::Edit)?.studio)
    }
}
