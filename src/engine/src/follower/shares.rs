//! Searches that query nodes share: sends tasks to other nodes and works on theirs.

use std::cmp::Reverse;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq::http::header::CONTENT_TYPE;
use ureq::http::{HeaderValue, Method, StatusCode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Follower;
use super::peers::{Peers, Standing};
use crate::nodes::{NodeRefusal, RELEASE};
use crate::query::QueryError;
use crate::query::shares::ShareNodes;
use crate::query::shares::wire::{
    ANSWER_BYTES_MAX, SHARE, ShareAnswer, ShareStep, ShareTask, TASK_BYTES_MAX, TASK_ROWS_MAX,
    TopsTask,
};
use crate::{Engine, EngineError};
use lodestone_fetch::forward::{ForwardBody, ForwardRequest};
use lodestone_storage::collection::{Collection, Snapshot};
use lodestone_types::{CollectionId, ErrorKind, RequestContext, SegmentId, SubTenantId, TenantId};

/// Time for which a node gets no tasks after it rejected one as invalid: it runs another release or
/// has another key.
const REST: Duration = Duration::from_secs(60);
/// Time for which a node gets no tasks after it did not answer in time, since each search would
/// wait for it again.
const LOST_REST: Duration = Duration::from_secs(5);
/// Divisor of the average load that gives how much of it a node may have on top, so that few
/// segments move when nodes come and go (Mirrokni, Thorup and Zadimoghaddam 2018).
const OVERLOAD: u64 = 4;

/// A collection and a snapshot of one of its versions.
type Version = (Arc<Collection>, Arc<Snapshot>);

/// The reason why a node gave no usable answer.
enum Failure {
    /// No connection, or no answer in time.
    Lost(String),
    /// The node has another version of the collection, is overloaded, or fails temporarily.
    Busy,
    /// The node rejects such tasks, or its answer makes no sense.
    Useless(String),
}

impl Peers {
    /// Whether searches of a tenant are shared, as far as this node knows. If so, any node may take
    /// the request.
    pub fn is_shared(&self, tenant: &TenantId) -> bool {
        let Some(sharing) = &self.sharing else { return false };
        let Ok(Some(tenant)) = sharing.catalog.tenant(tenant) else { return false };
        let open = sharing.registry.find(tenant.collection);
        open.is_some_and(|collection| collection.snapshot().rows() >= sharing.rows_min)
    }

    /// Whether searches are shared at all.
    pub fn shares_searches(&self) -> bool {
        self.sharing.is_some()
    }

    fn share_of(&self, at: usize, task: &ShareTask) -> Result<ShareAnswer, Failure> {
        let sharing = self.sharing.as_ref().expect("shares are asked for where searches have them");
        let body = serde_json::to_vec(task).expect("plain data always prints");
        if body.len() > TASK_BYTES_MAX {
            return Err(Failure::Busy);
        }
        let mut headers = sharing.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let length = Some(body.len() as u64);
        let body = Some(ForwardBody { reader: Box::new(io::Cursor::new(body)), length });
        let within = Some(Duration::from_millis(task.within_millis));
        let (method, target) = (Method::POST, SHARE.to_owned());
        let exchange = self.peers[at].forwarder.begin();
        let sent = exchange.send(ForwardRequest { method, target, headers, body, within });
        let answer = sent.map_err(|error| Failure::Lost(error.problem().to_owned()))?;
        match answer.status {
            StatusCode::OK => {}
            status => {
                exchange.abort();
                return Err(match status.is_server_error() {
                    true => Failure::Busy,
                    false => Failure::Useless(format!("status {}", status.as_u16())),
                });
            }
        }
        let mut bytes = Vec::new();
        let read = answer.body.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|error| Failure::Lost(error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| Failure::Useless(error.to_string()))
    }
}

impl ShareNodes for Peers {
    fn rows_min(&self) -> u64 {
        self.sharing.as_ref().map_or(u64::MAX, |sharing| sharing.rows_min)
    }

    fn assign(&self, segments: &[(SegmentId, u64)]) -> Vec<Option<usize>> {
        let Some(sharing) = &self.sharing else { return vec![None; segments.len()] };
        let usable: Vec<(usize, Standing)> = (0..self.peers.len())
            .map(|at| (at, *self.peers[at].standing.lock()))
            .filter(|(_, standing)| matches!(standing, Standing::Other | Standing::Own))
            .filter(|(at, _)| !sharing.is_resting(*at))
            .collect();
        let mut assigned = vec![None; segments.len()];
        if usable.is_empty() {
            return assigned;
        }
        let rows: u64 = segments.iter().map(|(_, rows)| rows).sum();
        let mean = rows.div_ceil(usable.len() as u64);
        let mut loads = vec![0; usable.len()];
        // Largest segments first, so that small ones fill the gaps.
        let mut order: Vec<usize> = (0..segments.len()).collect();
        order.sort_unstable_by_key(|at| (Reverse(segments[*at].1), segments[*at].0));
        for at in order {
            let (id, rows) = segments[at];
            let fits = |load: u64| load + rows <= mean + mean / OVERLOAD;
            let rank = |node: usize| xxh3_64_with_seed(id.0.as_bytes(), self.peers[node].seed);
            let all = usable.iter().enumerate();
            let by_rank = all.clone().filter(|(place, _)| fits(loads[*place]));
            let first = by_rank.max_by_key(|(_, (node, _))| (rank(*node), *node));
            let freest = || all.min_by_key(|(place, (node, _))| (loads[*place], *node));
            let (place, (node, standing)) = first.or_else(freest).expect("a node is usable");
            loads[place] += rows;
            assigned[at] = (*standing == Standing::Other).then_some(*node);
        }
        assigned
    }

    fn ask(&self, node: usize, task: &ShareTask) -> Option<ShareAnswer> {
        let sharing = self.sharing.as_ref()?;
        let failure = match self.share_of(node, task) {
            Ok(answer) => {
                sharing.answered.inc();
                return Some(answer);
            }
            Err(failure) => failure,
        };
        let base = self.peers[node].forwarder.base();
        match failure {
            // For example, the node has not opened the collection yet. It answered at once, so
            // nobody waited.
            Failure::Busy => {}
            Failure::Lost(problem) => {
                sharing.failed.inc();
                // A timeout may be due to a short time limit of the search; it says nothing about
                // the node.
                let problem = match problem.starts_with("timeout") {
                    true => "no answer in time",
                    false => {
                        *self.peers[node].standing.lock() = Standing::Unusable;
                        &problem
                    }
                };
                tracing::warn!(node = base, problem, "a query node failed to search its share");
                *sharing.rests[node].lock() = Some(Instant::now() + LOST_REST);
            }
            Failure::Useless(problem) => {
                sharing.failed.inc();
                tracing::warn!(
                    node = base,
                    problem,
                    "a query node refused its share of a search and is not asked for a minute: its \
                     release or node-key differs"
                );
                *sharing.rests[node].lock() = Some(Instant::now() + REST);
            }
        }
        None
    }
}

impl Follower {
    /// Finds the version of a collection that another node searches; `None` if it is not open here
    /// yet.
    fn version(
        self: &Arc<Self>,
        id: CollectionId,
        version: u64,
    ) -> Result<Option<Version>, EngineError> {
        let head = || Ok::<_, EngineError>(self.catalog.head(id)?);
        let Some(collection) = self.registry.find(id) else {
            let own = Arc::clone(self);
            // Nobody waits here, and the node that asks searches its share itself.
            let _behind = self.openings.open_within(id, Duration::ZERO, move || own.open(id));
            return Ok(None);
        };
        if collection.snapshot().manifest.version < version {
            if head()?.is_none_or(|head| head.version < version) {
                self.catalog.catch_up()?;
            }
            collection.refresh(head()?)?;
        }
        let snapshot = collection.snapshot_at(version);
        Ok(snapshot.map(|snapshot| (collection, snapshot)))
    }
}

impl Engine {
    /// Whether a token is the key of the nodes that share searches with this one.
    pub fn accepts_node(&self, token: &str) -> bool {
        let sharing = self.peers().and_then(|peers| peers.sharing.as_ref());
        sharing.is_some_and(|sharing| sharing.key.accepts(token))
    }

    /// Works on a [`ShareTask`] of another query node; returns an encoded [`ShareAnswer`]. Blocks.
    ///
    /// # Errors
    /// [`NodeRefusal`].
    pub fn work_on_share(&self, task: &[u8]) -> Result<Vec<u8>, NodeRefusal> {
        let follower = self.follower.as_ref();
        let sharing = self.peers().and_then(|peers| peers.sharing.as_ref());
        let Some((follower, sharing)) = follower.zip(sharing) else {
            return Err(NodeRefusal::Invalid("this node does not share searches".to_owned()));
        };
        let task: ShareTask = serde_json::from_slice(task).map_err(|error| {
            NodeRefusal::Invalid(format!("the body is not a valid task: {error}"))
        })?;
        if task.release != RELEASE {
            let problem = format!("release is {}, but this node has {RELEASE}", task.release);
            return Err(NodeRefusal::Invalid(problem));
        }
        if let ShareStep::Tops(TopsTask { k, .. }) = &task.step
            && *k > TASK_ROWS_MAX
        {
            let problem = format!("step.Tops.k is {k}; it must be at most {TASK_ROWS_MAX}");
            return Err(NodeRefusal::Invalid(problem));
        }
        let sub_tenant = SubTenantId::parse_stored(&task.sub_tenant).map_err(|_| {
            NodeRefusal::Invalid("sub_tenant is not a valid sub-tenant name".to_owned())
        })?;
        let id = CollectionId(task.collection);
        let other =
            || NodeRefusal::Busy("this node does not have the requested version".to_owned());
        let (collection, snapshot) = follower.version(id, task.version)?.ok_or_else(other)?;
        let time = Duration::from_millis(task.within_millis);
        let context = RequestContext::with_limit(time).of_tenant(id);
        let answer = self.query.work_on(&context, &snapshot, &sub_tenant, &task);
        let answer = answer.and_then(|answer| {
            snapshot.check()?;
            Ok(answer)
        });
        if answer.as_ref().is_err_and(QueryError::is_damage) {
            self.ingest.quarantine(&collection);
        }
        let answer = answer.map_err(EngineError::from)?.ok_or_else(other)?;
        sharing.served.inc();
        Ok(serde_json::to_vec(&answer).expect("plain data always prints"))
    }
}

impl From<EngineError> for NodeRefusal {
    fn from(error: EngineError) -> Self {
        match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Overloaded => Self::Busy(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
