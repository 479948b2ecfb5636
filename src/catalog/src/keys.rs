//! API keys: creation, authentication, revocation.
//!
//! The file holds SHA-256 of each secret. A secret has 256 random bits, so a slow hash would add
//! nothing. Hashes are compared in constant time, and an unknown id costs the same comparison.

use std::sync::Arc;

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use super::Catalog;
use super::error::{CatalogError, Result};
use super::key_text::KeyText;
use super::rows::{Cells, Statements};
use lodestone_types::{Grant, KeyScope, Role, SubTenantId, TenantGrant, TenantId, Timestamp};

/// Characters that a key given by the operator needs.
const OPERATOR_KEY_CHARS_MIN: usize = 32;
/// The id of that key.
const OPERATOR_KEY_ID: &str = "operator";

/// Parameters of a new key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// A name for people.
    pub name: String,
    /// The operations it may ask for.
    pub role: Role,
    /// The data it reaches.
    pub scope: KeyScope,
    /// Time from which it is refused.
    pub expires_at: Option<Timestamp>,
}

/// The public properties of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// The public part.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// The operations it may ask for.
    pub role: Role,
    /// The data it reaches; tenants in ascending order.
    pub scope: KeyScope,
    /// Time from which it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A fresh key. Its text is not stored anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedKey {
    /// Its public properties.
    pub info: KeyInfo,
    /// The key, to be shown once.
    pub text: KeyText,
}

/// Errors of authentication. The client sees all but the last as the same 401.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// There is no key.
    #[error("no api key was given")]
    Missing,
    /// The key is malformed, unknown or revoked.
    #[error("the api key is not valid")]
    Invalid,
    /// The key has expired.
    #[error("the api key has expired")]
    Expired,
    /// Keys cannot be read now.
    #[error("{source}")]
    Storage {
        /// The error.
        source: CatalogError,
    },
}

/// A key as the cache holds it.
pub(super) struct StoredKey {
    secret_hash: [u8; 32],
    expires_at: Option<Timestamp>,
    grant: Grant,
}

impl Catalog {
    /// Accepts, besides stored keys, one given by the operator: any text of 32 characters or
    /// more, for all tenants with every role. Only its hash is kept, and only in memory.
    ///
    /// # Errors
    /// [`CatalogError::KeyTooShort`].
    pub fn with_operator_key(self, key: &str) -> Result<Self> {
        let chars = key.chars().count();
        if chars < OPERATOR_KEY_CHARS_MIN {
            return Err(CatalogError::KeyTooShort { chars, min: OPERATOR_KEY_CHARS_MIN });
        }
        *self.inner.operator_key.write() = Some(hash(key));
        Ok(self)
    }

    /// Rights of the operator of the machine: everything.
    pub fn operator_grant() -> Grant {
        let scope = Arc::new(KeyScope::AllTenants);
        Grant::new(OPERATOR_KEY_ID, Role::Admin, scope)
    }

    /// Whether [`Self::authenticate`] answers for `key` from memory, without a read of the file.
    pub fn is_key_at_hand(&self, key: &str) -> bool {
        KeyText::parse(key).is_none_or(|text| self.inner.keys.holds(&text.id().to_owned()))
    }

    /// Rights of the bearer of `key`.
    ///
    /// # Errors
    /// [`AuthError`].
    pub fn authenticate(&self, key: &str) -> std::result::Result<Grant, AuthError> {
        if key.is_empty() {
            return Err(AuthError::Missing);
        }
        let operator_key = *self.inner.operator_key.read();
        if is_equal(operator_key.as_ref(), &hash(key)) {
            return Ok(Self::operator_grant());
        }
        // A key may be missing here, or revoked elsewhere.
        self.require_current().map_err(|source| AuthError::Storage { source })?;
        let parsed = KeyText::parse(key);
        let stored = match &parsed {
            None => None,
            Some(text) => self.stored_key(text.id())?,
        };
        let given = hash(parsed.as_ref().map_or(key, KeyText::secret));
        let is_known = is_equal(stored.as_ref().map(|stored| &stored.secret_hash), &given);
        match stored {
            Some(stored) if is_known => {
                self.require_unexpired(&stored)?;
                Ok(stored.grant.clone())
            }
            _ => Err(AuthError::Invalid),
        }
    }

