//! Search for whole words.

use crate::query::hydrate::{Ranked, hydrate};
use crate::query::legs::{self, KeywordScores};
use crate::query::ranking::ordered;
use crate::query::request::{FoundWords, FullTextRequest};
use crate::query::{Query, QueryError, facets};
use lodestone_rank::confidence;
use lodestone_storage::collection::Snapshot;
use lodestone_text::WordQuery;
use lodestone_types::{RequestContext, ScoreParts, SubTenantId, TenantSchema};

impl Query {
    /// The chunks in which the query's words occur, best first.
    ///
    /// # Errors
    /// [`QueryError::Filter`] for a bad filter; [`QueryError::Stopped`]; errors of the disk.
    pub fn full_text(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        schema: Option<&TenantSchema>,
        request: &FullTextRequest,
    ) -> Result<FoundWords, QueryError> {
        let filter = request.filter.for_schema(schema).map_err(QueryError::Filter)?;
        let segments = legs::segments_in_scope(context, snapshot, sub_tenant, filter)?;
        let FullTextRequest { operator, fuzzy, is_prefix, .. } = *request;
        let mut query = WordQuery::new(&request.query, operator, fuzzy, is_prefix);
        legs::expand(context, &segments, &mut query)?;
        let mut scores = KeywordScores::compute(context, &segments, &query)?;
        if request.min_confidence > 0.0 {
            let is_enough = |coverage| confidence(None, coverage) >= request.min_confidence;
            scores.keep(context, &segments, &query, is_enough)?;
        }
        let wanted = request.offset.saturating_add(request.max_chunks);
        let scored = scores.top(wanted)?.into_iter().map(|(address, score)| {
            let parts = ScoreParts { keyword: Some(score), ..ScoreParts::default() };
            Ranked { address, score, parts }
        });
        let mut ranked = ordered(&segments, scored.collect(), 0.0);
        ranked.truncate(wanted);
        ranked.drain(..request.offset.min(ranked.len()));
        let rows: Vec<_> = ranked.iter().map(|row| row.address).collect();
        let shares = legs::coverages(context, &segments, &query, &scores.stats, &rows)?;
        for (row, coverage) in ranked.iter_mut().zip(shares) {
            (row.parts.coverage, row.parts.confidence) = (coverage, confidence(None, coverage));
        }
        let mut facets = Vec::with_capacity(request.facets.len());
        if !request.facets.is_empty() {
            let matching = scores.rows();
            for key in &request.facets {
                facets.push(facets::count(context, &segments, &matching, key)?);
            }
        }
        let chunks = hydrate(context, &segments, &ranked)?;
        Ok(FoundWords { chunks, total: scores.count(), facets, query })
    }
}
