//! Sources that have been parsed and chunked and are ready to be embedded.

use lodestone_storage::segment::{NewRow, NewSource, SparseRow};
use lodestone_text::chunk::{Surroundings, passage};
use lodestone_types::{ChunkDraft, LineBox, SourceRecord, TenantSchema, page_boxes};

/// A source that has been parsed and chunked and is ready to be embedded.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) record: SourceRecord,
    pub(super) title_text: String,
    pub(super) searchable: String,
    pub(super) chunks: Vec<ChunkDraft>,
    /// The headings and table header that apply to each chunk.
    pub(super) contexts: Vec<String>,
    /// The positions of each chunk's lines on its pages.
    pub(super) lines: Vec<Vec<LineBox>>,
    /// Vectors of chunks that need not be embedded again.
    pub(super) known: Vec<Option<Vec<f32>>>,
    pub(super) schema: Option<TenantSchema>,
}

impl Draft {
    /// Number of chunks.
    pub(super) fn chunk_count(&self) -> u32 {
        self.chunks.len() as u32
    }

    /// The title and the searchable values, which precede every chunk.
    pub(super) fn words(&self) -> (&str, &str) {
        (&self.title_text, &self.searchable)
    }

    /// The searchable values of another version of the source.
    pub(super) fn searchable_of(&self, record: &SourceRecord) -> String {
        let schema = self.schema.as_ref();
        schema.map(|schema| schema.searchable_text(&record.tenant_metadata)).unwrap_or_default()
    }

    /// The texts to embed, one per chunk. Title, searchable values and headings give a passage the
    /// context that its neighbors would.
    pub(super) fn passages(&self) -> impl Iterator<Item = String> {
        let (title, searchable) = self.words();
        self.chunks.iter().zip(&self.contexts).map(move |(chunk, context)| {
            passage(Surroundings { title, searchable, context }, &chunk.text)
        })
    }

    /// Combines the chunks with their vectors into rows, and extracts the graph of each chunk by
    /// rule.
    pub(super) fn into_source(
        self,
        vectors: Vec<Vec<f32>>,
        sparse: Vec<Option<SparseRow>>,
    ) -> NewSource {
        let chunks = self.chunks.into_iter().zip(self.contexts).zip(self.lines);
        let rows = chunks.zip(vectors.into_iter().zip(sparse)).enumerate();
        let title = self.title_text.as_str();
        let rows = rows.map(|(index, (((chunk, context), lines), (vector, sparse)))| NewRow {
            index: index as u32,
            graph: lodestone_graph::extract(title, &chunk.text),
            text: chunk.text,
            place: chunk.place,
            boxes: page_boxes(lines.iter().map(|line| line.place)),
            lines,
            context,
            vector,
            sparse,
        });
        NewSource {
            rows: rows.collect(),
            record: self.record,
            title_text: self.title_text,
            searchable: self.searchable,
        }
    }
}
