//! Source records of a segment: an rkyv archive, checked when it is opened, with each record
//! checked again when it is read.
//!
//! Metadata maps are stored as JSON; the filter columns hold them in searchable form. Details of
//! application records have a section of their own, which segments without such records omit.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::mem::offset_of;
use std::path::Path;
use std::sync::OnceLock;

use bytes::Bytes;
use rkyv::Portable;
use rkyv::api::high::HighValidator;
use rkyv::bytecheck::CheckBytes;
use rkyv::primitive::ArchivedU64;
use rkyv::string::ArchivedString;
use rkyv::util::AlignedVec;

use crate::segment::SegmentError;
use lodestone_io::Archive;
use lodestone_types::{
    Metadata, Sequence, SourceDetail, SourceId, SourceKind, SourceRecord, SubTenantId, Timestamp,
};

#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct StoredSources {
    records: Vec<StoredSource>,
    /// Positions ordered by (sub-tenant, id), for binary search.
    by_key: Vec<u32>,
}

#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct StoredSource {
    sub_tenant: String,
    id: String,
    kind: String,
    title: String,
    description: String,
    filename: String,
    url: String,
    content_type: String,
    size_bytes: u64,
    tenant_metadata: String,
    document_metadata: String,
    uploaded_at: u64,
    last_updated_at: u64,
    version: u32,
    sequence: u64,
    raw_key: String,
}

/// Details of the sources that have any, as stored.
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct StoredDetails {
    /// Positions of the sources, ascending.
    sources: Vec<u32>,
    /// The fields of [`SourceDetail`] as JSON.
    details: Vec<String>,
}

impl StoredSource {
    fn of(record: &SourceRecord) -> Self {
        let SourceRecord {
            sub_tenant,
            id,
            kind,
            title,
            description,
            filename,
            url,
            content_type,
            size_bytes,
            tenant_metadata,
            document_metadata,
            uploaded_at,
            last_updated_at,
            version,
            sequence,
            raw_key,
            detail: _,
        } = record;
        let json = |map: &Metadata| match map.is_empty() {
            true => String::new(),
            false => serde_json::to_string(map).expect("a JSON map always prints"),
        };
        Self {
            sub_tenant: sub_tenant.as_str().to_owned(),
            id: id.as_str().to_owned(),
            kind: kind.as_str().to_owned(),
            title: title.clone(),
            description: description.clone(),
            filename: filename.clone(),
            url: url.clone(),
            content_type: content_type.clone(),
            size_bytes: *size_bytes,
            tenant_metadata: json(tenant_metadata),
            document_metadata: json(document_metadata),
            uploaded_at: uploaded_at.0,
            last_updated_at: last_updated_at.0,
            version: *version,
            sequence: sequence.0,
            raw_key: raw_key.clone(),
        }
    }
}

/// Encodes the section of records, and that of details if a source has any.
///
/// # Errors
/// The first error of `records`.
pub(super) fn encode<'a>(
    records: impl Iterator<Item = Result<Cow<'a, SourceRecord>, SegmentError>>,
) -> Result<(AlignedVec, Option<AlignedVec>), SegmentError> {
    let (mut stored, mut sources, mut details) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        let record = record?;
        if !record.detail.is_empty() {
            sources.push(stored.len() as u32);
            let json = serde_json::to_string(&record.detail).expect("plain data always prints");
            details.push(json);
        }
        stored.push(StoredSource::of(&record));
    }
    let mut by_key: Vec<u32> = (0..stored.len() as u32).collect();
    by_key.sort_unstable_by_key(|at| {
        let record = &stored[*at as usize];
        (&record.sub_tenant, &record.id)
    });
    let details =
        (!sources.is_empty()).then(|| lodestone_io::encode(&StoredDetails { sources, details }));
    Ok((lodestone_io::encode(&StoredSources { records: stored, by_key }), details))
}

/// The two sections, read in place. If the file becomes unreadable after it was opened, an affected
/// source has an empty name and its record is an error.
#[derive(Debug)]
pub(super) struct SourceTable {
    sources: Archive<StoredSources>,
    count: u32,
    /// Byte position of the first record in the archive.
    records_at: usize,
    /// Positions ordered by (sub-tenant, id).
    by_key: Vec<u32>,
    /// Positions ordered by sub-tenant, then newest upload first. Built by the first listing.
    by_time: OnceLock<Vec<u32>>,
    details: Option<DetailTable>,
}

/// Details of the sources that have any, read in place.
#[derive(Debug)]
struct DetailTable {
    details: Archive<StoredDetails>,
    sources: Vec<u32>,
    /// Byte position of the first detail in the archive.
    details_at: usize,
}

