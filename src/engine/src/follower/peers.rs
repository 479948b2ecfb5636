//! Query nodes among themselves: one of them answers for a tenant, and has it at hand.
//!
//! ```text
//! tenant -> the usable nodes ranked by hash(address, tenant) -> the first: this one, or another;
//!           one of the first few, where many of its requests are under way (`loads`)
//! thread "peer-N"   GET /healthz once a second: is it there, and is it this one?
//! ```
//! Rendezvous hashing (Thaler and Ravishankar 1998): where a node is lost, its tenants alone go to
//! others, and they come back with it. Nodes that hold different lists, or see different nodes as
//! usable, choose differently for a while: that costs a cold copy, never a wrong answer, as every
//! node answers for every tenant.

mod loads;

use std::cmp::Reverse;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ureq::http::HeaderMap;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::shares::Sharing;
use crate::ingest::stopping::Stopping;
use crate::settings::InvalidSetting;
pub use loads::Assignment;
use loads::Loads;
use lodestone_fetch::{Authorities, Forwarder};
use lodestone_metrics::{Counter, Gauge, Registry};
use lodestone_types::TenantId;

/// Time between two looks at a node, and for its answer.
const LOOK: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(3);

/// The query nodes that share the tenants.
#[derive(Debug)]
pub struct Peers {
    /// Name of this process, by which it knows itself among them.
    own: Uuid,
    pub(super) peers: Vec<Peer>,
    /// Present where they share searches.
    pub(super) sharing: Option<Sharing>,
    loads: Arc<Loads>,
    stopping: Stopping,
    usable: Gauge,
    passed: Counter,
    failed: Counter,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) forwarder: Arc<Forwarder>,
    pub(super) seed: u64,
    pub(super) standing: Mutex<Standing>,
}

/// The last that was seen of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// It does not answer, or is no query node.
    #[default]
    Unusable,
    /// Another process.
    Other,
    /// This process.
    Own,
}