    /// Refuses a grant whose key has expired or was revoked since it was given.
    ///
    /// # Errors
    /// [`AuthError`].
    pub fn require_valid(&self, grant: &Grant) -> std::result::Result<(), AuthError> {
        if &*grant.key_id == OPERATOR_KEY_ID {
            return Ok(());
        }
        let stored = self.stored_key(&grant.key_id)?.ok_or(AuthError::Invalid)?;
        self.require_unexpired(&stored)
    }

    fn stored_key(&self, id: &str) -> std::result::Result<Option<Arc<StoredKey>>, AuthError> {
        let id = id.to_owned();
        let load = || self.read(|connection| read_stored(connection, &id));
        let found = self.inner.keys.get_or_load(&id, load);
        found.map_err(|source| AuthError::Storage { source })
    }

    fn require_unexpired(&self, stored: &StoredKey) -> std::result::Result<(), AuthError> {
        let is_over = stored.expires_at.is_some_and(|end| end <= self.inner.clock.now());
        if is_over { Err(AuthError::Expired) } else { Ok(()) }
    }

    /// Makes an all-tenant admin key if there is no key at all, and returns it, once.
    pub fn bootstrap_key(&self) -> Result<Option<KeyText>> {
        let scope = KeyScope::AllTenants;
        let (name, role) = ("first key".into(), Role::Admin);
        let key = self.fresh_key(NewKey { name, role, scope, expires_at: None });
        let id = key.info.id.clone();
        let made = self.write(move |connection| {
            if connection.any("SELECT 1 FROM api_keys", [])? {
                return Ok(None);
            }
            insert(connection, &key)?;
            Ok(Some(key.text))
        });
        self.inner.keys.forget(&id);
        made
    }

    /// Makes a key on behalf of `maker`, within whose role and scope it must be.
    ///
    /// # Errors
    /// [`CatalogError::ScopeTooWide`], storage errors.
    pub fn create_key(&self, maker: &Grant, new: NewKey) -> Result<CreatedKey> {
        if new.role > maker.role || !maker.scope.covers(&new.scope) {
            return Err(CatalogError::ScopeTooWide);
        }
        let key = self.fresh_key(new);
        let id = key.info.id.clone();
        let created = self.write(move |connection| {
            insert(connection, &key)?;
            Ok(key)
        });
        // Somebody may have asked for this id before.
        self.inner.keys.forget(&id);
        created
    }

    fn fresh_key(&self, new: NewKey) -> CreatedKey {
        let NewKey { name, role, scope, expires_at } = new;
        let created_at = self.inner.clock.now();
        let text = KeyText::generate(&*self.inner.ids, created_at);
        let id = text.id().to_owned();
        let scope = in_order(scope);
        CreatedKey { info: KeyInfo { id, name, role, scope, expires_at, created_at }, text }
    }

    /// Keys within the viewer's scope, oldest first.
    pub fn list_keys(&self, viewer: &Grant) -> Result<Vec<KeyInfo>> {
        let sql = "SELECT id, name, role, all_tenants, expires_at, created_at, secret_hash
            FROM api_keys ORDER BY created_at, id";
        self.read(|connection| {
            let keys = connection.all(sql, [], |cells| read_info(connection, cells))?;
            let keys = keys.into_iter().map(|(info, _)| info);
            Ok(keys.filter(|info| viewer.scope.covers(&info.scope)).collect())
        })
    }

