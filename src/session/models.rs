//! Instances that were made in Studio as files: scripts and folders as such, all else as a model.
//! Nothing is given out that Rojo does not read back as the same instances.

use std::{collections::HashMap, path::PathBuf};

use librojo::{InstanceContext, InstanceSnapshot, snapshot_from_vfs};
use memofs::{InMemoryFs, Vfs, VfsSnapshot};
use rbx_dom_weak::{
    InstanceBuilder, WeakDom,
    types::{Attributes, Ref, Variant},
    ustr,
};
use serde_json::{Map, Value, json};

use super::{values, writable};
use crate::core::{
    ids::NodeId,
    protocol::NewNode,
    text::ScriptText,
    values::{Properties, is_close},
};

/// New files and folders, each after the folder that it lies in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFiles {
    /// Relative to where they go. `None`: a folder.
    pub files: Vec<(PathBuf, Option<Vec<u8>>)>,
}

/// The files of `node`.
///
/// # Errors
/// No files stand for it: the text says why.
pub(super) fn files(node: &NewNode, context: &InstanceContext) -> Result<NewFiles, String> {
    let mut node = node.clone();
    leave_out_defaults(&mut node);
    let mut files = Vec::new();
    if is_of_scripts(&node) {
        place(&node, PathBuf::new(), &mut files)?;
    } else {
        files.push((PathBuf::from(format!("{}.rbxm", node.name)), Some(model(&node)?)));
    }
    let new = NewFiles { files };
    let read = read_back(&new, context)?;
    same(&node, &read)?;
    Ok(new)
}

/// Values that every new instance of the class has say nothing.
fn leave_out_defaults(node: &mut NewNode) {
    let class = rbx_reflection_database::get().ok().and_then(|database| database.classes.get(node.class_name.as_str()));
    let default = |name: &String| class.and_then(|class| class.default_properties.get(name.as_str()));
    node.properties.retain(|name, value| {
        let usual = default(name).and_then(values::encode);
        !usual.is_some_and(|usual| is_same(&usual, value)) && *value != json!({ "Ref": "" })
    });
    node.children.iter_mut().for_each(leave_out_defaults);
}

/// Equal, whichever way a colour or a text is written.
fn is_same(one: &Value, other: &Value) -> bool {
    let text = |value: &Value| match values::decode(value).filter(|_| value.get("BinaryString").is_some()) {
        Some(Variant::BinaryString(bytes)) => String::from_utf8(bytes.into_vec()).ok(),
        _ => None,
    };
    let plain = |value: &Value| match value.get("Color3uint8").and_then(Value::as_array) {
        // A model has the text of an attribute so.
        _ if value.get("BinaryString").is_some() => {
            text(value).map_or_else(|| value.clone(), |text| json!({ "String": text }))
        }
        Some(bytes) => {
            let parts: Vec<f64> = bytes.iter().map(|byte| byte.as_f64().unwrap_or_default() / 255.0).collect();
            json!({ "Color3": parts })
        }
        None => value.clone(),
    };
    is_close(&plain(one), &plain(other))
}

fn kind(class: &str) -> Option<&'static str> {
    match class {
        "ModuleScript" => Some(".luau"),
        "Script" => Some(".server.luau"),
        "LocalScript" => Some(".client.luau"),
        _ => None,
    }
}

/// Only scripts and folders, of which no two would be one file.
fn is_of_scripts(node: &NewNode) -> bool {
    let mut names: Vec<String> = node.children.iter().map(|child| child.name.to_lowercase()).collect();
    names.sort();
    let twins = names.windows(2).any(|pair| pair[0] == pair[1]);
    let known = node.class_name == "Folder" || kind(&node.class_name).is_some();
    let refers = node.properties.values().any(|value| value.get("Ref").is_some());
    known && !twins && !refers && node.children.iter().all(is_of_scripts)
}

