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

/// The members one class adds to its superclass; a row of six in the table.
#[derive(Deserialize)]
struct ApiClass {
    #[serde(borrow)]
    methods: HashSet<&'static str>,
    events: HashSet<&'static str>,
    properties: HashSet<&'static str>,
    plugin_properties: HashSet<&'static str>,
    /// Methods, all of them in `methods` as well.
    yields: HashSet<&'static str>,
    /// Methods and events, all of them in those sets as well.
    plugin_only: HashSet<&'static str>,
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

    fn is_plugin_only(&self, member: &str) -> bool {
        self.plugin_only.contains(member)
            || self.plugin_properties.contains(member) && !self.properties.contains(member)
    }
}

/// What `class` itself (not its superclasses) calls `member`.
pub(super) fn own_member(class: &str, member: &str) -> Option<ApiKind> {
    API.classes.get(class)?.kind_of(member)
}

/// Whether the method `member` of `class` itself yields whenever it is called.
pub(super) fn yields(class: &str, member: &str) -> bool {
    API.classes.get(class).is_some_and(|own| own.yields.contains(member))
}

/// Whether `member` of `class` itself is out of reach of game scripts, even to read.
pub(super) fn is_plugin_only(class: &str, member: &str) -> bool {
    API.classes.get(class).is_some_and(|own| own.is_plugin_only(member))
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

    #[test]
    fn the_table_knows_what_yields() {
        for (class, member) in [
            ("HttpService", "RequestAsync"),
            ("RemoteFunction", "InvokeServer"),
            ("Plugin", "PromptSaveSelectionAsync"),
        ] {
            assert!(yields(class, member), "{class}.{member}");
        }
        for (class, member) in [
            ("Instance", "GetChildren"),
            ("HttpService", "JSONEncode"),
            ("Selection", "Get"),
            ("Folder", "RequestAsync"),
            ("NoClass", "RequestAsync"),
        ] {
            assert!(!yields(class, member), "{class}.{member}");
        }
    }

    #[test]
    fn the_table_knows_what_is_for_plugins_alone() {
        let editor = API.classes.get("ScriptEditorService").expect("a known class");
        let members = editor.methods.iter().chain(&editor.events);
        assert!(members.clone().count() > 10 && members.clone().all(|member| editor.is_plugin_only(member)));
        assert!(is_plugin_only("RunService", "Run") && is_plugin_only("Model", "LevelOfDetail"));
        assert!(!is_plugin_only("Instance", "GetChildren") && !is_plugin_only("HttpService", "RequestAsync"));
        assert!(!is_plugin_only("DataStore", "GetAsync"), "both files have it");
        assert!(!is_plugin_only("MeshPart", "RenderFidelity"), "everybody may read it");
    }

    #[test]
    fn marks_are_about_members_of_the_class() {
        for (name, class) in &API.classes {
            assert!(class.yields.is_subset(&class.methods), "{name}");
            let is_marked = |member: &&str| class.methods.contains(member) || class.events.contains(member);
            assert!(class.plugin_only.iter().all(is_marked), "{name}");
        }
    }
}
