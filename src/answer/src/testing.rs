//! Chunks for the tests of this and other crates.

use std::sync::Arc;

use lodestone_types::{
    ChunkPlace, PageRef, RetrievedChunk, ScoreParts, Sequence, SourceId, SourceKind, SourceRecord,
    SubTenantId, Timestamp,
};

/// Makes a chunk of a source; `index` sets its position in the source's text.
///
/// # Panics
/// If `source` is not a valid source id.
pub fn chunk(source: &str, index: u32, text: &str, score: f32) -> RetrievedChunk {
    let record = SourceRecord {
        title: source.to_owned(),
        ..SourceRecord::new(
            SubTenantId::default_name(),
            SourceId::parse(source).expect("an id"),
            SourceKind::Text,
            Sequence(1),
            Timestamp(0),
        )
    };
    RetrievedChunk {
        boxes: Vec::new(),
        lines: Vec::new(),
        uuid: format!("{source}-{index}"),
        source: Arc::new(record),
        joined: Vec::new(),
        index,
        text: text.to_owned(),
        above: String::new(),
        place: ChunkPlace {
            document_start: index * 1000,
            page_start: 0,
            chars: text.chars().count() as u32,
            page: PageRef::Page(index + 1),
        },
        score,
        parts: ScoreParts::default(),
    }
}
