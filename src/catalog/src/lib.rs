//! The catalog: tenants, sub-tenants, jobs, keys, webhooks, conversations and idempotency keys in
//! one SQLite file.
//!
//! It knows no documents, chunks or vectors, and of collections only their ids. It is the only
//! crate that speaks SQL. One thread writes in group commits (`writer`), so any number of callers
//! shares one fsync; a call that changes something returns when the change would survive a power
//! cut.
//!
//! ```text
//! callers --closures--> writer thread: BEGIN [savepoint ...]* COMMIT+fsync --answers--> callers
//! callers <--rows------ up to 4 read-only connections (WAL: they never wait for the writer)
//!
//! catalog.sqlite, format 7                    key                         also found by
//!   tenants       one row each, also those    collection                  name, unless deleted
//!                 with a pending delete
//!     sub_tenants all but `default`           collection, name
//!     jobs        newest and recent ones      seq = types::Sequence       source; status; id
//!       job_counts, queue_total               kept by triggers on jobs
//!     known_sources scopes of source ids      source, scope               scope
//!       tenant_use  triggers, also on files   collection
//!     tenant_limits those with own limits     collection
//!     files       uploads that are no sources collection, id
//!     vector_stores named sub-tenants         collection, name
//!     file_batches the last 200 of a tenant   collection, sub-tenant, id  age
//!     sessions    one row each                id                          scope and name; age
//!       turns     the last 10 of a session    id                          session
//!   api_keys      hash of the secret          id
//!     key_scopes  tenants of a scoped key     key, tenant                 tenant
//!   webhooks      receivers of events         id                          all tenants
//!     webhook_scopes tenants of a scoped one  webhook, tenant             tenant
//!     deliveries  an event for a webhook      id                          due; source; webhook
//!   idempotency   first response to a key     id                          key, path, name; age
//! ```
//!
//! `v1/t/<collection>`, in the blob store: the descriptor of a tenant, for when the file is lost
//! (see `descriptors`)
//!
//! Invariants:
//! - Sequences rise with acceptance and are never given twice, restored catalogs included.
//! - A name belongs to at most one tenant that is not deleted; collections are never used again.
//! - Rows of a collection with a pending delete are not read, except to remove them.
//! - Of one source at most one job is in progress and at most one is queued.
//! - After a failed commit nothing is written until the file is opened again.
//! - Memory does not grow with tenants or jobs: caches are bounded, and every look-up has an index.
//!
//! Errors: whatever reads or writes can fail for the file or its disk (storage errors); a section
//! on errors names what comes on top.
//!
//! Start: open, `interrupted`, settle what manifests carry, `requeue_interrupted`, then claim.
//!
//! Modules:
//! - `open`: connections, pragmas; `migrations`: formats; `error`: errors
//! - `log`: a copy of every commit in a blob store, from which another machine goes on; `follow`: a
//!   catalog that follows that of another process
//! - `writer`: group commit; `readers`: read-only connections; `rows`: columns to values
//! - `cache`: bounded maps of tenants and keys; `work`: signals and stages, in memory only
//! - `tenants`, `sub_tenants`: creation and deletion of scopes; `descriptors`: tenants beside the
//!   catalog; `sequences`: the numbers of accepted operations
//! - `job`: data of a job, and what goes in and out of the queue
//! - `submit`, `amend`, `claim`, `fetched`, `settle`, `retry`, `cancel`, `recovery`: operations on
//!   jobs
//! - `job_watch`: watchers of single jobs
//! - `webhooks`: receivers; `outbox`: events in the transactions that make them true; `deliveries`:
//!   their attempts, and the log
//! - `listing`: jobs as status and listings show them; `known`: scopes of source ids
//! - `tenant_limits`: limits of tenants; `allowance`: what tenants store, and what they may
//! - `files`: uploads that are no sources; `vector_stores`: sub-tenants by their names as vector
//!   stores; `file_batches`: files taken in together
//! - `keys`, `key_text`: API keys and their text
//! - `sessions`: past turns; `idempotency`: repeated requests
//! - `export`: rows for a backup, and into a fresh catalog
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

/// Settings of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogOptions {
    /// Limits of the job queue.
    pub queue: QueueLimits,
    /// Idle time in milliseconds after which a session is forgotten; 0: never.
    pub session_idle_millis: u64,
    /// Limits of tenants without own ones.
    pub tenant_limits: TenantLimits,
    /// Whether other processes follow this catalog, and are waited for before anybody is told.
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

/// The catalog. Clones share one file and one writer.
#[derive(Clone)]
pub struct Catalog {
    inner: Arc<Inner>,
}

/// Fields are dropped in this order: the writer last, so that it closes the file and folds the
/// log into it.
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
    /// Check of the lease, in a process that writes and that another may succeed.
    lease_check: OnceLock<follow::LeaseCheck>,
}

impl Catalog {
    /// Blocks until there may be a job to claim for `duty`, or for `timeout`; returns whether there
    /// may be one.
    pub fn wait_for_work(&self, duty: job::Duty, timeout: std::time::Duration) -> bool {
        self.inner.work.of(duty).wait(timeout, || self.inner.clock.now())
    }

    /// Ends the wait of every worker, and those to come: for shutdown.
    pub fn end_waits(&self) {
        self.inner.work.end();
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
