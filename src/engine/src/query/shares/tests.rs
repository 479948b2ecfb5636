//! Goal: searches with shares find what searches without them find, whatever other nodes do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tempfile::TempDir;

use super::ShareNodes;
use super::wire::{ShareAnswer, ShareTask};
use crate::query::fixture;
use crate::query::{
    Alpha, FullTextRequest, GraphContext, Join, Mode, Query, RetrieveRequest, VectorParts,
    VectorSearch,
};
use lodestone_compute::SimdBackend;
use lodestone_embed::HashEmbedder;
use lodestone_storage::collection::{Collection, Edit, Snapshot};
use lodestone_storage::filter;
use lodestone_storage::segment::{NewRow, NewSource, VectorKind};
use lodestone_types::{
    ChunkPlace, Filter, Metric, RequestContext, SegmentId, Sequence, SourceId, SourceKind,
    SourceRecord, SubTenantId, Timestamp,
};

const NOW: Timestamp = Timestamp(1_000_000);
const SEGMENTS: usize = 9;
const SOURCES: usize = 14;
const CHUNKS: u32 = 3;
const WORDS: [&str; 12] = [
    "harbour", "lantern", "copper", "meadow", "signal", "granite", "willow", "engine", "orchard",
    "compass", "thunder", "velvet",
];

/// Behavior of the other nodes in a test.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Conduct {
    Answer,
    /// Two of three do not answer.
    Fail,
    /// Two of three return rows outside the task.
    Invent,
}

/// Nodes that search the snapshot of the test.
#[derive(Debug)]
struct Nodes {
    snapshot: Arc<Snapshot>,
    conduct: Conduct,
    asked: AtomicUsize,
}

impl ShareNodes for Nodes {
    fn rows_min(&self) -> u64 {
        1
    }

    fn assign(&self, segments: &[(SegmentId, u64)]) -> Vec<Option<usize>> {
        (0..segments.len()).map(|at| (at % 4).checked_sub(1)).collect()
    }

    fn ask(&self, node: usize, task: &ShareTask) -> Option<ShareAnswer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.conduct == Conduct::Fail && node > 0 {
            return None;
        }
        let sent = serde_json::to_string(task).unwrap();
        let task: ShareTask = serde_json::from_str(&sent).unwrap();
        let sub_tenant = SubTenantId::parse_stored(&task.sub_tenant).unwrap();
        let answer =
            queries().work_on(&RequestContext::default(), &self.snapshot, &sub_tenant, &task);
        let mut answer = answer.unwrap().expect("it has the segments");
        if self.conduct == Conduct::Invent && node > 0 {
            let foreign = (0, self.foreign_row(&task, &sub_tenant));
            match &mut answer {
                ShareAnswer::Tops(tops) => match tops.near.first_mut() {
                    Some(near) => near.push((foreign, 1.0)),
                    None => tops.words.push((foreign, 100.0)),
                },
                ShareAnswer::Counts(stats) => *stats = Default::default(),
            }
        }
        Some(serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap())
    }
}

impl Nodes {
    /// A row of the first segment that belongs to another sub-tenant.
    fn foreign_row(&self, task: &ShareTask, sub_tenant: &SubTenantId) -> u32 {
        let id = SegmentId(task.segments[0]);
        let live = self.snapshot.segments.iter().find(|live| live.segment.id() == id).unwrap();
        let own = live.scope(sub_tenant);
        (0..live.segment.row_count()).find(|row| !own.rows.contains(*row)).unwrap()
    }
}

fn queries() -> Query {
    Query::new(Arc::new(SimdBackend), Arc::new(HashEmbedder))
}

/// Sentences, most of them different.
fn text(number: usize) -> String {
    let word = |step: usize| WORDS[number * step % 37 % WORDS.len()];
    format!("The {} of the {} keeps a {} and the {}.", word(3), word(5), word(7), word(11))
}

