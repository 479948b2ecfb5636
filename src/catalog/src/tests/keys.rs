//! API keys.

use super::*;
use crate::{AuthError, KeyText, NewKey};
use lodestone_types::{ErrorKind, Grant, KeyScope, Role, TenantGrant};

fn grant_of(catalog: &Catalog, key: &str) -> Grant {
    catalog.authenticate(key).unwrap()
}

fn only(name: &str, sub_tenants: Option<&[&str]>) -> KeyScope {
    let sub_tenants = sub_tenants.map(|names| names.iter().map(|name| sub(name)).collect());
    KeyScope::Tenants(vec![TenantGrant { tenant: tenant(name), sub_tenants }])
}

fn new_key(role: Role, scope: KeyScope) -> NewKey {
    NewKey { name: "k".into(), role, scope, expires_at: None }
}

fn make(fixture: &Fixture, maker: &Grant, new: NewKey) -> KeyText {
    fixture.catalog.create_key(maker, new).unwrap().text
}

#[test]
fn the_first_key_is_made_once() {
    let fixture = Fixture::new();
    let key = fixture.catalog.bootstrap_key().unwrap().unwrap();
    assert_eq!(fixture.catalog.bootstrap_key().unwrap(), None);
    let fixture = fixture.reopen();
    assert_eq!(fixture.catalog.bootstrap_key().unwrap(), None);
    let grant = grant_of(&fixture.catalog, key.expose());
    assert_eq!((grant.role, grant.is_all_tenants()), (Role::Admin, true));
    assert_eq!(&*grant.key_id, key.id());
}

#[test]
fn anything_else_is_refused() {
    let fixture = Fixture::new();
    let operator = Catalog::operator_grant();
    let key = make(&fixture, &operator, new_key(Role::Read, KeyScope::AllTenants));
    let other = KeyText::generate(&SeededIds::new(99), fixture.clock.now());
    let mixed = other.expose().replace(other.id(), key.id());
    let long = "x".repeat(10 << 10);
    let text = key.expose();
    let shorter = &text[..text.len() - 1];
    let longer = format!("{text}x");
    let swapped = text.to_uppercase();
    let basic = format!("Basic {text}");
    for bad in [other.expose(), &mixed, &long, shorter, &longer, &swapped, &basic, "lsk_", " "] {
        let failure = fixture.catalog.authenticate(bad).unwrap_err();
        assert!(matches!(failure, AuthError::Invalid), "{bad}");
    }
    assert!(matches!(fixture.catalog.authenticate("").unwrap_err(), AuthError::Missing));
    assert!(fixture.catalog.authenticate(text).is_ok());
}

/// Goal: a key that was looked up before it existed works once it is created, although its absence
/// was cached. Method: two catalogs with the same seed make the same key.
#[test]
fn a_key_works_although_it_was_asked_for_before_it_was_made() {
    let make = |fixture: &Fixture| {
        make(fixture, &Catalog::operator_grant(), new_key(Role::Read, KeyScope::AllTenants))
    };
    let key = make(&Fixture::new());
    let fixture = Fixture::new();
    for _ in 0..2 {
        let failure = fixture.catalog.authenticate(key.expose()).unwrap_err();
        assert!(matches!(failure, AuthError::Invalid));
    }
    assert_eq!(make(&fixture).expose(), key.expose());
    assert!(fixture.catalog.authenticate(key.expose()).is_ok());
}

#[test]
fn a_right_id_with_a_wrong_secret_is_refused() {
    let fixture = Fixture::new();
    let operator = Catalog::operator_grant();
    let key = make(&fixture, &operator, new_key(Role::Read, KeyScope::AllTenants));
    // Well formed, including the check, so that only the hash can tell.
    let forged = KeyText::of(key.id(), &[1; 32]);
    assert_eq!(forged.id(), key.id());
    let failure = fixture.catalog.authenticate(forged.expose()).unwrap_err();
    assert!(matches!(failure, AuthError::Invalid));
}

