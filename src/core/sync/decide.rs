//! What to do about one difference.
//!
//! | difference | last agreed text | decision |
//! |---|---|---|
//! | texts differ | Studio's | push |
//! | texts differ | the file's: Studio changed | unresolved |
//! | texts differ | neither, or none | unresolved |
//! | texts differ, Studio's is an unsaved draft | any | unresolved |
//! | Studio lacks it | none | push (make it) |
//! | Studio lacks it | some: deleted in Studio | unresolved |
//! | only Studio has it | | unresolved |

use super::receipt::{Change, ChangeResult, Direction, PatchType};
use crate::core::{
    agreement::Agreement,
    ids::NodeId,
    protocol::{Fact, FactKind, NewNode, PlanOp},
    text::TextHash,
};

/// How deep a new subtree may be: JSON readers give up on what is nested deeper.
const MAX_DEPTH: usize = 50;

/// A node as the tree has it at the moment of the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Its parent; `None` for the root.
    pub parent: Option<NodeId>,
    /// Names from the root, joined with dots.
    pub path: String,
    /// Its class.
    pub class_name: String,
    /// Its file, relative to the project with `/`.
    pub fs_path: Option<String>,
    /// For scripts: the text.
    pub source: Option<String>,
    /// For scripts: the hash of the text.
    pub hash: Option<TextHash>,
    /// The node with all below it, where that was asked for.
    pub subtree: Option<NewNode>,
    /// It or something below it has properties or attributes that `subtree` does not carry.
    pub has_more: bool,
}

/// A change, and the step of a plan that makes it. No step: unresolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// For the receipt.
    pub change: Change,
    /// For the plugin.
    pub op: Option<PlanOp>,
    /// The texts that both sides have once the step is done.
    pub agrees: Vec<(NodeId, TextHash)>,
}

/// Decide about `fact`. `None`: there is no difference any more.
pub fn decide(fact: Fact, view: Option<&NodeView>, agreement: &mut Agreement) -> Option<Decision> {
    match (fact.kind, fact.id, view) {
        (FactKind::Differs, Some(id), Some(view)) => differs(id, &fact, view, agreement),
        (FactKind::Missing, Some(id), Some(view)) => Some(missing(id, &fact, view, agreement)),
        (FactKind::Differs | FactKind::Missing, _, _) => None,
        (FactKind::Extra, _, _) => {
            let reason = "only Studio has it, or its file was deleted or renamed; it is left alone \
                          (to drop it, destroy it with run_code; to keep it, save it as a file)";
            Some(unresolved(change(&fact, None, PatchType::Remove), reason))
        }
    }
}

fn differs(id: NodeId, fact: &Fact, view: &NodeView, agreement: &mut Agreement) -> Option<Decision> {
    let change = change(fact, Some(view), PatchType::Edit);
    let (Some(disk), Some(studio), Some(source)) = (view.hash, fact.studio_hash, &view.source) else {
        return Some(unresolved(change, "one side of it is not a script"));
    };
    if disk == studio {
        agreement.agree(id, disk);
        return None;
    }
    if fact.is_draft {
        return Some(unresolved(change, "a person is editing it in Studio and has not saved"));
    }
    let reason = match agreement.base(id) {
        Some(base) if base == studio => {
            let op = PlanOp::SetSource { id, source: source.clone(), expect: studio };
            return Some(push(change, op, vec![(id, disk)]));
        }
        Some(base) if base == disk => "it was changed in Studio, not in the file",
        Some(_) => "it was changed in Studio and in the file",
        None => "it differed when Studio connected, and nothing says which side is newer",
    };
    let ways = "to keep Studio's text, save what get_script answers to the file; \
                to keep the file's, set it as Source with run_code";
    Some(unresolved(change, &format!("{reason} ({ways})")))
}

fn missing(id: NodeId, fact: &Fact, view: &NodeView, agreement: &Agreement) -> Decision {
    let change = change(fact, Some(view), PatchType::Add);
    let (Some(parent), Some(node)) = (view.parent, view.subtree.clone()) else {
        return unresolved(change, "its place in the tree is not known");
    };
    if let Some(class) = foreign_class(&node) {
        let reason = format!("it is or holds a {class}; so far only scripts and folders are made in Studio");
        return unresolved(change, &reason);
    }
    if depth(&node) > MAX_DEPTH {
        let reason = format!("it is nested more than {MAX_DEPTH} levels deep, which one plan cannot carry");
        return unresolved(change, &reason);
    }
    let mut texts = Vec::new();
    collect_texts(&node, &mut texts);
    if texts.iter().any(|(id, _)| agreement.base(*id).is_some()) {
        let reason = "it was removed in Studio, not on disk \
                      (to follow, delete the file; to keep it, make it in Studio with run_code)";
        return unresolved(change, reason);
    }
    let reason = view.has_more.then(|| "without its properties and attributes, which are not synced yet".to_owned());
    let change = Change { reason, ..change };
    debug_assert_eq!(node.id, id, "the view is of the fact's node");
    push(change, PlanOp::Add { parent, node }, texts)
}

/// The first class in the subtree that a plan cannot make.
fn foreign_class(node: &NewNode) -> Option<&str> {
    let known = matches!(node.class_name.as_str(), "Folder" | "Script" | "LocalScript" | "ModuleScript");
    if known { node.children.iter().find_map(foreign_class) } else { Some(&node.class_name) }
}

fn depth(node: &NewNode) -> usize {
    1 + node.children.iter().map(depth).max().unwrap_or(0)
}

fn collect_texts(node: &NewNode, texts: &mut Vec<(NodeId, TextHash)>) {
    texts.extend(node.source.as_deref().map(|source| (node.id, TextHash::of(source))));
    node.children.iter().for_each(|child| collect_texts(child, texts));
}

fn change(fact: &Fact, view: Option<&NodeView>, patch_type: PatchType) -> Change {
    Change {
        path: view.map_or_else(|| fact.path.clone(), |view| view.path.clone()),
        fs_path: view.and_then(|view| view.fs_path.clone()),
        id: fact.id,
        class_name: view.map_or_else(|| fact.class_name.clone(), |view| view.class_name.clone()),
        direction: Direction::Unresolved,
        patch_type,
        disk_hash: view.and_then(|view| view.hash),
        studio_hash: fact.studio_hash,
        result: ChangeResult::Unresolved,
        reason: None,
        foreign: serde_json::Map::new(),
    }
}

fn push(change: Change, op: PlanOp, agrees: Vec<(NodeId, TextHash)>) -> Decision {
    let change = Change { direction: Direction::Push, result: ChangeResult::Planned, ..change };
    Decision { change, op: Some(op), agrees }
}

fn unresolved(change: Change, reason: &str) -> Decision {
    Decision { change: Change { reason: Some(reason.to_owned()), ..change }, op: None, agrees: Vec::new() }
}
