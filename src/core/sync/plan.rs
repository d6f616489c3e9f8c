//! From decisions to what is done: the plan for Studio, the files, and the journal's entry.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    decision::{Decision, Lost, Place, Then},
    receipt::{Change, ChangeResult, Direction},
    writes::FileWrite,
};
use crate::core::{
    agreement::Agreement,
    ids::OpId,
    journal::{Entry, HeldFile, Line, MadeFile, PropertyLine, Seat},
    merge::Side,
    paths::InstanceKey,
    protocol::{Below, NewNode, OpResult, OpStatus, PlanOp},
    text::{ScriptText, TextHash},
    values::Properties,
};

/// An entry of the journal before anything is done, with the texts at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// What is going to be done.
    pub entry: Entry,
    /// Texts of both sides, before and after.
    pub texts: Vec<String>,
    /// What is going to be done to files, by the place of the change in the entry: what they hold
    /// before and after is to be noted.
    pub writes: Vec<(usize, FileWrite)>,
}

/// Whether the journal has the entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It has.
    Entry(u64, Entry),
    /// These texts would be lost: nobody keeps them.
    Lacks(Vec<TextHash>),
    /// It could not be written.
    Failed(String),
}

/// What became of one write to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrote {
    /// The file holds this text now (`None`: there is none).
    Done(Side),
    /// This file was made with this text, or this folder.
    Made(String, Side),
    /// It held another text than the one decided on.
    MovedOn(String),
    /// It could not be written.
    Failed(String),
}

/// The journal's entry for what is resolved in `decisions`.
pub(super) fn draft(decisions: &mut [Decision], agreement: &Agreement, undoes: Option<u64>) -> Draft {
    let resolved = decisions.iter_mut().filter(|decision| decision.is_resolved());
    let what = if undoes.is_some() { "undo" } else { "sync" }.to_owned();
    let mut draft = Draft { entry: Entry { what, undoes, ..Entry::default() }, texts: Vec::new(), writes: Vec::new() };
    for decision in resolved {
        let at = draft.entry.changes.len();
        decision.line = Some(at);
        draft.writes.extend(decision.write.clone().map(|write| (at, write)));
        draft.entry.changes.push(line(decision, agreement));
        draft.texts.extend(decision.keeps.iter().cloned());
        match &decision.op {
            Some(PlanOp::SetSource { source, .. } | PlanOp::Rename { source: Some(source), .. }) => {
                draft.texts.push(source.clone());
            }
            Some(PlanOp::Add { node, .. }) => texts_of(node, &mut draft.texts),
            _ => {}
        }
        if let Some(FileWrite::Instance { node: Some(node), .. } | FileWrite::Files { node, .. }) = &decision.write {
            texts_of(node, &mut draft.texts);
        }
        if let Lost::Known(node) = &decision.lost {
            texts_of(node, &mut draft.texts);
        }
        if let Some(
            FileWrite::Replace { text: Some(text), .. }
            | FileWrite::Create { text: Some(text), .. }
            | FileWrite::Move { text: Some(text), .. },
        ) = &decision.write
        {
            draft.texts.push(text.clone());
        }
    }
    draft
}

fn texts_of(node: &NewNode, texts: &mut Vec<String>) {
    texts.extend(node.source.iter().cloned());
    node.children.iter().for_each(|child| texts_of(child, texts));
}

