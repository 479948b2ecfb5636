//! Input of a new segment: fresh chunks, or the live rows of older segments.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};

use crate::filter::ColumnsBuilder;
use crate::segment::SegmentError;
use crate::segment::format::VectorKind;
use crate::segment::lists::Lists;
use crate::segment::row_table::RowEntry;
use crate::segment::sparse::{self, SparseRow};
use lodestone_compute::{FullKind, VectorColumns, VectorRows};
use lodestone_graph::{GraphWriter, RowGraph};
use lodestone_text::{RowText, SparseModelId, TextBundle, TextIndexBuilder, write_impacts};
use lodestone_types::{ChunkPlace, LineBox, PageBox, RowPayload, SourceKind, SourceRecord, limits};

/// One chunk of a fresh source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewRow {
    /// Index of the chunk in the source.
    pub index: u32,
    /// The chunk's text; for client vectors the encoded [`RowPayload`].
    pub text: String,
    /// Position of the text in the source.
    pub place: ChunkPlace,
    /// Rectangles of the text, one per page; empty for documents without fixed pages.
    pub boxes: Vec<PageBox>,
    /// Lines of the text, as ranges of its characters; empty for documents without fixed pages.
    pub lines: Vec<LineBox>,
    /// Headings and table header row above the text, one per line; empty if there are none.
    pub context: String,
    /// Entities and triplets of the text.
    pub graph: RowGraph,
    /// The vector, as required by the segment's [`VectorKind`]: normalised for f16, raw for f32.
    pub vector: Vec<f32>,
    /// The vector of a sparse model, if there is one.
    pub sparse: Option<SparseRow>,
}

/// A source and its chunks, ready to become rows.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSource {
    /// The source's record.
    pub record: SourceRecord,
    /// The title as indexed for search; empty if it is only the id.
    pub title_text: String,
    /// Values of searchable schema fields, indexed for keyword search.
    pub searchable: String,
    /// Chunks, ascending by index.
    pub rows: Vec<NewRow>,
}

