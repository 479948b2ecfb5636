//! Writes an archive.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lodestone_io::store::{BlobStore, DeletionHold};
use lodestone_io::{Fullness, SpaceGauge};
use lodestone_storage::collection::{FoundSource, Snapshot, uploads};
use lodestone_types::{
    CollectionId, ErrorKind, Grant, RowId, SourceRecord, SubTenantId, TenantId, TenantMode,
};
use sha2::{Digest, Sha256};

use super::ArchiveError;
use super::format::{
    ChunkLine, End, FORMAT, GraphLine, Head, Member, PIECE_BYTES, SourceLine, encode_vector,
};
use crate::{Engine, EngineError};

/// Maximum number of simultaneous exports: each occupies a thread while its client reads.
const EXPORTS_MAX: usize = 8;

/// A tenant at one moment, ready to be written. Deletion of its files is held back until this is
/// dropped.
#[derive(Debug)]
pub struct Export {
    head: Head,
    collection: CollectionId,
    sub_tenants: Vec<SubTenantId>,
    snapshot: Arc<Snapshot>,
    store: Arc<dyn BlobStore>,
    gauge: Arc<SpaceGauge>,
    _hold: DeletionHold,
    _place: Arc<()>,
}

impl Engine {
    /// Takes a snapshot of a tenant with the sub-tenants that the key reaches, or with only one of
    /// them.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`], [`EngineError::SubTenantNotFound`];
    /// [`ArchiveError::Quarantined`], [`ArchiveError::Busy`].
    pub fn export(
        &self,
        grant: &Grant,
        id: &TenantId,
        only: Option<&SubTenantId>,
    ) -> Result<Export, EngineError> {
        let (tenant, mut sub_tenants) = self.sub_tenants(grant, id)?;
        if let Some(only) = only {
            sub_tenants.retain(|name| name == only);
            if sub_tenants.is_empty() {
                return Err(EngineError::SubTenantNotFound);
            }
        }
        let place = Arc::clone(&self.exports);
        // One reference belongs to the engine and one to this call.
        if Arc::strong_count(&place) > EXPORTS_MAX + 1 {
            return Err(ArchiveError::Busy { what: "exports", max: EXPORTS_MAX }.into());
        }
        let collection = self.collection(&tenant)?;
        // Taken before the snapshot, so that the files it refers to stay until the export is over.
        let hold = self.backups.hold(tenant.collection);
        let snapshot = collection.snapshot();
        if !snapshot.damaged.is_empty() {
            let segments = snapshot.damaged.len();
            return Err(ArchiveError::Quarantined { segments }.into());
        }
        let dimension = match tenant.mode {
            TenantMode::Embeddings(_) => tenant.dimension,
            TenantMode::Standard => {
                snapshot.segments.first().map(|live| live.segment.dimension() as u32)
            }
        };
        let head = Head {
            format: FORMAT,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            tenant_id: tenant.id.to_string(),
            mode: tenant.mode.as_str().to_owned(),
            schema: tenant.schema.clone(),
            model: snapshot.manifest.embedding.clone(),
            embedding_model: tenant.embedding_model.clone(),
            dimension,
            exported_at: self.clock.now().0,
        };
        let (store, gauge) = (Arc::clone(&self.store), Arc::clone(&self.gauge));
        let collection = tenant.collection;
        Ok(Export {
            head,
            collection,
            sub_tenants,
            snapshot,
            store,
            gauge,
            _hold: hold,
            _place: place,
        })
    }
}

impl Export {
    /// The collection of the exported tenant.
    pub fn collection(&self) -> CollectionId {
        self.collection
    }

