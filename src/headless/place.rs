//! What a DataModel begins with: a place file, or a copy of another DataModel.

use super::{config::HeadlessError, game_scripts::RUN_ON_CLIENT, history::UNTRACKED, reflection, world::World};
use rbx_dom_weak::{
    Instance, InstanceBuilder, WeakDom,
    types::{Enum, Ref, Variant},
    ustr,
};
use std::collections::HashSet;

/// Services whose contents stay on the server.
pub(super) const SERVER_ONLY: [&str; 2] = ["ServerStorage", "ServerScriptService"];

/// The DataModel of a place file; no bytes are an empty place.
pub(super) fn open(bytes: &[u8], name: &str) -> Result<WeakDom, HeadlessError> {
    let name = if name.is_empty() { "Place1" } else { name };
    let mut dom = WeakDom::new(InstanceBuilder::new("DataModel").with_name(name));
    if !bytes.is_empty() {
        fill(&mut dom, rbx_binary::from_reader(bytes).map_err(HeadlessError::Place)?);
    }
    Ok(dom)
}

/// Move a place's roots into the DataModel; a second root of a service joins the first.
fn fill(dom: &mut WeakDom, mut place: WeakDom) {
    let game = dom.root_ref();
    for root in place.root().children().to_vec() {
        let Some(instance) = place.get_by_ref(root) else { continue };
        let class = instance.class;
        let of_class = |each: &Ref| dom.get_by_ref(*each).is_some_and(|known| known.class == class);
        let known = reflection::is_service(&class).then(|| dom.root().children().iter().copied().find(of_class));
        let Some(service) = known.flatten() else {
            place.transfer(root, dom, game);
            continue;
        };
        let (properties, children) = (instance.properties.clone(), instance.children().to_vec());
        if let Some(existing) = dom.get_by_ref_mut(service) {
            existing.properties.extend(properties);
        }
        for child in children {
            place.transfer(child, dom, service);
        }
    }
}

/// The server's copy of the place that is edited: what would be saved with it.
pub(super) fn server_copy(edit: &World) -> WeakDom {
    copied(edit, |this| !UNTRACKED.contains(&edit.class(this).as_str()) && edit.is_archivable(this), |_, _| true)
}

/// A client's copy of the server's DataModel: what the server replicates.
pub(super) fn client_copy(server: &World) -> WeakDom {
    let dom = server.dom.borrow();
    let game = server.game;
    copied(
        server,
        |this| dom.get_by_ref(this).is_none_or(|instance| instance.parent() != game || !is_kept_back(&instance.class)),
        is_property_replicated,
    )
}

/// The text of a server's script stays on the server.
pub(super) fn is_property_replicated(instance: &Instance, property: &str) -> bool {
    let on_client = Variant::Enum(Enum::from_u32(RUN_ON_CLIENT));
    property != "Source"
        || instance.class != "Script"
        || instance.properties.get(&ustr("RunContext")) == Some(&on_client)
}

fn is_kept_back(class: &str) -> bool {
    SERVER_ONLY.contains(&class) || UNTRACKED.contains(&class)
}

/// Copy the DataModel. An instance and its copy have the same referent, so that nothing has to
/// remember which belong together.
fn copied(from: &World, is_wanted: impl Fn(Ref) -> bool, is_property_wanted: fn(&Instance, &str) -> bool) -> WeakDom {
    let source = from.dom.borrow();
    let root = source.root();
    let mut copy = WeakDom::new(InstanceBuilder::new("DataModel").with_name(&root.name).with_referent(from.game));
    let mut left_out = HashSet::new();
    for each in from.descendants(from.game) {
        let Some(instance) = source.get_by_ref(each) else { continue };
        if left_out.contains(&instance.parent()) || !is_wanted(each) {
            left_out.insert(each);
            continue;
        }
        copy.insert(instance.parent(), builder(instance, is_property_wanted));
    }
    copy
}

/// A copy of one instance, without its children.
pub(super) fn builder(instance: &Instance, is_wanted: fn(&Instance, &str) -> bool) -> InstanceBuilder {
    let properties = instance.properties.iter().filter(|(name, _)| is_wanted(instance, name));
    InstanceBuilder::new(instance.class)
        .with_name(&instance.name)
        .with_referent(instance.referent())
        .with_properties(properties.map(|(name, value)| (*name, value.clone())))
}

impl World {
    /// Whether clients see what is in `this`.
    pub(super) fn is_replicated(&self, this: Ref) -> bool {
        this == self.game
            || match self.service_above(this) {
                Some(class) => !is_kept_back(&class),
                None => false,
            }
    }

    pub(super) fn is_archivable(&self, this: Ref) -> bool {
        let dom = self.dom.borrow();
        let stored = dom.get_by_ref(this).and_then(|instance| instance.properties.get(&ustr("Archivable")));
        !matches!(stored, Some(Variant::Bool(false)))
    }
}
