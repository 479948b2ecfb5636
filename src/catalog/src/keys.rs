//! API keys: creation, authentication, revocation.
//!
//! The file stores the SHA-256 of each secret. Secrets have 256 random bits, so a slow hash would
//! add nothing. Hashes are compared in constant time, and an unknown id costs the same comparison.

use std::sync::Arc;

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use super::Catalog;
use super::error::{CatalogError, Result};
use super::key_text::KeyText;
use super::rows::{Cells, Statements};
use lodestone_types::{Grant, KeyScope, Role, SubTenantId, TenantGrant, TenantId, Timestamp};

/// Minimum length of a key supplied by the operator.
const OPERATOR_KEY_CHARS_MIN: usize = 32;
/// The id of the operator's key.
const OPERATOR_KEY_ID: &str = "operator";

/// Parameters of a new key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Name for people to recognise the key by.
    pub name: String,
    /// The operations that the key may request.
    pub role: Role,
    /// The data that the key can reach.
    pub scope: KeyScope,
    /// When the key expires; `None` for never.
    pub expires_at: Option<Timestamp>,
}

/// The public properties of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// The public part of the key.
    pub id: String,
    /// Name for people to recognise the key by.
    pub name: String,
    /// The operations that the key may request.
    pub role: Role,
    /// The data that the key can reach, with tenants in ascending order.
    pub scope: KeyScope,
    /// When the key expires; `None` for never.
    pub expires_at: Option<Timestamp>,
    /// When the key was created.
    pub created_at: Timestamp,
}

/// A newly created key. Its text is not stored anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedKey {
    /// Its public properties.
    pub info: KeyInfo,
    /// The key itself, to be shown once.
    pub text: KeyText,
}

/// Reasons why authentication fails. Clients see all but the last as the same 401.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// No key was given.
    #[error("no api key was given")]
    Missing,
    /// The key is malformed, unknown or revoked.
    #[error("the api key is not valid")]
    Invalid,
    /// The key has expired.
    #[error("the api key has expired")]
    Expired,
    /// Keys cannot be read at the moment.
    #[error("{source}")]
    Storage {
        /// The error.
        source: CatalogError,
    },
}

/// A key as held in the cache.
pub(super) struct StoredKey {
    secret_hash: [u8; 32],
    expires_at: Option<Timestamp>,
    grant: Grant,
}

impl Catalog {
    /// Accepts, in addition to stored keys, one supplied by the operator: any text of at least 32
    /// characters, valid for all tenants with the admin role. Only its hash is kept, and only in
    /// memory.
    ///
    /// # Errors
    /// [`CatalogError::KeyTooShort`] if the key is too short.
    pub fn with_operator_key(self, key: &str) -> Result<Self> {
        let chars = key.chars().count();
        if chars < OPERATOR_KEY_CHARS_MIN {
            return Err(CatalogError::KeyTooShort { chars, min: OPERATOR_KEY_CHARS_MIN });
        }
        *self.inner.operator_key.write() = Some(hash(key));
        Ok(self)
    }

    /// The rights of the machine's operator: everything.
    pub fn operator_grant() -> Grant {
        let scope = Arc::new(KeyScope::AllTenants);
        Grant::new(OPERATOR_KEY_ID, Role::Admin, scope)
    }

    /// Whether [`Self::authenticate`] can answer for `key` from memory, without reading the file.
    pub fn is_key_at_hand(&self, key: &str) -> bool {
        KeyText::parse(key).is_none_or(|text| self.inner.keys.holds(&text.id().to_owned()))
    }

    /// Authenticates `key` and returns the rights of its bearer.
    ///
    /// # Errors
    /// [`AuthError`] if there are none, or keys cannot be read.
    pub fn authenticate(&self, key: &str) -> std::result::Result<Grant, AuthError> {
        if key.is_empty() {
            return Err(AuthError::Missing);
        }
        let operator_key = *self.inner.operator_key.read();
        if is_equal(operator_key.as_ref(), &hash(key)) {
            return Ok(Self::operator_grant());
        }
        // A follower may lack a new key, and a superseded writer may not know of a revocation.
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

    /// Refuses a grant whose key has expired or has been revoked since it was issued.
    ///
    /// # Errors
    /// [`AuthError`] if it has, or keys cannot be read.
    pub fn require_valid(&self, grant: &Grant) -> std::result::Result<(), AuthError> {
        if &*grant.key_id == OPERATOR_KEY_ID {
            return Ok(());
        }
        self.require_current().map_err(|source| AuthError::Storage { source })?;
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

    /// Creates an admin key for all tenants if there are no keys at all, and returns it this once.
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

    /// Creates a key on behalf of `maker`, whose role and scope must include those of the new key.
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
        // A look-up of this id before may have been cached as unknown.
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

    /// Lists the keys within the viewer's scope, oldest first.
    pub fn list_keys(&self, viewer: &Grant) -> Result<Vec<KeyInfo>> {
        let sql = "SELECT id, name, role, all_tenants, expires_at, created_at, secret_hash
            FROM api_keys ORDER BY created_at, id";
        self.read(|connection| {
            let keys = connection.all(sql, [], |cells| read_info(connection, cells))?;
            let keys = keys.into_iter().map(|(info, _)| info);
            Ok(keys.filter(|info| viewer.scope.covers(&info.scope)).collect())
        })
    }

    /// Revokes a key within the viewer's scope; once this returns, the key is refused.
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

/// Compares two hashes in constant time; a missing stored hash is compared as zeros and never
/// equal.
fn is_equal(stored: Option<&[u8; 32]>, given: &[u8; 32]) -> bool {
    let is_there = Choice::from(u8::from(stored.is_some()));
    let is_same = stored.unwrap_or(&[0; 32]).ct_eq(given);
    (is_there & is_same).into()
}

/// Sorts the tenants of a scope and merges duplicates.
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

/// Stores the tenants of a scope; `columns` names the table and its columns for owner, tenant and
/// sub-tenants.
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

/// Reads a scope's entry for one tenant.
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
