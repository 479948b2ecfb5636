//! Imports a checked archive into a tenant.

use std::sync::Arc;
use std::time::Duration;

use lodestone_catalog::Tenant;
use lodestone_embed::Embedder;
use lodestone_types::{Grant, Sequence, TenantId};

use super::ArchiveError;
use super::format::Head;
use super::reader::{self, Checked};
use crate::ingest::{IngestError, NewTenant};
use crate::{Engine, EngineError};

/// Maximum number of simultaneous imports: each builds segments.
const IMPORTS_MAX: usize = 2;
/// Memory for the segment under construction, on top of the largest source.
const BUILD_BYTES: u64 = 128 << 20;
/// Maximum time that an import waits for memory.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// A tenant created from an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its id.
    pub tenant: TenantId,
    /// Its collection.
    pub collection: lodestone_types::CollectionId,
    /// Number of its sources.
    pub sources: u64,
    /// Number of its chunks or vectors.
    pub chunks: u64,
    /// Total bytes of its originals.
    pub original_bytes: u64,
    /// Whether the texts were embedded again by the tenant's model on this server, because the
    /// vectors in the archive come from another.
    pub reembedded: bool,
}

impl Engine {
    /// Creates a tenant from an archive, under the name `id` or its own. The whole archive is read
    /// and checked before anything is written, and the tenant appears atomically.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key without the scope of all tenants; [`ArchiveError`] for
    /// the archive or a tenant that is not empty; errors of the disk. Nothing has changed in any of
    /// these cases.
    pub fn import(
        &self,
        grant: &Grant,
        id: Option<TenantId>,
        archive: &[u8],
    ) -> Result<Imported, EngineError> {
        if !grant.is_all_tenants() {
            let need = "importing a tenant requires a key for all tenants";
            return Err(EngineError::Forbidden { need });
        }
        let place = Arc::clone(&self.imports);
        if Arc::strong_count(&place) > IMPORTS_MAX + 1 {
            return Err(ArchiveError::Busy { what: "imports", max: IMPORTS_MAX }.into());
        }
        if let Some(id) = &id {
            // Checked before the archive is read, which may take long.
            self.require_empty(id)?;
        }
        let (head, mode) = reader::read_head(archive)?;
        let id = match id {
            Some(id) => id,
            None => TenantId::parse(&head.tenant_id).map_err(|error| ArchiveError::Refused {
                line: 1,
                member: "archive".to_owned(),
                problem: error.to_string(),
            })?,
        };
        let replaces = self.require_empty(&id)?;
        if let Some(old) = &replaces {
            let tenant = || id.clone();
            if old.mode != mode {
                return Err(ArchiveError::OtherTenant { tenant: tenant(), what: "mode" }.into());
            }
            if old.schema.is_some() && old.schema != head.schema {
                return Err(ArchiveError::OtherTenant { tenant: tenant(), what: "schema" }.into());
            }
        }
        self.ingest.require_room_for_content()?;
        let checked = reader::read(archive, &mut |_| Ok(()))?;
        let (model, chosen) = self.model_for(&checked.head, replaces.as_deref())?;
        let reembedded = check_model(&checked, &*model)?;
        let bytes = BUILD_BYTES + checked.source_bytes_max;
        let _memory = self.memory.take(bytes, MEMORY_WAIT).ok_or(ArchiveError::NoMemory)?;
        let mut tenant = self.catalog.fresh_tenant(id.clone(), mode, checked.head.schema.clone());
        tenant.embedding_model = chosen;
        if mode.is_embeddings() {
            tenant.dimension = checked.head.dimension;
        }
        let collection = tenant.collection;
        self.catalog.make_room_for(Sequence(checked.sequence_max))?;
        let mut building = NewTenant::begin(&self.ingest, tenant, model, reembedded)?;
        reader::read(archive, &mut |source| Ok(building.add(source)?))?;
        building.finish(checked.sub_tenants, replaces.map(|old| old.collection))?;
        let (sources, chunks) = (checked.end.sources, checked.end.chunks);
        tracing::info!(%collection, sources, chunks, reembedded, "imported");
        let original_bytes = checked.end.original_bytes;
        Ok(Imported { tenant: id, collection, sources, chunks, original_bytes, reembedded })
    }

    /// Finds the tenant of that name, which must be empty; `None` if there is none.
    fn require_empty(&self, id: &TenantId) -> Result<Option<Arc<Tenant>>, EngineError> {
        let Some(tenant) = self.catalog.tenant(id)? else { return Ok(None) };
        match self.catalog.is_empty(tenant.collection)? {
            true => Ok(Some(tenant)),
            false => Err(ArchiveError::NotEmpty { tenant: id.clone() }.into()),
        }
    }

    /// The model for an imported tenant, with its name if it was chosen explicitly: the choice of
    /// the empty tenant being replaced, or else that of the archived tenant if this server has the
    /// model.
    fn model_for(
        &self,
        head: &Head,
        replaces: Option<&Tenant>,
    ) -> Result<(Arc<dyn Embedder>, Option<String>), EngineError> {
        let chosen = match replaces {
            Some(old) if old.embedding_model.is_some() => old.embedding_model.clone(),
            _ => head.embedding_model.clone().filter(|name| self.models.named(name).is_some()),
        };
        match (self.models.chosen(chosen.as_deref()), replaces) {
            (Some(model), _) => Ok((Arc::clone(model), chosen)),
            (None, Some(old)) => Err(IngestError::chosen_not_loaded(old).into()),
            (None, None) => unreachable!("an unknown name was skipped"),
        }
    }
}

/// Whether the texts must be embedded again, because the vectors are not of the tenant's model.
fn check_model(checked: &Checked, model: &dyn Embedder) -> Result<bool, ArchiveError> {
    let Checked { head, mode, .. } = checked;
    if mode.is_embeddings() || checked.end.chunks == 0 {
        return Ok(false);
    }
    if head.model.as_deref() != Some(model.fingerprint()) {
        return Ok(true);
    }
    let (found, own) = (head.dimension.unwrap_or(0) as usize, model.dimension());
    match found == own {
        true => Ok(false),
        false => Err(ArchiveError::Refused {
            line: 1,
            member: "archive".to_owned(),
            problem: format!("dimension is {found}, but the model it names has {own}"),
        }),
    }
}
