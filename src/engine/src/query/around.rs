//! The chunks of a source that surround those that were found.

use std::collections::BTreeMap;

use crate::query::hydrate::{chunk_uuid, lines_of};
use crate::query::{Query, QueryError};
use lodestone_answer::{BYTES_AROUND_MAX, CHUNKS_A_SOURCE_MAX};
use lodestone_storage::collection::{LiveSegment, Snapshot};
use lodestone_types::{RequestContext, RetrievedChunk, RowId, ScoreParts, SourceId, SubTenantId};

/// Maximum number of sources to add chunks of; sources that were found entirely do not count.
const SOURCES_MAX: usize = 5;

impl Query {
    /// The chunks nearest to those in `found`, from the first few of their sources; short sources
    /// are returned entirely. These chunks have no score. Sources replaced or deleted since are
    /// skipped.
    ///
    /// # Errors
    /// [`QueryError::Stopped`] if the request is over; errors of the disk.
    pub fn around(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        found: &[RetrievedChunk],
    ) -> Result<Vec<RetrievedChunk>, QueryError> {
        let mut order: Vec<&RetrievedChunk> = Vec::new();
        let mut hits: BTreeMap<&SourceId, Vec<u32>> = BTreeMap::new();
        for chunk in found {
            let of_source = hits.entry(&chunk.source.id).or_default();
            if of_source.is_empty() {
                order.push(chunk);
            }
            of_source.push(chunk.index);
        }
        let mut around = Vec::new();
        let mut bytes_left = BYTES_AROUND_MAX;
        let mut sources_left = SOURCES_MAX;
        for chunk in order {
            context.check()?;
            let Some((live, rows)) = rows_of(snapshot, sub_tenant, chunk) else { continue };
            let rows = nearest(live, &rows, &hits[&chunk.source.id]);
            if rows.is_empty() {
                continue;
            }
            let Some(left) = sources_left.checked_sub(1) else { break };
            sources_left = left;
            for row in rows {
                let segment = &live.segment;
                let text = segment.text(row)?;
                let Some(left) = bytes_left.checked_sub(text.len()) else { return Ok(around) };
                bytes_left = left;
                around.push(RetrievedChunk {
                    uuid: chunk_uuid(segment, row),
                    source: chunk.source.clone(),
                    joined: Vec::new(),
                    index: segment.index(row),
                    text,
                    above: segment.context(row).to_owned(),
                    place: segment.place(row),
                    boxes: segment.boxes(row),
                    lines: lines_of(segment, row)?,
                    score: 0.0,
                    parts: ScoreParts::default(),
                });
            }
        }
        Ok(around)
    }
}

/// The live rows of a chunk's source, in the version that was found, ascending by index.
fn rows_of<'s>(
    snapshot: &'s Snapshot,
    sub_tenant: &SubTenantId,
    chunk: &RetrievedChunk,
) -> Option<(&'s LiveSegment, Vec<RowId>)> {
    let source = &chunk.source;
    snapshot.segments.iter().find_map(|live| {
        let segment = &live.segment;
        let at = segment.find_source(sub_tenant, &source.id)?;
        if segment.sequence(at) != source.sequence {
            return None;
        }
        let scope = live.scope(sub_tenant);
        let rows = segment.rows_of(at).iter().filter(|row| scope.rows.contains(**row));
        Some((&**live, rows.map(|row| RowId(*row)).collect()))
    })
}

/// The first row, which tells what the source is, and then the rows nearest to the hits, nearest
/// first. Hits themselves are left out.
fn nearest(live: &LiveSegment, rows: &[RowId], hits: &[u32]) -> Vec<RowId> {
    let distance = |row: RowId| {
        let index = live.segment.index(row);
        hits.iter().map(|hit| hit.abs_diff(index)).min().unwrap_or(0)
    };
    let is_further = |row: &RowId| live.segment.index(*row) > 0;
    let mut others: Vec<(bool, u32, RowId)> = rows
        .iter()
        .map(|row| (is_further(row), distance(*row), *row))
        .filter(|(_, distance, _)| *distance > 0)
        .collect();
    others.sort_unstable();
    others.truncate(CHUNKS_A_SOURCE_MAX.saturating_sub(hits.len()));
    others.into_iter().map(|(.., row)| row).collect()
}
