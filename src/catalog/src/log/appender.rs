//! Appending to the log: claims, and the consecutive entries of one process.

use std::sync::Arc;

use super::entry::{self, Entry, Kind, Label, damaged};
use super::reader::{away, get, label_at, newest, numbers};
use super::state::LogWatch;
use crate::error::{CatalogError, Result};
use lodestone_io::Created;
use lodestone_io::store::BlobStore;
use lodestone_types::IdSource;
use uuid::Uuid;

/// Maximum number of attempts at a claim; each lost one means that another process wrote meanwhile.
const CLAIMS_MAX: usize = 1000;

/// An entry not yet known to be stored.
#[derive(Debug)]
struct Pending {
    bytes: Vec<u8>,
    label: Label,
}

/// Appends entries under one claim.
#[derive(Debug)]
pub(super) struct Appender {
    pub(super) store: Arc<dyn BlobStore>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) watch: Arc<LogWatch>,
    /// Number of the claim.
    pub(super) claim: u64,
    /// Number of the next entry.
    next: u64,
    /// Nonce of the newest entry.
    parent: Uuid,
    /// Number of the newest base; 0 if there is none.
    base: u64,
    pending: Option<Pending>,
}

/// Stores `bytes` under `number`, where an earlier attempt may already have stored them. Returns
/// false if another process has taken the number.
///
/// # Errors
/// [`CatalogError::LogAway`] if the outcome is unknown.
fn create(store: &dyn BlobStore, number: u64, bytes: &[u8]) -> Result<bool> {
    let key = entry::key(number);
    let refused = match store.put_create(&key, bytes) {
        Ok(Created::Won) => return Ok(true),
        Ok(Created::Exists) => None,
        Err(error) => Some(away(error)),
    };
    match get(store, &key)? {
        Some(found) if found == bytes => Ok(true),
        Some(found) if entry::is_of_other_format(&found) => Ok(false),
        // Only a complete entry proves another writer: a partial one may be our own.
        Some(found) => match Entry::decode(&found) {
            Ok(_) => Ok(false),
            Err(problem) => {
                Err(CatalogError::LogAway { cause: damaged(&key, problem).to_string() })
            }
        },
        None => {
            let gone = || CatalogError::LogAway { cause: format!("{key} exists and is missing") };
            Err(refused.unwrap_or_else(gone))
        }
    }
}

/// Whether `claim`, just stored by this process, is above everything ever stored. The number may
/// have been used and removed after it was found to be the first free one. The newest entry of a
/// log is never removed, so a listing that begins now reveals that.
fn is_newest(store: &dyn BlobStore, claim: u64, nonce: Uuid) -> Result<bool> {
    if numbers(store)?.last() == Some(&claim) {
        return Ok(true);
    }
    match label_at(store, claim + 1)? {
        // A successor has claimed already; contesting that could go on forever.
        Some(next) if next.parent == Some(nonce) => Err(CatalogError::Fenced),
        Some(_) | None => Ok(false),
    }
}

impl Appender {
    /// Takes over the log at its first free number. `format` is the catalog's format; `waits` says
    /// whether this process will wait for followers. Also returns the label of the previous newest
    /// entry.
    ///
    /// # Errors
    /// [`CatalogError::LogAway`]; [`CatalogError::Fenced`] if another process takes over
    /// concurrently.
    pub(super) fn claim(
        store: &Arc<dyn BlobStore>,
        ids: &Arc<dyn IdSource>,
        format: usize,
        waits: bool,
    ) -> Result<(Self, Option<Label>)> {
        for _ in 0..CLAIMS_MAX {
            let before = newest(&**store)?;
            let claim = before.as_ref().map_or(1, |(number, _)| number + 1);
            let before = before.map(|(_, label)| label);
            let base = match &before {
                Some(Label { kind: Kind::Base(_), .. }) => claim - 1,
                Some(label) => label.base,
                None => 0,
            };
            let (nonce, parent) = (ids.uuid(), before.as_ref().map(|label| label.nonce));
            let kind = Kind::Claim { format, waits };
            let label = Label { nonce, parent, claim, base, kind };
            if create(&**store, claim, &Entry::encode(&label, &[]))?
                && is_newest(&**store, claim, nonce)?
            {
                let appender = Self {
                    store: Arc::clone(store),
                    ids: Arc::clone(ids),
                    watch: Arc::new(LogWatch::new(Arc::clone(store), claim, nonce)),
                    claim,
                    next: claim + 1,
                    parent: nonce,
                    base,
                    pending: None,
                };
                return Ok((appender, before));
            }
        }
        Err(CatalogError::LogAway { cause: "other processes take over this store".into() })
    }

    /// Number of the next entry.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Bytes of the entry not yet known to be stored.
    pub(super) fn pending_bytes(&self) -> u64 {
        self.pending.as_ref().map_or(0, |pending| pending.bytes.len() as u64)
    }

    /// Appends an entry. On [`CatalogError::LogAway`] the entry is kept, and nothing else may be
    /// appended before [`Self::flush`] has stored it.
    ///
    /// # Errors
    /// Those of [`Self::flush`].
    pub(super) fn append(&mut self, kind: Kind, content: &[u8]) -> Result<()> {
        assert!(self.pending.is_none(), "one entry at a time");
        let (nonce, parent) = (self.ids.uuid(), Some(self.parent));
        let label = Label { nonce, parent, claim: self.claim, base: self.base, kind };
        let bytes = Entry::encode(&label, content);
        self.pending = Some(Pending { bytes, label });
        self.flush()
    }

    /// Stores the pending entry, if any. The identical bytes are sent again, because an earlier
    /// attempt may still arrive.
    ///
    /// # Errors
    /// [`CatalogError::LogAway`] if it is unknown whether the entry is stored;
    /// [`CatalogError::Fenced`] if it is not and never will be.
    pub(super) fn flush(&mut self) -> Result<()> {
        let Some(pending) = &self.pending else { return Ok(()) };
        if !create(&*self.store, self.next, &pending.bytes)? {
            return Err(CatalogError::Fenced);
        }
        self.parent = pending.label.nonce;
        if let Kind::Base(_) = pending.label.kind {
            self.base = self.next;
        }
        self.pending = None;
        self.watch.note(|state| state.entry = self.next);
        self.next += 1;
        Ok(())
    }
}
