//! Tests of the whole engine without HTTP, one file per theme.

mod amendments;
mod backups;
mod claims;
mod client_vectors;
mod deletion;
mod fairness;
mod files;
mod full_disk;
mod gate;
mod links;
mod listing;
mod memories;
mod merging;
mod models;
mod originals;
mod outcomes;
mod rebuild;
mod reembed;
mod restore;
mod resume;
mod sweep;
mod webhooks;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::ingest::Submission;
use crate::query::SourceView;
use gate::GatedEmbedder;
use lodestone_catalog::job::MetadataChange;
use lodestone_extract::sandbox::{Drawn, InProcess, Parsed, Parser};
use lodestone_extract::{Drawing, Format};
use lodestone_io::{Disk, RealDisk, StandInDisk};
use lodestone_types::{
    Grant, JobStatus, KeyScope, ManualClock, Metadata, Origin, Role, Scope, SourceId, SourceKind,
    SubTenantId, TenantId, TenantMode, Timestamp,
};

/// Time after which a test considers background work stuck.
const PATIENCE: Duration = Duration::from_secs(600);
/// Pause between two checks, so that the background work gets the processor.
const PAUSE: Duration = Duration::from_millis(1);
/// Beginning of a document that takes [`SLOW_MILLIS`] to read.
const SLOW: &str = "slowly read";
const SLOW_MILLIS: u64 = 1500;
const START: Timestamp = Timestamp(1_750_000_000_000);

/// A parser that takes time, by the test's clock, for documents that begin with [`SLOW`].
#[derive(Debug)]
struct SlowParser(Arc<ManualClock>);

impl Parser for SlowParser {
    fn parse(&self, format: Format, bytes: &[u8]) -> Parsed {
        if bytes.starts_with(SLOW.as_bytes()) {
            self.0.advance_millis(SLOW_MILLIS);
        }
        InProcess.parse(format, bytes)
    }

    fn draw(&self, format: Format, bytes: &[u8], drawing: &Drawing) -> Drawn {
        InProcess.draw(format, bytes, drawing)
    }
}

/// An engine over a directory that outlives it.
pub(crate) struct Rig {
    pub(crate) engine: Arc<Engine>,
    disk: Arc<StandInDisk>,
    gate: Arc<GatedEmbedder>,
    clock: Arc<ManualClock>,
    dir: TempDir,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        Self::on(tempfile::tempdir().unwrap(), Arc::default(), clock)
    }

    fn on(dir: TempDir, gate: Arc<GatedEmbedder>, clock: Arc<ManualClock>) -> Self {
        let disk = Arc::<StandInDisk>::default();
        let engine = start(dir.path(), &disk, &gate, &clock).unwrap();
        Self { engine, disk, gate, clock, dir }
    }

    fn stop(self) -> TempDir {
        let Self { engine, dir, .. } = self;
        engine.shut_down();
        assert_eq!(Arc::strong_count(&engine), 1, "nobody holds the old engine");
        dir
    }

    /// Stops the engine, runs `meanwhile` on its data directory, and starts another behind `gate`.
    fn restart(self, gate: GatedEmbedder, meanwhile: impl FnOnce(&Path)) -> Self {
        let clock = Arc::clone(&self.clock);
        let dir = self.stop();
        meanwhile(&dir.path().join("data"));
        Self::on(dir, Arc::new(gate), clock)
    }

    pub(crate) fn collection(&self) -> Arc<lodestone_storage::collection::Collection> {
        Arc::clone(&access(&self.engine).collection)
    }

    pub(crate) fn upload(&self, id: &str, content: &str) {
        submit(&self.engine, id, content, &Metadata::new());
        assert_eq!(settled(&self.engine, id).status, JobStatus::Success);
    }
}

fn start(
    dir: &Path,
    disk: &Arc<StandInDisk>,
    gate: &Arc<GatedEmbedder>,
    clock: &Arc<ManualClock>,
) -> Result<Arc<Engine>, EngineError> {
    let mut settings = Settings::new(dir.join("data"), "unused".into());
    settings.ingest_threads = 1;
    let mut components = Components::real(Arc::clone(gate) as Arc<dyn Embedder>);
    components.disk = Arc::clone(disk) as Arc<dyn Disk>;
    components.clock = Arc::clone(clock) as Arc<dyn Clock>;
    components.parser = Arc::new(SlowParser(Arc::clone(clock)));
    Engine::start(settings, components)
}

fn grant() -> Grant {
    Grant::new("test", Role::Admin, KeyScope::AllTenants)
}

fn scope() -> Scope {
    let tenant = TenantId::parse("acme").unwrap();
    Scope { tenant, sub_tenant: SubTenantId::default_name() }
}

/// Creates a tenant for client vectors.
fn make_vector_tenant(
    engine: &Engine,
    id: &TenantId,
) -> Result<Arc<lodestone_catalog::Tenant>, EngineError> {
    let (mode, plan) = (TenantMode::EMBEDDINGS, TenantPlan::default());
    engine.create_tenant(&grant(), Some(id.clone()), mode, None, plan)
}

fn access(engine: &Engine) -> TenantAccess {
    engine.open_or_create(&grant(), &scope()).unwrap()
}

fn id(text: &str) -> SourceId {
    SourceId::parse(text).unwrap()
}

fn content_of(engine: &Engine, original: &mut Original) -> Vec<u8> {
    let gather = |content: &mut Vec<u8>, piece: &[u8]| content.extend_from_slice(piece);
    engine.read_original(original, gather).unwrap()
}

fn map(value: Value) -> Metadata {
    value.as_object().unwrap().clone()
}

fn submission(source: &str, content: &str, document_metadata: &Metadata) -> Submission {
    Submission {
        source: Some(id(source)),
        kind: SourceKind::Text,
        content: content.as_bytes().to_vec().into(),
        filename: String::new(),
        content_type: None,
        tenant_metadata: MetadataChange::Replace(Metadata::new()),
        document_metadata: MetadataChange::Replace(document_metadata.clone()),
        origin: Origin::default(),
    }
}

fn submit(engine: &Engine, source: &str, content: &str, document_metadata: &Metadata) {
    engine.submit(&access(engine), submission(source, content, document_metadata)).unwrap();
}

/// Polls `look` until it returns a value.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} does not come");
        std::thread::park_timeout(PAUSE);
    }
}

/// The sources of a scope, in any state.
fn all_sources(engine: &Engine, access: &TenantAccess) -> Vec<SourceView> {
    engine.list_sources(access, None, None, None).unwrap().sources
}

/// Waits until the newest job of a source has ended.
fn settled(engine: &Engine, source: &str) -> SourceView {
    wait_for(source, || {
        let view = engine.source(&access(engine), &id(source)).unwrap();
        view.filter(|view| view.status.is_settled())
    })
}
