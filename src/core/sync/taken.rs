//! What a person was seen to rename or move in Studio: its file follows, or its folder with all that
//! lies in it.

use std::collections::{HashMap, HashSet};

use super::{
    decision::{Decision, Needs, NodeView, Place, Rules, Then},
    plan::listed,
    receipt::{Change, Direction, PatchType},
    removals::folder_of,
    verdicts,
    writes::FileWrite,
};
use crate::core::{
    agreement::Agreement,
    ids::NodeId,
    protocol::{Fact, FactKind, NewNode},
    text::TextHash,
};

/// The nodes that Studio lacks because a person gave their scripts another name or place, each with
/// what it is now.
pub(super) fn moved<'a>(facts: &'a [Fact], rules: &Rules) -> HashMap<NodeId, &'a Fact> {
    let is_missing = |id: NodeId| facts.iter().any(|fact| fact.kind == FactKind::Missing && fact.id == Some(id));
    let followed = facts.iter().filter(|fact| rules.follows && fact.kind == FactKind::Extra);
    followed.filter_map(|fact| Some((fact.was.filter(|id| is_missing(*id))?, fact))).collect()
}

/// What to do about the node of `missing`, which is `now` below `parent`.
pub(super) fn follow(
    missing: &Fact,
    view: Option<&NodeView>,
    now: &Fact,
    parent: Option<&NodeView>,
    agreement: &Agreement,
) -> Decision {
    let mut change = verdicts::change(missing, view, PatchType::Rename);
    (change.temp_id, change.studio_hash) = (now.temp_id.clone(), now.studio_hash);
    try_follow(&change, missing, view, now, parent, agreement).unwrap_or_else(|reason| {
        Decision::unresolved(change, format!("it is {} in Studio now, and {reason}", now.path))
    })
}

fn try_follow(
    change: &Change,
    missing: &Fact,
    view: Option<&NodeView>,
    now: &Fact,
    parent: Option<&NodeView>,
    agreement: &Agreement,
) -> Result<Decision, &'static str> {
    let unknown = "it is not known well enough what that is";
    let (id, view) = missing.id.zip(view).ok_or(unknown)?;
    if let Some(own) = folder_of(view) {
        let to = parent.and_then(folder_of).ok_or("what it stands below has no folder on disk")?;
        return follow_folder(change, (id, view), now, (own, to), agreement);
    }
    let (Some(path), Some(base), Some(source)) = (&view.fs_path, view.hash, &view.source) else {
        return Err("its node is no script");
    };
    if view.subtree.as_ref().is_some_and(|node| !node.children.is_empty()) {
        return Err("more lies below it: rename or move it on disk");
    }
    let (Some(at), Some(name), Some(hash), Some(of)) = (now.parent, &now.name, now.studio_hash, &now.temp_id) else {
        return Err(unknown);
    };
    if now.is_draft {
        return Err("a person is editing it in Studio and has not saved");
    }
    if now.class_name != view.class_name || now.subtree.as_ref().is_none_or(|below| !below.is_empty()) {
        return Err("it is not one script of the same class any more");
    }
    if agreement.base(id) != Some(base) && base != hash {
        return Err("its file was changed too: rename or move that on disk");
    }
    let folder = parent.and_then(folder_of).ok_or("what it stands below has no folder on disk")?;
    let (Some(key), Some(above)) = (agreement.key(id), view.parent) else { return Err(unknown) };
    let (class, old) = (view.class_name.clone(), view.subtree.as_ref().map(|node| node.name.clone()));
    let Some(was) = old.clone() else { return Err(unknown) };
    let text = (base == hash).then(|| source.clone());
    let (to, path) = (name.clone(), path.clone());
    let write = FileWrite::Move { path, base, folder, was, name: to, class: class.clone(), text };
    // Properties, where it has a file for them, and what was agreed of the text earlier.
    let moved = agreement.key(at).map(|above| Then::Moved { from: key.clone(), to: above.child(name, &class) });
    let then = Then::At { parent: at, name: name.clone(), class, hash };
    let reason = Some(format!("it is {} in Studio now", now.path));
    let change = Change { reason, ..change.clone().planned(Direction::Pull, PatchType::Rename) };
    let decision = Decision::new(change).writes(write).keeps(source).at(at, name);
    let decision = moved.into_iter().chain([Then::Absent(key), then]).fold(decision, Decision::then);
    let decision = Decision { was: old.map(|name| Place { parent: above, name }), ..decision };
    Ok(if base == hash { decision } else { decision.needs(Needs::text(of.clone().into(), hash)) })
}

/// The same for what others lie below: its folder `own` goes to the folder `to`. Texts stay as they are
/// on both sides.
fn follow_folder(
    change: &Change,
    (id, view): (NodeId, &NodeView),
    now: &Fact,
    (own, to): (String, String),
    agreement: &Agreement,
) -> Result<Decision, &'static str> {
    let unknown = "it is not known well enough what that is";
    let (Some(at), Some(name), Some(node)) = (now.parent, &now.name, &view.subtree) else { return Err(unknown) };
    let subtree = now.subtree.as_ref().ok_or("too much lies in it: rename or move it on disk")?;
    if now.class_name != view.class_name {
        return Err("it is of another class now");
    }
    let there: HashSet<(&[String], &str)> = subtree.iter().map(|one| (&one.path[..], &*one.class_name)).collect();
    if !listed(node).iter().all(|one| there.contains(&(&one.path[..], &one.class_name))) {
        return Err("what lies below it is not the same there: rename or move it on disk");
    }
    let is_agreed = |(id, hash): &(NodeId, TextHash)| agreement.base(*id) == Some(*hash);
    if !scripts(node).iter().all(is_agreed) {
        return Err("a file in it was changed too: sync that first");
    }
    let (Some(key), Some(parent), Some(above)) = (agreement.key(id), agreement.key(at), view.parent) else {
        return Err(unknown);
    };
    let then = Then::Moved { from: key, to: parent.child(name, &view.class_name) };
    let write = FileWrite::MoveFolder { id, path: own, folder: to, name: name.clone() };
    let reason = Some(format!("it is {} in Studio now", now.path));
    // No text is replaced, and none is needed to take it back.
    let change = Change { reason, disk_hash: None, studio_hash: None, ..change.clone() };
    let decision = Decision::new(change.planned(Direction::Pull, PatchType::Rename)).writes(write).then(then);
    Ok(Decision { was: Some(Place { parent: above, name: node.name.clone() }), ..decision.at(at, name) })
}

fn scripts(node: &NewNode) -> Vec<(NodeId, TextHash)> {
    let own = node.source.as_deref().map(|source| (node.id, TextHash::of(source)));
    own.into_iter().chain(node.children.iter().flat_map(scripts)).collect()
}
