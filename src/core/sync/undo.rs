//! Taking a run back: each of its changes the other way round, where nothing moved on since.
//!
//! For each side of each change there are three cases: it is as the run left it, then it goes
//! back; it is as it was before, then there is nothing to do; it is anything else, then the change
//! is held. The earlier base comes back with the text, so a sync afterwards finds what the first
//! one found.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{
    decision::{Decision, FileWrite, NodeView, Then},
    properties,
    receipt::{Change, ChangeResult, Direction, PatchType},
};
use crate::core::{
    agreement::Agreement,
    ids::NodeId,
    journal::{Entry, Line, PropertyLine},
    merge::Side,
    paths::InstanceKey,
    protocol::{Below, Fact, FactKind, NewNode, PlanOp},
    text::TextHash,
    values::{Properties, is_close},
};

const MOVED_ON: &str = "it was changed since, so it is left as it is";

/// What is to be taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undo {
    /// An entry of the journal; `None`: the last one.
    pub journal: Option<u64>,
}

/// An entry of the journal with its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    /// Its id.
    pub id: u64,
    /// What it says.
    pub entry: Entry,
    /// What it needs.
    pub texts: HashMap<TextHash, String>,
}

/// The nodes that have to be looked up, and the key of each instance that the tree has.
pub(super) fn nodes(recalled: &Recalled, agreement: &Agreement) -> Vec<NodeId> {
    let keys = agreement.keys();
    let lines = recalled.entry.changes.iter();
    let wanted = lines.flat_map(|line| [line.key.as_ref(), line.parent.as_ref()]).flatten();
    let mut ids: Vec<NodeId> = wanted.filter_map(|key| keys.get(key).copied()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// What takes `recalled` back.
pub(super) fn decide(
    recalled: &Recalled,
    facts: &[Fact],
    views: &HashMap<NodeId, NodeView>,
    agreement: &Agreement,
) -> Vec<Decision> {
    let keys = agreement.keys();
    let back = Back { recalled, facts, views, agreement, keys };
    let lines = recalled.entry.changes.iter().rev();
    // Of properties some may have been set where others were refused.
    let is_meant = |line: &&Line| {
        line.result.is_none_or(|result| {
            result == ChangeResult::Done || (result == ChangeResult::Failed && line.properties.is_some())
        })
    };
    lines.filter(is_meant).filter_map(|line| back.line(line)).collect()
}

struct Back<'a> {
    recalled: &'a Recalled,
    facts: &'a [Fact],
    views: &'a HashMap<NodeId, NodeView>,
    agreement: &'a Agreement,
    keys: HashMap<InstanceKey, NodeId>,
}

impl Back<'_> {
    fn line(&self, line: &Line) -> Option<Decision> {
        let change = self.change(line);
        let before = [line.disk.0, line.studio.0].into_iter().chain(line.below.iter().map(|one| one.studio_hash));
        if before.flatten().any(|hash| !self.recalled.texts.contains_key(&hash)) {
            return Some(Decision::unresolved(change, "the text that it had is not kept any more"));
        }
        if let Some(set) = &line.properties {
            return self.properties(line, set, change);
        }
        match (line.direction, line.patch_type) {
            (_, PatchType::Edit) => self.edit(line, change),
            (Direction::Push, PatchType::Remove) => self.bring_back(line, change),
            (Direction::Pull, PatchType::Add) => self.remove_file(line, change),
            (Direction::Pull, PatchType::Remove) => self.restore_file(line, change),
            (_, PatchType::Add) => Some(Decision::unresolved(
                change,
                "it was made in Studio by that sync: to take it back, delete its file and sync, or undo in Studio",
            )),
            (_, PatchType::Rename) => Some(Decision::unresolved(
                change,
                "it was renamed in Studio by that sync: to take it back, rename its file and sync, or undo in Studio",
            )),
            (_, PatchType::Remove) => None,
        }
    }

    fn change(&self, line: &Line) -> Change {
        Change {
            path: line.path.clone(),
            fs_path: line.fs_path.clone(),
            id: None,
            temp_id: None,
            class_name: line.class_name.clone(),
            direction: Direction::Unresolved,
            patch_type: line.patch_type,
            disk_hash: None,
            studio_hash: None,
            result: ChangeResult::Unresolved,
            reason: None,
            conflict: Vec::new(),
            foreign: serde_json::Map::new(),
        }
    }

    fn node(&self, key: Option<&InstanceKey>) -> Option<(NodeId, &NodeView)> {
        let id = *self.keys.get(key?)?;
        Some((id, self.views.get(&id)?))
    }

    fn text(&self, side: Side) -> Option<&String> {
        self.recalled.texts.get(&side?)
    }

    fn edit(&self, line: &Line, mut change: Change) -> Option<Decision> {
        let Some((id, view)) = self.node(line.key.as_ref()) else {
            return Some(Decision::unresolved(change, "it is not in the project any more"));
        };
        let fact = self.facts.iter().find(|fact| fact.id == Some(id) && !fact.is_of_properties());
        let disk = view.hash;
        let studio = fact.map_or(disk, |fact| fact.studio_hash);
        (change.id, change.disk_hash, change.studio_hash) = (Some(id), disk, studio);
        change.fs_path = view.fs_path.clone();
        if fact.is_some_and(|fact| fact.is_draft) {
            return Some(Decision::unresolved(change, "a person is editing it in Studio and has not saved"));
        }
        let known = |side: Side, (before, after): (Side, Side)| side == before || side == after;
        let missing = fact.is_some_and(|fact| fact.kind == FactKind::Missing);
        if missing || !known(disk, line.disk) || !known(studio, line.studio) {
            return Some(Decision::unresolved(change, MOVED_ON));
        }
        let (to_studio, to_disk) = (studio != line.studio.0, disk != line.disk.0);
        let direction = match (to_studio, to_disk) {
            (false, false) => return None,
            (true, false) => Direction::Push,
            (false, true) => Direction::Pull,
            (true, true) => Direction::Merge,
        };
        let mut decision = Decision::new(change.planned(direction, PatchType::Edit)).then(Then::Restore(id, line.base));
        if let (true, Some(expect)) = (to_studio, studio) {
            let source = self.text(line.studio.0)?.clone();
            decision = decision.does(PlanOp::SetSource { id, source, expect });
        }
        if let (true, Some(base), Some(path)) = (to_disk, disk, view.fs_path.clone()) {
            let text = Some(self.text(line.disk.0)?.clone());
            decision = decision.writes(FileWrite::Replace { path, base, text });
        }
        Some(decision)
    }

    /// Properties get the values that they had.
    fn properties(&self, line: &Line, set: &PropertyLine, mut change: Change) -> Option<Decision> {
        let Some((id, view)) = self.node(line.key.as_ref()) else {
            return Some(Decision::unresolved(change, "it is not in the project any more"));
        };
        let fact = self.facts.iter().find(|fact| fact.id == Some(id));
        (change.id, change.fs_path) = (Some(id), view.fs_path.clone());
        if fact.is_some_and(|fact| fact.kind == FactKind::Missing) {
            return Some(Decision::unresolved(change, "it is not in Studio any more"));
        }
        let (mut properties, mut expect) = (Properties::new(), Properties::new());
        for (name, before) in &set.before {
            let reported = fact.and_then(|fact| fact.properties.get(name));
            let Some(now) = reported.or_else(|| view.properties.get(name)) else {
                return Some(Decision::unresolved(change, format!("{name}: no file specifies it any more")));
            };
            if is_close(now, before) {
                continue;
            }
            if !set.after.get(name).is_some_and(|after| is_close(now, after)) {
                return Some(Decision::unresolved(change, format!("{name}: {MOVED_ON}")));
            }
            properties.insert(name.clone(), before.clone());
            expect.insert(name.clone(), now.clone());
        }
        if properties.is_empty() {
            return None;
        }
        let set_back = properties::shown(change, &properties, &expect).planned(Direction::Push, PatchType::Edit);
        let base = Then::RestoreProperties(id, set.base.clone());
        Some(Decision::new(set_back).does(PlanOp::SetProperties { id, properties, expect }).then(base))
    }

    /// What was removed in Studio is made again.
    fn bring_back(&self, line: &Line, change: Change) -> Option<Decision> {
        let (Some((parent, _)), Some(key), Some(name)) = (self.node(line.parent.as_ref()), &line.key, &line.name)
        else {
            return Some(Decision::unresolved(change, "what it stood below is not in the project any more"));
        };
        let again = self.facts.iter().any(|fact| {
            fact.kind == FactKind::Extra && fact.parent == Some(parent) && fact.name.as_ref() == Some(name)
        });
        if again || self.keys.contains_key(key) {
            return Some(Decision::unresolved(change, "something of its name is there again"));
        }
        let source = match line.studio.0 {
            None => None,
            some => Some(self.text(some)?.clone()),
        };
        let mut node = NewNode {
            id: self.new_id(&[]),
            name: name.clone(),
            class_name: line.class_name.clone(),
            source,
            properties: line.specified.get(key).cloned().unwrap_or_default(),
            children: Vec::new(),
        };
        let mut scripts: Vec<(InstanceKey, TextHash)> =
            line.studio.0.map(|hash| (key.clone(), hash)).into_iter().collect();
        for one in &line.below {
            let seat = self.seat(&mut node, key, one, line)?;
            scripts.extend(one.studio_hash.map(|hash| (seat, hash)));
        }
        let reason = Some(
            "with what the files specified of it but references; all of it Studio's own undo brings back".to_owned(),
        );
        let change = Change { reason, ..change.planned(Direction::Push, PatchType::Add) };
        let decision = Decision::new(change).does(PlanOp::Add { parent, node }).at(parent, name);
        let specified = line.specified.iter();
        let others = specified.map(|(key, properties)| Then::PropertiesGone(key.clone(), Some(properties.clone())));
        let scripts = scripts.into_iter().map(|(key, hash)| Then::Gone(key, hash));
        Some(scripts.chain(others).fold(decision, Decision::then))
    }

    /// Put `one` in its place below `top`; its key.
    fn seat(&self, top: &mut NewNode, key: &InstanceKey, one: &Below, line: &Line) -> Option<InstanceKey> {
        let (name, above) = one.path.split_last()?;
        let (mut parent, mut key) = (top, key.clone());
        for step in above {
            parent = parent.children.iter_mut().find(|child| child.name == *step)?;
            key = key.child(&parent.name, &parent.class_name);
        }
        let source = match one.studio_hash {
            None => None,
            some => Some(self.text(some)?.clone()),
        };
        let class_name = one.class_name.clone();
        let key = key.child(name, &one.class_name);
        parent.children.push(NewNode {
            id: self.new_id(&one.path),
            name: name.clone(),
            class_name,
            source,
            properties: line.specified.get(&key).cloned().unwrap_or_default(),
            children: Vec::new(),
        });
        Some(key)
    }

    /// The tree has no such node; the plugin forgets the id at its next comparison.
    fn new_id(&self, path: &[String]) -> NodeId {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, self.recalled.id, path).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        NodeId(half(1) << 64 | half(2) | 1)
    }

    /// A file that was made from what was made in Studio.
    fn remove_file(&self, line: &Line, mut change: Change) -> Option<Decision> {
        let (id, view) = self.node(line.key.as_ref())?;
        (change.id, change.disk_hash) = (Some(id), view.hash);
        let (Some(path), Some(base)) = (view.fs_path.clone(), view.hash.filter(|hash| line.disk.1 == Some(*hash)))
        else {
            return Some(Decision::unresolved(change, MOVED_ON));
        };
        let key = self.agreement.key(id)?;
        let change = change.planned(Direction::Pull, PatchType::Remove);
        let keep = view.source.clone().unwrap_or_default();
        Some(Decision::new(change).writes(FileWrite::Remove { path, base }).keeps(&keep).then(Then::Forget(key)))
    }

    /// A file that was removed because its instance was.
    fn restore_file(&self, line: &Line, change: Change) -> Option<Decision> {
        if self.node(line.key.as_ref()).is_some() {
            return Some(Decision::unresolved(change, "there is a file again"));
        }
        let parent = self.node(line.parent.as_ref());
        let (Some((parent, _)), Some(name), Some(hash)) = (parent, &line.name, line.disk.0) else {
            return Some(Decision::unresolved(change, "what it stood below is not in the project any more"));
        };
        let folder = line.fs_path.as_deref()?.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let (name, class) = (name.clone(), line.class_name.clone());
        let text = Some(self.text(line.disk.0)?.clone());
        let write = FileWrite::Create { folder, name: name.clone(), class: class.clone(), text };
        let change = change.planned(Direction::Pull, PatchType::Add);
        Some(Decision::new(change).writes(write).then(Then::At { parent, name, class, hash }))
    }
}
