//! Divides tenants among query nodes: one node answers for each tenant and keeps it cached.
//!
//! ```text
//! tenant -> the usable nodes ranked by hash(address, tenant) -> the first, this one or another, or
//!           one of the first few if the tenant has many requests in flight (`loads`)
//! thread "peer-N"   GET /healthz once a second: is it there, and is it this process?
//! thread "join"     opens the tenants this node will answer for, then reports that it has joined
//! ```
//! Rendezvous hashing (Thaler and Ravishankar 1998): when a node is lost, only its tenants move to
//! others, and they return with it. Nodes with different lists, or with different views of which
//! nodes are usable, disagree for a while. That costs a cold cache, never a wrong answer, since
//! every node can answer for every tenant.

mod loads;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ureq::http::HeaderMap;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::sharing::Sharing;
use crate::ingest::stopping::Stopping;
use crate::settings::InvalidSetting;
pub use loads::Assignment;
use loads::Loads;
use lodestone_fetch::{Authorities, Forwarder};
use lodestone_metrics::{Counter, Family, Gauge, Registry};
use lodestone_types::TenantId;

/// Interval between probes of a node, and the timeout of a probe.
const LOOK: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(3);

/// The query nodes that divide the tenants among themselves.
#[derive(Debug)]
pub struct Peers {
    /// Name of this process, by which it recognizes itself among the nodes.
    own: Uuid,
    /// Whether this process answers for its tenants: it has opened them, or no node had when it
    /// joined.
    has_joined: AtomicBool,
    pub(super) peers: Vec<Peer>,
    /// Position of this process in `peers`, once it has found itself there.
    own_at: OnceLock<usize>,
    /// Set if the nodes share searches.
    pub(super) sharing: Option<Sharing>,
    loads: Arc<Loads>,
    stopping: Stopping,
    usable: Gauge,
    /// Whether each node answers, by address.
    answering: Family<Gauge, 1>,
    passed: Counter,
    failed: Counter,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) forwarder: Arc<Forwarder>,
    pub(super) seed: u64,
    pub(super) standing: Mutex<Standing>,
}

/// State of a node at its last probe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not probed yet.
    #[default]
    Unseen,
    /// Does not answer, or is no query node.
    Unusable,
    /// Another process, which is still opening its tenants.
    Joining,
    /// Another process, which answers for its tenants.
    Other,
    /// This process itself.
    Own,
}

/// Outcome of a request that was passed to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerEnd {
    /// The node answered.
    Answered,
    /// The node said that another one has to answer.
    Refused,
    /// No answer came.
    Lost,
}

