//! Tests of originals that are read while their source changes.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::restore::lose_catalog;
use super::sweep::{make_tenant, process_with};
use super::*;
use crate::backup::{Folder, TakeOptions, TakeParts, Unpaced, take};
use crate::ingest::Amendment;
use lodestone_catalog::Tenant;
use lodestone_catalog::job::{ClaimLimits, Duty, Outcome, Settlement};
use lodestone_embed::HashEmbedder;
use lodestone_io::store::testing::{Call, Fault, FaultyBlobs, MemoryBlobs};
use lodestone_io::store::{HeldBlobs, Key};
use lodestone_storage::collection::{AddedSegment, Edit, uploads};
use lodestone_storage::segment::{NewRow, NewSource, VectorKind};
use lodestone_types::SourceRecord;

/// Goal: a replacement published between lookup and read, so that the old file is gone, is no
/// error.
/// Method: the disk publishes one just before each of the first two reads.
#[test]
fn an_original_is_found_although_it_is_replaced_meanwhile() {
    let rig = Rig::new();
    rig.upload("doc", "first version");
    let (weak, reads) = (Arc::downgrade(&rig.engine), Arc::new(AtomicUsize::new(0)));
    let first = access(&rig.engine).collection.snapshot().all_sources().next().unwrap().record();
    let first = rig.engine.data.root().join(first.unwrap().raw_key);
    assert!(first.exists());
    let is_mine = std::thread::current().id();
    let counted = Arc::clone(&reads);
    rig.disk.before_read(move |path| {
        let is_original = path.components().any(|part| part.as_os_str() == "raw");
        if !is_original || std::thread::current().id() != is_mine {
            return;
        }
        let turn = counted.fetch_add(1, Ordering::SeqCst);
        if turn < 2 {
            let engine = weak.upgrade().unwrap();
            submit(&engine, "doc", &format!("version after {turn}"), &Metadata::new());
            settled(&engine, "doc");
            wait_for("the end of the old file", || (!path.exists()).then_some(()));
        }
    });
    let mut original = rig.engine.original(&access(&rig.engine), &id("doc")).unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 3, "two were gone, the third is read");
    let content = content_of(&rig.engine, &mut original);
    assert_eq!((&content[..], original.record.version), (&b"version after 1"[..], 3));
    assert!(!first.exists());
}

#[test]
fn an_original_that_is_lost_is_damage_and_not_absence() {
    let rig = Rig::new();
    rig.upload("doc", "some words");
    let access = access(&rig.engine);
    let record = rig.engine.original(&access, &id("doc")).unwrap().record;
    std::fs::remove_file(rig.engine.data.root().join(&record.raw_key)).unwrap();
    let error = rig.engine.original(&access, &id("doc")).unwrap_err();
    assert_eq!(error.kind(), lodestone_types::ErrorKind::Corrupt, "{error}");
    let error = rig.engine.original(&access, &id("other")).unwrap_err();
    assert!(matches!(error, EngineError::SourceNotFound { .. }), "{error}");
}

/// Goal: an original that is whole in the bucket gets into a backup although its local copy is
/// damaged.
#[test]
fn a_damaged_copy_leaves_no_tenant_out_of_a_backup() {
    let rig = Rig::new();
    rig.upload("doc", "everywhere is snow");
    let record = rig.engine.original(&access(&rig.engine), &id("doc")).unwrap().record;
    let path = rig.engine.data.root().join(&record.raw_key);
    let sound = std::fs::read(&path).unwrap();
    let mut damaged = sound.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let copies = FaultyBlobs::new(Arc::clone(&rig.engine.store));
    copies.set_copies(move |_| std::fs::write(&path, &sound).is_ok());
    let open = |tenant: &Tenant| Ok(rig.engine.ingest.open(tenant)?);
    let parts = TakeParts {
        catalog: &rig.engine.catalog,
        open: &open,
        store: &Arc::new(HeldBlobs::new(Arc::new(copies))),
        clock: &*rig.clock,
        pace: &Unpaced,
    };
    let to = tempfile::tempdir().unwrap();
    let place = Folder::create(to.path()).unwrap();
    let made = take(&parts, &place, &TakeOptions::default()).unwrap();
    assert!(made.is_complete(), "{:?}", made.left_out);
}

