//! Triplets with their sentences, ids and relevancy.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_128;

use crate::query::QueryError;
use crate::query::graph::Neighbourhood;
use crate::query::hydrate::chunk_uuid;
use crate::query::legs::RowAddress;
use lodestone_graph::{EntityId, GraphIndex, TripletId, TripletView};
use lodestone_storage::segment::Segment;
use lodestone_text::HybridQuery;
use lodestone_types::{Entity, RowId, Triplet};

/// Share of the query's words in the relevancy of a statement; the rest is the similarity of its
/// chunk to the query.
const WORDS_SHARE: f32 = 0.5;
/// Maximum number of triplets shown per chunk.
const TRIPLETS_OF_CHUNK_MAX: usize = 20;

/// A triplet in one of the segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TripletRef {
    pub(super) segment: usize,
    pub(super) id: TripletId,
}

impl Neighbourhood<'_> {
    /// The statements of a row, most relevant first.
    pub(super) fn stated_by(&self, address: RowAddress) -> Result<Vec<Triplet>, QueryError> {
        let RowAddress { segment, row } = address;
        let Some(graph) = self.graphs[segment] else { return Ok(Vec::new()) };
        let ids = graph.triplets_of_row(row.0);
        let found: Vec<TripletRef> = ids.map(|id| TripletRef { segment, id }).collect();
        let mut triplets = self.shown(&found)?;
        triplets.sort_by(|a, b| b.relevancy.total_cmp(&a.relevancy).then_with(|| a.id.cmp(&b.id)));
        // A statement that a chunk repeats counts once.
        let mut seen = BTreeSet::new();
        triplets.retain(|triplet| seen.insert(triplet.id.clone()));
        triplets.truncate(TRIPLETS_OF_CHUNK_MAX);
        Ok(triplets)
    }

    /// Renders triplets in the given order. Each row's text is read once.
    pub(super) fn shown(&self, found: &[TripletRef]) -> Result<Vec<Triplet>, QueryError> {
        let view = |one: &TripletRef| (one.segment, self.graph(one.segment).triplet(one.id));
        let views: Vec<(usize, TripletView)> = found.iter().map(view).collect();
        let address = |(segment, view): &(usize, TripletView)| RowAddress {
            segment: *segment,
            row: RowId(view.row),
        };
        let mut addresses: Vec<RowAddress> = views.iter().map(address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut rows = BTreeMap::new();
        for (address, nearness) in addresses.iter().zip(self.nearness(&addresses)?) {
            rows.insert(*address, (nearness, self.text(*address)?));
        }
        let shown = views.iter().map(|pair| {
            let (nearness, text) = &rows[&address(pair)];
            self.triplet(pair.0, &pair.1, *nearness, text)
        });
        Ok(shown.collect())
    }

    fn triplet(&self, segment: usize, view: &TripletView, nearness: f32, text: &str) -> Triplet {
        let stated = stated(self.segment(segment), self.graph(segment), view, text);
        let Triplet { source, target, predicate, context, .. } = &stated;
        let verb = predicate.replace('_', " ").to_lowercase();
        let words =
            self.share_of_query(&format!("{} {verb} {} {context}", source.name, target.name));
        Triplet { relevancy: WORDS_SHARE * words + (1.0 - WORDS_SHARE) * nearness, ..stated }
    }

    /// The share of the query's terms that occur in a text, 0 to 1.
    fn share_of_query(&self, text: &str) -> f32 {
        let said = HybridQuery::analyse(text);
        let held = self.terms.iter().filter(|term| said.terms().contains(term)).count();
        held as f32 / self.terms.len().max(1) as f32
    }

    pub(super) fn graph(&self, segment: usize) -> &GraphIndex {
        self.graphs[segment].expect("triplets are found in graphs")
    }
}

/// Renders a triplet as written in its row, with relevancy 0.
pub(super) fn stated(
    segment: &Segment,
    graph: &GraphIndex,
    view: &TripletView,
    text: &str,
) -> Triplet {
    let (start, end) = (view.context.start as usize, view.context.end as usize);
    Triplet {
        id: triplet_id(segment, graph, view),
        source: entity(graph, view.row, view.source),
        target: entity(graph, view.row, view.target),
        predicate: view.predicate.name(),
        context: text.get(start..end).unwrap_or_default().trim().to_owned(),
        chunk: chunk_uuid(segment, RowId(view.row)),
        relevancy: 0.0,
    }
}

/// The id of a statement: `g_` and a hash of sub-tenant, source entity, predicate and target
/// entity. It is stable across chunks, segments and versions.
pub(super) fn triplet_id(segment: &Segment, graph: &GraphIndex, view: &TripletView) -> String {
    let (sub_tenant, _) = segment.source_key(segment.source_of(RowId(view.row)));
    let ends = [view.source, view.target].map(|end| graph.key(end));
    let mut identity = Vec::new();
    for part in [sub_tenant, ends[0], view.predicate.name(), ends[1]] {
        identity.extend((part.len() as u32).to_le_bytes());
        identity.extend(part.as_bytes());
    }
    format!("g_{:032x}", xxh3_128(&identity))
}

/// An entity as written in a row; other rows may write it differently.
fn entity(graph: &GraphIndex, row: u32, id: EntityId) -> Entity {
    let (name, kind) = graph.named_in(row, id).expect("a triplet's row names its ends");
    Entity { name: name.to_owned(), kind: kind.name() }
}