    /// Writes the archive. Output cut short by an error lacks the last line and is thus
    /// recognizable.
    ///
    /// # Errors
    /// Errors of `out`; damaged data; a full disk.
    pub fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = Lines { out, hash: Sha256::new(), gauge: &self.gauge };
        lines.put(&Member::Archive(self.head.clone()))?;
        for name in self.sub_tenants.iter().filter(|name| !name.is_default()) {
            lines.put(&Member::SubTenant { sub_tenant_id: name.to_string() })?;
        }
        let names: BTreeSet<&SubTenantId> = self.sub_tenants.iter().collect();
        let mut end = End { sources: 0, chunks: 0, original_bytes: 0, sha256: String::new() };
        for found in self.snapshot.all_sources() {
            let record = found.record().map_err(io::Error::other)?;
            if !names.contains(&record.sub_tenant.named()) {
                continue;
            }
            let (chunks, original_bytes) = self.source(&mut lines, &found, record)?;
            end.sources += 1;
            end.chunks += u64::from(chunks);
            end.original_bytes += original_bytes;
            self.snapshot.check().map_err(io::Error::other)?;
        }
        end.sha256 = hex::encode(lines.hash.clone().finalize());
        lines.put(&Member::End(end))?;
        lines.out.flush()
    }

    /// Writes a source and its parts; returns the number of its chunks and the bytes of its
    /// original.
    fn source(
        &self,
        lines: &mut Lines<'_>,
        found: &FoundSource<'_>,
        record: SourceRecord,
    ) -> io::Result<(u32, u64)> {
        let rows = found.rows();
        let stored = match record.raw_key.as_str() {
            "" => None,
            key => match uploads::open_verified(&*self.store, key) {
                Ok(stored) => Some(stored),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let (collection, source) = (self.collection, &record.id);
                    tracing::error!(%collection, %source, "original missing on disk: source \
                        exported without it");
                    None
                }
                Err(error) => return Err(io::Error::other(error)),
            },
        };
        let original_bytes = stored.as_ref().map_or(0, |stored| stored.content().len());
        lines.put(&Member::Source(Box::new(SourceLine {
            sub_tenant_id: record.sub_tenant.named().to_string(),
            file_id: record.id.to_string(),
            kind: record.kind.as_str().to_owned(),
            title: record.title,
            description: record.description,
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
            detail: record.detail,
            upload: stored.as_ref().map(|stored| stored.label.clone()),
            original_bytes,
            chunks: rows.len() as u32,
        })))?;
        if let Some(stored) = &stored {
            let (content, mut at) = (stored.content(), 0);
            let mut piece = vec![0; PIECE_BYTES];
            while at < original_bytes {
                let read = content.read_at(at, &mut piece).map_err(io::Error::other)?;
                lines.put(&Member::Original { base64: STANDARD.encode(&piece[..read]) })?;
                at += read as u64;
            }
        }
        for row in rows.iter().map(|row| RowId(*row)) {
            lines.put(&Member::Chunk(Box::new(chunk_line(found, row)?)))?;
        }
        Ok((rows.len() as u32, original_bytes))
    }
}

fn chunk_line<'a>(found: &FoundSource<'a>, row: RowId) -> io::Result<ChunkLine<'a>> {
    let segment = &found.live.segment;
    let place = segment.place(row);
    let graph = segment.graph().map_err(io::Error::other)?;
    let vector = segment.original_vector(row).map_err(io::Error::other)?;
    Ok(ChunkLine {
        index: segment.index(row),
        text: Cow::Owned(segment.text(row).map_err(io::Error::other)?),
        start: place.document_start,
        page_start: place.page_start,
        chars: place.chars,
        page: place.page,
        context: Cow::Borrowed(segment.context(row)),
        boxes: segment.boxes(row),
        lines: segment.lines(row).map_err(io::Error::other)?,
        graph: graph.map(|graph| GraphLine::of(&graph.row(row.0))).unwrap_or_default(),
        vector: encode_vector(&vector),
    })
}

/// Writes lines and hashes them on the way.
struct Lines<'a> {
    out: &'a mut dyn Write,
    hash: Sha256,
    gauge: &'a SpaceGauge,
}

impl Lines<'_> {
    /// Writes one line. Gives up if the disk is full, because deletions wait for the export to end.
    fn put(&mut self, member: &Member<'_>) -> io::Result<()> {
        if self.gauge.level() >= Fullness::Full {
            return Err(io::Error::other(ArchiveError::GivenUp));
        }
        let mut line = serde_json::to_vec(member)?;
        line.push(b'\n');
        self.hash.update(&line);
        self.out.write_all(&line)
    }
}
