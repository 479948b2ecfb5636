//! The live rows of an older segment with new vectors, as input of a new segment.

use std::borrow::Cow;
use std::io::Write;

use crate::segment::format::VectorKind;
use crate::segment::lists::Lists;
use crate::segment::merged::MergedRows;
use crate::segment::row_feed::{RowFeed, Scratch, vector_columns};
use crate::segment::sparse::{SparseRow, model_of_all};
use crate::segment::{Segment, SegmentError, TombstoneSet};
use lodestone_compute::{VectorColumns, VectorRows};
use lodestone_graph::RowGraph;
use lodestone_text::{SparseModelId, TextBundle, write_impacts};
use lodestone_types::{ChunkPlace, LineBox, PageBox, SourceRecord};

/// The live rows of a segment, with everything but their vectors.
pub(super) struct RevectoredRows<'a> {
    rows: MergedRows<'a>,
    vectors: VectorColumns,
    /// Sparse vectors that replace the segment's; empty to keep those.
    sparse: &'a [SparseRow],
}

impl<'a> RevectoredRows<'a> {
    /// Takes one vector per live row, in row order; `sparse` is likewise, or empty.
    pub(super) fn new(
        input: (&'a Segment, &'a TombstoneSet),
        kind: VectorKind,
        dimension: usize,
        vectors: &[Vec<f32>],
        sparse: &'a [SparseRow],
    ) -> Result<Self, SegmentError> {
        let rows = MergedRows::new(vec![input])?;
        let count: u32 = rows.source_rows().iter().sum();
        let has_sparse = sparse.is_empty() || sparse.len() == vectors.len();
        if count as usize != vectors.len() || !has_sparse {
            let problem =
                format!("{} vectors, {} sparse, for {count} rows", vectors.len(), sparse.len());
            return Err(SegmentError::BadInput { problem });
        }
        let vectors = vector_columns(kind, dimension, vectors.iter())?;
        Ok(Self { rows, vectors, sparse })
    }
}

impl RowFeed for RevectoredRows<'_> {
    fn source_rows(&self) -> &[u32] {
        self.rows.source_rows()
    }

    fn record(&self, source: usize) -> Result<Cow<'_, SourceRecord>, SegmentError> {
        self.rows.record(source)
    }

    fn entry(&self, row: u32) -> (u32, ChunkPlace) {
        self.rows.entry(row)
    }

    fn boxes(&self, row: u32) -> Cow<'_, [PageBox]> {
        self.rows.boxes(row)
    }

    fn lines(&self, row: u32) -> Result<Cow<'_, [LineBox]>, SegmentError> {
        self.rows.lines(row)
    }

    fn context(&self, row: u32) -> Cow<'_, str> {
        self.rows.context(row)
    }

    fn graph(&self, row: u32) -> Result<Cow<'_, RowGraph>, SegmentError> {
        self.rows.graph(row)
    }

    fn text(&self, row: u32) -> Result<Cow<'_, str>, SegmentError> {
        self.rows.text(row)
    }

    fn has_payloads(&self) -> bool {
        self.rows.has_payloads()
    }

    fn parts(&self) -> Result<Vec<VectorRows<'_>>, SegmentError> {
        Ok(vec![self.vectors.view()])
    }

    fn origin(&self, row: u32) -> (usize, u32) {
        (0, row)
    }

    /// None: the input's lists group the rows by their old vectors.
    fn older_lists(&self) -> Result<Option<(usize, Lists<'_>)>, SegmentError> {
        Ok(None)
    }

    fn sparse_model(&self) -> Result<Option<SparseModelId>, SegmentError> {
        match self.sparse.is_empty() {
            true => self.rows.sparse_model(),
            false => Ok(model_of_all(self.sparse.iter().map(Some))),
        }
    }

    fn impacts(&self, model: &SparseModelId, out: &mut dyn Write) -> Result<Vec<u8>, SegmentError> {
        if self.sparse.is_empty() {
            return self.rows.impacts(model, out);
        }
        Ok(write_impacts(model, self.sparse.iter().map(|row| row.weights.as_slice()), out)?)
    }

    fn text_index(&self, scratch: &Scratch<'_>) -> Result<TextBundle, SegmentError> {
        self.rows.text_index(scratch)
    }
}
