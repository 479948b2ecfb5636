//! The statements of sources, independent of any query.

use std::collections::BTreeSet;

use crate::query::graph::statements::{stated, triplet_id};
use crate::query::{Query, QueryError};
use lodestone_graph::GraphIndex;
use lodestone_storage::collection::{FoundSource, Snapshot};
use lodestone_types::{RowId, SourceId, SubTenantId, Triplet};

impl Query {
    /// The statements of each source in the order of its text, at most `limit` triplets in total;
    /// `None` for a source that is not visible. The relevancy of these triplets is 0.
    ///
    /// # Errors
    /// Errors of the disk.
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
                Some(graph) => of_source(&found, graph, left)?,
                None => Vec::new(),
            };
            left -= triplets.len();
            all.push(Some(triplets));
        }
        Ok(all)
    }
}

fn of_source(
    found: &FoundSource<'_>,
    graph: &GraphIndex,
    most: usize,
) -> Result<Vec<Triplet>, QueryError> {
    let segment = &found.live.segment;
    // Of chunks that repeat a statement, the first one counts.
    let mut triplets: Vec<Triplet> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut texts = segment.texts()?;
    for row in found.rows() {
        let views = graph.triplets_of_row(row).map(|id| graph.triplet(id));
        let mut new = views.filter(|view| seen.insert(triplet_id(segment, graph, view))).peekable();
        if triplets.len() == most {
            return Ok(triplets);
        }
        if new.peek().is_some() {
            let text = texts.text(RowId(row))?;
            let left = most - triplets.len();
            triplets.extend(new.take(left).map(|view| stated(segment, graph, &view, &text)));
        }
    }
    Ok(triplets)
}
