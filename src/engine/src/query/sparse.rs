//! The sparse leg of a search over the segments of a scope: terms that a model has learned.

use std::sync::Arc;

use crate::query::legs::{
    LegHits, RowAddress, SegmentScope, TIE_WIDTH, TIES_MAX, addressed, best, rows,
};
use crate::query::{Query, QueryError, side_by_side};
use lodestone_embed::{SparseModel, SparseVector};
use lodestone_storage::segment::SegmentError;
use lodestone_text::{Floor, ImpactIndex, RowScores};
use lodestone_types::RequestContext;

/// The sparse leg: the best `k` rows and those that equal the last of them.
#[derive(Debug)]
pub(super) struct SparseLeg {
    query: SparseVector,
    pub(super) top: LegHits,
}

impl Query {
    /// The same with a sparse model, if there is one.
    pub fn with_sparse(self, sparse: Option<Arc<SparseModel>>) -> Self {
        Self { sparse, ..self }
    }
}

/// Whether all rows of the scope have vectors of the model: without those of some, the others would
/// be preferred to them.
pub(super) fn covers(segments: &[SegmentScope], model: &SparseModel) -> Result<bool, SegmentError> {
    for segment in segments.iter().filter(|segment| segment.rows > 0) {
        let impacts = segment.live.segment.impacts()?;
        if impacts.is_none_or(|impacts| *impacts.model() != model.id()) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl SparseLeg {
    /// Finds the best `k` rows of all segments for a query.
    pub(super) fn compute(
        context: &RequestContext,
        segments: &[SegmentScope],
        query: SparseVector,
        k: usize,
    ) -> Result<Self, QueryError> {
        let top = best_of(context, segments, &query, k)?;
        Ok(Self { query, top })
    }

    /// The best `k` rows, best first.
    pub(super) fn first(
        &self,
        context: &RequestContext,
        segments: &[SegmentScope],
        k: usize,
    ) -> Result<LegHits, QueryError> {
        Ok(best(best_of(context, segments, &self.query, k)?, k))
    }

    /// The scores of listed rows, 0 where no term occurs. `rows` ascend.
    pub(super) fn scores(
        &self,
        context: &RequestContext,
        segments: &[SegmentScope],
        rows: &[RowAddress],
    ) -> Result<Vec<f32>, QueryError> {
        debug_assert!(rows.is_sorted());
        let mut scores = Vec::with_capacity(rows.len());
        for group in rows.chunk_by(|a, b| a.segment == b.segment) {
            context.check()?;
            let segment = &segments[group[0].segment];
            let is_inside = |row: &u32| segment.mask().is_none_or(|mask| mask.contains(*row));
            let asked = group.iter().map(|address| address.row.0).filter(is_inside).collect();
            let score = |impacts: &ImpactIndex| impacts.score(&self.query, Some(&asked));
            let found = impacts(segment)?.map(score).transpose().map_err(SegmentError::from)?;
            let found = found.unwrap_or_default();
            scores.extend(group.iter().map(|address| found.get(address.row)));
        }
        Ok(scores)
    }
}

fn impacts(segment: &SegmentScope) -> Result<Option<&ImpactIndex>, SegmentError> {
    match segment.rows {
        0 => Ok(None),
        _ => segment.live.segment.impacts(),
    }
}

/// The best `k` rows and those that equal the last of them, without a look at most of the others.
fn best_of(
    context: &RequestContext,
    segments: &[SegmentScope],
    query: &SparseVector,
    k: usize,
) -> Result<LegHits, QueryError> {
    if query.is_empty() || k == 0 {
        return Ok(LegHits::new());
    }
    let floor = Floor::new(k, TIE_WIDTH);
    let find = |segment: &SegmentScope| -> Result<RowScores, QueryError> {
        context.check()?;
        let best = |impacts: &ImpactIndex| impacts.best(query, segment.mask(), &floor);
        let found = impacts(segment)?.map(best).transpose().map_err(SegmentError::from)?;
        Ok(found.unwrap_or_default())
    };
    let mut hits = LegHits::new();
    for (at, found) in side_by_side::each(segments, rows(segments), find).into_iter().enumerate() {
        hits.extend(addressed(at, found?.into_hits()));
    }
    let mut hits = best(hits, k.saturating_add(TIES_MAX));
    if let Some((_, wanted)) = hits.get(k - 1) {
        let least = wanted - TIE_WIDTH;
        hits.truncate(hits.partition_point(|(_, score)| *score >= least));
    }
    Ok(hits)
}
