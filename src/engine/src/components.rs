//! Live components of an engine, which tests can replace.

use std::sync::Arc;

use lodestone_answer::generate::Generator;
use lodestone_compute::{ComputeBackend, SimdBackend};
use lodestone_embed::{Embedder, SparseModel};
use lodestone_extract::sandbox::{InProcess, Parser};
use lodestone_io::{Disk, RealDisk};
use lodestone_rank::Reranker;
use lodestone_types::{Clock, IdSource, RandomIds, SystemClock, WebClient, WebhookClient};

/// Live components, which tests can replace. Settings are plain data; these are not.
#[derive(Debug, Clone)]
pub struct Components {
    /// The disk that holds everything but the catalog.
    pub disk: Arc<dyn Disk>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of ids and secrets.
    pub ids: Arc<dyn IdSource>,
    /// The embedding model of new tenants.
    pub embedder: Arc<dyn Embedder>,
    /// Other loaded models, for tenants whose vectors come from them.
    pub other_embedders: Vec<Arc<dyn Embedder>>,
    /// The reranker of `accurate` searches, if any.
    pub reranker: Option<Arc<dyn Reranker>>,
    /// The model that scores candidate passages of extractive answers, if any.
    pub reader: Option<Arc<dyn Reranker>>,
    /// The sparse model, if any.
    pub sparse: Option<Arc<SparseModel>>,
    /// The document parser.
    pub parser: Arc<dyn Parser>,
    /// The client that fetches pages; `None` builds one from the settings, over the machine's
    /// network.
    pub web: Option<Arc<dyn WebClient>>,
    /// The client that posts webhooks; `None` builds one from the settings, as for `web`.
    pub webhook_client: Option<Arc<dyn WebhookClient>>,
    /// The vector kernels.
    pub backend: Arc<dyn ComputeBackend>,
    /// The generator that writes answers; `None` takes the one of the settings.
    pub generator: Option<Arc<dyn Generator>>,
}

impl Components {
    /// The components of a real machine, with one model. Documents are parsed in this process; a
    /// program that can start itself as a sandboxed parser replaces `parser`.
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
