//! What the results of a search name and state, and where that leads (API 4.7, RETRIEVAL 1.5).
//!
//! ```text
//! first results -> links: the sources whose titles they name, and what is stated of the entities
//!                  that they tie to an entity of the query       -> candidates of a second ranking
//! query, first results -> paths: their entities, one or two triplets far
//! chunks of the result -> what each of them states
//! ```
//! Only rows that the search may return are looked at: what another scope, a filter or a deletion
//! hides is not there, neither as a link nor as a triplet, nor in how an entity is written or what
//! an alias means. Bounds apply to what is visible, so that nothing hidden crowds it out.
//!
//! - `links`: rows that good results lead to; `paths`: from entity to entity
//! - `statements`: triplets with their sentences, their ids and how relevant they are
//! - `listed`: what sources state, apart from any query

mod links;
mod listed;
mod paths;
mod statements;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::query::QueryError;
use crate::query::hydrate::Ranked;
use crate::query::ranking::{Legs, Semantic};
use crate::query::shard::{self, Place};
use lodestone_graph::{EntityId, GraphIndex};
use lodestone_text::HybridQuery;

/// Results that are looked at for what they name (RETRIEVAL 1.5).
const FIRST_RESULTS: usize = 4;
type RowsNaming<'a> = Box<dyn Iterator<Item = u32> + 'a>;

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

    /// Visible rows that name an entity, ascending.
    fn rows_naming(&self, reach: usize, graph: &'a GraphIndex, entity: EntityId) -> RowsNaming<'_> {
        let rows = graph.rows_of(entity).iter().copied();
        Box::new(rows.filter(move |row| self.is_visible(reach, *row)))
    }

    /// Rows of the scope, in all segments, that name the entity with a key. A filter does not
    /// change how common a name is.
    fn count_naming(&self, key: &str) -> u64 {
        let named = self.each_graph().map(|(reach, graph)| {
            let rows = graph.find(key).map_or(&[][..], |entity| graph.rows_of(entity));
            let scope = &self.legs.reached[reach].scope.rows;
            rows.iter().filter(|row| scope.contains(**row)).count() as u64
        });
        named.sum()
    }

    /// The key of the entity that a key means: the one with it, or the only one that visible rows
    /// also call so.
    fn meant(&self, key: &str) -> Option<String> {
        let is_named = |(reach, graph): (usize, &'a GraphIndex)| {
            let entity = graph.find(key);
            entity.is_some_and(|entity| self.rows_naming(reach, graph, entity).next().is_some())
        };
        if self.each_graph().any(is_named) {
            return Some(key.to_owned());
        }
        let mut meant: BTreeSet<&str> = BTreeSet::new();
        for (reach, graph) in self.each_graph() {
            for entity in graph.also_called(key) {
                let mut rows = self.rows_naming(reach, graph, entity);
                if rows.any(|row| graph.calls(row, entity, key)) {
                    meant.insert(graph.key(entity));
                }
            }
        }
        let mut meant = meant.into_iter();
        meant.next().filter(|_| meant.next().is_none()).map(str::to_owned)
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
