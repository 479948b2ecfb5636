//! Access control: from a key to the data of a tenant.

use std::sync::Arc;
use std::time::Instant;

use crate::rates::TooMany;
use crate::{Engine, EngineError, TenantPlan};
use lodestone_catalog::{AuthError, CatalogError, Tenant};
use lodestone_storage::collection::Collection;
use lodestone_types::{Grant, RequestContext, Scope, SubTenantId, TenantId, TenantMode};

/// Access of a key to one sub-tenant: every operation on data takes one.
#[derive(Debug, Clone)]
pub struct TenantAccess {
    /// The tenant.
    pub tenant: Arc<Tenant>,
    /// The sub-tenant inside it; it may not exist yet.
    pub sub_tenant: SubTenantId,
    pub(super) collection: Arc<Collection>,
    /// The bounds of the request that it was opened for.
    pub(super) context: RequestContext,
    missing_when_opened: usize,
    needs_help: bool,
    has_foreign_model: bool,
}

impl TenantAccess {
    /// Binds the access to a request: its searches and answers end with it.
    #[must_use]
    pub fn within(self, context: &RequestContext) -> Self {
        Self { context: context.of_tenant(self.tenant.collection), ..self }
    }

    /// A copy of the access whose time limit begins anew.
    pub(super) fn restarted(&self) -> Self {
        Self { context: self.context.restarted(), ..self.clone() }
    }

    /// Number of damaged segments that answers have to do without, now or when the scope was
    /// opened: an answer that began before a rebuild ended is not taken for a whole one.
    pub fn segments_missing(&self) -> usize {
        self.missing_when_opened.max(self.collection.snapshot().damaged.len())
    }

    /// Whether its vectors are of a model that is not loaded: it is searched by words only.
    pub fn has_foreign_model(&self) -> bool {
        self.has_foreign_model
    }

    /// Whether missing data cannot be rebuilt from what the server has: it has to be uploaded
    /// again, deleted, or restored from a backup.
    pub fn needs_help(&self) -> bool {
        self.needs_help
    }
}

impl Engine {
    /// The grant of a key.
    ///
    /// # Errors
    /// [`AuthError`] for a key that is unknown, malformed, expired or revoked.
    pub fn authenticate(&self, key: &str) -> Result<Grant, AuthError> {
        self.catalog.authenticate(key)
    }

    /// Refuses a grant that has ended since it was given.
    ///
    /// # Errors
    /// As [`Self::authenticate`].
    pub fn require_valid(&self, grant: &Grant) -> Result<(), AuthError> {
        self.catalog.require_valid(grant)
    }

    /// Whether [`Self::authenticate`] answers for a key from memory; else it may block.
    pub fn is_key_at_hand(&self, key: &str) -> bool {
        self.catalog.is_key_at_hand(key)
    }

    /// Opens an existing scope. `mode`, where given, must be the tenant's.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`] and [`EngineError::SubTenantNotFound`] where the key has no
    /// access or the tenant does not exist; [`EngineError::ModeMismatch`]; damage.
    pub fn open(
        &self,
        grant: &Grant,
        scope: &Scope,
        mode: Option<TenantMode>,
    ) -> Result<TenantAccess, EngineError> {
        let tenant = self.find_tenant(grant, &scope.tenant)?;
        self.grant_access(grant, tenant, scope, mode)
    }

    /// Opens a scope for a first upload: an unknown tenant is created where settings and key
    /// allow it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_or_create(
        &self,
        grant: &Grant,
        scope: &Scope,
    ) -> Result<TenantAccess, EngineError> {
        let tenant = match self.find_tenant(grant, &scope.tenant) {
            Err(EngineError::TenantNotFound)
                if grant.is_all_tenants() && self.settings.auto_create_tenants =>
            {
                match self.make_tenant(
                    scope.tenant.clone(),
                    TenantMode::Standard,
                    None,
                    TenantPlan::default(),
                ) {
                    // Another request has created it meanwhile.
                    Err(EngineError::TenantExists { .. }) => {
                        self.find_tenant(grant, &scope.tenant)?
                    }
                    made => made?,
                }
            }
            found => found?,
        };
        self.grant_access(grant, tenant, scope, Some(TenantMode::Standard))
    }

    /// The tenant, if the key reaches some part of it.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`]; [`EngineError::TooManyRequests`]; errors of the catalog.
    pub fn find_tenant(&self, grant: &Grant, id: &TenantId) -> Result<Arc<Tenant>, EngineError> {
        self.catalog.require_current()?;
        // Looked up before the scope is judged, so that both refusals take the same path.
        let tenant = self.catalog.tenant(id)?;
        let tenant =
            tenant.filter(|_| grant.allows_tenant(id)).ok_or(EngineError::TenantNotFound)?;
        self.count_request(grant, &tenant)?;
        Ok(tenant)
    }

    /// Counts the request behind a grant for a tenant that may make only so many, once.
    fn count_request(&self, grant: &Grant, tenant: &Tenant) -> Result<(), EngineError> {
        let Some(max) = self.catalog.limits_of(tenant).requests_per_minute else { return Ok(()) };
        let take = || self.rates.take(tenant.collection, max, Instant::now());
        grant.tally.once(tenant.collection, take).map_err(|TooMany { used, wait_seconds }| {
            EngineError::TooManyRequests { max, used, wait_seconds }
        })
    }

    fn grant_access(
        &self,
        grant: &Grant,
        tenant: Arc<Tenant>,
        scope: &Scope,
        mode: Option<TenantMode>,
    ) -> Result<TenantAccess, EngineError> {
        if !grant.allows(&scope.tenant, &scope.sub_tenant) {
            return Err(EngineError::SubTenantNotFound);
        }
        if let Some(needed) =
            mode.filter(|needed| needed.is_embeddings() != tenant.mode.is_embeddings())
        {
            let (tenant, found) = (tenant.id.clone(), tenant.mode);
            return Err(EngineError::ModeMismatch { tenant, found, needed });
        }
        let collection = self.collection(&tenant)?;
        let snapshot = collection.snapshot();
        let missing_when_opened = snapshot.damaged.len();
        let needs_help = missing_when_opened > 0 && self.ingest.needs_help(&collection);
        let has_foreign_model = {
            let chosen = tenant.embedding_model.as_deref();
            self.models.of(&snapshot.manifest, chosen).is_none()
        };
        let sub_tenant = scope.sub_tenant.clone();
        let context = RequestContext::default().of_tenant(tenant.collection);
        Ok(TenantAccess {
            tenant,
            sub_tenant,
            collection,
            context,
            missing_when_opened,
            needs_help,
            has_foreign_model,
        })
    }
}

/// An error of the catalog; a tenant that is being deleted counts as absent.
pub(super) fn absent(error: CatalogError) -> EngineError {
    match error {
        CatalogError::CollectionUnknown { .. } | CatalogError::TenantUnknown { .. } => {
            EngineError::TenantNotFound
        }
        error => EngineError::Catalog(error),
    }
}
