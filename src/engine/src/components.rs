//! Live parts of an engine that tests replace.

use std::sync::Arc;

use lodestone_answer::generate::Generator;
use lodestone_compute::{ComputeBackend, SimdBackend};
use lodestone_embed::{Embedder, SparseModel};
use lodestone_extract::sandbox::{InProcess, Parser};
use lodestone_io::{Disk, RealDisk};
use lodestone_rank::Reranker;
use lodestone_types::{Clock, IdSource, RandomIds, SystemClock, WebClient, WebhookClient};

/// Live parts that tests replace.
#[derive(Debug, Clone)]
pub struct Components {
    /// The disk under everything but the catalog.
    pub disk: Arc<dyn Disk>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids and secrets.
    pub ids: Arc<dyn IdSource>,
    /// The model of new tenants.
    pub embedder: Arc<dyn Embedder>,
    /// Other models whose vectors are searched as well.
    pub other_embedders: Vec<Arc<dyn Embedder>>,
    /// The reranker of `accurate` searches, if there is one.
    pub reranker: Option<Arc<dyn Reranker>>,
    /// The reader of extracted answers, if there is one.
    pub reader: Option<Arc<dyn Reranker>>,
    /// The sparse model, if there is one.
    pub sparse: Option<Arc<SparseModel>>,
    /// The parser of documents.
    pub parser: Arc<dyn Parser>,
    /// The client that fetches pages; `None`: that of the settings, over the machine's network.
    pub web: Option<Arc<dyn WebClient>>,
    /// The client that posts to receivers of webhooks; `None`: that of the settings, as `web`.
    pub webhook_client: Option<Arc<dyn WebhookClient>>,
    /// The vector kernels.
    pub backend: Arc<dyn ComputeBackend>,
    /// The generator that writes answers; `None`: that of the settings.
    pub generator: Option<Arc<dyn Generator>>,
}

impl Components {
    /// The parts of a real machine, with a model. Documents are parsed in this process; a program
    /// that can start itself as a sandboxed parser replaces that part.
    pub fn real(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            disk: Arc::new(RealDisk),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            embedder,
            other_embedders: Vec::new(),
            reranker: None,
            reader: None,
            sparse: None,
            parser: Arc::new(InProcess),
            web: None,
            webhook_client: None,
            backend: Arc::new(SimdBackend),
            generator: None,
        }
    }
}
