//! What was deleted: it comes back in Studio and on disk, whichever of them had deleted it.

use std::collections::HashSet;

use super::{
    Back, MOVED_ON, NO_PARENT, THERE_AGAIN,
    look::{InStudio, scripts, stray},
};
use crate::core::{
    ids::{NodeId, OpId},
    journal::Line,
    merge::Side,
    paths::InstanceKey,
    protocol::{Below, NewNode, PlanOp},
    sync::{
        Change, Decision, Direction, FileWrite, NodeView, PatchType,
        decision::{Restored, Then},
        plan::listed,
        removals::folder_of,
        verdicts::others,
    },
    text::TextHash,
};

/// What is to come back.
struct Lost<'a> {
    line: &'a Line,
    key: &'a InstanceKey,
    name: String,
    text: Side,
    parent: NodeId,
    /// Where its files lay; `None`: it had none, or their folder is gone.
    folder: Option<String>,
}

impl Back<'_> {
    pub(super) fn bring_back(&self, line: &Line) -> Vec<Decision> {
        let refused = |reason: &str| vec![Decision::unresolved(self.change(line), reason)];
        let Some((key, (above, name, class))) = line.key.as_ref().and_then(|key| Some((key, key.split_last()?))) else {
            return refused(NO_PARENT);
        };
        let text = line.studio.0.or(line.disk.0);
        if let Some((id, view)) = self.node(line) {
            return self.make_again(line, text, (id, view)).into_iter().collect();
        }
        let Some((parent, view)) = self.at(&above) else { return refused(NO_PARENT) };
        let paths: HashSet<&[String]> = line.below.iter().map(|one| &one.path[..]).collect();
        if paths.len() != line.below.len() {
            return refused("it held several of one name, which only Studio's own undo brings back");
        }
        // What was made in Studio had no file; a folder's scripts had one each.
        let had_file = line.direction == Direction::Pull || text.is_none() || line.base.flatten().is_some();
        let folder = folder_of(view).filter(|_| had_file);
        let lost = Lost { line, key, name, text, parent, folder };
        let there = self.extra(parent, &lost.name);
        let is_it = there.is_some_and(|fact| fact.class_name == class && stray(fact).is(text, &line.below));
        match there {
            Some(_) if !is_it => refused(THERE_AGAIN),
            Some(_) => self.files(&lost, None),
            None => {
                let Some(decision) = self.in_studio_again(&lost, had_file) else { return refused(NO_PARENT) };
                let op = decision.op.as_ref().map(PlanOp::subject);
                let mut all = vec![decision];
                all.extend(self.files(&lost, op));
                all
            }
        }
    }

    /// Its file is there, so it has a node.
    fn make_again(&self, line: &Line, text: Side, (id, view): (NodeId, &NodeView)) -> Option<Decision> {
        let mut change = Change { id: Some(id), fs_path: view.fs_path.clone(), ..self.change(line) };
        change.disk_hash = view.hash;
        let (Some(node), Some(parent)) = (&view.subtree, view.parent) else {
            return Some(Decision::unresolved(change, MOVED_ON));
        };
        if !self.is_missing(id) {
            if !self.in_studio(node).is(text, &line.below) {
                return Some(Decision::unresolved(change, THERE_AGAIN));
            }
            let agreed = scripts(node).into_iter().filter(|(id, _)| self.fact(*id).is_none());
            return Some(
                agreed.fold(Decision::new(change), |decision, (id, hash)| decision.then(Then::Agree(id, hash))),
            );
        }
        let on_disk = InStudio { hash: view.hash, below: listed(node), ..InStudio::default() };
        if !on_disk.is(text, &line.below) {
            return Some(Decision::unresolved(change, "its file is not as it was then, so it is left as it is"));
        }
        let scripts = scripts(node).into_iter().map(|(id, hash)| Then::Made(id, hash));
        let others = others(node).into_iter().map(|other| Then::MadeWith(other.id, other.properties.clone()));
        let made: Vec<Then> = scripts.chain(others).collect();
        let change = change.planned(Direction::Push, PatchType::Add);
        let decision = Decision::new(change).does(PlanOp::Add { parent, node: node.clone() });
        Some(made.into_iter().fold(decision, Decision::then))
    }

    /// The instance, made anew in Studio.
    fn in_studio_again(&self, lost: &Lost<'_>, had_file: bool) -> Option<Decision> {
        let Lost { line, key, name, text, parent, folder } = lost;
        let node = self.new_node(lost)?;
        let mut reason =
            "with what files specified of it but references; the rest Studio's own undo brings back".to_owned();
        if had_file && folder.is_none() {
            reason.push_str(". Its file is not either: what it stands below has no folder on disk");
        }
        let change = Change { reason: Some(reason), fs_path: None, ..self.change(line) };
        let change = change.planned(Direction::Push, PatchType::Add);
        let mut decision = Decision::new(change).does(PlanOp::Add { parent: *parent, node }).at(*parent, name);
        for (key, properties) in &line.specified {
            decision = decision.then(Then::PropertiesGone(key.clone(), Some(properties.clone())));
        }
        if folder.is_none() {
            for (script, hash) in lost.scripts() {
                let known = if script == **key && text.is_some() { line.base } else { Some(Some(hash)) };
                decision = decision.restores(Restored::At(script), known, None);
            }
        }
        Some(decision)
    }

    fn new_node(&self, lost: &Lost<'_>) -> Option<NewNode> {
        let Lost { line, key, name, text, .. } = lost;
        let make = |name: &str, class: &str, side: Side, key: &InstanceKey| {
            let source = if side.is_some() { Some(self.text(side)?.clone()) } else { None };
            let (name, class_name) = (name.to_owned(), class.to_owned());
            let properties = line.specified.get(key).cloned().unwrap_or_default();
            Some(NewNode { id: self.new_id(key), name, class_name, source, properties, children: Vec::new() })
        };
        let mut top = make(name, &line.class_name, *text, key)?;
        for (one, key) in line.below.iter().zip(line.keys_below(key)) {
            let (own, above) = one.path.split_last()?;
            let mut parent = &mut top;
            for step in above {
                parent = parent.children.iter_mut().find(|child| child.name == *step)?;
            }
            parent.children.push(make(own, &one.class_name, one.studio_hash, &key)?);
        }
        Some(top)
    }

    /// Its files, once the instance is there (`op`: the step that makes it).
    fn files(&self, lost: &Lost<'_>, op: Option<OpId>) -> Vec<Decision> {
        let Some(folder) = &lost.folder else { return Vec::new() };
        let mut all = Vec::new();
        let items = lost.items();
        let with_file: Vec<bool> = items.iter().map(|item| item.had_file(&items)).collect();
        let items = items.into_iter().zip(with_file).filter_map(|(item, had_file)| had_file.then_some(item));
        for Item { path, key, class, text } in items {
            let Some((name, above)) = path.split_last() else { continue };
            let folder = above.iter().fold(folder.clone(), |folder, name| below(&folder, name));
            let holds =
                lost.line.below.iter().any(|one| one.path.len() >= path.len() && one.path.starts_with(&path[1..]));
            let (name, class) = (name.clone(), class.to_owned());
            let write = match (text, self.text(text)) {
                (None, _) if class == "Folder" => FileWrite::Folder { folder, name },
                (Some(_), Some(text)) => {
                    FileWrite::Create { folder, name, class: class.clone(), text: Some(text.clone()), holds }
                }
                _ => continue,
            };
            let path = std::iter::once(lost.line.path.as_str()).chain(path[1..].iter().map(String::as_str));
            let path = path.collect::<Vec<_>>().join(".");
            let change = Change { path, class_name: class, fs_path: None, ..self.change(lost.line) };
            let mut decision = Decision::new(change.planned(Direction::Pull, PatchType::Add)).writes(write);
            decision.after.clone_from(&op);
            decision.key = Some(key.clone());
            if text.is_some() {
                decision = decision.restores(Restored::At(key), Some(text), None);
            }
            all.push(decision);
        }
        all
    }
}

