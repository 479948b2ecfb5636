//! Paths of one or two triplets from entity to entity.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::query::QueryError;
use crate::query::graph::statements::{TripletRef, triplet_id};
use crate::query::graph::{Neighbourhood, ROWS_LOOKED_AT_MAX, first};
use crate::query::hydrate::{Ranked, chunk_identity, chunk_uuid};
use crate::query::legs::RowAddress;
use lodestone_graph::{EntityId, Predicate};
use lodestone_types::{EntityPath, Relations, RowId, Triplet};

/// Maximum number of entities where paths start.
const STARTS_MAX: usize = 8;
/// Maximum triplets of an entity that are compared with the query; below, how many are followed.
const TRIPLETS_COMPARED_MAX: usize = 4096;
const FIRST_STEPS_MAX: usize = 6;
const SECOND_STEPS_MAX: usize = 3;
/// Maximum number of paths in the result.
const PATHS_MAX: usize = 10;
/// Weight of a path that starts at a name in the query, of one that starts at a result, and the
/// factor for each additional triplet.
const QUERY_START: f32 = 1.0;
const RESULT_START: f32 = 0.8;
const STEP: f32 = 0.95;

impl Neighbourhood<'_> {
    /// The relations that the graph adds to a search result. `shown` are the results to be
    /// returned, `ranked` all of them.
    pub(in crate::query) fn relations(
        &self,
        ranked: &[Ranked],
        shown: &[Ranked],
    ) -> Result<Relations, QueryError> {
        let mut of_chunks = BTreeMap::new();
        for result in shown {
            let RowAddress { segment, row } = result.address;
            let chunk = chunk_uuid(self.segment(segment), row);
            of_chunks.insert(chunk, self.stated_by(result.address)?);
        }
        Ok(Relations { of_chunks, paths: self.paths(ranked)? })
    }

    fn paths(&self, ranked: &[Ranked]) -> Result<Vec<EntityPath>, QueryError> {
        let mut paths: Vec<EntityPath> = Vec::new();
        for (start, weight) in self.starts(ranked) {
            self.search.context.check()?;
            for first in self.steps(&start, None, FIRST_STEPS_MAX)? {
                let step = |triplets: Vec<Triplet>| {
                    let length = triplets.len() as i32;
                    let sum: f32 = triplets.iter().map(|triplet| triplet.relevancy).sum();
                    let relevancy = weight * STEP.powi(length - 1) * sum / length as f32;
                    EntityPath { triplets, relevancy }
                };
                if weight == QUERY_START {
                    for second in self.steps(&first.end, Some(&start), SECOND_STEPS_MAX)? {
                        paths.push(step(vec![first.triplet.clone(), second.triplet]));
                    }
                }
                paths.push(step(vec![first.triplet]));
            }
        }
        let ids = |path: &EntityPath| -> Vec<String> {
            path.triplets.iter().map(|triplet| triplet.id.clone()).collect()
        };
        paths.sort_by(|a, b| b.relevancy.total_cmp(&a.relevancy).then_with(|| ids(a).cmp(&ids(b))));
        let mut seen = BTreeSet::new();
        paths.retain(|path| {
            let mut ids = ids(path);
            ids.sort();
            seen.insert(ids)
        });
        paths.truncate(PATHS_MAX);
        Ok(paths)
    }

    /// The keys of the entities that the query names, as far as the graph knows them, and of the
    /// titles of the first results.
    fn starts(&self, ranked: &[Ranked]) -> Vec<(String, f32)> {
        let asked = self.asked().into_iter();
        let mut starts: Vec<(String, f32)> = asked.map(|(key, _)| (key, QUERY_START)).collect();
        for result in first(ranked) {
            let RowAddress { segment, row } = result.address;
            if let Some(graph) = self.graphs[segment]
                && let Some(entity) = graph.entities_of_row(row.0).next()
            {
                starts.push((graph.key(entity).to_owned(), RESULT_START * result.score));
            }
        }
        let mut seen = BTreeSet::new();
        starts.retain(|(key, _)| seen.insert(key.clone()));
        starts.truncate(STARTS_MAX);
        starts
    }

    /// The keys of the entities that the query names, each with its byte range there. Of
    /// overlapping names the longest counts, from left to right.
    pub(super) fn asked(&self) -> Vec<(String, Range<usize>)> {
        let mut asked: Vec<(String, Range<usize>)> = Vec::new();
        let mut covered = 0;
        for run in self.names.chunk_by(|a, b| a.range.start == b.range.start) {
            if run[0].range.start < covered {
                continue;
            }
            let meant = |name| self.meant(name).map(|entity| (entity, name.range.clone()));
            if let Some(known) = run.iter().rev().find_map(meant) {
                covered = known.1.end;
                asked.push(known);
            }
        }
        asked
    }

    /// The most relevant triplets of an entity, without those that lead back to `back`.
    fn steps(&self, key: &str, back: Option<&str>, most: usize) -> Result<Vec<Step>, QueryError> {
        let mut found = Vec::new();
        for (segment, graph) in self.each_graph() {
            let Some(entity) = graph.find(key) else { continue };
            let rows = self.rows_naming(segment, graph, entity).take(ROWS_LOOKED_AT_MAX);
            let triplets = rows.flat_map(|row| graph.triplets_of_row(row));
            let steps = triplets.filter_map(|id| {
                let triplet = graph.triplet(id);
                let end = match (triplet.source == entity, triplet.target == entity) {
                    (true, _) => triplet.target,
                    (false, true) => triplet.source,
                    (false, false) => return None,
                };
                let address = RowAddress { segment, row: RowId(triplet.row) };
                let step = (TripletRef { segment, id }, end, triplet.predicate, address);
                (back != Some(graph.key(end))).then_some(step)
            });
            found.extend(steps.take(TRIPLETS_COMPARED_MAX - found.len()));
        }
        // Sorts by similarity of the row, and prefers specific predicates, so that few texts are
        // read.
        let mut rows: Vec<RowAddress> = found.iter().map(|(.., address)| *address).collect();
        rows.sort_unstable();
        rows.dedup();
        let nearness = self.nearness(&rows)?;
        let mut ordered: Vec<Ordered> = found
            .into_iter()
            .map(|(one, end, predicate, address)| {
                let at = rows.binary_search(&address).expect("rows hold every address");
                let is_plain = predicate == Predicate::RelatedTo;
                (nearness[at] - if is_plain { 0.1 } else { 0.0 }, one, end)
            })
            .collect();
        ordered.sort_by(|a, b| b.0.total_cmp(&a.0));
        if let Some(&(least, ..)) = ordered.get(most - 1) {
            ordered.truncate(ordered.partition_point(|one| one.0 >= least));
        }
        let mut ordered = self.distinct(ordered);
        ordered.truncate(most);
        let chosen: Vec<TripletRef> = ordered.iter().map(|(_, one, _)| *one).collect();
        let triplets = self.shown(&chosen)?.into_iter();
        let steps = triplets.zip(ordered).map(|(triplet, (_, one, end))| {
            let end = self.graph(one.segment).key(end).to_owned();
            Step { triplet, end }
        });
        Ok(steps.collect())
    }

    /// Orders triplets, nearest first. Equally near ones, which without a query vector are all, are
    /// ordered by statement and chunk, whatever their segments, and a statement that several of
    /// them make is kept once.
    fn distinct(&self, found: Vec<Ordered>) -> Vec<Ordered> {
        let named = found.into_iter().map(|one| {
            let TripletRef { segment, id } = one.1;
            let (segment, graph) = (self.segment(segment), self.graph(segment));
            let view = graph.triplet(id);
            let chunk = chunk_identity(segment, RowId(view.row));
            ((triplet_id(segment, graph, &view), chunk, one.1), one)
        });
        let mut named: Vec<_> = named.collect();
        named.sort_by(|(a, one), (b, other)| other.0.total_cmp(&one.0).then_with(|| a.cmp(b)));
        named.dedup_by(|((a, ..), one), ((b, ..), other)| a == b && one.0 == other.0);
        named.into_iter().map(|(_, one)| one).collect()
    }
}

/// A triplet with its nearness to the query and the entity that it leads to.
type Ordered = (f32, TripletRef, EntityId);

/// A step of a path: a triplet, followed in the direction of the path.
struct Step {
    triplet: Triplet,
    /// The key of the entity that the step leads to.
    end: String,
}
