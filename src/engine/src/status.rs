//! Finds the status of a source, with or without its scope.
//!
//! The catalog says which scopes know an id that comes without one, and only the scope that is
//! meant is opened: neither the number of tenants nor damage in another tenant affects the lookup.

use crate::query::SourceView;
use crate::{Engine, EngineError, TenantAccess};
use lodestone_types::{Grant, Scope, SourceId, SubTenantId, TenantId};

/// Maximum number of tenants opened in search of a source because the catalog does not list all of
/// their sources yet. They stem from an earlier release and are indexed in the background; until
/// then a key that reaches more of them has to name the tenant.
const UNKNOWN_TENANTS_MAX: usize = 64;

/// A scope in which a source was looked up, and the status of the source there.
#[derive(Debug, Clone)]
pub struct FoundStatus {
    /// The scope.
    pub access: TenantAccess,
    /// The source; `None` if the scope does not have it, or only in a damaged segment.
    pub view: Option<SourceView>,
}

impl Engine {
    /// Looks up the status of a source. Without a tenant, every scope of the key is searched and
    /// the most recently accepted source wins; with a tenant but no sub-tenant, `default` comes
    /// first.
    ///
    /// # Errors
    /// [`EngineError::SourceNotFound`] if no scope knows it; a named tenant that does not exist;
    /// damage in the scope that is meant.
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
                // Deleted in the meantime.
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
                // These scopes are only candidates, so errors in them do not count.
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

    /// The scopes whose sources the catalog does not all know yet.
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

    /// Counts the state changes of a source's jobs in any scope: accepted, ended, removed. Callers
    /// compare the count to notice a change.
    pub fn job_changes(&self, source: &SourceId) -> u64 {
        self.catalog.job_changes(source)
    }
}