impl Peers {
    /// Creates the list of nodes at `urls`; this process is called `own`. None is probed yet.
    ///
    /// # Errors
    /// An invalid address.
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
        let (has_joined, own_at, sharing, loads, stopping) = Default::default();
        let (usable, answering, passed, failed) = Default::default();
        Ok(Self {
            own,
            has_joined,
            peers,
            own_at,
            sharing,
            loads,
            stopping,
            usable,
            answering,
            passed,
            failed,
        })
    }

    /// Sets how the nodes share searches.
    pub(super) fn with_sharing(self, sharing: Option<Sharing>) -> Self {
        Self { sharing, ..self }
    }

    /// The name of this process.
    pub fn own_name(&self) -> Uuid {
        self.own
    }

    /// The clients of all nodes.
    pub fn forwarders(&self) -> impl Iterator<Item = &Arc<Forwarder>> {
        self.peers.iter().map(|peer| &peer.forwarder)
    }

    /// Whether this process answers for its tenants.
    pub fn has_joined(&self) -> bool {
        self.has_joined.load(Ordering::Relaxed)
    }

    /// Whether every node has been probed.
    pub(super) fn are_seen(&self) -> bool {
        self.standings().iter().all(|one| *one != Standing::Unseen)
    }

    /// Whether this process has found itself in the list.
    pub(super) fn has_own_place(&self) -> bool {
        self.own_at.get().is_some()
    }

    /// Whether some node does not answer, or is no query node.
    pub(crate) fn has_problem(&self) -> bool {
        self.standings().contains(&Standing::Unusable)
    }

    /// Whether some other node answers for tenants.
    pub(super) fn someone_answers(&self) -> bool {
        self.standings().contains(&Standing::Other)
    }

    /// Whether this process will answer for a tenant once all nodes have joined. Its own state does
    /// not count, since it may just have been too busy to answer its own probe.
    pub(super) fn will_answer(&self, tenant: &TenantId) -> bool {
        let (standings, own) = (self.standings(), self.own_at.get());
        let joins = |at: usize| {
            Some(&at) == own || matches!(standings[at], Standing::Joining | Standing::Other)
        };
        own.is_some() && self.ranked(tenant, joins).first() == own
    }

    /// Makes this process answer for its tenants from now on.
    pub(super) fn join(&self) {
        self.has_joined.store(true, Ordering::Relaxed);
    }

    /// Assigns a request of a tenant to the node that should answer it; `None` if no node is
    /// usable.
    pub fn begin(&self, tenant: &TenantId) -> Option<Assignment> {
        let standings = self.standings();
        let ranked = self.ranked(tenant, |at| self.answers(standings[at]));
        let own = ranked.iter().copied().find(|at| standings[*at] == Standing::Own);
        self.loads.begin(tenant, &ranked, self.peers.len(), own, Instant::now())
    }

    /// Whether a node in this state answers for its tenants.
    fn answers(&self, standing: Standing) -> bool {
        standing == Standing::Other || standing == Standing::Own && self.has_joined()
    }

    fn standings(&self) -> Vec<Standing> {
        self.peers.iter().map(|peer| *peer.standing.lock()).collect()
    }

    /// The positions of the nodes that `takes` accepts, ranked for the tenant, best first.
    fn ranked(&self, tenant: &TenantId, takes: impl Fn(usize) -> bool) -> Vec<usize> {
        let rank = |at: usize| xxh3_64_with_seed(tenant.as_str().as_bytes(), self.peers[at].seed);
        let mut ranked: Vec<usize> = (0..self.peers.len()).filter(|at| takes(*at)).collect();
        ranked.sort_unstable_by_key(|at| Reverse((rank(*at), *at)));
        ranked
    }

    /// Records how a request to another node ended. A node that gave no answer is not used again
    /// before its next successful probe.
    pub fn note(&self, at: usize, end: PeerEnd) {
        match end {
            PeerEnd::Answered => self.passed.inc(),
            PeerEnd::Refused => self.failed.inc(),
            PeerEnd::Lost => {
                self.failed.inc();
                *self.peers[at].standing.lock() = Standing::Unusable;
            }
        }
    }

    /// Starts one probing thread per node.
    pub(super) fn start(self: &Arc<Self>) -> impl Iterator<Item = JoinHandle<()>> {
        (0..self.peers.len()).map(|at| {
            let peers = Arc::clone(self);
            let builder = std::thread::Builder::new().name(format!("peer-{at}"));
            builder.spawn(move || peers.watch(at)).expect("the system provides threads at start")
        })
    }

    fn watch(&self, at: usize) {
        let (peer, mut is_told, mut had_joined) = (&self.peers[at], false, false);
        let node = peer.forwarder.base();
        let answering = self.answering.with([("node", node.to_owned().into())]);
        while !self.stopping.is_set() {
            let looked = self.look(&peer.forwarder);
            let found = looked.as_ref().ok().copied();
            *peer.standing.lock() = found.unwrap_or(Standing::Unusable);
            answering.set(u64::from(found.is_some()));
            if found == Some(Standing::Own) {
                self.own_at.get_or_init(|| at);
            }
            match &looked {
                Ok(Standing::Other) if !had_joined => {
                    tracing::info!(node, "a query node answers for its tenants");
                }
                Err(problem) if !is_told => {
                    let event = "a query node is unreachable: others answer for its tenants";
                    tracing::warn!(node, problem, "{event}");
                }
                _ => {}
            }
            (is_told, had_joined) = (found.is_none(), found == Some(Standing::Other));
            peer.forwarder.note(looked.err());
            if let Some(sharing) = &self.sharing {
                let standings = self.standings();
                let is_other = |at: &usize| standings[*at] == Standing::Other;
                let others: Vec<usize> = (0..standings.len()).filter(is_other).collect();
                sharing.note(at, found.is_none(), &others);
            }
            let answers = self.standings().into_iter().filter(|one| self.answers(*one));
            self.usable.set(answers.count() as u64);
            self.stopping.wait(LOOK);
        }
    }

    fn look(&self, forwarder: &Forwarder) -> Result<Standing, String> {
        let answer = forwarder.ask("/healthz", &HeaderMap::new(), ANSWER);
        let answer = answer.map_err(|error| error.problem().to_owned())?;
        let health: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
        let name = health["node"].as_str().and_then(|name| name.parse::<Uuid>().ok());
        let name = name.ok_or("it is not a query node that shares tenants")?;
        Ok(match health["joining"] == true {
            _ if name == self.own => Standing::Own,
            true => Standing::Joining,
            false => Standing::Other,
        })
    }

    /// Asks the threads to end.
    pub(super) fn stop(&self) {
        self.stopping.set();
    }

    pub(super) fn enter_meters(&self, registry: &mut Registry) {
        let help = "Query nodes that answer for their tenants, including this one";
        registry.enter("query_nodes_usable", help, &self.usable);
        let help = "Whether each query node answers";
        registry.enter("query_node_answers", help, &self.answering);
        let help = "Requests answered by another query node, which is responsible for the tenant";
        registry.enter("query_nodes_passed_total", help, &self.passed);
        let help = "Requests refused or lost by another query node and answered here";
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
        peers.has_joined.store(true, Ordering::Relaxed);
        peers
    }

    fn owner(peers: &Peers, own: usize, tenant: &TenantId) -> usize {
        peers.begin(tenant).and_then(|assignment| assignment.other()).unwrap_or(own)
    }

    fn tenant(number: usize) -> TenantId {
        TenantId::parse(&format!("tenant-{number}")).unwrap()
    }

    /// Goal: every node names the same owner, tenants are spread, and the loss of a node moves its
    /// tenants alone.
    #[test]
    fn nodes_agree_on_the_owner_of_a_tenant() {
        const TENANTS: usize = 3000;
        let nodes: Vec<Peers> = (0..3).map(|own| peers(own, 3)).collect();
        let mut counts = [0; 3];
        let owners: Vec<usize> = (0..TENANTS).map(|t| owner(&nodes[0], 0, &tenant(t))).collect();
        for (number, first) in owners.iter().enumerate() {
            counts[*first] += 1;
            assert_eq!(owner(&nodes[1], 1, &tenant(number)), *first);
            assert_eq!(owner(&nodes[2], 2, &tenant(number)), *first);
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        for end in [PeerEnd::Answered, PeerEnd::Refused] {
            nodes[0].note(2, end);
            assert_eq!(nodes[0].standings()[2], Standing::Other, "it is there");
        }
        nodes[0].note(2, PeerEnd::Lost);
        for (number, before) in owners.into_iter().enumerate() {
            let now = owner(&nodes[0], 0, &tenant(number));
            assert!(now == before || before == 2, "tenant {number}: {before} -> {now}");
            assert_ne!(now, 2);
        }
    }

    /// Goal: a node that is opening its tenants knows which ones they are, even while it is too
    /// busy to answer its own probe.
    #[test]
    fn a_node_knows_its_tenants_before_it_answers() {
        let joining = peers(0, 3);
        let tenants = (0..100).map(tenant);
        let own = |tenant: &TenantId| owner(&joining, 0, tenant) == 0;
        let expected: Vec<TenantId> = tenants.clone().filter(own).collect();
        assert!((20..50).contains(&expected.len()));
        let will_answer = || tenants.clone().filter(|tenant| joining.will_answer(tenant));
        assert_eq!(will_answer().count(), 0, "it has not found itself yet");
        joining.own_at.get_or_init(|| 0);
        *joining.peers[0].standing.lock() = Standing::Unusable;
        *joining.peers[2].standing.lock() = Standing::Joining;
        assert_eq!(will_answer().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn nobody_is_asked_who_was_not_seen() {
        let urls = ["http://a".to_owned(), "http://b".to_owned()];
        let peers =
            Peers::new(Uuid::nil(), urls.iter().map(String::as_str), &Authorities::default())
                .unwrap();
        assert!(peers.begin(&tenant(0)).is_none());
    }
}