fn place(node: &NewNode, above: PathBuf, files: &mut Vec<(PathBuf, Option<Vec<u8>>)>) -> Result<(), String> {
    crate::files::check_name(&node.name).map_err(|error| error.to_string())?;
    let text = || ScriptText::new(node.source.as_deref().unwrap_or_default()).into_string().into_bytes();
    let own = above.join(&node.name);
    let ending = kind(&node.class_name);
    let meta = meta(&node.properties);
    match ending {
        Some(ending) if node.children.is_empty() => {
            files.push((above.join(format!("{}{ending}", node.name)), Some(text())));
            files.extend(meta.map(|meta| (above.join(format!("{}.meta.json", node.name)), Some(meta))));
            return Ok(());
        }
        Some(ending) => {
            files.push((own.clone(), None));
            files.push((own.join(format!("init{ending}")), Some(text())));
        }
        None => files.push((own.clone(), None)),
    }
    files.extend(meta.map(|meta| (own.join("init.meta.json"), Some(meta))));
    node.children.iter().try_for_each(|child| place(child, own.clone(), files))
}

/// What stands beside a script or in a folder for its properties.
fn meta(properties: &Properties) -> Option<Vec<u8>> {
    let split = |attribute: bool| -> Map<String, Value> {
        let own = properties.iter().filter(|(name, _)| name.starts_with('@') == attribute);
        own.map(|(name, value)| (name.trim_start_matches('@').to_owned(), value.clone())).collect()
    };
    let mut meta = Map::new();
    for (key, values) in [("properties", split(false)), ("attributes", split(true))] {
        if !values.is_empty() {
            meta.insert(key.to_owned(), values.into());
        }
    }
    let text = serde_json::to_string_pretty(&meta).unwrap_or_default();
    (!meta.is_empty()).then(|| format!("{text}\n").into_bytes())
}

