//! Waits that end when nothing moves any more, not after a fixed time: machines are shared.

use std::time::{Duration, Instant};

/// Time without any change after which a wait fails.
pub const STILL: Duration = Duration::from_secs(180);
/// Looks without any change before a wait fails: looks are rare where the machine is starved.
const LOOKS: u32 = 5_000;
const PAUSE: Duration = Duration::from_millis(10);

/// One wait, and the last state that it saw.
#[derive(Debug)]
pub struct Patience<S> {
    last: Option<S>,
    since: Instant,
    looks: u32,
}

impl<S: PartialEq> Patience<S> {
    /// A wait that begins now.
    pub fn new() -> Self {
        Self { last: None, since: Instant::now(), looks: 0 }
    }

    /// Takes the present state and pauses for a moment; true once nothing has changed for long.
    pub fn is_over(&mut self, state: S) -> bool {
        if self.last.as_ref() != Some(&state) {
            *self = Self { last: Some(state), ..Self::new() };
        }
        self.looks += 1;
        std::thread::sleep(PAUSE);
        self.looks > LOOKS && self.since.elapsed() > STILL
    }
}
