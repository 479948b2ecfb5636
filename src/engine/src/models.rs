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

    /// The others.
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

    /// The same models with another one in the place of the current one.
    #[must_use]
    pub(crate) fn led_by(&self, current: &Arc<dyn Embedder>) -> Self {
        Self { current: Arc::clone(current), ..self.clone() }
    }
}

impl<E: Embedder + 'static> From<Arc<E>> for Models {
    fn from(current: Arc<E>) -> Self {
        Self::new(current, Vec::new())
    }
}
