//! The commit log: manifests with ascending numbers, each created exactly once.

use std::sync::Arc;

use crate::collection::open::check_head;
use crate::collection::{CollectionError, Manifest, layout};
use lodestone_io::store::{BlobStore, Created, StoreError};
use lodestone_types::{CollectionId, CommitHead, ErrorKind};

/// Result of an attempt to commit.
#[derive(Debug)]
pub enum Commit {
    /// The manifest is durable and is the successor of its base.
    Done,
    /// Another writer took the number: rebase the edit on this head.
    Conflict(Box<Manifest>),
    /// A writer with a later epoch has taken over.
    Fenced,
}

/// The manifests of collections, stored as blobs with atomic creation.
#[derive(Debug)]
pub struct CommitLog {
    store: Arc<dyn BlobStore>,
}

impl CommitLog {
    /// Opens the log in `store`.
    pub fn new(store: Arc<dyn BlobStore>) -> Self {
        Self { store }
    }

    fn read(&self, collection: CollectionId, version: u64) -> Result<Manifest, CollectionError> {
        let bytes = self.store.get(&layout::manifest(collection, version))?;
        Manifest::decode(&bytes, collection, version)
    }

    /// Reads the newest manifest; [`Manifest::empty`] before the first commit.
    ///
    /// # Errors
    /// Errors of the store. A damaged newest manifest is an error; there is no fallback to an older
    /// one.
    pub fn head(&self, collection: CollectionId) -> Result<Manifest, CollectionError> {
        let newest = || -> Result<Option<u64>, CollectionError> {
            let names = self.store.list(&layout::manifests(collection))?;
            Ok(names.iter().filter_map(layout::manifest_version).max())
        };
        let mut listed = newest()?;
        while let Some(version) = listed {
            let read = self.read(collection, version);
            // Since the listing, this number may have been collected and even reused by a late
            // writer. A manifest is never collected while it is the newest.
            let now = newest()?;
            if now == listed {
                return read;
            }
            listed = now;
        }
        Ok(Manifest::empty(collection))
    }

    /// Reads the newest manifest, which must be or descend from `expected`, the newest commit that
    /// the catalog records.
    ///
    /// # Errors
    /// As [`Self::head`]; [`CollectionError::HeadMissing`] and [`CollectionError::BadManifest`] for
    /// an older manifest or one of another history.
    pub fn checked_head(
        &self,
        collection: CollectionId,
        expected: Option<CommitHead>,
    ) -> Result<Manifest, CollectionError> {
        let head = self.head(collection)?;
        check_head(collection, &head, expected)?;
        Ok(head)
    }

    /// Publishes `next`, built on `base`. When this returns `Done`, the commit survives a power
    /// cut. Costs two fsyncs.
    ///
    /// # Errors
    /// After an error it is unknown whether `next` is durable: the caller must not acknowledge
    /// anything that depends on it.
    pub fn commit(&self, base: &Manifest, next: &Manifest) -> Result<Commit, CollectionError> {
        let collection = CollectionId(next.collection);
        let key = layout::manifest(collection, next.version);
        match self.store.put_create(&key, &next.encode())? {
            Created::Won => {}
            Created::Exists => {
                let winner = self.head(collection)?;
                if winner.epoch > next.epoch {
                    return Ok(Commit::Fenced);
                }
                return Ok(Commit::Conflict(Box::new(winner)));
            }
        }
        // Old manifests are only deleted in ascending order. If the base is still there with its
        // nonce, the number above it was never free again, so this creation was the only one. A
        // base that is gone, or never had a file, proves nothing; then the head decides.
        let still_base = match self.read(collection, base.version) {
            Ok(found) => found.nonce == base.nonce,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            // No other process writes to a directory, because it is locked.
            Err(_) if !self.store.is_shared() => true,
            Err(CollectionError::Store(StoreError::Io(error))) => {
                // The manifest is there, but unreadable. The next writer finds out whose it is.
                return Err(StoreError::Remote { problem: error.to_string() }.into());
            }
            Err(error) => return Err(error),
        };
        if still_base {
            return Ok(Commit::Done);
        }
        let head = self.head(collection)?;
        let is_ours = head.nonce == next.nonce || head.recent.contains(&next.nonce);
        Ok(if is_ours { Commit::Done } else { Commit::Fenced })
    }

    /// Deletes manifests older than `head` one by one, oldest first. Returns their number.
    ///
    /// # Errors
    /// Errors of the store; a repeated call continues where this one stopped.
    pub fn collect(&self, collection: CollectionId, head: u64) -> Result<usize, CollectionError> {
        let mut names = self.store.list(&layout::manifests(collection))?;
        names.sort_by_key(layout::manifest_version);
        let old = names
            .iter()
            .filter(|name| layout::manifest_version(name).is_some_and(|version| version < head));
        let mut deleted = 0;
        for name in old {
            self.store.delete(name)?;
            deleted += 1;
        }
        Ok(deleted)
    }
}
