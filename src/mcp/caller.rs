//! Who calls: one client, for as long as it has a session. Whoever calls without one is gone after
//! each call.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::handler::BackendCell;
use crate::core::play::OwnerId;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// One client. Dropping it says that it is gone.
pub(super) struct Caller {
    pub(super) id: OwnerId,
    backend: BackendCell,
}

impl Caller {
    pub(super) fn new(backend: BackendCell) -> Arc<Self> {
        Arc::new(Self { id: OwnerId(NEXT.fetch_add(1, Ordering::Relaxed)), backend })
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let Some(backend) = self.backend.now() {
            backend.hub.owner_left(self.id);
        }
    }
}
