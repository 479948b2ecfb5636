//! Tracks the requests in flight per tenant, so that a busy tenant is served by more nodes.
//!
//! Each node counts only the requests that it received itself. Their average over the last seconds
//! determines how many of the tenant's nodes, in the order of their ranks, the requests are spread
//! over. For most tenants that is one, so that most have a single cached copy; short bursts change
//! nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use lodestone_types::TenantId;

/// Time constant of the average.
const MEAN_SECONDS: f64 = 5.0;
/// Average number of requests in flight, from one node, per additional node used for the tenant.
const REQUESTS_PER_NODE: f64 = 1.0;
/// Number of tenants tracked before idle ones are dropped.
const TENANTS_MAX: usize = 4096;
/// Average below which a tenant counts as idle.
const IDLE: f64 = 0.1;

/// Requests in flight by tenant.
#[derive(Debug, Default)]
pub(super) struct Loads(Mutex<HashMap<TenantId, Load>>);

#[derive(Debug)]
struct Load {
    /// Requests in flight, by the node that answers.
    under_way: Vec<u32>,
    /// Their exponentially weighted average number at the time `changed`.
    mean: f64,
    changed: Instant,
}

/// A request assigned to a node. It counts as in flight until this is dropped.
#[derive(Debug)]
pub struct Assignment {
    loads: Arc<Loads>,
    tenant: TenantId,
    at: usize,
    is_own: bool,
}

impl Loads {
    /// Assigns a request of a tenant. `ranked` holds the positions of the usable nodes out of
    /// `nodes`, best first; `own` is the position of this process among them.
    pub(super) fn begin(
        self: &Arc<Self>,
        tenant: &TenantId,
        ranked: &[usize],
        nodes: usize,
        own: Option<usize>,
        now: Instant,
    ) -> Option<Assignment> {
        let mut loads = self.0.lock();
        if loads.len() >= TENANTS_MAX && !loads.contains_key(tenant) {
            loads.retain(|_, load| load.is_used(now));
        }
        let load = loads.entry(tenant.clone()).or_insert_with(|| Load::new(nodes, now));
        load.pass_time(now);
        let count = 1 + (load.mean / REQUESTS_PER_NODE) as usize;
        let spread = ranked.iter().take(count);
        let at = *spread.min_by_key(|at| load.under_way[**at])?;
        load.under_way[at] += 1;
        let (loads, tenant) = (Arc::clone(self), tenant.clone());
        Some(Assignment { loads, tenant, at, is_own: own == Some(at) })
    }

    fn end(&self, tenant: &TenantId, at: usize, now: Instant) {
        if let Some(load) = self.0.lock().get_mut(tenant) {
            load.pass_time(now);
            load.under_way[at] -= 1;
        }
    }
}

impl Load {
    fn new(nodes: usize, now: Instant) -> Self {
        Self { under_way: vec![0; nodes], mean: 0.0, changed: now }
    }

    /// Updates the average for the time since the last change.
    fn pass_time(&mut self, now: Instant) {
        let time = now.saturating_duration_since(self.changed);
        let count: u32 = self.under_way.iter().sum();
        self.mean += (f64::from(count) - self.mean) * share_of(time);
        self.changed = now;
    }

    fn is_used(&mut self, now: Instant) -> bool {
        self.pass_time(now);
        self.mean >= IDLE || self.under_way.iter().any(|count| *count > 0)
    }
}

/// Weight of the last `time` in an exponentially weighted average with constant [`MEAN_SECONDS`].
fn share_of(time: Duration) -> f64 {
    -(-time.as_secs_f64() / MEAN_SECONDS).exp_m1()
}

impl Assignment {
    /// The position of the node that should answer; `None` if it is this one.
    pub fn other(&self) -> Option<usize> {
        (!self.is_own).then_some(self.at)
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        self.loads.end(&self.tenant, self.at, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begun: Instant, millis: u64) -> Instant {
        begun + Duration::from_millis(millis)
    }

    /// Goal: a tenant with occasional requests or bursts has one node. One with many requests in
    /// flight all the time is spread evenly over as many nodes as it needs, and returns to one
    /// afterwards.
    #[test]
    fn a_tenant_gets_as_many_nodes_as_it_needs() {
        let (loads, begun) = (Arc::new(Loads::default()), Instant::now());
        let tenant = TenantId::parse("acme").unwrap();
        let ranked = [2, 0, 3, 1];
        let begin = |millis| loads.begin(&tenant, &ranked, 4, Some(0), at(begun, millis)).unwrap();
        let end = |assignment: Assignment, millis| {
            let assignment = std::mem::ManuallyDrop::new(assignment);
            loads.end(&assignment.tenant, assignment.at, at(begun, millis));
        };
        // A burst of ten requests, 20 ms each.
        let burst: Vec<Assignment> = (0..10).map(|_| begin(0)).collect();
        assert!(burst.iter().all(|assignment| assignment.other() == Some(2)));
        burst.into_iter().for_each(|assignment| end(assignment, 20));
        // Three concurrent clients for 30 s.
        let mut under_way: Vec<Assignment> = (0..3).map(|_| begin(1000)).collect();
        for step in 0..300 {
            let now = 1000 + step * 100;
            end(under_way.remove(0), now);
            under_way.push(begin(now));
        }
        let mut nodes: Vec<usize> = under_way.iter().map(|assignment| assignment.at).collect();
        nodes.sort_unstable();
        assert_eq!(nodes, [0, 2, 3], "the three best, evenly");
        assert_eq!(under_way.iter().filter(|assignment| assignment.other().is_none()).count(), 1);
        under_way.into_iter().for_each(|assignment| end(assignment, 31_000));
        let assignment = begin(60_000);
        assert_eq!(assignment.other(), Some(2), "it is as before");
        end(assignment, 60_001);
    }

    #[test]
    fn idle_tenants_are_forgotten() {
        let (loads, begun) = (Arc::new(Loads::default()), Instant::now());
        let begin = |number: usize, millis| {
            let tenant = TenantId::parse(&format!("t{number}")).unwrap();
            loads.begin(&tenant, &[0], 1, None, at(begun, millis)).unwrap()
        };
        let held = begin(0, 0);
        (1..TENANTS_MAX).for_each(|number| drop(begin(number, 0)));
        assert_eq!(loads.0.lock().len(), TENANTS_MAX);
        drop(begin(TENANTS_MAX, 100_000));
        assert_eq!(loads.0.lock().len(), 2, "the one under way, and the new one");
        assert_eq!(held.other(), Some(0));
        let none = TenantId::parse("none").unwrap();
        assert!(loads.begin(&none, &[], 1, None, begun).is_none(), "there is no node");
    }
}