/// Goal: the original of a visible version is kept although its upload waits again, because its end
/// could not be recorded, and is then superseded, and also while it is unknown whether the commit
/// has happened. Method: the steps of a worker, one by one.
#[test]
fn the_original_of_a_visible_version_is_kept_when_its_job_is_superseded() {
    for end in [Fault::None, Fault::After] {
        let faulty = Arc::new(FaultyBlobs::new(Arc::<MemoryBlobs>::default()));
        let store = Arc::clone(&faulty) as Arc<dyn BlobStore>;
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(START));
        let process = process_with(&store, dir.path(), &clock, None);
        let (catalog, ingest) = (&process.catalog, &process.ingest);
        let tenant = make_tenant(catalog, "acme");
        let (collection, scope) = (ingest.open(&tenant).unwrap(), SubTenantId::default_name());
        ingest.recover().unwrap();
        let upload = |content: &str| {
            let submission = submission("doc", content, &Metadata::new());
            ingest.submit(&tenant, &collection, &scope, submission).unwrap();
        };
        upload("first");
        let limits = ClaimLimits { jobs: 1, bytes: u64::MAX };
        let claim = catalog.claim_except(Duty::Process, limits, Vec::new()).unwrap().unwrap();
        let job = &claim.jobs[0];
        let kind = SourceKind::Text;
        let record = SourceRecord {
            raw_key: job.raw_key.clone(),
            ..SourceRecord::new(scope.clone(), id("doc"), kind, job.sequence, START)
        };
        let vector = HashEmbedder::vector("first");
        let dimension = vector.len();
        let rows = vec![NewRow { text: "first".to_owned(), vector, ..NewRow::default() }];
        let (title_text, searchable) = (String::new(), String::new());
        let source = NewSource { record, title_text, searchable, rows };
        let segment = collection.build(dimension, VectorKind::F16, &[source]).unwrap();
        let model: &dyn Embedder = &HashEmbedder;
        let edit = Edit {
            add: vec![AddedSegment { segment, withheld: Vec::new() }],
            applied: vec![job.sequence],
            embedding: Some(model.fingerprint().to_owned()),
            ..Edit::default()
        };
        faulty.set(move |call, key: &Key| match call {
            Call::Create if key.as_str().contains("/m/") => end,
            _ => Fault::None,
        });
        let committed = collection.writer().unwrap().commit(&edit);
        assert_eq!(committed.is_ok(), end == Fault::None);
        faulty.set(|_, _| Fault::None);
        let settlement = Settlement { sequence: job.sequence, outcome: Outcome::Released };
        catalog.settle(collection.id(), vec![settlement], None).unwrap();
        upload("second");
        upload("third");
        clock.advance_millis(2 * 3_600_000);
        assert_eq!(ingest.sweep_originals(&collection).unwrap(), 0, "{end:?}");
        assert!(store.len(&Key::parse(&job.raw_key).unwrap()).is_ok(), "{end:?}");
        // The next writer finds out whether the commit has happened.
        drop(collection.writer().unwrap());
        ingest.sweep_originals(&collection).unwrap();
        let kept = store.list(&uploads::prefix(collection.id())).unwrap();
        assert_eq!(kept.len(), 2, "{end:?}: the visible one and the one that waits");
        assert!(kept.iter().any(|key| key.as_str() == job.raw_key), "{end:?}");
    }
}

