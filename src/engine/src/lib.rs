//! The composition root: builds every component from the settings and offers the operations that
//! the server and the command line call. It is their only entry point to data.
//!
//! ```text
//! Settings + Components -> Engine { catalog, registry, ingest, query, answerer, embedder }
//!   key -> Grant -> TenantAccess (tenant, sub-tenant, open collection) -> one call of a pipeline
//! ```
//! The only decision made here is access: a [`TenantAccess`] is handed out only for a
//! [`lodestone_types::Grant`] that allows it, and every operation on data takes one. All calls
//! block.
//!
//! - `blobs`: opens the blob store that holds all data: the data directory or a bucket
//! - `opening`: opens the catalog and the collections, for a writer or a follower; `follower`:
//!   keeps a query node up to date with the process that writes
//! - `access`: resolves a key to the data of a tenant
//! - `tenants`, `sources`, `search`, `qna`, `memories`, `keys`, `files`, `vector_stores`,
//!   `pictures`: the operations
//! - `webhooks`: delivers events to their receivers; `components`: parts that tests replace
//! - `models`: the embedding models; `device`: selects the CPU or GPU for vectors and models
//! - `reading`: lets the generator extract graphs
//! - `archive`: exports tenants to files of lines and imports them
//! - `backup`: takes and restores backups; `backups`: the backup operations of this engine
//! - `reembed`: moves tenants to another embedding model
//! - `meters`: metrics; `stage`: tracing spans of pipeline stages; `slow`: the slow query log
//! - `health`: component health; `waiting`: explains why texts still wait for their vectors
//! - `rates`: requests per tenant in the last minute
//! - `restore`: rebuilds a lost catalog and completes an outdated one
//! - `error`: the errors of all operations, as the server reports them

mod access;
pub mod archive;
pub mod backup;
mod backups;
mod blobs;
mod budgets;
mod components;
mod copies;
mod device;
mod error;
mod files;
mod follower;
mod health;
pub mod ingest;
mod keys;
mod listing;
mod memories;
mod meters;
mod models;
pub mod nodes;
mod opening;
mod pictures;
pub mod qna;
pub mod query;
mod rates;
mod reading;
mod reembed;
mod restore;
mod search;
pub mod settings;
mod slow;
mod sources;
mod stage;
pub mod statements;
mod status;
mod tenants;
mod vector_stores;
mod waiting;
mod webhooks;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

pub use access::TenantAccess;
pub use blobs::{
    BucketWait, CopiedStore, CopyProgress, WaitsFor, cached_store, copy_store, probe_store,
    read_store,
};
pub use components::Components;
pub use device::{TakenDevice, open_cuda, take_device};
pub use error::EngineError;
pub use follower::{Assignment, PeerEnd, Peers};
pub use health::{ComponentState, Health};
pub use listing::{SourceCounts, SourcePage, Span};
pub use lodestone_bucket::Probed;
pub use lodestone_io::{FileSlice, IoError, Spill, Spilled, SpilledFile, Spills};
pub use lodestone_rank::settle;
pub use models::{EmbeddingServer, Models, RemoteEmbedder};
pub use pictures::PictureError;
pub use reembed::{ReembedAction, ReembedState, TenantReembed};
pub use sources::Original;
pub use status::FoundStatus;
pub use tenants::{Stats, TenantModel, TenantPlan, TenantUsage};
pub use waiting::Waiting;
pub use webhooks::TestedWebhook;

use crate::backup::{BackupParts, Backups};
use crate::budgets::{budget_of, searches};
use crate::follower::Follower;
use crate::ingest::nodes::IngestNodes;
use crate::ingest::{ClaimCounts, Ingest, IngestParts, MemoryBudget};
use crate::opening::Opened;
use crate::query::Query;
use crate::rates::Rates;
use crate::reading::GeneratorReader;
use crate::settings::Settings;
use crate::webhooks::Webhooks;
use lodestone_answer::Answerer;
use lodestone_answer::generate::{Generator, OpenAiGenerator, Writer};
use lodestone_catalog::{Catalog, JobScope, KeyText};
use lodestone_compute::ComputeBackend;
use lodestone_embed::Embedder;
use lodestone_fetch::{Authorities, Fetcher, Rules, SystemResolver};
use lodestone_io::store::BlobStore;
use lodestone_io::{DataDir, SpaceGauge};
use lodestone_rank::Reranker;
use lodestone_storage::collection::{Openings, Registry};
use lodestone_types::{Clock, IdSource};

/// Name of the catalog's file in the data directory.
pub const CATALOG_NAME: &str = "catalog.sqlite";
const MILLIS_PER_HOUR: u64 = 3_600_000;

