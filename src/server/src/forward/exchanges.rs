//! Bounds on concurrent exchanges, in total and per key.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::overloaded;
use crate::error::ApiError;

/// Maximum number of exchanges at a time.
pub(super) const EXCHANGES_MAX: usize = 512;

/// Number of open exchanges per key.
#[derive(Debug, Default)]
pub(super) struct Exchanges(pub(super) Mutex<HashMap<Arc<str>, usize>>);

/// Permission for one exchange, released when dropped.
#[derive(Debug)]
pub(super) struct ExchangePermit {
    exchanges: Arc<Exchanges>,
    owner: Arc<str>,
}

impl Exchanges {
    /// Acquires a permit for `owner`, who may hold no more exchanges than remain free.
    pub(super) fn enter(self: &Arc<Self>, owner: &Arc<str>) -> Result<ExchangePermit, ApiError> {
        let mut counts = self.0.lock();
        let free = EXCHANGES_MAX.saturating_sub(counts.values().sum());
        if counts.get(owner).is_some_and(|own| *own >= free) || free == 0 {
            return Err(overloaded());
        }
        *counts.entry(Arc::clone(owner)).or_default() += 1;
        Ok(ExchangePermit { exchanges: Arc::clone(self), owner: Arc::clone(owner) })
    }
}

impl Drop for ExchangePermit {
    fn drop(&mut self) {
        let mut counts = self.exchanges.0.lock();
        if let Some(own) = counts.get_mut(&self.owner) {
            *own -= 1;
            if *own == 0 {
                counts.remove(&self.owner);
            }
        }
    }
}
