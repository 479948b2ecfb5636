//! Search, lookup and listing of client vectors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::query::legs::{self, RowAddress, SegmentScope};
use crate::query::shares::Tops;
use crate::query::shares::wire::TopsTask;
use crate::query::{Query, QueryError};
use lodestone_compute::PreparedQuery;
use lodestone_storage::collection::Snapshot;
use lodestone_storage::segment::Segment;
use lodestone_storage::segment::flat::Thoroughness;
use lodestone_types::{
    Filter, Metadata, Metric, RequestContext, RowId, SubTenantId, derived_chunk_id,
};

/// Parts of a stored vector to return besides its id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VectorParts {
    /// The metadata.
    pub metadata: bool,
    /// The components.
    pub vector: bool,
}

/// A stored vector.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    /// The id given by its client, or else `{batch}_{index}`.
    pub chunk_id: String,
    /// Id of its batch.
    pub batch: String,
    /// Position in the batch.
    pub index: u32,
    /// Its metadata, if requested; empty if none was given.
    pub metadata: Option<Metadata>,
    /// Its components, if requested, bit for bit as sent.
    pub vector: Option<Vec<f32>>,
}

/// A search over client vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorSearch {
    /// The query vectors.
    pub queries: Vec<Vec<f32>>,
    /// Number of results per query.
    pub max_chunks: usize,
    /// Filter on the metadata of the vectors.
    pub filter: Filter,
    /// Parts to return of each result.
    pub parts: VectorParts,
}

/// A stored vector near a query.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorHit {
    /// The vector.
    pub found: StoredVector,
    /// The cosine (-1 to 1), the dot product, or the negative Euclidean distance.
    pub score: f32,
}

/// A request for one page of client vectors, ordered by batch and position.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorScroll {
    /// Filter on the metadata of the vectors.
    pub filter: Filter,
    /// Batch and position after which the page begins.
    pub after: Option<(String, u32)>,
    /// Maximum number of vectors.
    pub limit: usize,
    /// Parts to return of each vector.
    pub parts: VectorParts,
}

/// One page of client vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorPage {
    /// The vectors in order.
    pub vectors: Vec<StoredVector>,
    /// Whether more follow.
    pub has_more: bool,
}

impl Query {
    /// The stored vectors that pass the filter and are nearest to each query, best first, ties by
    /// batch and position.
    ///
    /// # Errors
    /// [`QueryError::DimensionMismatch`] if a query has another dimension than the stored vectors;
    /// [`QueryError::Stopped`].
    pub fn nearest_vectors(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        metric: Metric,
        search: &VectorSearch,
    ) -> Result<Vec<Vec<VectorHit>>, QueryError> {
        let VectorSearch { queries, max_chunks, filter, parts } = search;
        let mut segments = self.in_scope(context, snapshot, sub_tenant, filter)?;
        if let Some(first) = segments.first() {
            let expected = first.live.segment.dimension();
            if let Some(other) = queries.iter().find(|query| query.len() != expected) {
                return Err(QueryError::DimensionMismatch { expected, received: other.len() });
            }
        }
        let prepared = queries.iter().map(|query| PreparedQuery::by(metric, query));
        let queries: Vec<PreparedQuery> = prepared.collect::<Result<_, _>>()?;
        let thoroughness = Thoroughness::default();
        let shares = self.share_out(context, snapshot, (sub_tenant, filter), &mut segments);
        let here = |segments: &[SegmentScope]| {
            let (backend, limits) = (&*self.backend, (*max_chunks, legs::VECTOR_TIE_WIDTH));
            let found =
                legs::nearest_of_each(context, backend, segments, &queries, limits, thoroughness);
            Ok(Tops { near: found?.0, ..Tops::default() })
        };
        let tops = match shares {
            None => here(&segments)?,
            Some(shares) => {
                let task = TopsTask::near(&queries, *max_chunks, thoroughness);
                shares.tops(&segments, task, || here(&segments), here)?
            }
        };
        let mut results = Vec::with_capacity(queries.len());
        for mut found in tops.near {
            context.check()?;
            found.sort_by(|(a, a_score), (b, b_score)| {
                let key = |address: &RowAddress| key_of(&segments, address);
                b_score.total_cmp(a_score).then_with(|| key(a).cmp(&key(b)))
            });
            found.truncate(*max_chunks);
            let hits = found.into_iter().map(|(RowAddress { segment, row }, score)| {
                let found = stored(&segments[segment].live.segment, row, *parts)?;
                let score = match metric {
                    Metric::L2 => 0.0 - (-score).sqrt(),
                    Metric::Cosine | Metric::Dot => score,
                };
                Ok(VectorHit { found, score })
            });
            results.push(hits.collect::<Result<_, QueryError>>()?);
        }
        Ok(results)
    }

