//! Those who call: what they ask for, and what each of them may be told.

use serde_json::json;

use super::{
    super::*,
    kept::{change, operation_of},
    wire::{check_outcome, folder_of, run_code_in},
    world::World,
};
use crate::core::protocol::{RequestBody, SyncMode};

impl World {
    pub(super) fn call(&mut self, place: u64, ask: usize, patience: Duration) {
        let caller = CallerId(self.rig.callers + 1);
        let ask = match ask {
            0 | 4..=6 => run_code_in(caller, place, ask),
            9.. => self.press(caller, place, ask - 9),
            1 => Ask::GetScript { id: NodeId(caller.0.into()), from_draft: false },
            // A level-0 plugin takes no paths.
            _ if place == 3 => Ask::Sync(SyncArgs::default()),
            ask => {
                let mode = match ask {
                    2 => SyncMode::Standard,
                    3 => SyncMode::Dryrun,
                    _ => SyncMode::Manual,
                };
                let paths = Some(vec![folder_of(caller)]);
                Ask::Sync(SyncArgs { mode, paths, asks: ask == 8, ..SyncArgs::default() })
            }
        };
        self.waiting.insert(caller, self.rig.now + patience);
        self.events += 1;
        let (_, out) = self.rig.call(Some(&format!("place:{place}")), patience, ask);
        for effect in &out.0 {
            if let Effect::CatchUp { run, paths: None } = effect {
                self.runs.insert(run.clone(), caller);
            }
        }
        self.carry_out(out);
    }

    pub(super) fn change(&mut self, number: u64, place: u64, otherwise: bool, patience: Duration) {
        self.rig.callers += 1;
        let caller = CallerId(self.rig.callers);
        let (call, wanted) = change(number, place, otherwise, patience);
        self.waiting.insert(caller, self.rig.now + patience);
        self.wanted.insert(caller, wanted);
        self.event(Event::Call { caller, call });
    }

    /// Somebody waits for it, as far as it can be seen whose it is.
    pub(super) fn is_wanted(&self, body: &RequestBody) -> bool {
        let caller = match body {
            RequestBody::Tool { args, .. } if operation_of(body).is_some() => {
                return self.waiting.keys().any(|caller| self.wanted.get(caller) == Some(&args["caller"]));
            }
            RequestBody::Tool { args, .. } => args["caller"].as_u64().map(CallerId),
            RequestBody::Sync { run_id: Some(run), .. } | RequestBody::Plan { run_id: run, .. } => {
                self.runs.get(run).copied()
            }
            RequestBody::Sync { .. } | RequestBody::GetScript { .. } | RequestBody::GetInstance { .. } => None,
        };
        caller.is_none_or(|caller| self.waiting.contains_key(&caller))
    }

    pub(super) fn settled(&mut self, caller: CallerId, outcome: Result<Answer, ToolError>) {
        assert!(self.waiting.remove(&caller).is_some(), "{caller:?} is settled twice, now with {outcome:?}");
        if self.abandoned.contains(&caller) {
            assert_eq!(outcome.expect_err("it gave up").code, ErrorCode::Cancelled);
            return;
        }
        self.successes += usize::from(outcome.is_ok());
        let wanted = self.wanted.get(&caller).cloned().unwrap_or_else(|| json!(caller.0));
        self.kept.told(&wanted, &outcome);
        if !self.is_press(caller, &outcome) {
            check_outcome(caller, outcome, &wanted, &self.runs);
        }
    }
}
