//! API keys, and responses kept for repeated requests.

use crate::{Engine, EngineError};
use lodestone_catalog::{CatalogError, CreatedKey, KeyInfo, NewKey, RequestGuard, RequestStart};
use lodestone_types::Grant;

impl Engine {
    /// Makes a key that reaches no further than its maker.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a wider role or scope.
    pub fn create_key(&self, maker: &Grant, new: NewKey) -> Result<CreatedKey, EngineError> {
        match self.catalog.create_key(maker, new) {
            Err(CatalogError::ScopeTooWide) => {
                let need = "a key cannot make one with a wider scope or role";
                Err(EngineError::Forbidden { need })
            }
            created => Ok(created?),
        }
    }

    /// Keys within the viewer's scope, without their secrets.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn keys(&self, viewer: &Grant) -> Result<Vec<KeyInfo>, EngineError> {
        Ok(self.catalog.list_keys(viewer)?)
    }

    /// Revokes a key, effective at once.
    ///
    /// # Errors
    /// [`CatalogError::KeyUnknown`] where the viewer sees no such key.
    pub fn revoke_key(&self, viewer: &Grant, id: &str) -> Result<(), EngineError> {
        Ok(self.catalog.revoke_key(viewer, id)?)
    }

    /// Begins a request that carries an idempotency key.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn begin_request(
        &self,
        grant: &Grant,
        path: &str,
        value: &str,
        request_hash: [u8; 32],
    ) -> Result<RequestStart, EngineError> {
        Ok(self.catalog.begin_request(&grant.key_id, path, value, request_hash)?)
    }

    /// Keeps the response of such a request.
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
