//! Changes to tenants themselves, in the catalog and in the descriptor from which a lost catalog is
//! rebuilt.

use lodestone_catalog::descriptors::{self, Descriptor};
use lodestone_catalog::{CatalogError, Tenant};
use lodestone_embed::Embedder;
use lodestone_storage::collection::{Collection, Snapshot};
use lodestone_types::CollectionId;
use parking_lot::MutexGuard;

use crate::ingest::{Ingest, IngestError};

impl Ingest {
    /// Excludes concurrent creation, change and deletion of tenants, so that descriptors agree with
    /// the catalog. Lock order: after a collection's writer, never before.
    pub(crate) fn hold_tenants(&self) -> MutexGuard<'_, ()> {
        self.tenants.lock()
    }

    /// Changes the limits or the model of a tenant. Durable on return, even if the catalog is lost.
    ///
    /// # Errors
    /// [`CatalogError::CollectionUnknown`]; errors of the disk or the catalog.
    pub(crate) fn change_tenant(
        &self,
        collection: CollectionId,
        change: impl FnOnce(&mut Tenant),
    ) -> Result<(), IngestError> {
        let _one_at_a_time = self.hold_tenants();
        let before = self.catalog.tenant_of(collection)?;
        let before = before.ok_or(CatalogError::CollectionUnknown { collection })?;
        let mut tenant = before.clone();
        change(&mut tenant);
        let descriptor = Descriptor { tenant: tenant.clone(), is_deleted: false };
        descriptors::write(&*self.store, &descriptor)?;
        if tenant.limits != before.limits {
            self.catalog.set_tenant_limits(collection, tenant.limits)?;
        }
        if tenant.embedding_model != before.embedding_model {
            self.catalog.set_embedding_model(collection, tenant.embedding_model)?;
        }
        Ok(())
    }

    /// Records the model `to` which a tenant is being moved. On the way back to the model `target`,
    /// a tenant that never had a model chosen keeps following the server's.
    pub(super) fn note_choice(
        &self,
        tenant: &Tenant,
        to: Option<&dyn Embedder>,
        target: &str,
    ) -> Result<(), IngestError> {
        match (to, self.models.with(target)) {
            (Some(model), _) => self.follow_model(tenant, model),
            (None, Some(model)) if tenant.embedding_model.is_some() => {
                self.follow_model(tenant, &**model)
            }
            (None, _) => Ok(()),
        }
    }

    /// Called when a change of model is given up: also takes back the choice of that model.
    pub(super) fn take_back_choice(
        &self,
        collection: &Collection,
        base: &Snapshot,
    ) -> Result<(), IngestError> {
        let tenant = self.catalog.tenant_of(collection.id())?;
        let tenant = tenant.filter(|tenant| tenant.embedding_model.is_some());
        let model = base.manifest.model().and_then(|made_by| self.models.with(made_by));
        match tenant.zip(model) {
            Some((tenant, model)) => self.follow_model(&tenant, &**model),
            None => Ok(()),
        }
    }

    /// Makes a tenant keep to `model`, unless it does so already. A tenant without a choice of its
    /// own follows the server's model.
    fn follow_model(&self, tenant: &Tenant, model: &dyn Embedder) -> Result<(), IngestError> {
        let is_followed = |tenant: &Tenant| {
            let chosen = self.models.chosen(tenant.embedding_model.as_deref());
            chosen.is_some_and(|chosen| chosen.fingerprint() == model.fingerprint())
        };
        let now = self.catalog.tenant_of(tenant.collection)?;
        if now.as_ref().is_none_or(is_followed) {
            return Ok(());
        }
        self.change_tenant(tenant.collection, |tenant| {
            tenant.embedding_model = Some(model.name().to_owned());
        })
    }

    /// Updates the descriptor of a tenant if it lacks the limits or the model in the catalog: an
    /// older release wrote none, or a change was interrupted between descriptor and catalog.
    pub(super) fn describe(&self, tenant: &Tenant) {
        if tenant.limits == Default::default() && tenant.embedding_model.is_none() {
            return;
        }
        let collection = tenant.collection;
        let told = descriptors::read(&*self.store, collection);
        let is_told = |told: &Descriptor| {
            (told.tenant.limits, &told.tenant.embedding_model)
                == (tenant.limits, &tenant.embedding_model)
        };
        if told.is_ok_and(|told| told.is_some_and(|told| told.is_deleted || is_told(&told))) {
            return;
        }
        if let Err(error) = self.change_tenant(collection, |_| {}) {
            tracing::warn!(%collection, %error, "the limits of a tenant are in the catalog alone");
        }
    }
}
