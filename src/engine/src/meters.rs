//! Metrics of searches, and gauges of the engine's current state.

use std::time::Instant;

use crate::Engine;
use crate::query::{Retrieved, Timings};
use lodestone_io::Fullness;
use lodestone_metrics::{Counter, Family, Gauge, Histogram, LEG_SECONDS, Labelled, Registry};

/// A measured part of a search, or a whole operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leg {
    Embed,
    Semantic,
    Keyword,
    Fuse,
    Rerank,
    Graph,
    Retrieve,
    Answer,
    FullText,
    Vectors,
}

const LEGS: [&str; 10] = [
    "embed", "semantic", "keyword", "fuse", "rerank", "graph", "retrieve", "answer", "full_text",
    "vectors",
];

/// The metrics of one engine.
#[derive(Debug)]
pub(super) struct Meters {
    search_seconds: Labelled<Histogram, 10>,
    queued_bytes: Gauge,
    /// By state: open, idle, being deleted.
    tenants: Labelled<Gauge, 3>,
    deleted_pending_bytes: Gauge,
    quarantined_segments: Gauge,
    /// By state: free, used.
    device_memory: Labelled<Gauge, 2>,
    device_events: Family<Counter, 1>,
    memory_own: Gauge,
    memory_reserved: Gauge,
    memory_limit: Gauge,
    disk_level: Gauge,
    disk_free: Gauge,
    models_loaded: Gauge,
    embed_tokens: Counter,
    embed_fallbacks: Counter,
}

impl Default for Meters {
    fn default() -> Self {
        let states = ["open", "idle", "deleting"];
        let memory = ["free", "used"];
        Self {
            search_seconds: Labelled::new("leg", LEGS, || Histogram::new(LEG_SECONDS)),
            queued_bytes: Gauge::default(),
            tenants: Labelled::new("state", states, Gauge::default),
            deleted_pending_bytes: Gauge::default(),
            quarantined_segments: Gauge::default(),
            device_memory: Labelled::new("state", memory, Gauge::default),
            device_events: Family::default(),
            memory_own: Gauge::default(),
            memory_reserved: Gauge::default(),
            memory_limit: Gauge::default(),
            disk_level: Gauge::default(),
            disk_free: Gauge::default(),
            models_loaded: Gauge::default(),
            embed_tokens: Counter::default(),
            embed_fallbacks: Counter::default(),
        }
    }
}

impl Meters {
    /// Records that a part took `seconds`.
    pub(super) fn observe(&self, leg: Leg, seconds: f64) {
        self.search_seconds.at(leg as usize).observe(seconds);
    }

    /// Records that a part began at `since` and ends now.
    pub(super) fn ended(&self, leg: Leg, since: Instant) {
        self.observe(leg, since.elapsed().as_secs_f64());
    }

    /// Records the parts of a search that ran.
    pub(super) fn retrieved(&self, found: &Retrieved) {
        let Timings { embed, semantic, keyword, fuse, rerank, graph, total } = found.timings;
        let legs = [
            (Leg::Embed, embed),
            (Leg::Semantic, semantic),
            (Leg::Keyword, keyword),
            (Leg::Fuse, fuse),
            (Leg::Rerank, rerank),
            (Leg::Graph, graph),
            (Leg::Retrieve, total),
        ];
        for (leg, millis) in legs.into_iter().filter(|(_, millis)| *millis > 0.0) {
            self.observe(leg, millis / 1e3);
        }
    }

    fn enter(&self, registry: &mut Registry) {
        let help = "Duration of search stages, whole searches and answers in seconds";
        registry.enter("search_seconds", help, &self.search_seconds);
        let help = "Size of the originals waiting for a worker in bytes";
        registry.enter("ingest_queue_bytes", help, &self.queued_bytes);
        let help = "Tenants by state: open in memory, idle on disk, being deleted";
        registry.enter("tenants", help, &self.tenants);
        let help = "Bytes of deleted rows in open tenants that merges will reclaim";
        registry.enter("deleted_pending_bytes", help, &self.deleted_pending_bytes);
        let help = "Damaged segments of open tenants";
        registry.enter("quarantined_segments", help, &self.quarantined_segments);
        let help = "GPU memory; 0 without a GPU";
        registry.enter("device_memory_bytes", help, &self.device_memory);
        let help = "GPU work of vector searches and fallbacks to the CPU, by kind";
        registry.enter("device_events_total", help, &self.device_events);
        let help = "Private memory of the process: heap and stacks, without mapped files";
        registry.enter("memory_own_bytes", help, &self.memory_own);
        let help = "Memory reserved by work in progress";
        registry.enter("memory_reserved_bytes", help, &self.memory_reserved);
        let help = "Effective memory limit; 0 if there is none";
        registry.enter("memory_limit_bytes", help, &self.memory_limit);
        let help =
            "Disk fill level: 0 ample space, 1 no merges, 2 no new content, 3 deletions only";
        registry.enter("disk_level", help, &self.disk_level);
        registry.enter("disk_free_bytes", "Free disk space in bytes", &self.disk_free);
        let help = "Embedding models whose weights are in memory";
        registry.enter("embedding_models_loaded", help, &self.models_loaded);
        let help = "Tokens processed by the embedding model";
        registry.enter("embed_tokens_total", help, &self.embed_tokens);
        let help = "Batches embedded by the CPU instead of the GPU";
        registry.enter("embed_device_fallbacks_total", help, &self.embed_fallbacks);
    }
}

