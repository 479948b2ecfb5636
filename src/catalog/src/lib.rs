//! The catalog: tenants, sub-tenants, jobs, keys, webhooks, conversations and idempotency keys in
//! one SQLite file.
//!
//! It knows nothing of documents, chunks or vectors, and only the ids of collections. It is the
//! only crate that speaks SQL. One thread writes in group commits (`writer`), so any number of
//! concurrent callers share one fsync; a call that changes something returns once the change would
//! survive a power cut.
//!
//! ```text
//! callers --closures--> writer thread: BEGIN [savepoint ...]* COMMIT+fsync --answers--> callers
//! callers <--rows------ up to 4 read-only connections (WAL: they never wait for the writer)
//!
//! catalog.sqlite, format 8                    key                         also found by
//!   tenants       one row each, also those    collection                  name, unless deleted
//!                 with a pending delete
//!     sub_tenants all but `default`           collection, name
//!     jobs        newest and recent ones      seq = types::Sequence       source; status; id
//!       job_counts, queue_total, queue_use    kept by triggers on jobs
//!     known_sources scopes of source ids      source, scope               scope
//!       tenant_use  triggers, also on files   collection
//!       sub_tenant_use triggers               collection, sub-tenant
//!     tenant_limits those with own limits     collection
//!     files       uploads that are no sources collection, id
//!     vector_stores named sub-tenants         collection, name
//!     file_batches the last 200 of a tenant   collection, sub-tenant, id  age
//!     sessions    one row each                id                          scope and name; age
//!       turns     the last 10 of a session    id                          session
//!       session_use triggers on sessions      collection
//!   api_keys      hash of the secret          id
//!     key_scopes  tenants of a scoped key     key, tenant                 tenant
//!   webhooks      receivers of events         id                          all tenants
//!     webhook_scopes tenants of a scoped one  webhook, tenant             tenant
//!     deliveries  an event for a webhook      id                          due; source; webhook
//!   idempotency   first response to a key     id                          key, path, name; age
//! ```
//!
//! `v1/t/<collection>` in the blob store holds the descriptor of a tenant, from which it is
//! restored if the catalog file is lost (see `descriptors`).
//!
//! Invariants:
//! - Sequences increase with acceptance and are never reused, not even by a restored catalog.
//! - A name belongs to at most one tenant that is not deleted; collection ids are never reused.
//! - Rows of a collection with a pending delete are never read, except to remove them.
//! - A source has at most one job in progress and at most one queued.
//! - After a failed commit nothing is written until the file is reopened.
//! - Memory does not grow with tenants or jobs: caches are bounded, and every look-up uses an
//!   index.
//!
//! Any operation that reads or writes can fail with a storage error, for the file or its disk; `#
//! Errors` sections list only the errors beyond those, or name both.
//!
//! Start-up sequence: open, `interrupted`, settle the jobs that manifests already contain,
//! `requeue_interrupted`, then claim.
//!
//! Modules:
//! - `open`: connections, pragmas; `migrations`: formats; `error`: errors
//! - `log`: a copy of every commit in a blob store, from which another machine can take over;
//!   `follow`: a read-only catalog that follows another process's
//! - `writer`: group commit; `readers`: read-only connections; `rows`: conversion of columns to
//!   values
//! - `cache`: bounded maps of tenants and keys; `work`: signals and stages, in memory only
//! - `tenants`, `sub_tenants`: creation and deletion of scopes; `descriptors`: tenants stored next
//!   to the catalog; `sequences`: numbering of accepted operations
//! - `job`: data of a job, and the inputs and outputs of the queue
//! - `submit`, `amend`, `claim`, `fetched`, `settle`, `retry`, `cancel`, `recovery`: operations on
//!   jobs
//! - `job_watch`: watchers of individual jobs
//! - `webhooks`: receivers; `outbox`: events written in the transaction that causes them;
//!   `deliveries`: delivery attempts and the log
//! - `listing`: jobs as shown by status requests and listings; `known`: scopes of source ids
//! - `tenant_limits`: limits of tenants; `allowance`: usage of tenants, and checks against the
//!   limits
//! - `files`: uploads that are not sources; `vector_stores`: sub-tenants by their names as vector
//!   stores; `file_batches`: files ingested together
//! - `keys`, `key_text`: API keys and their text format
//! - `sessions`: past turns; `idempotency`: repeated requests
//! - `export`: rows for a backup, and their import into a fresh catalog
//! - `meters`, `gauges`: measurements for operators
#![forbid(unsafe_code)]

