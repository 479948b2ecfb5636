//! Handles jobs that fail: on a full disk, and while an older version of their source stays
//! visible.
//!
//! Metadata changed while a job waits is applied to both the job and the visible version. Its words
//! become searchable with the job's new version. If the job fails, the visible version stays, so
//! its words must be made searchable before the job ends: its original is processed again in place,
//! under its current record, with the same version and sequence.

use std::sync::Arc;
use std::time::Duration;

use crate::ingest::{Ingest, IngestError, pipeline};
use lodestone_catalog::job::{ClaimedJob, Outcome, Settlement};
use lodestone_catalog::{CatalogError, Tenant};
use lodestone_storage::collection::{AddedSegment, Collection, CollectionError, Edit, Snapshot};
use lodestone_storage::segment::VectorKind;
use lodestone_types::{CollectionId, ErrorKind, JobErrorCode, SourceRecord, limits};

/// Pause of a worker after it had to release jobs.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
/// Maximum times that a visible version is processed again because its metadata changed meanwhile.
const ROUNDS_MAX: usize = 8;

/// Whether a job with this outcome is not retried.
pub(super) fn is_final(job: &ClaimedJob, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Rejected { .. } => true,
        Outcome::Failed { .. } => job.attempts + 1 >= limits::ATTEMPTS_MAX,
        Outcome::Published { .. } | Outcome::Released => false,
    }
}

/// Whether the catalog may accept later what it has refused: not if the change may have been made,
/// nor if another process writes. A catalog that accepts nothing until a restart is retried in
/// vain.
fn may_pass(error: &CatalogError) -> bool {
    match error {
        CatalogError::InDoubt { .. } | CatalogError::Fenced => false,
        error => matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::Unavailable),
    }
}

/// The outcome of jobs whose publication failed as a whole. Nothing was made visible. If the cause
/// is outside the jobs, they wait; otherwise they use up an attempt.
pub(super) fn give_back(error: &IngestError) -> Outcome {
    tracing::error!(%error, "publishing a batch failed");
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::Unavailable | ErrorKind::Overloaded => {
            Outcome::Released
        }
        _ if matches!(error, IngestError::Collection(CollectionError::Poisoned { .. })) => {
            Outcome::Released
        }
        _ => {
            let message = pipeline::INTERNAL_FAULT.to_owned();
            Outcome::Failed { error_code: JobErrorCode::Internal, message }
        }
    }
}

impl Ingest {
    /// Settles the jobs of a claim that failed. If even that cannot be recorded, because the disk
    /// is full, the store of the catalog's log is away or another process holds the catalog's file
    /// for long, the worker holds on to the jobs and retries, since nobody else would ever release
    /// them.
    pub(super) fn settle_when_there_is_room(
        &self,
        collection: CollectionId,
        settlements: &[Settlement],
    ) {
        let mut has_waited = false;
        loop {
            match self.catalog.settle(collection, settlements.to_vec(), None) {
                Ok(_) => return,
                Err(error) if may_pass(&error) && !self.stopping.is_set() => {
                    if !has_waited {
                        tracing::warn!(%error, "giving jobs back failed: the worker keeps them and \
                            tries again");
                    }
                    has_waited = true;
                    self.stopping.wait(PAUSE);
                }
                Err(error) => {
                    tracing::error!(%error, "giving jobs back failed: they wait for a restart");
                    return;
                }
            }
        }
    }