/// An instance with its names from the top one down.
struct Item<'a> {
    path: Vec<String>,
    key: InstanceKey,
    class: &'a str,
    text: Side,
}

impl Item<'_> {
    /// Neither a script nor a folder: such a one lies in a model, whose file is not kept.
    fn is_of_model(&self) -> bool {
        self.text.is_none() && self.class != "Folder"
    }

    /// A file or a folder of its own stood for it.
    fn had_file(&self, all: &[Self]) -> bool {
        let above = |other: &&Self| other.path.len() < self.path.len() && self.path.starts_with(&other.path);
        let below = |other: &&Self| other.path.starts_with(&self.path);
        let holds_script = || all.iter().filter(below).any(|other| other.text.is_some());
        let holds_model = || all.iter().filter(below).any(Self::is_of_model);
        !all.iter().filter(above).any(Self::is_of_model) && (holds_script() || !holds_model())
    }
}

impl Lost<'_> {
    /// The top one and all below it, each after what it lies in.
    fn items(&self) -> Vec<Item<'_>> {
        let (path, key) = (vec![self.name.clone()], self.key.clone());
        let top = Item { path, key, class: &self.line.class_name, text: self.text };
        let path = |one: &Below| [std::slice::from_ref(&self.name), &one.path].concat();
        let below = self.line.below.iter().zip(self.line.keys_below(self.key));
        let below =
            below.map(|(one, key)| Item { path: path(one), key, class: &one.class_name, text: one.studio_hash });
        std::iter::once(top).chain(below).collect()
    }

    fn scripts(&self) -> Vec<(InstanceKey, TextHash)> {
        self.items().into_iter().filter_map(|item| Some((item.key, item.text?))).collect()
    }
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
