//! The embedding models that a server runs with.
//!
//! - `remote`: a model on another server

mod remote;

use std::sync::Arc;

pub use remote::{EmbeddingServer, RemoteEmbedder};

use lodestone_answer::Answerer;
use lodestone_embed::{Embedder, RecentVectors};
use lodestone_storage::collection::Manifest;

/// The model of new tenants, and others whose vectors are searched as well.
#[derive(Debug, Clone)]
pub struct Models {
    current: Arc<dyn Embedder>,
    others: Vec<Arc<dyn Embedder>>,
    recent: Arc<RecentVectors>,
}

impl Models {
    /// Of models with one fingerprint the first is taken.
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

    /// The models of other tenants.
    pub fn others(&self) -> &[Arc<dyn Embedder>] {
        &self.others
    }

    /// The model of a name; of models with one name the first, and the current one before others.
    pub fn named(&self, name: &str) -> Option<&Arc<dyn Embedder>> {
        self.all().find(|model| model.name() == name)
    }

    /// Vectors of texts of searches and answers, which its copies share.
    pub(crate) fn recent(&self) -> &RecentVectors {
        &self.recent
    }

    /// An answerer by the current model that shares those vectors.
    pub(crate) fn answerer(&self) -> Answerer {
        Answerer::new(Arc::clone(&self.current)).sharing(Arc::clone(&self.recent))
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Embedder>> {
        std::iter::once(&self.current).chain(&self.others)
    }

    /// The model of a fingerprint, where it is loaded.
    pub fn with(&self, fingerprint: &str) -> Option<&Arc<dyn Embedder>> {
        self.all().find(|model| model.fingerprint() == fingerprint)
    }

    /// The model that was chosen for a tenant by name, the current one where none was; nothing
    /// where it is not loaded.
    pub fn chosen(&self, name: Option<&str>) -> Option<&Arc<dyn Embedder>> {
        name.map_or(Some(&self.current), |name| self.named(name))
    }

    /// The model behind the vectors of a version of a tenant: where there are none, the one that
    /// was `chosen` for it by name or the current one; nothing where it is not loaded.
    pub fn of(&self, manifest: &Manifest, chosen: Option<&str>) -> Option<&Arc<dyn Embedder>> {
        manifest.model().map_or_else(|| self.chosen(chosen), |made_by| self.with(made_by))
    }
}

impl<E: Embedder + 'static> From<Arc<E>> for Models {
    fn from(current: Arc<E>) -> Self {
        Self::new(current, Vec::new())
    }
}
