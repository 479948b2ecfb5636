//! Tests that unreferenced originals are deleted, and all others stay.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::ingest::{GraphReader, NewFile};
use lodestone_catalog::{CatalogLog, CatalogOptions};
use lodestone_embed::HashEmbedder;
use lodestone_io::store::testing::{Call, Fault, FaultyBlobs, MemoryBlobs};
use lodestone_io::store::{HeldBlobs, Key};
use lodestone_storage::collection::uploads::{self, UploadLabel};
use lodestone_types::{CollectionId, Origin, RandomIds, WebClient, WebFailure, WebPage, WebUrl};

const HOUR: u64 = 3_600_000;

/// Stores an original without a job, as after a crash before the job was written.
fn orphan(engine: &Engine, at: Timestamp) -> Key {
    orphan_in(&*engine.store, access(engine).tenant.collection, at)
}

fn orphan_in(store: &dyn BlobStore, collection: CollectionId, at: Timestamp) -> Key {
    let label = UploadLabel {
        sub_tenant: "default".into(),
        source: "never".into(),
        kind: "text".into(),
        filename: String::new(),
        content_type: String::new(),
        uploaded_at: at.0,
        tenant_metadata: None,
        document_metadata: None,
        origin: Origin::default(),
        after: None,
    };
    uploads::put(store, &RandomIds, collection, &label, b"orphan").unwrap()
}

fn exists(engine: &Engine, key: &Key) -> bool {
    engine.store.len(key).is_ok()
}

/// Goal: at a start, an hour later, and even if the clock is set back, originals that are
/// unreferenced and over an hour old are deleted; recent, visible, waiting and failed ones stay.
#[test]
fn only_old_orphans_go() {
    let rig = Rig::new();
    rig.upload("visible", "some words");
    submit(&rig.engine, "failed", "  ", &Metadata::new());
    assert_eq!(settled(&rig.engine, "failed").status, JobStatus::Errored);
    let new = NewFile {
        purpose: "assistants".into(),
        filename: "a.txt".into(),
        content_type: String::new(),
        content: "words of a file".into(),
    };
    let file = rig.engine.add_file(&grant(), &scope(), new).unwrap();
    let old = orphan(&rig.engine, Timestamp(START.0 - 2 * HOUR));
    let fresh = orphan(&rig.engine, START);
    let rig = rig.restart(GatedEmbedder::with_passes(0), |_| {});
    let engine = &rig.engine;
    submit(engine, "waiting", "other words", &Metadata::new());
    wait_for("the sweep at the start", || (!exists(engine, &old)).then_some(()));
    assert!(exists(engine, &fresh));
    rig.clock.advance_millis(2 * HOUR);
    // Any work wakes the thread, which otherwise only checks every few seconds.
    engine.ingest.clear_deleted_tenants();
    wait_for("the sweep after an hour", || (!exists(engine, &fresh)).then_some(()));
    rig.clock.set_back_millis(100 * HOUR);
    let old = orphan(engine, Timestamp(START.0 - 200 * HOUR));
    engine.ingest.clear_deleted_tenants();
    wait_for("the sweep by a clock that was set back", || (!exists(engine, &old)).then_some(()));
    for source in ["visible", "failed", "waiting"] {
        engine.original(&access(engine), &id(source)).unwrap();
    }
    engine.file_content(&file).unwrap();
    rig.gate.open();
    assert_eq!(settled(engine, "waiting").status, JobStatus::Success);
}

