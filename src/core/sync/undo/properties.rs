//! Properties that were set in Studio.

use std::collections::BTreeMap;

use super::{Back, MOVED_ON};
use crate::core::{
    ids::NodeId,
    journal::{Line, PropertyLine},
    protocol::PlanOp,
    sync::{Decision, Direction, PatchType, decision::Then, properties::shown},
    values::{Properties, is_close},
};

const NOT_SPECIFIED: &str = "no file specifies it any more";

impl Back<'_> {
    /// Each property by itself: one that moved on holds up no other.
    pub(super) fn set_back(&self, line: &Line, set: &PropertyLine) -> Vec<Decision> {
        let mut change = self.change(line);
        let Some((id, view)) = self.node(line) else {
            return vec![Decision::unresolved(change, "it is not in the project any more")];
        };
        (change.id, change.fs_path) = (Some(id), view.fs_path.clone());
        if self.is_missing(id) {
            return vec![Decision::unresolved(change, "it is not in Studio any more")];
        }
        let reported = self.fact(id).map(|fact| &fact.properties);
        let (mut properties, mut expect) = (Properties::new(), Properties::new());
        let mut held: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, before) in &set.before {
            let now = reported.and_then(|reported| reported.get(name)).or_else(|| view.properties.get(name));
            let Some(now) = now else {
                held.entry(NOT_SPECIFIED).or_default().push(name);
                continue;
            };
            if is_close(now, before) {
                continue;
            }
            if !set.after.get(name).is_some_and(|after| is_close(now, after)) {
                held.entry(MOVED_ON).or_default().push(name);
                continue;
            }
            properties.insert(name.clone(), before.clone());
            expect.insert(name.clone(), now.clone());
        }
        let held = held
            .into_iter()
            .map(|(why, names)| Decision::unresolved(change.clone(), format!("{}: {why}", names.join(", "))));
        let mut all: Vec<Decision> = held.collect();
        if properties.is_empty() {
            return all;
        }
        let change = shown(change, &properties, &expect).planned(Direction::Push, PatchType::Edit);
        let base = if all.is_empty() { set.base.clone() } else { Some(self.base_of_some(id, set, &properties)) };
        let decision = Decision::new(change).does(PlanOp::SetProperties { id, properties, expect });
        all.push(decision.then(Then::RestoreProperties(id, base)));
        all
    }

    /// What is agreed once some properties have their values of before: of the others what is now.
    fn base_of_some(&self, id: NodeId, set: &PropertyLine, some: &Properties) -> Properties {
        let mut base = self.agreement.properties(id).last.unwrap_or_default();
        for name in some.keys() {
            match set.base.as_ref().and_then(|before| before.get(name)) {
                Some(before) => _ = base.insert(name.clone(), before.clone()),
                None => _ = base.remove(name),
            }
        }
        base
    }
}
