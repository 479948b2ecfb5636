//! The sources of one segment with their numbers of rows, apart from it: when the segment cannot be
//! read, this list says what it held. Of a small segment in a bucket it is in the manifest's entry,
//! which spares a request; else it is a second file.
//!
//! `v1/c/<collection>/r/<segment>` is a sealed file ([`lodestone_io::sealed`]) of the words
//! "lodestone sources 1". Its body is zstd of JSON: the fields of [`StoredList`]. A reader rejects
//! a broken seal, another collection or segment, and counts other than those of the manifest.
//! Descriptions are left out: they are cut from the text. Rows are numbered by source, one source
//! after the other, so counts are enough.

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::collection::SegmentEntry;
use crate::segment::{Segment, SegmentError};
use lodestone_io::sealed;
use lodestone_types::{
    CollectionId, Metadata, SegmentId, Sequence, SourceDetail, SourceId, SourceKind, SourceRecord,
    SubTenantId, Timestamp,
};

const FIRST_WORDS: &str = "lodestone sources 1";
/// The number at their end.
pub(super) const FORMAT: u32 = 1;
/// zstd's own default.
const LEVEL: i32 = 3;
/// Bytes of a list in the manifest at most, which has it in every version until a merge takes the
/// segment: some four sources of plain texts. With the fifty segments of a large collection that is
/// 100 KB for each commit.
const SMALL_BYTES_MAX: usize = 2048;
/// Sources that can be so short at most.
const SMALL_SOURCES_MAX: u32 = 8;
/// Bytes of an unpacked body at most: two million sources of one chunk each, with metadata of half
/// a KiB.
const UNPACKED_BYTES_MAX: usize = 1 << 30;

#[derive(Serialize, Deserialize)]
struct StoredList {
    collection: Uuid,
    segment: Uuid,
    sources: Vec<StoredSource>,
}

/// The sources of a small segment, in its entry of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SmallList(Vec<StoredSource>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredSource {
    rows: u32,
    sub_tenant: String,
    id: String,
    kind: String,
    title: String,
    filename: String,
    url: String,
    content_type: String,
    size_bytes: u64,
    tenant_metadata: Metadata,
    document_metadata: Metadata,
    uploaded_at: u64,
    last_updated_at: u64,
    version: u32,
    sequence: u64,
    raw_key: String,
    #[serde(default, skip_serializing_if = "SourceDetail::is_empty")]
    detail: SourceDetail,
}

/// One source of a segment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ListedSource {
    /// Its record, without the description.
    pub(super) record: SourceRecord,
    first_row: u32,
    rows: u32,
}

impl ListedSource {
    /// The rows of the source.
    pub(super) fn rows(&self) -> std::ops::Range<u32> {
        self.first_row..self.first_row + self.rows
    }
}

/// The list; see the module.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SourceList {
    sources: Vec<ListedSource>,
    by_key: BTreeMap<(String, String), u32>,
}

impl SourceList {
    fn new(sources: Vec<(SourceRecord, u32)>) -> Self {
        let mut listed = Vec::with_capacity(sources.len());
        let mut by_key = BTreeMap::new();
        let mut first_row = 0;
        for (at, (record, rows)) in sources.into_iter().enumerate() {
            let key = (record.sub_tenant.as_str().to_owned(), record.id.as_str().to_owned());
            by_key.insert(key, at as u32);
            listed.push(ListedSource { record, first_row, rows });
            first_row += rows;
        }
        Self { sources: listed, by_key }
    }

    /// The list of an open segment.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] where a record is not valid or rows are not in order.
    pub(super) fn of(segment: &Segment) -> Result<Self, SegmentError> {
        let mut sources = Vec::with_capacity(segment.source_count() as usize);
        let mut next_row = 0;
        for source in 0..segment.source_count() {
            let rows = segment.rows_of(source);
            if rows.iter().copied().ne(next_row..next_row + rows.len() as u32) {
                let problem = format!("the rows of source {source} do not follow each other");
                return Err(segment.damaged(problem));
            }
            next_row += rows.len() as u32;
            let record = SourceRecord { description: String::new(), ..segment.record(source)? };
            sources.push((record, rows.len() as u32));
        }
        Ok(Self::new(sources))
    }

