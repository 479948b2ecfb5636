//! Limits the requests of tenants per minute, counted by the second.
//!
//! A request is admitted if fewer than the limit were admitted in its own second and the 60 before
//! it. No span of 60 seconds thus holds more than the limit, however many requests arrive at once,
//! and a tenant may use its whole minute in one moment. Rejected requests do not count. Counts are
//! lost when the server restarts.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;

use lodestone_types::CollectionId;

/// Slots of the ring: a minute, and the current second.
const SECONDS: usize = 61;
/// Number of tenants tracked before those without a request in the last minute are dropped.
const TENANTS_KEPT: usize = 10_000;

/// The requests of the last minute, as a ring of seconds.
#[derive(Debug)]
struct Minute {
    admitted: [u32; SECONDS],
    total: u64,
    /// The newest second in the ring.
    newest: u64,
}

impl Minute {
    /// Advances the ring to the second `now`, dropping the seconds that leave it.
    fn advance(&mut self, now: u64) {
        let passed = now.saturating_sub(self.newest).min(SECONDS as u64);
        for second in now + 1 - passed..=now {
            let place = &mut self.admitted[second as usize % SECONDS];
            self.total -= u64::from(std::mem::take(place));
        }
        self.newest = self.newest.max(now);
    }

    /// Seconds until fewer than `max` requests are left in the window.
    fn wait(&self, max: u64) -> u64 {
        let mut left = self.total;
        let oldest = self.newest + 1;
        for second in 0..SECONDS as u64 {
            left -= u64::from(self.admitted[(oldest + second) as usize % SECONDS]);
            if left < max {
                return second + 1;
            }
        }
        SECONDS as u64
    }
}

/// A request beyond the limit of its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany {
    /// Requests admitted in the last minute.
    pub(crate) used: u64,
    /// Seconds until the next request is admitted.
    pub(crate) wait_seconds: u64,
}

/// Request counts of all tenants that have a limit.
#[derive(Debug)]
pub(crate) struct Rates {
    begun: Instant,
    minutes: Mutex<HashMap<CollectionId, Box<Minute>>>,
}

impl Default for Rates {
    fn default() -> Self {
        Self { begun: Instant::now(), minutes: Mutex::default() }
    }
}

impl Rates {
    /// Counts a request at `now`.
    ///
    /// # Errors
    /// [`TooMany`] if `max` requests were admitted in the last minute; this one is then not
    /// counted.
    pub(crate) fn take(&self, tenant: CollectionId, max: u64, now: Instant) -> Result<(), TooMany> {
        // Offset by a minute, so that the window of the first second does not underflow.
        let now = now.saturating_duration_since(self.begun).as_secs() + SECONDS as u64;
        let mut minutes = self.minutes.lock();
        if minutes.len() >= TENANTS_KEPT && !minutes.contains_key(&tenant) {
            minutes.retain(|_, minute| minute.newest + SECONDS as u64 > now);
        }
        let fresh = || Box::new(Minute { admitted: [0; SECONDS], total: 0, newest: now });
        let minute = minutes.entry(tenant).or_insert_with(fresh);
        minute.advance(now);
        if minute.total >= max {
            return Err(TooMany { used: minute.total, wait_seconds: minute.wait(max) });
        }
        minute.total += 1;
        minute.admitted[minute.newest as usize % SECONDS] += 1;
        Ok(())
    }

    /// Number of requests admitted in the last minute.
    pub(crate) fn used(&self, tenant: CollectionId, now: Instant) -> u64 {
        let now = now.saturating_duration_since(self.begun).as_secs() + SECONDS as u64;
        let mut minutes = self.minutes.lock();
        let Some(minute) = minutes.get_mut(&tenant) else { return 0 };
        minute.advance(now);
        minute.total
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const A: CollectionId = CollectionId(uuid::Uuid::from_u128(1));
    const B: CollectionId = CollectionId(uuid::Uuid::from_u128(2));

    #[test]
    fn no_minute_holds_more_than_the_limit_and_the_whole_of_it_can_be_used() {
        let rates = Rates::default();
        let (mut state, mut millis) = (7_u64, 0_u64);
        let mut admitted: Vec<u64> = Vec::new();
        let mut refused = 0;
        for _ in 0..20_000 {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            // Bursts, with an occasional pause of up to two minutes.
            millis += match state >> 60 {
                0 => (state >> 40) % 120_000,
                _ => (state >> 40) % 40,
            };
            let now = rates.begun + Duration::from_millis(millis);
            match rates.take(A, 50, now) {
                Ok(()) => admitted.push(millis),
                Err(TooMany { used, wait_seconds }) => {
                    refused += 1;
                    assert_eq!(used, 50);
                    assert!((1..=61).contains(&wait_seconds));
                }
            }
        }
        assert!(refused > 1000 && admitted.len() > 1000, "{refused} {}", admitted.len());
        for (first, at) in admitted.iter().enumerate() {
            let inside = admitted[first..].iter().take_while(|other| **other < at + 60_000);
            assert!(inside.count() <= 50, "from {at} ms");
        }
    }

    #[test]
    fn a_refused_tenant_may_go_on_when_it_was_told() {
        let rates = Rates::default();
        let at = |seconds: f64| rates.begun + Duration::from_secs_f64(seconds);
        assert!(rates.take(A, 2, at(0.5)).is_ok() && rates.take(A, 2, at(10.2)).is_ok());
        let refused = rates.take(A, 2, at(20.0)).unwrap_err();
        assert_eq!(refused, TooMany { used: 2, wait_seconds: 41 });
        assert!(rates.take(A, 2, at(60.9)).is_err());
        assert!(rates.take(A, 2, at(61.0)).is_ok());
        assert_eq!(rates.take(A, 1, at(61.0)).unwrap_err().wait_seconds, 61, "a lower limit");
        assert!(rates.take(B, 1, at(61.0)).is_ok(), "tenants do not share a count");
        assert_eq!((rates.used(A, at(61.5)), rates.used(A, at(200.0))), (2, 0));
    }

    #[test]
    fn threads_at_once_are_admitted_exactly_as_often_as_they_may() {
        let rates = Rates::default();
        let now = rates.begun + Duration::from_secs(5);
        let admitted: usize = std::thread::scope(|scope| {
            let ask = || (0..500).filter(|_| rates.take(A, 777, now).is_ok()).count();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 777);
    }
}