fn source(number: usize, kind: VectorKind) -> NewSource {
    let sub_tenant = ["default", "team"][number % 2];
    let mut record = SourceRecord::new(
        SubTenantId::parse(sub_tenant).unwrap(),
        SourceId::parse(&format!("s{number:03}")).unwrap(),
        SourceKind::Text,
        Sequence(number as u64 + 1),
        Timestamp(NOW.0 - 1000 * number as u64),
    );
    record.document_metadata.insert("n".to_owned(), json!(number % 5));
    let row = |index: u32| {
        let text = text(number + 2 * index as usize);
        let vector = HashEmbedder::vector(&text);
        NewRow {
            index,
            place: ChunkPlace { chars: text.chars().count() as u32, ..ChunkPlace::default() },
            vector,
            text: if kind == VectorKind::F16 { text } else { String::new() },
            ..NewRow::default()
        }
    };
    let rows = (0..CHUNKS).map(row).collect();
    NewSource { record, title_text: String::new(), searchable: String::new(), rows }
}

/// Nine segments with rows of two sub-tenants, some of which are deleted.
fn collection(root: &TempDir, kind: VectorKind) -> Collection {
    let part = |part: usize| (part * SOURCES..(part + 1) * SOURCES).map(|n| source(n, kind));
    let collection = fixture::collection(root, kind, (0..SEGMENTS).map(|at| part(at).collect()));
    let gone = |number: usize| {
        let record = source(number, kind).record;
        (record.sub_tenant, record.id)
    };
    let remove_sources = (0..SEGMENTS * SOURCES).step_by(11).map(gone).collect();
    let edit = Edit { remove_sources, ..Edit::default() };
    collection.writer().unwrap().commit(&edit).unwrap();
    collection
}

fn request(query: &str) -> RetrieveRequest {
    RetrieveRequest { join: Join::Auto, ..fixture::request(query) }
}

fn some() -> filter::RequestFilter {
    let wanted = json!({"n": {"$in": [1, 2]}});
    filter::parse(None, wanted.as_object(), None).unwrap()
}

fn requests() -> Vec<RetrieveRequest> {
    let plain = || request("a lantern in the harbour and a compass");
    vec![
        plain(),
        RetrieveRequest { alpha: Alpha::Fixed(0.0), ..plain() },
        RetrieveRequest { alpha: Alpha::Fixed(1.0), ..plain() },
        RetrieveRequest { mode: Mode::Accurate, ..plain() },
        RetrieveRequest { filter: some(), ..plain() },
        RetrieveRequest { recency_bias: 0.7, max_chunks: 40, ..plain() },
        RetrieveRequest { per_source_max: Some(1), max_chunks: 50, ..plain() },
        RetrieveRequest { min_confidence: 0.2, mode: Mode::Accurate, ..plain() },
        RetrieveRequest { graph_context: GraphContext::On, ..plain() },
        request("zzz"),
    ]
}

/// Goal: results do not reveal whether searches are shared, nor what happens to the shares.
#[test]
fn shared_searches_find_the_same() {
    let root = TempDir::new().unwrap();
    let collection = collection(&root, VectorKind::F16);
    let snapshot = collection.snapshot();
    let (context, alone) = (RequestContext::default(), queries());
    for conduct in [Conduct::Answer, Conduct::Fail, Conduct::Invent] {
        let asked = AtomicUsize::new(0);
        let nodes = Arc::new(Nodes { snapshot: Arc::clone(&snapshot), conduct, asked });
        let shared = queries().with_nodes(Some(Arc::clone(&nodes) as _));
        for scope in ["default", "team"].map(|name| SubTenantId::parse(name).unwrap()) {
            for request in requests() {
                let before = nodes.asked.load(Ordering::Relaxed);
                let found = |query: &Query| {
                    let found = query.retrieve(&context, &snapshot, &scope, None, &request, NOW);
                    let mut found = found.unwrap();
                    found.timings = Default::default();
                    found
                };
                let (expected, found) = (found(&alone), found(&shared));
                assert_eq!(found, expected, "{conduct:?} {request:?}");
                assert!(nodes.asked.load(Ordering::Relaxed) >= before + 3, "{request:?}");
            }
            for request in [
                FullTextRequest::new("lantern harbour", 7),
                FullTextRequest { is_counted: true, ..FullTextRequest::new("copper", 7) },
                FullTextRequest { filter: some(), ..FullTextRequest::new("velvet engine", 90) },
            ] {
                let found = |query: &Query| {
                    query.full_text(&context, &snapshot, &scope, None, &request).unwrap()
                };
                assert_eq!(found(&shared), found(&alone), "{conduct:?} {request:?}");
            }
        }
    }
}

