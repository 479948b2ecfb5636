//! The embedding models that a server runs with.
//!
//! - `recent`: vectors of texts that were embedded lately; `remote`: a model on another server

mod recent;
mod remote;

use std::sync::Arc;

pub(crate) use recent::{OwnedText, RecentVectors};
pub use remote::{EmbeddingServer, RemoteEmbedder};

use lodestone_embed::Embedder;
use lodestone_storage::collection::Manifest;

/// The model of new tenants, and perhaps another one whose vectors are searched as well.
#[derive(Debug, Clone)]
pub struct Models {
    current: Arc<dyn Embedder>,
    previous: Option<Arc<dyn Embedder>>,
    recent: Arc<RecentVectors>,
}

impl Models {
    /// `previous` is passed over where it is the same model.
    pub fn new(current: Arc<dyn Embedder>, previous: Option<Arc<dyn Embedder>>) -> Self {
        let previous = previous.filter(|other| other.fingerprint() != current.fingerprint());
        Self { current, previous, recent: Arc::default() }
    }

    /// The model of new tenants.
    pub fn current(&self) -> &Arc<dyn Embedder> {
        &self.current
    }

    /// The other one, if there is one.
    pub fn previous(&self) -> Option<&Arc<dyn Embedder>> {
        self.previous.as_ref()
    }

    /// Vectors of texts of searches and answers, which its copies share.
    pub(crate) fn recent(&self) -> &RecentVectors {
        &self.recent
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Embedder>> {
        std::iter::once(&self.current).chain(&self.previous)
    }

    /// The model of a fingerprint, where it is loaded.
    pub fn with(&self, fingerprint: &str) -> Option<&Arc<dyn Embedder>> {
        self.all().find(|model| model.fingerprint() == fingerprint)
    }

    /// The model behind the vectors of a version of a tenant: the current one where there are
    /// none, nothing where it is not loaded.
    pub fn of(&self, manifest: &Manifest) -> Option<&Arc<dyn Embedder>> {
        manifest.model().map_or(Some(&self.current), |made_by| self.with(made_by))
    }
}

impl<E: Embedder + 'static> From<Arc<E>> for Models {
    fn from(current: Arc<E>) -> Self {
        Self::new(current, None)
    }
}
