//! Explains to people why accepted texts still wait for their vectors.

use std::collections::HashMap;

use time::OffsetDateTime;

use crate::{Engine, TenantAccess};
use lodestone_catalog::job::JobRow;
use lodestone_embed::Embedder;
use lodestone_types::{CollectionId, SourceKind, Timestamp};

/// The reasons at one moment, to be looked up for many jobs.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    /// Reasons by open collection.
    known: HashMap<CollectionId, Option<String>>,
    /// The reason for all other collections, which are assumed to use the model of new tenants.
    otherwise: Option<String>,
}

impl Waiting {
    /// The reason why a job waits; `None` if it waits for nothing but its turn.
    pub fn reason(&self, job: &JobRow) -> Option<&str> {
        let needs_model = !job.status.is_settled() && job.job.kind != SourceKind::Embeddings;
        let reason = self.known.get(&job.collection).unwrap_or(&self.otherwise);
        reason.as_deref().filter(|_| needs_model)
    }
}

impl Engine {
    /// The reasons why jobs wait for vectors now.
    pub fn waiting(&self) -> Waiting {
        if self.models.all().all(|model| model.failing().is_none()) {
            return Waiting::default();
        }
        // A tenant that has no vectors yet counts as using the default model.
        let reason_of = |collection: &lodestone_storage::collection::Collection| {
            self.failure_of(&**self.models.of(&collection.snapshot().manifest, None)?)
        };
        let open = self.registry.open_collections();
        let known = open.iter().map(|collection| (collection.id(), reason_of(collection)));
        Waiting { known: known.collect(), otherwise: self.failure_of(self.embedder()) }
    }

    /// The current failure of a tenant's model; `None` while it works.
    pub fn model_failure(&self, access: &TenantAccess) -> Option<String> {
        let chosen = access.tenant.embedding_model.as_deref();
        self.failure_of(&**self.models.of(&access.collection.snapshot().manifest, chosen)?)
    }

    fn failure_of(&self, model: &dyn Embedder) -> Option<String> {
        let failing = model.failing()?;
        let ago = failing.since.elapsed().as_millis() as u64;
        let since = utc(Timestamp(self.clock.now().0.saturating_sub(ago)));
        Some(format!("the embedding server has been failing since {since}: {}", failing.problem))
    }
}

/// Formats a time for people: UTC, to the second.
fn utc(at: Timestamp) -> String {
    let seconds = i64::try_from(at.0 / 1000).unwrap_or(0);
    let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
    let (hour, minute, second) = time.to_hms();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