/// Goal: the original of a visible version is kept although its job, whose end was not recorded,
/// runs again, has its metadata changed meanwhile, and gives way to a newer upload.
/// Method: the catalog is put back to before the commit, and the worker is stopped at the gate.
#[test]
fn the_original_of_a_visible_version_is_kept_when_its_job_gives_way() {
    let (gate, clock) = (GatedEmbedder::with_passes(0), ManualClock::new(START));
    let rig = Rig::on(tempfile::tempdir().unwrap(), Arc::new(gate), Arc::new(clock));
    for name in ["doc", "other"] {
        submit(&rig.engine, name, &format!("a text about {name}"), &Metadata::new());
    }
    let mut catalog = [None, None];
    let files =
        |data: &Path| ["", "-wal"].map(|suffix| data.join(format!("catalog.sqlite{suffix}")));
    let rig = rig.restart(GatedEmbedder::default(), |data| {
        catalog = files(data).map(|file| std::fs::read(file).ok());
    });
    for name in ["doc", "other"] {
        assert_eq!(settled(&rig.engine, name).status, JobStatus::Success);
    }
    // Chunks of a visible version would not be embedded again.
    let other = rig.engine.original(&access(&rig.engine), &id("other")).unwrap().record;
    let other_file = std::fs::read(rig.engine.data.root().join(&other.raw_key)).unwrap();
    rig.engine.delete_sources(&access(&rig.engine), &[id("other")]).unwrap();
    let rig = rig.restart(GatedEmbedder::with_passes(0), |data| {
        lose_catalog(data);
        for (file, content) in files(data).iter().zip(&catalog) {
            content.iter().for_each(|content| std::fs::write(file, content).unwrap());
        }
        std::fs::write(data.join(&other.raw_key), &other_file).unwrap();
    });
    let engine = &rig.engine;
    let arrives = || wait_for("the worker", || rig.gate.has_waiting().then_some(()));
    arrives();
    let view = engine.source(&access(engine), &id("doc")).unwrap().unwrap();
    assert_eq!(view.status, JobStatus::InProgress);
    let document_metadata = Some(map(json!({"year": 1889})));
    let amendment = Amendment { document_metadata, ..Amendment::default() };
    engine.amend(&access(engine), &id("doc"), amendment).unwrap();
    submit(engine, "doc", "a newer text", &Metadata::new());
    rig.gate.let_pass(1);
    assert_eq!(settled(engine, "other").status, JobStatus::Success);
    arrives();
    let workers = || engine.ingest.workers_at(access(engine).collection.id());
    wait_for("the end of the first claim", || (workers() == 1).then_some(()));
    let mut original = engine.original(&access(engine), &id("doc")).unwrap();
    assert_eq!(&content_of(engine, &mut original)[..], b"a text about doc");
    let key = original.record.raw_key.clone();
    rig.gate.open();
    assert_eq!(settled(engine, "doc").status, JobStatus::Success);
    wait_for("the end of the old file", || (!engine.data.root().join(&key).exists()).then_some(()));
}

/// Goal: a large upload that failed before another one, or was superseded, no longer counts against
/// the limits of its tenant.
#[test]
fn originals_that_were_released_do_not_count() {
    let rig = Rig::new();
    rig.upload("doc", "a text about wind");
    let used =
        |engine: &Engine| engine.usage(&grant(), &scope().tenant).unwrap().allowance.used.bytes;
    let visible = used(&rig.engine);
    for blanks in [5000, 5] {
        submit(&rig.engine, "doc", &" ".repeat(blanks), &Metadata::new());
        assert_eq!(settled(&rig.engine, "doc").status, JobStatus::Errored);
    }
    wait_for("the count", || (used(&rig.engine) == visible).then_some(()));

    let rig = rig.restart(GatedEmbedder::with_passes(0), |_| {});
    let engine = &rig.engine;
    submit(engine, "before", "keeps the worker busy", &Metadata::new());
    wait_for("the worker", || rig.gate.has_waiting().then_some(()));
    let waiting = used(engine);
    submit(engine, "doc", &"words ".repeat(1000), &Metadata::new());
    assert!(used(engine) > waiting);
    submit(engine, "doc", "a word", &Metadata::new());
    assert_eq!(used(engine), waiting);
    rig.gate.open();
}
