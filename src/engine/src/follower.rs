//! Follows the process that writes to the same bucket, as a query node does.
//!
//! ```text
//! thread "follow"     reads the catalog's log twice a second -> catalog: tenants, keys, heads
//! thread "writer"     probes the writing process once a second: reachable, and the one followed?
//! thread "refresh"    for changed heads, loads the newest versions of the open collections and
//!                     releases old ones
//! a request           catalog current? -> collection -> at the catalog's head? -> run
//! ```
//! The writer records every commit to a collection in the catalog before it acknowledges it. A
//! collection at the head of a current catalog therefore contains everything that was acknowledged.
//!
//! - `peers`: the other nodes, and which tenants each of them answers for; `joining`: becoming one
//!   of them; `shares`: searches that they divide among themselves, and `sharing`: the state for
//!   that
//! - `refreshing`: the thread "refresh"; `writer`: the state of the writing process, and what this
//!   node can still do without it

mod joining;
mod peers;
mod refreshing;
mod shares;
mod sharing;
mod writer;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

pub use peers::{Assignment, PeerEnd, Peers};
use sharing::Sharing;

use crate::opening::Opened;
use crate::query::shares::ShareNodes;
use crate::settings::{InvalidSetting, Settings};
use crate::{Engine, EngineError};
use lodestone_bucket::BucketBlobs;
use lodestone_catalog::job::JobRow;
use lodestone_catalog::{Catalog, FollowState, Tenant};
use lodestone_fetch::Authorities;
use lodestone_fetch::forward::Addresses;
use lodestone_metrics::Gauge;
use lodestone_storage::collection::{Collection, CollectionError, Openings, Registry};
use lodestone_types::{CollectionId, IdSource, JobStatus};

/// Interval between reads of the log; a node may miss a few of them before it counts as behind.
const LOOK: Duration = Duration::from_millis(500);

/// State of a process that follows, shared by its threads.
#[derive(Debug)]
pub(super) struct Follower {
    catalog: Catalog,
    registry: Arc<Registry>,
    openings: Arc<Openings>,
    writer: Arc<Addresses>,
    /// The query nodes that divide the tenants among themselves, if the operator lists them.
    peers: Option<Arc<Peers>>,
    bucket: Option<Arc<BucketBlobs>>,
    signals: Mutex<Signals>,
    changed: Condvar,
    age_millis: Gauge,
    entry: Gauge,
    writer_usable: Gauge,
}

#[derive(Debug, Default)]
struct Signals {
    /// Whether collections may have changed since the refresh thread last looked.
    has_changes: bool,
    is_stopping: bool,
}

impl Follower {
    /// Creates the follower of a process that only reads; `None` in a process that writes.
    ///
    /// # Errors
    /// An invalid address in the settings.
    pub(super) fn new(
        settings: &Settings,
        authorities: &Authorities,
        opened: &Opened,
        ids: &Arc<dyn IdSource>,
    ) -> Result<Option<Arc<Self>>, EngineError> {
        let nodes = &settings.store.nodes;
        if !nodes.only_reads() {
            return Ok(None);
        }
        let (catalog, registry) = (opened.catalog.clone(), Arc::clone(&opened.registry));
        let openings = Arc::clone(&opened.openings);
        let peers = match nodes.query_nodes().count() {
            0 => None,
            count => {
                let sharing = Sharing::new(nodes, count, &catalog, &registry)?;
                let peers = Peers::new(ids.uuid(), nodes.query_nodes(), authorities)?;
                Some(Arc::new(peers.with_sharing(sharing)))
            }
        };
        let writer = Addresses::new(nodes.writers(), authorities)
            .map_err(|problem| InvalidSetting { name: "writer-url", problem })?;
        let bucket = opened.bucket.as_ref().map(|bucket| Arc::clone(&bucket.blobs));
        let writer = Arc::new(writer);
        let (signals, changed, age_millis, entry, writer_usable) = Default::default();
        Ok(Some(Arc::new(Self {
            catalog,
            registry,
            openings,
            writer,
            peers,
            bucket,
            signals,
            changed,
            age_millis,
            entry,
            writer_usable,
        })))
    }

    /// Starts the threads. The writing process is looked up first, so that requests can be
    /// forwarded to it from the start.
    pub(super) fn start(self: &Arc<Self>) -> Vec<JoinHandle<()>> {
        let found = self.find_writer();
        self.writer.current().note(found.err());
        let spawn = |name: &str, run: fn(&Self)| {
            let follower = Arc::clone(self);
            let builder = std::thread::Builder::new().name(name.to_owned());
            builder.spawn(move || run(&follower)).expect("the system provides threads at start")
        };
        let mut threads = vec![
            spawn("follow", Self::follow),
            spawn("refresh", Self::refresh),
            spawn("writer", Self::watch_writer),
        ];
        if let Some(peers) = &self.peers {
            threads.extend(peers.start());
            threads.push(spawn("join", Self::join));
        }
        threads
    }

    /// Asks the threads to end.
    pub(super) fn stop(&self) {
        self.signals.lock().is_stopping = true;
        if let Some(peers) = &self.peers {
            peers.stop();
        }
        self.changed.notify_all();
    }

    pub(super) fn enter_meters(&self, registry: &mut lodestone_metrics::Registry) {
        let help = "Age of this query node's state in milliseconds";
        registry.enter("query_node_age_milliseconds", help, &self.age_millis);
        let help = "Number of the newest entry of the catalog log known to this query node";
        registry.enter("query_node_log_entry", help, &self.entry);
        let help = "Whether the writer answers and is the one that this query node follows";
        registry.enter("query_node_writer_usable", help, &self.writer_usable);
        if let Some(peers) = &self.peers {
            peers.enter_meters(registry);
        }
    }

