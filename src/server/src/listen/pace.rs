//! The least rate at which a client must send and read.

use std::time::Duration;

use tokio::time::Instant;

use lodestone_engine::settings::Settings;

/// The least transfer rate of a client: after waiting for it for `window` in total, it must have
/// moved `bytes_per_second_min` for every second waited. Only waiting counts, so a body that
/// arrives in one piece or a response that takes long to compute never counts as slow.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Waiting time after which the rate is checked.
    pub window: Duration,
    /// Least number of bytes per second of waiting.
    pub bytes_per_second_min: u64,
}

impl Pace {
    /// Returns the rate set by the operator.
    pub fn of(settings: &Settings) -> Self {
        let window = Duration::from_secs(settings.slow_client_seconds);
        Self { window, bytes_per_second_min: settings.slow_client_rate }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self { window: Duration::from_secs(30), bytes_per_second_min: 4096 }
    }
}

/// Time spent waiting for one client, and the bytes moved meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waited {
    time: Duration,
    bytes: u64,
    since: Option<Instant>,
}

impl Waited {
    /// Starts waiting, unless already waiting; returns the time at which the rate must be checked.
    pub fn begin(&mut self, pace: Pace, now: Instant) -> Instant {
        *self.since.get_or_insert(now) + pace.window.saturating_sub(self.time)
    }

    /// Ends the wait after `bytes` were moved.
    pub fn end(&mut self, bytes: usize, now: Instant) {
        if let Some(since) = self.since.take() {
            self.time += now - since;
        }
        self.bytes += bytes as u64;
    }

    /// Whether the client was too slow over a completed window; if not, starts a new window.
    pub fn is_too_slow(&mut self, pace: Pace, now: Instant) -> bool {
        let time = self.time + self.since.map_or(Duration::ZERO, |since| now - since);
        if time < pace.window {
            return false;
        }
        let least = (pace.window.as_secs_f64() * pace.bytes_per_second_min as f64) as u64;
        let is_too_slow = self.bytes < least.max(1);
        *self = Self { since: self.since.map(|_| now), ..Self::default() };
        is_too_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { window: Duration::from_secs(10), bytes_per_second_min: 100 };

    #[test]
    fn only_waiting_counts() {
        let (mut waited, mut now) = (Waited::default(), Instant::now());
        for _ in 0..100 {
            waited.begin(PACE, now);
            now += Duration::from_millis(90);
            waited.end(1, now);
            assert!(!waited.is_too_slow(PACE, now));
            // The server is working, not waiting for the client.
            now += Duration::from_secs(60);
        }
    }

    #[test]
    fn a_window_below_the_rate_is_too_slow_and_one_above_it_is_not() {
        for (bytes, expected) in [(999, true), (1000, false)] {
            let (mut waited, now) = (Waited::default(), Instant::now());
            waited.begin(PACE, now);
            waited.end(bytes, now);
            let until = waited.begin(PACE, now);
            assert_eq!(until, now + PACE.window);
            assert!(!waited.is_too_slow(PACE, now));
            assert_eq!(waited.is_too_slow(PACE, until), expected, "{bytes}");
            assert_eq!(waited.begin(PACE, until), until + PACE.window, "another window begins");
        }
    }
}
