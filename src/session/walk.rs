//! One look at the disk, from a path downwards: what is found there goes into the mirror. Folders are
//! watched, then listed; the files in them are read beside that, and taken in when all folders were listed.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    thread,
};

use librojo::Project;
use memofs::VfsSnapshot;

use super::{
    depth::too_deep,
    disk::{self, Seen, Stamp, What},
    entries::Folder,
    mirror::{Changes, Mirror, Trust, below, is_script},
    projects,
    reader::{Read, Reader, Wanted},
    roots::KNOWN,
};
use crate::files;

/// Folders nested deeper are cut off: librojo recurses, and a stack is finite.
const MAX_DEPTH: usize = 128;

/// Where a walk is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Where it began.
    Nothing,
    Folder,
    NewFolder,
}

/// Whether Rojo reads a file of that name to know what its folder is, or what lies beside it. That a folder
/// is called so would stop all that it tells of.
fn tells_of_another(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let known = path.extension().and_then(|extension| extension.to_str()).is_some_and(|e| KNOWN.contains(&e));
    let is_meta = [".meta.json", ".meta.jsonc"].iter().any(|end| name.ends_with(end));
    is_meta || (name.starts_with("init.") && known) || projects::is_default(path)
}

impl Mirror {
    pub(super) fn refresh_tree(&mut self, path: &Path, changes: &mut Changes) {
        thread::scope(|scope| {
            let mut reader = Reader::new(scope);
            self.visit(path, disk::look(path), Within::Nothing, &mut reader, changes);
            for Read { wanted, contents } in reader.finish() {
                self.take_in(&wanted, contents, changes);
            }
        });
    }

    fn visit(&mut self, path: &Path, seen: Seen, within: Within, reader: &mut Reader<'_, '_>, changes: &mut Changes) {
        self.problems.remove(path);
        let leads_to = match &seen.link {
            Some(target) => Some(target.clone()),
            // A root may lie behind a link that is no part of the project.
            None if within == Within::Nothing && self.is_outermost(path) => {
                Some(disk::real(path)).filter(|real| real != path)
            }
            None => None,
        };
        match leads_to {
            Some(target) => {
                self.watch.arm_above(&target, None);
                self.links.insert(path.to_path_buf(), target);
            }
            None => _ = self.links.remove(path),
        }
        // What stands in the place of something else proves no deletion.
        let is_kept = match seen.what {
            What::Unfit(_) => self.holds(path),
            What::Folder => self.is_script_file(path),
            What::Nothing => seen.link.is_some() && self.is_script_file(path),
            What::File(_) => false,
        };
        let vanished = matches!(seen.what, What::Nothing) && seen.link.is_none() && self.holds(path);
        match self.fit(path, seen) {
            Ok(Some((What::File(stamp), _))) => self.visit_file(path, stamp, within, reader, changes),
            Ok(Some((_, real))) => self.visit_folder(path, real, within, reader, changes),
            Ok(None) if vanished && self.trust == Trust::Patient => {
                #[cfg(test)]
                super::tests::looked_at(path);
                changes.missing.push(path.to_path_buf());
            }
            Ok(None) => self.leave(path, changes),
            Err(problem) if is_kept => self.refuse(path, &problem),
            Err(problem) => {
                self.problems.insert(path.to_path_buf(), format!("{problem}; skipped"));
                self.leave(path, changes);
            }
        }
    }

    /// We hold a script's file there.
    fn is_script_file(&self, path: &Path) -> bool {
        is_script(path) && self.entries.file(path).is_some()
    }

