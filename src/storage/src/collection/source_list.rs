//! Source lists: the sources of a segment with their row counts, stored apart from the segment to
//! tell what it held when it cannot be read. The list of a small segment in a bucket is part of its
//! manifest entry, which saves a request; any other list is a file of its own.
//!
//! `v1/c/<collection>/r/<segment>` is a sealed file ([`lodestone_io::sealed`]) with the first words
//! "lodestone sources 1". Its body is zstd-compressed JSON with the fields of [`StoredList`]. A
//! reader rejects a broken seal, a wrong collection or segment, and counts that differ from the
//! manifest. Descriptions are left out, because they are cut from the text. Rows are numbered
//! source by source, so counts are enough.

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
/// The number that ends [`FIRST_WORDS`].
pub(super) const FORMAT: u32 = 1;
/// The default level of zstd.
const LEVEL: i32 = 3;
/// Upper bound on the bytes of a list in the manifest, where every version repeats it until a merge
/// takes the segment: about four sources of plain texts. With the fifty segments of a large
/// collection that makes 100 KB per commit.
const SMALL_BYTES_MAX: usize = 2048;
/// Most sources for which a list is tried in the manifest.
const SMALL_SOURCES_MAX: u32 = 8;
/// Upper bound on the uncompressed body: two million sources of one chunk each, with metadata of
/// half a KiB.
const UNPACKED_BYTES_MAX: usize = 1 << 30;

#[derive(Serialize, Deserialize)]
struct StoredList {
    collection: Uuid,
    segment: Uuid,
    sources: Vec<StoredSource>,
}

/// The sources of a small segment, as stored in its manifest entry.
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

/// A source of the segment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ListedSource {
    /// The source's record, without the description.
    pub(super) record: SourceRecord,
    first_row: u32,
    rows: u32,
}

impl ListedSource {
    /// Row numbers of the source.
    pub(super) fn rows(&self) -> std::ops::Range<u32> {
        self.first_row..self.first_row + self.rows
    }
}

/// A decoded source list.
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

    /// Derives the list from an open segment.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if a record is invalid or rows are out of order.
    pub(super) fn of(segment: &Segment) -> Result<Self, SegmentError> {
        Ok(Self::new(records(segment).collect::<Result<_, _>>()?))
    }

    /// Derives the list of a segment if it is short enough for a manifest; `None` otherwise.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) fn small_of(segment: &Segment) -> Result<Option<SmallList>, SegmentError> {
        if segment.source_count() > SMALL_SOURCES_MAX {
            return Ok(None);
        }
        let stored = records(segment).map(|one| one.map(StoredSource::of));
        let list = SmallList(stored.collect::<Result<_, _>>()?);
        let bytes = serde_json::to_vec(&list).expect("plain data always prints").len();
        Ok((bytes <= SMALL_BYTES_MAX).then_some(list))
    }

    /// Decodes a list that is stored in its segment's entry.
    ///
    /// # Errors
    /// The broken rule.
    pub(super) fn of_small(list: &SmallList, entry: &SegmentEntry) -> Result<Self, String> {
        Self::of_stored(list.0.clone(), entry)
    }

    /// The sources, as the segment numbers them.
    pub(super) fn sources(&self) -> &[ListedSource] {
        &self.sources
    }

    /// Finds the position of a source.
    pub(super) fn find(&self, sub_tenant: &str, id: &str) -> Option<u32> {
        self.by_key.get(&(sub_tenant.to_owned(), id.to_owned())).copied()
    }

    /// Encodes the file for an open segment. Records are decoded one at a time, because decoded
    /// metadata take many times their stored size.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) fn file_of(
        segment: &Segment,
        collection: CollectionId,
    ) -> Result<Vec<u8>, SegmentError> {
        sealed_list(collection, segment.id(), records(segment))
    }

    /// Encodes the file for this list.
    #[cfg(test)]
    pub(super) fn encode(&self, collection: CollectionId, segment: SegmentId) -> Vec<u8> {
        let records = self.sources.iter().map(|one| Ok((one.record.clone(), one.rows)));
        sealed_list(collection, segment, records).expect("no record is read from a segment")
    }

    /// The format number of a list that a later release has written.
    pub(super) fn later_format(bytes: &[u8]) -> Option<u32> {
        sealed::later_format(FIRST_WORDS, bytes)
    }

    /// Decodes the file of the segment that `entry` lists.
    ///
    /// # Errors
    /// The broken rule.
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

/// The records of an open segment, without descriptions, with their row counts.
pub(super) fn records(
    segment: &Segment,
) -> impl Iterator<Item = Result<(SourceRecord, u32), SegmentError>> {
    let mut next_row = 0;
    (0..segment.source_count()).map(move |source| {
        let rows = segment.rows_of(source);
        if rows.iter().copied().ne(next_row..next_row + rows.len() as u32) {
            let problem = format!("the rows of source {source} do not follow each other");
            return Err(segment.damaged(problem));
        }
        next_row += rows.len() as u32;
        let record = SourceRecord { description: String::new(), ..segment.record(source)? };
        Ok((record, rows.len() as u32))
    })
}

/// Encodes the file of a list, source by source.
fn sealed_list(
    collection: CollectionId,
    segment: SegmentId,
    records: impl Iterator<Item = Result<(SourceRecord, u32), SegmentError>>,
) -> Result<Vec<u8>, SegmentError> {
    let empty = StoredList { collection: collection.0, segment: segment.0, sources: Vec::new() };
    let mut json = serde_json::to_vec(&empty).expect("plain data always prints");
    // The sources are the last field; their array ends before the last two bytes.
    let end = json.split_off(json.len() - 2);
    for (at, record) in records.enumerate() {
        if at > 0 {
            json.push(b',');
        }
        serde_json::to_writer(&mut json, &StoredSource::of(record?)).expect("memory takes bytes");
    }
    json.extend(end);
    let body = zstd::bulk::compress(&json, LEVEL).expect("zstd packs any bytes");
    Ok(sealed::seal(FIRST_WORDS, &body))
}

/// Decompresses a body of at most `bytes_max` bytes; of a longer one no more than that is read.
fn unpack(body: &[u8], bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut json = Vec::new();
    zstd::stream::Decoder::new(body)?.take(bytes_max as u64 + 1).read_to_end(&mut json)?;
    match json.len() > bytes_max {
        true => Err(io::Error::other("it unpacks to too much")),
        false => Ok(json),
    }
}

impl StoredSource {
    fn of((record, rows): (SourceRecord, u32)) -> Self {
        Self {
            rows,
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
