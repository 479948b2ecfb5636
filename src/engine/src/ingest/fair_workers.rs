//! Shares workers among tenants, so that no tenant occupies all of them while others have work.
//!
//! The catalog serves tenants round-robin, one claim each. That alone does not help a tenant whose
//! work arrives while every worker is busy with slow documents of another one. Therefore the last
//! free worker of a duty only takes work of tenants that no worker is working for. A tenant with a
//! limit of workers gets at most that many for each duty.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use lodestone_catalog::CatalogError;
use lodestone_catalog::job::{Claim, Duty};
use lodestone_types::{CollectionId, TenantId};

/// The workers of each duty, and the tenants that they are working for.
#[derive(Debug)]
pub(super) struct FairWorkers {
    process: Workers,
    fetch: Workers,
}

#[derive(Debug)]
struct Workers {
    count: usize,
    /// The tenants with claims in progress.
    busy: Mutex<BTreeMap<CollectionId, Busy>>,
}

#[derive(Debug)]
struct Busy {
    tenant: TenantId,
    claims: usize,
}

/// A claim in progress; it ends on drop.
#[derive(Debug)]
pub(super) struct ClaimInWork<'a> {
    workers: &'a Workers,
    collection: CollectionId,
}

impl FairWorkers {
    /// Creates the counts for `process` document workers and `fetch` page workers.
    pub(super) fn new(process: usize, fetch: usize) -> Self {
        let workers = |count| Workers { count, busy: Mutex::default() };
        Self { process: workers(process), fetch: workers(fetch) }
    }

    /// Number of workers that are processing documents of a tenant.
    pub(super) fn processing(&self, collection: CollectionId) -> usize {
        self.process.busy.lock().get(&collection).map_or(0, |busy| busy.claims)
    }

    /// Lets an idle worker take its next claim. `claim` receives the collections that have to wait;
    /// `workers_for` returns the maximum number of workers of a tenant.
    ///
    /// # Errors
    /// Errors of `claim`.
    pub(super) fn take(
        &self,
        duty: Duty,
        workers_for: impl Fn(&TenantId) -> Option<usize>,
        claim: impl FnOnce(Vec<CollectionId>) -> Result<Option<Claim>, CatalogError>,
    ) -> Result<Option<(Claim, ClaimInWork<'_>)>, CatalogError> {
        let workers = match duty {
            Duty::Process => &self.process,
            Duty::Fetch => &self.fetch,
        };
        // Held during the claim: two workers must not both assume that the other one stays free.
        let mut busy = workers.busy.lock();
        let is_last = busy.values().map(|busy| busy.claims).sum::<usize>() + 1 >= workers.count;
        let has_enough =
            |busy: &Busy| workers_for(&busy.tenant).is_some_and(|most| busy.claims >= most);
        let waiting = busy.iter().filter(|(_, busy)| is_last || has_enough(busy));
        let waiting = waiting.map(|(collection, _)| *collection).collect();
        let Some(claim) = claim(waiting)? else { return Ok(None) };
        let collection = claim.collection;
        let tenant = claim.tenant.clone();
        busy.entry(collection).or_insert(Busy { tenant, claims: 0 }).claims += 1;
        drop(busy);
        Ok(Some((claim, ClaimInWork { workers, collection })))
    }
}

impl Drop for ClaimInWork<'_> {
    fn drop(&mut self) {
        let mut busy = self.workers.busy.lock();
        let of = busy.get_mut(&self.collection).expect("it was counted when it began");
        of.claims -= 1;
        if of.claims == 0 {
            busy.remove(&self.collection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: u128) -> Claim {
        let collection = CollectionId(uuid::Uuid::from_u128(name));
        Claim {
            collection,
            tenant: TenantId::parse(&format!("t{name}")).unwrap(),
            jobs: Vec::new(),
        }
    }

    #[test]
    fn the_last_free_worker_is_for_a_tenant_without_one() {
        let workers = FairWorkers::new(3, 1);
        let take = |name, waiting: &[u128]| {
            let claim = |except: Vec<CollectionId>| {
                let except: Vec<u128> = except.iter().map(|id| id.0.as_u128()).collect();
                assert_eq!(except, waiting);
                Ok(Some(of(name)))
            };
            workers.take(Duty::Process, |_| None, claim).unwrap().unwrap().1
        };
        let (first, second) = (take(1, &[]), take(1, &[]));
        let third = take(2, &[1]);
        drop(first);
        let first = take(3, &[1, 2]);
        drop((first, second, third));
        let first = take(1, &[]);
        let page = |except: Vec<CollectionId>| Ok(Some(of(except.len() as u128)));
        assert!(workers.take(Duty::Fetch, |_| None, page).is_ok());
        drop(first);
        assert!(workers.process.busy.lock().is_empty());
    }

    #[test]
    fn a_tenant_with_as_many_workers_as_it_may_have_waits_and_others_do_not() {
        let workers = FairWorkers::new(9, 9);
        let most = std::cell::Cell::new(2);
        let of_limited = |tenant: &TenantId| (tenant.as_str() == "t1").then(|| most.get());
        let take = |duty, name, waiting: &[u128]| {
            let claim = |except: Vec<CollectionId>| {
                let except: Vec<u128> = except.iter().map(|id| id.0.as_u128()).collect();
                assert_eq!(except, waiting);
                Ok(Some(of(name)))
            };
            workers.take(duty, of_limited, claim).unwrap().unwrap().1
        };
        let first = take(Duty::Process, 1, &[]);
        let _second = take(Duty::Process, 1, &[]);
        let _others = [2, 2, 2].map(|name| take(Duty::Process, name, &[1]));
        let _page = take(Duty::Fetch, 1, &[]);
        drop(first);
        let _third = take(Duty::Process, 1, &[]);
        drop(take(Duty::Process, 2, &[1]));
        most.set(3);
        drop(take(Duty::Process, 1, &[]));
    }
}
