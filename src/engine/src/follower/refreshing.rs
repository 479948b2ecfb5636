//! Keeps open collections at their newest versions, and drops cached copies of deleted blobs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::{Follower, Signals};
use crate::copies;
use lodestone_catalog::CatalogError;
use lodestone_io::store::BlobStore;
use lodestone_storage::collection::Collection;
use lodestone_types::ErrorKind;

/// Interval at which replaced versions are checked and released.
const FORGET: Duration = Duration::from_secs(3);
/// Interval at which all cached copies are checked for deleted blobs.
const COPIES: Duration = Duration::from_secs(10);

impl Follower {
    pub(super) fn refresh(&self) {
        let (mut copies_seen, mut are_changed): (Option<Instant>, bool) = Default::default();
        loop {
            let mut signals = self.signals.lock();
            let is_idle = |signals: &mut Signals| !signals.has_changes && !signals.is_stopping;
            self.changed.wait_while_for(&mut signals, is_idle, FORGET);
            if signals.is_stopping {
                return;
            }
            let has_changes = std::mem::take(&mut signals.has_changes);
            drop(signals);
            are_changed |= has_changes;
            let is_due = copies_seen.is_none_or(|at| at.elapsed() >= COPIES);
            if is_due {
                self.forget_deleted();
                self.bucket.iter().for_each(|bucket| bucket.fit_copies());
                copies_seen = Some(Instant::now());
            }
            for collection in self.registry.open_collections() {
                if has_changes {
                    self.bring_up_to_date(&collection);
                }
                collection.forget_earlier();
                if is_due && let Err(error) = collection.fetch_away() {
                    let id = collection.id();
                    tracing::warn!(collection = %id, %error, "a segment is still missing");
                }
                if is_due && are_changed {
                    self.forget_originals(&collection);
                }
            }
            are_changed &= !is_due;
        }
    }

    fn forget_deleted(&self) {
        let Some(bucket) = &self.bucket else { return };
        if let Err(error) = copies::forget_deleted(&**bucket, &self.catalog, &BTreeSet::new()) {
            tracing::warn!(%error, "cached blobs of deleted tenants may remain");
        }
    }

    fn forget_originals(&self, collection: &Collection) {
        let Some(bucket) = &self.bucket else { return };
        if let Err(error) = copies::forget_originals(&**bucket, &self.catalog, collection) {
            let id = collection.id();
            tracing::warn!(collection = %id, %error, "copies of deleted originals may remain");
        }
    }

    fn bring_up_to_date(&self, collection: &Collection) {
        let id = collection.id();
        let refreshed = match self.catalog.head(id) {
            Ok(head) => collection.refresh(head),
            Err(CatalogError::CollectionUnknown { .. }) => {
                drop(self.registry.close(id));
                return self.bucket.iter().for_each(|bucket| copies::forget(&**bucket, id));
            }
            Err(error) => {
                return tracing::warn!(collection = %id, %error, "head of a collection unknown");
            }
        };
        match refreshed {
            Ok(()) => {}
            Err(error) if error.is_too_new() => self.registry.note_format(id, Some(&error)),
            // Its tenant is being deleted, or a request is loading it.
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                tracing::debug!(collection = %id, %error, "refreshing a collection failed");
            }
            Err(error) => {
                tracing::error!(collection = %id, %error, "refreshing a collection failed")
            }
        }
    }
}
