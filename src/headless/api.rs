//! Which members exist in Roblox, whether or not they are simulated.
//!
//! The reflection database knows properties; methods, events and plugin-only
//! members come from `api.json` (see `api/generate.py`).

use serde::Deserialize;
use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

#[derive(Deserialize)]
struct Api {
    /// The package the table was made from, with its version.
    #[cfg_attr(not(test), expect(dead_code, reason = "only a test asks"))]
    source: &'static str,
    #[serde(borrow)]
    classes: HashMap<&'static str, ApiClass>,
}

/// The members one class adds to its superclass; a row of four in the table.
#[derive(Deserialize)]
struct ApiClass {
    #[serde(borrow)]
    methods: HashSet<&'static str>,
    events: HashSet<&'static str>,
    properties: HashSet<&'static str>,
    plugin_properties: HashSet<&'static str>,
}

/// What a member is in Roblox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiKind {
    Event,
    Method,
    Property,
    /// A property that plugins may use and game scripts may not.
    PluginProperty,
}

static API: LazyLock<Api> =
    LazyLock::new(|| serde_json::from_str(include_str!("api.json")).expect("the generated table has this shape"));

impl ApiClass {
    fn kind_of(&self, member: &str) -> Option<ApiKind> {
        if self.events.contains(member) {
            Some(ApiKind::Event)
        } else if self.methods.contains(member) {
            Some(ApiKind::Method)
        } else if self.plugin_properties.contains(member) {
            Some(ApiKind::PluginProperty)
        } else if self.properties.contains(member) {
            Some(ApiKind::Property)
        } else {
            None
        }
    }
}

/// What `class` itself (not its superclasses) calls `member`.
pub(super) fn own_member(class: &str, member: &str) -> Option<ApiKind> {
    API.classes.get(class)?.kind_of(member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_of_the_version_that_the_tools_use() {
        let tools = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/luau/versions");
        let versions = std::fs::read_to_string(tools).expect("the tools' versions");
        let version = API.source.strip_prefix("@rbxts/types ").expect("the package");
        assert!(versions.contains(&format!("RBXTS_TYPES={version} ")), "run tools/luau/regenerate");
    }

    #[test]
    fn the_table_names_members_by_kind() {
        assert_eq!(own_member("Instance", "Destroy"), Some(ApiKind::Method));
        assert_eq!(own_member("Plugin", "Unloading"), Some(ApiKind::Event));
        assert_eq!(own_member("Model", "LevelOfDetail"), Some(ApiKind::PluginProperty));
        assert_eq!(own_member("DataModel", "PlaceId"), Some(ApiKind::Property));
        assert_eq!(own_member("Folder", "Destroy"), None);
    }
}
