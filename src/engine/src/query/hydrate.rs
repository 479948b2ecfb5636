//! Turns ranked rows into chunks with their text and source.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::query::QueryError;
use crate::query::legs::{RowAddress, SegmentScope};
use crate::query::texts::Texts;
use lodestone_storage::segment::Segment;
use lodestone_types::{LineBox, RequestContext, RetrievedChunk, RowId, ScoreParts, SourceRecord};

/// A ranked row with its scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranked {
    pub(super) address: RowAddress,
    pub(super) score: f32,
    pub(super) parts: ScoreParts,
}

/// A hash that identifies a chunk. It is stable across merges and restarts, and differs for every
/// version of the source.
pub(super) fn chunk_identity(segment: &Segment, row: RowId) -> u128 {
    let source = segment.source_of(row);
    let (sub_tenant, id) = segment.source_key(source);
    let mut identity = Vec::with_capacity(sub_tenant.len() + id.len() + 20);
    for part in [sub_tenant.as_bytes(), id.as_bytes()] {
        identity.extend((part.len() as u32).to_le_bytes());
        identity.extend(part);
    }
    identity.extend(segment.sequence(source).0.to_le_bytes());
    identity.extend(segment.index(row).to_le_bytes());
    xxh3_128(&identity)
}

/// A chunk's public id. Ids as text sort like the identities as numbers.
pub(super) fn chunk_uuid(segment: &Segment, row: RowId) -> String {
    let identity = chunk_identity(segment, row);
    uuid::Uuid::from_u128(identity).to_string()
}

/// The lines of a chunk, with offsets in characters of the document.
pub(super) fn lines_of(segment: &Segment, row: RowId) -> Result<Vec<LineBox>, QueryError> {
    let mut lines = segment.lines(row)?;
    let start = segment.place(row).document_start;
    for line in &mut lines {
        line.start = line.start.saturating_add(start);
        line.end = line.end.saturating_add(start);
    }
    Ok(lines)
}

/// Reads text, position and source of the ranked rows. Each source's record is read once.
pub(super) fn hydrate(
    context: &RequestContext,
    segments: &[SegmentScope],
    ranked: &[Ranked],
) -> Result<Vec<RetrievedChunk>, QueryError> {
    let mut records: BTreeMap<(usize, u32), (Arc<SourceRecord>, u64)> = BTreeMap::new();
    let texts = Texts::of(segments);
    let mut chunks = Vec::with_capacity(ranked.len());
    for Ranked { address, score, parts } in ranked.iter().copied() {
        context.check()?;
        let (segment, row) = (&segments[address.segment].live.segment, address.row);
        let position = segment.source_of(row);
        let (source, json_bytes) = match records.entry((address.segment, position)) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(place) => {
                let record = segment.record(position)?;
                let size = record.size();
                context.reserve(size.memory)?;
                place.insert((Arc::new(record), size.json)).clone()
            }
        };
        let text = texts.text(address)?;
        // Once as it is, and twice in the response while that is written.
        context.reserve(3 * text.len() as u64 + 2 * json_bytes)?;
        chunks.push(RetrievedChunk {
            uuid: chunk_uuid(segment, row),
            source,
            joined: Vec::new(),
            index: segment.index(row),
            text,
            above: segment.context(row).to_owned(),
            place: segment.place(row),
            boxes: segment.boxes(row),
            lines: lines_of(segment, row)?,
            score,
            parts,
        });
    }
    Ok(chunks)
}