#[test]
fn shared_searches_over_vectors_find_the_same() {
    let root = TempDir::new().unwrap();
    let collection = collection(&root, VectorKind::F32);
    let snapshot = collection.snapshot();
    let (context, alone) = (RequestContext::default(), queries());
    let scope = SubTenantId::default_name();
    for conduct in [Conduct::Answer, Conduct::Fail, Conduct::Invent] {
        let asked = AtomicUsize::new(0);
        let nodes = Arc::new(Nodes { snapshot: Arc::clone(&snapshot), conduct, asked });
        let shared = queries().with_nodes(Some(Arc::clone(&nodes) as _));
        for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
            for filter in [Filter::All, some().for_schema(None).unwrap().clone()] {
                let queries = (0..5).map(|n| HashEmbedder::vector(&text(n))).collect();
                let parts = VectorParts::default();
                let search = VectorSearch { queries, max_chunks: 12, filter, parts };
                let found = |query: &Query| {
                    query.nearest_vectors(&context, &snapshot, &scope, metric, &search).unwrap()
                };
                assert_eq!(found(&shared), found(&alone), "{conduct:?} {metric:?}");
            }
        }
        assert!(nodes.asked.load(Ordering::Relaxed) > 0);
    }
}

/// Goal: client vectors are compared by their exact scores, however small. Method: more of them
/// than ties are kept for, with the best in the older of two sources.
#[test]
fn shared_searches_over_small_vectors_find_the_same() {
    const ROWS: u32 = 12_500;
    let root = TempDir::new().unwrap();
    let source = |number: u32| {
        let mut source = fixture::source("default", &format!("s{number}"), &[]);
        source.record.last_updated_at = Timestamp(NOW.0 + u64::from(number));
        let row = |index: u32| {
            let rank = index * 7919 % ROWS + (1 - number) * ROWS + 1;
            NewRow { index, vector: vec![1e-4 * rank as f32 / ROWS as f32; 8], ..NewRow::default() }
        };
        source.rows = (0..ROWS).map(row).collect();
        vec![source]
    };
    let collection = fixture::collection(&root, VectorKind::F32, [0, 1].map(source));
    let snapshot = collection.snapshot();
    let (context, scope) = (RequestContext::default(), SubTenantId::default_name());
    let (conduct, asked) = (Conduct::Answer, AtomicUsize::new(0));
    let nodes = Arc::new(Nodes { snapshot: Arc::clone(&snapshot), conduct, asked });
    let shared = queries().with_nodes(Some(Arc::clone(&nodes) as _));
    let (vectors, parts) = (vec![vec![1e-4; 8]], VectorParts::default());
    let search = VectorSearch { queries: vectors, max_chunks: 12, filter: Filter::All, parts };
    for metric in [Metric::Dot, Metric::L2] {
        let found = |query: &Query| {
            query.nearest_vectors(&context, &snapshot, &scope, metric, &search).unwrap()
        };
        let alone = found(&queries());
        assert_eq!(found(&shared), alone, "{metric:?}");
        assert!(metric == Metric::L2 || alone[0].iter().all(|hit| hit.found.batch == "s0"));
    }
    assert_eq!(nodes.asked.load(Ordering::Relaxed), 2);
}
