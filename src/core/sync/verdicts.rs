//! What to do about one node of the tree that Studio has not, or has in another text.

use super::{
    decision::{Decision, Needs, NodeView, Removal, Rules, Then},
    earlier::Version,
    overrides::Forced,
    receipt::{Change, ChangeResult, Direction, PatchType},
    writes::FileWrite,
};
use crate::core::{
    agreement::Agreement,
    ids::NodeId,
    merge::{Base, Verdict, verdict},
    protocol::{Fact, FactKind, NewNode, PlanOp},
    text::TextHash,
};

/// How deep a new subtree may be: JSON readers give up on what is nested deeper.
const MAX_DEPTH: usize = 50;

const WAYS: &str = "settle it with `resolve`, or an override";

/// Decide about a fact of a node. `None`: there is no difference any more.
pub(super) fn about_node(
    fact: &Fact,
    view: Option<&NodeView>,
    agreement: &mut Agreement,
    rules: &Rules,
    forced: Option<Forced>,
) -> Option<Decision> {
    match (fact.kind, fact.id, view) {
        (FactKind::Differs, Some(id), Some(view)) => Differs { id, fact, view, rules }.decide(agreement, forced),
        (FactKind::Missing, Some(id), Some(view)) => Some(Missing { id, fact, view, rules }.decide(agreement, forced)),
        _ => None,
    }
}

/// The line of a receipt that is about `fact`.
pub(super) fn change(fact: &Fact, view: Option<&NodeView>, patch_type: PatchType) -> Change {
    Change {
        path: view.map_or_else(|| fact.path.clone(), |view| view.path.clone()),
        fs_path: view.and_then(|view| view.fs_path.clone()),
        id: fact.id,
        temp_id: fact.temp_id.clone(),
        class_name: view.map_or_else(|| fact.class_name.clone(), |view| view.class_name.clone()),
        direction: Direction::Unresolved,
        patch_type,
        disk_hash: view.and_then(|view| view.hash),
        studio_hash: fact.studio_hash,
        result: ChangeResult::Unresolved,
        reason: None,
        conflict: Vec::new(),
        foreign: serde_json::Map::new(),
    }
}

/// A script whose text in Studio is another.
struct Differs<'a> {
    id: NodeId,
    fact: &'a Fact,
    view: &'a NodeView,
    rules: &'a Rules,
}

