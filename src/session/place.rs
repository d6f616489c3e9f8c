//! The tree as a place file has it.

use rbx_dom_weak::{
    InstanceBuilder, WeakDom,
    types::{CFrame, Matrix3, Ref, Variant},
    ustr,
};

use crate::core::classes::writable;

/// A place file holds no `Position` of a part, only its `CFrame`: a copy of what lies below `roots` in which
/// each part that a file gives a position alone has that frame. `None`: there is no such part.
pub(super) fn with_frames(dom: &WeakDom, roots: &[Ref]) -> Option<(WeakDom, Vec<Ref>)> {
    if !below(dom, roots).iter().any(|&id| frame(dom, id).is_some()) {
        return None;
    }
    let mut copy = WeakDom::new(InstanceBuilder::new("DataModel"));
    let roots = dom.clone_multiple_into_external(roots, &mut copy);
    for id in below(&copy, &roots) {
        if let (Some(frame), Some(part)) = (frame(&copy, id), copy.get_by_ref_mut(id)) {
            part.properties.insert(ustr("CFrame"), frame.into());
        }
    }
    Some((copy, roots))
}

/// The frame of what has a position and no frame, though its class has frames.
fn frame(dom: &WeakDom, id: Ref) -> Option<CFrame> {
    let part = dom.get_by_ref(id)?;
    match part.properties.get(&ustr("Position"))? {
        Variant::Vector3(position) if !part.properties.contains_key(&ustr("CFrame")) => {
            writable(&part.class, "CFrame").map(|_| CFrame::new(*position, Matrix3::identity()))
        }
        _ => None,
    }
}

fn below(dom: &WeakDom, roots: &[Ref]) -> Vec<Ref> {
    let mut found = roots.to_vec();
    let mut next = 0;
    while let Some(instance) = found.get(next).map(|&id| dom.get_by_ref(id)) {
        found.extend(instance.iter().flat_map(|instance| instance.children()));
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use rbx_dom_weak::types::Vector3;

    use super::*;

    fn at(class: &str, height: f32) -> InstanceBuilder {
        InstanceBuilder::new(class).with_property("Position", Vector3::new(0.0, height, 0.0))
    }

    #[test]
    fn a_position_becomes_a_frame_where_a_file_has_no_other_way() {
        let turned = CFrame::new(Vector3::new(1.0, 2.0, 3.0), Matrix3::identity());
        let model = InstanceBuilder::new("Model")
            .with_child(at("Part", -10.0).with_child(at("Attachment", 4.0)))
            .with_child(at("Part", 5.0).with_property("CFrame", turned))
            .with_child(at("AlignPosition", 6.0));
        let dom = WeakDom::new(InstanceBuilder::new("DataModel").with_child(model));
        let (copy, roots) = with_frames(&dom, dom.root().children()).expect("parts have positions");
        let found: Vec<(String, Option<Variant>)> = below(&copy, &roots)
            .into_iter()
            .filter_map(|id| copy.get_by_ref(id))
            .map(|each| (each.class.to_string(), each.properties.get(&ustr("CFrame")).cloned()))
            .collect();
        let frame = |height| Some(CFrame::new(Vector3::new(0.0, height, 0.0), Matrix3::identity()).into());
        let expected = [
            ("Model", None),
            ("Part", frame(-10.0)),
            ("Part", Some(turned.into())),
            ("AlignPosition", None),
            ("Attachment", frame(4.0)),
        ];
        assert_eq!(found, expected.map(|(class, frame)| (class.to_owned(), frame)));
        let plain = WeakDom::new(InstanceBuilder::new("DataModel").with_child(InstanceBuilder::new("Part")));
        assert!(with_frames(&plain, plain.root().children()).is_none(), "nothing is copied for nothing");
    }
}
