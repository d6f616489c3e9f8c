//! Plain scripts → instances, in the snapshots that librojo made without them.

use std::{collections::HashMap, ffi::OsStr, path::Path, thread};

use librojo::{InstanceContext, InstanceSnapshot, snapshot_from_vfs};
use memofs::{InMemoryFs, Vfs, VfsSnapshot};
use rbx_dom_weak::{Ustr, types::Variant, ustr};

use super::{
    globs::is_ignored,
    plain::{self, PlainScripts, Texts},
};

/// Makes the instances of plain scripts, each after a sample that librojo made of the same kind.
pub(super) struct Grafter<'a> {
    scripts: &'a PlainScripts,
    /// What the samples belong to.
    context: InstanceContext,
    samples: HashMap<&'static str, Option<InstanceSnapshot>>,
    source: Ustr,
}

impl<'a> Grafter<'a> {
    pub fn new(scripts: &'a PlainScripts) -> Self {
        Self { scripts, context: InstanceContext::new(), samples: HashMap::new(), source: ustr("Source") }
    }

    /// Put in what is missing at and below `snapshot`.
    pub fn complete(&mut self, snapshot: &mut InstanceSnapshot) {
        for child in &mut snapshot.children {
            self.complete(child);
        }
        // The instance of a folder names it first.
        let Some(folder) = snapshot.metadata.relevant_paths.first().cloned() else { return };
        let scripts = self.scripts;
        scripts.in_folder(&folder, |texts| self.add(snapshot, &folder, texts));
    }

    /// The instance of one script.
    pub fn script(&mut self, context: &InstanceContext, path: &Path) -> Option<InstanceSnapshot> {
        let text = self.scripts.text(path)?;
        self.make(context, path, &text)
    }

    fn add(&mut self, snapshot: &mut InstanceSnapshot, folder: &Path, texts: &Texts) {
        let context = snapshot.metadata.context.clone();
        let mut made = texts.iter().filter_map(|(name, text)| {
            let path = folder.join(name);
            (!is_ignored(&context, &path)).then(|| self.make(&context, &path, text)).flatten().map(|new| (name, new))
        });
        let mut next = made.next();
        let mut children = Vec::with_capacity(snapshot.children.len() + texts.len());
        for child in std::mem::take(&mut snapshot.children) {
            // What a project adds comes after what is in the folder.
            let place = name_in(folder, &child);
            while let Some((_, script)) = next.take_if(|(name, _)| place.is_none_or(|at| name.as_os_str() < at)) {
                children.push(script);
                next = made.next();
            }
            children.push(child);
        }
        children.extend(next.into_iter().chain(made).map(|(_, script)| script));
        snapshot.children = children;
    }

    fn make(&mut self, context: &InstanceContext, path: &Path, text: &str) -> Option<InstanceSnapshot> {
        let (name, ending) = plain::split(path.file_name()?)?;
        if self.context != *context {
            self.context = context.clone();
            self.samples.clear();
        }
        let sample = self.samples.entry(ending).or_insert_with(|| sample(context, path));
        let mut script = sample.clone()?;
        script.name = name.to_owned().into();
        let text = if text.contains('\r') { text.replace("\r\n", "\n") } else { text.to_owned() };
        script.properties.insert(self.source, Variant::String(text));
        script.metadata.instigating_source = Some(path.into());
        script.metadata.relevant_paths = vec![path.to_path_buf()];
        Some(script)
    }
}

/// Let librojo unpack what it knows of Roblox's classes, which takes it some milliseconds once, beside
/// what else goes on.
pub(super) fn warm_up() {
    let unpack = || _ = sample(&InstanceContext::new(), Path::new("/warm-up.luau"));
    _ = thread::Builder::new().name("warm-up".to_owned()).spawn(unpack); // without, it comes later
}

/// What librojo makes of an empty script at `path`.
fn sample(context: &InstanceContext, path: &Path) -> Option<InstanceSnapshot> {
    let mut fs = InMemoryFs::new();
    fs.load_snapshot(path, VfsSnapshot::empty_file()).ok()?;
    let mut sample = snapshot_from_vfs(context, &Vfs::new(fs), path).ok()??;
    // Each script gets its own.
    sample.metadata.instigating_source = None;
    sample.metadata.relevant_paths.clear();
    Some(sample)
}

/// The name in `folder` that gave `child`. `None`: a project file elsewhere put it there.
fn name_in<'a>(folder: &Path, child: &'a InstanceSnapshot) -> Option<&'a OsStr> {
    let source = child.metadata.instigating_source.as_ref()?.path();
    Some(source.strip_prefix(folder).ok()?.components().next()?.as_os_str())
}
