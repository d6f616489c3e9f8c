//! The part of a run that reads instances which only Studio has, to make files of them.

use std::collections::BTreeSet;

use super::{Decision, FileWrite, Run, Step, plan::listed, receipt::ChangeResult};
use crate::core::{
    agreement::Agreement,
    error::ToolError,
    ids::TempId,
    protocol::{Below, Expected, NewNode, SyncMode},
    text::TextHash,
};

impl Run {
    /// Ask for the next instance, if one is wanted.
    pub(super) fn describe_next(&self) -> Option<Step> {
        if self.args.mode == SyncMode::Dryrun {
            return None;
        }
        self.decisions.iter().find_map(|decision| match &decision.write {
            Some(FileWrite::Instance { temp_id, expect, node: None, .. }) => {
                Some(Step::Describe { temp_id: temp_id.clone(), classes: classes_of(expect) })
            }
            _ => None,
        })
    }

    /// The instance that was asked for, with all below it.
    pub fn described(&mut self, of: &TempId, node: Result<NewNode, ToolError>, agreement: &mut Agreement) -> Step {
        for decision in &mut self.decisions {
            if matches!(&decision.write, Some(FileWrite::Instance { temp_id, node: None, .. }) if temp_id == of) {
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

fn take(decision: &mut Decision, read: Result<NewNode, ToolError>) {
    let Some(FileWrite::Instance { expect, node, .. }) = &mut decision.write else { return };
    match read {
        Ok(read) if is_expected(&read, expect) => *node = Some(Box::new(read)),
        Ok(_) => {
            decision.drop_it("it changed in Studio while it was being read; sync again");
            decision.change.result = ChangeResult::MovedOn;
        }
        Err(error) => decision.drop_it(format!("it could not be read in Studio: {}", error.message)),
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
