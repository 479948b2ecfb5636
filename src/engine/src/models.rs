//! The embedding models that a server runs.
//!
//! - `remote`: a model served by another server

mod remote;

use std::sync::Arc;

pub use remote::{EmbeddingServer, RemoteEmbedder};

use lodestone_answer::Answerer;
use lodestone_embed::{Embedder, RecentVectors};
use lodestone_storage::collection::Manifest;

/// The embedding model of new tenants and the other loaded models, whose vectors are searched as
/// well.
#[derive(Debug, Clone)]
pub struct Models {
    current: Arc<dyn Embedder>,
    others: Vec<Arc<dyn Embedder>>,
    recent: Arc<RecentVectors>,
}

impl Models {
    /// Collects the models; of several with the same fingerprint the first is kept.
    pub fn new(current: Arc<dyn Embedder>, others: Vec<Arc<dyn Embedder>>) -> Self {
        let mut models = Self { current, others: Vec::new(), recent: Arc::default() };
        for other in others {
            if models.with(other.fingerprint()).is_none() {
                models.others.push(other);
            }
        }
        models
    }

    /// The model of new tenants.
    pub fn current(&self) -> &Arc<dyn Embedder> {
        &self.current
    }

    /// The other models, used by existing tenants.
    pub fn others(&self) -> &[Arc<dyn Embedder>] {
        &self.others
    }

    /// The model with a name. If several share it, the current one wins, then the first.
    pub fn named(&self, name: &str) -> Option<&Arc<dyn Embedder>> {
        self.all().find(|model| model.name() == name)
    }

    /// The cache of recent vectors of questions and answers, shared by all clones.
    pub(crate) fn recent(&self) -> &RecentVectors {
        &self.recent
    }

    /// An answerer that uses the current model and shares the cache of recent vectors.
    pub(crate) fn answerer(&self) -> Answerer {
        Answerer::new(Arc::clone(&self.current)).sharing(Arc::clone(&self.recent))
    }

    /// All models, the current one first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Embedder>> {
        std::iter::once(&self.current).chain(&self.others)
    }

    /// The loaded model with a fingerprint.
    pub fn with(&self, fingerprint: &str) -> Option<&Arc<dyn Embedder>> {
        self.all().find(|model| model.fingerprint() == fingerprint)
    }

    /// The model chosen for a tenant by name, or the current one if none was chosen; `None` if the
    /// chosen model is not loaded.
    pub fn chosen(&self, name: Option<&str>) -> Option<&Arc<dyn Embedder>> {
        name.map_or(Some(&self.current), |name| self.named(name))
    }

    /// The model that made the vectors of a manifest or, if it has no vectors yet, the one `chosen`
    /// by name or the current one; `None` if that model is not loaded.
    pub fn of(&self, manifest: &Manifest, chosen: Option<&str>) -> Option<&Arc<dyn Embedder>> {
        manifest.model().map_or_else(|| self.chosen(chosen), |made_by| self.with(made_by))
    }
}

impl<E: Embedder + 'static> From<Arc<E>> for Models {
    fn from(current: Arc<E>) -> Self {
        Self::new(current, Vec::new())
    }
}
