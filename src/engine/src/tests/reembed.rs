//! Tests of changing the embedding model of a tenant.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::ingest::{IngestError, NewMemory};
use crate::query::{Alpha, GraphContext, Join, Mode, Recall, RetrieveRequest, Retrieved};
use crate::reembed::{ReembedAction, TenantReembed};
use lodestone_embed::{EmbedError, EmbedStats, HashEmbedder, Lane};
use lodestone_storage::collection::OtherVectors;
use lodestone_types::{Filter, RequestContext, Stopped};

const TOPICS: [&str; 6] = ["granite", "slate", "bread", "butter", "winter", "river"];

/// A model with more dimensions than the other; it also distinguishes words by their first letter.
#[derive(Debug)]
struct Wide {
    inner: Arc<GatedEmbedder>,
    /// If set, calls in the answer lane time out; counts those among them without a deadline.
    endless: Option<Arc<AtomicUsize>>,
}

impl Wide {
    fn vector(text: &str) -> Vec<f32> {
        let mut vector = HashEmbedder::vector(text);
        vector.resize(96, 0.0);
        for word in text.split_whitespace() {
            vector[64 + word.as_bytes()[0] as usize % 32] += 0.5;
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|x| *x /= length);
        vector
    }
}

impl Embedder for Wide {
    fn dimension(&self) -> usize {
        96
    }

    fn name(&self) -> &str {
        "wide"
    }

    fn fingerprint(&self) -> &str {
        "wide-test-double"
    }

    fn token_offsets(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        HashEmbedder.token_offsets(text)
    }

    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if let Some(endless) = self.endless.as_ref().filter(|_| lane == Lane::Answer) {
            endless.fetch_add(usize::from(context.deadline().is_none()), Ordering::SeqCst);
            let limit = Duration::from_secs(10);
            return Err(EmbedError::Stopped(Stopped::DeadlineExceeded { limit }));
        }
        let vectors = texts.iter().map(|text| Self::vector(text)).collect();
        self.inner.embed_within(lane, context, texts)?;
        Ok(vectors)
    }

    fn stats(&self) -> EmbedStats {
        EmbedStats::default()
    }

    fn close(&self) {
        Embedder::close(&*self.inner);
    }
}

/// Starts an engine with a new model behind a gate and, unless `is_alone`, the previous model.
fn with_wide(dir: &Path, clock: &Arc<ManualClock>, passes: u64, is_alone: bool) -> Wided {
    let gate = Arc::new(GatedEmbedder::with_passes(passes));
    let wide = Wide { inner: Arc::clone(&gate), endless: None };
    Wided { engine: start_with(wide, dir, clock, is_alone), gate }
}

fn start_with(wide: Wide, dir: &Path, clock: &Arc<ManualClock>, is_alone: bool) -> Arc<Engine> {
    let mut settings = Settings::new(dir.join("data"), "unused".into());
    settings.ingest_threads = 1;
    let mut components = Components::real(Arc::new(wide));
    components.clock = Arc::clone(clock) as Arc<dyn Clock>;
    components.disk = Arc::<StandInDisk>::default();
    if !is_alone {
        components.other_embedders = vec![Arc::new(GatedEmbedder::default())];
    }
    Engine::start(settings, components).unwrap()
}

struct Wided {
    engine: Arc<Engine>,
    gate: Arc<GatedEmbedder>,
}

/// A text of `chunks` chunks about one topic.
fn long(topic: &str, chunks: usize) -> String {
    let sentence = |n: usize| format!("The {topic} of part {n} is number {n}. ");
    (0..chunks).map(|n| format!("# Part {n}\n\n{}\n\n", sentence(n).repeat(12))).collect()
}

fn found(engine: &Engine, query: &str) -> Retrieved {
    let request = RetrieveRequest {
        query: query.to_owned(),
        extra_context: None,
        max_chunks: 10,
        mode: Mode::Fast,
        recall: Recall::Usual,
        alpha: Alpha::Fixed(0.8),
        recency_bias: 0.0,
        is_personalised: true,
        graph_context: GraphContext::Off,
        per_source_max: None,
        join: Join::Never,
        min_confidence: 0.0,
        filter: Filter::All.into(),
    };
    engine.retrieve(&access(engine), &request).unwrap()
}