fn line(decision: &Decision, agreement: &Agreement) -> Line {
    let Change { path, fs_path, id, class_name, direction, patch_type, disk_hash, studio_hash, .. } = &decision.change;
    let seat = |place: &Place| {
        let parent = agreement.key(place.parent)?;
        Some(Seat { parent, name: place.name.clone() })
    };
    let own = decision.key.as_ref().and_then(InstanceKey::split_last).map(|(parent, name, _)| Seat { parent, name });
    let stands = own.or_else(|| decision.place.as_ref().and_then(seat));
    let at_place = stands.as_ref().map(|seat| seat.parent.child(&seat.name, class_name));
    let key = at_place.or_else(|| id.and_then(|id| agreement.key(id)));
    let base = match id {
        Some(id) => agreement.standing(*id).last,
        None => key.as_ref().and_then(|key| agreement.gone(key)).and_then(|base| base.last),
    };
    let restored = decision.then.iter().find_map(|then| match then {
        Then::Restore { base, .. } => Some(*base),
        _ => None,
    });
    let (parent, name) = stands.map(|seat| (seat.parent, seat.name)).unzip();
    Line {
        path: path.clone(),
        direction: *direction,
        patch_type: *patch_type,
        id: *id,
        key,
        parent,
        name,
        base,
        class_name: class_name.clone(),
        fs_path: fs_path.clone(),
        disk: (*disk_hash, disk_after(decision)),
        studio: (*studio_hash, studio_after(decision)),
        properties: properties_line(decision, agreement),
        specified: specified(decision, agreement),
        below: below(decision),
        lost: match &decision.lost {
            Lost::Known(node) => Some(node.clone()),
            Lost::Nothing | Lost::Wanted => None,
        },
        made: match &decision.write {
            Some(FileWrite::Restore { files }) => files.iter().map(HeldFile::as_made).collect(),
            _ => Vec::new(),
        },
        held: Vec::new(),
        was: decision.was.as_ref().and_then(seat),
        then: restored.flatten(),
        result: None,
    }
}

fn studio_after(decision: &Decision) -> Side {
    match &decision.op {
        Some(PlanOp::SetSource { source, .. } | PlanOp::Rename { source: Some(source), .. }) => {
            Some(TextHash::of(source))
        }
        Some(PlanOp::Add { node, .. }) => node.source.as_deref().map(TextHash::of),
        Some(PlanOp::Remove { .. }) => None,
        Some(PlanOp::Rename { .. } | PlanOp::SetProperties { .. }) | None => decision.change.studio_hash,
    }
}

fn disk_after(decision: &Decision) -> Side {
    match &decision.write {
        Some(FileWrite::Replace { text, .. } | FileWrite::Create { text, .. } | FileWrite::Move { text, .. }) => {
            text.as_deref().map(TextHash::of)
        }
        Some(
            FileWrite::Remove { .. }
            | FileWrite::Unmake { .. }
            | FileWrite::Restore { .. }
            | FileWrite::Folder { .. }
            | FileWrite::Instance { .. }
            | FileWrite::Files { .. }
            | FileWrite::MoveFolder { .. },
        ) => None,
        None => decision.change.disk_hash,
    }
}

/// What lies below it in Studio.
fn below(decision: &Decision) -> Vec<Below> {
    match (&decision.op, &decision.lost) {
        (Some(PlanOp::Remove { expect, .. } | PlanOp::Rename { expect, .. }), _) => expect.subtree.clone(),
        (Some(PlanOp::Add { node, .. }), _) => listed(node),
        (_, Lost::Known(node)) => listed(node),
        (_, Lost::Nothing | Lost::Wanted) => Vec::new(),
    }
}

fn properties_line(decision: &Decision, agreement: &Agreement) -> Option<PropertyLine> {
    let Some(PlanOp::SetProperties { id, properties, expect }) = &decision.op else { return None };
    let base = agreement.properties(*id).last;
    Some(PropertyLine { before: expect.clone(), after: properties.clone(), base })
}

/// What is known of the instances that a removal removes.
fn specified(decision: &Decision, agreement: &Agreement) -> BTreeMap<InstanceKey, Properties> {
    let gone = decision.then.iter().filter_map(|then| match then {
        Then::PropertiesGone(key, None) => Some((key.clone(), agreement.properties_gone(key)?)),
        _ => None,
    });
    gone.collect()
}

/// What lies below a new instance, as it will be listed once it is there.
pub(super) fn listed(node: &NewNode) -> Vec<Below> {
    fn walk(node: &NewNode, above: &[String], found: &mut Vec<Below>) {
        for child in &node.children {
            let path = [above, std::slice::from_ref(&child.name)].concat();
            let studio_hash = child.source.as_deref().map(TextHash::of);
            let class_name = child.class_name.clone();
            found.push(Below { path: path.clone(), class_name, studio_hash, is_draft: false });
            walk(child, &path, found);
        }
    }
    let mut found = Vec::new();
    walk(node, &[], &mut found);
    found
}