/// Validates the settings; returns the certificate authorities trusted for outgoing connections.
fn checked(settings: &Settings) -> Result<Authorities, EngineError> {
    settings.validate()?;
    let authorities = settings.tls.authorities()?;
    settings.backups.check_bucket(&authorities)?;
    Ok(authorities)
}

/// The engine: everything in the server except HTTP.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    data: Arc<DataDir>,
    catalog: Catalog,
    registry: Arc<Registry>,
    openings: Arc<Openings>,
    store: Arc<dyn BlobStore>,
    gauge: Arc<SpaceGauge>,
    spills: Arc<Spills>,
    memory: Arc<MemoryBudget>,
    ingest: Arc<Ingest>,
    query: Query,
    backend: Arc<dyn ComputeBackend>,
    answerer: Answerer,
    writer: Option<Writer>,
    pub(crate) models: Models,
    reranker: Option<Arc<dyn Reranker>>,
    pictures: pictures::Pictures,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    backups: Arc<Backups>,
    webhooks: Arc<Webhooks>,
    /// Set where another process writes and this one follows it.
    follower: Option<Arc<Follower>>,
    /// Cloned by each export while it runs, so that its reference count tells how many are running;
    /// `imports` works alike.
    exports: Arc<()>,
    imports: Arc<()>,
    rates: Rates,
    first_key: Mutex<Option<KeyText>>,
    probed: Mutex<Option<health::Probe>>,
    meters: meters::Meters,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Declared last so that it drops last: the process gives up its name in the bucket only after
    /// everything else has ended.
    bucket: Option<blobs::OpenBucket>,
}

impl Engine {
    /// Opens the data directory, recovers from a crash, and starts the background threads.
    /// Collections are opened on first use; at start only the names of the tenants' descriptors are
    /// read.
    ///
    /// # Errors
    /// An invalid setting; a data directory that another process holds; damaged data.
    pub fn start(settings: Settings, components: Components) -> Result<Arc<Self>, EngineError> {
        let authorities = checked(&settings)?;
        let Components { clock, ids, embedder, backend, reranker, reader, sparse, .. } = components;
        let models = Models::new(Arc::clone(&embedder), components.other_embedders);
        let data = Arc::new(DataDir::open(&settings.data_dir, components.disk)?);
        let opened = Opened::of(&settings, &authorities, &data, &clock, &ids, &backend)?;
        let follower = Follower::new(&settings, &authorities, &opened, &ids)?;
        let Opened { blobs, store, bucket, catalog, first_key, registry, openings, gauge } = opened;
        let memory = budget_of(&settings);
        // The generator is not contacted here: starting never waits for it.
        let generator = components.generator.or(configured_generator(&settings, &authorities)?);
        let ingest = Arc::new(Ingest::new(IngestParts {
            catalog: catalog.clone(),
            registry: Arc::clone(&registry),
            store: Arc::clone(&store),
            gauge: Arc::clone(&gauge),
            models: models.clone(),
            sparse: sparse.clone(),
            parser: Arc::clone(&components.parser),
            web: components.web.unwrap_or_else(|| fetcher(&settings, &authorities)),
            clock: Arc::clone(&clock),
            ids: Arc::clone(&ids),
            workers: settings.ingest_threads,
            memory: Arc::clone(&memory),
            nodes: IngestNodes::new(&settings.store.nodes, &authorities, models.all())?,
            graph_reader: GeneratorReader::configured(&settings, generator.as_ref()),
            reembed: settings.reembed.clone(),
            scrub: settings.scrub,
        }));
        let posting = components.webhook_client.unwrap_or_else(|| fetcher(&settings, &authorities));
        let webhooks = Webhooks::new(&catalog, posting, &clock, &ids);
        let backups = Backups::new(BackupParts {
            settings: settings.backups.clone(),
            authorities,
            catalog: catalog.clone(),
            ingest: Arc::clone(&ingest),
            store: blobs,
            gauge: Arc::clone(&gauge),
            clock: Arc::clone(&clock),
        });
        Ok(Arc::new(Self {
            threads: Mutex::new(begin(&follower, &ingest, &catalog, &backups, &webhooks)?),
            spills: Spills::new(Arc::clone(&data), Arc::clone(&gauge)),
            webhooks,
            query: searches(&backend, &models, &reranker, &sparse, &memory, &follower),
            follower,
            backend,
            answerer: models.answerer().with_clock(clock.clone()).read_by(reader),
            writer: generator.map(|generator| Writer::new(generator, Arc::clone(&ids))),
            settings,
            data,
            catalog,
            registry,
            openings,
            store,
            gauge,
            memory,
            ingest,
            models,
            reranker,
            pictures: pictures::Pictures::new(components.parser),
            clock,
            ids,
            backups,
            exports: Arc::default(),
            imports: Arc::default(),
            rates: Rates::default(),
            first_key: Mutex::new(first_key),
            probed: Mutex::new(None),
            meters: meters::Meters::default(),
            bucket,
        }))
    }

