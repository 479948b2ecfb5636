//! Turns of tenants at the workers: no tenant keeps all of them while others have work.
//!
//! The catalog serves tenants round-robin, one claim each. That alone does not help a tenant whose
//! work arrives while every worker reads a slow document of another one, so the last free worker of
//! a duty takes only work of a tenant that no worker works for.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use lodestone_catalog::CatalogError;
use lodestone_catalog::job::{Claim, Duty};
use lodestone_types::CollectionId;

/// The workers of each duty, and the tenants that they work for.
#[derive(Debug)]
pub(super) struct Turns {
    process: Workers,
    fetch: Workers,
}

#[derive(Debug)]
struct Workers {
    count: usize,
    /// The number of claims in work of each collection that has any.
    busy: Mutex<BTreeMap<CollectionId, usize>>,
}

/// One claim in work; ends when dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    workers: &'a Workers,
    collection: CollectionId,
}

impl Turns {
    /// So many workers of either duty.
    pub(super) fn new(process: usize, fetch: usize) -> Self {
        let workers = |count| Workers { count, busy: Mutex::default() };
        Self { process: workers(process), fetch: workers(fetch) }
    }

    /// Has an idle worker take its next claim. `claim` is given the collections that have to wait.
    ///
    /// # Errors
    /// Those of `claim`.
    pub(super) fn take(
        &self,
        duty: Duty,
        claim: impl FnOnce(Vec<CollectionId>) -> Result<Option<Claim>, CatalogError>,
    ) -> Result<Option<(Claim, Turn<'_>)>, CatalogError> {
        let workers = match duty {
            Duty::Process => &self.process,
            Duty::Fetch => &self.fetch,
        };
        // Under the lock: two workers must not both think that the other one stays free.
        let mut busy = workers.busy.lock();
        let is_last = busy.values().sum::<usize>() + 1 >= workers.count;
        let waiting = if is_last { busy.keys().copied().collect() } else { Vec::new() };
        let Some(claim) = claim(waiting)? else { return Ok(None) };
        let collection = claim.collection;
        *busy.entry(collection).or_insert(0) += 1;
        drop(busy);
        Ok(Some((claim, Turn { workers, collection })))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut busy = self.workers.busy.lock();
        let claims = busy.get_mut(&self.collection).expect("it was counted when it began");
        *claims -= 1;
        if *claims == 0 {
            busy.remove(&self.collection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_types::TenantId;

    fn of(name: u128) -> Claim {
        let collection = CollectionId(uuid::Uuid::from_u128(name));
        Claim { collection, tenant: TenantId::parse("t").unwrap(), jobs: Vec::new() }
    }

    #[test]
    fn the_last_free_worker_is_for_a_tenant_without_one() {
        let turns = Turns::new(3, 1);
        let take = |name, waiting: &[u128]| {
            let claim = |except: Vec<CollectionId>| {
                let except: Vec<u128> = except.iter().map(|id| id.0.as_u128()).collect();
                assert_eq!(except, waiting);
                Ok(Some(of(name)))
            };
            turns.take(Duty::Process, claim).unwrap().unwrap().1
        };
        let (first, second) = (take(1, &[]), take(1, &[]));
        let third = take(2, &[1]);
        drop(first);
        let first = take(3, &[1, 2]);
        drop((first, second, third));
        let first = take(1, &[]);
        assert!(turns.take(Duty::Fetch, |except| Ok(Some(of(except.len() as u128)))).is_ok());
        drop(first);
        assert!(turns.process.busy.lock().is_empty());
    }
}
