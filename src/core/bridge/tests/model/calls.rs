//! What agents call in the model.

use super::{
    super::*,
    kept::change,
    wire::{folder_of, run_code_in},
    world::World,
};
use crate::core::protocol::SyncMode;

impl World {
    pub(super) fn call(&mut self, place: u64, ask: usize, patience: Duration) {
        let caller = CallerId(self.rig.callers + 1);
        let ask = match ask {
            0 | 4..=6 => run_code_in(caller, place, ask),
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
}
