//! Sync as a pure machine: the decision table row by row, then whole runs.

mod answered;
mod extras;
mod merges;
mod promise;
mod properties;
mod runs;
mod schedule;
mod table;
mod taken;
mod undo;
mod world;

use std::collections::{BTreeSet, HashMap};

use super::{decision::Then, *};
use crate::core::{
    error::ToolError,
    ids::TempId,
    protocol::{Below, NewNode, Node, OpStatus, Whose},
    text::TextHash,
    values::Properties,
};

const BASE: &str = "return 'base'";
const DISK: &str = "return 'disk'";
const STUDIO: &str = "return 'studio'";
const ID: NodeId = NodeId(1);
const MODES: [SyncMode; 4] = [SyncMode::Standard, SyncMode::Manual, SyncMode::Fastfail, SyncMode::Dryrun];

fn hash(text: &str) -> TextHash {
    TextHash::of(text)
}

/// A script that differs; `studio` is its text there.
fn differs(id: NodeId, studio: &str) -> Fact {
    Fact { studio_hash: Some(hash(studio)), ..fact(FactKind::Differs, Some(id)) }
}

fn draft(id: NodeId, studio: &str) -> Fact {
    Fact { is_draft: true, ..differs(id, studio) }
}

fn missing(id: NodeId) -> Fact {
    fact(FactKind::Missing, Some(id))
}

fn extra(name: &str) -> Fact {
    Fact { path: format!("Root.{name}"), parent: Some(NodeId(0)), ..fact(FactKind::Extra, None) }
}

fn fact(kind: FactKind, id: Option<NodeId>) -> Fact {
    Fact {
        kind,
        id,
        temp_id: None,
        parent: None,
        name: None,
        path: "as Studio says it".into(),
        class_name: "ModuleScript".into(),
        studio_hash: None,
        properties: Properties::new(),
        is_draft: false,
        subtree: None,
        subtree_cut: false,
        subtree_digest: None,
        siblings: None,
        is_new: false,
        was: None,
    }
}

/// A script of the tree in a file of its own.
fn script(id: NodeId, text: &str) -> (NodeId, NodeView) {
    let node = new_script(id, text);
    let view = NodeView {
        parent: Some(NodeId(0)),
        path: format!("Root.{}", node.name),
        class_name: "ModuleScript".into(),
        fs_path: Some(format!("src/{}.luau", node.name)),
        source: Some(text.into()),
        hash: Some(hash(text)),
        subtree: Some(node),
        properties: Properties::new(),
    };
    (id, view)
}

/// A folder of the tree with `children`.
fn folder(id: NodeId, children: Vec<NewNode>) -> (NodeId, NodeView) {
    let node = NewNode {
        id,
        name: format!("Dir{}", id.0),
        class_name: "Folder".into(),
        source: None,
        properties: Properties::new(),
        children,
    };
    let view = NodeView {
        parent: Some(NodeId(0)),
        path: format!("Root.{}", node.name),
        class_name: "Folder".into(),
        fs_path: Some(format!("src/{}", node.name)),
        source: None,
        hash: None,
        subtree: Some(node),
        properties: Properties::new(),
    };
    (id, view)
}

fn new_script(id: NodeId, text: &str) -> NewNode {
    NewNode {
        id,
        name: format!("Script{}", id.0),
        class_name: "ModuleScript".into(),
        source: Some(text.into()),
        properties: Properties::new(),
        children: vec![],
    }
}

/// Both sides have agreed on these.
fn agreed(texts: &[(NodeId, &str)]) -> Agreement {
    let mut agreement = Agreement::default();
    for (id, text) in texts {
        agreement.agree(*id, hash(text));
    }
    agreement
}

/// A run up to its decisions.
fn run(
    mode: SyncMode,
    paths: Option<&[&str]>,
    facts: Vec<Fact>,
    views: impl IntoIterator<Item = (NodeId, NodeView)>,
    agreement: &mut Agreement,
) -> (Run, Step) {
    let paths = paths.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
    run_with(SyncArgs { mode, paths, ..SyncArgs::default() }, facts, views, agreement)
}

/// The same with other arguments. The journal takes whatever it is given.
fn run_with(
    args: SyncArgs,
    facts: Vec<Fact>,
    views: impl IntoIterator<Item = (NodeId, NodeView)>,
    agreement: &mut Agreement,
) -> (Run, Step) {
    let paths = args.paths.clone();
    let (mut run, step) = Run::start("run-1".into(), args, true);
    assert_eq!(step, Step::CatchUp { paths });
    assert_eq!(run.caught_up(7, agreement), Step::Compare { cursor: 7, scope: None });
    let step = run.compared(Some(7), facts, agreement);
    if !matches!(step, Step::Look { .. }) {
        return (run, step);
    }
    let step = run.looked(HashMap::from_iter(views), agreement);
    let step = match read_nothing(&mut run, step, agreement) {
        Step::History(_) => run.knows_history(BTreeSet::new(), agreement),
        step => step,
    };
    let step = journalled(&mut run, step, agreement);
    (run, step)
}

/// The texts that a run reads for a question to git are not there.
fn read_nothing(run: &mut Run, mut step: Step, agreement: &mut Agreement) -> Step {
    while let Step::Read(ids) = step {
        let gone = || Err(ToolError::no_studio());
        step = ids.iter().map(|id| run.fetched(id, gone(), agreement)).last().expect("it reads something");
    }
    step
}

/// Go on where the journal was asked.
fn journalled(run: &mut Run, step: Step, agreement: &mut Agreement) -> Step {
    let step = match step {
        Step::Check(writes) => run.checked(vec![None; writes.len()], agreement),
        step => step,
    };
    let step = match step {
        Step::Begin(draft) => run.begun(Begun::Entry(1, draft.entry), agreement),
        step => step,
    };
    match step {
        Step::Conclude { .. } => run.concluded(Ok(())),
        step => step,
    }
}

/// The plugin has carried out the plan; the receipt follows, or the files.
fn applied(run: &mut Run, results: &[OpResult], agreement: &mut Agreement) -> Step {
    let step = run.applied(results, agreement);
    journalled(run, step, agreement)
}

fn receipt(step: Step) -> Receipt {
    match step {
        // What a run answers that nobody can be asked for.
        Step::Done(receipt) | Step::Ask { receipt, .. } => receipt,
        other => panic!("the run has not ended: {other:?}"),
    }
}

fn ops(step: Step) -> Vec<PlanOp> {
    match step {
        Step::Apply { ops, .. } => ops,
        other => panic!("not a plan: {other:?}"),
    }
}

fn result(id: NodeId, status: OpStatus, text: Option<&str>) -> OpResult {
    OpResult { id: id.into(), op: None, status, hash: text.map(hash), error: None }
}

/// A script of the tree, below the root.
fn node(id: NodeId, name: &str, text: &str) -> Node {
    Node {
        id,
        parent: Some(NodeId(0)),
        name: name.into(),
        class_name: "ModuleScript".into(),
        ignore_unknown: false,
        properties: Properties::new(),
        hash: Some(hash(text)),
    }
}