/// Goal: no sweep deletes the original of an upload, in whatever order they run.
/// Method: every upload is hours old when the next sweep runs, and sweeps never pause.
#[test]
fn sweeps_and_uploads_do_not_meet() {
    let rig = Rig::new();
    rig.upload("doc-0", "version 0 of doc-0");
    let (engine, is_done) = (&rig.engine, AtomicBool::new(false));
    let sweeps = std::thread::scope(|scope| {
        let sweeper = scope.spawn(|| {
            let mut sweeps = 0;
            while !is_done.load(Ordering::SeqCst) {
                engine.ingest.sweep_originals(&access(engine).collection).unwrap();
                sweeps += 1;
            }
            sweeps
        });
        for n in 1..60 {
            let source = format!("doc-{}", n % 7);
            submit(engine, &source, &format!("version {n} of {source}"), &Metadata::new());
            rig.clock.advance_millis(2 * HOUR);
            if n % 5 == 0 {
                engine.original(&access(engine), &id(&source)).unwrap();
            }
        }
        (0..7).for_each(|n| drop(settled(engine, &format!("doc-{n}"))));
        is_done.store(true, Ordering::SeqCst);
        sweeper.join().unwrap()
    });
    assert!(sweeps > 0);
    for n in 0..7 {
        let view = settled(engine, &format!("doc-{n}"));
        assert_eq!(view.status, JobStatus::Success, "{}", view.message);
        engine.original(&access(engine), &view.record.id).unwrap();
    }
}

/// A web client for which every page takes hours to arrive.
#[derive(Debug)]
struct SlowWeb(Arc<ManualClock>);

impl WebClient for SlowWeb {
    fn fetch(&self, url: &WebUrl) -> Result<WebPage, WebFailure> {
        self.0.advance_millis(2 * HOUR);
        Ok(WebPage {
            final_url: url.clone(),
            canonical_url: url.clone(),
            title: None,
            media_type: Some("text/plain".into()),
            bytes: b"some words".to_vec(),
        })
    }
}

/// Goal: between its storage and its entry in the catalog, a page that was requested hours ago does
/// not look like an old orphan to a sweep.
#[test]
fn a_page_is_as_old_as_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(START));
    let settings = Settings::new(dir.path().join("data"), "unused".into());
    let mut components = Components::real(Arc::new(HashEmbedder));
    components.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    components.web = Some(Arc::new(SlowWeb(clock)));
    let engine = Engine::start(settings, components).unwrap();
    let url = "https://example.org/page".to_owned();
    let page = Submission {
        kind: SourceKind::Webpage,
        origin: Origin { url, ..Origin::default() },
        ..submission("page", "", &Metadata::new())
    };
    engine.submit(&access(&engine), page).unwrap();
    let view = settled(&engine, "page");
    assert_eq!(view.status, JobStatus::Success, "{}", view.message);
    assert_eq!(view.record.uploaded_at, START);
    let stored = uploads::uploaded_at(&Key::parse(&view.record.raw_key).unwrap());
    assert_eq!(stored, Some(Timestamp(START.0 + 2 * HOUR)));
    engine.shut_down();
}

/// A process that writes to a shared store, without its ingest threads running.
pub(super) struct Process {
    pub(super) catalog: Catalog,
    registry: Arc<Registry>,
    pub(super) ingest: Arc<Ingest>,
}

/// Creates a process that takes over `store`.
fn process_over(store: &Arc<dyn BlobStore>, dir: &Path, clock: &Arc<ManualClock>) -> Process {
    process_with(store, dir, clock, None)
}

/// Creates a process that takes over `store`, with a generator for graphs.
pub(super) fn process_with(
    store: &Arc<dyn BlobStore>,
    dir: &Path,
    clock: &Arc<ManualClock>,
    graph_reader: Option<Arc<dyn GraphReader>>,
) -> Process {
    let ids: Arc<dyn IdSource> = Arc::new(RandomIds);
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let data = Arc::new(DataDir::open(dir, Arc::new(RealDisk)).unwrap());
    let options = CatalogOptions::default();
    let log = CatalogLog::open(Arc::clone(store), Arc::clone(&ids)).unwrap();
    let path = dir.join(CATALOG_NAME);
    let catalog =
        Catalog::open_with_log(&path, options, Arc::clone(&clock), Arc::clone(&ids), log).unwrap();
    let epoch = catalog.log_claim();
    let registry = Arc::new(Registry::new(Arc::clone(store), Arc::clone(&ids), epoch, 8));
    let settings = Settings::new(dir.to_owned(), "unused".into());
    let ingest = Arc::new(Ingest::new(IngestParts {
        catalog: catalog.clone(),
        registry: Arc::clone(&registry),
        store: Arc::clone(store),
        gauge: Arc::new(SpaceGauge::new(data, Arc::clone(&clock))),
        models: Models::new(Arc::new(HashEmbedder), Vec::new()),
        sparse: None,
        parser: Arc::new(InProcess),
        web: fetcher(&settings, &Authorities::default()),
        clock,
        ids,
        workers: 1,
        memory: budget_of(&settings),
        nodes: None,
        graph_reader,
        reembed: settings.reembed.clone(),
        scrub: settings.scrub,
    }));
    Process { catalog, registry, ingest }
}

