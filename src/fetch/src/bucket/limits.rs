//! Limits of a request: times, and how often it is tried.

use std::time::{Duration, Instant};

use super::request::Ask;

/// Time for a connection to be made.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Time for an answer to go on; a store that puts many parts together sends spaces meanwhile.
pub(super) const ANSWER: Duration = Duration::from_secs(60);
/// A body that does not move for so long is lost.
pub(super) const STALL: Duration = Duration::from_secs(30);
/// Tries after the first one: 16 seconds of pauses in all.
pub(super) const RETRIES: u32 = 6;
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Bytes of a body up to which a request is small.
pub(super) const SMALL_BYTES: usize = 64 << 10;
/// Time for the answer to the first try of a small request, twice as much for each further one: a
/// lost connection is given up long before the lease of a process ends, and a slow store is waited
/// for all the same.
const SMALL_ANSWER: Duration = Duration::from_secs(2);
/// Time after which no further try of a small request is begun.
const SMALL_TRIES: Duration = Duration::from_secs(12);
/// Time for the answer to a request that is not repeated: a look tells then what has become of it.
const ONCE_ANSWER: Duration = Duration::from_secs(10);

impl Ask<'_> {
    /// Time for a try to be answered, after so many others.
    pub(super) fn answer_time(&self, tries: u32) -> Duration {
        match (self.is_once, self.is_small) {
            (true, _) => ONCE_ANSWER,
            (false, true) => (SMALL_ANSWER * 2_u32.pow(tries)).min(ANSWER),
            (false, false) => ANSWER,
        }
    }

    /// Whether a request that was begun at `begun` is tried again, after so many tries.
    pub(super) fn is_tried_again(&self, tries: u32, begun: Instant) -> bool {
        tries < RETRIES && !(self.is_small && begun.elapsed() >= SMALL_TRIES)
    }
}

/// The pause before another try; `chance` is below 1.
pub(super) fn pause(tries: u32, at_least: Option<Duration>, chance: f64) -> Duration {
    let usual = PAUSE_FIRST * 2_u32.pow(tries);
    let pause = usual / 2 + usual.mul_f64(chance);
    pause.max(at_least.unwrap_or_default()).min(PAUSE_MAX)
}
