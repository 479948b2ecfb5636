//! Live rows of older segments as the input of a new segment.

use std::borrow::Cow;
use std::io::Write;

use crate::segment::lists::Lists;
use crate::segment::row_feed::{RowFeed, Scratch, own_title};
use crate::segment::{Segment, SegmentError, TombstoneSet};
use lodestone_compute::VectorRows;
use lodestone_graph::RowGraph;
use lodestone_text::{ImpactIndex, ImpactMerge, SparseModelId, TextBundle, TextIndex};
use lodestone_types::{ChunkPlace, LineBox, PageBox, RowId, SourceRecord};

/// Live rows of older segments, one segment after the other.
pub(super) struct MergedRows<'a> {
    inputs: Vec<(&'a Segment, &'a TombstoneSet)>,
    /// The input of each source, and its number there.
    sources: Vec<(u32, u32)>,
    source_rows: Vec<u32>,
    rows: Vec<(u32, RowId)>,
    /// The record that replaces that of the only source.
    renewed: Option<SourceRecord>,
}

impl<'a> MergedRows<'a> {
    pub(super) fn new(inputs: Vec<(&'a Segment, &'a TombstoneSet)>) -> Result<Self, SegmentError> {
        let (mut sources, mut source_rows) = (Vec::new(), Vec::new());
        let mut rows = Vec::new();
        for (input, (segment, dead)) in inputs.iter().enumerate() {
            for source in 0..segment.source_count() {
                if dead.sources.contains(source) {
                    continue;
                }
                let before = rows.len();
                let live = segment.rows_of(source).iter().filter(|row| !dead.rows.contains(**row));
                rows.extend(live.map(|row| (input as u32, RowId(*row))));
                sources.push((input as u32, source));
                source_rows.push((rows.len() - before) as u32);
            }
        }
        let alive = |(segment, dead): &(&Segment, &TombstoneSet)| {
            u64::from(segment.row_count()) - dead.rows.len()
        };
        if rows.len() as u64 != inputs.iter().map(alive).sum::<u64>() {
            let problem = "rows of a dead source are alive".to_owned();
            return Err(SegmentError::BadInput { problem });
        }
        Ok(Self { inputs, sources, source_rows, rows, renewed: None })
    }

    /// Takes the live rows of one source, under a new record.
    pub(super) fn of_source(
        segment: &'a Segment,
        dead: &'a TombstoneSet,
        source: u32,
        record: SourceRecord,
    ) -> Self {
        let live = segment.rows_of(source).iter().filter(|row| !dead.rows.contains(**row));
        let rows: Vec<(u32, RowId)> = live.map(|row| (0, RowId(*row))).collect();
        let (sources, source_rows) = (vec![(0, source)], vec![rows.len() as u32]);
        let inputs = vec![(segment, dead)];
        Self { inputs, sources, source_rows, rows, renewed: Some(record) }
    }

    fn segment_of(&self, row: u32) -> (&'a Segment, RowId) {
        let (input, row) = self.rows[row as usize];
        (self.inputs[input as usize].0, row)
    }
}

