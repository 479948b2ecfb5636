//! Reports the health of storage, index and models, for load balancers and operators.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::Engine;
use lodestone_catalog::CatalogError;
use lodestone_embed::{EmbedError, Embedder, Lane};
use lodestone_io::Fullness;
use lodestone_types::{CollectionId, RequestContext, Timestamp};

/// Time for which the result of a probe is reused, since probes cost computation and any client may
/// request them.
const PROBE_MILLIS: u64 = 5000;

/// Time limit of a model's answer, as load balancers wait only a few seconds.
const PROBE_TIME: Duration = Duration::from_secs(2);

/// The last result of probing the models.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    at: Timestamp,
    state: ComponentState,
}

/// The state of one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentState {
    /// Works.
    Usable,
    /// Works for a part of the data, or cannot take changes now. The text says which.
    Degraded(&'static str),
    /// Does not work. The text says why.
    Unusable(&'static str),
}

/// The states of the components that a request may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Data directory, bucket and catalog.
    pub storage: ComponentState,
    /// The open collections, and the nodes that work for them.
    pub index: ComponentState,
    /// The embedding model.
    pub embedder: ComponentState,
}

impl Engine {
    /// Reports the states of all components. A full disk does not make the server unhealthy, since
    /// reads continue.
    pub fn health(&self) -> Health {
        Health {
            storage: self.storage_state(),
            index: self.index_state(),
            embedder: self.embedder_state(),
        }
    }

    fn storage_state(&self) -> ComponentState {
        if self.data.is_poisoned() {
            return ComponentState::Unusable("writes are refused because a sync failed");
        }
        if let Some(state) = self.follower.as_ref().and_then(|follower| follower.problem()) {
            return state;
        }
        match self.catalog.log_state() {
            Some(log) if log.is_fenced => {
                return ComponentState::Unusable("another process has taken over the bucket");
            }
            Some(_) if self.catalog.require_current().is_err() => {
                let problem = "the bucket is unreachable, or another process may have taken over";
                return ComponentState::Unusable(problem);
            }
            Some(log)
                if log.bytes_waiting > 0 || self.bucket.as_ref().is_some_and(|b| b.is_away()) =>
            {
                return ComponentState::Degraded(
                    "the bucket is unreachable: no new content is accepted",
                );
            }
            _ => {}
        }
        // Any answer will do; the expected one is that no collection has this id.
        match self.catalog.head(CollectionId(Uuid::nil())) {
            Ok(_) | Err(CatalogError::CollectionUnknown { .. }) => match self.gauge.level() {
                Fullness::Ample | Fullness::Tight => ComponentState::Usable,
                Fullness::Full => ComponentState::Degraded("the disk is full: no new content"),
                Fullness::Critical => {
                    ComponentState::Degraded("the disk is full: deletions and reads only")
                }
            },
            Err(_) => ComponentState::Unusable("the catalog cannot be read"),
        }
    }

    fn index_state(&self) -> ComponentState {
        let open = self.registry.open_collections();
        let is_poisoned = open.iter().any(|collection| collection.is_poisoned());
        let damaged: Vec<_> =
            open.iter().filter(|collection| !collection.snapshot().damaged.is_empty()).collect();
        let needs_help = damaged.iter().any(|collection| self.ingest.needs_help(collection));
        if is_poisoned {
            ComponentState::Degraded("a collection refuses writes")
        } else if self.registry.unopenable() > 0 {
            ComponentState::Degraded(
                "a tenant's data cannot be opened: the server log names the files to restore",
            )
        } else if self.registry.too_new() > 0 {
            ComponentState::Degraded(
                "a tenant's data are of a later release than this server: upgrade it",
            )
        } else if needs_help {
            ComponentState::Degraded(
                "segments are quarantined and cannot be rebuilt from originals: see the server \
                 log, and upload their sources again or restore a backup",
            )
        } else if !damaged.is_empty() {
            ComponentState::Degraded("segments are quarantined and being rebuilt")
        } else if open.iter().any(|collection| self.ingest.foreign_model(collection).is_some()) {
            ComponentState::Degraded(
                "a tenant's vectors were made by another model: keyword search only, no uploads",
            )
        } else if self.ingest.nodes().is_some_and(|nodes| nodes.has_problem()) {
            ComponentState::Degraded(
                "an ingest node is unused or only partly used: see the server log",
            )
        } else if self.peers().is_some_and(|peers| peers.has_problem()) {
            ComponentState::Degraded(
                "a query node is unreachable: others answer for its tenants; see the server log \
                 and the metric query_node_answers",
            )
        } else if self.ingest.waits_for_memory() {
            ComponentState::Degraded("documents are waiting for memory: see LODESTONE_MEMORY_LIMIT")
        } else {
            ComponentState::Usable
        }
    }

    fn probe_models(&self) -> Result<(), EmbedError> {
        let probe = |model: &Arc<dyn Embedder>| {
            let context = RequestContext::with_limit(PROBE_TIME);
            model.embed_within(Lane::Query, &context, vec!["ready".to_owned()]).map(drop)
        };
        // A model that is not loaded is not probed, because that would load it.
        self.models.all().filter(|model| model.is_loaded()).try_for_each(probe)
    }

    fn embedder_state(&self) -> ComponentState {
        let now = self.clock.now();
        let mut probed = self.probed.lock();
        if let Some(probe) = *probed
            && now.0.abs_diff(probe.at.0) < PROBE_MILLIS
        {
            return probe.state;
        }
        let state = match self.probe_models() {
            // An overloaded model still works.
            Ok(()) | Err(EmbedError::Overloaded { .. }) => ComponentState::Usable,
            Err(EmbedError::Stopped(_)) => {
                ComponentState::Degraded("the embedding model did not answer within two seconds")
            }
            Err(EmbedError::Remote { .. }) => ComponentState::Degraded(
                "the embedding server fails: keyword search only, uploads wait",
            ),
            Err(EmbedError::Closed) => {
                ComponentState::Unusable("the embedding model is shutting down")
            }
            Err(_) => ComponentState::Unusable("the embedding model fails"),
        };
        *probed = Some(Probe { at: now, state });
        state
    }
}
