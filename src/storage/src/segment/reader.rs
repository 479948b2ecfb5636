//! Open segments. Data is read in place from the mapped file and verified before its first use.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use roaring::RoaringBitmap;

use crate::filter::Columns;
use crate::segment::boxes::BoxTable;
use crate::segment::contexts::ContextTable;
use crate::segment::format::{
    Footer, HEADER_BYTES, Header, SECTION_ALIGN, Section, VectorKind, place_of,
};
use crate::segment::lines::LineTable;
use crate::segment::row_table::RowTable;
use crate::segment::section::LazySection;
use crate::segment::source_table::SourceTable;
use crate::segment::text_store::{TextReader, TextStore};
use crate::segment::tier_blocks::VectorSections;
use crate::segment::{SegmentError, SegmentMeta};
use lodestone_graph::GraphIndex;
use lodestone_io::BlockFile;
use lodestone_io::store::{BlobStore, Key};
use lodestone_text::{ImpactIndex, TextIndex};
use lodestone_types::{
    ChunkPlace, CollectionId, Filter, LineBox, PageBox, RowId, RowPayload, SegmentId, Sequence,
    SourceId, SourceRecord, SubTenantId, Timestamp,
};

/// First format version with a graph section.
const GRAPH_SINCE: u32 = 3;

/// An immutable segment file, open for reading. The file stays mapped until this is dropped.
#[derive(Debug)]
pub struct Segment {
    pub(crate) header: Header,
    pub(super) meta: SegmentMeta,
    pub(super) footer: Footer,
    pub(super) file: Arc<BlockFile>,
    rows: RowTable,
    sources: SourceTable,
    boxes: BoxTable,
    lines: Option<LineTable>,
    contexts: ContextTable,
    columns: Columns,
    text_index: TextIndex,
    texts: OnceLock<TextStore>,
    graph: OnceLock<GraphIndex>,
    pub(super) impacts: OnceLock<ImpactIndex>,
    pub(super) vectors: OnceLock<VectorSections>,
}

impl Segment {
    /// Opens the file at `key`, which must be the one that `meta` describes. Verifies the header,
    /// the footer and the sections of rows, sources, boxes, contexts and columns; the blocks of all
    /// other sections are verified when they are first read.
    ///
    /// Header and footer are read with plain reads before the mapping is touched, so a file that is
    /// shorter than they say is refused rather than faulting.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if a checksum, a binding or a rule of the format does not hold,
    /// [`SegmentError::TooNew`] for a later format.
    pub fn open(
        store: &dyn BlobStore,
        key: &Key,
        collection: CollectionId,
        meta: &SegmentMeta,
    ) -> Result<Self, SegmentError> {
        let name = meta.id.to_string();
        let damaged = |problem: &str| SegmentError::Damaged {
            segment: name.clone(),
            problem: problem.to_owned(),
        };
        let mapped = store.map(key)?;
        let read = |range: Range<usize>| -> Result<Vec<u8>, SegmentError> {
            let mut bytes = vec![0; range.len()];
            mapped.read_at(range.start, &mut bytes)?;
            Ok(bytes)
        };
        let header = Header::decode(&name, &read(0..HEADER_BYTES.min(mapped.len()))?)?;
        let (footer, data_bytes, checksum) = Footer::decode(&name, mapped.len(), read)?;
        if header.collection != collection || header.segment != meta.id {
            return Err(damaged("the file belongs to another collection or segment"));
        }
        let is_listed = checksum == meta.checksum
            && mapped.len() as u64 == meta.bytes
            && (header.rows, header.sources) == (meta.rows, meta.sources);
        if !is_listed {
            return Err(damaged("the file is not the one that the manifest lists"));
        }
        let file = BlockFile::open(mapped, data_bytes as usize, footer.checksums.clone())?;
        let file = Arc::new(file);
        file.verify(0..SECTION_ALIGN as usize)?;
        let bytes = |section| -> Result<_, SegmentError> {
            Ok(file.verified(place_of(&name, &footer, section)?)?)
        };
        let optional = |section| match footer.entry(section) {
            Some(_) => bytes(section).map(Some),
            None => Ok(None),
        };
        let text_index = LazySection::new(&file, place_of(&name, &footer, Section::TextIndex)?)?;
        let text_index = TextIndex::open_lazily(Arc::new(text_index))?;
        let columns = Columns::open(bytes(Section::Columns)?)?;
        if [text_index.rows(), columns.rows()] != [header.rows; 2] {
            return Err(damaged("the text index or the filter columns have other rows"));
        }
        let lines = match footer.entry(Section::Lines) {
            Some(_) => {
                let section = LazySection::new(&file, place_of(&name, &footer, Section::Lines)?)?;
                Some(LineTable::open(section, header.rows).map_err(|problem| damaged(&problem))?)
            }
            None => None,
        };
        Ok(Self {
            rows: RowTable::open(bytes(Section::Rows)?, header.rows, header.sources)
                .map_err(damaged)?,
            sources: SourceTable::open(
                bytes(Section::Sources)?,
                optional(Section::Details)?,
                file.mapped().path(),
                header.sources,
            )
            .map_err(|problem| damaged(&problem))?,
            boxes: BoxTable::open(optional(Section::Boxes)?, header.rows).map_err(damaged)?,
            lines,
            contexts: ContextTable::open(optional(Section::Contexts)?, header.rows)
                .map_err(damaged)?,
            columns,
            text_index,
            header,
            meta: meta.clone(),
            footer,
            file,
            texts: OnceLock::new(),
            graph: OnceLock::new(),
            impacts: OnceLock::new(),
            vectors: OnceLock::new(),
        })
    }

