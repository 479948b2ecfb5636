//! Writing an index: rows, in order, into one segment, and its files into one bundle; merging.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use roaring::RoaringBitmap;
use tantivy::directory::{FileSlice, OwnedBytes, RamDirectory};
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::indexer::merge_filtered_segments;
use tantivy::store::Compressor;
use tantivy::{BitSet, Directory, Index, IndexSettings, SingleSegmentIndexWriter, TantivyDocument};

use crate::bundle::TextBundle;
use crate::directory::{INDEX_FILES_MAX, IndexDirectory};
use crate::schema::{Field, schema};
use crate::tokens::tokenizers;
use crate::{TextError, TextIndex};
use lodestone_types::RowId;

/// Only determines the initial size of the term table, 16 KiB: it grows as needed, and is allocated
/// for every segment, however small.
const MEMORY_BYTES: usize = 64 << 10;

const META: &str = "meta.json";
/// Every index is one segment, so a fixed name suffices, and it makes equal rows yield equal bytes.
const SEGMENT: &str = "00000000-0000-0000-0000-000000000001";

/// The searchable text of one row.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowText<'a> {
    /// The chunk's text.
    pub body: &'a str,
    /// The source's title; matched by hybrid search, not by full-text search.
    pub title: &'a str,
    /// Context above the chunk, such as headings; matched by hybrid search only.
    pub context: &'a str,
    /// Values of searchable metadata, one per line; matched by both searches.
    pub searchable: &'a str,
}

/// Builds a bundle from rows added in order.
pub struct TextIndexBuilder {
    writer: Option<SingleSegmentIndexWriter>,
    directory: RamDirectory,
    rows: u32,
}

impl Default for TextIndexBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl TextIndexBuilder {
    /// Creates a builder without rows.
    pub fn new() -> Self {
        Self { writer: None, directory: RamDirectory::create(), rows: 0 }
    }

    /// Adds the next row and returns its id.
    ///
    /// # Errors
    /// [`TextError::Write`] if the index library rejects it.
    pub fn add_row(&mut self, row: &RowText<'_>) -> Result<RowId, TextError> {
        let mut document = TantivyDocument::default();
        for (field, text) in [
            (Field::Body, row.title),
            (Field::Body, row.context),
            (Field::Body, row.body),
            (Field::Body, row.searchable),
            (Field::Title, row.title),
            (Field::Words, row.body),
            (Field::Words, row.searchable),
        ] {
            if !text.is_empty() {
                document.add_text(field.column(), text);
            }
        }
        if self.writer.is_none() {
            let builder = Index::builder().schema(schema()).settings(settings());
            let writer = builder
                .tokenizers(tokenizers())
                .single_segment_index_writer(self.directory.clone(), MEMORY_BYTES);
            self.writer = Some(writer.map_err(TextError::write)?);
        }
        let writer = self.writer.as_mut().expect("it was made just now");
        writer.add_document(document).map_err(TextError::write)?;
        self.rows += 1;
        Ok(RowId(self.rows - 1))
    }

    /// Number of rows added so far.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Builds the bundle of all rows; equal rows yield equal bytes.
    ///
    /// # Errors
    /// [`TextError::Write`] if the index library fails.
    pub fn finish(self) -> Result<TextBundle, TextError> {
        let Some(writer) = self.writer else { return Ok(TextBundle::new(0, BTreeMap::new())) };
        let index = writer.finalize().map_err(TextError::write)?;
        pack(self.rows, &index, &self.directory)
    }
}

fn settings() -> IndexSettings {
    IndexSettings {
        docstore_compression: Compressor::Lz4,
        // A store without contents does not need a thread.
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}

impl TextIndex {
    /// Merges the live rows of several indexes, in the given order, into one bundle; `None` means
    /// that all rows of a part are alive. Rows keep their order and field lengths, so scores do not
    /// change. The bundle is written to empty unnamed files supplied by `scratch`; memory use is
    /// some 30 bytes per merged row.
    ///
    /// # Errors
    /// [`TextError::Write`] if the index library or `scratch` fails.
    pub fn merge(
        parts: &[(&Self, Option<&RoaringBitmap>)],
        scratch: &dyn Fn() -> io::Result<File>,
    ) -> Result<TextBundle, TextError> {
        let (mut segments, mut filters, mut rows) = (Vec::new(), Vec::new(), 0);
        for (index, alive) in parts {
            let count = alive
                .map_or(u64::from(index.rows()), |alive| alive.range_cardinality(..index.rows()));
            let Some(segment) = index.segment().filter(|_| count > 0) else { continue };
            segments.push(segment.clone());
            filters.push(alive.map(|alive| alive_set(alive, index.rows())).transpose()?);
            rows += count;
        }
        let rows = u32::try_from(rows).map_err(|_| TextError::write("more than 2^32 rows"))?;
        if rows == 0 {
            return Ok(TextBundle::new(0, BTreeMap::new()));
        }
        let blank: io::Result<Vec<File>> = (0..INDEX_FILES_MAX).map(|_| scratch()).collect();
        let directory = IndexDirectory::on_disk(blank.map_err(TextError::write)?);
        let merged = merge_filtered_segments(&segments, settings(), filters, directory.clone())
            .map_err(TextError::write)?;
        pack(rows, &merged, &directory)
    }
}

fn alive_set(alive: &RoaringBitmap, rows: u32) -> Result<AliveBitSet, TextError> {
    let mut set = BitSet::with_max_value(rows);
    for row in alive.range(..rows) {
        set.insert(row);
    }
    let mut bytes = Vec::new();
    write_alive_bitset(&set, &mut bytes).map_err(TextError::write)?;
    Ok(AliveBitSet::open(OwnedBytes::new(bytes)))
}

fn pack(rows: u32, index: &Index, directory: &dyn Directory) -> Result<TextBundle, TextError> {
    let metas = index.load_metas().map_err(TextError::write)?;
    let [segment] = metas.segments.as_slice() else {
        return Err(TextError::write(format!("{} segments instead of one", metas.segments.len())));
    };
    assert_eq!(segment.max_doc(), rows, "every row is one document");
    let meta = FileSlice::from(plain_meta(directory)?);
    let mut files = BTreeMap::from([(META.to_owned(), meta)]);
    let own_name = segment.id().uuid_string();
    let name = SEGMENT.replace('-', "");
    for kind in ["fast", "fieldnorm", "idx", "pos", "store", "term"] {
        let data = directory.open_read(Path::new(&format!("{own_name}.{kind}")));
        files.insert(format!("{name}.{kind}"), data.map_err(TextError::write)?);
    }
    Ok(TextBundle::new(rows, files))
}

/// Returns the index library's metadata with the fixed segment name and without annotations.
fn plain_meta(directory: &dyn Directory) -> Result<Vec<u8>, TextError> {
    let meta = directory.atomic_read(Path::new(META)).map_err(TextError::write)?;
    let mut meta: serde_json::Value = serde_json::from_slice(&meta).map_err(TextError::write)?;
    meta["segments"][0]["segment_id"] = SEGMENT.into();
    if let Some(fields) = meta.as_object_mut() {
        fields.remove("payload");
    }
    serde_json::to_vec(&meta).map_err(TextError::write)
}