impl Differs<'_> {
    fn decide(self, agreement: &mut Agreement, forced: Option<Forced>) -> Option<Decision> {
        if self.fact.is_of_properties() {
            return None;
        }
        let change = change(self.fact, Some(self.view), PatchType::Edit);
        let (Some(disk), Some(studio), Some(source)) = (self.view.hash, self.fact.studio_hash, &self.view.source)
        else {
            return Some(Decision::unresolved(change, "one side of it is not a script"));
        };
        if disk == studio {
            agreement.agree(self.id, disk);
            return None;
        }
        if self.fact.is_draft {
            return Some(Decision::unresolved(change, "a person is editing it in Studio and has not saved"));
        }
        let base = agreement.standing(self.id).as_found(Some(disk), Some(studio));
        let texts = Texts { disk, studio, source };
        Some(match forced {
            Some(Forced::Push) => self.push(change, &texts, !base.is_old(Some(studio))),
            Some(Forced::Pull) => self.pull(change, &texts),
            Some(Forced::Text(text)) => self.both(change, &texts, text),
            None => self.by_verdict(change, &texts, &base),
        })
    }

    fn by_verdict(&self, change: Change, texts: &Texts<'_>, base: &Base) -> Decision {
        let verdict = verdict(base, Some(texts.disk), Some(texts.studio));
        let last = base.last.flatten();
        match (verdict, last) {
            (Verdict::Push, _) => self.push(change, texts, false),
            (Verdict::Pull, _) if self.rules.may_take(base) => self.pull(change, texts),
            (Verdict::Both, Some(last)) if self.rules.may_take(base) => self.merge(change, texts, last),
            (Verdict::Pull, _) => {
                let reason = format!("it was changed in Studio, not in the file, {} ({WAYS})", self.rules.why_not());
                Decision::unresolved(change, reason)
            }
            (Verdict::Both | Verdict::Gone, _) => {
                let reason = format!("it was changed in Studio and in the file, {} ({WAYS})", self.rules.why_not());
                Decision::unresolved(change, reason)
            }
            (Verdict::NoBase, _) if self.is_earlier(texts.studio) => {
                let reason = Some("Studio had an earlier version of the file, as this server or git knows".to_owned());
                self.push(Change { reason, ..change }, texts, true)
            }
            _ => {
                let reason =
                    format!("it differed when Studio connected, and nothing says which side is newer ({WAYS})");
                Decision::unresolved(change, reason)
            }
        }
    }

    fn is_earlier(&self, hash: TextHash) -> bool {
        let path = self.view.fs_path.clone();
        path.is_some_and(|path| self.rules.earlier.contains(&Version { path, hash }))
    }

    /// `keep`: Studio's text is nowhere else, so it goes into the journal.
    fn push(&self, change: Change, texts: &Texts<'_>, keep: bool) -> Decision {
        let op = PlanOp::SetSource { id: self.id, source: texts.source.to_owned(), expect: texts.studio };
        let decision = Decision::new(change.planned(Direction::Push, PatchType::Edit))
            .does(op)
            .then(Then::Agree(self.id, texts.disk));
        if keep { decision.needs(Needs::text(self.id.into(), texts.studio)) } else { decision }
    }

    fn pull(&self, change: Change, texts: &Texts<'_>) -> Decision {
        let Some(path) = self.view.fs_path.clone() else {
            return Decision::unresolved(change, "it has no file of its own to be written to");
        };
        let write = FileWrite::Replace { path, base: texts.disk, text: None };
        Decision::new(change.planned(Direction::Pull, PatchType::Edit))
            .writes(write)
            .needs(Needs::text(self.id.into(), texts.studio))
            .keeps(texts.source)
            .then(Then::Agree(self.id, texts.studio))
    }

    fn merge(&self, change: Change, texts: &Texts<'_>, base: TextHash) -> Decision {
        let Some(path) = self.view.fs_path.clone() else {
            return Decision::unresolved(change, "it has no file of its own to be written to");
        };
        let op = PlanOp::SetSource { id: self.id, source: String::new(), expect: texts.studio };
        Decision::new(change.planned(Direction::Merge, PatchType::Edit))
            .does(op)
            .writes(FileWrite::Replace { path, base: texts.disk, text: None })
            .needs(Needs { merge: Some(base), ..Needs::text(self.id.into(), texts.studio) })
            .keeps(texts.source)
    }

    /// A person has written the text that both sides get.
    fn both(&self, change: Change, texts: &Texts<'_>, text: String) -> Decision {
        let hash = TextHash::of(&text);
        let mut decision = self.merge(change, texts, hash);
        if let Some(needs) = &mut decision.needs {
            needs.merge = None;
        }
        decision.set_text(&text);
        decision.then(Then::Agree(self.id, hash))
    }
}

struct Texts<'a> {
    disk: TextHash,
    studio: TextHash,
    source: &'a str,
}

/// A node that Studio lacks, with all below it.
struct Missing<'a> {
    id: NodeId,
    fact: &'a Fact,
    view: &'a NodeView,
    rules: &'a Rules,
}

