//! What is asked of a run.

use std::{collections::BTreeSet, sync::Arc};

use super::{Override, Resolution, Rules, Unasked, Undo};
use crate::core::{
    protocol::SyncMode,
    review::{Chosen, Seen},
};

/// What the caller of `sync` asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncArgs {
    /// How to treat what is found.
    pub mode: SyncMode,
    /// Only these files and folders, relative to the project with `/`; `None` is everything.
    pub paths: Option<Vec<String>>,
    /// Decisions taken beforehand.
    pub overrides: Vec<Override>,
    /// Any number of removals is agreed to.
    pub allow_removals: bool,
    /// Who calls: the name of a client.
    pub who: Option<String>,
    /// Nobody called it.
    pub unasked: Option<Box<Unasked>>,
    /// Only this; everything else is left out.
    pub resolution: Option<Resolution>,
    /// Nobody reads the receipt.
    pub unread: bool,
    /// The caller can show a question to a person.
    pub asks: bool,
    /// What a person chose, of what an earlier run had found.
    pub chosen: Option<Arc<Chosen>>,
    /// What that run had seen.
    pub shown: Option<Arc<Seen>>,
    /// Nothing is compared and decided; what an earlier run did is taken back.
    pub undo: Option<Undo>,
}

impl SyncArgs {
    /// Compare and report, nothing else.
    pub fn comparison() -> Self {
        Self { mode: SyncMode::Dryrun, unread: true, ..Self::default() }
    }

    /// What the run may do unasked. `alone`: nobody else edits the place.
    pub(super) fn rules(&self, alone: bool) -> Rules {
        Rules {
            alone,
            allow_removals: self.allow_removals,
            takes: self.unasked.as_ref().is_none_or(|unasked| unasked.takes),
            deleted: self.unasked.iter().flat_map(|unasked| unasked.deleted.iter().copied()).collect(),
            follows: alone && self.unasked.as_ref().is_some_and(|unasked| unasked.takes),
            earlier: BTreeSet::new(),
        }
    }
}
