//! Search over and look-up of client vectors.

use std::collections::BTreeMap;

use crate::query::legs::{self, RowAddress};
use crate::query::{Query, QueryError};
use lodestone_compute::PreparedQuery;
use lodestone_storage::collection::Snapshot;
use lodestone_storage::segment::flat::Thoroughness;
use lodestone_types::{Filter, RequestContext, RowId, SourceId, SubTenantId};

/// A stored vector near a query.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorHit {
    /// `{batch}_{index}`.
    pub chunk_id: String,
    /// Cosine, -1 to 1.
    pub score: f32,
}

impl Query {
    /// The nearest stored vectors of each query, best first, ties by chunk id.
    ///
    /// # Errors
    /// [`QueryError::DimensionMismatch`] where a query has another width than the stored vectors;
    /// [`QueryError::Stopped`].
    pub fn nearest_vectors(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        queries: &[Vec<f32>],
        max_chunks: usize,
    ) -> Result<Vec<Vec<VectorHit>>, QueryError> {
        let segments = legs::segments_in_scope(context, snapshot, sub_tenant, &Filter::All)?;
        if let Some(first) = segments.first() {
            let expected = first.live.segment.dimension();
            if let Some(other) = queries.iter().find(|query| query.len() != expected) {
                return Err(QueryError::DimensionMismatch { expected, received: other.len() });
            }
        }
        let queries: Vec<PreparedQuery> =
            queries.iter().map(|query| PreparedQuery::new(query)).collect::<Result<_, _>>()?;
        let thoroughness = Thoroughness::default();
        let backend = &*self.backend;
        let (all, _) =
            legs::nearest_of_each(context, backend, &segments, &queries, max_chunks, thoroughness)?;
        let mut results = Vec::with_capacity(queries.len());
        for found in all {
            let mut hits: Vec<(VectorHit, (String, u32))> = found
                .into_iter()
                .map(|(RowAddress { segment, row }, score)| {
                    let segment = &segments[segment].live.segment;
                    let (_, batch) = segment.source_key(segment.source_of(row));
                    let key = (batch.to_owned(), segment.index(row));
                    (VectorHit { chunk_id: format!("{batch}_{}", key.1), score }, key)
                })
                .collect();
            hits.sort_by(|(a, a_key), (b, b_key)| {
                b.score.total_cmp(&a.score).then_with(|| a_key.cmp(b_key))
            });
            hits.truncate(max_chunks);
            results.push(hits.into_iter().map(|(hit, _)| hit).collect());
        }
        Ok(results)
    }

    /// Stored vectors by batch and position, exactly as the client sent them; `None` where there
    /// is none.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn vectors_by_id(
        &self,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        chunks: &[(SourceId, u32)],
    ) -> Result<Vec<Option<Vec<f32>>>, QueryError> {
        let mut rows_of: BTreeMap<&SourceId, BTreeMap<u32, u32>> = BTreeMap::new();
        let mut vectors = Vec::with_capacity(chunks.len());
        for (batch, index) in chunks {
            let Some(found) = snapshot.find(sub_tenant, batch) else {
                vectors.push(None);
                continue;
            };
            let segment = &found.live.segment;
            let rows = rows_of.entry(batch).or_insert_with(|| {
                found.rows().into_iter().map(|row| (segment.index(RowId(row)), row)).collect()
            });
            vectors.push(match rows.get(index) {
                Some(row) => Some(segment.original_vector(RowId(*row))?),
                None => None,
            });
        }
        Ok(vectors)
    }
}