impl Missing<'_> {
    fn decide(self, agreement: &Agreement, forced: Option<Forced>) -> Decision {
        let change = change(self.fact, Some(self.view), PatchType::Add);
        let (Some(parent), Some(node)) = (self.view.parent, self.view.subtree.clone()) else {
            return Decision::unresolved(change, "its place in the tree is not known");
        };
        let mut texts = Vec::new();
        collect_texts(&node, &mut texts);
        let others = others(&node);
        let were_there = others.iter().any(|other| other.source.is_none() && was_there(agreement, other.id));
        let standing = |id: NodeId, hash: TextHash| agreement.standing(id).as_found(Some(hash), None);
        let of = |(id, hash): &(NodeId, TextHash)| verdict(&standing(*id, *hash), Some(*hash), None);
        // A run had begun to delete the file, and was cut off.
        let begun = self.view.hash.is_some_and(|hash| agreement.was_cut_off(self.id) && standing(self.id, hash).seen);
        match forced {
            Some(Forced::Pull) => return self.delete(change, &node, agreement),
            Some(Forced::Text(_)) => return Decision::unresolved(change, "Studio does not have it"),
            Some(Forced::Push) => {}
            None if !were_there && texts.iter().all(|text| of(text) == Verdict::Push) => {}
            None if texts.iter().any(|text| of(text) == Verdict::Gone) => {
                let reason = format!("it was removed in Studio, and its file was changed ({})", self.ways(&node));
                return Decision::unresolved(change, reason);
            }
            None if self.rules.alone && self.rules.takes && (begun || self.rules.deleted.contains(&self.id)) => {
                return self.delete_unasked(change, &node, agreement);
            }
            None => {
                let reason = format!("it was removed in Studio, not on disk ({})", self.ways(&node));
                return Decision::unresolved(change, reason);
            }
        }
        if let Some(reason) = cannot_be_made(&node) {
            return Decision::unresolved(change, reason);
        }
        debug_assert_eq!(node.id, self.id, "the view is of the fact's node");
        let change = change.planned(Direction::Push, PatchType::Add);
        let with = others.into_iter().map(|other| Then::MadeWith(other.id, other.properties.clone()));
        let with: Vec<Then> = with.collect();
        let made = texts.into_iter().map(|(id, hash)| Then::Made(id, hash)).chain(with);
        made.fold(Decision::new(change).does(PlanOp::Add { parent, node }), Decision::then)
    }

    /// The same as [`Self::delete`], unless it is too much at once.
    fn delete_unasked(self, change: Change, node: &NewNode, agreement: &Agreement) -> Decision {
        let parent = self.view.parent.unwrap_or(self.id);
        let removal = Removal { parent, siblings: Some(agreement.child_count(parent)), scripts: 1 };
        let decision = self.delete(change, node, agreement);
        if decision.is_resolved() { Decision { removal: Some(removal), ..decision } } else { decision }
    }

    /// How it can be settled.
    fn ways(&self, node: &NewNode) -> &'static str {
        match self.own_file(node) {
            Ok(_) => "an override with `push` makes it again, with `pull` it deletes the file",
            Err(_) => "an override with `push` makes it again; to have it gone, delete it on disk",
        }
    }

    /// The file that holds it and nothing else.
    fn own_file(&self, node: &NewNode) -> Result<(&str, TextHash, &str), &'static str> {
        let own = self.view.fs_path.as_deref();
        let own = own.filter(|path| !path.rsplit('/').next().unwrap_or_default().starts_with("init."));
        let (Some(path), Some(hash), Some(source)) = (own, self.view.hash, self.view.source.as_deref()) else {
            return Err("it is not one script in one file; delete it on disk yourself");
        };
        if !node.children.is_empty() {
            return Err("more lies below it; delete it on disk yourself");
        }
        Ok((path, hash, source))
    }

    /// What was removed in Studio is removed on disk.
    fn delete(self, change: Change, node: &NewNode, agreement: &Agreement) -> Decision {
        let (path, hash, source) = match self.own_file(node) {
            Ok(own) => own,
            Err(reason) => return Decision::unresolved(change, reason),
        };
        let Some(key) = agreement.key(self.id) else {
            return Decision::unresolved(change, "it has left the tree");
        };
        Decision::new(change.planned(Direction::Pull, PatchType::Remove))
            .writes(FileWrite::Remove { path: path.to_owned(), base: hash })
            .keeps(source)
            .loses(node)
            .then(Then::Absent(key))
            .at(self.view.parent.unwrap_or(self.id), &node.name)
    }
}

fn cannot_be_made(node: &NewNode) -> Option<String> {
    (depth(node) > MAX_DEPTH)
        .then(|| format!("it is nested more than {MAX_DEPTH} levels deep, which one plan cannot carry"))
}

/// Both sides had the instance, which is no script, and Studio has not just gone back to before.
fn was_there(agreement: &Agreement, id: NodeId) -> bool {
    let base = agreement.properties(id);
    base.last.is_some() && !base.earlier.contains(&None)
}

/// The nodes whose properties are agreed on: all but plain scripts.
pub(super) fn others(node: &NewNode) -> Vec<&NewNode> {
    let own = (node.source.is_none() || !node.properties.is_empty()).then_some(node);
    own.into_iter().chain(node.children.iter().flat_map(others)).collect()
}

fn depth(node: &NewNode) -> usize {
    1 + node.children.iter().map(depth).max().unwrap_or(0)
}

fn collect_texts(node: &NewNode, texts: &mut Vec<(NodeId, TextHash)>) {
    texts.extend(node.source.as_deref().map(|source| (node.id, TextHash::of(source))));
    node.children.iter().for_each(|child| collect_texts(child, texts));
}
