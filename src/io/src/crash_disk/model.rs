//! The state that a power cut can leave: which names and contents have reached the device.
//!
//! Contents and names are independent, as in the ALICE study of crash vulnerabilities (Pillai et
//! al., OSDI 2014): a file's contents are durable after its own sync, a name after a sync of its
//! directory, and nothing else makes either durable. Real file systems promise more; a product
//! that is right here is right there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::CrashMode;
use lodestone_types::{IdSource, SeededIds};

/// The target of a name: an index into the model's inodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    File(usize),
    Directory(usize),
}

type Names = BTreeMap<String, Node>;

/// One operation on one directory: survives as a whole or not at all.
#[derive(Debug)]
struct Change {
    edits: Vec<(String, Option<Node>)>,
    /// Its sync failed: the operating system has dropped it and will not write it again.
    is_lost: bool,
}

#[derive(Debug, Default)]
struct Directory {
    durable: Names,
    visible: Names,
    unsynced: Vec<Change>,
}

/// Inodes and names; the root is directory 0.
#[derive(Debug)]
pub(super) struct Namespace {
    /// Whether the contents of each file are durable.
    files: Vec<bool>,
    directories: Vec<Directory>,
}

/// Choices that a seed determines.
pub(super) struct Choices(SeededIds);

impl Choices {
    pub(super) fn new(seed: u64) -> Self {
        Self(SeededIds::new(seed))
    }

    /// A number below `bound`, which is at least 1. The bias of the remainder does not matter.
    pub(super) fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound
    }
}

impl Namespace {
    pub(super) const ROOT: usize = 0;

    pub(super) fn new() -> Self {
        Self { files: Vec::new(), directories: vec![Directory::default()] }
    }

    pub(super) fn new_file(&mut self, is_durable: bool) -> usize {
        self.files.push(is_durable);
        self.files.len() - 1
    }

    pub(super) fn new_directory(&mut self) -> usize {
        self.directories.push(Directory::default());
        self.directories.len() - 1
    }

    pub(super) fn look_up(&self, directory: usize, name: &str) -> Option<Node> {
        self.directories[directory].visible.get(name).copied()
    }

    /// Adds a node that was on the disk before the model knew it.
    pub(super) fn adopt(&mut self, directory: usize, name: &str, node: Node) {
        let directory = &mut self.directories[directory];
        directory.durable.insert(name.to_owned(), node);
        directory.visible.insert(name.to_owned(), node);
    }

    /// Carries out one operation on the names of one directory.
    pub(super) fn change(&mut self, directory: usize, edits: Vec<(String, Option<Node>)>) {
        let directory = &mut self.directories[directory];
        apply(&mut directory.visible, &edits);
        directory.unsynced.push(Change { edits, is_lost: false });
    }

    pub(super) fn is_durable(&self, file: usize) -> bool {
        self.files[file]
    }

    pub(super) fn sync_file(&mut self, file: usize) {
        self.files[file] = true;
    }

    pub(super) fn sync_directory(&mut self, directory: usize) {
        let Directory { durable, unsynced, .. } = &mut self.directories[directory];
        for change in unsynced.iter().filter(|change| !change.is_lost) {
            apply(durable, &change.edits);
        }
        unsynced.retain(|change| change.is_lost);
    }

    /// After a failed sync a later one reports success, and still nothing has been written.
    pub(super) fn lose_directory(&mut self, directory: usize) {
        for change in &mut self.directories[directory].unsynced {
            change.is_lost = true;
        }
    }

    pub(super) fn sync_everything(&mut self) {
        self.files.fill(true);
        for directory in 0..self.directories.len() {
            self.sync_directory(directory);
        }
    }

    /// Cuts the power: of the unsynced operations those survive that `choices` picks, and what
    /// survives is durable. Torn contents are up to the caller.
    pub(super) fn cut_power(&mut self, choices: &Choices, mode: CrashMode) {
        for Directory { durable, visible, unsynced } in &mut self.directories {
            let prefix = choices.below(unsynced.len() as u64 + 1) as usize;
            for (position, change) in unsynced.drain(..).enumerate() {
                let survives = match mode {
                    CrashMode::Prefix => position < prefix,
                    CrashMode::Hostile => choices.below(2) == 0,
                };
                if survives {
                    apply(durable, &change.edits);
                }
            }
            visible.clone_from(durable);
        }
    }

    /// Everything visible, parents before children.
    pub(super) fn walk(&self) -> Vec<(PathBuf, Node)> {
        let mut found = Vec::new();
        let mut open = vec![(PathBuf::new(), Self::ROOT)];
        while let Some((path, directory)) = open.pop() {
            for (name, node) in &self.directories[directory].visible {
                let path = path.join(name);
                found.push((path.clone(), *node));
                if let Node::Directory(index) = *node {
                    open.push((path, index));
                }
            }
        }
        found
    }
}

fn apply(names: &mut Names, edits: &[(String, Option<Node>)]) {
    for (name, node) in edits {
        match node {
            Some(node) => names.insert(name.clone(), *node),
            None => names.remove(name),
        };
    }
}
