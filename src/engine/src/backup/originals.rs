//! The originals that a tenant needs: those of its visible sources, unfinished jobs and files.

use std::collections::{BTreeSet, HashMap};

use super::BackupError;
use lodestone_catalog::Moment;
use lodestone_io::store::Key;
use lodestone_storage::collection::{CollectionError, Snapshot};
use lodestone_types::CollectionId;

/// The originals of a tenant, divided into those that are there and those that are lost.
pub(super) struct Originals<'a> {
    listed: HashMap<&'a str, &'a Key>,
    pub(super) wanted: BTreeSet<&'a Key>,
    /// Names of needed originals that are not listed.
    pub(super) lost: BTreeSet<String>,
}

impl<'a> Originals<'a> {
    /// `listing` names the originals that are there.
    pub(super) fn new(listing: &'a [Key]) -> Self {
        let listed = listing.iter().map(|key| (key.as_str(), key)).collect();
        Self { listed, wanted: BTreeSet::new(), lost: BTreeSet::new() }
    }

    /// Adds what a row of the catalog names, as far as it is there.
    pub(super) fn see_row(&mut self, row: &serde_json::Value) {
        let cells = row.as_array().into_iter().flatten().filter_map(|cell| cell.as_str());
        self.wanted.extend(cells.filter_map(|text| self.listed.get(text).copied()));
    }

    /// Adds the originals that unfinished jobs and files need.
    pub(super) fn see_unfinished(
        &mut self,
        moment: &Moment,
        of: CollectionId,
    ) -> Result<(), BackupError> {
        for raw_key in moment.originals(of)? {
            self.see(raw_key);
        }
        Ok(())
    }

    /// Adds the originals of the visible sources; returns the number of these sources.
    pub(super) fn see_sources(&mut self, snapshot: &Snapshot) -> Result<u64, BackupError> {
        let mut sources = 0;
        for found in snapshot.all_sources() {
            self.see(found.record().map_err(CollectionError::from)?.raw_key);
            sources += 1;
        }
        Ok(sources)
    }

    /// Adds an original; client vectors and memories have none, and an empty name.
    fn see(&mut self, raw_key: String) {
        match self.listed.get(raw_key.as_str()).copied() {
            Some(key) => {
                self.wanted.insert(key);
            }
            None if raw_key.is_empty() => {}
            None => {
                self.lost.insert(raw_key);
            }
        }
    }
}
