//! Tests of changed metadata, and of what searches find of it.

use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::ingest::Amendment;
use crate::query::FullTextRequest;
use lodestone_types::{ErrorKind, FieldType, RandomIds, SchemaField, TenantSchema};

fn found(engine: &Engine, word: &str) -> Vec<(String, u32)> {
    let request = FullTextRequest::new(word, 10);
    let chunks = engine.full_text(&access(engine), &request).unwrap().chunks;
    chunks.iter().map(|chunk| (chunk.source.id.to_string(), chunk.source.version)).collect()
}

fn team(name: &str) -> Amendment {
    let tenant_metadata = Some(map(json!({"team": name})));
    Amendment { tenant_metadata, ..Amendment::default() }
}

/// Creates a tenant whose searches include the value `team`.
fn create_tenant(engine: &Engine) {
    let field = SchemaField {
        key: "team".into(),
        field_type: FieldType::String,
        searchable: true,
        filterable: true,
    };
    let schema = TenantSchema { fields: vec![field] };
    let acme = Some(scope().tenant);
    engine
        .create_tenant(&grant(), acme, TenantMode::Standard, Some(schema), TenantPlan::default())
        .unwrap();
}

/// Goal: a change that fails before its words can be made searchable changes nothing, and repeating
/// it applies all of it.
/// Method: the original is unreadable during the first attempt.
#[test]
fn a_change_that_failed_is_made_whole_by_a_retry() {
    let rig = Rig::new();
    let engine = &rig.engine;
    create_tenant(engine);
    rig.upload("doc", "a text about wind");
    let original = engine.original(&access(engine), &id("doc")).unwrap().record.raw_key.clone();
    let original = engine.data.root().join(original);
    let aside = original.with_extension("aside");
    std::fs::rename(&original, &aside).unwrap();
    engine.amend(&access(engine), &id("doc"), team("scarlet")).unwrap_err();
    assert_eq!(settled(engine, "doc").record.tenant_metadata, Metadata::new());

    std::fs::rename(&aside, &original).unwrap();
    engine.amend(&access(engine), &id("doc"), team("scarlet")).unwrap();
    let view = settled(engine, "doc");
    assert_eq!((view.status, view.version), (JobStatus::Success, 2));
    assert_eq!(view.record.tenant_metadata, map(json!({"team": "scarlet"})));
    assert_eq!(found(engine, "scarlet"), [("doc".to_owned(), 2)]);
    let kept = || std::fs::read_dir(original.parent().unwrap()).unwrap().count();
    wait_for("the end of the first original", || (kept() == 1).then_some(()));
}

/// Goal: a searchable value that is changed while a replacement waits is found in the version that
/// stays visible when the replacement fails, and the failure is still reported.
/// Method: the only worker waits at the gate while the replacement is queued.
#[test]
fn words_changed_before_a_failure_are_searchable() {
    let rig = Rig::new();
    let engine = &rig.engine;
    create_tenant(engine);
    rig.upload("doc", "a text about wind");
    engine.amend(&access(engine), &id("doc"), team("scarlet")).unwrap();
    assert_eq!(settled(engine, "doc").status, JobStatus::Success);
    assert_eq!(found(engine, "scarlet"), [("doc".to_owned(), 2)]);

    let rig = rig.restart(GatedEmbedder::with_passes(0), |_| {});
    let engine = &rig.engine;
    submit(engine, "before", "keeps the worker busy", &Metadata::new());
    wait_for("the worker", || rig.gate.has_waiting().then_some(()));
    let empty = Submission {
        tenant_metadata: MetadataChange::Keep,
        ..submission("doc", "  ", &Metadata::new())
    };
    engine.submit(&access(engine), empty).unwrap();
    engine.amend(&access(engine), &id("doc"), team("crimson")).unwrap();
    assert_eq!(found(engine, "crimson"), [], "the words are left to the job");
    rig.gate.open();
    let view = settled(engine, "doc");
    assert_eq!((view.status, view.record.version), (JobStatus::Errored, 2));
    assert_eq!(view.record.tenant_metadata, map(json!({"team": "crimson"})));
    assert_eq!(found(engine, "crimson"), [("doc".to_owned(), 2)]);
    assert_eq!(found(engine, "scarlet"), []);
    assert_eq!(found(engine, "wind"), [("doc".to_owned(), 2)]);
    assert_eq!(view.chunks, Some(1));
}

