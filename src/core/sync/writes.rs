//! What a run does to files.

use crate::core::{
    ids::{NodeId, TempId},
    journal::{HeldFile, MadeFile},
    protocol::{Expected, NewNode},
    text::TextHash,
};

/// What a file gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileWrite {
    /// Another text.
    Replace {
        /// Relative to the project.
        path: String,
        /// Guard: what it must hold.
        base: TextHash,
        /// `None`: not known yet.
        text: Option<String>,
    },
    /// It is removed.
    Remove {
        /// Relative to the project.
        path: String,
        /// Guard: what it must hold.
        base: TextHash,
    },
    /// It gets another name or folder, and perhaps another text; its `.meta.json` goes along. The file at
    /// the new place is made before the old one goes.
    Move {
        /// Relative to the project.
        path: String,
        /// Guard: what it must hold.
        base: TextHash,
        /// Relative to the project.
        folder: String,
        /// The instance's name until now.
        was: String,
        /// The instance's name.
        name: String,
        /// Its class.
        class: String,
        /// `None`: not known yet.
        text: Option<String>,
    },
    /// The folder of an instance that others lie below gets another name or place, with all that is
    /// in it.
    MoveFolder {
        /// Which. Guard: every file below it is as the tree has it.
        id: NodeId,
        /// Relative to the project.
        path: String,
        /// Where it is to lie, relative to the project.
        folder: String,
        /// The instance's name.
        name: String,
    },
    /// An instance that only Studio has becomes files: its scripts and folders as such, all else a
    /// model.
    Instance {
        /// Relative to the project.
        folder: String,
        /// Which.
        temp_id: TempId,
        /// Guard: what it and all below it must still be.
        expect: Expected,
        /// `None`: not known yet.
        node: Option<Box<NewNode>>,
    },
    /// It is made.
    Create {
        /// Relative to the project.
        folder: String,
        /// The instance's name.
        name: String,
        /// Its class.
        class: String,
        /// `None`: not known yet.
        text: Option<String>,
        /// Others lie below it: it is the `init` file of a folder of its name, made where need be.
        holds: bool,
    },
    /// Files are made of an instance as it was.
    Files {
        /// Relative to the project.
        folder: String,
        /// The instance.
        node: Box<NewNode>,
    },
    /// Files and folders that a run has made go, where they are exactly as it made them.
    Unmake {
        /// Each after the folder that it lies in.
        files: Vec<MadeFile>,
    },
    /// Files and folders that a run has removed come back, byte for byte.
    Restore {
        /// Each after the folder that it lies in.
        files: Vec<HeldFile>,
    },
    /// A folder is made, unless it is there.
    Folder {
        /// Relative to the project.
        folder: String,
        /// The instance's name.
        name: String,
    },
}
