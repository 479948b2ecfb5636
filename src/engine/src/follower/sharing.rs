//! State of a query node that shares searches with others.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use ureq::http::HeaderMap;

use crate::nodes::{NodeKey, headers};
use crate::settings::{InvalidSetting, NodeSettings};
use lodestone_catalog::Catalog;
use lodestone_metrics::{Counter, Gauge, Registry as Meters};
use lodestone_storage::collection::Registry;

/// State of a query node that shares searches with others.
#[derive(Debug)]
pub(super) struct Sharing {
    pub(super) rows_min: u64,
    pub(super) key: NodeKey,
    pub(super) headers: HeaderMap,
    pub(super) catalog: Catalog,
    pub(super) registry: Arc<Registry>,
    /// Until when each node gets no tasks.
    pub(super) rests: Vec<Mutex<Option<Instant>>>,
    /// Number of other nodes that get tasks.
    asked: Gauge,
    pub(super) answered: Counter,
    pub(super) failed: Counter,
    pub(super) served: Counter,
}

impl Sharing {
    /// Creates the state from the settings; `None` if they do not let `nodes` share searches.
    ///
    /// # Errors
    /// A key that cannot be sent in a header.
    pub(super) fn new(
        settings: &NodeSettings,
        nodes: usize,
        catalog: &Catalog,
        registry: &Arc<Registry>,
    ) -> Result<Option<Self>, InvalidSetting> {
        let (Some(rows_min), Some(key)) = (settings.shared_search_rows, &settings.node_key) else {
            return Ok(None);
        };
        let (asked, answered, failed, served) = Default::default();
        Ok(Some(Self {
            rows_min,
            key: NodeKey::new(key),
            headers: headers(settings)?,
            catalog: catalog.clone(),
            registry: Arc::clone(registry),
            rests: (0..nodes).map(|_| Mutex::default()).collect(),
            asked,
            answered,
            failed,
            served,
        }))
    }

    pub(super) fn is_resting(&self, node: usize) -> bool {
        self.rests[node].lock().is_some_and(|until| Instant::now() < until)
    }

    /// Records the result of a probe. A node that is away may be another release when it returns,
    /// so its rest is over.
    pub(super) fn note(&self, node: usize, is_away: bool, others: &[usize]) {
        if is_away {
            *self.rests[node].lock() = None;
        }
        self.asked.set(others.iter().filter(|node| !self.is_resting(**node)).count() as u64);
    }

    pub(super) fn enter_meters(&self, meters: &mut Meters) {
        let help = "Other query nodes that take shares of searches";
        meters.enter("query_nodes_sharing", help, &self.asked);
        let help = "Shares of searches answered by other query nodes for this one";
        meters.enter("query_shares_answered_total", help, &self.answered);
        let help = "Shares of searches refused or not answered in time by another query node";
        meters.enter("query_shares_failed_total", help, &self.failed);
        let help = "Shares of searches answered by this query node for others";
        meters.enter("query_shares_served_total", help, &self.served);
    }
}
