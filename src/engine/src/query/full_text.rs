//! Search for whole words.

use crate::query::hydrate::{Ranked, hydrate};
use crate::query::legs::{self, KeywordLeg};
use crate::query::ranking::ordered;
use crate::query::request::FullTextRequest;
use crate::query::{Query, QueryError};
use lodestone_storage::collection::Snapshot;
use lodestone_text::WordQuery;
use lodestone_types::{RequestContext, RetrievedChunk, ScoreParts, SubTenantId, TenantSchema};

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
    ) -> Result<Vec<RetrievedChunk>, QueryError> {
        let filter = request.filter.for_schema(schema).map_err(QueryError::Filter)?;
        let segments = legs::segments_in_scope(context, snapshot, sub_tenant, filter)?;
        let query = WordQuery::analyse(&request.query, request.operator);
        let hits = KeywordLeg::compute(context, &segments, &query, request.max_chunks)?.top;
        let scored = hits.into_iter().map(|(address, score)| {
            let parts = ScoreParts { keyword: Some(score), ..ScoreParts::default() };
            Ranked { address, score, parts }
        });
        let mut ranked = ordered(&segments, scored.collect(), 0.0);
        ranked.truncate(request.max_chunks);
        hydrate(context, &segments, &ranked)
    }
}