    /// Whether to serve what was seen: `Ok(None)` if there is nothing that matters, an error if
    /// it cannot be served. With it, where a folder really is.
    fn fit(&self, path: &Path, seen: Seen) -> Result<Option<(What, PathBuf)>, String> {
        if path.to_str().is_none() {
            return Err("the name is not UTF-8".to_owned());
        }
        if self.roots.ignores(path) {
            return Ok(None);
        }
        match seen.what {
            What::Nothing if seen.link.is_some() => Err("the link leads nowhere".to_owned()),
            What::Nothing => Ok(None),
            What::Unfit(reason) => Err(reason),
            What::File(_) if files::is_scratch(path) && disk::changed_before(path, self.began) => {
                Err("left by a server that was ended while it wrote a file; a text that you miss may be in it"
                    .to_owned())
            }
            What::File(_) if !self.roots.wants_file(path) => Ok(None),
            What::File(stamp) => Ok(Some((What::File(stamp), PathBuf::new()))),
            What::Folder if self.is_script_file(path) || tells_of_another(path) => {
                Err("a folder stands in the file's place".to_owned())
            }
            What::Folder => {
                let above = path.ancestors().skip(1).map_while(|above| self.entries.folder(above));
                let above: Vec<&PathBuf> = above.map(|folder| &folder.real).collect();
                if above.len() >= MAX_DEPTH {
                    return Err(format!("more than {MAX_DEPTH} folders deep"));
                }
                let real = seen.link.or_else(|| Some(above.first()?.join(path.file_name()?)));
                let real = real.or_else(|| fs::canonicalize(path).ok()).unwrap_or_else(|| path.to_path_buf());
                if above.iter().any(|above| above.starts_with(&real)) {
                    return Err("the link leads to a folder that it lies in".to_owned());
                }
                Ok(Some((What::Folder, real)))
            }
        }
    }

    fn visit_file(
        &mut self,
        path: &Path,
        stamp: Option<Stamp>,
        within: Within,
        reader: &mut Reader<'_, '_>,
        changes: &mut Changes,
    ) {
        match self.entries.file(path) {
            Some(known) if known.is_still(stamp) => return,
            Some(_) => {}
            None if self.is_folder(path) => self.leave(path, changes),
            None => {}
        }
        reader.want(Wanted { path: path.to_path_buf(), inside_new: within == Within::NewFolder });
    }

