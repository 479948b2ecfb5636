//! The ingest pipeline: from uploaded bytes to visible rows.
//!
//! The input is a submission and the collection that the caller's key has opened. The result is an
//! acknowledgement that survives a power cut and, later, a new version of the collection.
//!
//! ```text
//! submit: check -> original on disk -> job in the catalog: acknowledged
//!                                        |
//! worker: claim (jobs of one collection) -> verify -> extract -> chunk -> embed (all at once)
//!           -> build a segment -> [writer's lock: still live? -> commit -> settle the jobs]
//!                                                                  visible
//! ```
//! Invariants:
//! - Nothing that an earlier step needs is removed before the later step is durable.
//! - A job leaves `in_progress` only by being settled, whatever happens in the worker: errors,
//!   panics and full disks included. If even settling fails, the next start finds the job.
//! - Deleting, amending and publishing hold the writer's lock over both the commit and the catalog,
//!   so each sees the others' changes entirely or not at all.
//!
//! - `submit`: accepts uploads; `app`: records of applications; `pipeline`: document to `draft`
//! - `embed`, `sparse`: vectors of chunks; `kept`: vectors of unfinished work; `worker`: claims and
//!   publication; `stored_passages`: texts of stored rows
//! - `files`: files that no sub-tenant searches yet
//! - `import`: builds a tenant from an archive, visible atomically
//! - `fair_workers`: shares workers among tenants; `vector_limit`: limits and counts vectors
//! - `described`: changes to tenants themselves; `expiry`: removes expired memories
//! - `claims`: triplets that a language model adds to graphs
//! - `failure`: jobs that fail while an older version stays visible
//! - `delete`, `amend`, `vectors`, `memories`: changes that are visible when they return
//! - `maintenance`: merging, garbage, orphans; `maintenance_queue`: its schedule; `rebuild`:
//!   sources of damaged segments; `remains`: files of deleted tenants; `scrub`: verifies all data
//! - `reembed`: changes the embedding model; `reembed_runs`: the tenants in question;
//!   `reembed_estimate`: the cost; `nodes`: other processes that parse and embed for this one
//! - `web`: fetches pages; `memory`: the memory budget; `stopping`: interruptible waits

mod amend;
mod app;
mod claims;
mod delete;
mod described;
mod draft;
mod embed;
mod error;
mod expiry;
mod failure;
mod fair_workers;
mod files;
mod import;
mod kept;
mod maintenance;
mod maintenance_queue;
mod memories;
mod memory;
pub mod nodes;
mod pipeline;
mod rebuild;
mod reembed;
mod reembed_estimate;
mod reembed_runs;
mod remains;
mod scrub;
mod sparse;
pub(crate) mod stopping;
mod stored_passages;
mod submit;
mod vector_limit;
mod vectors;
mod web;
mod worker;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

pub use amend::Amendment;
pub use app::AppProblem;
pub use claims::{ClaimCounts, GraphReader};
pub use delete::Deleted;
pub use embed::VectorMeters;
pub use error::IngestError;
pub(crate) use files::FILE_WORD;
pub use files::NewFile;
pub(crate) use import::NewTenant;
pub use memories::{AddedMemory, NewMemory};
pub use memory::{MemoryBudget, MemoryShare, ResultShare};
pub(crate) use memory::{column_bytes, drawing_bytes};
pub use reembed_estimate::ReembedEstimate;
pub use reembed_runs::ReembedRun;
pub use submit::{Accepted, Submission};
pub use vectors::{AcceptedVectors, NewVectors};

use crate::settings::{ReembedSettings, ScrubSettings};
use crate::{MILLIS_PER_HOUR, Models};
use claims::Claimed;
use fair_workers::FairWorkers;
use kept::KeptVectors;
use lodestone_catalog::{Catalog, Tenant};
use lodestone_embed::{Embedder, SparseModel};
use lodestone_extract::sandbox::Parser;
use lodestone_io::store::BlobStore;
use lodestone_io::{Fullness, SpaceGauge};
use lodestone_metrics::Counter;
use lodestone_storage::collection::{Collection, Registry};
use lodestone_text::chunk::TokenOffsets;
use lodestone_types::{Clock, CollectionId, IdSource, WebClient, limits};
use maintenance_queue::Maintenance;
use nodes::{IngestNodes, NodeParser};
use rebuild::GivenUp;
use reembed_runs::ReembedRuns;
use scrub::Scrubber;
use stopping::Stopping;

