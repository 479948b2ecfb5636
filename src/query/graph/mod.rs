//! What the results of a search name and state, and where that leads (API 4.7, RETRIEVAL 1.5).
//!
//! ```text
//! first results -> links: the sources whose titles they name, and what is stated of the entities
//!                  that they tie to an entity of the query       -> candidates of a second ranking
//! query, first results -> paths: their entities, one or two triplets far
//! chunks of the result -> what each of them states
//! ```
//! Only rows that the search may return are looked at: what another scope, a filter or a deletion
//! hides is not there, neither as a link nor as a triplet nor in a count.
//!
//! - `links`: rows that good results lead to; `paths`: from entity to entity
//! - `statements`: triplets with their sentences, their ids and how relevant they are
//! - `listed`: what sources state, apart from any query

mod links;
mod listed;
mod paths;
mod statements;

use crate::graph::{EntityId, GraphIndex};
use crate::query::QueryError;
use crate::query::hydrate::Ranked;
use crate::query::ranking::{Legs, Semantic};
use crate::query::shard::{self, Place};
use crate::text::HybridQuery;
use crate::types::RowId;

/// Results that are looked at for what they name (RETRIEVAL 1.5).
const FIRST_RESULTS: usize = 4;
/// Rows of one entity that are counted or compared; what is named more often says no more.
const ENTITY_ROWS_MAX: usize = 4096;

/// The graphs of the segments that a search reaches, as far as it may see them.
pub(super) struct Neighbourhood<'a> {
    legs: &'a Legs<'a>,
    semantic: &'a Semantic,
    /// By reach; `None` where a segment names nothing.
    graphs: Vec<Option<&'a GraphIndex>>,
    /// Analysed terms of the query.
    terms: Vec<String>,
    query: &'a str,
}

impl<'a> Neighbourhood<'a> {
    pub(super) fn open(
        legs: &'a Legs<'a>,
        semantic: &'a Semantic,
        query: &'a str,
    ) -> Result<Self, QueryError> {
        let graphs = legs.reached.iter().map(|reach| match reach.rows {
            0 => Ok(None),
            _ => reach.live.segment.graph(),
        });
        let graphs = graphs.collect::<Result<_, _>>()?;
        let terms = HybridQuery::analyse(query).terms().to_vec();
        Ok(Self { legs, semantic, graphs, terms, query })
    }

    /// Segments with something to look at.
    fn each_graph(&self) -> impl Iterator<Item = (usize, &'a GraphIndex)> + '_ {
        self.graphs.iter().enumerate().filter_map(|(reach, graph)| Some((reach, (*graph)?)))
    }

    fn is_visible(&self, reach: usize, row: u32) -> bool {
        self.legs.reached[reach].mask.as_ref().is_none_or(|mask| mask.contains(row))
    }

    /// Visible rows that name an entity.
    fn rows_naming(&self, reach: usize, graph: &GraphIndex, entity: EntityId) -> Vec<Place> {
        let rows = graph.rows_of(entity).iter().take(ENTITY_ROWS_MAX);
        let visible = rows.filter(|row| self.is_visible(reach, **row));
        visible.map(|row| Place { reach, row: RowId(*row) }).collect()
    }

    /// Visible rows of all segments that name the entity with a key.
    fn count_naming(&self, key: &str) -> u64 {
        let named = self.each_graph().map(|(reach, graph)| match graph.find(key) {
            Some(entity) => self.rows_naming(reach, graph, entity).len() as u64,
            None => 0,
        });
        named.sum()
    }

    /// How near rows are to the query, by place ascending: cosines on 0 to 1, or equal where the
    /// semantic leg is silent.
    fn nearness(&self, places: &[Place]) -> Result<Vec<f32>, QueryError> {
        match &self.semantic.vector {
            Some(vector) => {
                let cosines = shard::cosines(self.legs.backend, self.legs.reached, vector, places)?;
                Ok(cosines
                    .into_iter()
                    .map(|cosine| (cosine.clamp(-1.0, 1.0) + 1.0) / 2.0)
                    .collect())
            }
            None => Ok(vec![0.5; places.len()]),
        }
    }

    fn text(&self, place: Place) -> Result<String, QueryError> {
        Ok(self.legs.reached[place.reach].live.segment.text(place.row)?)
    }
}

/// The results that are looked at for what they name.
fn first(ranked: &[Ranked]) -> &[Ranked] {
    &ranked[..ranked.len().min(FIRST_RESULTS)]
}
