//! The work of an ingest node, without its HTTP.

use std::sync::Arc;

use super::wire::{self, Description, EmbedTask};
use crate::nodes::{NodeKey, NodeRefusal, RELEASE};
use lodestone_embed::{EmbedError, Embedder, Lane, SparseModel};
use lodestone_extract::Format;
use lodestone_extract::sandbox::{Parser, parsed_to_bytes};
use lodestone_metrics::{Counter, Registry};
use lodestone_types::Secret;
use lodestone_types::{ErrorKind, RequestContext};

/// Maximum texts per task; processes send slices of a few hundred.
const TEXTS_MAX: usize = 1024;

/// An ingest node: models and a parser, and nothing else.
#[derive(Debug)]
pub struct NodeService {
    key: NodeKey,
    models: Vec<Arc<dyn Embedder>>,
    sparse: Option<Arc<SparseModel>>,
    parser: Arc<dyn Parser>,
    description: Description,
    passages: Counter,
    documents: Counter,
}

impl NodeService {
    /// Creates a node with these models, which computes on the named device.
    pub fn new(
        key: &Secret,
        models: Vec<Arc<dyn Embedder>>,
        sparse: Option<Arc<SparseModel>>,
        parser: Arc<dyn Parser>,
        device: &str,
    ) -> Self {
        let description = Description {
            version: RELEASE.to_owned(),
            models: models.iter().map(|model| model.fingerprint().to_owned()).collect(),
            sparse: sparse.as_ref().map(|model| model.fingerprint().to_owned()),
            device: device.to_owned(),
        };
        let key = NodeKey::new(key);
        let (passages, documents) = Default::default();
        Self { key, models, sparse, parser, description, passages, documents }
    }

    /// The key shared by the nodes.
    pub fn key(&self) -> &NodeKey {
        &self.key
    }

    /// The node's description of itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The problem of a model that currently yields no vectors, if any.
    pub fn problem(&self) -> Option<String> {
        self.models.iter().find_map(|model| model.failing()).map(|failing| failing.problem)
    }

    /// Embeds the passages of an [`EmbedTask`]. Blocking.
    ///
    /// # Errors
    /// [`NodeRefusal`].
    pub fn embed(&self, task: &[u8]) -> Result<Vec<u8>, NodeRefusal> {
        let EmbedTask { model, texts } = read(task)?;
        let model = self.models.iter().find(|known| known.fingerprint() == model);
        let model = model.ok_or_else(unknown_model)?;
        let count = texts.len() as u64;
        let vectors = model.embed_within(Lane::Bulk, &RequestContext::default(), texts)?;
        self.passages.add(count);
        Ok(wire::vectors_to_bytes(&vectors))
    }

    /// Embeds the passages of an [`EmbedTask`] with the sparse model. Blocking.
    ///
    /// # Errors
    /// [`NodeRefusal`].
    pub fn embed_sparse(&self, task: &[u8]) -> Result<Vec<u8>, NodeRefusal> {
        let EmbedTask { model, texts } = read(task)?;
        let sparse = self.sparse.as_ref().filter(|known| known.fingerprint() == model);
        let sparse = sparse.ok_or_else(unknown_model)?;
        let vectors = sparse.documents(Lane::Bulk, &RequestContext::default(), texts)?;
        Ok(serde_json::to_vec(&vectors).expect("plain data always prints"))
    }

    /// Parses a document and encodes the result, which may be an error of the document. Blocking.
    pub fn parse(&self, format: Format, document: &[u8]) -> Vec<u8> {
        let parsed = parsed_to_bytes(self.parser.parse(format, document));
        self.documents.inc();
        parsed
    }

    /// Registers the metrics.
    pub fn enter_meters(&self, registry: &mut Registry) {
        let help = "Passages embedded by this ingest node for others";
        registry.enter("node_passages_total", help, &self.passages);
        let help = "Documents parsed by this ingest node for others";
        registry.enter("node_documents_total", help, &self.documents);
        if let Some(meters) = self.models.first().and_then(|model| model.meters()) {
            meters.enter(registry);
        }
    }

    /// Fails everything that waits for a model, because the node is ending.
    pub fn close(&self) {
        self.models.iter().for_each(|model| model.close());
        self.sparse.iter().for_each(|model| model.close());
    }
}

fn read(task: &[u8]) -> Result<EmbedTask, NodeRefusal> {
    let task: EmbedTask = serde_json::from_slice(task)
        .map_err(|error| NodeRefusal::Invalid(format!("the body is not a valid task: {error}")))?;
    match task.texts.len() > TEXTS_MAX {
        true => Err(NodeRefusal::Invalid(format!("texts has more than {TEXTS_MAX} entries"))),
        false => Ok(task),
    }
}

fn unknown_model() -> NodeRefusal {
    NodeRefusal::Invalid("model is not the fingerprint of a model of this node".to_owned())
}

impl From<EmbedError> for NodeRefusal {
    fn from(error: EmbedError) -> Self {
        match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Overloaded => Self::Busy(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
