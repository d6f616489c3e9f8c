//! Acknowledgements. The plugin keeps a result until it is acknowledged, so one that goes into the
//! store is acknowledged once it is in there: until then a killed server has not taken it.

use std::collections::HashMap;

use super::{
    Answer, Bridge, Effect, Link,
    operations::{Ran, kept},
};
use crate::core::{
    calls::Moment,
    error::ToolError,
    ids::RequestId,
    protocol::{AckDisposition, Notice, PluginResult, ServerFrame},
    studios::{LinkId, StudioKey},
};

/// Results that are on their way into the store, with what is answered then, and where.
#[derive(Debug, Default)]
pub(super) struct Owed(HashMap<RequestId, (LinkId, AckDisposition)>);

#[cfg(test)]
impl Owed {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Bridge {
    /// A result, or what should have been one (`Err`: why it cannot be read).
    pub(super) fn result_came(
        &mut self,
        now: Moment,
        link: LinkId,
        key: StudioKey,
        id: &RequestId,
        result: Result<PluginResult, ToolError>,
    ) {
        if let Some((newest, _)) = self.owed.0.get_mut(id) {
            *newest = link;
            return;
        }
        let disposition = self.calls.disposition(id);
        let before = self.effects.len();
        match result {
            Ok(result) => self.result(now, key, result),
            Err(error) => self.unreadable_result(now, key, id, error),
        }
        let is_kept = |effect: &Effect| match effect {
            Effect::Record { request, .. } | Effect::Recover { request, .. } => request == id,
            _ => false,
        };
        if self.effects.iter().skip(before).any(is_kept) {
            self.owed.0.insert(id.clone(), (link, disposition));
        } else {
            let rest = self.effects.split_off(before);
            self.ack(link, id, disposition);
            self.effects.extend(rest);
        }
    }

    /// The store has it, or said that it could not be kept.
    pub(super) fn recorded(&mut self, request: &RequestId) {
        if let Some((link, disposition)) = self.owed.0.remove(request) {
            self.ack(link, request, disposition);
        }
    }

    fn ack(&mut self, link: LinkId, id: &RequestId, disposition: AckDisposition) {
        let Some(Link::Of(key)) = self.links.get(&link) else { return };
        if self.studios.get(*key).is_some_and(|studio| studio.is_level1()) {
            let notice = Notice::Ack { request_id: id.clone(), disposition };
            self.send(link, ServerFrame::Notice(notice));
        }
    }

    /// Nothing is known here of the request that this answers: a server before this one may have sent it
    /// for an operation, which then has its outcome.
    pub(super) fn recover(&mut self, from: StudioKey, request: RequestId, outcome: &Result<Answer, ToolError>) {
        let is_ours = self.studios.get(from).is_some_and(|studio| studio.is_level1());
        if is_ours
            && self.calls.disposition(&request) == AckDisposition::Unknown
            && let Some(outcome) = kept(outcome)
        {
            self.effects.push(Effect::Recover { request, outcome });
        }
    }

    /// A result came that cannot be read. The plugin is done with its request all the same.
    fn unreadable_result(&mut self, now: Moment, from: StudioKey, id: &RequestId, error: ToolError) {
        if self.is_probe(id) {
            self.calls.settle(id);
            return;
        }
        if self.calls.get(id).is_some() {
            self.fail(now, id, error, Ran::Known);
        } else {
            self.late_end(from, id, Err(error));
        }
        self.leave_lane(now, from, id);
    }
}
