//! Links: rows that good results lead to.

use std::collections::BTreeSet;

use crate::query::QueryError;
use crate::query::graph::{Neighbourhood, ROWS_LOOKED_AT_MAX, first};
use crate::query::hydrate::{Ranked, chunk_identity};
use crate::query::legs::RowAddress;
use crate::query::ranking::Links;
use lodestone_graph::Titles;
use lodestone_rank::link_weight;
use lodestone_types::RowId;

/// Maximum number of names followed per result.
const NAMES_MAX: usize = 64;
/// Maximum number of sources with the same title that are followed; a more common title is no
/// evidence.
const NAMESAKES_MAX: usize = 4;
/// Maximum rows of one source or entity that are compared with the query to find the nearest.
const ROWS_COMPARED_MAX: usize = 4096;

impl Neighbourhood<'_> {
    /// The rows that the first results in `ranked` lead to: for each source whose title they name,
    /// and each entity that they connect with one of the query, the row nearest to the query.
    pub(in crate::query) fn links(&self, ranked: &[Ranked]) -> Result<Links, QueryError> {
        let rows: u64 = self.search.segments.iter().map(|segment| segment.scope.rows.len()).sum();
        let asked: BTreeSet<String> =
            self.names.iter().filter_map(|name| self.meant(name)).collect();
        let mut links = Links::new();
        for namer in first(ranked) {
            self.search.context.check()?;
            let own = self.search.source(namer.address);
            let mut named = self.titles_named(namer)?;
            for tied in self.entities_tied(namer, own, &asked) {
                // A source about an entity says more than statements about it in other sources.
                if !named.iter().any(|other| other.key == tied.key) {
                    named.push(tied);
                }
            }
            for Named { key, rows: leads_to } in named {
                let is_other = |row: &RowAddress| self.search.source(*row) != own;
                let others = leads_to.into_iter().filter(is_other);
                let Some(nearest) = self.nearest(others.collect())? else { continue };
                let weight = link_weight(namer.score, self.count_naming(&key), rows);
                let link = links.entry(nearest).or_insert(0.0);
                *link = link.max(weight);
            }
        }
        Ok(links)
    }

    /// Titles of other sources in the text of a result. Of overlapping names the longest counts,
    /// from left to right.
    fn titles_named(&self, namer: &Ranked) -> Result<Vec<Named>, QueryError> {
        let text = self.text(namer.address)?;
        let mut named: Vec<Named> = Vec::new();
        let mut covered = 0;
        for run in lodestone_graph::keys_in(&text).chunk_by(|a, b| a.1.start == b.1.start) {
            if run[0].1.start < covered || named.len() == NAMES_MAX {
                continue;
            }
            let word = run[0].0.as_str().split(' ').next().unwrap_or_default();
            let graphs = self.each_graph();
            let titles = graphs.map(|(segment, graph)| (segment, graph.titles().beginning(word)));
            let titles: Vec<_> = titles.filter(|(_, titles)| !titles.is_empty()).collect();
            let keys = if titles.is_empty() { &[] } else { run };
            for (key, range) in keys.iter().rev() {
                let rows = self.rows_titled(&titles, key.as_str());
                if !rows.is_empty() {
                    covered = range.end;
                    named.push(Named { key: key.as_str().to_owned(), rows });
                    break;
                }
            }
        }
        Ok(named)
    }

    /// Visible rows of the sources with a title, among the given segments.
    fn rows_titled(&self, titles: &[(usize, Titles<'_>)], key: &str) -> Vec<RowAddress> {
        let mut titled = Vec::new();
        let mut sources = 0;
        for &(segment, titles) in titles {
            for source in titles.sources(key) {
                let rows = self.segment(segment).rows_of(*source).iter();
                let visible = rows.filter(|row| self.is_visible(segment, **row));
                let before = titled.len();
                titled.extend(visible.map(|row| RowAddress { segment, row: RowId(*row) }));
                sources += usize::from(titled.len() > before);
                if sources > NAMESAKES_MAX {
                    return Vec::new();
                }
            }
        }
        titled
    }

    /// Entities that a triplet of the result connects with an entity of the query, each with the
    /// rows that make statements about it.
    fn entities_tied(
        &self,
        namer: &Ranked,
        own: (usize, u32),
        asked: &BTreeSet<String>,
    ) -> Vec<Named> {
        let RowAddress { segment, row } = namer.address;
        let Some(graph) = self.graphs[segment] else { return Vec::new() };
        let mut named = Vec::new();
        for triplet in graph.triplets_of_row(row.0) {
            let triplet = graph.triplet(triplet);
            let ends = [triplet.source, triplet.target].map(|end| graph.key(end));
            let other = match ends.map(|key| asked.contains(key)) {
                [true, false] => ends[1],
                [false, true] => ends[0],
                _ => continue,
            };
            named.push(Named { key: other.to_owned(), rows: self.rows_stating(other, own) });
        }
        named
    }

    /// The first visible rows of other sources with a triplet whose source is the entity.
    fn rows_stating(&self, key: &str, own: (usize, u32)) -> Vec<RowAddress> {
        let mut stating = Vec::new();
        for (segment, graph) in self.each_graph() {
            let Some(entity) = graph.find(key) else { continue };
            let begins = |row: &u32| {
                let mut triplets = graph.triplets_of_row(*row);
                triplets.any(|id| graph.triplet(id).source == entity)
            };
            let rows = self.rows_naming(segment, graph, entity).take(ROWS_LOOKED_AT_MAX);
            let rows = rows.filter(begins).map(|row| RowAddress { segment, row: RowId(row) });
            let others = rows.filter(|row| self.search.source(*row) != own);
            stating.extend(others.take(ROWS_COMPARED_MAX - stating.len()));
        }
        stating
    }

    /// The row nearest to the query; ties go to the first chunk.
    fn nearest(&self, mut rows: Vec<RowAddress>) -> Result<Option<RowAddress>, QueryError> {
        rows.sort_unstable();
        rows.truncate(ROWS_COMPARED_MAX);
        let nearness = self.nearness(&rows)?;
        let identity = |at: &RowAddress| chunk_identity(self.segment(at.segment), at.row);
        let pairs = rows.into_iter().zip(nearness);
        let nearest = pairs.max_by(|(a, a_nearness), (b, b_nearness)| {
            a_nearness.total_cmp(b_nearness).then_with(|| identity(b).cmp(&identity(a)))
        });
        Ok(nearest.map(|(row, _)| row))
    }
}

/// A name in a result, and the rows that it leads to.
#[derive(Debug)]
struct Named {
    key: String,
    rows: Vec<RowAddress>,
}