    /// The list of a segment, where it is short enough for a manifest.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) fn small_of(segment: &Segment) -> Result<Option<SmallList>, SegmentError> {
        if segment.source_count() > SMALL_SOURCES_MAX {
            return Ok(None);
        }
        let list = SmallList(Self::of(segment)?.stored());
        let bytes = serde_json::to_vec(&list).expect("plain data always prints").len();
        Ok((bytes <= SMALL_BYTES_MAX).then_some(list))
    }

    /// Reads a list that is in the entry of its segment.
    ///
    /// # Errors
    /// The rule that is broken.
    pub(super) fn of_small(list: &SmallList, entry: &SegmentEntry) -> Result<Self, String> {
        Self::of_stored(list.0.clone(), entry)
    }

    fn stored(&self) -> Vec<StoredSource> {
        self.sources.iter().map(StoredSource::of).collect()
    }

    /// The sources, as the segment numbers them.
    pub(super) fn sources(&self) -> &[ListedSource] {
        &self.sources
    }

    /// The position of a source.
    pub(super) fn find(&self, sub_tenant: &str, id: &str) -> Option<u32> {
        self.by_key.get(&(sub_tenant.to_owned(), id.to_owned())).copied()
    }

    /// The file's bytes.
    pub(super) fn encode(&self, collection: CollectionId, segment: SegmentId) -> Vec<u8> {
        let sources = self.stored();
        let stored = StoredList { collection: collection.0, segment: segment.0, sources };
        let json = serde_json::to_vec(&stored).expect("plain data always prints");
        let body = zstd::bulk::compress(&json, LEVEL).expect("zstd packs any bytes");
        sealed::seal(FIRST_WORDS, &body)
    }

    /// The format of a list, where a later release has written it.
    pub(super) fn later_format(bytes: &[u8]) -> Option<u32> {
        sealed::later_format(FIRST_WORDS, bytes)
    }

    /// Reads the file of the segment that `entry` lists.
    ///
    /// # Errors
    /// The rule that is broken.
    pub(super) fn decode(
        bytes: &[u8],
        collection: CollectionId,
        entry: &SegmentEntry,
    ) -> Result<Self, String> {
        let body = sealed::open(FIRST_WORDS, bytes)?;
        let json = unpack(body, UNPACKED_BYTES_MAX).map_err(|error| error.to_string())?;
        let stored: StoredList =
            serde_json::from_slice(&json).map_err(|error| error.to_string())?;
        if (stored.collection, stored.segment) != (collection.0, entry.id) {
            return Err("it belongs to another collection or segment".to_owned());
        }
        Self::of_stored(stored.sources, entry)
    }

    fn of_stored(stored: Vec<StoredSource>, entry: &SegmentEntry) -> Result<Self, String> {
        let sources: Result<Vec<_>, String> =
            stored.into_iter().map(StoredSource::into_record).collect();
        let sources = sources?;
        let rows: u64 = sources.iter().map(|(_, rows)| u64::from(*rows)).sum();
        if (rows, sources.len()) != (u64::from(entry.rows), entry.sources as usize) {
            return Err("it counts other rows or sources than the manifest".to_owned());
        }
        Ok(Self::new(sources))
    }
}

/// Unpacks a body of `bytes_max` bytes at most; of a longer one no more than that is read.
fn unpack(body: &[u8], bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut json = Vec::new();
    zstd::stream::Decoder::new(body)?.take(bytes_max as u64 + 1).read_to_end(&mut json)?;
    match json.len() > bytes_max {
        true => Err(io::Error::other("it unpacks to too much")),
        false => Ok(json),
    }
}

impl StoredSource {
    fn of(listed: &ListedSource) -> Self {
        let record = listed.record.clone();
        Self {
            rows: listed.rows,
            sub_tenant: record.sub_tenant.to_string(),
            id: record.id.to_string(),
            kind: record.kind.as_str().to_owned(),
            title: record.title,
            filename: record.filename,
            url: record.url,
            content_type: record.content_type,
            size_bytes: record.size_bytes,
            tenant_metadata: record.tenant_metadata,
            document_metadata: record.document_metadata,
            uploaded_at: record.uploaded_at.0,
            last_updated_at: record.last_updated_at.0,
            version: record.version,
            sequence: record.sequence.0,
            raw_key: record.raw_key,
            detail: record.detail,
        }
    }