/// The dependencies of the ingest pipeline. Tests can replace each of them.
#[derive(Debug, Clone)]
pub struct IngestParts {
    /// Tenants and jobs.
    pub catalog: Catalog,
    /// Open collections.
    pub registry: Arc<Registry>,
    /// Originals and segments.
    pub store: Arc<dyn BlobStore>,
    /// Free space of the disk.
    pub gauge: Arc<SpaceGauge>,
    /// The embedding models.
    pub models: Models,
    /// The sparse model, if any.
    pub sparse: Option<Arc<SparseModel>>,
    /// The document parser.
    pub parser: Arc<dyn Parser>,
    /// The client that fetches pages.
    pub web: Arc<dyn WebClient>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of ids.
    pub ids: Arc<dyn IdSource>,
    /// Maximum number of claims of one tenant processed at once on this machine; at least 1.
    pub workers: usize,
    /// The memory budget that work reserves from.
    pub memory: Arc<MemoryBudget>,
    /// Other processes that parse and embed for this one, if any.
    pub nodes: Option<Arc<IngestNodes>>,
    /// The generator that adds to the graphs of chunks; `None` leaves them to the rules.
    pub graph_reader: Option<Arc<dyn GraphReader>>,
    /// Retention times of models and vectors other than the current ones.
    pub reembed: ReembedSettings,
    /// Period and rate of the scrub.
    pub scrub: ScrubSettings,
}

/// Accepts uploads and makes them visible, on background threads of its own.
#[derive(Debug)]
pub struct Ingest {
    catalog: Catalog,
    registry: Arc<Registry>,
    store: Arc<dyn BlobStore>,
    gauge: Arc<SpaceGauge>,
    models: Models,
    sparse: Option<Arc<SparseModel>>,
    parser: Arc<dyn Parser>,
    web: Arc<dyn WebClient>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    maintenance: Maintenance,
    given_up: GivenUp,
    /// Collections being built from archives; their files must not be taken for leftovers.
    importing: Mutex<BTreeSet<CollectionId>>,
    kept: KeptVectors,
    memory: Arc<MemoryBudget>,
    workers: usize,
    fair_workers: FairWorkers,
    /// Held while a tenant is created, changed or deleted.
    tenants: Mutex<()>,
    nodes: Option<Arc<IngestNodes>>,
    graph_reader: Option<Arc<dyn GraphReader>>,
    claimed: Claimed,
    keep_other_millis: u64,
    model_idle: Duration,
    reembeds: ReembedRuns,
    reembed_counts: Counter,
    vectors: VectorMeters,
    scrubber: Scrubber,
    stopping: Stopping,
}

impl Ingest {
    /// Creates the pipeline without starting its threads.
    pub fn new(parts: IngestParts) -> Self {
        let IngestParts {
            catalog,
            registry,
            store,
            gauge,
            models,
            sparse,
            parser,
            web,
            clock,
            ids,
            workers,
            memory,
            nodes,
            graph_reader,
            reembed,
            scrub,
        } = parts;
        // One more worker, reserved for a tenant that has nothing in progress.
        let workers = workers + 1 + nodes.as_ref().map_or(0, |nodes| nodes.tasks_max());
        let parser = match &nodes {
            Some(nodes) => Arc::new(NodeParser { nodes: Arc::clone(nodes), own: parser }),
            None => parser,
        };
        Self {
            catalog,
            registry,
            store,
            gauge,
            models,
            sparse,
            parser,
            web,
            clock,
            ids,
            maintenance: Maintenance::default(),
            given_up: GivenUp::default(),
            importing: Mutex::default(),
            kept: KeptVectors::default(),
            memory,
            workers,
            fair_workers: FairWorkers::new(workers, limits::WEB_FETCHES_MAX),
            tenants: Mutex::default(),
            nodes,
            graph_reader,
            claimed: Claimed::default(),
            keep_other_millis: reembed.previous_vectors_hours * MILLIS_PER_HOUR,
            model_idle: reembed.further_model_idle,
            reembeds: ReembedRuns::default(),
            reembed_counts: Counter::default(),
            vectors: VectorMeters::default(),
            scrubber: Scrubber::new(scrub),
            stopping: Stopping::default(),
        }
    }

    /// Starts the threads that process originals, those that fetch pages, and five for background
    /// work. Call [`Self::recover`] first.
    pub fn start(self: &Arc<Self>) -> Vec<JoinHandle<()>> {
        let spawn = |name: String, run: fn(&Self)| {
            let ingest = Arc::clone(self);
            let builder = std::thread::Builder::new().name(name);
            builder.spawn(move || run(&ingest)).expect("the system provides threads at start")
        };
        let workers = (0..self.workers).map(|n| spawn(format!("ingest-{n}"), Self::work));
        let web =
            (0..limits::WEB_FETCHES_MAX).map(|n| spawn(format!("web-{n}"), Self::work_on_pages));
        let background = [
            spawn("maintenance".to_owned(), Self::maintain),
            spawn("large-merges".to_owned(), Self::merge_large),
            spawn("rebuild".to_owned(), Self::rebuild_lost),
            spawn("reembed".to_owned(), Self::reembed),
            spawn("scrub".to_owned(), Self::scrub),
        ];
        let nodes = self.nodes.iter().flat_map(IngestNodes::start);
        workers.chain(web).chain(background).chain(nodes).collect()
    }