pub(super) fn make_tenant(catalog: &Catalog, name: &str) -> Arc<lodestone_catalog::Tenant> {
    let name = TenantId::parse(name).unwrap();
    catalog.create_tenant(name, TenantMode::Standard, None).unwrap()
}

/// Goal: a process that wakes up hours after another one has taken over does not take the other's
/// originals for orphans.
#[test]
fn a_process_that_was_succeeded_deletes_no_original() {
    let store: Arc<dyn BlobStore> = Arc::new(FaultyBlobs::new(Arc::<MemoryBlobs>::default()));
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let clock = Arc::new(ManualClock::new(START));
    let sleeper = process_over(&store, dirs[0].path(), &clock);
    let tenant = make_tenant(&sleeper.catalog, "acme");
    let collection = sleeper.ingest.open(&tenant).unwrap();
    orphan_in(&*store, tenant.collection, Timestamp(START.0 - 2 * HOUR));
    assert_eq!(sleeper.ingest.sweep_originals(&collection).unwrap(), 1);
    let _successor = process_over(&store, dirs[1].path(), &clock);
    let given = orphan_in(&*store, tenant.collection, START);
    clock.advance_millis(2 * HOUR);
    assert_eq!(sleeper.ingest.sweep_originals(&collection).unwrap(), 0);
    assert!(store.len(&given).is_ok());
}

/// Goal: the hourly sweep opens no tenant of a bucket, since that would download it, but sweeps
/// those that are open.
#[test]
fn tenants_of_a_bucket_are_not_opened_to_be_swept() {
    let store: Arc<dyn BlobStore> = Arc::new(FaultyBlobs::new(Arc::<MemoryBlobs>::default()));
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(START));
    let Process { catalog, registry, ingest } = process_over(&store, dir.path(), &clock);
    let closed = make_tenant(&catalog, "a");
    let open = make_tenant(&catalog, "b");
    ingest.open(&open).unwrap();
    let old = Timestamp(START.0 - 2 * HOUR);
    orphan_in(&*store, closed.collection, old);
    let orphan = orphan_in(&*store, open.collection, old);
    let threads = ingest.start();
    wait_for("the sweep of the open tenant", || {
        // The tenant whose name comes first is swept first.
        clock.advance_millis(1000);
        ingest.clear_deleted_tenants();
        store.len(&orphan).is_err().then_some(())
    });
    assert!(registry.find(closed.collection).is_none());
    ingest.stop();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Goal: a deferred deletion that failed at the end of its hold waits for no other hold.
#[test]
fn a_deferred_deletion_that_failed_is_tried_again() {
    let faulty = Arc::new(FaultyBlobs::new(Arc::<MemoryBlobs>::default()));
    let held = Arc::new(HeldBlobs::new(Arc::clone(&faulty) as Arc<dyn BlobStore>));
    let store = Arc::clone(&held) as Arc<dyn BlobStore>;
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(START));
    let Process { ingest, .. } = process_over(&store, dir.path(), &clock);
    let key = Key::parse("v1/raw/a/b").unwrap();
    store.put(&key, b"x").unwrap();
    let hold = held.hold();
    store.delete(&key).unwrap();
    let deleted = |fault| {
        move |call, _: &Key| match call {
            Call::Delete => fault,
            _ => Fault::None,
        }
    };
    faulty.set(deleted(Fault::Before));
    drop(hold);
    assert_eq!(held.waiting(), 1);
    faulty.set(deleted(Fault::None));
    let threads = ingest.start();
    wait_for("the next attempt", || (held.waiting() == 0).then_some(()));
    assert!(store.len(&key).is_err());
    ingest.stop();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
