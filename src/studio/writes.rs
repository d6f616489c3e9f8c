//! The files that a run writes, by the one writer.

use std::path::{Path, PathBuf};

use super::work::Worker;
use crate::{
    core::{
        ids::NodeId,
        journal::{HeldFile, MadeFile},
        protocol::NewNode,
        sync::{Draft, FileWrite, Wrote},
        text::{ScriptText, TextHash},
    },
    files::{self, Displaced, Moved, NewName, ScriptFile, WriteError},
    session::ServeSession,
};

/// What a batch of writes has come to so far.
#[derive(Default)]
struct Batch {
    written: Vec<PathBuf>,
    displaced: Vec<Displaced>,
}

impl Worker {
    pub(super) fn write(&self, writes: Vec<FileWrite>) -> Vec<Wrote> {
        let mut batch = Batch::default();
        let wrote: Vec<Wrote> = writes
            .into_iter()
            .map(|write| self.write_one(write, &mut batch).unwrap_or_else(|error| problem(&error)))
            .collect();
        for wrote in &wrote {
            if let Wrote::Done(Some(hash)) | Wrote::Made(_, Some(hash)) = wrote {
                self.session.note_written(*hash);
            }
        }
        // The tree holds what was written before the run goes on.
        self.read_again(&batch.written);
        tokio::spawn(files::displaced::let_go(batch.displaced));
        wrote
    }

    fn read_again(&self, written: &[PathBuf]) {
        if !written.is_empty()
            && let Err(error) = self.session.take_in(written)
        {
            log::error!("what a sync wrote could not be read again: {error}");
        }
    }

    fn write_one(&self, write: FileWrite, batch: &mut Batch) -> Result<Wrote, WriteError> {
        let folder = self.session.project().folder.clone();
        let sources = self.session.sources();
        match write {
            FileWrite::Replace { path, base, text: Some(text) } => {
                let path = folder.join(path);
                batch.written.push(path.clone());
                let written = files::replace(&sources, &path, base, &ScriptText::new(&text))?;
                batch.displaced.extend(written.displaced);
                Ok(Wrote::Done(Some(written.hash)))
            }
            FileWrite::Remove { path, base } => {
                let path = folder.join(path);
                batch.written.push(path.clone());
                batch.displaced.push(files::remove(&sources, &path, base)?.displaced);
                Ok(Wrote::Done(None))
            }
            FileWrite::Create { folder: within, name, class, text: Some(text), holds } => {
                let (text, kind) = (ScriptText::new(&text), script_file(&class));
                let make = if holds { files::create_init } else { files::create };
                let path = make(&sources, &folder.join(within), &name, kind, &text)?;
                let made = Wrote::Made(below(&folder, &path), Some(text.hash()));
                if holds {
                    self.read_again(std::slice::from_ref(&path)); // what lies below it is next
                }
                batch.written.push(path);
                Ok(made)
            }
            FileWrite::Unmake { files } => {
                batch.written.extend(files.iter().map(|file| folder.join(&file.path)));
                batch.displaced.extend(files::unmake(&sources, &folder, &files)?);
                Ok(Wrote::Done(None))
            }
            FileWrite::Restore { files } => {
                let back = files::restore_all(&sources, &folder, &files)?;
                let first = back.first().map(|path| below(&folder, path)).unwrap_or_default();
                batch.written.extend(back);
                Ok(Wrote::Made(first, None))
            }
            FileWrite::Instance { folder: within, node: Some(node), .. }
            | FileWrite::Files { folder: within, node } => self.make_files(&folder.join(within), &node, batch),
            FileWrite::MoveFolder { id, path, folder: to, name } => self.move_folder((id, &path), (&to, &name), batch),
            FileWrite::Folder { folder: within, name } => {
                let path = files::create_folder(&sources, &folder.join(within), &name)?;
                self.read_again(std::slice::from_ref(&path));
                Ok(Wrote::Made(below(&folder, &path), None))
            }
            FileWrite::Move { path, base, folder: within, was, name, class, text: Some(text) } => {
                let (within, kind) = (folder.join(within), script_file(&class));
                let to = NewName { folder: &within, was: &was, name: &name, kind };
                self.move_file(&folder.join(path), base, to, &ScriptText::new(&text), batch)
            }
            FileWrite::Replace { text: None, .. }
            | FileWrite::Create { text: None, .. }
            | FileWrite::Instance { node: None, .. }
            | FileWrite::Move { text: None, .. } => Ok(Wrote::Failed("its text is not known".to_owned())),
        }
    }
}