impl Peers {
    /// The nodes at `urls`; this process answers as `own`. None is asked yet.
    ///
    /// # Errors
    /// An address that is none.
    pub(super) fn new<'a>(
        own: Uuid,
        urls: impl Iterator<Item = &'a str>,
        authorities: &Authorities,
    ) -> Result<Self, InvalidSetting> {
        let peer = |url| {
            let forwarder = Forwarder::new(url, authorities)
                .map_err(|problem| InvalidSetting { name: "query-nodes", problem })?;
            let seed = xxh3_64_with_seed(forwarder.base().as_bytes(), 0);
            Ok(Peer { forwarder: Arc::new(forwarder), seed, standing: Mutex::default() })
        };
        let peers = urls.map(peer).collect::<Result<_, _>>()?;
        let (loads, stopping, usable, passed, failed) = Default::default();
        Ok(Self { own, peers, sharing: None, loads, stopping, usable, passed, failed })
    }

    /// The same, sharing searches too.
    pub(super) fn with_sharing(self, sharing: Option<Sharing>) -> Self {
        Self { sharing, ..self }
    }

    /// Name of this process.
    pub fn own_name(&self) -> Uuid {
        self.own
    }

    /// The ways to all of them.
    pub fn forwarders(&self) -> impl Iterator<Item = &Arc<Forwarder>> {
        self.peers.iter().map(|peer| &peer.forwarder)
    }

    /// Begins a request of a tenant at the node that is to answer it; `None` where none was seen.
    pub fn begin(&self, tenant: &TenantId) -> Option<Assignment> {
        let (ranked, own) = self.ranked(tenant);
        self.loads.begin(tenant, &ranked, self.peers.len(), own, Instant::now())
    }

    /// The positions of the usable nodes, that of the tenant first, and that of this process.
    fn ranked(&self, tenant: &TenantId) -> (Vec<usize>, Option<usize>) {
        let rank = |peer: &Peer| xxh3_64_with_seed(tenant.as_str().as_bytes(), peer.seed);
        let mut own = None;
        let mut usable = Vec::with_capacity(self.peers.len());
        for (at, peer) in self.peers.iter().enumerate() {
            match *peer.standing.lock() {
                Standing::Unusable => continue,
                Standing::Own => own = Some(at),
                Standing::Other => {}
            }
            usable.push((Reverse((rank(peer), at)), at));
        }
        usable.sort_unstable();
        (usable.into_iter().map(|(_, at)| at).collect(), own)
    }

    /// Counts a request that another node answered, or that it failed: it is not asked again before
    /// it was looked at.
    pub fn note(&self, at: usize, has_answered: bool) {
        if has_answered {
            self.passed.inc();
            return;
        }
        self.failed.inc();
        *self.peers[at].standing.lock() = Standing::Unusable;
    }

    /// Starts looking at them.
    pub(super) fn start(self: &Arc<Self>) -> impl Iterator<Item = JoinHandle<()>> {
        (0..self.peers.len()).map(|at| {
            let peers = Arc::clone(self);
            let builder = std::thread::Builder::new().name(format!("peer-{at}"));
            builder.spawn(move || peers.watch(at)).expect("the system provides threads at start")
        })
    }

    fn watch(&self, at: usize) {
        let (peer, mut was_there) = (&self.peers[at], false);
        while !self.stopping.is_set() {
            let found = self.look(&peer.forwarder);
            *peer.standing.lock() = found.unwrap_or_default();
            let node = peer.forwarder.base();
            match found {
                Some(Standing::Other) if !was_there => {
                    tracing::info!(node, "a query node answers for its tenants");
                }
                None if was_there => {
                    tracing::warn!(node, "a query node is away: others answer for its tenants");
                }
                _ => {}
            }
            was_there = found.is_some();
            peer.forwarder.note(found.is_none().then(|| "it does not answer".to_owned()));
            if let Some(sharing) = &self.sharing {
                let is_other = |at: &usize| *self.peers[*at].standing.lock() == Standing::Other;
                let others: Vec<usize> = (0..self.peers.len()).filter(is_other).collect();
                sharing.note(at, found, &others);
            }
            let is_usable = |peer: &&Peer| *peer.standing.lock() != Standing::Unusable;
            self.usable.set(self.peers.iter().filter(is_usable).count() as u64);
            self.stopping.wait(LOOK);
        }
    }

    fn look(&self, forwarder: &Forwarder) -> Option<Standing> {
        let answer = forwarder.ask("/healthz", &HeaderMap::new(), ANSWER).ok()?;
        let health: serde_json::Value = serde_json::from_slice(&answer).ok()?;
        let name: Uuid = health["node"].as_str()?.parse().ok()?;
        Some(if name == self.own { Standing::Own } else { Standing::Other })
    }

    /// Asks the threads to end.
    pub(super) fn stop(&self) {
        self.stopping.set();
    }

    pub(super) fn enter_meters(&self, registry: &mut Registry) {
        let help = "Query nodes that share the tenants and are usable, this one among them";
        registry.enter("query_nodes_usable", help, &self.usable);
        let help = "Requests that another query node answered, which has the tenant at hand";
        registry.enter("query_nodes_passed_total", help, &self.passed);
        let help = "Requests that another query node failed; they were answered here";
        registry.enter("query_nodes_failed_total", help, &self.failed);
        if let Some(sharing) = &self.sharing {
            sharing.enter_meters(registry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(own: usize, nodes: usize) -> Peers {
        let urls: Vec<String> = (0..nodes).map(|n| format!("http://node-{n}:8080")).collect();
        let peers =
            Peers::new(Uuid::nil(), urls.iter().map(String::as_str), &Authorities::default())
                .unwrap();
        for (at, peer) in peers.peers.iter().enumerate() {
            *peer.standing.lock() = if at == own { Standing::Own } else { Standing::Other };
        }
        peers
    }

    fn owner(peers: &Peers, own: usize, tenant: usize) -> usize {
        let tenant = TenantId::parse(&format!("tenant-{tenant}")).unwrap();
        peers.begin(&tenant).and_then(|assignment| assignment.other()).unwrap_or(own)
    }

    /// Goal: every node names the same owner, tenants are spread, and the loss of a node moves its
    /// tenants alone.
    #[test]
    fn nodes_agree_on_the_owner_of_a_tenant() {
        const TENANTS: usize = 3000;
        let nodes: Vec<Peers> = (0..3).map(|own| peers(own, 3)).collect();
        let mut counts = [0; 3];
        let owners: Vec<usize> = (0..TENANTS).map(|t| owner(&nodes[0], 0, t)).collect();
        for (tenant, first) in owners.iter().enumerate() {
            counts[*first] += 1;
            assert_eq!(owner(&nodes[1], 1, tenant), *first);
            assert_eq!(owner(&nodes[2], 2, tenant), *first);
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        nodes[0].note(2, false);
        for (tenant, before) in owners.into_iter().enumerate() {
            let now = owner(&nodes[0], 0, tenant);
            assert!(now == before || before == 2, "tenant {tenant}: {before} -> {now}");
            assert_ne!(now, 2);
        }
    }

    #[test]
    fn nobody_is_asked_who_was_not_seen() {
        let urls = ["http://a".to_owned(), "http://b".to_owned()];
        let peers =
            Peers::new(Uuid::nil(), urls.iter().map(String::as_str), &Authorities::default())
                .unwrap();
        assert!(peers.begin(&TenantId::parse("acme").unwrap()).is_none());
    }
}