/// Rows in the order in which they will be numbered, grouped by source.
pub(super) trait RowFeed {
    /// The number of rows of each source, in order.
    fn source_rows(&self) -> &[u32];
    /// The record of a source. A merge decodes it for each call, because decoded metadata take many
    /// times their stored size.
    fn record(&self, source: usize) -> Result<Cow<'_, SourceRecord>, SegmentError>;
    /// Index and place of a row.
    fn entry(&self, row: u32) -> (u32, ChunkPlace);
    /// Rectangles of a row.
    fn boxes(&self, row: u32) -> Cow<'_, [PageBox]>;
    /// Lines of a row.
    fn lines(&self, row: u32) -> Result<Cow<'_, [LineBox]>, SegmentError>;
    /// Headings and table header row above a row's chunk.
    fn context(&self, row: u32) -> Cow<'_, str>;
    /// Entities and triplets of a row.
    fn graph(&self, row: u32) -> Result<Cow<'_, RowGraph>, SegmentError>;
    /// Text of a row.
    fn text(&self, row: u32) -> Result<Cow<'_, str>, SegmentError>;
    /// Whether rows may have a [`RowPayload`].
    fn has_payloads(&self) -> bool;
    /// The sets of vectors that rows are copied from, bit for bit.
    fn parts(&self) -> Result<Vec<VectorRows<'_>>, SegmentError>;
    /// The part that holds a row's vector, and the row's number in that part.
    fn origin(&self, row: u32) -> (usize, u32);
    /// The index of a part that holds at least half of the rows, and its lists, if it has any.
    fn older_lists(&self) -> Result<Option<(usize, Lists<'_>)>, SegmentError>;
    /// The one sparse model that every row has a vector of, if there is such a model.
    fn sparse_model(&self) -> Result<Option<SparseModelId>, SegmentError>;
    /// Writes the postings of those vectors to `out`; returns the bytes that precede them in the
    /// section.
    fn impacts(&self, model: &SparseModelId, out: &mut dyn Write) -> Result<Vec<u8>, SegmentError>;
    /// Builds the full-text bundle over all rows; a merge builds it in files from `scratch`.
    fn text_index(&self, scratch: &Scratch<'_>) -> Result<TextBundle, SegmentError>;
}

/// Creates an unnamed temporary file.
pub(super) type Scratch<'a> = dyn Fn() -> io::Result<File> + 'a;

/// Builds the row table's entries for a feed.
pub(super) fn entries(feed: &dyn RowFeed) -> Vec<RowEntry> {
    let mut entries = Vec::new();
    for (source, rows) in feed.source_rows().iter().enumerate() {
        for _ in 0..*rows {
            let (index, place) = feed.entry(entries.len() as u32);
            entries.push(RowEntry { source: source as u32, place, index });
        }
    }
    entries
}

/// Builds the graph section of a feed; `None` if its rows and titles name no entity.
pub(super) fn graph(feed: &dyn RowFeed, rows: u32) -> Result<Option<Vec<u8>>, SegmentError> {
    let mut writer = GraphWriter::new();
    let sources = feed.source_rows();
    for (source, _) in sources.iter().enumerate().filter(|(_, rows)| **rows > 0) {
        let record = feed.record(source)?;
        if record.kind != SourceKind::Embeddings {
            writer.add_title(source as u32, own_title(&record));
        }
    }
    for row in 0..rows {
        let graph = feed.graph(row)?;
        if !graph.entities.is_empty() {
            writer.add(row, &graph);
        }
    }
    Ok((!writer.is_empty()).then(|| writer.finish(rows, sources.len() as u32)))
}

/// The title of a source; empty if it is only the id.
pub(super) fn own_title(record: &SourceRecord) -> &str {
    match record.title == record.id.as_str() {
        true => "",
        false => &record.title,
    }
}

/// Builds the filter columns of a feed.
pub(super) fn columns(feed: &dyn RowFeed) -> Result<Vec<u8>, SegmentError> {
    let mut builder = ColumnsBuilder::new();
    let mut next = 0;
    for (source, rows) in feed.source_rows().iter().enumerate() {
        let record = feed.record(source)?;
        let rows = next..next + rows;
        builder.add_source(&record, rows.clone());
        next = rows.end;
        if record.kind != SourceKind::Embeddings {
            continue;
        }
        for row in rows {
            let payload = RowPayload::parse(&feed.text(row)?).map_err(|error| {
                let problem = format!("the payload of a vector cannot be read: {error}");
                SegmentError::BadInput { problem }
            })?;
            builder.add_payload(row, &payload);
        }
    }
    Ok(builder.finish())
}

/// The rows of fresh sources.
pub(super) struct FreshRows<'a> {
    sources: &'a [NewSource],
    source_rows: Vec<u32>,
    rows: Vec<(&'a NewSource, &'a NewRow)>,
    vectors: VectorColumns,
}

impl<'a> FreshRows<'a> {
    pub(super) fn new(
        kind: VectorKind,
        dimension: usize,
        input: &'a [NewSource],
    ) -> Result<Self, SegmentError> {
        let bad = |problem: String| SegmentError::BadInput { problem };
        let mut rows = Vec::new();
        let mut names = BTreeSet::new();
        for source in input {
            if !names.insert((&source.record.sub_tenant, &source.record.id)) {
                return Err(bad(format!("source {:?} comes twice", source.record.id)));
            }
            if !source.rows.is_sorted_by(|a, b| a.index < b.index) {
                return Err(bad(format!("chunks of {:?} are not in order", source.record.id)));
            }
            rows.extend(source.rows.iter().map(|row| (source, row)));
        }
        let vectors = vector_columns(kind, dimension, rows.iter().map(|(_, row)| &row.vector))?;
        let source_rows = input.iter().map(|source| source.rows.len() as u32).collect();
        Ok(Self { sources: input, source_rows, rows, vectors })
    }
}

impl RowFeed for FreshRows<'_> {
    fn source_rows(&self) -> &[u32] {
        &self.source_rows
    }

