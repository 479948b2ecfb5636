//! Search for whole words.

use crate::query::hydrate::{Ranked, chunk_identity, hydrate};
use crate::query::request::FullTextRequest;
use crate::query::shard::{self, KeywordScores, Place};
use crate::query::{Query, QueryError};
use lodestone_rank::RankKey;
use lodestone_storage::collection::Snapshot;
use lodestone_text::WordQuery;
use lodestone_types::{RetrievedChunk, ScoreParts, SubTenantId, TenantSchema};

impl Query {
    /// The chunks in which the query's words occur, best first.
    ///
    /// # Errors
    /// [`QueryError::Filter`] for a bad filter; failures of the disk.
    pub fn full_text(
        &self,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        schema: Option<&TenantSchema>,
        request: &FullTextRequest,
    ) -> Result<Vec<RetrievedChunk>, QueryError> {
        let filter = request.restriction.parse(schema)?;
        let reached = shard::reach(snapshot, sub_tenant, &filter)?;
        let query = WordQuery::analyse(&request.query, request.operator);
        let scores = KeywordScores::compute(&reached, &query)?;
        let mut keyed: Vec<_> = scores
            .top(request.max_chunks)?
            .into_iter()
            .map(|(place, score)| {
                let Place { reach, row } = place;
                let segment = &reached[reach].live.segment;
                let updated = segment.last_updated_at(segment.source_of(row));
                let chunk = chunk_identity(segment, row);
                let parts = ScoreParts { keyword: Some(score), ..ScoreParts::default() };
                let score = lodestone_rank::settle(score);
                let ranked = Ranked { place, score, parts };
                (RankKey { score, updated, chunk }, ranked)
            })
            .collect();
        lodestone_rank::sort_by_rank(&mut keyed, |(key, _)| *key);
        keyed.truncate(request.max_chunks);
        let ranked: Vec<Ranked> = keyed.into_iter().map(|(_, ranked)| ranked).collect();
        hydrate(&reached, &ranked)
    }
}
