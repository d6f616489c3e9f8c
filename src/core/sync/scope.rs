//! Which differences a run is about.

use std::collections::{HashMap, HashSet};

use super::{
    Run,
    decision::NodeView,
    receipt::{Change, PatchType, Receipt, SyncStatus},
};
use crate::core::{
    ids::{NodeId, OpId},
    protocol::{Fact, FactKind, NewNode, Scope, SyncMode},
};

/// Entries of the journal that were cut off, and of which it is known now what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleared {
    /// All of the place.
    Everything,
    /// This one was taken back, and so nothing is left of the undos of it either.
    Undone(u64),
}

impl Run {
    pub(super) fn both_live(&self) -> bool {
        self.args.undo.as_ref().is_some_and(|undo| undo.both_live)
    }

    /// Which entry of the journal it takes back.
    pub fn undoes(&self) -> Option<u64> {
        self.recalled.as_ref().map(|recalled| recalled.id)
    }

    /// Its entry in the journal, once that was begun.
    pub fn journal(&self) -> Option<u64> {
        self.journal.as_ref().map(|(id, _)| *id)
    }

    /// A run that looked at everything and ended with `receipt` has said what earlier ones left.
    pub fn clears(&self, receipt: &Receipt) -> Option<Cleared> {
        if let Some(recalled) = &self.recalled {
            let is_back = matches!(receipt.status, SyncStatus::Empty | SyncStatus::Success);
            return is_back.then_some(Cleared::Undone(recalled.id));
        }
        let is_asked = self.args.unasked.is_none() && self.args.mode != SyncMode::Dryrun;
        (is_asked && self.is_whole() && receipt.status != SyncStatus::Error).then_some(Cleared::Everything)
    }
}

/// How far a run goes that nobody called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unasked {
    /// Only this part of the tree; `None` is everything.
    pub scope: Option<Scope>,
    /// Studio's changes are written to files.
    pub takes: bool,
    /// A person was seen to delete these in Studio.
    pub deleted: Vec<NodeId>,
}

/// The run is about everything, or about this.
pub(super) fn is_meant(only: Option<&OpId>, fact: &Fact) -> bool {
    match only {
        None => true,
        Some(OpId::Node(id)) => fact.id == Some(*id),
        Some(OpId::Temp(id)) => fact.temp_id.as_ref() == Some(id),
    }
}

/// The change is at one of `paths`, or inside.
pub(super) fn is_in(paths: Option<&[String]>, change: &Change) -> bool {
    let Some(paths) = paths else { return true };
    let Some(file) = &change.fs_path else { return false };
    // A new file reaches Studio with the new folder that it lies in.
    let is_new = matches!(change.patch_type, PatchType::Add | PatchType::Rename);
    let folder = is_new.then(|| folder_of(file));
    // The file of what only Studio has is gone; its ending is not known.
    let lost = (change.patch_type == PatchType::Remove && change.id.is_none()).then_some(file);
    paths.iter().any(|path| {
        let path = path.trim_end_matches('/');
        path == "."
            || path.is_empty()
            || is_within(file, path)
            || folder.is_some_and(|new| is_within(path, new))
            || lost.is_some_and(|lost| path.strip_prefix(lost.as_str()).is_some_and(|rest| rest.starts_with('.')))
    })
}

/// Where the file or folder of an instance that only Studio has would be, without its ending.
pub(super) fn lost_file(fact: &Fact, parent: Option<&NodeView>) -> Option<String> {
    let (name, above) = (fact.name.as_ref()?, parent?.fs_path.as_deref()?);
    Some(format!("{}/{name}", folder_of(above)))
}

/// `path` is `parent` or lies below it.
fn is_within(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The folder that an instance stands for, if it has one: its own, or that of its `init` file.
fn folder_of(file: &str) -> &str {
    match file.rsplit_once('/') {
        Some((folder, name)) if name.starts_with("init.") => folder,
        _ => file,
    }
}

/// What a comparison did not find equal.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// Nodes with another text, or with none.
    pub texts: HashSet<NodeId>,
    /// Nodes with other properties, or with none.
    pub properties: HashSet<NodeId>,
}

/// The nodes that a comparison did not find equal: those it named, and all below a missing one.
pub(super) fn reported_ids(facts: &[Fact], views: &HashMap<NodeId, NodeView>) -> Reported {
    fn add_subtree(node: &NewNode, ids: &mut Vec<NodeId>) {
        ids.push(node.id);
        node.children.iter().for_each(|child| add_subtree(child, ids));
    }
    let mut missing: Vec<NodeId> = Vec::new();
    views.values().filter_map(|view| view.subtree.as_ref()).for_each(|node| add_subtree(node, &mut missing));
    let mut reported = Reported::default();
    for fact in facts {
        let differs = fact.kind == FactKind::Differs;
        reported.texts.extend(fact.id.filter(|_| !fact.is_of_properties()));
        reported.properties.extend(fact.id.filter(|_| !differs || !fact.properties.is_empty()));
    }
    reported.texts.extend(missing.iter().copied());
    reported.properties.extend(missing);
    reported
}