/// Sources, positions and scores of the first results.
fn top(engine: &Engine) -> Vec<Vec<(String, u32, u32)>> {
    let results = TOPICS.map(|topic| found(engine, &format!("which part is about {topic}?")));
    let of = |result: Retrieved| {
        assert!(!result.has_foreign_model, "searched with the model of its vectors");
        let place = |chunk: &lodestone_types::RetrievedChunk| {
            (chunk.source.id.to_string(), chunk.index, chunk.score.to_bits())
        };
        result.chunks.iter().map(place).collect()
    };
    results.into_iter().map(of).collect()
}

fn order(engine: &Engine, action: ReembedAction) -> TenantReembed {
    let tenant = scope().tenant;
    engine.reembed(&grant(), Some(&tenant), Some(action), None).unwrap().remove(0)
}

fn state(engine: &Engine) -> TenantReembed {
    engine.reembed(&grant(), Some(&scope().tenant), None, None).unwrap().remove(0)
}

fn switched(engine: &Engine) {
    wait_for("the switch", || {
        let now = state(engine);
        let run = now.run?;
        assert_ne!(run.status, JobStatus::Errored, "{}", run.message);
        (run.status == JobStatus::Success).then_some(())
    });
}

fn fill(engine: &Engine) {
    for (at, topic) in TOPICS.iter().enumerate() {
        let (id, metadata) = (format!("about-{topic}"), map(json!({"at": at})));
        submit(engine, &id, &long(topic, 200), &metadata);
    }
    for topic in TOPICS {
        assert_eq!(settled(engine, &format!("about-{topic}")).status, JobStatus::Success);
    }
}

fn remember(engine: &Engine, content: &str) {
    let memory = NewMemory { content: content.into(), ..NewMemory::default() };
    let TenantAccess { tenant, collection, sub_tenant, .. } = access(engine);
    engine.ingest.add_memories(&tenant, &collection, &sub_tenant, vec![memory]).unwrap();
}

/// Goal: while a tenant is re-embedded, it is searched with its old vectors. Uploads, deletions and
/// a restart in the meantime neither lose work nor repeat it. After the switch it equals a fresh
/// tenant of the new model, and after going back one of the old model.
#[test]
fn a_tenant_changes_its_model_while_it_serves_and_back() {
    let rig = Rig::new();
    fill(&rig.engine);
    remember(&rig.engine, "Nora builds with granite.");
    let before = top(&rig.engine);
    let clock = Arc::clone(&rig.clock);
    let dir = rig.stop();

    let Wided { engine, gate } = with_wide(dir.path(), &clock, 1, false);
    assert_eq!(top(&engine), before, "the vectors of before are searched with their model");
    let estimate = order(&engine, ReembedAction::Estimate).estimate.unwrap();
    assert!(estimate.chunks > 500 && estimate.disk_bytes > 0, "{estimate:?}");
    assert!(state(&engine).run.is_none(), "an estimate begins nothing");
    order(&engine, ReembedAction::Start);
    // The first piece has 256 passages waiting at the gate.
    wait_for("the first slice", || gate.has_waiting().then_some(()));
    assert_eq!(top(&engine), before);
    submit(&engine, "late", &long("marble", 3), &Metadata::new());
    assert_eq!(settled(&engine, "late").status, JobStatus::Success, "with the old model");
    engine.delete_sources(&access(&engine), &[id("about-river")]).unwrap();
    let during = top(&engine);
    assert_ne!(during, before);
    gate.let_pass(3);
    wait_for("a piece", || (state(&engine).state.other_bytes > 0).then_some(()));
    let embedded = gate.embedded();
    drop(gate);
    engine.shut_down();
    drop(engine);

    let Wided { engine, gate } = with_wide(dir.path(), &clock, u64::MAX, false);
    assert_eq!(state(&engine).run.unwrap().tenant.id, scope().tenant, "it goes on by itself");
    switched(&engine);
    let all: u64 = state(&engine).run.unwrap().chunks;
    assert!(gate.embedded() < all, "{} again after {embedded} of {all}", gate.embedded());
    let after = top(&engine);
    assert_ne!(after, during);
    submit(&engine, "newest", &long("chalk", 3), &Metadata::new());
    assert_eq!(settled(&engine, "newest").status, JobStatus::Success);
    assert!(state(&engine).state.is_current && state(&engine).state.kept_until.is_some());
    assert_eq!(engine.stats(&grant(), &access(&engine)).unwrap().model.dimension, Some(96));

    let fresh = tempfile::tempdir().unwrap();
    let Wided { engine: reference, .. } = with_wide(fresh.path(), &clock, u64::MAX, true);
    fill(&reference);
    remember(&reference, "Nora builds with granite.");
    reference.delete_sources(&access(&reference), &[id("about-river")]).unwrap();
    for (source, topic) in [("late", "marble"), ("newest", "chalk")] {
        submit(&reference, source, &long(topic, 3), &Metadata::new());
        assert_eq!(settled(&reference, source).status, JobStatus::Success);
    }
    assert_eq!(top(&engine), top(&reference), "as a fresh tenant of the new model");

    order(&engine, ReembedAction::Back);
    switched(&engine);
    let back = top(&engine);
    assert_eq!(settled(&engine, "newest").status, JobStatus::Success);
    engine.delete_sources(&access(&engine), &[id("newest")]).unwrap();
    assert_eq!(top(&engine), during, "what was uploaded after the switch is there, and no more");
    assert_ne!(back, after);
    assert!(!state(&engine).state.is_current);
    order(&engine, ReembedAction::Discard);
    let left = state(&engine);
    assert!(left.state.other_model.is_none() && left.run.is_none());
    let nothing = engine.reembed(&grant(), Some(&scope().tenant), Some(ReembedAction::Back), None);
    assert!(matches!(nothing, Err(EngineError::Ingest(IngestError::ReembedRefused { .. }))));
}

