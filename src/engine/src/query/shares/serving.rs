//! Serves shares: searches some of the segments on behalf of another node.

use std::collections::BTreeSet;

use crate::query::legs::{self, RowAddress, SegmentScope, TIE_WIDTH, VECTOR_TIE_WIDTH};
use crate::query::shares::wire::{ShareAnswer, ShareStep, ShareTask, ShareTops, TopsTask};
use crate::query::{Query, QueryError, sparse, words};
use lodestone_compute::PreparedQuery;
use lodestone_storage::collection::Snapshot;
use lodestone_types::{RequestContext, SegmentId, SubTenantId};

impl Query {
    /// Runs one step of a search over the segments of the task. `snapshot` must have the version
    /// that the task names. `None` if a segment is missing or has no row of the scope.
    ///
    /// # Errors
    /// [`QueryError::Stopped`]; errors of the disk; a vector of another dimension.
    pub(crate) fn work_on(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        task: &ShareTask,
    ) -> Result<Option<ShareAnswer>, QueryError> {
        let find = |id: &uuid::Uuid| {
            snapshot.segments.iter().find(|live| live.segment.id() == SegmentId(*id))
        };
        let Some(chosen) = task.segments.iter().map(find).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let (filter, kept) = (&task.filter, self.kept_for(sub_tenant));
        let segments =
            legs::segments_in_scope(context, chosen.into_iter(), sub_tenant, filter, kept)?;
        if segments.len() != task.segments.len() {
            return Ok(None);
        }
        Ok(Some(match &task.step {
            ShareStep::Counts(query) => {
                ShareAnswer::Counts(words::corpus_stats(context, &segments, query)?)
            }
            ShareStep::Tops(task) => ShareAnswer::Tops(self.tops_of(context, &segments, task)?),
        }))
    }

    fn tops_of(
        &self,
        context: &RequestContext,
        segments: &[SegmentScope],
        task: &TopsTask,
    ) -> Result<ShareTops, QueryError> {
        let k = task.k;
        let prepared = task.vectors.iter().map(|vector| PreparedQuery::by(task.metric, vector));
        let queries: Vec<PreparedQuery> = prepared.collect::<Result<_, _>>()?;
        let limits = match task.has_scores {
            true => (k, TIE_WIDTH),
            false => (k, VECTOR_TIE_WIDTH),
        };
        let (near, effort) = match queries.is_empty() {
            true => Default::default(),
            false => legs::nearest_of_each(
                context, &*self.backend, segments, &queries, limits, task.thoroughness,
            )?,
        };
        let by_words = match &task.words {
            Some((query, stats)) => words::best_by_words(context, segments, query, stats, k)?,
            None => Vec::new(),
        };
        let by_sparse = match &task.sparse {
            Some(query) => sparse::best_of(context, segments, query, k)?,
            None => Vec::new(),
        };
        let rows: BTreeSet<RowAddress> = match task.has_scores {
            true => {
                let found = near.iter().chain([&by_words, &by_sparse]).flatten();
                found.map(|(row, _)| *row).collect()
            }
            false => BTreeSet::new(),
        };
        let rows: Vec<RowAddress> = rows.into_iter().collect();
        let cosines = queries
            .first()
            .map(|query| legs::cosines(context, &*self.backend, segments, query, &rows));
        let cosines = cosines.transpose()?;
        let word_scores = task
            .words
            .as_ref()
            .map(|(query, stats)| words::scores(context, segments, query, stats, &rows));
        let word_scores = word_scores.transpose()?;
        let sparse_scores =
            task.sparse.as_ref().map(|query| sparse::scores(context, segments, query, &rows));
        let sparse_scores = sparse_scores.transpose()?;
        let scores = rows.iter().enumerate().map(|(at, row)| {
            let all = [&cosines, &word_scores, &sparse_scores];
            (shared(row), all.map(|scores| scores.as_ref().map(|scores| scores[at])))
        });
        let hits = |hits: &legs::LegHits| {
            hits.iter().map(|(row, score)| (shared(row), *score)).collect::<Vec<_>>()
        };
        Ok(ShareTops {
            scores: scores.collect(),
            near: near.iter().map(hits).collect(),
            words: hits(&by_words),
            sparse: hits(&by_sparse),
            paths: effort.paths,
            patience: effort.patience,
        })
    }
}

fn shared(row: &RowAddress) -> (usize, u32) {
    (row.segment, row.row.0)
}
