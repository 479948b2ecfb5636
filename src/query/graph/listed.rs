//! What sources state, apart from any query.

use std::collections::BTreeSet;

use crate::collection::{FoundSource, Snapshot};
use crate::graph::GraphIndex;
use crate::query::graph::statements::{entity, triplet_id};
use crate::query::hydrate::chunk_uuid;
use crate::query::{Query, QueryError};
use crate::types::{RowId, SourceId, SubTenantId, Triplet};

impl Query {
    /// What each source states, in the order of its text, `limit` triplets in all at most; `None`
    /// for a source that is not there. The relevancy of these triplets is 0.
    ///
    /// # Errors
    /// Failures of the disk.
    pub fn relations_of(
        &self,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        sources: &[SourceId],
        limit: usize,
    ) -> Result<Vec<Option<Vec<Triplet>>>, QueryError> {
        let mut left = limit;
        let mut all = Vec::with_capacity(sources.len());
        for source in sources {
            let Some(found) = snapshot.find(sub_tenant, source) else {
                all.push(None);
                continue;
            };
            let triplets = match found.live.segment.graph()? {
                Some(graph) => stated(&found, graph, left)?,
                None => Vec::new(),
            };
            left -= triplets.len();
            all.push(Some(triplets));
        }
        Ok(all)
    }
}

fn stated(
    found: &FoundSource<'_>,
    graph: &GraphIndex,
    most: usize,
) -> Result<Vec<Triplet>, QueryError> {
    let segment = &found.live.segment;
    let (sub_tenant, _) = segment.source_key(found.source);
    // The first chunk that states something stands for those that repeat it.
    let mut triplets: Vec<Triplet> = Vec::new();
    let mut seen = BTreeSet::new();
    for row in found.rows() {
        let mut text = None;
        for id in graph.triplets_of_row(row) {
            if triplets.len() == most {
                return Ok(triplets);
            }
            let view = graph.triplet(id);
            let ends = [view.source, view.target].map(|end| graph.entity(end).key);
            let id = triplet_id([sub_tenant, ends[0], view.predicate.name(), ends[1]]);
            if !seen.insert(id.clone()) {
                continue;
            }
            let text = match &mut text {
                Some(text) => text,
                none => none.insert(segment.text(RowId(row))?),
            };
            let (start, end) = (view.context.start as usize, view.context.end as usize);
            triplets.push(Triplet {
                id,
                source: entity(graph, view.source),
                target: entity(graph, view.target),
                predicate: view.predicate.name(),
                context: text.get(start..end).unwrap_or_default().trim().to_owned(),
                chunk: chunk_uuid(segment, RowId(row)),
                relevancy: 0.0,
            });
        }
    }
    Ok(triplets)
}