    /// The ingest nodes, if any.
    pub(crate) fn nodes(&self) -> Option<&IngestNodes> {
        self.nodes.as_deref()
    }

    /// Asks the threads to end after their current work; unfinished jobs continue after a restart.
    pub fn stop(&self) {
        self.stopping.set();
        if let Some(nodes) = &self.nodes {
            nodes.stop();
        }
        if let Some(reader) = &self.graph_reader {
            reader.end();
        }
        self.maintenance.interrupt();
        self.reembeds.interrupt();
        self.catalog.end_waits();
    }

    /// Opens the collection of a tenant. The first use schedules background maintenance for it.
    ///
    /// # Errors
    /// See [`Registry::get`].
    pub fn open(&self, tenant: &Tenant) -> Result<Arc<Collection>, IngestError> {
        let mut was_closed = false;
        let expected = || {
            was_closed = true;
            Ok::<_, IngestError>(self.catalog.head(tenant.collection)?)
        };
        let opened = |collection: &Collection| {
            // Makes everything accepted from now on newer than everything stored.
            if self.catalog.raise_sequence(collection.snapshot().newest_sequence())? {
                tracing::error!(collection = %tenant.collection, "catalog.sqlite is older than its \
                    segments, as after a restore: repeat the uploads that were waiting since then");
            }
            if let Err(error) = self.complete_batches(tenant, collection) {
                tracing::warn!(collection = %tenant.collection, %error, "counting vectors \
                    failed: they are counted when it is next opened");
            }
            Ok(())
        };
        let collection = self.registry.get(tenant.collection, expected, opened)?;
        if was_closed {
            match collection.snapshot().damaged.len() {
                0 => {}
                segments => Self::tell_damage(&collection, segments),
            }
            self.describe(tenant);
            if let Err(error) = self.model_of(tenant, &collection) {
                let id = tenant.collection;
                tracing::error!(collection = %id, %error, "tenant is limited to keyword search");
            }
            if let Some(other) = &collection.snapshot().manifest.other {
                self.reembeds.note(&Arc::new(tenant.clone()), &collection, other);
            }
            self.maintenance.wake_opened(&collection);
        }
        Ok(collection)
    }

    /// The fingerprint of the model behind a collection's vectors, if that model is not loaded.
    pub fn foreign_model(&self, collection: &Collection) -> Option<String> {
        let snapshot = collection.snapshot();
        let is_loaded = self.models.of(&snapshot.manifest, None).is_some();
        snapshot.manifest.model().filter(|_| !is_loaded).map(str::to_owned)
    }

    /// The model for new rows of a collection: the one of its rows or, if it has none, the
    /// tenant's.
    ///
    /// # Errors
    /// [`IngestError::ModelMismatch`] if it is not loaded.
    pub(crate) fn model_of(
        &self,
        tenant: &Tenant,
        collection: &Collection,
    ) -> Result<Arc<dyn Embedder>, IngestError> {
        let (snapshot, chosen) = (collection.snapshot(), tenant.embedding_model.as_deref());
        let found = self.models.of(&snapshot.manifest, chosen).cloned();
        found.ok_or_else(|| IngestError::ModelMismatch {
            made_by: snapshot.manifest.model().or(chosen).unwrap_or_default().to_owned(),
            loaded: self.models.current().fingerprint().to_owned(),
        })
    }

    /// Refuses new content while the disk is full.
    ///
    /// # Errors
    /// [`IngestError::DiskFull`].
    pub fn require_room_for_content(&self) -> Result<(), IngestError> {
        self.require_below(Fullness::Full)
    }

    /// Refuses changes other than deletions while the disk is almost completely full.
    fn require_room_for_changes(&self) -> Result<(), IngestError> {
        self.require_below(Fullness::Critical)
    }

    fn require_below(&self, mark: Fullness) -> Result<(), IngestError> {
        let level = self.gauge.level();
        match level < mark {
            true => Ok(()),
            false => Err(IngestError::DiskFull { level, free_bytes: self.gauge.free_bytes() }),
        }
    }

    /// Metrics of the origin of vectors.
    pub fn vector_meters(&self) -> &VectorMeters {
        &self.vectors
    }

    /// Whether work is waiting for memory.
    pub fn waits_for_memory(&self) -> bool {
        self.memory.is_waiting()
    }

    /// Whether accepted jobs can be processed. Deletions continue even if not.
    fn has_room_to_work(&self) -> bool {
        self.require_room_for_changes().is_ok()
    }
}

/// Makes the chunker count in tokens of the model that will read the chunks.
struct ModelTokens<'a>(&'a dyn Embedder);

impl TokenOffsets for ModelTokens<'_> {
    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        self.0.token_offsets(text)
    }
}