/// Goal: changing words of a large document takes no memory for its original.
/// Method: count whole reads by the thread that makes the change.
#[test]
fn the_original_of_a_changed_source_is_not_read_into_memory() {
    let rig = Rig::new();
    let engine = &rig.engine;
    create_tenant(engine);
    rig.upload("doc", "a text about wind");
    let (mine, reads) = (std::thread::current().id(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&reads);
    rig.disk.before_whole_read(move |path| {
        let is_original = path.components().any(|part| part.as_os_str() == "raw");
        if is_original && std::thread::current().id() == mine {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    engine.amend(&access(engine), &id("doc"), team("scarlet")).unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 0);
    assert_eq!(settled(engine, "doc").version, 2);
    assert_eq!(found(engine, "wind"), [("doc".to_owned(), 2)], "the copy is the original");
}

/// Goal: a damaged original is not copied for another round of processing.
#[test]
fn a_damaged_original_is_not_accepted_once_more() {
    let rig = Rig::new();
    let engine = &rig.engine;
    create_tenant(engine);
    rig.upload("doc", "a text about wind");
    let record = engine.original(&access(engine), &id("doc")).unwrap().record;
    let path = engine.data.root().join(&record.raw_key);
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = engine.amend(&access(engine), &id("doc"), team("scarlet")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left");
    assert_eq!(settled(engine, "doc").record.tenant_metadata, Metadata::new());
}

/// Ids of a machine. Uploads a document to `engine`, once, before the next job gets its id.
#[derive(Debug, Default)]
struct UploadBeforeJob {
    engine: Mutex<Weak<Engine>>,
}

impl IdSource for UploadBeforeJob {
    fn fill(&self, bytes: &mut [u8]) {
        RandomIds.fill(bytes);
    }

    fn wire_id(&self, prefix: &str, now: Timestamp) -> String {
        if prefix == "job_" {
            let engine = std::mem::take(&mut *self.engine.lock()).upgrade();
            if let Some(engine) = engine {
                submit(&engine, "doc", "a text about snow", &Metadata::new());
            }
        }
        RandomIds.wire_id(prefix, now)
    }
}

/// Goal: an upload that is accepted during a change of metadata becomes visible, with the change.
/// Method: it is accepted just before the old original would be accepted once more.
#[test]
fn an_upload_during_a_change_is_not_replaced_by_the_old_version() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = Settings::new(dir.path().join("data"), "unused".into());
    settings.ingest_threads = 1;
    let ids = Arc::<UploadBeforeJob>::default();
    let mut components = Components::real(Arc::<GatedEmbedder>::default());
    components.ids = Arc::clone(&ids) as Arc<dyn IdSource>;
    let engine = Engine::start(settings, components).unwrap();
    create_tenant(&engine);
    submit(&engine, "doc", "a text about wind", &Metadata::new());
    assert_eq!(settled(&engine, "doc").status, JobStatus::Success);
    *ids.engine.lock() = Arc::downgrade(&engine);
    engine.amend(&access(&engine), &id("doc"), team("scarlet")).unwrap();
    assert!(ids.engine.lock().upgrade().is_none(), "the upload came in between");
    let view = settled(&engine, "doc");
    assert_eq!(view.status, JobStatus::Success);
    assert_eq!(view.record.tenant_metadata, map(json!({"team": "scarlet"})));
    for word in ["snow", "scarlet"] {
        assert_eq!(found(&engine, word), [("doc".to_owned(), view.version)], "{word}");
    }
    assert_eq!(found(&engine, "wind"), []);
    engine.shut_down();
}
