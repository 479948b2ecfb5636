//! Opens a bundle for reading.

use std::sync::Arc;

use stable_deref_trait::StableDeref;
use tantivy::directory::{CompositeFile, FileSlice, OwnedBytes};
use tantivy::index::SegmentComponent;
use tantivy::{HasLen, Index, InvertedIndexReader, Segment, SegmentReader};

use crate::TextError;
use crate::bundle::{self, BundleBytes};
use crate::dictionary::Dictionary;
use crate::directory::IndexDirectory;
use crate::error::caught;
use crate::schema::{Field, schema};

/// The full text of one segment. Row `n` of the segment is row `n` here. Cheap to share.
pub struct TextIndex {
    rows: u32,
    /// `None` if there are no rows.
    opened: Option<Opened>,
}

pub(super) struct Opened {
    segment: Segment,
    fields: [OpenField; 3],
}

/// One field: its postings, and its length in each row as Lucene's one-byte code.
pub(super) struct OpenField {
    pub postings: Arc<InvertedIndexReader>,
    /// The bytes of all postings; a term's range in them is given by its
    /// [`tantivy::postings::TermInfo`].
    pub posting_bytes: FileSlice,
    pub dictionary: Dictionary,
    pub lengths: OwnedBytes,
}

/// Bytes before the postings of a field: the number of its terms, written by the index library.
const TERMS_BYTES: usize = 8;

impl TextIndex {
    /// Opens a bundle made by [`TextIndexBuilder::finish`](crate::TextIndexBuilder::finish) or
    /// [`Self::merge`], and reads it in place. The caller must have verified the checksum of the
    /// bytes.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if the bytes are not such a bundle, [`TextError::Version`] if another
    /// version wrote them.
    pub fn open(
        bundle: impl StableDeref<Target = [u8]> + Send + Sync + 'static,
    ) -> Result<Self, TextError> {
        Self::open_lazily(Arc::new(OwnedBytes::new(bundle)))
    }

    /// Like [`Self::open`], but reads only what is needed: the dictionaries and field lengths now,
    /// and the postings of the query's words during a search. `bundle` verifies checksums.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_lazily(bundle: Arc<dyn BundleBytes>) -> Result<Self, TextError> {
        let contents = bundle::read(&*bundle)?;
        let rows = contents.rows;
        if rows == 0 {
            return Ok(Self { rows, opened: None });
        }
        let directory = IndexDirectory::of_bundle(&bundle, &contents);
        let opened = caught(|| Opened::open(directory, rows))?;
        Ok(Self { rows, opened: Some(opened) })
    }

    /// Number of rows of the index.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    pub(super) fn segment(&self) -> Option<&Segment> {
        self.opened.as_ref().map(|opened| &opened.segment)
    }

    /// The field's data; `None` if there are no rows.
    pub(super) fn field(&self, field: Field) -> Option<&OpenField> {
        self.opened.as_ref().map(|opened| &opened.fields[field.index()])
    }
}

impl std::fmt::Debug for TextIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextIndex").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Opened {
    fn open(directory: IndexDirectory, rows: u32) -> Result<Self, TextError> {
        let index = Index::open(directory).map_err(TextError::damaged)?;
        if index.schema() != schema() {
            return Err(TextError::damaged("the index has other fields"));
        }
        let mut segments = index.searchable_segments().map_err(TextError::damaged)?;
        let (Some(segment), true) = (segments.pop(), segments.is_empty()) else {
            return Err(TextError::damaged("the index is not one segment"));
        };
        let reader = SegmentReader::open(&segment).map_err(TextError::damaged)?;
        if reader.max_doc() != rows || reader.has_deletes() {
            let problem = format!("{} documents for {rows} rows", reader.max_doc());
            return Err(TextError::damaged(problem));
        }
        let postings = reader.open_read(SegmentComponent::Postings).map_err(TextError::damaged)?;
        let postings = CompositeFile::open(&postings).map_err(TextError::damaged)?;
        let terms = reader.open_read(SegmentComponent::Terms).map_err(TextError::damaged)?;
        let terms = CompositeFile::open(&terms).map_err(TextError::damaged)?;
        let open = |field| OpenField::open(&reader, [&postings, &terms], field, rows);
        let fields = [open(Field::Body)?, open(Field::Title)?, open(Field::Words)?];
        Ok(Self { segment, fields })
    }
}

impl OpenField {
    fn open(
        reader: &SegmentReader,
        [all_postings, all_terms]: [&CompositeFile; 2],
        field: Field,
        rows: u32,
    ) -> Result<Self, TextError> {
        let column = field.column();
        // A field without any terms has no postings.
        let posting_bytes = all_postings.open_read(column);
        let posting_bytes = posting_bytes.filter(|bytes| bytes.len() >= TERMS_BYTES);
        let posting_bytes =
            posting_bytes.map_or_else(FileSlice::empty, |bytes| bytes.slice_from(TERMS_BYTES));
        let postings = reader.inverted_index(column).map_err(TextError::damaged)?;
        let dictionary =
            Dictionary::open(all_terms.open_read(column)).map_err(TextError::damaged)?;
        let lengths = reader.fieldnorms_readers().get_inner_file().open_read(column);
        let Some(lengths) = lengths else {
            return Err(TextError::damaged(format!("{field:?} has no lengths")));
        };
        let lengths = lengths.read_bytes().map_err(TextError::damaged)?;
        if lengths.len() != rows as usize {
            let problem = format!("{} lengths of {field:?} for {rows} rows", lengths.len());
            return Err(TextError::damaged(problem));
        }
        Ok(Self { postings, posting_bytes, dictionary, lengths })
    }
}
