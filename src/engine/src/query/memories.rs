//! Personal memories: listing, search, and those near a query.
//!
//! Memories are stored in scopes of their own, so they never mix with documents. Every read here
//! first applies the filter on expiry, so an expired memory appears in no result.

use std::collections::BTreeSet;

use crate::query::legs::{self, RowAddress, SegmentScope};
use crate::query::request::{Alpha, GraphContext, Join, Mode, Recall, RetrieveRequest};
use crate::query::{Query, QueryError};
use lodestone_compute::PreparedQuery;
use lodestone_storage::collection::Snapshot;
use lodestone_storage::segment::flat::Thoroughness;
use lodestone_types::{
    Filter, Memory, RequestContext, SourceId, SubTenantId, Timestamp, limits, memory,
};

/// Minimum cosine at which a memory counts as near a query.
///
/// Measured with all-MiniLM-L6-v2 on the 30 queries in `near_memories.txt`, each with one memory
/// that should steer it. At 0.2, 0.25, 0.3 and 0.35, a query reaches its own memory in 83, 73, 47
/// and 40 % of the cases, and a memory of another query in 3.3, 1.4, 0.3 and 0 %. With twenty
/// memories, that affects every third search at 0.25, and two in three at 0.2. The test below
/// prints these figures.
const NEAR_COSINE: f32 = 0.25;
/// Number of chunks compared to find near memories, since a long memory has several.
const NEAR_CHUNKS: usize = 8 * limits::MEMORIES_USED_MAX;
/// Bytes of a listed memory besides its text.
const MEMORY_BYTES: u64 = 512;
/// Number of memories found by a search that requests no number.
const DECIDED_MAX: usize = 10;
/// Weight of meaning in searches of memories, as in other searches.
const ALPHA: f32 = 0.8;

/// A search of memories.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryRequest {
    /// The query.
    pub query: String,
    /// Name of the user, which memories may mention; it steers the semantic leg.
    pub user_name: Option<String>,
    /// Maximum number of memories; `None` returns those that are near or share a word, up to a
    /// limit.
    pub max_count: Option<usize>,
}

/// A memory that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundMemory {
    /// The memory.
    pub memory: Memory,
    /// Its relevance, 0 to 1, which is that of its best chunk.
    pub score: f32,
}

/// A memory near a query.
#[derive(Debug, Clone, PartialEq)]
pub struct NearMemory {
    /// Id of the memory.
    pub id: SourceId,
    /// The chunk of it that is nearest.
    pub text: String,
    /// Cosine of that chunk with the query.
    pub similarity: f32,
    /// Unit vector of that chunk.
    pub vector: Vec<f32>,
}

/// The segments with unexpired memories of a sub-tenant.
fn memory_segments(
    context: &RequestContext,
    snapshot: &Snapshot,
    sub_tenant: &SubTenantId,
    now: Timestamp,
) -> Result<Vec<SegmentScope>, QueryError> {
    let scope = sub_tenant.of_memories();
    let all = || snapshot.segments.iter();
    let segments = legs::segments_in_scope(context, all(), &scope, &Filter::All, None)?;
    if segments.is_empty() {
        return Ok(segments);
    }
    let unexpired = memory::unexpired(now);
    let mut segments = legs::segments_in_scope(context, all(), &scope, &unexpired, None)?;
    segments.retain(|segment| segment.rows > 0);
    Ok(segments)
}

fn sources(segment: &SegmentScope) -> Vec<u32> {
    let rows = segment.mask().unwrap_or(&segment.scope.rows);
    segment.live.sources_of(rows)
}

/// The memories of a sub-tenant, newest first.
///
/// # Errors
/// Malformed stored data.
pub fn memories(
    context: &RequestContext,
    snapshot: &Snapshot,
    sub_tenant: &SubTenantId,
    now: Timestamp,
) -> Result<Vec<Memory>, QueryError> {
    let mut found = Vec::new();
    for scoped in memory_segments(context, snapshot, sub_tenant, now)? {
        let segment = &scoped.live.segment;
        for source in sources(&scoped) {
            let memory = Memory::of(&segment.record(source)?);
            let bytes = memory.as_ref().map_or(0, |memory| memory.content.len() as u64);
            context.reserve(MEMORY_BYTES + 3 * bytes)?;
            found.extend(memory.map(|memory| (segment.sequence(source), memory)));
        }
    }
    // The sequence distinguishes memories added in the same millisecond.
    found.sort_by(|(a, _), (b, _)| b.cmp(a));
    Ok(found.into_iter().map(|(_, memory)| memory).collect())
}

/// Number of memories of a sub-tenant.
///
/// # Errors
/// Malformed stored data.
pub fn memory_count(
    snapshot: &Snapshot,
    sub_tenant: &SubTenantId,
    now: Timestamp,
) -> Result<u64, QueryError> {
    let segments = memory_segments(&RequestContext::default(), snapshot, sub_tenant, now)?;
    Ok(segments.iter().map(|segment| sources(segment).len() as u64).sum())
}

