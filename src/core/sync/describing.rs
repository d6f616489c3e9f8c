//! The part of a run that reads instances which only Studio has, to make files of them or to keep
//! what is removed.

use std::collections::BTreeSet;

use super::{Decision, FileWrite, Run, Step, decision::Lost, plan::listed, receipt::ChangeResult};
use crate::core::{
    agreement::Agreement,
    error::ToolError,
    ids::TempId,
    protocol::{Below, Expected, NewNode, PlanOp, SyncMode, Whose},
    text::TextHash,
};

impl Run {
    /// Ask for the next instance, if one is wanted.
    pub(super) fn describe_next(&self) -> Option<Step> {
        if self.args.mode == SyncMode::Dryrun || self.asks_first() {
            return None;
        }
        self.decisions.iter().find_map(|decision| {
            let (temp_id, expect) = wanted(decision)?;
            Some(Step::Describe { temp_id: temp_id.clone(), classes: classes_of(expect) })
        })
    }

    /// The instance that was asked for, with all below it.
    pub fn described(&mut self, of: &TempId, node: Result<NewNode, ToolError>, agreement: &mut Agreement) -> Step {
        for decision in &mut self.decisions {
            if wanted(decision).is_some_and(|(temp_id, _)| temp_id == of) {
                take(decision, node.clone());
            }
        }
        self.fetch_more(agreement)
    }
}

fn classes_of(expect: &Expected) -> Vec<String> {
    let below = expect.subtree.iter().map(|one| one.class_name.clone());
    let all: BTreeSet<String> = std::iter::once(expect.class_name.clone()).chain(below).collect();
    all.into_iter().collect()
}

/// What of an instance that only Studio has is wanted, and what it must be: to make files of it, or
/// to keep what is removed.
fn wanted(decision: &Decision) -> Option<(&TempId, &Expected)> {
    match (&decision.write, &decision.op, &decision.lost) {
        (Some(FileWrite::Instance { temp_id, expect, node: None, .. }), ..)
        | (_, Some(PlanOp::Remove { of: Whose::Extra { temp_id }, expect }), Lost::Wanted) => Some((temp_id, expect)),
        _ => None,
    }
}

fn take(decision: &mut Decision, read: Result<NewNode, ToolError>) {
    let same = wanted(decision).is_some_and(|(_, expect)| read.as_ref().is_ok_and(|read| is_expected(read, expect)));
    let is_removal = decision.lost == Lost::Wanted;
    match (read, &mut decision.write) {
        (Ok(read), Some(FileWrite::Instance { node, .. })) if same => *node = Some(Box::new(read)),
        (Ok(read), _) if same => decision.lost = Lost::Known(Box::new(read)),
        (Ok(_), _) => {
            decision.drop_it("it changed in Studio while it was being read; sync again");
            decision.change.result = ChangeResult::MovedOn;
        }
        // The journal has what files specified of it.
        (Err(_), _) if is_removal => decision.lost = Lost::Nothing,
        (Err(error), _) => decision.drop_it(format!("it could not be read in Studio: {}", error.message)),
    }
}

fn is_expected(node: &NewNode, expect: &Expected) -> bool {
    let plain = |all: &[Below]| {
        let mut all: Vec<_> =
            all.iter().map(|one| (one.path.clone(), one.class_name.clone(), one.studio_hash)).collect();
        all.sort();
        all
    };
    expect.name.as_ref() == Some(&node.name)
        && expect.class_name == node.class_name
        && expect.studio_hash == node.source.as_deref().map(TextHash::of)
        && plain(&expect.subtree) == plain(&listed(node))
}
