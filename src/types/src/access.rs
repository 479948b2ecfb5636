//! Rights of an API key: a role and a scope.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{CollectionId, SubTenantId, TenantId};

/// The class of operations a key may request. Each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Search, list, statistics, fetch, status.
    Read,
    /// Also uploads, updates and deletions of sources.
    Write,
    /// Also tenants, export, import and keys.
    Admin,
}

words!(Role { Read = "read", Write = "write", Admin = "admin" });

/// A scope's entry for one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantGrant {
    /// The tenant.
    pub tenant: TenantId,
    /// The sub-tenants within it; `None` means all of them, including future ones.
    pub sub_tenants: Option<Vec<SubTenantId>>,
}

/// The data that a key can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyScope {
    /// Every tenant, including future ones.
    AllTenants,
    /// Only these tenants. Empty: none.
    Tenants(Vec<TenantGrant>),
}

impl KeyScope {
    /// The entry for `tenant`, if the scope is a list that contains it.
    fn entry(&self, tenant: &TenantId) -> Option<&TenantGrant> {
        match self {
            Self::AllTenants => None,
            Self::Tenants(grants) => grants.iter().find(|grant| grant.tenant == *tenant),
        }
    }

    /// Whether the scope covers every tenant.
    pub fn is_all_tenants(&self) -> bool {
        matches!(self, Self::AllTenants)
    }

    /// The only tenant, if the scope lists exactly one.
    pub fn only_tenant(&self) -> Option<&TenantId> {
        match self {
            Self::Tenants(grants) if grants.len() == 1 => Some(&grants[0].tenant),
            _ => None,
        }
    }

    /// Whether the scope names `tenant`, in whole or in part.
    pub fn allows_tenant(&self, tenant: &TenantId) -> bool {
        self.is_all_tenants() || self.entry(tenant).is_some()
    }

    /// Whether the scope covers all of `tenant`, including future sub-tenants.
    pub fn allows_whole_tenant(&self, tenant: &TenantId) -> bool {
        self.is_all_tenants() || self.entry(tenant).is_some_and(|e| e.sub_tenants.is_none())
    }

    /// Whether the scope covers one sub-tenant.
    pub fn allows(&self, tenant: &TenantId, sub_tenant: &SubTenantId) -> bool {
        if self.is_all_tenants() {
            return true;
        }
        self.entry(tenant).is_some_and(|entry| match &entry.sub_tenants {
            None => true,
            Some(names) => names.contains(sub_tenant),
        })
    }

    /// Whether `self` covers everything that `other` covers.
    pub fn covers(&self, other: &KeyScope) -> bool {
        let grants = match (self, other) {
            (Self::AllTenants, _) => return true,
            (Self::Tenants(_), Self::AllTenants) => return false,
            // A key that has lost all its tenants is manageable by the operator only.
            (Self::Tenants(_), Self::Tenants(grants)) if grants.is_empty() => return false,
            (Self::Tenants(_), Self::Tenants(grants)) => grants,
        };
        grants.iter().all(|grant| match &grant.sub_tenants {
            None => self.allows_whole_tenant(&grant.tenant),
            // An entry without sub-tenants grants nothing, but it still names the tenant.
            Some(names) => {
                self.allows_tenant(&grant.tenant)
                    && names.iter().all(|name| self.allows(&grant.tenant, name))
            }
        })
    }
}

/// The tenants for which one request has already been counted. Clones share the state; the default
/// counts nothing.
#[derive(Debug, Clone, Default)]
pub struct Tally(Option<Arc<Mutex<Vec<CollectionId>>>>);

impl Tally {
    /// Creates a tally that counts a request once per tenant that it reaches.
    pub fn counting() -> Self {
        Self(Some(Arc::default()))
    }

    /// Counts the request for a tenant by calling `count`, unless that was done before.
    ///
    /// # Errors
    /// Errors of `count`; the request then stays uncounted.
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

// Grants compare equal regardless of the requests counted so far.
impl PartialEq for Tally {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Tally {}

/// The rights of an authenticated request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The public part of the key (its id).
    pub key_id: Arc<str>,
    /// The operations the request may perform.
    pub role: Role,
    /// The data the request may reach.
    pub scope: Arc<KeyScope>,
    /// The tenants for which the request has been counted.
    pub tally: Tally,
}

impl Grant {
    /// Creates a grant whose use is not counted.
    pub fn new(key_id: impl Into<Arc<str>>, role: Role, scope: impl Into<Arc<KeyScope>>) -> Self {
        Self { key_id: key_id.into(), role, scope: scope.into(), tally: Tally::default() }
    }

    /// Prepares the grant for one request, to be counted once per tenant that it reaches.
    #[must_use]
    pub fn counted(self) -> Self {
        Self { tally: Tally::counting(), ..self }
    }

    /// Returns a copy of the grant whose use is not counted.
    #[must_use]
    pub fn uncounted(&self) -> Self {
        Self { tally: Tally::default(), ..self.clone() }
    }

    /// Returns the party that resources in use are counted for: the only tenant of the scope,
    /// however many keys it has, or else the key.
    pub fn owner(&self) -> Arc<str> {
        match self.scope.only_tenant() {
            // No id of a key contains a space.
            Some(tenant) => format!("tenant {tenant}").into(),
            None => Arc::clone(&self.key_id),
        }
    }

    /// Whether the scope covers every tenant.
    pub fn is_all_tenants(&self) -> bool {
        self.scope.is_all_tenants()
    }

    /// Whether the scope names `tenant`, in whole or in part.
    pub fn allows_tenant(&self, tenant: &TenantId) -> bool {
        self.scope.allows_tenant(tenant)
    }

    /// Whether the scope covers one sub-tenant.
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
    fn the_keys_of_one_tenant_have_one_owner() {
        let owner = |key: &str, scope| Grant::new(key, Role::Read, scope).owner();
        let of_a = owner("k1", list(&[("a", None)]));
        assert_eq!(of_a, owner("k2", list(&[("a", Some(&["x"]))])));
        assert_ne!(of_a, owner("k1", list(&[("b", None)])));
        for scope in [KeyScope::AllTenants, list(&[("a", None), ("b", None)]), list(&[])] {
            assert_eq!(&*owner("k1", scope), "k1");
        }
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