    fn visit_folder(
        &mut self,
        path: &Path,
        real: PathBuf,
        within: Within,
        reader: &mut Reader<'_, '_>,
        changes: &mut Changes,
    ) {
        let mut inside = Within::Folder;
        if self.entries.folder(path).is_none_or(|known| known.real != real) {
            self.leave(path, changes);
            // What was served on its own so far would be hidden by the folder that it is in now.
            let inner: Vec<PathBuf> = self.roots.below(path).chain(self.roots.dropped_below(path)).collect();
            inner.iter().for_each(|inner| self.forget(inner));
            self.entries.add_folder(path, real.clone());
            // A folder must be there before its files; again would empty it.
            self.load(path, VfsSnapshot::empty_dir());
            if within != Within::NewFolder {
                changes.touch(path);
            }
            inside = Within::NewFolder;
        }
        // Watched before it is listed: nothing can be made in between unseen.
        self.watch.arm(&real);
        let listed = match self.list(path) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            // What cannot be listed is not gone.
            Err(error) => {
                self.look_again_after(&error, path);
                self.problems.insert(path.to_path_buf(), error.to_string());
                return;
            }
        };
        #[cfg(test)]
        super::tests::looked_at(path);
        let is_gone =
            |at: &Path| at.parent() == Some(path) && at.file_name().is_some_and(|name| !listed.contains_key(name));
        for gone in below(&self.problems, path).into_iter().filter(|at| is_gone(at)) {
            self.problems.remove(&gone);
        }
        for child in self.unlisted(path, &listed) {
            match self.trust {
                Trust::Exact => self.leave(&child, changes),
                Trust::Patient | Trust::Doubt => changes.missing.push(child),
            }
        }
        for (name, seen) in listed {
            self.visit(&path.join(name), seen, inside, reader, changes);
        }
    }

    /// What is in `folder` on the disk.
    fn list(&self, folder: &Path) -> io::Result<BTreeMap<OsString, Seen>> {
        let known = self.entries.folder(folder);
        let look = |entry: fs::DirEntry| {
            let name = entry.file_name();
            let is_new_file = !known.is_some_and(|known| known.has(&name)) && entry.file_type()?.is_file();
            let seen = match is_new_file {
                true => Seen { what: What::File(None), link: None },
                false => disk::look_listed(&entry),
            };
            Ok((name, seen))
        };
        fs::read_dir(folder)?.map(|entry| entry.and_then(look)).collect()
    }

    /// What we hold in `folder` and is not there any more.
    fn unlisted(&self, folder: &Path, listed: &BTreeMap<OsString, Seen>) -> Vec<PathBuf> {
        let names = self.entries.folder(folder).into_iter().flat_map(Folder::names);
        names.filter(|name| !listed.contains_key(*name)).map(|name| folder.join(name)).collect()
    }

    fn take_in(&mut self, wanted: &Wanted, contents: io::Result<(Vec<u8>, Stamp)>, changes: &mut Changes) {
        let Wanted { path, inside_new } = wanted;
        #[cfg(test)]
        super::tests::looked_at(path);
        // Of what is in a new folder nothing was known.
        let held = !inside_new && self.holds(path);
        let contents = match contents {
            Ok(contents) if held && self.trust != Trust::Doubt => disk::read_written(path, contents),
            contents => contents,
        };
        let (bytes, stamp) = match contents {
            Ok(contents) => contents,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.leave(path, changes),
            Err(error) => {
                self.look_again_after(&error, path);
                return self.refuse(path, &error.to_string());
            }
        };
        if let Some(problem) = unfit(path, &bytes) {
            return self.refuse(path, &problem);
        }
        let known = held.then(|| self.contents(path)).flatten();
        let emptied = bytes.is_empty() && !stamp.settled() && known.as_ref().is_some_and(|known| !known.is_empty());
        if emptied && self.trust == Trust::Doubt {
            return changes.busy.push(path.clone());
        }
        self.entries.add_file(path, stamp);
        if known.as_ref() == Some(&bytes) {
            return;
        }
        let plain = !self.originals.contains_key(path);
        self.originals.remove(path);
        self.withdrawn.remove(path);
        if is_json(path) && bytes.starts_with(b"\xef\xbb\xbf") {
            // Rojo's JSON reader takes a byte order mark for an error.
            self.store(path, bytes.get(3..).unwrap_or_default().to_vec());
            self.originals.insert(path.clone(), bytes);
        } else {
            self.keep(path, bytes);
        }
        let is_project = Project::is_project_file(path);
        if is_project {
            self.roots.changed(path);
        }
        if *inside_new {
            changes.projects |= is_project;
            return;
        }
        changes.touch(path);
        if let Some(before) = known.filter(|_| plain) {
            changes.edited.entry(path.clone()).or_insert(before);
        }
    }

    /// Nothing says so when what `error` was for want of is there again.
    fn look_again_after(&mut self, error: &io::Error, path: &Path) {
        if disk::is_passing(error) {
            self.again.push(path.to_path_buf());
        }
    }

    /// A file cannot be taken in. One that was served is not gone: its last good text stays, so that
    /// nothing is removed in Studio because of a file that somebody locked or garbled.
    fn refuse(&mut self, path: &Path, problem: &str) {
        let kept = if self.holds(path) { "its last good text is kept" } else { "skipped" };
        self.problems.insert(path.to_path_buf(), format!("{problem}; {kept}"));
    }
}

/// Why a file with these contents cannot be shown to librojo, if it cannot.
fn unfit(path: &Path, bytes: &[u8]) -> Option<String> {
    if is_script(path) {
        return std::str::from_utf8(bytes).is_err().then(|| "not UTF-8".to_owned());
    }
    too_deep(path, bytes)
}

fn is_json(path: &Path) -> bool {
    matches!(path.extension().and_then(|extension| extension.to_str()), Some("json" | "jsonc"))
}
