//! Ctrl-C handling, and pauses that it interrupts.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Time given to requests in flight after Ctrl-C; items accepted by then are recorded.
const GRACE: Duration = Duration::from_secs(3);
/// Exit code that shells expect of a program ended by Ctrl-C.
pub const EXIT_INTERRUPTED: u8 = 130;
/// Message for the user.
pub const HOW_TO_RESUME: &str = "stopped; run the same command again to send the rest";

/// Waits that can be interrupted.
pub trait Pause: Sync {
    /// Waits for `time`; returns false if the run was stopped before or during the wait.
    fn pause(&self, time: Duration) -> bool;
    /// Whether the run was stopped.
    fn is_stopped(&self) -> bool;
}

/// A one-way switch that stops a run.
#[derive(Debug, Default)]
pub struct Stop {
    is_thrown: Mutex<bool>,
    thrown: Condvar,
}

impl Stop {
    /// Ends all current and future pauses.
    pub fn throw(&self) {
        *self.is_thrown.lock() = true;
        self.thrown.notify_all();
    }
}

impl Pause for Stop {
    fn pause(&self, time: Duration) -> bool {
        let mut is_thrown = self.is_thrown.lock();
        self.thrown.wait_while_for(&mut is_thrown, |is_thrown| !*is_thrown, time);
        !*is_thrown
    }

    fn is_stopped(&self) -> bool {
        *self.is_thrown.lock()
    }
}

/// Returns a switch that Ctrl-C throws. The process is ended by force after a grace period or at a
/// second Ctrl-C, so that an unanswered request cannot hold it up.
pub fn at_interrupt() -> std::io::Result<Arc<Stop>> {
    let stop = Arc::new(Stop::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thrown = Arc::clone(&stop);
    std::thread::Builder::new().name("interrupt".into()).spawn(move || {
        let is_asked_to_end = runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_err() {
                return false;
            }
            thrown.throw();
            let _ = tokio::time::timeout(GRACE, tokio::signal::ctrl_c()).await;
            true
        });
        if is_asked_to_end {
            eprintln!("lodestone: {HOW_TO_RESUME}");
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
    })?;
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thrown_switch_ends_pauses() {
        let stop = Arc::new(Stop::default());
        assert!(stop.pause(Duration::ZERO) && !stop.is_stopped());
        let waiting = Arc::clone(&stop);
        let pause = std::thread::spawn(move || waiting.pause(Duration::from_secs(600)));
        stop.throw();
        assert!(!pause.join().unwrap());
        assert!(stop.is_stopped() && !stop.pause(Duration::from_secs(600)));
    }
}
