//! Moves the query vector towards near memories or towards the first results.

use crate::query::QueryError;
use crate::query::hydrate::Ranked;
use crate::query::legs::RowAddress;
use crate::query::memories::NearMemory;
use crate::query::ranking::{Candidates, Search};
use lodestone_compute::PreparedQuery;

/// Number of results whose vectors are fed back in `accurate` mode, and the weight of their mean.
const FEEDBACK_RESULTS: usize = 3;
const FEEDBACK_WEIGHT: f32 = 0.5;
/// Weight of the memories near a query: less than that of the query itself, so that memories
/// reorder its results without replacing them.
const MEMORY_WEIGHT: f32 = 0.4;

/// The query moved towards the memories near it, each weighted by its similarity.
pub(super) fn steered(
    query: PreparedQuery,
    near: &[NearMemory],
) -> Result<PreparedQuery, QueryError> {
    let weights: f32 = near.iter().map(|memory| memory.similarity).sum();
    if near.is_empty() || weights <= 0.0 {
        return Ok(query);
    }
    let mut moved = query.unit().to_vec();
    for memory in near {
        let weight = MEMORY_WEIGHT * memory.similarity / weights;
        moved.iter_mut().zip(&memory.vector).for_each(|(sum, value)| *sum += weight * value);
    }
    Ok(PreparedQuery::new(&moved)?)
}

/// The query moved towards its first results: Rocchio feedback without relevance judgements.
pub(super) fn feed_back(
    search: &Search<'_>,
    candidates: &Candidates,
    ranked: &[Ranked],
) -> Result<Option<PreparedQuery>, QueryError> {
    let Some(query) = &candidates.vector else { return Ok(None) };
    let first = &ranked[..ranked.len().min(FEEDBACK_RESULTS)];
    if first.is_empty() {
        return Ok(None);
    }
    let weight = FEEDBACK_WEIGHT / first.len() as f32;
    let mut moved = query.unit().to_vec();
    for result in first {
        let RowAddress { segment, row } = result.address;
        let vector = search.segments[segment].live.segment.unit_vector(row)?;
        moved.iter_mut().zip(vector).for_each(|(sum, value)| *sum += weight * value);
    }
    Ok(Some(PreparedQuery::new(&moved)?))
}
