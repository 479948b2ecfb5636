//! Per-key rate limiting with token buckets, off unless the operator sets a rate.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::error::{ApiError, Condition};
use lodestone_engine::settings::RateLimit;

/// Number of buckets above which those that have refilled are dropped.
const BUCKETS_KEPT: usize = 10_000;

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    filled_at: Instant,
}

/// Token buckets of all keys.
#[derive(Debug)]
pub struct RateLimiter {
    limit: RateLimit,
    buckets: Mutex<HashMap<Arc<str>, Bucket>>,
}

impl RateLimiter {
    /// Creates a limiter that starts every key with a full bucket.
    pub fn new(limit: RateLimit) -> Self {
        Self { limit, buckets: Mutex::new(HashMap::new()) }
    }

    /// Takes one token from the key's bucket, as filled at `now`.
    ///
    /// # Errors
    /// 429 with the seconds until a token is available.
    pub fn take(&self, key_id: &Arc<str>, now: Instant) -> Result<(), ApiError> {
        let RateLimit { per_second, burst } = self.limit;
        let level = |bucket: &Bucket| {
            let seconds = now.saturating_duration_since(bucket.filled_at).as_secs_f64();
            (bucket.tokens + seconds * per_second).min(burst)
        };
        let mut buckets = self.buckets.lock();
        if buckets.len() >= BUCKETS_KEPT && !buckets.contains_key(key_id) {
            // A full bucket is equivalent to no bucket.
            buckets.retain(|_, bucket| level(bucket) < burst);
        }
        let bucket =
            buckets.entry(Arc::clone(key_id)).or_insert(Bucket { tokens: burst, filled_at: now });
        let tokens = level(bucket);
        *bucket = Bucket { tokens, filled_at: now };
        if tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        let wait_seconds = ((1.0 - tokens) / per_second).min(3600.0);
        let message = "this key exceeds its rate limit";
        let error = ApiError::new(Condition::RateLimited, "rate_limited", message);
        Err(error.with_retry_after(wait_seconds.ceil() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_passes_then_the_rate_holds() {
        let limiter = RateLimiter::new(RateLimit { per_second: 0.5, burst: 2.0 });
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let start = Instant::now();
        assert!(limiter.take(&a, start).is_ok());
        assert!(limiter.take(&a, start).is_ok());
        let refused = limiter.take(&a, start).unwrap_err().into_response("r");
        assert_eq!(refused.headers()["retry-after"], "2");
        assert!(limiter.take(&b, start).is_ok(), "keys do not share a bucket");
        let later = start + Duration::from_secs(2);
        assert!(limiter.take(&a, later).is_ok());
        assert!(limiter.take(&a, later).is_err());
    }
}
