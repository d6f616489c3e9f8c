//! `POST /api/serialize`: instances as a binary model, for properties that the plugin can only set
//! by loading one. Each instance hangs on an ObjectValue that bears its id.

use std::sync::Arc;

use hyper::{Response, body::Incoming};
use librojo::{
    RojoTree,
    web_api::{SerializeRequest, SerializeResponse},
};
use rbx_dom_weak::{InstanceBuilder, WeakDom, types::Ref};

use super::{Body, answer};
use crate::session::ServeSession;

pub(super) async fn answer(session: Arc<ServeSession>, body: Incoming) -> Response<Body> {
    let request: SerializeRequest = match answer::read(body).await {
        Ok(request) => request,
        Err(refusal) => return refusal,
    };
    if request.session_id != session.id() {
        return answer::bad_request("Wrong session ID");
    }
    let model = match session.with_tree(|tree, _| model(tree, &request.ids)) {
        Ok(model) => model,
        Err(unknown) => return answer::bad_request(format!("provided id {unknown} is not in the tree")),
    };
    let mut model_contents = Vec::new();
    match rbx_binary::to_writer(&mut model_contents, &model, &[model.root_ref()]) {
        Ok(()) => answer::ok(&SerializeResponse { session_id: session.id(), model_contents }),
        Err(error) => answer::internal_error(error.to_string()),
    }
}

fn model(tree: &RojoTree, ids: &[Ref]) -> Result<WeakDom, Ref> {
    let mut model = WeakDom::new(InstanceBuilder::new("Folder"));
    for &id in ids {
        let instance = tree.get_instance(id).ok_or(id)?;
        let copy = InstanceBuilder::new(instance.class_name())
            .with_name(instance.name())
            .with_properties(instance.properties().clone());
        let copied = copy.referent();
        let holder = InstanceBuilder::new("ObjectValue").with_name(id.to_string()).with_property("Value", copied);
        let holder = match needed_parent(instance.class_name().as_str()) {
            Some(class) => holder.with_child(InstanceBuilder::new(class).with_child(copy)),
            None => holder.with_child(copy),
        };
        model.insert(model.root_ref(), holder);
    }
    Ok(model)
}

/// Classes that Roblox loads only below another.
fn needed_parent(class: &str) -> Option<&'static str> {
    match class {
        "Attachment" | "Bone" => Some("Part"),
        "Animator" => Some("Humanoid"),
        "BaseWrap" | "WrapLayer" | "WrapTarget" | "WrapDeformer" => Some("MeshPart"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use librojo::InstanceSnapshot;
    use rbx_dom_weak::types::Variant;

    #[test]
    fn each_instance_hangs_on_a_value_with_its_id() {
        let mut tree = RojoTree::new(InstanceSnapshot::new().class_name("Folder"));
        let root = tree.get_root_id();
        let part = tree.insert_instance(root, InstanceSnapshot::new().name("P").class_name("Part"));
        let bone = tree.insert_instance(part, InstanceSnapshot::new().name("B").class_name("Bone"));
        let model = model(&tree, &[part, bone]).expect("both are in the tree");
        let shown: Vec<String> = model.descendants().map(|each| format!("{} {}", each.class, each.name)).collect();
        let (part, bone) = (format!("ObjectValue {part}"), format!("ObjectValue {bone}"));
        let wanted = ["Folder Folder", part.as_str(), bone.as_str(), "Part P", "Part Part", "Bone B"];
        assert_eq!(shown, wanted);
        for holder in model.root().children() {
            let holder = model.get_by_ref(*holder).expect("a child");
            let Some(Variant::Ref(value)) = holder.properties.get(&"Value".into()) else { panic!("no Value") };
            assert!(model.descendants_of(holder.referent()).any(|below| below.referent() == *value));
        }
    }

    #[test]
    fn an_id_that_is_not_in_the_tree_is_named() {
        let tree = RojoTree::new(InstanceSnapshot::new());
        let unknown = Ref::new();
        assert_eq!(model(&tree, &[unknown]).err(), Some(unknown));
    }
}