impl Query {
    /// The memories near a query that may steer its search, nearest first, ties by id. If the
    /// sub-tenant has none, that costs one lookup per segment.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn near_memories(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        query: &PreparedQuery,
        now: Timestamp,
    ) -> Result<Vec<NearMemory>, QueryError> {
        let segments = memory_segments(context, snapshot, sub_tenant, now)?;
        if segments.is_empty() {
            return Ok(Vec::new());
        }
        let exact = Thoroughness::Exact;
        let (hits, _) =
            legs::nearest(context, &*self.backend, &segments, query, NEAR_CHUNKS, exact)?;
        let mut near: Vec<NearMemory> = Vec::new();
        let mut seen = BTreeSet::new();
        for (RowAddress { segment: at, row }, similarity) in hits {
            let segment = &segments[at].live.segment;
            if similarity < NEAR_COSINE || !seen.insert((at, segment.source_of(row))) {
                continue;
            }
            near.push(NearMemory {
                id: segment.record(segment.source_of(row))?.id,
                text: segment.text(row)?,
                similarity,
                vector: segment.unit_vector(row)?,
            });
        }
        near.sort_by(|a, b| {
            b.similarity.total_cmp(&a.similarity).then_with(|| a.id.as_str().cmp(b.id.as_str()))
        });
        near.truncate(limits::MEMORIES_USED_MAX);
        Ok(near)
    }

    /// Searches memories by meaning and by words, best first.
    ///
    /// # Errors
    /// Errors of the model or the disk.
    pub fn search_memories(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        request: &MemoryRequest,
        now: Timestamp,
    ) -> Result<Vec<FoundMemory>, QueryError> {
        let wanted = request.max_count.unwrap_or(DECIDED_MAX);
        let scope = sub_tenant.of_memories();
        let mut search = RetrieveRequest {
            query: request.query.clone(),
            extra_context: request.user_name.clone(),
            max_chunks: wanted,
            mode: Mode::Fast,
            recall: Recall::Usual,
            alpha: Alpha::Fixed(ALPHA),
            recency_bias: 0.0,
            is_personalised: false,
            graph_context: GraphContext::Off,
            per_source_max: None,
            join: Join::Never,
            min_confidence: 0.0,
            filter: memory::unexpired(now).into(),
        };
        loop {
            let chunks = self.retrieve(context, snapshot, &scope, None, &search, now)?.chunks;
            let is_all = chunks.len() < search.max_chunks;
            let mut found: Vec<FoundMemory> = Vec::new();
            for chunk in chunks {
                let is_near = chunk.parts.cosine.is_some_and(|cosine| cosine >= NEAR_COSINE);
                let has_words = chunk.parts.keyword.is_some_and(|score| score > 0.0);
                let is_known = found.iter().any(|known| known.memory.id == chunk.source.id);
                if is_known || !(request.max_count.is_some() || is_near || has_words) {
                    continue;
                }
                let memory = Memory::of(&chunk.source);
                found.extend(memory.map(|memory| FoundMemory { memory, score: chunk.score }));
            }
            // Long memories yield several chunks and may crowd others out, so more are requested.
            if is_all || found.len() >= wanted || search.max_chunks >= limits::RESULTS_MAX {
                found.truncate(wanted);
                return Ok(found);
            }
            search.max_chunks = (search.max_chunks * 4).min(limits::RESULTS_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::ingest::NewMemory;
    use crate::tests::Rig;
    use lodestone_embed::{Embedder, Lane, Model, ModelFiles};
    use lodestone_types::{Grant, KeyScope, Role, Scope, TenantId};

    /// Goal: a search of memories, whose filter names the current time, leaves nothing in the cache
    /// of filters, where it would take the place of those that searches repeat.
    #[test]
    fn a_search_of_memories_keeps_no_filter() {
        let rig = Rig::new();
        let grant = Grant::new("test", Role::Admin, KeyScope::AllTenants);
        let tenant = TenantId::parse("acme").unwrap();
        let scope = Scope { tenant, sub_tenant: SubTenantId::default_name() };
        let access = rig.engine.open_or_create(&grant, &scope).unwrap();
        let added = NewMemory { content: "Nora likes slate.".into(), ..NewMemory::default() };
        rig.engine.add_memory(&access, added, None).unwrap();
        let request = MemoryRequest { query: "slate".into(), user_name: None, max_count: Some(3) };
        assert_eq!(rig.engine.search_memories(&access, &request).unwrap().len(), 1);
        assert_eq!(rig.engine.query.kept_filters.bytes(), 0);
    }

    /// Goal: reproduce the figures given at [`NEAR_COSINE`].
    /// Method: compare each query with its own memory and with the memories of all others.
    #[test]
    fn the_threshold_parts_what_is_near_from_what_is_not() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/all-MiniLM-L6-v2");
        let files = match ModelFiles::read(&directory, &|path| std::fs::read(path)) {
            Ok(files) => files,
            Err(error) => {
                eprintln!("the_threshold_parts_what_is_near_from_what_is_not skipped: {error}");
                return;
            }
        };
        let model = Model::load(&files, 2).expect("the model loads");
        let lines = include_str!("near_memories.txt").lines();
        let pairs = lines.filter_map(|line| line.split_once(" | "));
        let (queries, memories): (Vec<String>, Vec<String>) =
            pairs.map(|(query, memory)| (query.to_owned(), memory.to_owned())).unzip();
        let queries = model.embed(Lane::Query, queries).expect("vectors");
        let memories = model.embed(Lane::Query, memories).expect("vectors");
        let (mut own, mut foreign) = (Vec::new(), Vec::new());
        for (q, query) in queries.iter().enumerate() {
            for (m, memory) in memories.iter().enumerate() {
                let cosine: f32 = query.iter().zip(memory).map(|(a, b)| a * b).sum();
                if q == m { own.push(cosine) } else { foreign.push(cosine) }
            }
        }
        let share = |cosines: &[f32], least: f32| {
            let near = cosines.iter().filter(|cosine| **cosine >= least).count();
            near as f32 / cosines.len() as f32
        };
        for least in [0.15, 0.2, 0.25, 0.3, 0.35, 0.4] {
            println!(
                "{least}: own {:.3}, others {:.4}",
                share(&own, least),
                share(&foreign, least)
            );
        }
        assert!(share(&own, NEAR_COSINE) >= 0.7 && share(&foreign, NEAR_COSINE) <= 0.02);
    }
}