    pub(crate) fn damaged(&self, problem: impl Into<String>) -> SegmentError {
        SegmentError::Damaged { segment: self.meta.id.to_string(), problem: problem.into() }
    }

    pub(super) fn place_of(&self, section: Section) -> Result<Range<usize>, SegmentError> {
        place_of(&self.meta.id.to_string(), &self.footer, section)
    }

    /// Checks that everything read from this file so far was intact. Call it before a result is
    /// passed on or stored: a page that becomes unreadable after its verification reads as zeros,
    /// and a search continues past damage.
    ///
    /// # Errors
    /// Damage. Once reported it is reported by every later call.
    pub fn check(&self) -> Result<(), SegmentError> {
        Ok(self.file.check()?)
    }

    /// Number of bytes read to verify blocks.
    pub fn verified_bytes(&self) -> u64 {
        self.file.read_bytes()
    }

    /// Whether rows and sources can still be read from this open file although other parts of it
    /// are damaged.
    pub(crate) fn has_intact_sources(&self) -> bool {
        [Section::Rows, Section::Sources, Section::Details].into_iter().all(|section| {
            self.footer.entry(section).is_none()
                || self.place_of(section).is_ok_and(|place| self.file.is_intact(place))
        })
    }

    /// The segment's entry in the manifest.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// The segment's id.
    pub fn id(&self) -> SegmentId {
        self.meta.id
    }

    /// Number of rows, including dead ones.
    pub fn row_count(&self) -> u32 {
        self.header.rows
    }

    /// Number of sources, including dead ones.
    pub fn source_count(&self) -> u32 {
        self.header.sources
    }

    /// Components per vector.
    pub fn dimension(&self) -> usize {
        self.header.dimension as usize
    }

    /// Number format of the original vectors.
    pub fn vector_kind(&self) -> VectorKind {
        self.header.vector_kind
    }

    /// Finds the position of a source, dead or alive.
    pub fn find_source(&self, sub_tenant: &SubTenantId, id: &SourceId) -> Option<u32> {
        self.find_source_named(sub_tenant.as_str(), id.as_str())
    }

    /// Like [`Self::find_source`], for names as returned by [`Self::source_key`].
    pub fn find_source_named(&self, sub_tenant: &str, id: &str) -> Option<u32> {
        self.sources.find(sub_tenant, id)
    }

    /// Sub-tenant and id of a source, as stored.
    pub fn source_key(&self, source: u32) -> (&str, &str) {
        self.sources.key(source)
    }

    /// The operation that created a source.
    pub fn sequence(&self, source: u32) -> Sequence {
        self.sources.sequence(source)
    }

    /// Time of a source's last update at its origin.
    pub fn last_updated_at(&self, source: u32) -> Timestamp {
        self.sources.last_updated_at(source)
    }

    /// Upload time of a source.
    pub fn uploaded_at(&self, source: u32) -> Timestamp {
        self.sources.uploaded_at(source)
    }

    /// The sources of a sub-tenant, including dead ones: newest upload first, ties by id.
    pub fn newest_first(&self, sub_tenant: &SubTenantId) -> &[u32] {
        self.sources.newest_first(sub_tenant.as_str())
    }

    /// Decodes the record of a source.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if a stored name or map is invalid.
    pub fn record(&self, source: u32) -> Result<SourceRecord, SegmentError> {
        self.sources.record(source).map_err(|problem| self.damaged(problem))
    }

    /// Rows of a source, ascending by chunk index.
    pub fn rows_of(&self, source: u32) -> &[u32] {
        self.rows.rows_of(source)
    }

    /// The source of a row.
    pub fn source_of(&self, row: RowId) -> u32 {
        self.rows.source(row)
    }

