//! Files that no sub-tenant searches yet: stored as uploaded, and later added as sources.
//!
//! ```text
//! store:   original on disk -> row in the catalog: acknowledged
//! take in: the original once more, as the upload of a source (`submit`)
//! ```
//! A file that was added to sub-tenants remains a file. Each of those sub-tenants has a source of
//! its own, with the file's id and a copy of its bytes. To merges, backups and rebuilding it is a
//! source like any other, and a file can be added at any time.

use bytes::Bytes;

use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::{CatalogError, StoredFile};
use lodestone_storage::collection::Collection;
use lodestone_storage::collection::uploads::{self, StoredUpload, UploadLabel};
use lodestone_types::{Origin, SourceDetail, SourceId, SubTenantId};

/// The kind in the label of an original that is a file; no source has this kind.
pub(crate) const FILE_WORD: &str = "stored_file";

/// A file to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFile {
    /// The purpose stated by the uploader.
    pub purpose: String,
    /// The file name without directories; possibly empty.
    pub filename: String,
    /// The media type stated by the uploader; possibly empty.
    pub content_type: String,
    /// The content.
    pub content: Bytes,
}

impl Ingest {
    /// Stores a file. Durable on return.
    ///
    /// # Errors
    /// A limit of the tenant; [`IngestError::DiskFull`]; errors of the disk. Nothing is stored in
    /// these cases. [`IngestError::OutcomeUnknown`] if it may have been stored.
    pub fn store_file(
        &self,
        collection: &Collection,
        sub_tenant: &SubTenantId,
        new: NewFile,
    ) -> Result<StoredFile, IngestError> {
        self.require_room_for_content()?;
        let (id, size_bytes) = (collection.id(), new.content.len() as u64);
        self.catalog.require_allowed(id, sub_tenant, None, size_bytes)?;
        let now = self.clock.now();
        let mut file = StoredFile {
            id: SourceId::parse(&self.ids.wire_id("file-", now)).expect("generated ids parse"),
            sub_tenant: sub_tenant.clone(),
            purpose: new.purpose,
            filename: new.filename,
            content_type: new.content_type,
            size_bytes,
            created_at: now,
            raw_key: String::new(),
        };
        let raw_key = uploads::put(&*self.store, &*self.ids, id, &label_of(&file), &new.content)?;
        file.raw_key = raw_key.as_str().to_owned();
        match self.catalog.add_file(id, file.clone()) {
            Ok(()) => Ok(file),
            // The row may be durable, and then it needs its original.
            Err(error @ CatalogError::InDoubt { .. }) => {
                Err(IngestError::from(error).about(&file.id))
            }
            Err(error) => {
                self.delete_originals(&[file.raw_key]);
                Err(error.into())
            }
        }
    }

    /// Opens the original of a file and verifies it.
    ///
    /// # Errors
    /// Damaged data.
    pub fn open_file(&self, file: &StoredFile) -> Result<StoredUpload, IngestError> {
        Ok(uploads::open_verified(&*self.store, &file.raw_key)?)
    }

    /// Reads the bytes of a file and verifies them.
    ///
    /// # Errors
    /// Damaged data.
    pub fn read_file(&self, file: &StoredFile) -> Result<Bytes, IngestError> {
        Ok(uploads::get(&*self.store, &file.raw_key)?.content.into())
    }

    /// Removes a file, but not the sources made from it; returns whether the file existed.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn remove_file(&self, collection: &Collection, id: &SourceId) -> Result<bool, IngestError> {
        self.gauge.make_room();
        let removed = self.catalog.remove_file(collection.id(), id)?;
        self.delete_originals(removed.as_slice());
        Ok(removed.is_some())
    }
}

/// The label from which a lost catalog recovers the row of a file.
fn label_of(file: &StoredFile) -> UploadLabel {
    let detail = SourceDetail { note: file.purpose.clone(), ..SourceDetail::default() };
    UploadLabel {
        sub_tenant: file.sub_tenant.as_str().to_owned(),
        source: file.id.as_str().to_owned(),
        kind: FILE_WORD.to_owned(),
        filename: file.filename.clone(),
        content_type: file.content_type.clone(),
        uploaded_at: file.created_at.0,
        tenant_metadata: None,
        document_metadata: None,
        origin: Origin { detail, ..Origin::default() },
        after: None,
    }
}
