//! Wall-clock time as an injectable component.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch. Operations are ordered by sequence, never by timestamp.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Converts to seconds since the epoch, with millisecond precision.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// Converts from seconds since the epoch; negative and non-finite values become the epoch.
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds.max(0.0) * 1000.0).round() as u64)
    }

    /// The moment `millis` later; saturates.
    #[must_use]
    pub fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

impl fmt::Display for Timestamp {
    /// The wire form: decimal epoch seconds, for example `1757402409.727`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A provider of the current time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // All other code takes a `Clock`.
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(since_epoch.as_millis() as u64)
    }
}

/// A manually advanced clock for tests.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Creates a clock set to `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(AtomicU64::new(start.0))
    }

    /// Moves the clock back.
    pub fn set_back_millis(&self, millis: u64) {
        self.0.fetch_sub(millis, Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance_millis(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_is_decimal_seconds() {
        assert_eq!(Timestamp(1_757_402_409_727).to_string(), "1757402409.727");
        assert_eq!(Timestamp(5).to_string(), "0.005");
        assert_eq!(Timestamp::from_seconds(1.5), Timestamp(1500));
        assert_eq!(Timestamp::from_seconds(-3.0), Timestamp(0));
    }
}