impl SourceTable {
    /// Checks the archives, their counts, their names and their order.
    pub(super) fn open(
        bytes: Bytes,
        details: Option<Bytes>,
        path: &Path,
        sources: u32,
    ) -> Result<Self, String> {
        let archive = Archive::<StoredSources>::new(bytes);
        let stored = archive.check(path).map_err(|error| error.to_string())?;
        if stored.records.len() != sources as usize || stored.by_key.len() != sources as usize {
            return Err("the source section has another count".into());
        }
        let by_key: Vec<u32> = stored.by_key.iter().map(|at| at.to_native()).collect();
        if by_key.iter().any(|at| *at >= sources) {
            return Err("the order of the sources names one that is not there".into());
        }
        let key = |at: &u32| {
            let stored = &stored.records[*at as usize];
            (stored.sub_tenant.as_str(), stored.id.as_str())
        };
        if !by_key.is_sorted_by(|a, b| key(a) < key(b)) {
            return Err("the sources are not in order".into());
        }
        let records_at = archive.position_of(stored.records.as_ptr());
        let details = details.map(|bytes| DetailTable::open(bytes, path, sources)).transpose()?;
        let by_time = OnceLock::new();
        Ok(Self { sources: archive, count: sources, records_at, by_key, by_time, details })
    }

    /// Reads the field at byte `offset` of a record.
    fn part<P>(&self, source: u32, offset: usize) -> Option<&P>
    where
        P: Portable + for<'a> CheckBytes<HighValidator<'a, rkyv::rancor::Error>>,
    {
        let record = self.records_at + source as usize * size_of::<ArchivedStoredSource>();
        (source < self.count).then(|| self.sources.part(record + offset)).flatten()
    }

    fn text(&self, source: u32, offset: usize) -> &str {
        self.part::<ArchivedString>(source, offset).map_or("", ArchivedString::as_str)
    }

    fn number(&self, source: u32, offset: usize) -> u64 {
        self.part::<ArchivedU64>(source, offset).map_or(0, |number| number.to_native())
    }

    /// Sub-tenant and id of a source.
    pub(super) fn key(&self, source: u32) -> (&str, &str) {
        let sub_tenant = self.text(source, offset_of!(ArchivedStoredSource, sub_tenant));
        (sub_tenant, self.text(source, offset_of!(ArchivedStoredSource, id)))
    }

    /// The operation that created a source.
    pub(super) fn sequence(&self, source: u32) -> Sequence {
        Sequence(self.number(source, offset_of!(ArchivedStoredSource, sequence)))
    }

    /// Time of a source's last update at its origin.
    pub(super) fn last_updated_at(&self, source: u32) -> Timestamp {
        Timestamp(self.number(source, offset_of!(ArchivedStoredSource, last_updated_at)))
    }

    /// Upload time of a source.
    pub(super) fn uploaded_at(&self, source: u32) -> Timestamp {
        Timestamp(self.number(source, offset_of!(ArchivedStoredSource, uploaded_at)))
    }

    /// The sources of a sub-tenant: newest upload first, ties by id.
    pub(super) fn newest_first(&self, sub_tenant: &str) -> &[u32] {
        let order = self.by_time.get_or_init(|| {
            let mut order = self.by_key.clone();
            for part in order.chunk_by_mut(|a, b| self.key(*a).0 == self.key(*b).0) {
                // The sort is stable, so sources uploaded at the same time stay in id order.
                part.sort_by_key(|source| Reverse(self.uploaded_at(*source)));
            }
            order
        });
        let start = self.by_key.partition_point(|at| self.key(*at).0 < sub_tenant);
        let end = self.by_key.partition_point(|at| self.key(*at).0 <= sub_tenant);
        order.get(start..end).unwrap_or_default()
    }

    /// Finds the position of a source.
    pub(super) fn find(&self, sub_tenant: &str, id: &str) -> Option<u32> {
        let at = self.by_key.partition_point(|at| self.key(*at) < (sub_tenant, id));
        let source = *self.by_key.get(at)?;
        (self.key(source) == (sub_tenant, id)).then_some(source)
    }

    /// Decodes the whole record.
    pub(super) fn record(&self, source: u32) -> Result<SourceRecord, String> {
        let stored: &ArchivedStoredSource = self.part(source, 0).ok_or("a source is not there")?;
        let map = |json: &str| match json.is_empty() {
            true => Ok(Metadata::new()),
            false => serde_json::from_str(json).map_err(|error| error.to_string()),
        };
        let name = |error: lodestone_types::id::InvalidIdentifier| error.to_string();
        Ok(SourceRecord {
            sub_tenant: SubTenantId::parse_stored(&stored.sub_tenant).map_err(name)?,
            id: SourceId::parse(&stored.id).map_err(name)?,
            kind: SourceKind::from_word(&stored.kind).ok_or("unknown kind of source")?,
            title: stored.title.to_string(),
            description: stored.description.to_string(),
            filename: stored.filename.to_string(),
            url: stored.url.to_string(),
            content_type: stored.content_type.to_string(),
            size_bytes: stored.size_bytes.to_native(),
            tenant_metadata: map(&stored.tenant_metadata)?,
            document_metadata: map(&stored.document_metadata)?,
            uploaded_at: Timestamp(stored.uploaded_at.to_native()),
            last_updated_at: Timestamp(stored.last_updated_at.to_native()),
            version: stored.version.to_native(),
            sequence: Sequence(stored.sequence.to_native()),
            raw_key: stored.raw_key.to_string(),
            detail: self
                .details
                .as_ref()
                .map_or(Ok(SourceDetail::default()), |details| details.of(source))?,
        })
    }
}

