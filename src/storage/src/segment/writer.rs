//! Writes a segment file in one pass, section by section. Sections that cannot be streamed from the
//! feed are built in memory, one at a time.

use std::io::{self, Write};

use crate::segment::feed_rows::FeedRows;
use crate::segment::format::{
    Footer, Header, PLAIN_VERSION, SECTION_ALIGN, SPARSE_VERSION, Section, SectionEntry, VectorKind,
};
use crate::segment::lists::{self, ListPolicy, ONE_BIT_ROWS_MIN};
use crate::segment::merged::MergedRows;
use crate::segment::revectored::RevectoredRows;
use crate::segment::row_feed::{self, FreshRows, NewSource, RowFeed, Scratch};
use crate::segment::spool::Spool;
use crate::segment::{
    Segment, SegmentError, SparseRow, TombstoneSet, boxes, contexts, lines, row_table,
    source_table, text_store,
};
use lodestone_compute::{ComputeBackend, FullRows, SimdBackend};
use lodestone_io::BlockHasher;
use lodestone_io::store::{BlobStore, Key, StoreError};
use lodestone_text::SparseModelId;
use lodestone_types::{CollectionId, ErrorKind, SegmentId, SourceRecord};

/// Properties of a segment file that the collection's manifest records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentMeta {
    /// The segment's id.
    pub id: SegmentId,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Number of rows.
    pub rows: u32,
    /// Number of sources.
    pub sources: u32,
    /// Hash of the footer, which in turn holds the checksums of everything else.
    pub checksum: u64,
}

/// Properties that all rows of a build share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentShape {
    /// The collection that the segment will belong to.
    pub collection: CollectionId,
    /// A fresh id for the segment.
    pub segment: SegmentId,
    /// Components per vector.
    pub dimension: usize,
    /// Number format of the original vectors.
    pub vector_kind: VectorKind,
}

/// Writes fresh sources to a new file at `key`. When this returns, the file is complete on disk and
/// survives a power cut; nothing refers to it yet.
///
/// # Errors
/// [`SegmentError::BadInput`] for vectors of the wrong width or chunks out of order; disk errors.
/// No file is left behind.
pub fn write(
    store: &dyn BlobStore,
    key: &Key,
    shape: SegmentShape,
    sources: &[NewSource],
) -> Result<SegmentMeta, SegmentError> {
    let feed = FreshRows::new(shape.vector_kind, shape.dimension, sources)?;
    write_feed(store, key, shape, &feed, &SimdBackend)
}

/// Writes the live rows of `inputs` to a new file at `key`, as durably as [`write()`]. Sources and
/// rows keep their order, input after input. The lists over them are built by `backend`; the result
/// does not depend on the backend.
///
/// # Errors
/// Errors of reading the inputs or of the disk. No file is left behind.
pub fn write_merged(
    store: &dyn BlobStore,
    key: &Key,
    shape: SegmentShape,
    inputs: Vec<(&Segment, &TombstoneSet)>,
    backend: &dyn ComputeBackend,
) -> Result<SegmentMeta, SegmentError> {
    let is_of_shape = |(segment, _): &(&Segment, &TombstoneSet)| {
        (segment.dimension(), segment.vector_kind()) == (shape.dimension, shape.vector_kind)
    };
    if !inputs.iter().all(is_of_shape) {
        let problem = "the inputs of a merge have vectors of another shape".to_owned();
        return Err(SegmentError::BadInput { problem });
    }
    let feed = MergedRows::new(inputs)?;
    write_feed(store, key, shape, &feed, backend)
}

/// Writes the live rows of one source with a new record to a new file at `key`, as durably as
/// [`write()`].
///
/// # Errors
/// Errors of reading the input or of the disk. No file is left behind.
pub fn write_amended(
    store: &dyn BlobStore,
    key: &Key,
    shape: SegmentShape,
    (segment, dead): (&Segment, &TombstoneSet),
    source: u32,
    record: SourceRecord,
) -> Result<SegmentMeta, SegmentError> {
    let feed = MergedRows::of_source(segment, dead, source, record);
    write_feed(store, key, shape, &feed, &SimdBackend)
}

/// Writes the live rows of a segment with new vectors, one per row in row order, to a new file at
/// `key`, as durably as [`write()`]. Everything but the vectors is kept. Sparse vectors are kept
/// too, unless `sparse` supplies one per row.
///
/// # Errors
/// [`SegmentError::BadInput`] for a wrong number or width of vectors; errors of reading the input
/// or of the disk. No file is left behind.
pub fn write_with_vectors(
    store: &dyn BlobStore,
    key: &Key,
    shape: SegmentShape,
    input: (&Segment, &TombstoneSet),
    (vectors, sparse): (&[Vec<f32>], &[SparseRow]),
    backend: &dyn ComputeBackend,
) -> Result<SegmentMeta, SegmentError> {
    let feed = RevectoredRows::new(input, shape.vector_kind, shape.dimension, vectors, sparse)?;
    write_feed(store, key, shape, &feed, backend)
}

