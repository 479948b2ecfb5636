//! API keys, and stored responses to idempotent requests.

use crate::{Engine, EngineError};
use lodestone_catalog::{
    Catalog, CatalogError, CreatedKey, KeyInfo, KeyText, NewKey, RequestGuard, RequestStart,
};
use lodestone_types::{Grant, KeyScope, Role, Timestamp};

/// Name of the key inside a sign-in link for the console.
const SIGN_IN_NAME: &str = "console: sign-in link";
/// Name of the session key that the console creates when it redeems a sign-in link.
const SITTING_NAME: &str = "console: signed in by link";
/// Time in milliseconds within which a sign-in link must be followed.
const SIGN_IN_MILLIS: u64 = 10 * 60 * 1000;

impl Engine {
    /// Creates an admin key for a link that signs in to the console. It is valid for ten minutes,
    /// and the console revokes it on first use. Expired keys of earlier links are removed.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn sign_in_key(&self) -> Result<KeyText, EngineError> {
        let (operator, now) = (Catalog::operator_grant(), self.clock.now());
        for key in self.catalog.list_keys(&operator)? {
            let is_of_links = [SIGN_IN_NAME, SITTING_NAME].contains(&key.name.as_str());
            if is_of_links && key.expires_at.is_some_and(|end| end <= now) {
                self.catalog.revoke_key(&operator, &key.id)?;
            }
        }
        let new = NewKey {
            name: SIGN_IN_NAME.to_owned(),
            role: Role::Admin,
            scope: KeyScope::AllTenants,
            expires_at: Some(Timestamp(now.0 + SIGN_IN_MILLIS)),
        };
        Ok(self.create_key(&operator, new)?.text)
    }

    /// Creates a key that is no more powerful than the key that creates it.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a wider role or scope.
    pub fn create_key(&self, maker: &Grant, new: NewKey) -> Result<CreatedKey, EngineError> {
        match self.catalog.create_key(maker, new) {
            Err(CatalogError::ScopeTooWide) => {
                let need = "a key cannot create a key with a wider scope or role";
                Err(EngineError::Forbidden { need })
            }
            created => Ok(created?),
        }
    }

    /// The keys within the viewer's scope, without their secrets.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn keys(&self, viewer: &Grant) -> Result<Vec<KeyInfo>, EngineError> {
        Ok(self.catalog.list_keys(viewer)?)
    }

    /// Revokes a key, with immediate effect.
    ///
    /// # Errors
    /// [`CatalogError::KeyUnknown`] if the viewer sees no such key.
    pub fn revoke_key(&self, viewer: &Grant, id: &str) -> Result<(), EngineError> {
        Ok(self.catalog.revoke_key(viewer, id)?)
    }

    /// Begins a request that carries an idempotency key, or finds its earlier response. While the
    /// disk is full, only requests that are known already begin.
    ///
    /// # Errors
    /// [`CatalogError::IdempotencyLimit`], [`CatalogError::StorageFull`]; errors of the catalog.
    pub fn begin_request(
        &self,
        grant: &Grant,
        path: &str,
        value: &str,
        request_hash: [u8; 32],
    ) -> Result<RequestStart, EngineError> {
        let (key, owner) = (&grant.key_id, &grant.owner());
        let is_full = self.ingest.require_room_for_content().is_err();
        Ok(self.catalog.begin_request((key, owner), path, value, request_hash, is_full)?)
    }

    /// Stores the response of such a request for repetitions of it.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn finish_request(
        &self,
        ticket: RequestGuard,
        status: u16,
        body: &[u8],
    ) -> Result<(), EngineError> {
        Ok(self.catalog.finish_request(ticket, status, body)?)
    }
}