/// Steps of the plan. What makes room comes before what needs it.
pub(super) fn ops(decisions: &[Decision]) -> Vec<PlanOp> {
    let mut ops: Vec<PlanOp> = decisions.iter().filter_map(|decision| decision.op.clone()).collect();
    ops.iter_mut().for_each(normalise);
    ops.sort_by_key(|op| match op {
        PlanOp::Remove { .. } => 0,
        PlanOp::Rename { .. } => 1,
        PlanOp::SetSource { .. } | PlanOp::SetProperties { .. } | PlanOp::Add { .. } => 2,
    });
    ops
}

/// Studio gets a text as it is compared: a byte order mark is a syntax error there. Of a long list
/// the plugin gets the digest.
fn normalise(op: &mut PlanOp) {
    fn of_node(node: &mut NewNode) {
        if let Some(source) = &mut node.source {
            *source = ScriptText::new(source).into_string();
        }
        node.children.iter_mut().for_each(of_node);
    }
    match op {
        PlanOp::SetSource { source, .. } => *source = ScriptText::new(source).into_string(),
        PlanOp::Add { node, .. } => of_node(node),
        PlanOp::Remove { expect, .. } => expect.shorten(),
        PlanOp::Rename { source, expect, .. } => {
            expect.shorten();
            if let Some(source) = source {
                *source = ScriptText::new(source).into_string();
            }
        }
        PlanOp::SetProperties { .. } => {}
    }
}

/// Take over what the plugin says became of the plan.
pub(super) fn note_results(decisions: &mut [Decision], results: &[OpResult]) {
    let of_step: HashMap<(&OpId, Option<&str>), &OpResult> =
        results.iter().map(|result| ((&result.id, result.op.as_deref()), result)).collect();
    let failed = |id: &OpId| of_step.get(&(id, None)).is_none_or(|result| result.status != OpStatus::Done);
    for decision in decisions {
        if decision.after.as_ref().is_some_and(failed) && decision.write.take().is_some() {
            decision.change.ended(ChangeResult::Skipped, "it did not come back in Studio");
        }
        let Some(op) = decision.op.take() else { continue };
        // What the tree does not have the plugin cannot name.
        let named = decision.place.is_none();
        let subject = op.subject();
        let result = of_step.get(&(&subject, Some(op.name()))).or_else(|| of_step.get(&(&subject, None)));
        note(&mut decision.change, &op, named, result.copied());
        if decision.change.result != ChangeResult::Planned {
            decision.write = None;
        }
    }
}

fn note(change: &mut Change, op: &PlanOp, named: bool, result: Option<&OpResult>) {
    let Some(result) = result else {
        return change.ended(ChangeResult::Failed, "the plugin did not say what became of it");
    };
    let expected = match op {
        PlanOp::SetSource { source, .. } => Some(TextHash::of(source)),
        PlanOp::Add { node, .. } => node.source.as_deref().map(TextHash::of),
        PlanOp::Rename { source, expect, .. } => source.as_deref().map(TextHash::of).or(expect.studio_hash),
        PlanOp::Remove { .. } | PlanOp::SetProperties { .. } => None,
    };
    change.studio_hash = match (result.status, op) {
        (OpStatus::Done, PlanOp::Remove { .. }) | (_, PlanOp::SetProperties { .. }) => None,
        _ => result.hash.or(change.studio_hash),
    };
    let confirms = match op {
        PlanOp::Rename { source: Some(_), .. } => result.hash == expected,
        PlanOp::Remove { .. } | PlanOp::Rename { .. } | PlanOp::SetProperties { .. } => true,
        PlanOp::Add { .. } if !named && result.hash.is_none() => true,
        PlanOp::Add { .. } | PlanOp::SetSource { .. } => result.hash == expected,
    };
    change.reason = result.error.clone().or(change.reason.take());
    change.result = match result.status {
        OpStatus::Done if !confirms => {
            change.reason = Some("Studio did not name the text that was sent as the one that it has now".into());
            ChangeResult::Failed
        }
        // What is written as well is done when that is.
        OpStatus::Done => ChangeResult::Planned,
        OpStatus::Guard => ChangeResult::Guard,
        OpStatus::Failed => ChangeResult::Failed,
        OpStatus::Skipped => ChangeResult::Skipped,
    };
}