impl Engine {
    /// Registers the metrics of all components.
    pub fn enter_meters(&self, registry: &mut Registry) {
        let build = Family::<Gauge, 3>::default();
        let labels = [
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("backend", self.backend.name().into()),
            ("model", self.embedder().name().to_owned().into()),
        ];
        build.with(labels).set(1);
        registry.enter(
            "build_info",
            "Version, compute backend and embedding model; always 1",
            &build,
        );
        self.catalog.enter_meters(registry);
        self.ingest.vector_meters().enter(registry);
        self.ingest.enter_reembed_meters(registry);
        self.ingest.enter_scrub_meters(registry);
        if let Some(nodes) = self.ingest.nodes() {
            nodes.enter_meters(registry);
        }
        if let Some(meters) = self.embedder().meters() {
            meters.enter(registry);
        }
        self.webhooks.meters.enter(registry);
        self.meters.enter(registry);
        if let Some(bucket) = &self.bucket {
            bucket.enter_meters(registry);
        }
        if let Some(follower) = &self.follower {
            follower.enter_meters(registry);
        }
    }

    /// Updates the gauges that are not maintained as they change. Blocks on the catalog, so a
    /// scrape should not wait for it without a time limit.
    pub fn refresh_gauges(&self) {
        if let Some(bucket) = &self.bucket {
            bucket.refresh_gauges();
        }
        if let Some(follower) = &self.follower {
            follower.refresh_gauges();
        }
        let meters = &self.meters;
        let open = self.registry.open_collections();
        match self.catalog.gauges() {
            Ok(now) => {
                meters.queued_bytes.set(now.queued_bytes);
                self.webhooks.meters.backlog.set(now.webhook_backlog);
                self.webhooks.meters.disabled.set(now.webhooks_disabled);
                let idle = now.tenants.saturating_sub(open.len() as u64);
                let states = [open.len() as u64, idle, now.deleting];
                states.into_iter().enumerate().for_each(|(at, n)| meters.tenants.at(at).set(n));
            }
            Err(error) => tracing::warn!(%error, "counting the catalog failed"),
        }
        let (mut pending, mut quarantined) = (0, 0);
        for collection in open {
            let snapshot = collection.snapshot();
            quarantined += snapshot.damaged.len() as u64;
            for live in &snapshot.segments {
                let (dead, rows) = (live.dead.rows.len(), u64::from(live.segment.row_count()));
                pending += (u128::from(live.entry.bytes) * u128::from(dead))
                    .checked_div(u128::from(rows))
                    .unwrap_or(0) as u64;
            }
        }
        meters.deleted_pending_bytes.set(pending);
        meters.quarantined_segments.set(quarantined);
        let (free, all) = self.backend.device_memory().unwrap_or((0, 0));
        meters.device_memory.at(0).set(free);
        meters.device_memory.at(1).set(all.saturating_sub(free));
        for (event, count) in self.backend.counts() {
            meters.device_events.with([("event", event.into())]).set(count);
        }
        meters.memory_own.set(self.memory.own_bytes().unwrap_or(0));
        meters.memory_reserved.set(self.memory.reserved_bytes());
        meters.memory_limit.set(self.memory.limit_bytes().unwrap_or(0));
        meters.disk_level.set(match self.gauge.level() {
            Fullness::Ample => 0,
            Fullness::Tight => 1,
            Fullness::Full => 2,
            Fullness::Critical => 3,
        });
        meters.disk_free.set(self.gauge.free_bytes());
        let loaded = self.models.all().filter(|model| model.is_loaded()).count();
        meters.models_loaded.set(loaded as u64);
        let embedded: Vec<_> = self.models.all().map(|model| model.stats()).collect();
        meters.embed_tokens.set(embedded.iter().map(|stats| stats.tokens).sum());
        meters.embed_fallbacks.set(embedded.iter().map(|stats| stats.device_fallbacks).sum());
    }
}
