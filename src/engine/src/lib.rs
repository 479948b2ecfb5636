//! The composition root: builds every part from the settings. The server and the command line use
//! nothing else.
//!
//! ```text
//! Settings + Components -> Engine { catalog, registry, ingest, query, answerer, embedder }
//!   key -> Grant -> TenantAccess (tenant, sub-tenant, open collection) -> one call of a pipeline
//! ```
//! Nothing is decided here but access: a [`TenantAccess`] is only given for a
//! [`lodestone_types::Grant`] that allows it, and every operation on data takes one. Everything
//! blocks.
//!
//! - `blobs`: the place of all data: the data directory, or a bucket
//! - `opening`: catalog and collections of a process that writes or follows; `follower`: following
//!   the process that writes
//! - `access`: from a key to the data of a tenant
//! - `tenants`, `sources`, `search`, `qna`, `memories`, `keys`, `files`, `vector_stores`,
//!   `pictures`: the operations
//! - `webhooks`: events to their receivers; `components`: parts that tests replace
//! - `models`: the embedding models; `device`: the device for vectors and the model
//! - `reading`: the generator as the reader of graphs
//! - `archive`: tenants as files of lines, out and in
//! - `backup`: backups and restoring them; `backups`: those of this engine
//! - `reembed`: changing the model of tenants
//! - `meters`: measurements; `stage`: stages as spans; `slow`: the log of slow searches
//! - `health`: state of the parts; `waiting`: why texts wait for their vectors
//! - `rates`: requests of tenants in the last minute
//! - `restore`: rebuilding a lost catalog, completing an older one
//! - `error`: errors of the operations, as the server sees them

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
    CopiedStore, CopyProgress, Standby, cached_store, copy_store, probe_store, read_store,
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
use lodestone_storage::collection::Registry;
use lodestone_types::{Clock, IdSource};

/// The catalog in the data directory.
pub const CATALOG_NAME: &str = "catalog.sqlite";
const MILLIS_PER_HOUR: u64 = 3_600_000;

/// Checks settings; returns the authorities that vouch for other servers.
fn checked(settings: &Settings) -> Result<Authorities, EngineError> {
    settings.validate()?;
    let authorities = settings.tls.authorities()?;
    settings.backups.check_bucket(&authorities)?;
    Ok(authorities)
}

/// The engine: all of the server but HTTP.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    data: Arc<DataDir>,
    catalog: Catalog,
    registry: Arc<Registry>,
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
    /// Present where another process writes.
    follower: Option<Arc<Follower>>,
    /// Held once by each export and each import that is under way.
    exports: Arc<()>,
    imports: Arc<()>,
    rates: Rates,
    first_key: Mutex<Option<KeyText>>,
    probed: Mutex<Option<health::Probe>>,
    meters: meters::Meters,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Last, so that its name there is given up after everything else has ended.
    bucket: Option<blobs::OpenBucket>,
}

impl Engine {
    /// Opens the data directory, recovers what a crash left, and starts the background threads.
    /// Collections are opened at first use: of each tenant only the name of its descriptor is read.
    ///
    /// # Errors
    /// An invalid setting; a data directory that another process holds; damage.
    pub fn start(settings: Settings, components: Components) -> Result<Arc<Self>, EngineError> {
        let authorities = checked(&settings)?;
        let Components { clock, ids, embedder, backend, reranker, reader, sparse, .. } = components;
        let models = Models::new(Arc::clone(&embedder), components.other_embedders);
        let data = Arc::new(DataDir::open(&settings.data_dir, components.disk)?);
        let opened = Opened::of(&settings, &authorities, &data, &clock, &ids, &backend)?;
        let follower = Follower::new(&settings, &authorities, &opened, &ids)?;
        let Opened { blobs, store, bucket, catalog, first_key, registry } = opened;
        let gauge = Arc::new(SpaceGauge::new(Arc::clone(&data), Arc::clone(&clock)));
        let memory = budget_of(&settings);
        // Not asked for anything yet: a start never waits for it.
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

    /// The settings it runs with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The key that was made because there was none; handed out once.
    pub fn take_first_key(&self) -> Option<KeyText> {
        self.first_key.lock().take()
    }

    /// The model of new tenants.
    pub fn embedder(&self) -> &dyn Embedder {
        &**self.models.current()
    }

    /// The reader of extracted answers, if there is one.
    pub fn reader(&self) -> Option<&dyn Reranker> {
        self.answerer.reader()
    }

    /// The reranker of `accurate` searches, if there is one.
    pub fn reranker(&self) -> Option<&dyn Reranker> {
        self.reranker.as_deref()
    }

    /// The files of requests and answers that are too large to wait in memory.
    pub fn spills(&self) -> &Arc<Spills> {
        &self.spills
    }

    /// The memory that work draws from.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Counts of the calls to the generator for graphs since the start, and of their results.
    pub fn claim_counts(&self) -> ClaimCounts {
        self.ingest.claim_counts()
    }

    /// The vector kernels.
    pub fn backend(&self) -> &dyn ComputeBackend {
        &*self.backend
    }

    /// Time.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Ids.
    pub fn ids(&self) -> &dyn IdSource {
        &*self.ids
    }

    /// Stops the background threads after their current work. Unfinished jobs are durable and go on
    /// at the next start.
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

/// Starts following the process that writes, or else the workers, which go on with the jobs of the
/// last run, backups and webhooks.
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
        tracing::info!(jobs = waiting, interrupted, "jobs of the last run go on");
    }
    backups.start();
    webhooks.start();
    Ok(ingest.start())
}

/// The generator that the settings name, if they do.
fn configured_generator(
    settings: &Settings,
    authorities: &Authorities,
) -> Result<Option<Arc<dyn Generator>>, EngineError> {
    let made = |llm| Arc::new(OpenAiGenerator::new(llm).trusting(authorities)) as _;
    Ok(settings.generator()?.map(made))
}

/// The one way out to the web. Pages and webhooks have one each: neither waits for names of the
/// other.
fn fetcher(settings: &Settings, authorities: &Authorities) -> Arc<Fetcher> {
    let rules = Rules::new(settings.fetch_allow.clone());
    Arc::new(Fetcher::new(rules, SystemResolver, authorities))
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shut_down();
    }
}
