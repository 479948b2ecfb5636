//! Time limits and retries of requests.

use std::time::{Duration, Instant};

use super::request::Ask;

/// Time limit for connecting.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Time limit for each wait for a response. A store that assembles many parts sends white space
/// meanwhile.
pub(super) const ANSWER: Duration = Duration::from_secs(60);
/// Time limit for each write of a body.
pub(super) const STALL: Duration = Duration::from_secs(30);
/// Maximum number of retries; the pauses between them add up to about 16 seconds.
pub(super) const RETRIES: u32 = 6;
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Maximum body size of a small request, in bytes.
pub(super) const SMALL_BYTES: usize = 64 << 10;
/// Time limit for the response to the first try of a small request; doubles with every retry. A
/// lost connection is thus given up long before a process's lease ends, while a slow store still
/// gets enough time.
const SMALL_ANSWER: Duration = Duration::from_secs(2);
/// Time after which a small request is no longer retried.
const SMALL_TRIES: Duration = Duration::from_secs(12);
/// Time limit for the response to a request that is not retried; its outcome is read back instead.
const ONCE_ANSWER: Duration = Duration::from_secs(10);

impl Ask<'_> {
    /// Time limit for the response to a try, after `tries` earlier ones.
    pub(super) fn answer_time(&self, tries: u32) -> Duration {
        match (self.is_once, self.is_small) {
            (true, _) => ONCE_ANSWER,
            (false, true) => (SMALL_ANSWER * 2_u32.pow(tries)).min(ANSWER),
            (false, false) => ANSWER,
        }
    }

    /// Whether a request that started at `begun` is retried, after `tries` retries.
    pub(super) fn is_tried_again(&self, tries: u32, begun: Instant) -> bool {
        tries < RETRIES && !(self.is_small && begun.elapsed() >= SMALL_TRIES)
    }
}

/// The pause before a retry, half to one and a half times the nominal one; `chance` is random, from
/// 0 to below 1.
pub(super) fn pause(tries: u32, at_least: Option<Duration>, chance: f64) -> Duration {
    let usual = PAUSE_FIRST * 2_u32.pow(tries);
    let pause = usual / 2 + usual.mul_f64(chance);
    pause.max(at_least.unwrap_or_default()).min(PAUSE_MAX)
}
