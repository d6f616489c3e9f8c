//! About how many bytes a frame takes, without writing it.

use serde_json::Value;

use super::{Node, Notice, PatchOp, PlanOp, RequestBody, ServerFrame};
use crate::core::values;

/// What a frame has besides its lists and texts.
const ENVELOPE: usize = 256;

impl ServerFrame {
    /// About how many bytes it takes, in memory and on the wire.
    pub fn weight(&self) -> usize {
        let content = match self {
            Self::Notice(Notice::Tree(part)) => part.nodes.iter().map(Node::weight).sum(),
            Self::Notice(Notice::Patch(patch)) => patch.ops.iter().map(weight_of_patch).sum(),
            Self::Notice(Notice::PlanPart { ops, .. }) => ops.iter().map(PlanOp::weight).sum(),
            Self::Notice(_) => 0,
            Self::Request(request) => match &request.body {
                RequestBody::Plan { ops, .. } => ops.iter().map(PlanOp::weight).sum(),
                RequestBody::Tool { args, .. } => weight_of(args),
                RequestBody::Sync { overrides, .. } => overrides.iter().map(weight_of).sum(),
                RequestBody::GetScript { .. } => 0,
            },
        };
        ENVELOPE + content
    }
}

impl Node {
    /// About how many bytes it takes on the wire.
    pub fn weight(&self) -> usize {
        220 + self.name.len() * 2 + values::weight(&self.properties)
    }
}

fn weight_of_patch(op: &PatchOp) -> usize {
    match op {
        PatchOp::Put { node } => node.weight(),
        PatchOp::Drop { .. } => 64,
    }
}

fn weight_of(value: &Value) -> usize {
    match value {
        Value::String(text) => 16 + text.len(),
        Value::Array(list) => 16 + list.iter().map(weight_of).sum::<usize>(),
        Value::Object(map) => 16 + map.iter().map(|(key, value)| key.len() + weight_of(value)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
    }
}
