//! `GET /api/read/<ids>`: instances with everything below them.

use std::{collections::HashMap, str::FromStr, sync::Arc};

use hyper::Response;
use librojo::{InstanceWithMeta, SessionId};
use rbx_dom_weak::types::Ref;
use serde::{Serialize, Serializer};

use super::{Body, RojoApi, answer};
use crate::session::wire;

pub(super) async fn answer(api: Arc<RojoApi>, ids: String) -> Response<Body> {
    let Ok(ids) = ids.split(',').map(Ref::from_str).collect::<Result<Vec<_>, _>>() else {
        return answer::bad_request("Malformed ID list");
    };
    // A whole tree can be many megabytes.
    let encoded = tokio::task::spawn_blocking(move || read(&api, &ids)).await;
    encoded.unwrap_or_else(|error| answer::internal_error(error.to_string()))
}

fn read(api: &RojoApi, ids: &[Ref]) -> Response<Body> {
    let session = &api.session;
    session.with_tree(|tree, cursor| {
        api.sockets.told(cursor);
        let known = ids.iter().filter(|&&id| tree.get_instance(id).is_some());
        let instances = known.flat_map(|&id| tree.descendants(id));
        let instances = Instances(instances.map(|instance| (instance.id(), instance)).collect());
        answer::ok(&ReadResponse { session_id: session.id(), message_cursor: cursor, instances })
    })
}

/// As librojo's own, but without a second form of the whole tree in memory.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadResponse<'a> {
    session_id: SessionId,
    message_cursor: u32,
    instances: Instances<'a>,
}

struct Instances<'a>(HashMap<Ref, InstanceWithMeta<'a>>);

impl Serialize for Instances<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, instance)| (id, wire::web_instance(*instance))))
    }
}
