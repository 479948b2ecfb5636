//! Entities and statements of search results, and the rows and entities that they lead to.
//!
//! ```text
//! first results -> links: the sources whose titles they name, and statements about the entities
//!                  that they connect with an entity of the query -> further candidates
//! query, first results -> paths from their entities, one or two triplets long
//! chunks of the result -> the statements of each
//! ```
//! Only rows that the search may return are read. Rows hidden by another scope, a filter or a
//! deletion add no link and no triplet, and do not influence the spelling of an entity or the
//! meaning of an alias. Limits count visible rows, so that hidden ones do not crowd them out.
//!
//! - `gate`: decides whether a search uses the graph, if that is left open
//! - `links`: rows that good results lead to; `paths`: from entity to entity
//! - `statements`: triplets with their sentences, ids and relevancy
//! - `visible`: the rows of an entity that the search may see
//! - `listed`: the statements of sources, independent of any query

mod gate;
mod links;
mod listed;
mod paths;
mod statements;
#[cfg(test)]
mod tests;
mod visible;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::query::QueryError;
use crate::query::hydrate::Ranked;
use crate::query::legs::RowAddress;
use crate::query::ranking::{Candidates, Search};
use crate::query::texts::Texts;
use lodestone_graph::{EntityId, GraphIndex, Key};
use lodestone_storage::segment::Segment;
use lodestone_text::HybridQuery;
use visible::VisibleRows;

/// Number of results whose names are followed.
const FIRST_RESULTS: usize = 4;
/// Maximum visible rows of an entity that are examined per segment.
const ROWS_LOOKED_AT_MAX: usize = 1 << 14;

/// The graphs of the segments in a search, restricted to the rows that it may see.
pub(super) struct Neighbourhood<'a> {
    search: &'a Search<'a>,
    candidates: &'a Candidates,
    /// By segment; `None` if a segment names nothing.
    graphs: Vec<Option<&'a GraphIndex>>,
    /// Analysed terms of the query.
    terms: Vec<String>,
    query: &'a str,
    texts: Texts<'a>,
    names: Vec<Name>,
}

/// Words of the query that may name something.
struct Name {
    key: Key,
    /// Their byte range in the query.
    range: Range<usize>,
    /// The key of the entity that they mean, once looked up.
    meant: OnceCell<Option<String>>,
}

impl<'a> Neighbourhood<'a> {
    pub(super) fn open(
        search: &'a Search<'a>,
        candidates: &'a Candidates,
    ) -> Result<Self, QueryError> {
        let graphs = search.segments.iter().map(|segment| match segment.rows {
            0 => Ok(None),
            _ => segment.live.segment.graph(),
        });
        let graphs = graphs.collect::<Result<_, _>>()?;
        let query = search.request.query.as_str();
        let terms = HybridQuery::analyse(query).terms().to_vec();
        let name = |(key, range)| Name { key, range, meant: OnceCell::new() };
        let names = lodestone_graph::keys_in(query).into_iter().map(name).collect();
        let texts = Texts::of(search.segments);
        Ok(Self { search, candidates, graphs, terms, query, texts, names })
    }

    /// The segments with a graph.
    fn each_graph(&self) -> impl Iterator<Item = (usize, &'a GraphIndex)> + '_ {
        self.graphs.iter().enumerate().filter_map(|(segment, graph)| Some((segment, (*graph)?)))
    }

    fn is_visible(&self, segment: usize, row: u32) -> bool {
        self.search.segments[segment].mask().is_none_or(|mask| mask.contains(row))
    }

    /// The visible rows that name an entity, in ascending order.
    fn rows_naming(
        &self,
        segment: usize,
        graph: &'a GraphIndex,
        entity: EntityId,
    ) -> VisibleRows<'_> {
        VisibleRows::new(graph.rows_of(entity), self.search.segments[segment].mask())
    }

    /// Number of rows of the scope, in all segments, that name the entity with a key. The filter is
    /// ignored, since it does not change how common a name is.
    fn count_naming(&self, key: &str) -> u64 {
        let named = self.each_graph().map(|(segment, graph)| {
            let rows = graph.find(key).map_or(&[][..], |entity| graph.rows_of(entity));
            let scope = &self.search.segments[segment].scope;
            match scope.is_whole_segment {
                true => rows.len() as u64,
                false => visible::frequency(rows, &scope.rows),
            }
        });
        named.sum()
    }

    /// The key of the entity that a name in the query means: the entity with that key or, failing
    /// that, the only one that visible rows also call by this name.
    fn meant(&self, name: &Name) -> Option<String> {
        name.meant.get_or_init(|| self.look_up(name.key.as_str())).clone()
    }

    fn look_up(&self, key: &str) -> Option<String> {
        let called: Vec<_> =
            self.each_graph().map(|(segment, graph)| (segment, graph, graph.called(key))).collect();
        let is_named = called.iter().any(|(segment, graph, (entity, _))| {
            entity.is_some_and(|entity| self.rows_naming(*segment, graph, entity).next().is_some())
        });
        if is_named {
            return Some(key.to_owned());
        }
        let mut meant: BTreeSet<&str> = BTreeSet::new();
        for (segment, graph, (_, others)) in called {
            for entity in others {
                let mut rows = self.rows_naming(segment, graph, entity).take(ROWS_LOOKED_AT_MAX);
                if rows.any(|row| graph.calls(row, entity, key)) {
                    meant.insert(graph.key(entity));
                }
            }
        }
        let mut meant = meant.into_iter();
        meant.next().filter(|_| meant.next().is_none()).map(str::to_owned)
    }

    /// Similarity of rows, which must ascend, to the query: cosines mapped to 0 to 1, or all 0.5
    /// without a query vector.
    fn nearness(&self, rows: &[RowAddress]) -> Result<Vec<f32>, QueryError> {
        let cosines = self.search.cosines(self.candidates, rows)?;
        let cosines = cosines.unwrap_or_else(|| vec![0.0; rows.len()]);
        Ok(cosines.into_iter().map(|cosine| (cosine.clamp(-1.0, 1.0) + 1.0) / 2.0).collect())
    }

    fn segment(&self, segment: usize) -> &'a Segment {
        &self.search.segments[segment].live.segment
    }

    fn text(&self, address: RowAddress) -> Result<String, QueryError> {
        self.texts.text(address)
    }
}

/// The results whose names are followed.
fn first(ranked: &[Ranked]) -> &[Ranked] {
    &ranked[..ranked.len().min(FIRST_RESULTS)]
}