    fn record(&self, source: usize) -> Result<Cow<'_, SourceRecord>, SegmentError> {
        Ok(Cow::Borrowed(&self.sources[source].record))
    }

    fn entry(&self, row: u32) -> (u32, ChunkPlace) {
        let row = self.rows[row as usize].1;
        (row.index, row.place)
    }

    fn boxes(&self, row: u32) -> Cow<'_, [PageBox]> {
        Cow::Borrowed(&self.rows[row as usize].1.boxes)
    }

    fn lines(&self, row: u32) -> Result<Cow<'_, [LineBox]>, SegmentError> {
        Ok(Cow::Borrowed(&self.rows[row as usize].1.lines))
    }

    fn context(&self, row: u32) -> Cow<'_, str> {
        Cow::Borrowed(&self.rows[row as usize].1.context)
    }

    fn graph(&self, row: u32) -> Result<Cow<'_, RowGraph>, SegmentError> {
        Ok(Cow::Borrowed(&self.rows[row as usize].1.graph))
    }

    fn text(&self, row: u32) -> Result<Cow<'_, str>, SegmentError> {
        Ok(Cow::Borrowed(&self.rows[row as usize].1.text))
    }

    fn has_payloads(&self) -> bool {
        let of_client = |source: &NewSource| source.record.kind == SourceKind::Embeddings;
        self.rows.iter().any(|(source, row)| of_client(source) && !row.text.is_empty())
    }

    fn parts(&self) -> Result<Vec<VectorRows<'_>>, SegmentError> {
        Ok(vec![self.vectors.view()])
    }

    fn origin(&self, row: u32) -> (usize, u32) {
        (0, row)
    }

    fn older_lists(&self) -> Result<Option<(usize, Lists<'_>)>, SegmentError> {
        Ok(None)
    }

    fn sparse_model(&self) -> Result<Option<SparseModelId>, SegmentError> {
        Ok(sparse::model_of_all(self.rows.iter().map(|(_, row)| row.sparse.as_ref())))
    }

    fn impacts(&self, model: &SparseModelId, out: &mut dyn Write) -> Result<Vec<u8>, SegmentError> {
        Ok(write_impacts(
            model,
            self.rows.iter().map(|(_, row)| sparse::weights(row.sparse.as_ref())),
            out,
        )?)
    }

    /// In a short source, whose chunks make up one result, every chunk carries the boosted title.
    /// In a long source only the first chunk does, and in the others the title's words count like
    /// those of a heading; boosted in all of them, the title would fill the results with chunks of
    /// one document.
    fn text_index(&self, _scratch: &Scratch<'_>) -> Result<TextBundle, SegmentError> {
        let mut builder = TextIndexBuilder::new();
        for (source, row) in &self.rows {
            let NewSource { title_text, searchable, rows, record } = source;
            let body = match record.kind {
                SourceKind::Embeddings => "",
                _ => &row.text,
            };
            let is_short = rows.len() <= limits::SHORT_SOURCE_CHUNKS;
            let (title, context) = match is_short || row.index == rows[0].index {
                true => (title_text.as_str(), Cow::Borrowed(row.context.as_str())),
                false => ("", Cow::Owned(format!("{title_text}\n{}", row.context))),
            };
            builder.add_row(&RowText { body, title, context: &context, searchable })?;
        }
        Ok(builder.finish()?)
    }
}

/// Builds the vector columns of a segment.
pub(super) fn vector_columns<'a>(
    kind: VectorKind,
    dimension: usize,
    vectors: impl ExactSizeIterator<Item = &'a Vec<f32>>,
) -> Result<VectorColumns, SegmentError> {
    let kind = match kind {
        VectorKind::F16 => FullKind::F16,
        VectorKind::F32 => FullKind::F32,
    };
    let mut columns = VectorColumns::new(dimension, kind)?;
    columns.reserve(vectors.len());
    for vector in vectors {
        columns.push(vector)?;
    }
    Ok(columns)
}