/// Goal: previous vectors are deleted when their retention time is over, along with their files.
#[test]
fn kept_vectors_expire() {
    let rig = Rig::new();
    rig.upload("doc", "everywhere is wind");
    let clock = Arc::clone(&rig.clock);
    let dir = rig.stop();
    let Wided { engine, .. } = with_wide(dir.path(), &clock, u64::MAX, true);
    assert!(access(&engine).has_foreign_model(), "without the model of before: by words");
    order(&engine, ReembedAction::Start);
    switched(&engine);
    assert!(!access(&engine).has_foreign_model());
    let segments = || {
        let collection = access(&engine).tenant.collection.to_string();
        let path = dir.path().join("data/v1/c").join(collection).join("s");
        std::fs::read_dir(path).unwrap().count()
    };
    assert_eq!(segments(), 2);
    clock.advance_millis(168 * 3_600_000 - 1);
    engine.ingest.expire_other(&access(&engine).collection).unwrap();
    assert!(state(&engine).state.other_model.is_some(), "not yet");
    clock.advance_millis(1);
    engine.ingest.expire_other(&access(&engine).collection).unwrap();
    assert!(state(&engine).state.other_model.is_none());
    wait_for("the files to go", || (segments() == 1).then_some(()));
    submit(&engine, "next", "everywhere is snow", &Metadata::new());
    assert_eq!(settled(&engine, "next").status, JobStatus::Success);
}

/// Goal: previous vectors that are wanted back while their expiry waits for the writer's lock are
/// kept.
#[test]
fn vectors_that_are_wanted_back_do_not_expire() {
    let rig = Rig::new();
    rig.upload("doc", "everywhere is wind");
    let clock = Arc::clone(&rig.clock);
    let dir = rig.stop();
    let Wided { engine, .. } = with_wide(dir.path(), &clock, u64::MAX, false);
    order(&engine, ReembedAction::Start);
    switched(&engine);
    let collection = &access(&engine).collection;
    let mut writer = collection.writer().unwrap();
    clock.advance_millis(168 * 3_600_000);
    std::thread::scope(|scope| {
        let expiry = scope.spawn(|| engine.ingest.expire_other(collection));
        // Time to look at the snapshot; without it the test would pass for no reason.
        std::thread::park_timeout(100 * PAUSE);
        let kept = writer.base().manifest.other.clone().unwrap();
        writer.set_other(Some(OtherVectors { is_wanted: true, ..kept })).unwrap();
        drop(writer);
        expiry.join().unwrap().unwrap();
    });
    assert!(collection.snapshot().manifest.other.as_ref().is_some_and(|other| other.is_wanted));
}

