//! Search for whole words.

use crate::query::hydrate::{Ranked, hydrate};
use crate::query::legs::SegmentScope;
use crate::query::ranking::ordered;
use crate::query::request::{FoundWords, FullTextRequest};
use crate::query::shares::wire::TopsTask;
use crate::query::shares::{self, Tops};
use crate::query::words::{self, KeywordScores};
use crate::query::{Query, QueryError, facets};
use lodestone_rank::confidence;
use lodestone_storage::collection::Snapshot;
use lodestone_text::{SentQuery, WordQuery};
use lodestone_types::{RequestContext, ScoreParts, SubTenantId, TenantSchema};

impl Query {
    /// Finds the chunks in which the words of the query occur, best first.
    ///
    /// # Errors
    /// [`QueryError::Filter`] for an invalid filter; [`QueryError::Stopped`]; errors of the disk.
    pub fn full_text(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        schema: Option<&TenantSchema>,
        request: &FullTextRequest,
    ) -> Result<FoundWords, QueryError> {
        let filter = request.filter.for_schema(schema).map_err(QueryError::Filter)?;
        let mut segments = self.in_scope(context, snapshot, sub_tenant, filter)?;
        let FullTextRequest { operator, fuzzy, is_prefix, .. } = *request;
        let mut query = WordQuery::new(&request.query, operator, fuzzy, is_prefix);
        words::expand(context, &segments, &mut query)?;
        let shares = match request.needs_all() {
            true => None,
            false => self.share_out(context, snapshot, (sub_tenant, filter), &mut segments),
        };
        let stats = shares::corpus_stats(shares.as_ref(), context, &segments, &query)?;
        let wanted = request.offset.saturating_add(request.max_chunks);
        let (top, all) = match request.needs_all() {
            true => {
                let mut all = KeywordScores::compute(context, &segments, &query, stats.clone())?;
                if request.min_confidence > 0.0 {
                    let is_enough = |share| confidence(None, share) >= request.min_confidence;
                    all.keep(context, &segments, &query, is_enough)?;
                }
                (all.top(&segments, wanted), Some(all))
            }
            false => {
                let here = |segments: &[SegmentScope]| {
                    let words = words::best_by_words(context, segments, &query, &stats, wanted)?;
                    Ok(Tops { words, ..Tops::default() })
                };
                let tops = match &shares {
                    None => here(&segments)?,
                    Some(shares) => {
                        let words = Some((SentQuery::of(&query), stats.clone()));
                        let task = TopsTask { k: wanted, words, ..TopsTask::default() };
                        shares.tops(&segments, task, || here(&segments), here)?
                    }
                };
                (tops.words, None)
            }
        };
        let scored = top.into_iter().map(|(address, score)| {
            let parts = ScoreParts { keyword: Some(score), ..ScoreParts::default() };
            Ranked { address, score, parts }
        });
        let mut ranked = ordered(&segments, scored.collect(), 0.0);
        ranked.truncate(wanted);
        ranked.drain(..request.offset.min(ranked.len()));
        let rows: Vec<_> = ranked.iter().map(|row| row.address).collect();
        let shares = words::coverages(context, &segments, &query, &stats, &rows)?;
        for (row, coverage) in ranked.iter_mut().zip(shares) {
            (row.parts.coverage, row.parts.confidence) = (coverage, confidence(None, coverage));
        }
        let mut facets = Vec::with_capacity(request.facets.len());
        if let Some(all) = all.as_ref().filter(|_| !request.facets.is_empty()) {
            let matching = all.rows();
            for key in &request.facets {
                facets.push(facets::count(context, &segments, &matching, key)?);
            }
        }
        let chunks = hydrate(context, &segments, &ranked)?;
        Ok(FoundWords { chunks, total: all.map(|all| all.count()), facets, query })
    }
}
