//! `POST /api/ref-patch`: who points at these instances. The plugin asks after it has replaced them.

use std::{collections::HashMap, sync::Arc};

use hyper::{Response, body::Incoming};
use librojo::{
    InstanceWithMeta,
    web_api::{InstanceUpdate, RefPatchRequest, RefPatchResponse, SubscribeMessage},
};
use rbx_dom_weak::{UstrMap, types::Variant};

use super::{Body, answer};
use crate::session::ServeSession;

pub(super) async fn answer(session: Arc<ServeSession>, body: Incoming) -> Response<Body> {
    let request: RefPatchRequest = match answer::read(body).await {
        Ok(request) => request,
        Err(refusal) => return refusal,
    };
    if request.session_id != session.id() {
        return answer::bad_request("Wrong session ID");
    }
    let updated = session.with_tree(|tree, _| {
        tree.descendants(tree.get_root_id()).filter_map(|instance| pointing(instance, &request)).collect()
    });
    let patch = SubscribeMessage { removed: Vec::new(), added: HashMap::new(), updated };
    answer::ok(&RefPatchResponse { session_id: session.id(), patch })
}

fn pointing(instance: InstanceWithMeta<'_>, request: &RefPatchRequest) -> Option<InstanceUpdate> {
    let points = |value: &Variant| matches!(value, Variant::Ref(target) if request.ids.contains(target));
    let properties = instance.properties().iter().filter(|(_, value)| points(value));
    let changed: UstrMap<_> = properties.map(|(key, value)| (*key, Some(value.clone()))).collect();
    (!changed.is_empty()).then(|| InstanceUpdate {
        id: instance.id(),
        changed_name: None,
        changed_class_name: None,
        changed_properties: changed,
        changed_metadata: None,
    })
}