/// Files that are to be written now, with the place of each decision.
pub(super) fn writes(decisions: &[Decision]) -> Vec<FileWrite> {
    decisions.iter().filter_map(|decision| decision.write.clone()).collect()
}

/// Take over what became of [`writes`], in their order.
pub(super) fn note_writes(decisions: &mut [Decision], wrote: Vec<Wrote>) {
    let writing = decisions.iter_mut().filter(|decision| decision.write.is_some());
    let mut wrote = wrote.into_iter();
    for decision in writing {
        let also = decision.change.direction == Direction::Merge;
        let but = if also { "Studio has the new text, but " } else { "" };
        match wrote.next() {
            Some(Wrote::Done(side)) => decision.change.disk_hash = side,
            Some(Wrote::Made(path, side)) => {
                (decision.change.fs_path, decision.change.disk_hash) = (Some(path), side);
            }
            problem @ Some(_) => note_problem(&mut decision.change, problem, but),
            None => decision.change.ended(ChangeResult::Failed, format!("{but}nobody said what became of the file")),
        }
    }
}

/// It is left to somebody else, for its file cannot be written.
pub(super) fn cannot(decision: &mut Decision, problem: Wrote) {
    match problem {
        Wrote::MovedOn(reason) => {
            decision.drop_it(reason);
            decision.change.result = ChangeResult::MovedOn;
        }
        Wrote::Failed(reason) => decision.drop_it(format!("its file cannot be written: {reason}")),
        Wrote::Done(_) | Wrote::Made(..) => {}
    }
}

/// Why a file was not written, or cannot be.
pub(super) fn note_problem(change: &mut Change, problem: Option<Wrote>, but: &str) {
    match problem {
        Some(Wrote::MovedOn(reason)) => change.ended(ChangeResult::MovedOn, format!("{but}{reason}")),
        Some(Wrote::Failed(reason)) => change.ended(ChangeResult::Failed, format!("{but}{reason}")),
        Some(Wrote::Done(_) | Wrote::Made(..)) | None => {}
    }
}

/// What is still planned is done, and both sides agree on it. Returns whether all was done, and any.
pub(super) fn settle(decisions: &mut [Decision], agreement: &mut Agreement) -> (bool, bool) {
    let mut results = HashSet::new();
    for decision in decisions {
        if decision.change.result == ChangeResult::Planned {
            decision.change.result = ChangeResult::Done;
            decision.agree(agreement);
        }
        results.insert(decision.change.result == ChangeResult::Done);
    }
    (!results.contains(&false), results.contains(&true))
}

/// The file of a script that was made.
fn created(decision: &Decision) -> Option<MadeFile> {
    let Some(FileWrite::Create { text: Some(text), .. }) = &decision.write else { return None };
    let path = decision.change.fs_path.clone().filter(|_| decision.change.result == ChangeResult::Done)?;
    Some(MadeFile { path, hash: Some(TextHash::of_bytes(ScriptText::new(text).as_str().as_bytes())) })
}

/// The entry, now that it is known what became of each change.
pub(super) fn finished(mut entry: Entry, decisions: &[Decision]) -> Entry {
    for decision in decisions {
        let line = decision.line.and_then(|line| entry.changes.get_mut(line));
        if let Some(line) = line {
            line.result = Some(decision.change.result);
            line.fs_path = decision.change.fs_path.clone().or(line.fs_path.take());
            line.made.extend(created(decision));
        }
    }
    entry
}
