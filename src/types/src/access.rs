//! Rights of an API key: a role and a scope (API 1.2).

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{CollectionId, SubTenantId, TenantId};

/// Kind of operations that a key may ask for. Each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Search, listing, statistics, fetch, status (API 8.2).
    Read,
    /// Also uploads, updates and deletions of sources.
    Write,
    /// Also tenants, export, import and keys.
    Admin,
}

words!(Role { Read = "read", Write = "write", Admin = "admin" });

/// One tenant of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantGrant {
    /// The tenant.
    pub tenant: TenantId,
    /// The sub-tenants inside it; `None` means every one, also those to come.
    pub sub_tenants: Option<Vec<SubTenantId>>,
}

/// Which data a key reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyScope {
    /// Every tenant, also those to come.
    AllTenants,
    /// These tenants only. Empty: none.
    Tenants(Vec<TenantGrant>),
}

impl KeyScope {
    /// The entry for `tenant`, where the scope is a list.
    fn entry(&self, tenant: &TenantId) -> Option<&TenantGrant> {
        match self {
            Self::AllTenants => None,
            Self::Tenants(grants) => grants.iter().find(|grant| grant.tenant == *tenant),
        }
    }

    /// Whether every tenant is within.
    pub fn is_all_tenants(&self) -> bool {
        matches!(self, Self::AllTenants)
    }

    /// The tenant, where there is exactly one.
    pub fn only_tenant(&self) -> Option<&TenantId> {
        match self {
            Self::Tenants(grants) if grants.len() == 1 => Some(&grants[0].tenant),
            _ => None,
        }
    }

    /// Whether some part of `tenant` is within.
    pub fn allows_tenant(&self, tenant: &TenantId) -> bool {
        self.is_all_tenants() || self.entry(tenant).is_some()
    }

    /// Whether the whole of `tenant` is within, sub-tenants to come included.
    pub fn allows_whole_tenant(&self, tenant: &TenantId) -> bool {
        self.is_all_tenants() || self.entry(tenant).is_some_and(|e| e.sub_tenants.is_none())
    }

    /// Whether one sub-tenant is within.
    pub fn allows(&self, tenant: &TenantId, sub_tenant: &SubTenantId) -> bool {
        if self.is_all_tenants() {
            return true;
        }
        self.entry(tenant).is_some_and(|entry| match &entry.sub_tenants {
            None => true,
            Some(names) => names.contains(sub_tenant),
        })
    }

    /// Whether everything within `other` is also within `self`.
    pub fn covers(&self, other: &KeyScope) -> bool {
        let grants = match (self, other) {
            (Self::AllTenants, _) => return true,
            (Self::Tenants(_), Self::AllTenants) => return false,
            // A key that has lost all of its tenants belongs to the operator only.
            (Self::Tenants(_), Self::Tenants(grants)) if grants.is_empty() => return false,
            (Self::Tenants(_), Self::Tenants(grants)) => grants,
        };
        grants.iter().all(|grant| match &grant.sub_tenants {
            None => self.allows_whole_tenant(&grant.tenant),
            // An entry without sub-tenants reaches nothing, but it names the tenant.
            Some(names) => {
                self.allows_tenant(&grant.tenant)
                    && names.iter().all(|name| self.allows(&grant.tenant, name))
            }
        })
    }
}

/// The tenants for which one request was counted. Copies share it; a fresh one counts nothing.
#[derive(Debug, Clone, Default)]
pub struct Tally(Option<Arc<Mutex<Vec<CollectionId>>>>);

impl Tally {
    /// One that counts a request once for each tenant that it reaches.
    pub fn counting() -> Self {
        Self(Some(Arc::default()))
    }

    /// Counts the request for a tenant by `count`, unless that was done before.
    ///
    /// # Errors
    /// Those of `count`; it is not counted then.
    pub fn once<E>(
        &self,
        tenant: CollectionId,
        count: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(counted) = &self.0 else { return Ok(()) };
        let mut counted = counted.lock();
        if !counted.contains(&tenant) {
            count()?;
            counted.push(tenant);
        }
        Ok(())
    }
}

// A grant is the same, whatever was done with it.
impl PartialEq for Tally {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Tally {}

/// Rights of an authenticated request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The public part of the key.
    pub key_id: Arc<str>,
    /// The operations it may ask for.
    pub role: Role,
    /// The data it reaches.
    pub scope: Arc<KeyScope>,
    /// The tenants that the request was counted for.
    pub tally: Tally,
}

impl Grant {
    /// Rights whose use is not counted.
    pub fn new(key_id: impl Into<Arc<str>>, role: Role, scope: impl Into<Arc<KeyScope>>) -> Self {
        Self { key_id: key_id.into(), role, scope: scope.into(), tally: Tally::default() }
    }

