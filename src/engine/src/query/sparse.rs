//! The sparse leg of a search over the segments of a scope: terms weighted by a learned model.

use std::sync::Arc;

use crate::query::legs::{LegHits, RowAddress, SegmentScope, best_with_threshold, scores_of};
use crate::query::{Query, QueryError};
use lodestone_embed::{SparseModel, SparseVector};
use lodestone_storage::segment::SegmentError;
use lodestone_text::{ImpactIndex, RowScores, TextError};
use lodestone_types::RequestContext;

/// The sparse leg: the best `k` rows, plus those that tie with the last of them.
#[derive(Debug)]
pub(super) struct SparseLeg {
    pub(super) query: SparseVector,
    pub(super) top: LegHits,
}

impl Query {
    /// Sets the sparse model, if any.
    pub fn with_sparse(self, sparse: Option<Arc<SparseModel>>) -> Self {
        Self { sparse, ..self }
    }
}

/// Whether all rows of the scope have vectors of the model. If some lack them, the others would be
/// preferred.
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

    /// The best `k` rows, plus those that tie with the last of them.
    pub(super) fn top_of(
        &self,
        context: &RequestContext,
        segments: &[SegmentScope],
        k: usize,
    ) -> Result<LegHits, QueryError> {
        best_of(context, segments, &self.query, k)
    }

    /// The scores of the given rows, which must ascend; 0 for rows without any term.
    pub(super) fn scores(
        &self,
        context: &RequestContext,
        segments: &[SegmentScope],
        rows: &[RowAddress],
    ) -> Result<Vec<f32>, QueryError> {
        scores(context, segments, &self.query, rows)
    }
}

/// The sparse scores of the given rows, which must ascend; 0 for rows without any term.
pub(super) fn scores(
    context: &RequestContext,
    segments: &[SegmentScope],
    query: &SparseVector,
    rows: &[RowAddress],
) -> Result<Vec<f32>, QueryError> {
    scores_of(context, segments, rows, |segment, asked| {
        scored(segment, |impacts| impacts.score(query, Some(asked)))
    })
}

/// Scores with the impacts of a segment; no scores if it has no rows in scope.
fn scored(
    segment: &SegmentScope,
    score: impl Fn(&ImpactIndex) -> Result<RowScores, TextError>,
) -> Result<RowScores, QueryError> {
    if segment.rows == 0 {
        return Ok(RowScores::default());
    }
    let found = segment.live.segment.impacts()?.map(score).transpose();
    Ok(found.map_err(SegmentError::from)?.unwrap_or_default())
}

/// The best `k` rows, plus those that tie with the last of them.
pub(super) fn best_of(
    context: &RequestContext,
    segments: &[SegmentScope],
    query: &SparseVector,
    k: usize,
) -> Result<LegHits, QueryError> {
    if query.is_empty() || k == 0 {
        return Ok(LegHits::new());
    }
    best_with_threshold(context, segments, k, |segment, floor| {
        scored(segment, |impacts| impacts.best(query, segment.mask(), floor))
    })
}
