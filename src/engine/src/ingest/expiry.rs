//! Removes memories whose lifetime has ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ingest::maintenance::KNOWN_PER_STEP;
use crate::ingest::{Ingest, IngestError};
use lodestone_storage::collection::{Collection, CollectionError, Edit, Snapshot};
use lodestone_types::{Filter, SourceId, SourceKind, SubTenantId, memory};

impl Ingest {
    /// Removes expired memories, which are invisible already, to free their disk space; returns
    /// their number.
    ///
    /// # Errors
    /// Errors of the disk or the catalog.
    pub fn remove_expired_memories(
        &self,
        collection: &Arc<Collection>,
    ) -> Result<usize, IngestError> {
        let filter = memory::expired(self.clock.now());
        if expired_memories(&collection.snapshot(), &filter)?.is_empty() {
            return Ok(0);
        }
        let mut writer = collection.writer()?;
        let remove_sources = expired_memories(&writer.base(), &filter)?;
        let outcome = writer.commit(&Edit { remove_sources, ..Edit::default() })?;
        self.record_head(collection)?;
        let mut removed: BTreeMap<SubTenantId, Vec<SourceId>> = BTreeMap::new();
        for (scope, id) in &outcome.removed {
            removed.entry(scope.clone()).or_default().push(id.clone());
        }
        for (scope, ids) in removed {
            for part in ids.chunks(KNOWN_PER_STEP) {
                self.catalog.cancel_sources(collection.id(), &scope, part)?;
            }
        }
        drop(writer);
        self.delete_originals(&outcome.orphaned_uploads);
        Ok(outcome.removed.len())
    }
}

/// Finds the memories of all sub-tenants that pass `filter`. Documents may have the same key, so
/// the kind is checked too.
fn expired_memories(
    snapshot: &Snapshot,
    filter: &Filter,
) -> Result<Vec<(SubTenantId, SourceId)>, CollectionError> {
    let mut expired = Vec::new();
    for live in &snapshot.segments {
        let segment = &live.segment;
        let passing = segment.matching(filter)? - &live.dead.rows;
        for source in live.sources_of(&passing) {
            let record = segment.record(source)?;
            if record.kind == SourceKind::Memory {
                expired.push((record.sub_tenant, record.id));
            }
        }
    }
    Ok(expired)
}
