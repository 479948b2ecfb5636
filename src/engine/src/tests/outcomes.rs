//! Tests of the errors of changes during which the disk fails.

use super::*;
use crate::ingest::{IngestError, NewMemory};
use lodestone_io::{CrashDisk, CrashMode, Fault, FaultKind};
use lodestone_storage::collection::CollectionError;

type Change = fn(&Engine) -> Result<(), EngineError>;

fn open(engine: &Engine, name: &str) -> TenantAccess {
    let tenant = TenantId::parse(name).unwrap();
    let scope = Scope { tenant, sub_tenant: SubTenantId::default_name() };
    engine.open(&grant(), &scope, None).unwrap()
}

fn batches(engine: &Engine) -> u64 {
    engine.stats(&grant(), &open(engine, "vectors")).unwrap().objects
}

fn memories(engine: &Engine) -> usize {
    engine.memories(&access(engine)).unwrap().len()
}

fn add_vectors(engine: &Engine) -> Result<(), EngineError> {
    let vectors = vec![vec![1.0, 0.0, 0.0]];
    engine.upload_vectors(&open(engine, "vectors"), None, vectors).map(drop)
}

fn delete_vectors(engine: &Engine) -> Result<(), EngineError> {
    engine.delete_sources(&open(engine, "vectors"), &[id("first")]).map(drop)
}

fn add_memory(engine: &Engine) -> Result<(), EngineError> {
    let added = NewMemory { content: "Nora likes slate.".into(), ..NewMemory::default() };
    engine.add_memory(&access(engine), added, None).map(drop)
}

/// Goal: whichever sync of a change fails, success means that it was made, and an error other than
/// "outcome unknown" that it was not.
/// Method: fail each sync in turn, and check after a restart.
#[test]
fn an_error_says_whether_the_change_may_have_happened() {
    const SYNCS: u64 = 12;
    let changes: [(Change, bool); 3] =
        [(add_vectors, true), (delete_vectors, false), (add_memory, true)];
    let (mut happened, mut refused) = (0, 0);
    for (change, is_new) in changes {
        for nth in 0..SYNCS {
            let base = tempfile::tempdir().unwrap();
            let disk = Arc::new(CrashDisk::new(base.path()));
            let mut settings = Settings::new(disk.root().join("data"), "unused".into());
            settings.ingest_threads = 1;
            let mut components = Components::real(Arc::new(GatedEmbedder::default()));
            components.disk = Arc::clone(&disk) as Arc<dyn Disk>;
            let engine = Engine::start(settings, components).unwrap();
            let name = TenantId::parse("vectors").unwrap();
            make_vector_tenant(&engine, &name).unwrap();
            let first = vec![vec![0.0, 1.0, 0.0]];
            let vectors = open(&engine, "vectors");
            engine.upload_vectors(&vectors, Some(id("first")), first).unwrap();
            access(&engine);
            drop(vectors);
            disk.inject(Fault::Sync(disk.syncs() + nth), FaultKind::Device);
            let told = change(&engine);
            engine.shut_down();
            drop(engine);

            let clock = Arc::new(ManualClock::new(START));
            let engine = start(disk.root(), &Arc::default(), &Arc::default(), &clock).unwrap();
            let seen = (batches(&engine), memories(&engine));
            let is_done = seen != (1, 0);
            match told {
                Ok(()) => assert!(is_done, "sync {nth}: {seen:?}"),
                Err(EngineError::Ingest(IngestError::OutcomeUnknown { id, .. })) => {
                    assert_eq!(id.is_some(), is_new, "sync {nth}");
                    happened += u64::from(is_done);
                }
                Err(EngineError::Ingest(IngestError::Collection(CollectionError::InDoubt {
                    ..
                }))) => {
                    assert!(!is_new, "a new source is named");
                    happened += u64::from(is_done);
                }
                Err(error) => {
                    assert!(!is_done, "sync {nth}: {error}, but {seen:?}");
                    refused += 1;
                }
            }
        }
    }
    assert!(happened > 0 && refused > 0, "{happened} happened in doubt, {refused} were refused");
}

/// Opens a sub-tenant that may be deleted.
fn second(engine: &Engine) -> TenantAccess {
    let scope = Scope { sub_tenant: SubTenantId::parse("second").unwrap(), ..scope() };
    engine.open_or_create(&grant(), &scope).unwrap()
}

/// Goal: whichever sync of a deletion is hit by a power cut, the replacement accepted before is
/// either gone, or appears with everything that it takes over from the previous version.
#[test]
fn a_deletion_that_is_cut_off_takes_nothing_from_a_replacement() {
    const SYNCS: u64 = 6;
    type Deletion = fn(&Engine) -> Result<(), EngineError>;
    let deletions: [Deletion; 2] = [
        |engine| engine.delete_sources(&second(engine), &[id("doc")]).map(drop),
        |engine| engine.delete_sub_tenant(&second(engine)),
    ];
    let ended = |engine: &Engine| {
        wait_for("the end of its job", || {
            match engine.source(&second(engine), &id("doc")).unwrap() {
                Some(view) => view.status.is_settled().then_some(Some(view)),
                None => Some(None),
            }
        })
    };
    let marked = map(serde_json::json!({"marker": 5}));
    let (mut gone, mut cut) = (0, 0);
    for (deletion, nth) in deletions.into_iter().flat_map(|d| (0..SYNCS).map(move |n| (d, n))) {
        let base = tempfile::tempdir().unwrap();
        let disk = Arc::new(CrashDisk::new(base.path()));
        let open = |gate: &Arc<GatedEmbedder>| {
            let mut settings = Settings::new(disk.root().join("data"), "unused".into());
            settings.ingest_threads = 1;
            let mut components = Components::real(Arc::clone(gate) as Arc<dyn Embedder>);
            components.disk = Arc::clone(&disk) as Arc<dyn Disk>;
            Engine::start(settings, components).unwrap()
        };
        let engine = open(&Arc::default());
        let first = submission("doc", "the first version", &marked);
        engine.submit(&second(&engine), first).unwrap();
        assert_eq!(ended(&engine).unwrap().status, JobStatus::Success);
        engine.shut_down();
        drop(engine);

        let gate = Arc::new(GatedEmbedder::with_passes(0));
        let engine = open(&gate);
        submit(&engine, "before", "keeps the worker busy", &Metadata::new());
        wait_for("the worker", || gate.has_waiting().then_some(()));
        let mut later = submission("doc", "the second version", &Metadata::new());
        later.document_metadata = MetadataChange::Keep;
        engine.submit(&second(&engine), later).unwrap();
        disk.fail_at(disk.syncs() + nth);
        let told = deletion(&engine);
        gate.open();
        engine.shut_down();
        drop(engine);
        disk.crash(nth, CrashMode::Prefix);

        let engine = open(&Arc::default());
        match ended(&engine) {
            None => gone += 1,
            Some(view) => {
                assert!(told.is_err(), "sync {nth}: it came back");
                assert_eq!((view.status, view.version), (JobStatus::Success, 2), "sync {nth}");
                assert_eq!(view.record.document_metadata, marked, "sync {nth}");
                cut += 1;
            }
        }
        engine.shut_down();
    }
    assert!(gone > 0 && cut > 0, "{gone} went through, {cut} were cut off");
}
