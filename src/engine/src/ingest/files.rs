//! Files that no sub-tenant searches yet: stored as they came, and taken in as sources.
//!
//! ```text
//! store: original on disk -> row in the catalog: acknowledged
//! take in: the original once more, as the upload of a source (`submit`)
//! ```
//! A file that sub-tenants have taken in stays a file; each of them has a source of its own, with
//! the id of the file and a copy of its bytes. So a source is what every other source is, for
//! merges, backups and rebuilding, and a file can be taken in at any time.

use bytes::Bytes;

use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::{CatalogError, StoredFile};
use lodestone_storage::collection::Collection;
use lodestone_storage::collection::uploads::{self, StoredUpload, UploadLabel};
use lodestone_types::{Origin, SourceDetail, SourceId, SubTenantId};

/// The word in the label of an original that is a file; no kind of source has it.
pub(crate) const FILE_WORD: &str = "stored_file";

/// A file to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFile {
    /// The purpose that its uploader names.
    pub purpose: String,
    /// Its name without path parts; possibly empty.
    pub filename: String,
    /// Media type as the uploader said it; possibly empty.
    pub content_type: String,
    /// The bytes.
    pub content: Bytes,
}

impl Ingest {
    /// Stores a file. Durable on return.
    ///
    /// # Errors
    /// A limit of the tenant; [`IngestError::DiskFull`]; what the disk says. Nothing is kept then.
    /// [`IngestError::OutcomeUnknown`], where it may be.
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

    /// Opens the original of a file, verified.
    ///
    /// # Errors
    /// Damage.
    pub fn open_file(&self, file: &StoredFile) -> Result<StoredUpload, IngestError> {
        Ok(uploads::open_verified(&*self.store, &file.raw_key)?)
    }

    /// The bytes of a file, verified.
    ///
    /// # Errors
    /// Damage.
    pub fn read_file(&self, file: &StoredFile) -> Result<Bytes, IngestError> {
        Ok(uploads::get(&*self.store, &file.raw_key)?.content.into())
    }

    /// Removes a file; the sources that were made of it stay. Returns whether it was there.
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

/// The label from which a lost catalog gets the row of a file back.
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
