//! Access control: resolves a key to the data of a tenant.

use std::sync::Arc;
use std::time::Instant;

use crate::rates::TooMany;
use crate::{Engine, EngineError, TenantPlan};
use lodestone_catalog::{AuthError, CatalogError, Tenant};
use lodestone_storage::collection::Collection;
use lodestone_types::{Grant, RequestContext, Scope, SubTenantId, TenantId, TenantMode};

/// A key's access to one sub-tenant. Every operation on data takes one.
#[derive(Debug, Clone)]
pub struct TenantAccess {
    /// The tenant.
    pub tenant: Arc<Tenant>,
    /// The sub-tenant inside it; it may not exist yet.
    pub sub_tenant: SubTenantId,
    pub(super) collection: Arc<Collection>,
    /// Time limit and cancellation of the request that the access was opened for.
    pub(super) context: RequestContext,
    missing_when_opened: usize,
    needs_help: bool,
    has_foreign_model: bool,
}

impl TenantAccess {
    /// Binds the access to a request: its searches and answers are canceled along with it.
    #[must_use]
    pub fn within(self, context: &RequestContext) -> Self {
        Self { context: context.of_tenant(self.tenant.collection), ..self }
    }

    /// Returns a copy whose time limit starts again.
    pub(super) fn restarted(&self) -> Self {
        Self { context: self.context.restarted(), ..self.clone() }
    }

    /// Number of damaged segments missing from answers: the larger of the number now and the number
    /// when the access was opened, so that an answer begun before a rebuild finished is not taken
    /// for complete.
    pub fn segments_missing(&self) -> usize {
        self.missing_when_opened.max(self.collection.snapshot().damaged.len())
    }

    /// Whether the tenant's vectors come from a model that is not loaded; searches then match words
    /// only.
    pub fn has_foreign_model(&self) -> bool {
        self.has_foreign_model
    }

    /// Whether missing data cannot be rebuilt from what the server still has. It must then be
    /// uploaded again, deleted, or restored from a backup.
    pub fn needs_help(&self) -> bool {
        self.needs_help
    }
}

impl Engine {
    /// Authenticates a key and returns its grant.
    ///
    /// # Errors
    /// [`AuthError`] for a key that is unknown, malformed, expired or revoked.
    pub fn authenticate(&self, key: &str) -> Result<Grant, AuthError> {
        self.catalog.authenticate(key)
    }

    /// Checks that a grant has not expired or been revoked since it was issued.
    ///
    /// # Errors
    /// See [`Self::authenticate`].
    pub fn require_valid(&self, grant: &Grant) -> Result<(), AuthError> {
        self.catalog.require_valid(grant)
    }

    /// Whether [`Self::authenticate`] can answer for a key from memory; otherwise it may block.
    pub fn is_key_at_hand(&self, key: &str) -> bool {
        self.catalog.is_key_at_hand(key)
    }

    /// Opens an existing scope. If `mode` is given, the tenant must be in that mode.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`] and [`EngineError::SubTenantNotFound`] if the key has no
    /// access or the tenant does not exist; [`EngineError::ModeMismatch`]; damaged data.
    pub fn open(
        &self,
        grant: &Grant,
        scope: &Scope,
        mode: Option<TenantMode>,
    ) -> Result<TenantAccess, EngineError> {
        let tenant = self.find_tenant(grant, &scope.tenant)?;
        self.grant_access(grant, tenant, scope, mode)
    }

    /// Opens a scope for a first upload: creates an unknown tenant if both the settings and the key
    /// allow it.
    ///
    /// # Errors
    /// See [`Self::open`].
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
                    // Another request has created it in the meantime.
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

    /// Finds a tenant of which the key reaches at least a part, and counts the request against its
    /// limit.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`]; [`EngineError::TooManyRequests`]; errors of the catalog.
    pub fn find_tenant(&self, grant: &Grant, id: &TenantId) -> Result<Arc<Tenant>, EngineError> {
        self.catalog.require_current()?;
        // Looked up before the grant is checked, so that both refusals take the same code path and
        // time does not tell an unknown tenant from a forbidden one.
        let tenant = self.catalog.tenant(id)?;
        let tenant =
            tenant.filter(|_| grant.allows_tenant(id)).ok_or(EngineError::TenantNotFound)?;
        self.count_request(grant, &tenant)?;
        Ok(tenant)
    }

    /// Counts the grant's request once against the tenant's limit of requests per minute, if it has
    /// one.
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

/// Converts an error of the catalog; a tenant that is being deleted counts as not found.
pub(super) fn absent(error: CatalogError) -> EngineError {
    match error {
        CatalogError::CollectionUnknown { .. } | CatalogError::TenantUnknown { .. } => {
            EngineError::TenantNotFound
        }
        error => EngineError::Catalog(error),
    }
}