#[test]
fn revocation_and_expiry_work_at_once() {
    let fixture = Fixture::new();
    let operator = Catalog::operator_grant();
    let mut new = new_key(Role::Write, KeyScope::AllTenants);
    new.expires_at = Some(fixture.clock.now().plus_millis(1000));
    let short = make(&fixture, &operator, new);
    let long = make(&fixture, &operator, new_key(Role::Write, KeyScope::AllTenants));
    let given = [&short, &long].map(|key| grant_of(&fixture.catalog, key.expose()));
    for grant in [&given[0], &given[1], &operator] {
        fixture.catalog.require_valid(grant).unwrap();
    }
    fixture.clock.advance_millis(1000);
    let failure = fixture.catalog.require_valid(&given[0]).unwrap_err();
    assert!(matches!(failure, AuthError::Expired));
    fixture.catalog.require_valid(&given[1]).unwrap();
    let failure = fixture.catalog.authenticate(short.expose()).unwrap_err();
    assert!(matches!(failure, AuthError::Expired));
    fixture.catalog.revoke_key(&operator, long.id()).unwrap();
    let failure = fixture.catalog.authenticate(long.expose()).unwrap_err();
    assert!(matches!(failure, AuthError::Invalid));
    let failure = fixture.catalog.require_valid(&given[1]).unwrap_err();
    assert!(matches!(failure, AuthError::Invalid));
    let again = fixture.catalog.revoke_key(&operator, long.id()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
}

#[test]
fn a_key_makes_and_sees_keys_within_its_scope_only() {
    let fixture = Fixture::new();
    let operator = Catalog::operator_grant();
    let admin = make(&fixture, &operator, new_key(Role::Admin, only("a", None)));
    let admin = grant_of(&fixture.catalog, admin.expose());
    for wide in [KeyScope::AllTenants, only("b", None)] {
        let refused = fixture.catalog.create_key(&admin, new_key(Role::Read, wide));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let other = make(&fixture, &operator, new_key(Role::Read, only("b", None)));
    let part = make(&fixture, &admin, new_key(Role::Read, only("a", Some(&["x"]))));
    let part_grant = grant_of(&fixture.catalog, part.expose());
    assert!(part_grant.allows(&tenant("a"), &sub("x")));
    assert!(!part_grant.allows(&tenant("a"), &sub("default")));
    let refused = fixture.catalog.create_key(&part_grant, new_key(Role::Write, only("a", None)));
    assert!(refused.is_err());
    let seen = fixture.catalog.list_keys(&admin).unwrap();
    assert!(seen.iter().all(|key| key.id != other.id()) && seen.len() == 2);
    assert!(fixture.catalog.revoke_key(&admin, other.id()).is_err());
    assert_eq!(fixture.catalog.list_keys(&operator).unwrap().len(), 3);
}

#[test]
fn a_scope_does_not_outlive_its_tenant() {
    let fixture = Fixture::new();
    fixture.tenant("a");
    let operator = Catalog::operator_grant();
    let key = make(&fixture, &operator, new_key(Role::Read, only("a", None)));
    assert!(grant_of(&fixture.catalog, key.expose()).allows_tenant(&tenant("a")));
    fixture.catalog.begin_delete_tenant(&tenant("a")).unwrap();
    fixture.tenant("a");
    assert!(!grant_of(&fixture.catalog, key.expose()).allows_tenant(&tenant("a")));
}

#[test]
fn repeated_tenants_of_a_scope_are_one() {
    let fixture = Fixture::new();
    let KeyScope::Tenants(mut grants) = only("a", Some(&["y", "x", "y"])) else { unreachable!() };
    let KeyScope::Tenants(more) = only("a", Some(&["z"])) else { unreachable!() };
    grants.extend(more);
    let KeyScope::Tenants(other) = only("b", Some(&["w"])) else { unreachable!() };
    let KeyScope::Tenants(mut expected) = only("a", Some(&["x", "y", "z"])) else { unreachable!() };
    for all in [&mut grants, &mut expected] {
        all.extend(other.clone());
    }
    let new = new_key(Role::Read, KeyScope::Tenants(grants));
    let key = fixture.catalog.create_key(&Catalog::operator_grant(), new).unwrap();
    assert_eq!(key.info.scope, KeyScope::Tenants(expected));
    assert_eq!(*grant_of(&fixture.catalog, key.text.expose()).scope, key.info.scope);
    // A tenant as a whole includes all its parts.
    let KeyScope::Tenants(mut grants) = only("a", Some(&["x"])) else { unreachable!() };
    let KeyScope::Tenants(whole) = only("a", None) else { unreachable!() };
    grants.extend(whole);
    let new = new_key(Role::Read, KeyScope::Tenants(grants));
    let key = fixture.catalog.create_key(&Catalog::operator_grant(), new).unwrap();
    assert_eq!(key.info.scope, only("a", None));
}

#[test]
fn the_operator_may_give_a_key() {
    let fixture = Fixture::new();
    let key = "an operator's own key, quite long".to_owned();
    assert!(fixture.catalog.clone().with_operator_key(&key[..31]).is_err());
    assert!(fixture.catalog.authenticate(&key).is_err());
    assert!(fixture.catalog.clone().with_operator_key(&key[..32]).is_ok());
    let catalog = fixture.catalog.clone().with_operator_key(&key).unwrap();
    assert_eq!(grant_of(&catalog, &key), Catalog::operator_grant());
    assert!(catalog.authenticate(&format!("{key}.")).is_err());
}

#[test]
fn no_secret_reaches_the_file() {
    let fixture = Fixture::new();
    let key = fixture.catalog.bootstrap_key().unwrap().unwrap();
    let secret = key.expose()[21..64].to_owned();
    let path = fixture.path();
    let wal = path.with_extension("sqlite-wal");
    let holds =
        |bytes: Vec<u8>, text: &str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
    assert!(holds(std::fs::read(&wal).unwrap(), key.id()), "the key itself is stored");
    for file in [path, wal] {
        assert!(!holds(std::fs::read(file).unwrap(), &secret));
    }
}