/// Goal: choosing the model that a tenant already has ends its change to another one.
#[test]
fn choosing_the_present_model_ends_a_change() {
    let rig = Rig::new();
    fill(&rig.engine);
    let clock = Arc::clone(&rig.clock);
    let dir = rig.stop();
    let Wided { engine, gate } = with_wide(dir.path(), &clock, 1, false);
    order(&engine, ReembedAction::Start);
    wait_for("the first slice", || gate.has_waiting().then_some(()));
    let present = engine.embedder_of(&access(&engine).tenant).unwrap();
    let (tenant, start) = (scope().tenant, Some(ReembedAction::Start));
    let ended = engine.reembed(&grant(), Some(&tenant), start, Some(&*present)).unwrap().remove(0);
    assert!(ended.run.is_none() && ended.state.other_model.is_none());
    assert!(ended.state.is_current);
    gate.open();
    wait_for("the end of the step", || (!gate.has_waiting()).then_some(()));
    engine.shut_down();
    drop(engine);
    let Wided { engine, .. } = with_wide(dir.path(), &clock, u64::MAX, false);
    let left = state(&engine);
    assert!(left.run.is_none() && left.state.other_model.is_none() && left.state.is_current);
    assert_eq!(left.state.model.as_deref(), Some(present.name()));
}

/// Goal: writers of a tenant wait for the last vectors only for a bounded time; a model that is
/// slower embeds them while writers continue.
#[test]
fn a_slow_model_does_not_keep_the_writers_lock() {
    let rig = Rig::new();
    rig.upload("doc", "everywhere is wind");
    let clock = Arc::clone(&rig.clock);
    let dir = rig.stop();
    let endless = Arc::new(AtomicUsize::new(0));
    let wide = Wide { inner: Arc::default(), endless: Some(Arc::clone(&endless)) };
    let engine = start_with(wide, dir.path(), &clock, false);
    order(&engine, ReembedAction::Start);
    wait_for("the switch", || {
        assert_eq!(endless.load(Ordering::SeqCst), 0, "a call under the lock has no end");
        (state(&engine).run?.status == JobStatus::Success).then_some(())
    });
    assert_eq!(engine.stats(&grant(), &access(&engine)).unwrap().model.dimension, Some(96));
}

/// Goal: in an order for all tenants, a tenant with damaged data is reported with the reason, and
/// the tenants after it are worked on; in an order for it alone, it is an error.
#[test]
fn a_damaged_tenant_does_not_hold_others_up() {
    let rig = Rig::new();
    rig.upload("doc", "everywhere is wind");
    let later = Scope { tenant: TenantId::parse("later").unwrap(), ..scope() };
    drop(rig.engine.open_or_create(&grant(), &later).unwrap());
    let collection = access(&rig.engine).tenant.collection.to_string();
    let clock = Arc::clone(&rig.clock);
    let dir = rig.stop();
    let manifests = dir.path().join("data/v1/c").join(collection).join("m");
    for manifest in std::fs::read_dir(manifests).unwrap() {
        std::fs::write(manifest.unwrap().path(), b"other bytes").unwrap();
    }
    let Wided { engine, .. } = with_wide(dir.path(), &clock, u64::MAX, false);
    for action in [None, Some(ReembedAction::Start)] {
        let states = engine.reembed(&grant(), None, action, None).unwrap();
        let named: Vec<_> = states.iter().map(|one| one.tenant.as_str()).collect();
        assert_eq!(named, ["acme", "later"]);
        let problem = states[0].problem.as_ref().expect("it is damaged");
        assert!(problem.contains("manifest"), "{problem}");
        assert!(states[1].problem.is_none() && states[1].state.is_current);
        let alone = engine.reembed(&grant(), Some(&scope().tenant), action, None).unwrap_err();
        assert_eq!(alone.to_string(), *problem);
    }
}