impl RowFeed for MergedRows<'_> {
    fn source_rows(&self) -> &[u32] {
        &self.source_rows
    }

    fn record(&self, source: usize) -> Result<Cow<'_, SourceRecord>, SegmentError> {
        if let Some(record) = &self.renewed {
            return Ok(Cow::Borrowed(record));
        }
        let (input, source) = self.sources[source];
        self.inputs[input as usize].0.record(source).map(Cow::Owned)
    }

    fn entry(&self, row: u32) -> (u32, ChunkPlace) {
        let (segment, row) = self.segment_of(row);
        (segment.index(row), segment.place(row))
    }

    fn boxes(&self, row: u32) -> Cow<'_, [PageBox]> {
        let (segment, row) = self.segment_of(row);
        Cow::Owned(segment.boxes(row))
    }

    fn lines(&self, row: u32) -> Result<Cow<'_, [LineBox]>, SegmentError> {
        let (segment, row) = self.segment_of(row);
        Ok(Cow::Owned(segment.lines(row)?))
    }

    fn context(&self, row: u32) -> Cow<'_, str> {
        let (segment, row) = self.segment_of(row);
        Cow::Borrowed(segment.context(row))
    }

    /// Copied from the input. Segments older than version 3 have no graph: it is extracted from
    /// their texts.
    fn graph(&self, row: u32) -> Result<Cow<'_, RowGraph>, SegmentError> {
        let (segment, row) = self.segment_of(row);
        if let Some(graph) = segment.graph()? {
            return Ok(Cow::Owned(graph.row(row.0)));
        }
        if segment.has_graph_format() {
            return Ok(Cow::Owned(RowGraph::default()));
        }
        let record = segment.record(segment.source_of(row))?;
        Ok(Cow::Owned(lodestone_graph::extract(own_title(&record), &segment.text(row)?)))
    }

    fn text(&self, row: u32) -> Result<Cow<'_, str>, SegmentError> {
        let (segment, row) = self.segment_of(row);
        segment.text(row).map(Cow::Owned)
    }

    fn has_payloads(&self) -> bool {
        self.inputs.iter().any(|(segment, _)| segment.header.has_payloads)
    }

    fn parts(&self) -> Result<Vec<VectorRows<'_>>, SegmentError> {
        let mut parts = Vec::with_capacity(self.inputs.len());
        for (input, (segment, _)) in self.inputs.iter().enumerate() {
            let rows = self.rows.iter().filter(|(of, _)| *of as usize == input);
            parts.push(segment.vectors_of(rows.map(|(_, row)| *row))?);
        }
        Ok(parts)
    }

    fn origin(&self, row: u32) -> (usize, u32) {
        let (input, row) = self.rows[row as usize];
        (input as usize, row.0)
    }

    fn older_lists(&self) -> Result<Option<(usize, Lists<'_>)>, SegmentError> {
        let rows_of = |input: usize| {
            let of_input = self.rows.iter().filter(|(of, _)| *of as usize == input);
            of_input.count()
        };
        let largest = (0..self.inputs.len()).max_by_key(|input| rows_of(*input));
        let Some(largest) = largest.filter(|input| 2 * rows_of(*input) >= self.rows.len()) else {
            return Ok(None);
        };
        let lists = self.inputs[largest].0.lists()?;
        Ok(lists.filter(|lists| lists.len() > 1).map(|lists| (largest, lists)))
    }

    /// The sparse model shared by all inputs with live rows. If one of them lacks it or has another
    /// one, the merged rows have none, and searches report that.
    fn sparse_model(&self) -> Result<Option<SparseModelId>, SegmentError> {
        let mut models = Vec::with_capacity(self.inputs.len());
        let mut known = None;
        for (input, _) in &self.rows {
            if known.replace(*input) != Some(*input) {
                let impacts = self.inputs[*input as usize].0.impacts()?;
                models.push(impacts.map(|impacts| *impacts.model()));
            }
        }
        let first = models.first().copied().flatten();
        Ok(first.filter(|first| models.iter().all(|model| model.as_ref() == Some(first))))
    }

    fn impacts(&self, model: &SparseModelId, out: &mut dyn Write) -> Result<Vec<u8>, SegmentError> {
        let mut inputs: Vec<(&ImpactIndex, Vec<u32>)> = Vec::new();
        let mut known = None;
        for (new, (input, row)) in self.rows.iter().enumerate() {
            let segment = self.inputs[*input as usize].0;
            if known.replace(*input) != Some(*input)
                && let Some(impacts) = segment.impacts()?
            {
                inputs.push((impacts, vec![u32::MAX; segment.row_count() as usize]));
            }
            let numbers = inputs.last_mut().map(|(_, numbers)| numbers);
            if let Some(number) = numbers.and_then(|all| all.get_mut(row.0 as usize)) {
                *number = new as u32;
            }
        }
        Ok(ImpactMerge { inputs, rows: self.rows.len() as u32 }.write(model, out)?)
    }

    /// Within an input, rows are taken in the order of its sources, which is its row order, so the
    /// merged index numbers the rows as this feed does.
    fn text_index(&self, scratch: &Scratch<'_>) -> Result<TextBundle, SegmentError> {
        let mut alive = Vec::with_capacity(self.inputs.len());
        let mut next = 0;
        for (input, _) in self.inputs.iter().enumerate() {
            let of_input = self.rows[next..].iter().take_while(|(of, _)| *of == input as u32);
            let rows: roaring::RoaringBitmap = of_input.map(|(_, row)| row.0).collect();
            next += rows.len() as usize;
            alive.push(rows);
        }
        let inputs: Vec<(&TextIndex, Option<&roaring::RoaringBitmap>)> = self
            .inputs
            .iter()
            .zip(&alive)
            .map(|((segment, _), alive)| (segment.text_index(), Some(alive)))
            .collect();
        Ok(TextIndex::merge(&inputs, scratch)?)
    }
}