fn model(node: &NewNode) -> Result<Vec<u8>, String> {
    crate::files::check_name(&node.name).map_err(|error| error.to_string())?;
    let mut refs = HashMap::new();
    let top = build(node, &mut refs)?;
    let dom = WeakDom::new(InstanceBuilder::new("DataModel").with_child(top));
    let mut bytes = Vec::new();
    rbx_binary::to_writer(&mut bytes, &dom, dom.root().children()).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn referent(of: NodeId, refs: &mut HashMap<NodeId, Ref>) -> Ref {
    *refs.entry(of).or_insert_with(Ref::new)
}

fn build(node: &NewNode, refs: &mut HashMap<NodeId, Ref>) -> Result<InstanceBuilder, String> {
    let mut builder = InstanceBuilder::new(node.class_name.as_str())
        .with_name(node.name.clone())
        .with_referent(referent(node.id, refs));
    let mut attributes = Attributes::new();
    for (name, value) in &node.properties {
        let value = match value.get("Ref").and_then(Value::as_str) {
            Some(id) => Variant::Ref(id.parse().map_or(Ref::none(), |id| referent(id, refs))),
            None => values::decode(value).ok_or_else(|| format!("{}.{name} has a value no file holds", node.name))?,
        };
        match name.strip_prefix('@') {
            Some(attribute) => _ = attributes.insert(attribute.to_owned(), value),
            None => builder = builder.with_property(ustr(name), value),
        }
    }
    if let Some(text) = &node.source {
        builder = builder.with_property("Source", ScriptText::new(text).into_string());
    }
    if attributes.iter().next().is_some() {
        builder = builder.with_property("Attributes", Variant::Attributes(attributes));
    }
    for child in &node.children {
        builder = builder.with_child(build(child, refs)?);
    }
    Ok(builder)
}

fn read_back(new: &NewFiles, context: &InstanceContext) -> Result<InstanceSnapshot, String> {
    let folder = PathBuf::from("/new");
    let mut memory = InMemoryFs::new();
    let empty = || VfsSnapshot::dir(HashMap::<String, VfsSnapshot>::new());
    let failed = |error: std::io::Error| error.to_string();
    memory.load_snapshot(&folder, empty()).map_err(failed)?;
    for (path, bytes) in &new.files {
        let content = bytes.as_ref().map_or_else(empty, |bytes| VfsSnapshot::file(bytes.clone()));
        memory.load_snapshot(folder.join(path), content).map_err(failed)?;
    }
    let vfs = Vfs::new(memory);
    let (first, _) = new.files.first().ok_or("there is nothing to be written")?;
    let read = snapshot_from_vfs(context, &vfs, &folder.join(first)).map_err(|error| format!("{error:#}"))?;
    read.ok_or_else(|| "Rojo reads nothing of its files".to_owned())
}

/// Whether `read` is `node`.
fn same(node: &NewNode, read: &InstanceSnapshot) -> Result<(), String> {
    let differs = |what: &str| Err(format!("Rojo would not read {} back with its {what}", node.name));
    if read.name != node.name || read.class_name.as_str() != node.class_name {
        return differs("name and class");
    }
    let text = |text: &str| ScriptText::new(text).into_string();
    let source = match read.properties.get(&ustr("Source")) {
        Some(Variant::String(source)) => Some(text(source)),
        _ => None,
    };
    if source.unwrap_or_default() != node.source.as_deref().map(text).unwrap_or_default() {
        return differs("text");
    }
    let there = writable::of(read.class_name.as_str(), &read.properties);
    let lasting = node.properties.iter().filter(|(_, value)| value.get("Ref").is_none());
    for (name, value) in lasting {
        if !there.get(name).is_some_and(|there| is_same(there, value)) {
            return differs(name);
        }
    }
    if read.children.len() != node.children.len() {
        return differs("children");
    }
    let mut own: Vec<&NewNode> = node.children.iter().collect();
    let mut children: Vec<&InstanceSnapshot> = read.children.iter().collect();
    // A folder has no order; a model keeps that of twins.
    own.sort_by_key(|child| (child.name.clone(), child.class_name.clone()));
    children.sort_by_key(|child| (child.name.to_string(), child.class_name.as_str().to_owned()));
    own.into_iter().zip(children).try_for_each(|(child, read)| same(child, read))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u128, name: &str, class: &str, source: Option<&str>, children: Vec<NewNode>) -> NewNode {
        let (name, class_name) = (name.to_owned(), class.to_owned());
        let source = source.map(str::to_owned);
        NewNode { id: NodeId(id), name, class_name, source, properties: Properties::new(), children }
    }

    fn paths(node: &NewNode) -> Vec<String> {
        let new = files(node, &InstanceContext::new()).expect("it has files");
        new.files.into_iter().map(|(path, _)| path.to_string_lossy().replace('\\', "/")).collect()
    }

    #[test]
    fn scripts_and_folders_become_such() {
        let mut inner = node(3, "Util", "ModuleScript", Some("return 1"), vec![]);
        inner.properties.insert("@level".into(), json!({ "Float64": 3.0 }));
        let main = node(2, "Main", "Script", Some("print(1)"), vec![inner]);
        let folder = node(1, "Kit", "Folder", None, vec![main]);
        let expected =
            ["Kit", "Kit/Main", "Kit/Main/init.server.luau", "Kit/Main/Util.luau", "Kit/Main/Util.meta.json"];
        assert_eq!(paths(&folder), expected);
    }

    #[test]
    fn all_else_becomes_a_model_with_what_it_refers_to() {
        let mut part = node(2, "Root", "Part", None, vec![node(3, "Code", "Script", Some("print(2)"), vec![])]);
        part.properties.insert("Size".into(), json!({ "Vector3": [1.0, 2.0, 3.0] }));
        part.properties.insert("Tags".into(), json!({ "Tags": ["hot"] }));
        let twin = node(4, "Root", "Part", None, vec![]);
        let mut force = node(5, "Force", "AlignPosition", None, vec![]);
        force.properties.insert("MaxForce".into(), json!({ "Float32": "inf" }));
        let mut rig = node(1, "Rig", "Model", None, vec![part, twin, force]);
        rig.properties.insert("PrimaryPart".into(), json!({ "Ref": NodeId(2).to_string() }));
        rig.properties.insert("@level".into(), json!({ "Float64": 3.0 }));
        rig.properties.insert("@kind".into(), json!({ "String": "heavy 🙂" }));
        assert_eq!(paths(&rig), ["Rig.rbxm"]);
        let new = files(&rig, &InstanceContext::new()).expect("it has files");
        let bytes = new.files[0].1.clone().expect("a file");
        let dom = rbx_binary::from_reader(&bytes[..]).expect("a model");
        let rig = dom.get_by_ref(dom.root().children()[0]).expect("it is there");
        assert_eq!(rig.properties.get(&ustr("PrimaryPart")), Some(&Variant::Ref(rig.children()[0])));
    }

    #[test]
    fn what_no_file_can_be_named_for_is_refused() {
        for bad in ["a/b", "con", "", "x."] {
            let problem = files(&node(1, bad, "Model", None, vec![]), &InstanceContext::new());
            assert!(problem.expect_err("refused").contains("no file can be named"), "{bad}");
        }
    }
}
