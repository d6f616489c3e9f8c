//! Decisions that the caller took beforehand, each with guards.

use std::collections::HashMap;

use super::receipt::Rejected;
use crate::core::{ids::OpId, protocol::Fact, text::TextHash};

/// One decision of the caller's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The node, or the `tempId` of what only Studio has.
    pub id: OpId,
    /// What is to be done.
    pub forced: Forced,
    /// Guard: the text that Studio must have.
    pub studio_hash: Option<TextHash>,
    /// Guard: the text that the file must have.
    pub disk_hash: Option<TextHash>,
    /// Guard: properties that are not compared yet, so it never holds.
    pub expects_properties: bool,
}

/// Which side wins by the caller's will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forced {
    /// The files'.
    Push,
    /// Studio's.
    Pull,
    /// Neither: both get this text.
    Text(String),
}

/// The overrides of a run, as they are used up.
#[derive(Debug, Clone, Default)]
pub(super) struct Overrides {
    by_id: HashMap<OpId, Override>,
    order: Vec<OpId>,
    rejected: Vec<Rejected>,
}

impl Overrides {
    pub fn new(all: Vec<Override>) -> Self {
        let order = all.iter().map(|one| one.id.clone()).collect();
        Self { by_id: all.into_iter().map(|one| (one.id.clone(), one)).collect(), order, rejected: Vec::new() }
    }

    /// What the caller wants for `fact`, if the guards hold.
    pub fn take(&mut self, fact: &Fact, disk: Option<TextHash>) -> Option<Forced> {
        let id = fact.id.map(OpId::from).or_else(|| fact.temp_id.clone().map(OpId::from))?;
        let wanted = self.by_id.remove(&id)?;
        let reason = if wanted.expects_properties {
            "`expectedProperties` cannot be checked: properties are not synced yet".to_owned()
        } else if wanted.studio_hash.is_some_and(|hash| fact.studio_hash != Some(hash)) {
            format!("Studio's text is not {}, but {}", words(wanted.studio_hash), words(fact.studio_hash))
        } else if wanted.disk_hash.is_some_and(|hash| disk != Some(hash)) {
            format!("the file's text is not {}, but {}", words(wanted.disk_hash), words(disk))
        } else {
            return Some(wanted.forced);
        };
        self.rejected.push(Rejected { id: id.to_string(), reason });
        None
    }

    /// Those that no difference was found for are rejected as well.
    pub fn finish(self) -> Vec<Rejected> {
        let Self { by_id, order, mut rejected } = self;
        let unused = order.into_iter().filter(|id| by_id.contains_key(id));
        rejected.extend(unused.map(|id| Rejected {
            id: id.to_string(),
            reason: "nothing that differs has this id (a dry run lists the ids)".to_owned(),
        }));
        rejected
    }
}

impl Override {
    /// What the caller wants for `id`, without guards.
    pub fn new(id: impl Into<OpId>, forced: Forced) -> Self {
        Self { id: id.into(), forced, studio_hash: None, disk_hash: None, expects_properties: false }
    }
}

fn words(hash: Option<TextHash>) -> String {
    hash.map_or_else(|| "there".to_owned(), |hash| hash.to_string())
}
