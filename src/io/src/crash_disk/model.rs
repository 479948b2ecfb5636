//! The model of a disk: which names and contents have reached the device, and so survive a power
//! cut.
//!
//! Contents and names are independent, as in the ALICE study of crash vulnerabilities (Pillai et
//! al., OSDI 2014): a file's contents become durable by its own sync, a name by a sync of its
//! directory, and neither by anything else. Real file systems promise more, so code that is correct
//! on this model is correct on them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::CrashMode;
use crate::checksum;
use lodestone_types::{IdSource, SeededIds};

/// A file. The vault keeps its contents for as long as some state of the disk may show them.
#[derive(Debug)]
pub(super) struct Inode {
    kept: PathBuf,
    hash: OnceLock<u64>,
}

impl Inode {
    /// Creates a file whose contents are, or will be, at `kept`.
    pub(super) fn new(kept: PathBuf) -> Arc<Self> {
        Arc::new(Self { kept, hash: OnceLock::new() })
    }

    pub(super) fn kept(&self) -> &PathBuf {
        &self.kept
    }

    pub(super) fn contents(&self) -> Vec<u8> {
        fs::read(&self.kept).expect("the vault keeps every file")
    }

    /// Hashes the contents, which never change.
    fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| checksum(&self.contents()))
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        // The whole disk may have been deleted already.
        let _ = fs::remove_file(&self.kept);
    }
}

/// The target of a name: a file, or a directory given by its index in the model.
#[derive(Debug, Clone)]
pub(super) enum Node {
    File(Arc<Inode>),
    Directory(usize),
}

impl Node {
    /// Whether both look the same on disk: the same file, or two directories.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) => Arc::ptr_eq(one, other),
            (Self::Directory(_), Self::Directory(_)) => true,
            (Self::File(_), Self::Directory(_)) | (Self::Directory(_), Self::File(_)) => false,
        }
    }
}

type Names = BTreeMap<String, Node>;

/// One operation on one directory, which survives a cut as a whole or not at all.
#[derive(Debug, Clone)]
struct Change {
    edits: Vec<(String, Option<Node>)>,
    /// Its sync failed: the operating system has dropped it and will not write it again.
    is_lost: bool,
}

#[derive(Debug, Default, Clone)]
struct Directory {
    durable: Names,
    visible: Names,
    unsynced: Vec<Change>,
}

/// All files and names; the root is directory 0.
#[derive(Debug, Clone)]
pub(super) struct Namespace {
    /// Files whose contents are not yet durable.
    unsynced: Vec<Arc<Inode>>,
    directories: Vec<Arc<Directory>>,
}

/// A deterministic sequence of choices, derived from a seed.
pub(super) struct Choices(SeededIds);

impl Choices {
    pub(super) fn new(seed: u64) -> Self {
        Self(SeededIds::new(seed))
    }

    /// Draws a number below `bound`, which must be at least 1. The modulo bias is irrelevant here.
    pub(super) fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound
    }
}

impl Namespace {
    pub(super) const ROOT: usize = 0;

    pub(super) fn new() -> Self {
        Self { unsynced: Vec::new(), directories: vec![Arc::default()] }
    }

    /// Marks the contents of a file as not yet durable.
    pub(super) fn add_unsynced(&mut self, file: Arc<Inode>) {
        self.unsynced.push(file);
    }

    pub(super) fn new_directory(&mut self) -> usize {
        self.directories.push(Arc::default());
        self.directories.len() - 1
    }

    /// Returns a directory for modification; recorded moments keep their copy of it.
    fn directory(&mut self, directory: usize) -> &mut Directory {
        Arc::make_mut(&mut self.directories[directory])
    }

    pub(super) fn look_up(&self, directory: usize, name: &str) -> Option<Node> {
        self.directories[directory].visible.get(name).cloned()
    }

    /// Adds a node that was on the disk before the model knew it, and so is durable.
    pub(super) fn adopt(&mut self, directory: usize, name: &str, node: Node) {
        let directory = self.directory(directory);
        directory.durable.insert(name.to_owned(), node.clone());
        directory.visible.insert(name.to_owned(), node);
    }

    /// Applies one operation to the names of a directory.
    pub(super) fn change(&mut self, directory: usize, edits: Vec<(String, Option<Node>)>) {
        let directory = self.directory(directory);
        apply(&mut directory.visible, &edits);
        directory.unsynced.push(Change { edits, is_lost: false });
    }

    pub(super) fn sync_file(&mut self, file: &Arc<Inode>) {
        self.unsynced.retain(|other| !Arc::ptr_eq(other, file));
    }

    pub(super) fn sync_directory(&mut self, directory: usize) {
        let Directory { durable, unsynced, .. } = self.directory(directory);
        for change in unsynced.iter().filter(|change| !change.is_lost) {
            apply(durable, &change.edits);
        }
        unsynced.retain(|change| change.is_lost);
    }

    /// Marks the directory's unsynced changes as lost: after a failed sync a later one reports
    /// success although nothing has been written.
    pub(super) fn lose_directory(&mut self, directory: usize) {
        for change in &mut self.directory(directory).unsynced {
            change.is_lost = true;
        }
    }

    pub(super) fn sync_everything(&mut self) {
        self.unsynced.clear();
        for directory in 0..self.directories.len() {
            self.sync_directory(directory);
        }
    }

    /// Cuts the power: the unsynced operations picked by `choices` survive, and whatever survives
    /// is durable. `tear` makes the remnant of a file that was not synced.
    pub(super) fn cut_power(
        &mut self,
        choices: &Choices,
        mode: CrashMode,
        mut tear: impl FnMut(&Inode) -> Arc<Inode>,
    ) {
        for Directory { durable, unsynced, .. } in self.directories.iter_mut().map(Arc::make_mut) {
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
        }
        for whole in std::mem::take(&mut self.unsynced) {
            let directories = self.directories.iter_mut().map(Arc::make_mut);
            let names = directories.flat_map(|directory| directory.durable.values_mut());
            let is_it =
                |node: &&mut Node| matches!(node, Node::File(file) if Arc::ptr_eq(file, &whole));
            let mut names = names.filter(is_it).peekable();
            if names.peek().is_some() {
                let torn = tear(&whole);
                names.for_each(|node| *node = Node::File(Arc::clone(&torn)));
            }
        }
        for Directory { durable, visible, .. } in self.directories.iter_mut().map(Arc::make_mut) {
            visible.clone_from(durable);
        }
    }

    /// Lists everything visible; parents sort before children.
    pub(super) fn walk(&self) -> BTreeMap<PathBuf, Node> {
        let mut found = BTreeMap::new();
        let mut open = vec![(PathBuf::new(), Self::ROOT)];
        while let Some((path, directory)) = open.pop() {
            for (name, node) in &self.directories[directory].visible {
                let path = path.join(name);
                if let Node::Directory(index) = *node {
                    open.push((path.clone(), index));
                }
                found.insert(path, node.clone());
            }
        }
        found
    }

    /// Hashes all visible names and contents.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut text = Vec::new();
        for (path, node) in self.walk() {
            text.extend_from_slice(path.as_os_str().as_encoded_bytes());
            match node {
                Node::File(file) => {
                    text.push(0);
                    text.extend_from_slice(&file.hash().to_le_bytes());
                }
                Node::Directory(_) => text.push(1),
            }
        }
        checksum(&text)
    }
}

fn apply(names: &mut Names, edits: &[(String, Option<Node>)]) {
    for (name, node) in edits {
        match node {
            Some(node) => names.insert(name.clone(), node.clone()),
            None => names.remove(name),
        };
    }
}