impl DetailTable {
    fn open(bytes: Bytes, path: &Path, sources: u32) -> Result<Self, String> {
        let archive = Archive::<StoredDetails>::new(bytes);
        let stored = archive.check(path).map_err(|error| error.to_string())?;
        let with_detail: Vec<u32> = stored.sources.iter().map(|at| at.to_native()).collect();
        let is_in_order = with_detail.is_sorted_by(|a, b| a < b);
        let is_within = with_detail.last().is_some_and(|last| *last < sources);
        if !is_in_order || !is_within || with_detail.len() != stored.details.len() {
            return Err("the section of details does not fit the sources".into());
        }
        let details_at = archive.position_of(stored.details.as_ptr());
        Ok(Self { details: archive, sources: with_detail, details_at })
    }

    fn of(&self, source: u32) -> Result<SourceDetail, String> {
        let Ok(at) = self.sources.binary_search(&source) else {
            return Ok(SourceDetail::default());
        };
        let position = self.details_at + at * size_of::<ArchivedString>();
        let detail =
            self.details.part::<ArchivedString>(position).ok_or("a detail is not there")?;
        serde_json::from_str(detail).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> StoredSources {
        let of = |sub_tenant: &str, id: &str| {
            let kind = SourceKind::File;
            let (sub_tenant, id) = (SubTenantId::parse(sub_tenant), SourceId::parse(id));
            StoredSource::of(&SourceRecord::new(
                sub_tenant.unwrap(),
                id.unwrap(),
                kind,
                Sequence(1),
                Timestamp(2),
            ))
        };
        let records = vec![of("b", "x"), of("a", "y"), of("a", "x")];
        StoredSources { records, by_key: vec![2, 1, 0] }
    }

    fn open(
        sources: &StoredSources,
        details: Option<&StoredDetails>,
    ) -> Result<SourceTable, String> {
        let bytes = Bytes::from_owner(lodestone_io::encode(sources));
        let details = details.map(|details| Bytes::from_owner(lodestone_io::encode(details)));
        SourceTable::open(bytes, details, Path::new("s"), 3)
    }

    #[test]
    fn an_order_that_is_not_that_of_the_names_is_refused() {
        let table = open(&stored(), None).unwrap();
        assert_eq!((table.find("a", "y"), table.find("b", "y")), (Some(1), None));
        assert!(table.record(3).is_err());
        let (count, order) =
            ("the source section has another count", "the sources are not in order");
        let unknown = "the order of the sources names one that is not there";
        for (by_key, rule) in [
            (vec![2, 1], count),
            (vec![2, 1, 0, 0], count),
            (vec![2, 1, 3], unknown),
            (vec![1, 2, 0], order),
            (vec![2, 2, 0], order),
        ] {
            assert_eq!(open(&StoredSources { by_key, ..stored() }, None).err().unwrap(), rule);
        }
        let mut twice = stored();
        twice.records[1].id = "x".into();
        assert_eq!(open(&twice, None).err().unwrap(), order);
        twice.records.pop();
        assert_eq!(open(&twice, None).err().unwrap(), count);
    }

    #[test]
    fn details_that_do_not_fit_the_sources_are_refused() {
        let details = |sources: &[u32], count: usize| {
            let details = vec![r#"{"note":"n"}"#.to_owned(); count];
            open(&stored(), Some(&StoredDetails { sources: sources.to_vec(), details }))
        };
        let table = details(&[0, 2], 2).unwrap();
        let note = |source| table.record(source).unwrap().detail.note;
        assert_eq!([note(0), note(1), note(2)], ["n", "", "n"]);
        for (sources, count) in
            [(&[2, 0][..], 2), (&[1, 1], 2), (&[0, 3], 2), (&[0, 2], 1), (&[], 0)]
        {
            let rule = "the section of details does not fit the sources";
            assert_eq!(details(sources, count).err().unwrap(), rule, "{sources:?}");
        }
    }

    #[test]
    fn a_record_that_is_none_is_refused_when_it_is_read() {
        let read = |change: fn(&mut StoredSource)| {
            let mut sources = stored();
            change(&mut sources.records[0]);
            open(&sources, None).unwrap().record(0).err().unwrap()
        };
        assert_eq!(read(|source| source.kind = "tape".into()), "unknown kind of source");
        assert!(read(|source| source.tenant_metadata = "[]".into()).contains("expected a map"));
        assert!(read(|source| source.document_metadata = "{".into()).contains("EOF"));
        assert!(read(|source| source.sub_tenant = "c c".into()).contains("sub"));
        let details = StoredDetails { sources: vec![0], details: vec!["7".into()] };
        let table = open(&stored(), Some(&details)).unwrap();
        assert!(table.record(0).unwrap_err().contains("expected"), "{:?}", table.record(0));
    }
}
