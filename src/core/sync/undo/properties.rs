//! Properties that were set in Studio.

use super::{Back, MOVED_ON};
use crate::core::{
    journal::{Line, PropertyLine},
    protocol::PlanOp,
    sync::{Decision, Direction, PatchType, decision::Then, properties::shown},
    values::{Properties, is_close},
};

impl Back<'_> {
    pub(super) fn set_back(&self, line: &Line, set: &PropertyLine) -> Option<Decision> {
        let mut change = self.change(line);
        let Some((id, view)) = self.node(line) else {
            return Some(Decision::unresolved(change, "it is not in the project any more"));
        };
        (change.id, change.fs_path) = (Some(id), view.fs_path.clone());
        if self.is_missing(id) {
            return Some(Decision::unresolved(change, "it is not in Studio any more"));
        }
        let reported = self.fact(id).map(|fact| &fact.properties);
        let (mut properties, mut expect) = (Properties::new(), Properties::new());
        for (name, before) in &set.before {
            let now = reported.and_then(|reported| reported.get(name)).or_else(|| view.properties.get(name));
            let Some(now) = now else {
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
        let change = shown(change, &properties, &expect).planned(Direction::Push, PatchType::Edit);
        let base = Then::RestoreProperties(id, set.base.clone());
        Some(Decision::new(change).does(PlanOp::SetProperties { id, properties, expect }).then(base))
    }
}