    /// Stored vectors by chunk id, exactly as the client sent them; `None` for an unknown id.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn vectors_by_id(
        &self,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        chunks: &[String],
    ) -> Result<Vec<Option<Vec<f32>>>, QueryError> {
        let vector = |chunk_id: &String| match snapshot.find_chunk(sub_tenant, chunk_id)? {
            Some(chunk) => Ok(Some(chunk.found.live.segment.original_vector(chunk.row)?)),
            None => Ok(None),
        };
        chunks.iter().map(vector).collect()
    }

    /// A page of the stored vectors that pass the filter. Merges and other writes do not change a
    /// vector's place in the order, so consecutive pages contain every vector that persists exactly
    /// once.
    ///
    /// # Errors
    /// Errors of the disk; [`QueryError::Stopped`].
    pub fn scroll_vectors(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        scroll: &VectorScroll,
    ) -> Result<VectorPage, QueryError> {
        let segments = self.in_scope(context, snapshot, sub_tenant, &scroll.filter)?;
        let (from, after) = match &scroll.after {
            Some((batch, index)) => (batch.as_str(), Some(*index)),
            None => ("", None),
        };
        let mut batches = Vec::new();
        for (at, scope) in segments.iter().enumerate() {
            context.check()?;
            let segment = &scope.live.segment;
            let sources = match scope.mask() {
                Some(mask) => scope.live.sources_of(mask),
                None => (0..segment.source_count()).collect(),
            };
            let named = sources.into_iter().map(|source| (segment.source_key(source).1, source));
            let wanted = named.filter(|(batch, _)| *batch >= from);
            batches.extend(wanted.map(|(batch, source)| Reverse((batch, at, source))));
        }
        let mut batches = BinaryHeap::from(batches);
        let mut vectors = Vec::with_capacity(scroll.limit);
        while let Some(Reverse((batch, at, source))) = batches.pop() {
            context.check()?;
            let segment = &segments[at].live.segment;
            let mask = segments[at].mask();
            for row in segment.rows_of(source).iter().map(|row| RowId(*row)) {
                let is_behind =
                    batch != from || after.is_none_or(|after| segment.index(row) > after);
                if !is_behind || mask.is_some_and(|mask| !mask.contains(row.0)) {
                    continue;
                }
                if vectors.len() == scroll.limit {
                    return Ok(VectorPage { vectors, has_more: true });
                }
                vectors.push(stored(segment, row, scroll.parts)?);
            }
        }
        Ok(VectorPage { vectors, has_more: false })
    }
}

/// Batch and position of a row.
fn key_of<'a>(segments: &'a [SegmentScope], address: &RowAddress) -> (&'a str, u32) {
    let segment = &segments[address.segment].live.segment;
    let (_, batch) = segment.source_key(segment.source_of(address.row));
    (batch, segment.index(address.row))
}

fn stored(segment: &Segment, row: RowId, parts: VectorParts) -> Result<StoredVector, QueryError> {
    let payload = segment.payload(row)?;
    let (_, batch) = segment.source_key(segment.source_of(row));
    let index = segment.index(row);
    let vector = parts.vector.then(|| segment.original_vector(row)).transpose()?;
    Ok(StoredVector {
        chunk_id: payload.id.unwrap_or_else(|| derived_chunk_id(batch, index)),
        batch: batch.to_owned(),
        index,
        metadata: parts.metadata.then(|| payload.metadata.unwrap_or_default()),
        vector,
    })
}