    pub(super) fn refresh_gauges(&self) {
        if let Some(state) = self.catalog.follow_state() {
            self.age_millis.set(state.age_millis);
            self.entry.set(state.entry);
        }
        self.writer_usable.set(u64::from(self.writer.current().unusable_for().is_none()));
    }

    /// Waits for `time`; returns early, and true, if the process is to end.
    fn pause(&self, time: Duration) -> bool {
        let mut signals = self.signals.lock();
        self.changed.wait_while_for(&mut signals, |signals| !signals.is_stopping, time);
        signals.is_stopping
    }

    fn follow(&self) {
        let (mut is_away, mut was_waited_for) = (false, true);
        loop {
            let caught_up = self.catalog.catch_up();
            match &caught_up {
                Ok(_) if is_away => tracing::info!("the bucket is reachable again"),
                Err(error) if !is_away => {
                    tracing::warn!(%error, "following the writer failed");
                }
                _ => {}
            }
            is_away = caught_up.is_err();
            let is_waited_for = self.catalog.follow_state().is_some_and(|at| at.is_waited_for);
            if was_waited_for && !is_waited_for {
                tracing::warn!(
                    "the writer was started without --with-query-nodes: this node forwards all \
                     requests to it"
                );
            }
            if !was_waited_for && is_waited_for {
                tracing::info!("the writer waits for query nodes: this node answers by itself");
            }
            was_waited_for = is_waited_for;
            let mut signals = self.signals.lock();
            if caught_up.is_ok_and(|has_changed| has_changed) {
                signals.has_changes = true;
                self.changed.notify_all();
            }
            self.changed.wait_while_for(&mut signals, |signals| !signals.is_stopping, LOOK);
            if signals.is_stopping {
                return;
            }
        }
    }

    /// The nodes that share searches with this one; `None` if none do.
    pub(super) fn sharing_nodes(&self) -> Option<Arc<dyn ShareNodes>> {
        let peers = self.peers.as_ref().filter(|peers| peers.shares_searches())?;
        Some(Arc::clone(peers) as _)
    }

    /// Opens a collection at a version that contains everything acknowledged. If a later release
    /// has written its newest version, the request is left to the writing process.
    fn open(&self, collection: CollectionId) -> Result<Arc<Collection>, EngineError> {
        self.catalog.require_current()?;
        let head = || Ok::<_, EngineError>(self.catalog.head(collection)?);
        let open = || {
            let open = self.registry.get(collection, head, |_| Ok(()))?;
            let refreshed = open.refresh(head()?);
            self.registry.note_format(collection, refreshed.as_ref().err());
            refreshed?;
            Ok(open)
        };
        open().map_err(|error| match error {
            EngineError::Collection(error) if error.is_too_new() => {
                CollectionError::Behind { collection }.into()
            }
            error => error,
        })
    }
}

impl Engine {
    /// The name under which this process writes to a bucket, by which other processes follow it.
    pub fn writer_name(&self) -> Option<Uuid> {
        self.catalog.writer_name()
    }

    /// Opens the collection of a tenant for a request, which waits at most a second for files from
    /// a bucket.
    ///
    /// # Errors
    /// Errors of opening it; on a node that follows, not knowing the newest state.
    pub(super) fn collection(&self, tenant: &Arc<Tenant>) -> Result<Arc<Collection>, EngineError> {
        self.catalog.require_current()?;
        let id = tenant.collection;
        match &self.follower {
            None => {
                let (ingest, tenant) = (Arc::clone(&self.ingest), Arc::clone(tenant));
                self.openings.open(id, move || Ok(ingest.open(&tenant)?))
            }
            Some(follower) => {
                let own = Arc::clone(follower);
                self.openings.open(id, move || own.open(id))
            }
        }
    }

    /// The delay after a change until all query nodes know of it; zero if there are none.
    pub fn followers_delay(&self) -> Duration {
        self.catalog.followers_delay()
    }

    /// Waits until all query nodes see what the successful ones of these jobs have made visible. A
    /// success must not be reported before that.
    ///
    /// # Errors
    /// The bucket does not respond and may lack what is visible here.
    pub(super) fn let_nodes_see<'a>(
        &self,
        jobs: impl IntoIterator<Item = &'a JobRow>,
    ) -> Result<(), EngineError> {
        let succeeded = jobs.into_iter().filter(|job| job.status == JobStatus::Success);
        match succeeded.map(|job| job.updated_at).max() {
            Some(newest) => Ok(self.catalog.await_followers(newest)?),
            None => Ok(()),
        }
    }

    /// Waits until all query nodes see everything that is visible here.
    ///
    /// # Errors
    /// The bucket does not respond and may lack what is visible here.
    pub fn let_nodes_see_all(&self) -> Result<(), EngineError> {
        Ok(self.catalog.await_followers(self.clock.now())?)
    }

    /// The client for the writing process; `None` in a process that follows nobody.
    pub fn way_to_writer(&self) -> Option<Arc<Addresses>> {
        self.follower.as_ref().map(|follower| Arc::clone(&follower.writer))
    }

    /// The query nodes that divide the tenants, if this process is one of them.
    pub fn peers(&self) -> Option<&Arc<Peers>> {
        self.follower.as_ref()?.peers.as_ref()
    }

    /// Position in the log up to which this process has followed the writer; `None` in a process
    /// that writes.
    pub fn follow_state(&self) -> Option<FollowState> {
        self.catalog.follow_state()
    }
}