    /// Settles a job that has failed for good. Done under the writer's lock, so that no amendment
    /// comes between the last check of the visible version and the end of the job.
    pub(super) fn end_badly(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        job: &ClaimedJob,
        outcome: Outcome,
    ) -> Result<(), IngestError> {
        let end = |outcome| {
            let settlements = vec![Settlement { sequence: job.sequence, outcome }];
            self.catalog.settle(collection.id(), settlements, collection.head())
        };
        let mut refreshed = None;
        for _ in 0..ROUNDS_MAX {
            // A collection that refuses writes has refused amendments too.
            let Ok(writer) = collection.writer() else { break };
            let base = writer.base();
            let stale = self.amended_version(&base, job)?;
            let Some(stale) = stale.filter(|record| refreshed.as_ref() != Some(record)) else {
                end(outcome)?;
                // An upload that failed before has lost its original.
                if let Ok(visible) = base.record(&job.sub_tenant, &job.source) {
                    self.recount(collection, &job.sub_tenant, &job.source, visible.as_ref());
                }
                return Ok(());
            };
            drop(writer);
            match self.refresh(tenant, collection, stale)? {
                Some(record) => refreshed = Some(record),
                None => {
                    end(Outcome::Released)?;
                    return Ok(());
                }
            }
        }
        end(outcome)?;
        Ok(())
    }

    /// The visible version, if metadata was changed while the job waited or ran.
    fn amended_version(
        &self,
        snapshot: &Snapshot,
        job: &ClaimedJob,
    ) -> Result<Option<SourceRecord>, IngestError> {
        if self.catalog.amended(&[(job.sequence, 0)])?.is_empty() {
            return Ok(None);
        }
        let found = snapshot.find(&job.sub_tenant, &job.source);
        Ok(found.map(|found| found.record()).transpose().map_err(CollectionError::from)?)
    }

    /// Processes a visible version again. Returns the record that is then visible, or the given one
    /// if it cannot be improved; `None` if it should be tried again later.
    fn refresh(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        record: SourceRecord,
    ) -> Result<Option<SourceRecord>, IngestError> {
        let model = match self.model_of(tenant, collection) {
            Ok(model) => model,
            Err(error) => {
                tracing::error!(source = %record.id, %error, "changed metadata is not searchable");
                return Ok(Some(record));
            }
        };
        let draft = self.redraft(tenant, &*model, &record);
        let sources = draft.and_then(|draft| self.embed(tenant, &*model, vec![draft], None));
        let sources = match sources {
            Ok(sources) => sources,
            Err(Outcome::Released) => return Ok(None),
            Err(outcome) => {
                let source = &record.id;
                tracing::error!(%source, ?outcome, "changed metadata is not searchable");
                return Ok(Some(record));
            }
        };
        let segment = collection.build(model.dimension(), VectorKind::F16, &sources)?;
        let writer = collection.writer();
        let mut writer = match writer {
            Err(error) if error.kind() == ErrorKind::Unavailable => return Ok(None),
            writer => writer?,
        };
        let base = writer.base();
        let visible = base.find(&record.sub_tenant, &record.id).map(|found| found.record());
        let visible = visible.transpose().map_err(CollectionError::from)?;
        if visible.as_ref() != Some(&record) {
            // Deleted or changed in the meantime: the next round checks again.
            drop(writer);
            collection.discard(&segment)?;
            return Ok(Some(record));
        }
        let add = vec![AddedSegment { segment, withheld: Vec::new() }];
        let embedding = Some(model.fingerprint().to_owned());
        writer.commit(&Edit { add, embedding, ..Edit::default() })?;
        self.record_head(collection)?;
        drop(writer);
        self.look_after(collection);
        Ok(sources.into_iter().next().map(|source| source.record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a refusal because another process held the catalog is waited out; a change that may
    /// have been made, or never will be, is not retried.
    #[test]
    fn refusals_that_may_pass_are_told_from_those_that_will_not() {
        let cause = || "database is locked".to_owned();
        assert!(may_pass(&CatalogError::Poisoned { cause: cause() }));
        assert!(may_pass(&CatalogError::LogAway { cause: cause() }));
        assert!(may_pass(&CatalogError::StorageFull));
        assert!(!may_pass(&CatalogError::InDoubt { cause: cause() }));
        assert!(!may_pass(&CatalogError::Fenced));
        assert!(!may_pass(&CatalogError::Corrupt { what: cause() }));
    }
}
