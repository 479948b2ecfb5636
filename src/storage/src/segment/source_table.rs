//! Source records as a segment keeps them: an rkyv archive, checked once on open.
//!
//! Metadata maps are kept as the JSON that the client sent; the filter columns hold them in a form
//! that can be searched. Details of records of applications are in a section of their own, which
//! segments without such records do not have.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::OnceLock;

use bytes::Bytes;
use rkyv::util::AlignedVec;

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

/// Details of the sources that have any.
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct StoredDetails {
    /// Positions, ascending.
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

/// The section's bytes.
pub(super) fn encode<'a>(records: impl Iterator<Item = &'a SourceRecord>) -> AlignedVec {
    let records: Vec<StoredSource> = records.map(StoredSource::of).collect();
    let mut by_key: Vec<u32> = (0..records.len() as u32).collect();
    by_key.sort_unstable_by_key(|at| {
        let record = &records[*at as usize];
        (&record.sub_tenant, &record.id)
    });
    lodestone_io::encode(&StoredSources { records, by_key })
}

/// The bytes of the details' section; nothing where no source has any.
pub(super) fn encode_details<'a>(
    records: impl Iterator<Item = &'a SourceRecord>,
) -> Option<AlignedVec> {
    let with_detail = records.zip(0_u32..).filter(|(record, _)| !record.detail.is_empty());
    let json = |detail| serde_json::to_string(detail).expect("plain data always prints");
    let (sources, details): (Vec<u32>, Vec<String>) =
        with_detail.map(|(record, at)| (at, json(&record.detail))).unzip();
    (!sources.is_empty()).then(|| lodestone_io::encode(&StoredDetails { sources, details }))
}

/// The sections, read in place.
#[derive(Debug)]
pub(super) struct SourceTable {
    sources: Archive<StoredSources>,
    /// The order of `by_key`, but within a sub-tenant by upload, newest first. Made by the first
    /// listing.
    by_time: OnceLock<Vec<u32>>,
    details: Option<Archive<StoredDetails>>,
}

impl SourceTable {
    /// Checks the archives, their counts, their names and their order.
    pub(super) fn open(
        bytes: Bytes,
        details: Option<Bytes>,
        path: &Path,
        sources: u32,
    ) -> Result<Self, String> {
        let archive =
            Archive::<StoredSources>::open(bytes, path).map_err(|error| error.to_string())?;
        let details = details.map(|bytes| open_details(bytes, path, sources)).transpose()?;
        let table = Self { sources: archive, by_time: OnceLock::new(), details };
        let stored = table.sources.get();
        if stored.records.len() != sources as usize || stored.by_key.len() != sources as usize {
            return Err("the source section has another count".into());
        }
        if stored.by_key.iter().any(|at| at.to_native() >= sources) {
            return Err("the order of the sources names one that is not there".into());
        }
        let keys = || stored.by_key.iter().map(|at| table.key(at.to_native()));
        if keys().zip(keys().skip(1)).any(|(a, b)| a >= b) {
            return Err("the sources are not in order".into());
        }
        Ok(table)
    }

    fn stored(&self, source: u32) -> &ArchivedStoredSource {
        &self.sources.get().records[source as usize]
    }

    /// Sub-tenant and id of a source.
    pub(super) fn key(&self, source: u32) -> (&str, &str) {
        let stored = self.stored(source);
        (&stored.sub_tenant, &stored.id)
    }

    /// The operation that made a source.
    pub(super) fn sequence(&self, source: u32) -> Sequence {
        Sequence(self.stored(source).sequence.to_native())
    }

    /// When a source was last updated at its origin.
    pub(super) fn last_updated_at(&self, source: u32) -> Timestamp {
        Timestamp(self.stored(source).last_updated_at.to_native())
    }

    /// When a source was uploaded.
    pub(super) fn uploaded_at(&self, source: u32) -> Timestamp {
        Timestamp(self.stored(source).uploaded_at.to_native())
    }

    /// The sources of a sub-tenant: newest upload first, then by id.
    pub(super) fn newest_first(&self, sub_tenant: &str) -> &[u32] {
        let by_key = &self.sources.get().by_key;
        let order = self.by_time.get_or_init(|| {
            let mut order: Vec<u32> = by_key.iter().map(|at| at.to_native()).collect();
            for part in order.chunk_by_mut(|a, b| self.key(*a).0 == self.key(*b).0) {
                // Stable, so what was uploaded at the same time stays in the order of ids.
                part.sort_by_key(|source| Reverse(self.uploaded_at(*source)));
            }
            order
        });
        let start = by_key.partition_point(|at| self.key(at.to_native()).0 < sub_tenant);
        let end = by_key.partition_point(|at| self.key(at.to_native()).0 <= sub_tenant);
        &order[start..end]
    }

    /// The position of a source.
    pub(super) fn find(&self, sub_tenant: &str, id: &str) -> Option<u32> {
        let by_key = &self.sources.get().by_key;
        let at = by_key.partition_point(|at| self.key(at.to_native()) < (sub_tenant, id));
        let source = by_key.get(at)?.to_native();
        (self.key(source) == (sub_tenant, id)).then_some(source)
    }

    fn detail(&self, source: u32) -> Result<SourceDetail, String> {
        let Some(stored) = self.details.as_ref().map(Archive::get) else {
            return Ok(SourceDetail::default());
        };
        match stored.sources.binary_search_by_key(&source, |at| at.to_native()) {
            Ok(at) => serde_json::from_str(&stored.details[at]).map_err(|error| error.to_string()),
            Err(_) => Ok(SourceDetail::default()),
        }
    }

    /// The whole record.
    pub(super) fn record(&self, source: u32) -> Result<SourceRecord, String> {
        let stored = self.stored(source);
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
            detail: self.detail(source)?,
        })
    }
}

fn open_details(bytes: Bytes, path: &Path, sources: u32) -> Result<Archive<StoredDetails>, String> {
    let archive = Archive::<StoredDetails>::open(bytes, path).map_err(|error| error.to_string())?;
    let stored = archive.get();
    let is_in_order = stored.sources.windows(2).all(|pair| pair[0] < pair[1]);
    let is_within = stored.sources.last().is_some_and(|last| last.to_native() < sources);
    if !is_in_order || !is_within || stored.sources.len() != stored.details.len() {
        return Err("the section of details does not fit the sources".into());
    }
    Ok(archive)
}