    /// Revokes a key within the viewer's scope: it fails from the moment this returns.
    ///
    /// # Errors
    /// [`CatalogError::KeyUnknown`], storage errors.
    pub fn revoke_key(&self, viewer: &Grant, id: &str) -> Result<()> {
        let (key_id, scope) = (id.to_owned(), Arc::clone(&viewer.scope));
        let revoked = self.write(move |connection| {
            let known = read_key(connection, &key_id)?;
            if !known.is_some_and(|(info, _)| scope.covers(&info.scope)) {
                return Err(CatalogError::KeyUnknown { id: key_id });
            }
            connection.run("DELETE FROM api_keys WHERE id = ?1", [&key_id])
        });
        self.inner.keys.forget(&id.to_owned());
        revoked
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Compares in constant time; without a stored hash against zeros, and returns false.
fn is_equal(stored: Option<&[u8; 32]>, given: &[u8; 32]) -> bool {
    let is_there = Choice::from(u8::from(stored.is_some()));
    let is_same = stored.unwrap_or(&[0; 32]).ct_eq(given);
    (is_there & is_same).into()
}

/// Tenants in ascending order, each once.
pub(super) fn in_order(scope: KeyScope) -> KeyScope {
    let KeyScope::Tenants(mut grants) = scope else { return scope };
    grants.sort_by(|a, b| a.tenant.cmp(&b.tenant));
    let mut merged: Vec<TenantGrant> = Vec::with_capacity(grants.len());
    for grant in grants {
        match merged.last_mut() {
            Some(last) if last.tenant == grant.tenant => {
                last.sub_tenants = match (last.sub_tenants.take(), grant.sub_tenants) {
                    (Some(mut names), Some(more)) => {
                        names.extend(more);
                        Some(names)
                    }
                    _ => None,
                };
            }
            _ => merged.push(grant),
        }
    }
    for names in merged.iter_mut().filter_map(|grant| grant.sub_tenants.as_mut()) {
        names.sort();
        names.dedup();
    }
    KeyScope::Tenants(merged)
}

fn insert(connection: &Connection, key: &CreatedKey) -> Result<()> {
    let CreatedKey { info, text } = key;
    let KeyInfo { id, name, role, scope, expires_at, created_at } = info;
    connection.run(
        "INSERT INTO api_keys (id, name, role, all_tenants, secret_hash, expires_at, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            id,
            name,
            role.as_str(),
            scope.is_all_tenants(),
            hash(text.secret()),
            expires_at.map(|time| time.0 as i64),
            created_at.0 as i64,
        ],
    )?;
    insert_scope(connection, "key_scopes (key_id, tenant, sub_tenants)", id, scope)
}

/// Stores the tenants of a scope; `columns` names the table and those of the owner, the tenant and
/// its sub-tenants.
pub(super) fn insert_scope(
    connection: &Connection,
    columns: &str,
    owner: &str,
    scope: &KeyScope,
) -> Result<()> {
    let KeyScope::Tenants(grants) = scope else { return Ok(()) };
    let sql = format!("INSERT INTO {columns} VALUES (?1, ?2, ?3)");
    for TenantGrant { tenant, sub_tenants } in grants {
        let names = sub_tenants.as_ref().map(|names| {
            let names: Vec<&str> = names.iter().map(SubTenantId::as_str).collect();
            serde_json::to_string(&names).expect("a list of texts is valid JSON")
        });
        connection.run(&sql, params![owner, tenant.as_str(), names])?;
    }
    Ok(())
}

fn read_stored(connection: &Connection, id: &str) -> Result<Option<StoredKey>> {
    Ok(read_key(connection, id)?.map(|(info, secret_hash)| {
        let KeyInfo { id, name: _, role, scope, expires_at, created_at: _ } = info;
        let grant = Grant::new(id, role, scope);
        StoredKey { secret_hash, expires_at, grant }
    }))
}

fn read_key(connection: &Connection, id: &str) -> Result<Option<(KeyInfo, [u8; 32])>> {
    let sql = "SELECT id, name, role, all_tenants, expires_at, created_at, secret_hash
        FROM api_keys WHERE id = ?1";
    connection.first(sql, [id], |cells| read_info(connection, cells))
}

fn read_info(connection: &Connection, cells: &mut Cells<'_>) -> Result<(KeyInfo, [u8; 32])> {
    let (id, name): (String, String) = (cells.next()?, cells.next()?);
    let role = cells.word(Role::from_word)?;
    let scope = match cells.next::<bool>()? {
        true => KeyScope::AllTenants,
        false => KeyScope::Tenants(read_scope(connection, &id)?),
    };
    let (expires_at, created_at) = (cells.optional_time()?, cells.time()?);
    let info = KeyInfo { id, name, role, scope, expires_at, created_at };
    Ok((info, cells.next()?))
}

fn read_scope(connection: &Connection, id: &str) -> Result<Vec<TenantGrant>> {
    let sql = "SELECT tenant, sub_tenants FROM key_scopes WHERE key_id = ?1 ORDER BY tenant";
    connection.all(sql, [id], read_tenant_grant)
}

/// Reads a tenant and its sub-tenants.
pub(super) fn read_tenant_grant(cells: &mut Cells<'_>) -> Result<TenantGrant> {
    let tenant: TenantId = cells.tenant()?;
    let damaged = |what: String| CatalogError::corrupt(format!("scope in tenant {tenant}: {what}"));
    let mut sub_tenants = None;
    if let Some(text) = cells.next::<Option<String>>()? {
        let names: Vec<String> =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        let names = names.iter().map(|name| SubTenantId::parse(name));
        let names = names.collect::<std::result::Result<Vec<_>, _>>();
        sub_tenants = Some(names.map_err(|error| damaged(error.to_string()))?);
    }
    Ok(TenantGrant { tenant, sub_tenants })
}