    fn into_record(self) -> Result<(SourceRecord, u32), String> {
        let name = |error: lodestone_types::id::InvalidIdentifier| error.to_string();
        let record = SourceRecord {
            sub_tenant: SubTenantId::parse_stored(&self.sub_tenant).map_err(name)?,
            id: SourceId::parse(&self.id).map_err(name)?,
            kind: SourceKind::from_word(&self.kind).ok_or("unknown kind of source")?,
            title: self.title,
            description: String::new(),
            filename: self.filename,
            url: self.url,
            content_type: self.content_type,
            size_bytes: self.size_bytes,
            tenant_metadata: self.tenant_metadata,
            document_metadata: self.document_metadata,
            uploaded_at: Timestamp(self.uploaded_at),
            last_updated_at: Timestamp(self.last_updated_at),
            version: self.version,
            sequence: Sequence(self.sequence),
            raw_key: self.raw_key,
            detail: self.detail,
        };
        Ok((record, self.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::SegmentMeta;

    fn sample() -> (CollectionId, SegmentEntry, SourceList) {
        let record = |id: &str, sequence| SourceRecord {
            sub_tenant: SubTenantId::parse("s").unwrap(),
            id: SourceId::parse(id).unwrap(),
            kind: SourceKind::File,
            title: "A title".into(),
            description: String::new(),
            filename: "a.pdf".into(),
            url: String::new(),
            content_type: "application/pdf".into(),
            size_bytes: 12,
            tenant_metadata: serde_json::json!({"team": "red"}).as_object().unwrap().clone(),
            document_metadata: Metadata::new(),
            uploaded_at: Timestamp(7),
            last_updated_at: Timestamp(8),
            version: 3,
            sequence: Sequence(sequence),
            raw_key: "v1/raw/x".into(),
            detail: SourceDetail { note: "n".into(), ..SourceDetail::default() },
        };
        let list = SourceList::new(vec![(record("b", 4), 2), (record("a", 5), 0)]);
        let id = Uuid::from_u128(9);
        let meta = SegmentMeta { id: SegmentId(id), bytes: 1, rows: 2, sources: 2, checksum: 1 };
        let entry = SegmentEntry::fresh(&meta, None);
        (CollectionId(Uuid::from_u128(7)), entry, list)
    }

    #[test]
    fn a_list_reads_back_and_any_changed_byte_is_noticed() {
        let (collection, entry, list) = sample();
        let bytes = list.encode(collection, SegmentId(entry.id));
        assert_eq!(SourceList::decode(&bytes, collection, &entry).unwrap(), list);
        assert_eq!(list.sources()[0].rows(), 0..2);
        assert_eq!((list.find("s", "a"), list.find("t", "a")), (Some(1), None));
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 1;
            assert!(SourceList::decode(&bad, collection, &entry).is_err(), "byte {position}");
            assert!(SourceList::decode(&bytes[..position], collection, &entry).is_err());
        }
    }

    #[test]
    fn a_body_is_unpacked_to_its_limit_and_no_further() {
        let body = zstd::bulk::compress(&[b' '; 5000], LEVEL).unwrap();
        assert_eq!(unpack(&body, 5000).unwrap().len(), 5000);
        assert_eq!(unpack(&body, 4999).unwrap_err().to_string(), "it unpacks to too much");
    }

    #[test]
    fn a_list_of_another_segment_is_refused() {
        let (collection, entry, list) = sample();
        let bytes = list.encode(collection, SegmentId(entry.id));
        let others = [
            SegmentEntry { id: Uuid::nil(), ..entry.clone() },
            SegmentEntry { rows: 3, ..entry.clone() },
            SegmentEntry { sources: 1, ..entry.clone() },
        ];
        for other in others {
            assert!(SourceList::decode(&bytes, collection, &other).is_err());
        }
        assert!(SourceList::decode(&bytes, CollectionId(Uuid::nil()), &entry).is_err());
    }
}