fn write_feed(
    store: &dyn BlobStore,
    key: &Key,
    shape: SegmentShape,
    feed: &dyn RowFeed,
    backend: &dyn ComputeBackend,
) -> Result<SegmentMeta, SegmentError> {
    let rows = feed.source_rows().iter().sum();
    let sparse_model = feed.sparse_model()?;
    let header = Header {
        version: if sparse_model.is_some() { SPARSE_VERSION } else { PLAIN_VERSION },
        collection: shape.collection,
        segment: shape.segment,
        rows,
        sources: feed.source_rows().len() as u32,
        dimension: shape.dimension as u32,
        vector_kind: shape.vector_kind,
        has_payloads: feed.has_payloads(),
    };
    let scratch = || store.scratch().map_err(of_scratch);
    let mut failure = None;
    let mut checksum = 0;
    let written = store.put_with(key, &mut |file| {
        let mut out = SectionWriter::new(file);
        match write_sections(&mut out, &header, feed, backend, &scratch)
            .and_then(|()| write_sparse(&mut out, sparse_model, feed, &scratch))
        {
            Ok(()) => {
                checksum = out.finish()?;
                Ok(())
            }
            Err(Failure::Disk(error)) => Err(error),
            Err(Failure::Feed(error)) => {
                failure = Some(error);
                Err(io::Error::other("reading the rows of a segment failed"))
            }
        }
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    let (bytes, id) = (written?, shape.segment);
    Ok(SegmentMeta { id, bytes, rows: header.rows, sources: header.sources, checksum })
}

/// An error while a section is written, from the disk or from the input.
enum Failure {
    Disk(io::Error),
    Feed(SegmentError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<SegmentError> for Failure {
    fn from(error: SegmentError) -> Self {
        Self::Feed(error)
    }
}

fn write_sections(
    out: &mut SectionWriter<'_>,
    header: &Header,
    feed: &dyn RowFeed,
    backend: &dyn ComputeBackend,
    scratch: &Scratch<'_>,
) -> Result<(), Failure> {
    let records = (0..feed.source_rows().len()).map(|source| feed.record(source));
    out.write(&header.encode())?;
    out.begin(Section::Rows)?;
    out.write(&row_table::encode(&row_feed::entries(feed), header.sources))?;
    out.begin(Section::Texts)?;
    write_texts(out, header, feed, scratch)?;
    let (sources, details) = source_table::encode(records)?;
    out.begin(Section::Sources)?;
    out.write(&sources)?;
    drop(sources);
    out.begin(Section::Columns)?;
    out.write(&row_feed::columns(feed)?)?;

    write_vectors(out, header, feed)?;
    out.begin(Section::TextIndex)?;
    feed.text_index(scratch)?.write_to(&mut out.file)?;
    if header.rows as usize >= ONE_BIT_ROWS_MIN {
        let rows = FeedRows::new(feed, header, backend)?;
        let built = lists::build(&rows, ListPolicy::default());
        out.begin(Section::Lists)?;
        out.write(&built.lists)?;
        out.begin(Section::OneBit)?;
        out.write(&built.one_bit)?;
    }
    if let Some(details) = details {
        out.begin(Section::Details)?;
        out.write(&details)?;
    }
    let rows = || 0..header.rows;
    if let Some(boxes) = boxes::encode(rows().map(|row| feed.boxes(row))) {
        out.begin(Section::Boxes)?;
        out.write(&boxes)?;
    }
    if let Some(lines) = lines::encode(rows().map(|row| feed.lines(row)))? {
        out.begin(Section::Lines)?;
        out.write(&lines)?;
    }
    if let Some(contexts) = contexts::encode(rows().map(|row| feed.context(row))) {
        out.begin(Section::Contexts)?;
        out.write(&contexts)?;
    }
    if let Some(graph) = row_feed::graph(feed, header.rows)? {
        out.begin(Section::Graph)?;
        out.write(&graph)?;
    }
    Ok(())
}

/// Writes the vectors of a sparse model, if all rows have one. Postings are spooled like texts.
fn write_sparse(
    out: &mut SectionWriter<'_>,
    model: Option<SparseModelId>,
    feed: &dyn RowFeed,
    scratch: &Scratch<'_>,
) -> Result<(), Failure> {
    let Some(model) = model else { return Ok(()) };
    let mut postings = Spool::new(scratch);
    let head = feed.impacts(&model, &mut postings)?;
    out.begin(Section::Sparse)?;
    out.write(&head)?;
    Ok(postings.copy_to(&mut out.file)?)
}

/// Writes the texts. The positions that precede the blocks in the file are known last, so the
/// blocks are spooled in memory or, if they are large, in a temporary file.
fn write_texts(
    out: &mut SectionWriter<'_>,
    header: &Header,
    feed: &dyn RowFeed,
    scratch: &Scratch<'_>,
) -> Result<(), Failure> {
    let mut failure = None;
    let texts = (0..header.rows).map_while(|row| match feed.text(row) {
        Ok(text) => Some(text),
        Err(error) => {
            failure = Some(error);
            None
        }
    });
    let mut blocks = Spool::new(scratch);
    let head = text_store::encode(texts, &mut blocks)?;
    if let Some(error) = failure {
        return Err(error.into());
    }
    out.write(&head)?;
    Ok(blocks.copy_to(&mut out.file)?)
}

/// Copies T1 and T2 row by row.
fn write_vectors(
    out: &mut SectionWriter<'_>,
    header: &Header,
    feed: &dyn RowFeed,
) -> Result<(), Failure> {
    let parts = feed.parts()?;
    let rows = || {
        (0..header.rows).map(|row| {
            let (part, row) = feed.origin(row);
            (&parts[part], row as usize)
        })
    };
    out.begin(Section::Codes)?;
    let mut factors = Vec::with_capacity(header.rows as usize * 8);
    for (vectors, at) in rows() {
        out.write(bytemuck::cast_slice(vectors.codes(at)))?;
        factors.extend(vectors.scale(at).to_le_bytes());
    }
    for (vectors, at) in rows() {
        factors.extend(vectors.residual(at).to_le_bytes());
    }
    out.begin(Section::Factors)?;
    out.write(&factors)?;

    out.begin(Section::Originals)?;
    let mut norms_bytes = Vec::new();
    for (vectors, at) in rows() {
        let range = at * vectors.dimension()..(at + 1) * vectors.dimension();
        match vectors.full() {
            FullRows::F16(bits) => out.write(bytemuck::cast_slice(&bits[range]))?,
            FullRows::F32 { values, norms } => {
                out.write(bytemuck::cast_slice(&values[range]))?;
                norms_bytes.extend(norms[at].to_le_bytes());
            }
        }
    }
    out.begin(Section::Norms)?;
    Ok(out.write(&norms_bytes)?)
}

/// Converts the error of a scratch file. "Disk full" is preserved, so that jobs wait for space.
fn of_scratch(error: StoreError) -> io::Error {
    let is_full = error.kind() == ErrorKind::StorageFull;
    let kind = if is_full { io::ErrorKind::StorageFull } else { io::ErrorKind::Other };
    io::Error::new(kind, error)
}

/// Writes sections one after the other, hashing them on their way to the file.
struct SectionWriter<'a> {
    file: BlockHasher<&'a mut dyn Write>,
    sections: Vec<SectionEntry>,
}

impl<'a> SectionWriter<'a> {
    fn new(file: &'a mut dyn Write) -> Self {
        Self { file: BlockHasher::new(file), sections: Vec::new() }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn close(&mut self) {
        if let Some(open) = self.sections.last_mut() {
            open.bytes = self.file.position() - open.offset;
        }
    }

    fn begin(&mut self, section: Section) -> io::Result<()> {
        self.close();
        let offset = self.file.align(SECTION_ALIGN)?;
        self.sections.push(SectionEntry { section: section as u32, offset, bytes: 0 });
        Ok(())
    }

    /// Writes the footer and returns its hash.
    fn finish(mut self) -> io::Result<u64> {
        self.close();
        let offset = self.file.align(SECTION_ALIGN)?;
        let (file, _, checksums) = self.file.finish();
        let (bytes, hash) = Footer { sections: self.sections, checksums }.encode(offset);
        file.write_all(&bytes)?;
        Ok(hash)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use lodestone_io::{IoError, Operation};

    #[test]
    fn a_scratch_file_without_room_is_a_full_disk() {
        let of = |kind: io::ErrorKind| {
            of_scratch(IoError::new(Operation::Create, Path::new("tmp/1"), kind.into()).into())
        };
        assert_eq!(of(io::ErrorKind::StorageFull).kind(), io::ErrorKind::StorageFull);
        assert_eq!(of(io::ErrorKind::QuotaExceeded).kind(), io::ErrorKind::StorageFull);
        assert_eq!(of(io::ErrorKind::PermissionDenied).kind(), io::ErrorKind::Other);
    }
}
