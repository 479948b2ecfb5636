//! Waits that fail when progress stops rather than after a fixed time, because test machines are
//! shared.

use std::time::{Duration, Instant};

/// Time without any change after which a wait fails.
pub const STILL: Duration = Duration::from_secs(180);
/// Minimum number of polls without any change before a wait fails, as a starved machine polls
/// rarely.
const LOOKS: u32 = 5_000;
const PAUSE: Duration = Duration::from_millis(10);

/// An ongoing wait and the last state it observed.
#[derive(Debug)]
pub struct Patience<S> {
    last: Option<S>,
    since: Instant,
    looks: u32,
}

impl<S: PartialEq> Patience<S> {
    /// Starts a wait.
    pub fn new() -> Self {
        Self { last: None, since: Instant::now(), looks: 0 }
    }

    /// Observes the current state and sleeps briefly; returns true once the state has not changed
    /// for too long.
    pub fn is_over(&mut self, state: S) -> bool {
        if self.last.as_ref() != Some(&state) {
            *self = Self { last: Some(state), ..Self::new() };
        }
        self.looks += 1;
        std::thread::sleep(PAUSE);
        self.looks > LOOKS && self.since.elapsed() > STILL
    }
}
