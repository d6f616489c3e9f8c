//! The files that a run writes, by the one writer.

use std::path::{Path, PathBuf};

use super::work::Worker;
use crate::{
    core::{
        ids::NodeId,
        sync::{FileWrite, Wrote},
        text::ScriptText,
    },
    files::{self, Displaced, ScriptFile, WriteError},
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
            && let Err(error) = self.session.catch_up(Some(written))
        {
            log::error!("what a sync wrote could not be read again: {error}");
        }
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
            FileWrite::Instance { folder: within, node: Some(node), .. } => match self.session.new_files(&node) {
                Ok(new) => {
                    let made = files::create_all(&sources, &folder.join(within), &node.name, &new.files)?;
                    let first = made.first().map(|path| below(&folder, path)).unwrap_or_default();
                    batch.written.extend(made);
                    Ok(Wrote::Made(first, None))
                }
                Err(reason) => Ok(Wrote::Failed(reason)),
            },
            FileWrite::MoveFolder { id, path, folder: to, name } => self.move_folder((id, &path), (&to, &name), batch),
            FileWrite::Folder { folder: within, name } => {
                let path = files::create_folder(&sources, &folder.join(within), &name)?;
                self.read_again(std::slice::from_ref(&path));
                Ok(Wrote::Made(below(&folder, &path), None))
            }
            FileWrite::Move { path, base, folder: within, name, class, text: Some(text) } => {
                let (path, text) = (folder.join(path), ScriptText::new(&text));
                let to = (&*folder.join(within), &*name, script_file(&class));
                batch.written.push(path.clone());
                batch.written.push(to.0.to_path_buf());
                let (path, displaced) = files::move_to(&sources, &path, base, to, &text)?;
                batch.displaced.push(displaced);
                let made = Wrote::Made(below(&folder, &path), Some(text.hash()));
                batch.written.push(path);
                Ok(made)
            }
            FileWrite::Replace { text: None, .. }
            | FileWrite::Create { text: None, .. }
            | FileWrite::Instance { node: None, .. }
            | FileWrite::Move { text: None, .. } => Ok(Wrote::Failed("its text is not known".to_owned())),
        }
    }
}

pub(super) fn problem(error: &WriteError) -> Wrote {
    match error {
        WriteError::Changed { .. } | WriteError::Gone(_) => Wrote::MovedOn(error.to_string()),
        other => Wrote::Failed(other.to_string()),
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