    /// The settings this engine runs with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The admin key created at start because none existed. Returns it once, then `None`.
    pub fn take_first_key(&self) -> Option<KeyText> {
        self.first_key.lock().take()
    }

    /// The embedding model of new tenants.
    pub fn embedder(&self) -> &dyn Embedder {
        &**self.models.current()
    }

    /// The model that scores candidate passages of extractive answers, if one is loaded.
    pub fn reader(&self) -> Option<&dyn Reranker> {
        self.answerer.reader()
    }

    /// The reranker of `accurate` searches, if one is loaded.
    pub fn reranker(&self) -> Option<&dyn Reranker> {
        self.reranker.as_deref()
    }

    /// The temporary files for requests and responses that are too large to hold in memory.
    pub fn spills(&self) -> &Arc<Spills> {
        &self.spills
    }

    /// The memory budget that work reserves from.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Counts of the generator calls for graph extraction since the start, and of their outcomes.
    pub fn claim_counts(&self) -> ClaimCounts {
        self.ingest.claim_counts()
    }

    /// The vector kernels in use.
    pub fn backend(&self) -> &dyn ComputeBackend {
        &*self.backend
    }

    /// The clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The source of ids and secrets.
    pub fn ids(&self) -> &dyn IdSource {
        &*self.ids
    }

    /// Stops the background threads once their current work is done and joins them. Unfinished jobs
    /// are durable and continue at the next start.
    pub fn shut_down(&self) {
        if let Some(bucket) = &self.bucket {
            bucket.hurry();
        }
        if let Some(follower) = &self.follower {
            follower.stop();
        }
        self.backups.stop();
        self.ingest.stop();
        self.webhooks.stop();
        self.models.all().for_each(|model| model.close());
        for reranker in self.reranker().into_iter().chain(self.reader()) {
            reranker.close();
        }
        if let Some(sparse) = self.sparse() {
            sparse.close();
        }
        let threads: Vec<_> = self.threads.lock().drain(..).collect();
        let counts = self.backend.counts().into_iter().filter(|(_, count)| *count > 0);
        let counts: Vec<String> = counts.map(|(name, count)| format!("{name}={count}")).collect();
        if !threads.is_empty() && !counts.is_empty() {
            tracing::info!(counts = counts.join(" "), "GPU work since the start");
        }
        let claims = self.claim_counts();
        if claims.calls > 0 && !threads.is_empty() {
            tracing::info!(?claims, "calls to the generator for graphs since the start");
        }
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a background thread panicked");
            }
        }
    }
}

/// Starts the follower's threads, or, in a process that writes, backups, webhooks and the ingest
/// workers, which continue the jobs of the last run.
fn begin(
    follower: &Option<Arc<Follower>>,
    ingest: &Arc<Ingest>,
    catalog: &Catalog,
    backups: &Arc<Backups>,
    webhooks: &Arc<Webhooks>,
) -> Result<Vec<JoinHandle<()>>, EngineError> {
    if let Some(follower) = follower {
        return Ok(follower.start());
    }
    let interrupted = ingest.recover()?;
    let waiting = catalog.job_counts(&JobScope::Everywhere)?.queued;
    if waiting > 0 {
        tracing::info!(jobs = waiting, interrupted, "resuming jobs of the last run");
    }
    backups.start();
    webhooks.start();
    Ok(ingest.start())
}

/// The generator that the settings name, if any.
fn configured_generator(
    settings: &Settings,
    authorities: &Authorities,
) -> Result<Option<Arc<dyn Generator>>, EngineError> {
    let made = |llm| Arc::new(OpenAiGenerator::new(llm).trusting(authorities)) as _;
    Ok(settings.generator()?.map(made))
}

/// A client for outgoing web requests, under the rules of the settings. Page fetches and webhooks
/// get one each, so that neither waits for the other's name lookups.
fn fetcher(settings: &Settings, authorities: &Authorities) -> Arc<Fetcher> {
    let rules = Rules::new(settings.fetch_allow.clone());
    Arc::new(Fetcher::new(rules, SystemResolver, authorities))
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shut_down();
    }
}