    /// Rights for one request, which is counted once for each tenant that it reaches.
    #[must_use]
    pub fn counted(self) -> Self {
        Self { tally: Tally::counting(), ..self }
    }

    /// A copy of the rights whose use is not counted.
    #[must_use]
    pub fn uncounted(&self) -> Self {
        Self { tally: Tally::default(), ..self.clone() }
    }

    /// Whether every tenant is within the scope.
    pub fn is_all_tenants(&self) -> bool {
        self.scope.is_all_tenants()
    }

    /// Whether some part of `tenant` is within the scope.
    pub fn allows_tenant(&self, tenant: &TenantId) -> bool {
        self.scope.allows_tenant(tenant)
    }

    /// Whether one sub-tenant is within the scope.
    pub fn allows(&self, tenant: &TenantId, sub_tenant: &SubTenantId) -> bool {
        self.scope.allows(tenant, sub_tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).unwrap()
    }

    fn sub(name: &str) -> SubTenantId {
        SubTenantId::parse(name).unwrap()
    }

    fn list(entries: &[(&str, Option<&[&str]>)]) -> KeyScope {
        let grant = |(name, subs): &(&str, Option<&[&str]>)| TenantGrant {
            tenant: tenant(name),
            sub_tenants: subs.map(|subs| subs.iter().map(|name| sub(name)).collect()),
        };
        KeyScope::Tenants(entries.iter().map(grant).collect())
    }

    #[test]
    fn a_request_is_counted_once_for_each_tenant_and_not_where_it_was_refused() {
        let (a, b) = (CollectionId(uuid::Uuid::nil()), CollectionId(uuid::Uuid::max()));
        let grant = Grant::new("key", Role::Read, KeyScope::AllTenants);
        let counts = |grant: &Grant, of, result: Result<(), ()>| {
            let mut was_counted = false;
            let counted = grant.tally.once(of, || {
                was_counted = true;
                result
            });
            assert_eq!(counted.is_ok(), !was_counted || result.is_ok());
            was_counted
        };
        assert!(!counts(&grant, a, Ok(())));
        let request = grant.clone().counted();
        assert!(counts(&request, a, Err(())) && counts(&request, a, Ok(())));
        assert!(!counts(&request.uncounted(), b, Ok(())));
        assert!(!counts(&request.clone(), a, Err(())) && counts(&request, b, Ok(())));
        assert_eq!(request, grant);
    }

    #[test]
    fn roles_are_ordered() {
        assert!(Role::Read < Role::Write && Role::Write < Role::Admin);
        for role in [Role::Read, Role::Write, Role::Admin] {
            assert_eq!(Role::from_word(role.as_str()), Some(role));
        }
    }

    #[test]
    fn a_scope_allows_what_it_lists() {
        let scope = list(&[("a", None), ("b", Some(&["x"]))]);
        assert!(scope.allows(&tenant("a"), &sub("anything")));
        assert!(scope.allows(&tenant("b"), &sub("x")));
        assert!(!scope.allows(&tenant("b"), &sub("default")));
        assert!(scope.allows_tenant(&tenant("b")) && !scope.allows_whole_tenant(&tenant("b")));
        assert!(!scope.allows_tenant(&tenant("c")));
        assert!(KeyScope::AllTenants.allows(&tenant("c"), &sub("x")));
        assert_eq!(scope.only_tenant(), None);
        assert_eq!(list(&[("b", Some(&[]))]).only_tenant(), Some(&tenant("b")));
        let grant = Grant::new("key", Role::Read, scope);
        assert!(grant.allows_tenant(&tenant("b")) && !grant.allows_tenant(&tenant("c")));
        assert!(grant.allows(&tenant("b"), &sub("x")) && !grant.allows(&tenant("b"), &sub("y")));
        assert!(!grant.is_all_tenants());
        assert!(Grant::new("key", Role::Read, KeyScope::AllTenants).is_all_tenants());
    }

    #[test]
    fn no_scope_covers_a_wider_one() {
        let all = KeyScope::AllTenants;
        let whole = list(&[("a", None), ("b", None)]);
        let part = list(&[("a", Some(&["x", "y"]))]);
        let less = list(&[("a", Some(&["x"]))]);
        let chain = [&all, &whole, &part, &less];
        for (i, wide) in chain.iter().enumerate() {
            for (j, narrow) in chain.iter().enumerate() {
                assert_eq!(wide.covers(narrow), i <= j, "{wide:?} {narrow:?}");
            }
        }
        assert!(!part.covers(&list(&[("b", Some(&[]))])));
        assert!(!less.covers(&list(&[])) && all.covers(&list(&[])));
    }
}
