//! The work of an ingest node, apart from its HTTP.

use std::sync::Arc;

use super::wire::{self, Description, EmbedTask};
use crate::nodes::{NodeKey, NodeRefusal, RELEASE};
use lodestone_embed::{EmbedError, Embedder, Lane, SparseModel};
use lodestone_extract::Format;
use lodestone_extract::sandbox::{Parser, parsed_to_bytes};
use lodestone_metrics::{Counter, Registry};
use lodestone_types::Secret;
use lodestone_types::{ErrorKind, RequestContext};

/// Texts of one task at most: a process sends slices of some hundred.
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
    /// A node with the models, the first of them that of new tenants, on the device of this name.
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

    /// The key of the nodes.
    pub fn key(&self) -> &NodeKey {
        &self.key
    }

    /// The node as it presents itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Why a model gives no vectors now.
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

    /// Vectors of the passages of an [`EmbedTask`] by the sparse model. Blocking.
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

    /// Parses a document; what it cannot be parsed for is an answer too. Blocking.
    pub fn parse(&self, format: Format, document: &[u8]) -> Vec<u8> {
        let parsed = parsed_to_bytes(self.parser.parse(format, document));
        self.documents.inc();
        parsed
    }

    /// Enters the measurements into a registry.
    pub fn enter_meters(&self, registry: &mut Registry) {
        let help = "Passages that this ingest node embedded for others";
        registry.enter("node_passages_total", help, &self.passages);
        let help = "Documents that this ingest node parsed for others";
        registry.enter("node_documents_total", help, &self.documents);
        if let Some(meters) = self.models.first().and_then(|model| model.meters()) {
            meters.enter(registry);
        }
    }

    /// Fails what waits for a model: the node ends.
    pub fn close(&self) {
        self.models.iter().for_each(|model| model.close());
        self.sparse.iter().for_each(|model| model.close());
    }
}

fn read(task: &[u8]) -> Result<EmbedTask, NodeRefusal> {
    let task: EmbedTask = serde_json::from_slice(task)
        .map_err(|error| NodeRefusal::Invalid(format!("the body is no task: {error}")))?;
    match task.texts.len() > TEXTS_MAX {
        true => Err(NodeRefusal::Invalid(format!("texts has more than {TEXTS_MAX} entries"))),
        false => Ok(task),
    }
}

fn unknown_model() -> NodeRefusal {
    NodeRefusal::Invalid("model is the fingerprint of no model of this node".to_owned())
}

impl From<EmbedError> for NodeRefusal {
    fn from(error: EmbedError) -> Self {
        match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Overloaded => Self::Busy(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
