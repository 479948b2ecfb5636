//! The ingest pipeline: from accepted bytes to visible rows.
//!
//! The input is a submission and the collection that the caller's key has opened; the result is an
//! acknowledgement that survives a power cut, and later a new version of the collection.
//!
//! ```text
//! submit: check -> original on disk -> job in the catalog: acknowledged
//!                                        |
//! worker: claim (jobs of one collection) -> verify -> extract -> chunk -> embed (all at once)
//!           -> build a segment -> [writer's lock: still live? -> commit -> mark the jobs]
//!                                                                  visible
//! ```
//! Invariants:
//! - Nothing that an earlier step needs is removed before the later step is durable.
//! - A job leaves `in_progress` by a settlement, whatever happens in the worker: errors, panics
//!   and full disks included; if even that fails, the next start finds it.
//! - Deleting, amending and publishing hold the writer's lock over both the commit and the
//!   catalog, so each sees the other whole or not at all.
//!
//! - `submit`: accepting; `app`: records of applications; `pipeline`: one document to a `draft`
//! - `embed`, `sparse`: chunks to vectors; `kept`: those of unfinished work; `worker`: claims,
//!   publication; `stored_passages`: texts of stored rows
//! - `files`: files that no sub-tenant searches yet
//! - `import`: a tenant built from an archive, visible in one step
//! - `fair_workers`: workers shared among tenants; `vector_limit`: limits of their vectors
//! - `described`: changes of tenants themselves; `expiry`: the end of memories
//! - `claims`: triplets that a language model adds to graphs
//! - `failure`: jobs that end badly while an older version stays visible
//! - `delete`, `amend`, `vectors`, `memories`: changes that are visible when they return
//! - `maintenance`: merging, garbage, orphans; `maintenance_queue`: what it looks at next;
//!   `rebuild`: sources of damaged segments; `remains`: of deleted tenants; `scrub`: reads all
//! - `reembed`: changing the embedding model; `reembed_runs`: tenants of which that is known;
//!   `reembed_estimate`: its cost; `nodes`: other processes that parse and embed for this one
//! - `web`: pages of the web; `memory`: the memory of the process, and work that waits for it;
//!   `stopping`: the end of all threads

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
pub use memory::{MemoryBudget, MemoryShare};
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

/// Parts of the ingest pipeline; every one can be replaced in a test.
#[derive(Debug, Clone)]
pub struct IngestParts {
    /// Tenants and jobs.
    pub catalog: Catalog,
    /// Open collections.
    pub registry: Arc<Registry>,
    /// Originals.
    pub store: Arc<dyn BlobStore>,
    /// Free space of the disk.
    pub gauge: Arc<SpaceGauge>,
    /// The models.
    pub models: Models,
    /// The sparse model, if there is one.
    pub sparse: Option<Arc<SparseModel>>,
    /// The parser of documents.
    pub parser: Arc<dyn Parser>,
    /// The client that fetches pages.
    pub web: Arc<dyn WebClient>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdSource>,
    /// Claims of one tenant that are processed at once at most; at least 1.
    pub workers: usize,
    /// The memory that work draws from.
    pub memory: Arc<MemoryBudget>,
    /// Other processes that parse and embed for this one; `None` where there are none.
    pub nodes: Option<Arc<IngestNodes>>,
    /// The generator that adds to the graphs of chunks; `None` leaves them to the rules.
    pub graph_reader: Option<Arc<dyn GraphReader>>,
    /// Times for which models and vectors that are not the current ones are kept.
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
    /// Collections that are built from archives; nothing of them counts as left over.
    importing: Mutex<BTreeSet<CollectionId>>,
    kept: KeptVectors,
    memory: Arc<MemoryBudget>,
    workers: usize,
    fair_workers: FairWorkers,
    /// Held while a tenant is made, changed or deleted.
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
    /// The pipeline, its threads not yet started.
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
        // One more: it is kept for a tenant of which nothing is in work.
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

    /// Starts the threads that process originals, those that wait for pages, and four for work in
    /// the background. Call [`Self::recover`] before.
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
            spawn("reembed".to_owned(), Self::reembed),
            spawn("scrub".to_owned(), Self::scrub),
        ];
        let nodes = self.nodes.iter().flat_map(IngestNodes::start);
        workers.chain(web).chain(background).chain(nodes).collect()
    }

    /// The ingest nodes, if there are any.
    pub(crate) fn nodes(&self) -> Option<&IngestNodes> {
        self.nodes.as_deref()
    }

    /// Asks the threads to end after what they are doing; unfinished jobs go on after a restart.
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

    /// The open collection of a tenant. The first use has it looked after in the background.
    ///
    /// # Errors
    /// As [`Registry::get`].
    pub fn open(&self, tenant: &Tenant) -> Result<Arc<Collection>, IngestError> {
        let mut was_closed = false;
        let expected = || {
            was_closed = true;
            Ok::<_, IngestError>(self.catalog.head(tenant.collection)?)
        };
        let opened = |collection: &Collection| {
            // What is accepted from now on is newer than everything that is stored.
            if self.catalog.raise_sequence(collection.snapshot().newest_sequence())? {
                let (tenant, collection) = (&tenant.id, collection.id());
                tracing::error!(%tenant, %collection, "catalog.sqlite is older than this tenant's \
                    segments, as a backup is: uploads that waited since then have to be repeated");
            }
            Ok(())
        };
        let collection = self.registry.get(tenant.collection, expected, opened)?;
        if was_closed {
            match collection.snapshot().damaged.len() {
                0 => {}
                segments => self.tell_damage(&collection, segments),
            }
            self.describe(tenant);
            if let Err(error) = self.model_of(tenant, &collection) {
                tracing::error!(tenant = %tenant.id, %error, "it is searched by words only");
            }
            if let Some(other) = &collection.snapshot().manifest.other {
                self.reembeds.note(&Arc::new(tenant.clone()), &collection, other);
            }
            self.maintenance.wake_opened(&collection);
        }
        Ok(collection)
    }

    /// The model behind a collection's vectors, where it is not loaded.
    pub fn foreign_model(&self, collection: &Collection) -> Option<String> {
        let snapshot = collection.snapshot();
        let is_loaded = self.models.of(&snapshot.manifest, None).is_some();
        snapshot.manifest.model().filter(|_| !is_loaded).map(str::to_owned)
    }

    /// The model for new rows of a collection: that of the rows it has, else the tenant's.
    ///
    /// # Errors
    /// [`IngestError::ModelMismatch`] where it is not loaded.
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

    /// Refuses changes, other than deletions, while the disk is all but full.
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

    /// Measurements of where vectors come from.
    pub fn vector_meters(&self) -> &VectorMeters {
        &self.vectors
    }

    /// Enters the measurements of changes of the model into a registry.
    pub fn enter_reembed_meters(&self, registry: &mut lodestone_metrics::Registry) {
        let help = "Chunks that were embedded anew to change the model of their tenants";
        registry.enter("reembedded_chunks_total", help, &self.reembed_counts);
    }

    /// Whether work waits for memory.
    pub fn waits_for_memory(&self) -> bool {
        self.memory.is_waiting()
    }

    /// Whether what was accepted can be processed; deletions go on without.
    fn has_room_to_work(&self) -> bool {
        self.require_room_for_changes().is_ok()
    }
}

/// The chunker measures in the tokens of the model that will read the chunks.
struct ModelTokens<'a>(&'a dyn Embedder);

impl TokenOffsets for ModelTokens<'_> {
    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        self.0.token_offsets(text)
    }
}