mod allowance;
mod amend;
mod built;
mod cache;
mod cancel;
mod claim;
mod deliveries;
pub mod descriptors;
mod error;
mod export;
mod fetched;
mod file_batches;
mod files;
mod follow;
mod gauges;
mod idempotency;
pub mod job;
mod job_watch;
mod key_text;
mod keys;
mod known;
mod listing;
mod log;
mod meters;
mod migrations;
mod open;
mod outbox;
mod readers;
mod recovery;
mod retry;
mod rows;
mod sequences;
mod sessions;
mod settle;
mod steps;
mod sub_tenants;
mod submit;
mod tenant_limits;
mod tenants;
mod vector_stores;
mod webhooks;
mod work;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

pub use allowance::{Allowance, TenantUse};
pub use amend::Amended;
pub use cancel::Canceled;
pub use deliveries::{Attempt, DeliveryRow, DueDelivery, NextDelivery};
pub use error::CatalogError;
pub use export::{Import, Moment};
pub use file_batches::{BatchFile, FileBatch, FileProblem};
pub use files::{FilePage, StoredFile};
pub use follow::{FollowState, LeaseCheck};
pub use gauges::CatalogGauges;
pub use idempotency::{IDEMPOTENCY_MILLIS, RequestGuard, RequestStart};
pub use job_watch::{JobWatch, Wake};
pub use key_text::KeyText;
pub use keys::{AuthError, CreatedKey, KeyInfo, NewKey};
pub use listing::{JobCounts, JobFilter, JobPage, JobScope, OpenSource};
pub use log::{CatalogLog, LogState};
pub use retry::Retry;
pub use sessions::Turn;
pub use settle::{RETENTION_MILLIS, RETRY_PAUSE_MILLIS};
pub use tenant_limits::TenantLimits;
pub use tenants::{RestoredTenant, Tenant};
pub use vector_stores::{StorePage, VectorStore};
pub use webhooks::{NewWebhook, Webhook, WebhookSecret};

use crate::job::QueueLimits;
use lodestone_types::{Clock, IdSource, TenantId};

/// Options of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogOptions {
    /// Limits of the job queue.
    pub queue: QueueLimits,
    /// Milliseconds of inactivity after which a session is forgotten; 0 for never.
    pub session_idle_millis: u64,
    /// Limits of tenants that have no limits of their own.
    pub tenant_limits: TenantLimits,
    /// Whether other processes follow this catalog, so that changes are acknowledged only once they
    /// have seen them.
    pub has_followers: bool,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self {
            queue: QueueLimits::default(),
            session_idle_millis: 24 * 3600 * 1000,
            tenant_limits: TenantLimits::default(),
            has_followers: false,
        }
    }
}

/// A handle to the catalog. Clones share one file and one writer.
#[derive(Clone)]
pub struct Catalog {
    inner: Arc<Inner>,
}

/// Shared state. Fields drop in order: the readers close before the writer, so that the writer's
/// connection is the last one and checkpoints the WAL into the file.
struct Inner {
    readers: readers::Readers,
    writer: writer::Writer,
    log: Option<Arc<log::LogWatch>>,
    following: Option<follow::Following>,
    options: CatalogOptions,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    tenants: cache::Cache<TenantId, Tenant>,
    keys: cache::Cache<String, keys::StoredKey>,
    operator_key: RwLock<Option<[u8; 32]>>,
    stages: work::Stages,
    work: work::WorkSignals,
    changes: work::Changes,
    job_watchers: job_watch::JobWatchers,
    deliveries: work::WorkSignal,
    last_served: claim::LastServed,
    is_recovered: AtomicBool,
    in_flight: Mutex<HashSet<idempotency::Name>>,
    budgets: idempotency::Budgets,
    /// The lease check of a writing process that may be succeeded by another.
    lease_check: OnceLock<follow::LeaseCheck>,
}

impl Catalog {
    /// Blocks until there may be a job to claim for `duty`, at most for `timeout`; returns whether
    /// there may be one.
    pub fn wait_for_work(&self, duty: job::Duty, timeout: std::time::Duration) -> bool {
        self.inner.work.of(duty).wait(timeout, || self.inner.clock.now())
    }

    /// Ends all current and future waits of workers, for shutdown.
    pub fn end_waits(&self) {
        self.inner.work.end();
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
