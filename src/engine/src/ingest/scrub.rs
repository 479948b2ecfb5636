//! The background scrub: reads all data of all tenants once per period, so that damage is found
//! while the originals needed for a rebuild still exist.
//!
//! One thread at the lowest priority reads one tenant after another at a limited rate. Damaged
//! segments are quarantined and rebuilt as if a request had met them; manifests, tombstones and
//! lists are rewritten from memory. An original has no second copy, so its damage can only be
//! reported.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::ingest::{Ingest, IngestError};
use crate::settings::ScrubSettings;
use lodestone_catalog::Tenant;
use lodestone_io::run_in_background;
use lodestone_io::store::Key;
use lodestone_metrics::{Counter, Gauge, Labelled, Registry};
use lodestone_storage::collection::{CollectionError, uploads};
use lodestone_types::{CollectionId, ErrorKind};

/// Maximum delay of the first pass, since a starting server has other things to do.
const FIRST_AFTER: Duration = Duration::from_secs(600);
/// Minimum pause between two passes, however short the period.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const MILLIS_PER_SECOND: u64 = 1000;

/// Kinds of damaged files, as labels of the counter.
const KINDS: [&str; 5] = ["segment", "list", "tombstones", "manifest", "original"];
const ORIGINAL: usize = 4;

/// Settings and metrics of the scrub.
#[derive(Debug)]
pub(super) struct Scrubber {
    settings: ScrubSettings,
    passes: Counter,
    last_pass: Gauge,
    bytes: Counter,
    damage: Labelled<Counter, 5>,
}

impl Scrubber {
    pub(super) fn new(settings: ScrubSettings) -> Self {
        Self {
            settings,
            passes: Counter::default(),
            last_pass: Gauge::default(),
            bytes: Counter::default(),
            damage: Labelled::new("kind", KINDS, Counter::default),
        }
    }
}

impl Ingest {
    /// Registers the metrics of the scrub.
    pub fn enter_scrub_meters(&self, registry: &mut Registry) {
        let Scrubber { settings: _, passes, last_pass, bytes, damage } = &self.scrubber;
        let help = "Scrub passes over all tenants since startup";
        registry.enter("scrub_passes_total", help, passes);
        let help =
            "End of the last scrub pass in seconds since 1970; 0 if there was none since startup";
        registry.enter("scrub_last_pass_timestamp_seconds", help, last_pass);
        registry.enter("scrub_bytes_total", "Bytes read by the scrub", bytes);
        let help = "Damaged files found by the scrub, by kind";
        registry.enter("scrub_damage_total", help, damage);
    }

    /// Runs one pass per period until shutdown.
    pub(super) fn scrub(&self) {
        let period = self.scrubber.settings.scrub_period;
        // A bucket's store scrubs its own data, and cached copies are verified when they are read.
        if period.is_zero() || self.store.is_shared() {
            return;
        }
        run_in_background();
        self.stopping.wait(period.min(FIRST_AFTER));
        while !self.stopping.is_set() {
            let begun = Instant::now();
            match self.scrub_all() {
                Ok(()) if self.stopping.is_set() => {}
                Ok(()) => {
                    self.scrubber.passes.inc();
                    self.scrubber.last_pass.set(self.clock.now().0 / MILLIS_PER_SECOND);
                }
                Err(error) => tracing::warn!(%error, "a scrub ended early"),
            }
            self.stopping.wait(period.saturating_sub(begun.elapsed()).max(PAUSE_MIN));
        }
    }

    fn scrub_all(&self) -> Result<(), IngestError> {
        for listed in self.catalog.tenants()? {
            if self.stopping.is_set() {
                break;
            }
            let Some(tenant) = self.catalog.tenant(&listed.id)? else { continue };
            let collection = tenant.collection;
            let scrub = AssertUnwindSafe(|| self.scrub_tenant(&tenant));
            match catch_unwind(scrub) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%collection, %error, "a tenant was not scrubbed");
                }
                Err(_panic) => tracing::error!(%collection, "scrubbing a tenant failed"),
            }
        }
        Ok(())
    }

    fn scrub_tenant(&self, tenant: &Tenant) -> Result<(), IngestError> {
        let collection = self.open(tenant)?;
        let scrubbed = collection.scrub(&mut |bytes| self.go_on(bytes))?;
        let found = [scrubbed.segments, scrubbed.lists, scrubbed.tombstones, scrubbed.manifests];
        for (kind, count) in found.into_iter().enumerate() {
            self.scrubber.damage.at(kind).add(count as u64);
        }
        if scrubbed.segments > 0 {
            Self::tell_damage(&collection, scrubbed.segments);
            self.maintenance.wake(&collection);
        }
        self.scrub_originals(collection.id())
    }

    fn scrub_originals(&self, collection: CollectionId) -> Result<(), IngestError> {
        let keys = self.store.list(&uploads::prefix(collection));
        for key in keys.map_err(CollectionError::from)? {
            if self.stopping.is_set() {
                break;
            }
            match self.read_original(&key) {
                Ok(()) => {}
                // It was replaced or deleted in the meantime.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    self.scrubber.damage.at(ORIGINAL).inc();
                    tracing::error!(%collection, original = key.as_str(), %error,
                        "an original is damaged: its source stays searchable but cannot be fetched \
                         or rebuilt; upload it again");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn read_original(&self, key: &Key) -> Result<(), CollectionError> {
        let mut stored = uploads::open(&*self.store, key.as_str())?;
        stored.read(&*self.store, |(): &mut (), piece| {
            self.go_on(piece.len() as u64);
        })
    }

    /// Waits as long as reading `bytes` may take at the configured rate; returns false on shutdown.
    fn go_on(&self, bytes: u64) -> bool {
        self.scrubber.bytes.add(bytes);
        let seconds = bytes as f64 / self.scrubber.settings.scrub_rate as f64;
        self.stopping.wait(Duration::from_secs_f64(seconds));
        !self.stopping.is_set()
    }
}
