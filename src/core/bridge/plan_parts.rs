//! A plan goes out in parts, each when the one before was taken.

use std::collections::VecDeque;

use super::{Bridge, What};
use crate::core::{
    ids::RequestId,
    protocol::{CancelReason, MAX_PART_BYTES, Notice, PlanOp, RequestBody, ServerFrame},
    studios::LinkId,
};

impl Bridge {
    pub(super) fn plan_part_taken(&mut self, link: LinkId, id: &RequestId, part: u32) {
        let Some(waiting) = self.calls.get_mut(id) else { return };
        let What::Request { rest, next_part, .. } = &mut waiting.what else { return };
        if *next_part != part + 1 {
            return;
        }
        let Some(ops) = rest.pop_front() else { return };
        *next_part += 1;
        let notice = Notice::PlanPart { request_id: id.clone(), part: part + 1, last: rest.is_empty(), ops };
        self.send(link, ServerFrame::Notice(notice));
    }

    /// The plugin has taken parts of this plan and would wait for the others for ever.
    pub(super) fn call_off_plan(&mut self, id: &RequestId) {
        let Some((waiting, _)) = self.calls.get(id) else { return };
        if matches!(waiting.what, What::Request { next_part: 2.., .. }) {
            self.cancel(id, waiting.studio, CancelReason::Aborted);
        }
    }
}

/// A plan goes out in parts; anything else is one frame.
pub(super) fn first_part(body: RequestBody) -> (RequestBody, VecDeque<Vec<PlanOp>>) {
    match body {
        RequestBody::Plan { run_id, undo_name, all_or_nothing, ops, .. } => {
            let mut parts = plan_parts(ops);
            let ops = parts.pop_front().unwrap_or_default();
            let last = parts.is_empty();
            (RequestBody::Plan { run_id, undo_name, all_or_nothing, part: 0, last, ops }, parts)
        }
        body => (body, VecDeque::new()),
    }
}

/// Cut a plan into parts of at most [`MAX_PART_BYTES`], or one step that is larger by itself.
fn plan_parts(ops: Vec<PlanOp>) -> VecDeque<Vec<PlanOp>> {
    let mut parts = VecDeque::from([Vec::new()]);
    let mut size = 0;
    for op in ops {
        let weight = op.weight();
        if size + weight > MAX_PART_BYTES && size > 0 {
            parts.push_back(Vec::new());
            size = 0;
        }
        size += weight;
        parts.back_mut().expect("there is always a part").push(op);
    }
    parts
}
