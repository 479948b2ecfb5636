//! Tests of the log: whole catalogs on failing stores, and schedules of many processes.

mod damage;
mod durability;
mod faults;
mod follow;
mod schedule;
mod takeover;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::limits::LogLimits;
use super::{CatalogLog, LogState};
use crate::job::{MetadataChange, NewJob, QueueLimits, Submitted};
use crate::{Catalog, CatalogError, CatalogOptions};
use lodestone_io::store::testing::{Call, Fault, FaultyBlobs, MemoryBlobs};
use lodestone_types::{
    Clock, CollectionId, ManualClock, SeededIds, SourceDetail, SourceId, SourceKind, SubTenantId,
    TenantId, TenantMode, Timestamp,
};

/// Limits at which a few commits already cause several laps and bases.
const SMALL: LogLimits = LogLimits {
    piece_bytes: 20_000,
    checkpoint_bytes: 100_000,
    base_bytes: 300_000,
    base_entries: 20,
};

/// Machines that come and go around one store.
struct Machines {
    store: Arc<FaultyBlobs>,
    clock: Arc<ManualClock>,
    ids: Arc<SeededIds>,
    limits: LogLimits,
}

/// One machine, whose disk disappears with it.
struct Machine {
    catalog: Catalog,
    directory: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Machines {
    fn new(limits: LogLimits) -> Self {
        Self {
            store: Arc::new(FaultyBlobs::new(Arc::new(MemoryBlobs::default()))),
            clock: Arc::new(ManualClock::new(Timestamp(1_000_000))),
            ids: Arc::new(SeededIds::new(5)),
            limits,
        }
    }

    fn log(&self) -> Result<CatalogLog, CatalogError> {
        let log = CatalogLog::open(self.store.clone(), self.ids.clone())?;
        Ok(CatalogLog { limits: self.limits, ..log })
    }

    fn start(&self) -> Machine {
        self.start_in(tempfile::tempdir().unwrap()).unwrap()
    }

    /// Starts a machine that waits for followers.
    fn start_followed(&self) -> Machine {
        let options = CatalogOptions { has_followers: true, ..options() };
        self.start_with(tempfile::tempdir().unwrap(), options).unwrap()
    }

    fn start_in(&self, directory: tempfile::TempDir) -> Result<Machine, CatalogError> {
        self.start_with(directory, options())
    }

    fn start_with(
        &self,
        directory: tempfile::TempDir,
        options: CatalogOptions,
    ) -> Result<Machine, CatalogError> {
        let path = directory.path().join("catalog.sqlite");
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        let catalog = Catalog::open_with_log(&path, options, clock, ids, self.log()?)?;
        Ok(Machine { catalog, directory, clock: self.clock.clone() })
    }

    /// The rows in the store, as another machine would restore them now.
    fn restored(&self) -> Result<Rows, CatalogError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("other.sqlite");
        self.log()?.restore_to(&path)?;
        Ok(rows(&Connection::open(&path).unwrap()))
    }

    fn entries(&self) -> Vec<u64> {
        super::reader::numbers(&*self.store).unwrap()
    }
}

impl Machine {
    fn tenant(&self, name: &str) -> CollectionId {
        let name = TenantId::parse(name).unwrap();
        self.catalog.create_tenant(name, TenantMode::Standard, None).unwrap().collection
    }

    fn submit(&self, collection: CollectionId, name: &str) -> Result<Submitted, CatalogError> {
        self.catalog.submit(job(collection, name, self.clock.now()))
    }

    fn rows(&self) -> Rows {
        self.catalog.read(|connection| Ok(rows(connection))).unwrap()
    }

    fn state(&self) -> LogState {
        self.catalog.log_state().unwrap()
    }

    /// Polls the state of the log until it satisfies the condition.
    fn wait(&self, is_as_wanted: impl Fn(&LogState) -> bool) {
        let start = Instant::now();
        while !is_as_wanted(&self.state()) {
            assert!(start.elapsed() < Duration::from_secs(60), "{:?}", self.state());
            // An empty commit: the writer attends to its background work.
            let _ = self.catalog.write(|_| Ok(()));
            std::thread::yield_now();
        }
    }
}

fn options() -> CatalogOptions {
    let queue = QueueLimits {
        jobs_max: 1_000_000,
        bytes_max: u64::MAX / 4,
        collection_jobs_max: 1_000_000,
        collection_bytes_max: u64::MAX / 4,
    };
    CatalogOptions { queue, ..CatalogOptions::default() }
}

fn job(collection: CollectionId, name: &str, now: Timestamp) -> NewJob {
    NewJob {
        collection,
        sub_tenant: SubTenantId::default_name(),
        source: SourceId::parse(name).unwrap(),
        kind: SourceKind::Text,
        raw_key: format!("raw/{name}"),
        filename: format!("{name}.txt"),
        url: String::new(),
        content_type: "text/plain".into(),
        size_bytes: 10,
        content_hash: [7; 32],
        tenant_metadata: MetadataChange::Keep,
        document_metadata: MetadataChange::Keep,
        known_version: None,
        uploaded_at: now,
        origin_at: None,
        detail: SourceDetail::default(),
    }
}

/// All rows of all tables, as text.
type Rows = BTreeMap<String, Vec<String>>;

fn rows(connection: &Connection) -> Rows {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut names = connection.prepare(sql).unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let read = |name: String| {
        let mut select = connection.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let width = select.column_count();
        let words = select.query_map([], |row| {
            let cells = (0..width).map(|n| match row.get_ref(n).unwrap() {
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            });
            Ok(cells.collect::<Vec<_>>().join(" | "))
        });
        let words = words.unwrap().map(Result::unwrap).collect();
        (name, words)
    };
    names.map(|name| read(name.unwrap())).collect()
}
