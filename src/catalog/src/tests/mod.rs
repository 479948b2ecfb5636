//! Tests of the catalog through its public interface, grouped by behaviour.

mod allowance;
mod amend;
mod backup;
mod durability;
mod files;
mod keys;
mod listing;
mod migration;
mod model;
mod open;
mod queue;
mod scopes;
mod sessions;
mod webhooks;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread::Scope;

use rusqlite::Connection;
use rusqlite::types::Value as Cell;

use super::{Catalog, CatalogOptions, Tenant};
use crate::job::{
    Claim, ClaimLimits, Duty, MetadataChange, NewJob, Outcome, Settlement, Submitted,
};
use lodestone_types::{
    Clock, CollectionId, JobErrorCode, JobStatus, ManualClock, Metadata, SeededIds, Sequence,
    SourceDetail, SourceId, SourceKind, SubTenantId, TenantId, TenantMode, Timestamp,
};

const NO_LIMIT: ClaimLimits = ClaimLimits { jobs: 1000, bytes: u64::MAX };
const PUBLISHED: Outcome = Outcome::Published { chunks: 3 };

/// A catalog in its own directory, with a clock that stands still.
struct Fixture {
    directory: tempfile::TempDir,
    clock: Arc<ManualClock>,
    ids: Arc<SeededIds>,
    options: CatalogOptions,
    catalog: Catalog,
}

impl Fixture {
    fn new() -> Self {
        Self::with(CatalogOptions::default())
    }

    /// Asserts that the sums kept by triggers equal those over the rows.
    fn assert_sums_are_exact(&self) {
        let checks = [
            (
                "SELECT collection, jobs, bytes FROM queue_use ORDER BY 1",
                "SELECT collection, count(*), sum(size_bytes) FROM jobs WHERE status = 'queued'
                 GROUP BY collection ORDER BY 1",
            ),
            (
                "SELECT collection, sub_tenant, bytes FROM sub_tenant_use ORDER BY 1, 2",
                "SELECT collection, sub_tenant, sum(bytes) FROM known_sources WHERE bytes > 0
                 GROUP BY collection, sub_tenant ORDER BY 1, 2",
            ),
            (
                "SELECT collection, sessions, bytes FROM session_use ORDER BY 1",
                "SELECT s.collection, count(DISTINCT s.id),
                    coalesce(sum(octet_length(t.question) + octet_length(t.answer)), 0)
                 FROM sessions s LEFT JOIN turns t ON t.session = s.id
                 GROUP BY s.collection ORDER BY 1",
            ),
        ];
        let rows = |sql: &str| {
            self.catalog.read(|connection| {
                let mut select = connection.prepare(sql)?;
                let width = select.column_count();
                let rows = select.query_map([], |row| {
                    (0..width).map(|column| row.get(column)).collect::<Result<Vec<Cell>, _>>()
                })?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            })
        };
        for (kept, counted) in checks {
            assert_eq!(rows(kept).unwrap(), rows(counted).unwrap(), "{kept}");
        }
    }

    fn with(options: CatalogOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let ids = Arc::new(SeededIds::new(7));
        let path = directory.path().join("catalog.sqlite");
        let catalog = Catalog::open(&path, options, clock.clone(), ids.clone()).unwrap();
        Self { directory, clock, ids, options, catalog }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("catalog.sqlite")
    }

    /// Blocks the writer, so that callers queue up, until the returned closure is called.
    fn hold_writer<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> impl FnOnce() {
        let (open_gate, gate) = channel::<()>();
        let (begin, begun) = channel::<()>();
        let hold = move |_: &Connection| {
            begin.send(()).unwrap();
            gate.recv().unwrap();
            Ok(())
        };
        let holder = scope.spawn(move || self.catalog.write(hold));
        begun.recv().unwrap();
        move || {
            open_gate.send(()).unwrap();
            holder.join().unwrap().unwrap();
        }
    }

    /// Waits until this many closures are queued for the writer.
    fn until_waiting(&self, count: u64) {
        while self.catalog.inner.writer.counters.waiting.load(Ordering::SeqCst) < count {
            std::thread::yield_now();
        }
    }

    /// Reopens the catalog as after a stop of the server.
    fn reopen(self) -> Self {
        let Self { directory, clock, ids, options, catalog } = self;
        drop(catalog);
        let path = directory.path().join("catalog.sqlite");
        let catalog = Catalog::open(&path, options, clock.clone(), ids.clone()).unwrap();
        Self { directory, clock, ids, options, catalog }
    }

    fn tenant(&self, name: &str) -> Arc<Tenant> {
        self.catalog.create_tenant(tenant(name), TenantMode::Standard, None).unwrap()
    }

    fn submit(&self, collection: CollectionId, source: &str) -> Submitted {
        self.catalog.submit(self.job(collection, source)).unwrap()
    }

    fn job(&self, collection: CollectionId, source_name: &str) -> NewJob {
        NewJob {
            collection,
            sub_tenant: SubTenantId::default_name(),
            source: source(source_name),
            kind: SourceKind::Text,
            raw_key: format!("raw/{source_name}/{:x}", self.clock.now().0),
            filename: format!("{source_name}.txt"),
            url: String::new(),
            content_type: "text/plain".into(),
            size_bytes: 10,
            content_hash: [7; 32],
            tenant_metadata: MetadataChange::Keep,
            document_metadata: MetadataChange::Replace(metadata("by", source_name)),
            known_version: None,
            uploaded_at: self.clock.now(),
            origin_at: Some(Timestamp(5)),
            detail: SourceDetail::default(),
        }
    }

    fn claim(&self) -> Option<Claim> {
        self.catalog.claim(Duty::Process, NO_LIMIT).unwrap()
    }

    fn claimed_sources(&self, limits: ClaimLimits) -> Vec<String> {
        let claim = self.catalog.claim(Duty::Process, limits).unwrap();
        let jobs = claim.map(|claim| claim.jobs).unwrap_or_default();
        jobs.iter().map(|job| job.source.as_str().to_owned()).collect()
    }

    fn settle(
        &self,
        collection: CollectionId,
        sequence: Sequence,
        outcome: Outcome,
    ) -> Vec<String> {
        let settlements = vec![Settlement { sequence, outcome }];
        self.catalog.settle(collection, settlements, None).unwrap().obsolete_raw_keys
    }

    fn status(&self, collection: CollectionId, name: &str) -> Option<JobStatus> {
        let sub_tenant = SubTenantId::default_name();
        let row = self.catalog.latest(collection, &sub_tenant, &source(name)).unwrap();
        row.map(|row| row.status)
    }
}

fn faulted() -> Outcome {
    Outcome::Failed { error_code: JobErrorCode::EmbeddingFailed, message: "no memory".into() }
}

fn rejected() -> Outcome {
    Outcome::Rejected { error_code: JobErrorCode::NoText, message: "no text".into() }
}

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

fn sub(name: &str) -> SubTenantId {
    SubTenantId::parse(name).unwrap()
}

fn source(name: &str) -> SourceId {
    SourceId::parse(name).unwrap()
}

fn metadata(key: &str, value: &str) -> Metadata {
    [(key.to_owned(), value.into())].into_iter().collect()
}
