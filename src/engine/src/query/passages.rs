//! The chunks of one source in reading order.

use std::ops::Range;

use crate::query::hydrate::chunk_uuid;
use crate::query::{Query, QueryError};
use lodestone_storage::collection::Snapshot;
use lodestone_types::{ChunkPlace, PageBox, PageRef, RowId, SourceId, SourceRecord, SubTenantId};

/// Maximum bytes of text per page of a listing; the rest comes with the next.
const BYTES_MAX: usize = 1 << 20;

/// A chunk of a source, with its position in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// Id of the chunk.
    pub uuid: String,
    /// Index of the chunk in its source, from 0.
    pub index: u32,
    /// Text of the chunk.
    pub text: String,
    /// The headings above it and the header row of its table, one per line.
    pub headings: String,
    /// Position of the chunk in the text.
    pub place: ChunkPlace,
    /// Bounding boxes of the chunk, one per page.
    pub boxes: Vec<PageBox>,
}

/// One page of the chunks of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Passages {
    /// The visible version of the source.
    pub source: SourceRecord,
    /// The chunks of this page.
    pub passages: Vec<Passage>,
    /// Number of all matching chunks.
    pub total: usize,
}

impl Query {
    /// The chunks of the visible version of a source in reading order: those of one `page` (slide,
    /// sheet) or of all, restricted to `range` among the matching ones. Returns at least one chunk
    /// if any matches, and otherwise no more than fit into 1 MiB. `None` if no version is visible.
    ///
    /// # Errors
    /// Malformed stored data.
    pub fn passages(
        &self,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        source: &SourceId,
        page: Option<u32>,
        range: Range<usize>,
    ) -> Result<Option<Passages>, QueryError> {
        let Some(found) = snapshot.find(sub_tenant, source) else { return Ok(None) };
        let segment = &found.live.segment;
        let is_wanted = |row: &RowId| match (page, segment.place(*row).page) {
            (None, _) => true,
            (Some(page), PageRef::Whole) => page == 1,
            (Some(page), PageRef::Page(own) | PageRef::Slide(own) | PageRef::Sheet(own)) => {
                page == own
            }
        };
        let rows: Vec<RowId> = found.rows().into_iter().map(RowId).filter(is_wanted).collect();
        let mut texts = segment.texts()?;
        let (mut passages, mut bytes_left) = (Vec::new(), BYTES_MAX);
        for row in rows.iter().copied().take(range.end).skip(range.start) {
            let text = texts.text(row)?;
            match bytes_left.checked_sub(text.len()) {
                Some(left) => bytes_left = left,
                None if passages.is_empty() => bytes_left = 0,
                None => break,
            }
            passages.push(Passage {
                uuid: chunk_uuid(segment, row),
                index: segment.index(row),
                text,
                headings: segment.context(row).to_owned(),
                place: segment.place(row),
                boxes: segment.boxes(row),
            });
        }
        Ok(Some(Passages { source: found.record()?, passages, total: rows.len() }))
    }
}