impl Worker {
    fn make_files(&self, within: &Path, node: &NewNode, batch: &mut Batch) -> Result<Wrote, WriteError> {
        let new = match self.session.new_files(node) {
            Ok(new) => new,
            Err(reason) => return Ok(Wrote::Failed(reason)),
        };
        let made = files::create_all(&self.session.sources(), within, &node.name, &new.files)?;
        let first = made.first().map(|path| below(&self.session.project().folder, path)).unwrap_or_default();
        batch.written.extend(made);
        Ok(Wrote::Made(first, None))
    }

    fn move_folder(
        &self,
        (id, path): (NodeId, &str),
        (to, name): (&str, &str),
        batch: &mut Batch,
    ) -> Result<Wrote, WriteError> {
        let (folder, sources) = (self.session.project().folder.clone(), self.session.sources());
        if let Some(problem) = self.check_folder(&sources, id, path)? {
            return Ok(problem);
        }
        let (path, to) = (folder.join(path), folder.join(to));
        let new = files::move_folder(&sources, &path, (&to, name))?;
        batch.written.extend([path, to]);
        Ok(Wrote::Made(below(&folder, &new), None))
    }

    fn move_file(
        &self,
        path: &Path,
        base: TextHash,
        to: NewName<'_>,
        text: &ScriptText,
        batch: &mut Batch,
    ) -> Result<Wrote, WriteError> {
        batch.written.extend([path.to_path_buf(), to.folder.to_path_buf()]);
        let Moved { path, displaced, beside } = files::move_to(&self.session.sources(), path, base, to, text)?;
        batch.displaced.push(displaced);
        batch.written.extend(beside);
        let made = Wrote::Made(below(&self.session.project().folder, &path), Some(text.hash()));
        batch.written.push(path);
        Ok(made)
    }
}

pub(super) fn problem(error: &WriteError) -> Wrote {
    match error {
        WriteError::Changed { .. } | WriteError::Gone(_) | WriteError::Holds(_) => Wrote::MovedOn(error.to_string()),
        other => Wrote::Failed(other.to_string()),
    }
}

/// What is going to be done to files, noted in an entry of the journal before it is done: what is
/// removed byte for byte, and what is made of instances.
pub(super) fn note(session: &ServeSession, draft: &mut Draft) {
    let folder = session.project().folder.clone();
    let held = |path: &String| {
        let bytes = std::fs::read(folder.join(path)).ok()?;
        Some(HeldFile { path: path.clone(), bytes: Some(bytes.into()) })
    };
    for (at, write) in &draft.writes {
        let Some(line) = draft.entry.changes.get_mut(*at) else { continue };
        match write {
            FileWrite::Remove { path, .. } | FileWrite::Move { path, .. } => line.held.extend(held(path)),
            FileWrite::Unmake { files } => {
                let there = files.iter().filter_map(|MadeFile { path, hash }| match hash {
                    Some(_) => held(path),
                    None if folder.join(path).is_dir() => Some(HeldFile { path: path.clone(), bytes: None }),
                    None => None,
                });
                line.held.extend(there);
            }
            FileWrite::Instance { folder: within, node: Some(node), .. }
            | FileWrite::Files { folder: within, node } => {
                // Where there are none, the write says so.
                let new = session.new_files(node).map(|new| new.files).unwrap_or_default();
                line.made.extend(new.into_iter().map(|(path, bytes)| {
                    let path = Path::new(within).join(path).to_string_lossy().replace('\\', "/");
                    MadeFile { path, hash: bytes.map(|bytes| TextHash::of_bytes(&bytes)) }
                }));
            }
            FileWrite::Replace { .. }
            | FileWrite::Create { .. }
            | FileWrite::Folder { .. }
            | FileWrite::Restore { .. }
            | FileWrite::MoveFolder { .. }
            | FileWrite::Instance { node: None, .. } => {}
        }
    }
}

pub(super) fn script_file(class: &str) -> ScriptFile {
    match class {
        "Script" => ScriptFile::Server,
        "LocalScript" => ScriptFile::Client,
        _ => ScriptFile::Module,
    }
}

/// `path` relative to the project, with `/`.
fn below(folder: &Path, path: &Path) -> String {
    let canonical = folder.canonicalize();
    let bases = canonical.iter().map(PathBuf::as_path).chain([folder]);
    let mut relative = bases.filter_map(|base| path.strip_prefix(base).ok());
    relative.next().unwrap_or(path).to_string_lossy().replace('\\', "/")
}