    /// The position of the row's chunk in its source.
    pub fn index(&self, row: RowId) -> u32 {
        self.rows.index(row)
    }

    /// The position of the row's chunk in the extracted text.
    pub fn place(&self, row: RowId) -> ChunkPlace {
        self.rows.place(row)
    }

    /// Rectangles of the chunk, one per page; empty for documents without fixed pages.
    pub fn boxes(&self, row: RowId) -> Vec<PageBox> {
        self.boxes.of(row)
    }

    /// Lines of the chunk, as ranges of characters of its text; empty for documents without fixed
    /// pages and in segments older than version 5.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if the lines break a rule of the format.
    pub fn lines(&self, row: RowId) -> Result<Vec<LineBox>, SegmentError> {
        let Some(lines) = &self.lines else { return Ok(Vec::new()) };
        let lines = lines.of(row).map_err(|problem| self.damaged(problem))?;
        self.check()?;
        Ok(lines)
    }

    /// The headings and the table header row above the chunk, one per line; empty if there are none
    /// and in segments older than version 4.
    pub fn context(&self, row: RowId) -> &str {
        self.contexts.of(row)
    }

    /// The chunk's text. To read several rows, use [`Self::texts`], which costs less.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if the block does not decompress.
    pub fn text(&self, row: RowId) -> Result<String, SegmentError> {
        self.texts()?.text(row)
    }

    /// Returns a reader for the texts of several rows.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if the section is inconsistent.
    pub fn texts(&self) -> Result<TextReader<'_>, SegmentError> {
        let store = match self.texts.get() {
            Some(store) => store,
            None => {
                let section = LazySection::new(&self.file, self.place_of(Section::Texts)?)?;
                let opened = TextStore::open(section, self.header.rows);
                let opened = opened.map_err(|problem| self.damaged(problem))?;
                self.texts.get_or_init(|| opened)
            }
        };
        Ok(TextReader::new(self, store))
    }

    /// Id and metadata that a client gave with its own vector.
    ///
    /// # Errors
    /// As [`Self::text`]; [`SegmentError::Damaged`] if the text is not a payload.
    pub fn payload(&self, row: RowId) -> Result<RowPayload, SegmentError> {
        let payload = RowPayload::parse(&self.text(row)?);
        payload.map_err(|error| self.damaged(format!("a payload cannot be read: {error}")))
    }

    /// Rows to which a client gave this id, in all sub-tenants, including dead ones.
    ///
    /// # Errors
    /// [`SegmentError::Filter`] if a stored bitmap is malformed.
    pub fn rows_named(&self, chunk_id: &str) -> Result<RoaringBitmap, SegmentError> {
        Ok(self.columns.chunk_id(chunk_id)?)
    }

    /// Whether clients gave ids to any of its rows.
    pub fn has_chunk_ids(&self) -> bool {
        self.columns.has_chunk_ids()
    }

    /// Entities and triplets of the rows; `None` if there are none and in segments older than
    /// version 3. Verified on first use.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if a checksum or a rule of the section does not hold.
    pub fn graph(&self) -> Result<Option<&GraphIndex>, SegmentError> {
        if self.graph.get().is_none() {
            if self.footer.entry(Section::Graph).is_none() {
                return Ok(None);
            }
            let bytes = self.file.verified(self.place_of(Section::Graph)?)?;
            let opened = GraphIndex::open(bytes, self.header.rows, self.header.sources);
            let opened = opened.map_err(|problem| self.damaged(problem))?;
            self.graph.get_or_init(|| opened);
        }
        Ok(self.graph.get())
    }

    /// Whether the file's format version supports graphs.
    pub fn has_graph_format(&self) -> bool {
        self.header.version >= GRAPH_SINCE
    }

    /// The full-text index; its document ids are row ids.
    pub fn text_index(&self) -> &TextIndex {
        &self.text_index
    }

    /// Rows of a sub-tenant, including dead ones.
    pub fn rows_of_sub_tenant(&self, name: &SubTenantId) -> RoaringBitmap {
        self.columns.sub_tenant(name)
    }

    /// Sub-tenants that have rows here, ascending, each with its number of rows.
    pub fn sub_tenants(&self) -> Vec<(SubTenantId, u64)> {
        self.columns.sub_tenants()
    }

    /// Rows that pass a filter, in all sub-tenants, including dead ones.
    ///
    /// # Errors
    /// [`SegmentError::Filter`] if a stored bitmap is malformed.
    pub fn matching(&self, filter: &Filter) -> Result<RoaringBitmap, SegmentError> {
        Ok(self.columns.matching(filter, self.header.rows)?)
    }

    /// The columns that filters are evaluated on.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }
}
