//! The state of a source, found with or without its scope.
//!
//! The catalog says which scopes know an id that comes without one, and of those only the one that
//! is meant is opened: neither the number of tenants nor the damage of another one counts.

use crate::query::SourceView;
use crate::{Engine, EngineError, TenantAccess};
use lodestone_types::{Grant, Scope, SourceId, SubTenantId, TenantId};

/// Tenants that are opened for a source at most because the catalog does not know all of their
/// sources yet: those of an earlier release, until the background work came to them. A key for more
/// has to name the tenant.
const UNKNOWN_TENANTS_MAX: usize = 64;

/// The scope that was looked at for a source, and the state of the source there.
#[derive(Debug, Clone)]
pub struct FoundStatus {
    /// The scope.
    pub access: TenantAccess,
    /// The source; `None` where the scope does not have it, or has it in a damaged part.
    pub view: Option<SourceView>,
}

impl Engine {
    /// The state of a source. Without a tenant it is looked for in every scope of the key, and
    /// the most recently accepted one is meant; with a tenant `default` comes first.
    ///
    /// # Errors
    /// [`EngineError::SourceNotFound`] where no scope knows it; a named tenant that does not exist;
    /// damage of the scope that is meant.
    pub fn status(
        &self,
        grant: &Grant,
        tenant: Option<&TenantId>,
        sub_tenant: Option<&SubTenantId>,
        id: &SourceId,
    ) -> Result<FoundStatus, EngineError> {
        if let (Some(tenant), Some(sub_tenant)) = (tenant, sub_tenant) {
            let (tenant, sub_tenant) = (tenant.clone(), sub_tenant.clone());
            return self.status_in(grant, &Scope { tenant, sub_tenant }, id);
        }
        let within = self.jobs_within(grant, tenant, None)?;
        let mut scopes = self.catalog.scopes_of(id, &within, sub_tenant)?;
        if tenant.is_some() {
            scopes.sort_by_key(|scope| !scope.sub_tenant.is_default());
        }
        let mut lacking = None;
        for scope in scopes {
            match self.status_in(grant, &scope, id) {
                Ok(found) if found.view.is_some() => return Ok(found),
                Ok(found) if found.access.segments_missing() > 0 => {
                    lacking = lacking.or(Some(found))
                }
                // Deleted meanwhile.
                Ok(_) | Err(EngineError::TenantNotFound | EngineError::SubTenantNotFound) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(found) = lacking {
            return Ok(found);
        }
        for scope in self.scopes_not_known(grant, tenant, sub_tenant)? {
            match self.status_in(grant, &scope, id) {
                Ok(found) if found.view.is_some() => return Ok(found),
                // It need not be there.
                Ok(_) | Err(_) => {}
            }
        }
        let missing = || EngineError::SourceNotFound { source_id: id.clone() };
        let tenant = tenant.ok_or_else(missing)?;
        let first = self.sub_tenants(grant, tenant)?.1.into_iter().next();
        let scope = Scope { tenant: tenant.clone(), sub_tenant: first.ok_or_else(missing)? };
        Ok(FoundStatus { access: self.open(grant, &scope, None)?, view: None })
    }

    fn status_in(
        &self,
        grant: &Grant,
        scope: &Scope,
        id: &SourceId,
    ) -> Result<FoundStatus, EngineError> {
        let access = self.open(grant, scope, None)?;
        let view = self.source(&access, id)?;
        Ok(FoundStatus { access, view })
    }

    /// Scopes of which the catalog does not know all sources yet.
    fn scopes_not_known(
        &self,
        grant: &Grant,
        tenant: Option<&TenantId>,
        sub_tenant: Option<&SubTenantId>,
    ) -> Result<Vec<Scope>, EngineError> {
        let mut not_known = self.catalog.tenants_not_known()?;
        not_known.retain(|id| tenant.is_none_or(|only| only == id) && grant.allows_tenant(id));
        not_known.truncate(UNKNOWN_TENANTS_MAX);
        let mut scopes = Vec::new();
        for tenant in not_known {
            let names = match self.sub_tenants(grant, &tenant) {
                Err(EngineError::TenantNotFound) => continue,
                found => found?.1,
            };
            let meant = names.into_iter().filter(|name| sub_tenant.is_none_or(|only| only == name));
            scopes.extend(meant.map(|sub_tenant| Scope { tenant: tenant.clone(), sub_tenant }));
        }
        Ok(scopes)
    }

    /// Counts changes of the states of the jobs of a source, in any scope: accepted, ended,
    /// removed.
    pub fn job_changes(&self, source: &SourceId) -> u64 {
        self.catalog.job_changes(source)
    }
}
