//! Rows to chunks with their text and source.

use std::collections::BTreeMap;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::query::QueryError;
use crate::query::shard::{Place, Reach};
use lodestone_storage::segment::Segment;
use lodestone_types::{RetrievedChunk, RowId, ScoreParts, SourceRecord};

/// A ranked row with its scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranked {
    pub(super) place: Place,
    pub(super) score: f32,
    pub(super) parts: ScoreParts,
}

/// What identifies a chunk, hashed: stable over merges and restarts, another one for every version
/// of its source.
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

/// A chunk's id on the wire. Its order as text is the order of the identity as a number.
pub(super) fn chunk_uuid(segment: &Segment, row: RowId) -> String {
    let identity = chunk_identity(segment, row);
    uuid::Uuid::from_u128(identity).to_string()
}

/// Reads what the ranked rows stand for. The record of a source is read once.
pub(super) fn hydrate(
    reached: &[Reach],
    ranked: &[Ranked],
) -> Result<Vec<RetrievedChunk>, QueryError> {
    let mut records: BTreeMap<(usize, u32), Arc<SourceRecord>> = BTreeMap::new();
    let mut chunks = Vec::with_capacity(ranked.len());
    for Ranked { place, score, parts } in ranked.iter().copied() {
        let segment = &reached[place.reach].live.segment;
        let position = segment.source_of(place.row);
        let source = match records.get(&(place.reach, position)) {
            Some(record) => Arc::clone(record),
            None => {
                let record = Arc::new(segment.record(position)?);
                records.insert((place.reach, position), Arc::clone(&record));
                record
            }
        };
        let index = segment.index(place.row);
        chunks.push(RetrievedChunk {
            uuid: chunk_uuid(segment, place.row),
            source,
            index,
            text: segment.text(place.row)?,
            place: segment.place(place.row),
            boxes: segment.boxes(place.row),
            score,
            parts,
        });
    }
    Ok(chunks)
}
