//! Time that passes only when a wait times out.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::ops::{Add, Sub};
use std::pin::pin;
use std::task::Poll;

use crate::explore::{Timeouts, is_chosen, timeouts};

pub use std::time::{Duration, SystemTime, UNIX_EPOCH};

std::thread_local! {
    // All tasks of an execution run on the same OS thread.
    static NOW: Cell<Duration> = const { Cell::new(START) };
}

/// The time at which every execution starts, so that earlier instants can be computed.
const START: Duration = Duration::from_secs(1 << 32);

/// An instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Duration);

/// Resets the clock for a new execution.
pub(crate) fn reset() {
    NOW.set(START);
}

impl Instant {
    /// The current time.
    pub fn now() -> Self {
        Self(NOW.get())
    }

    /// Advances the clock to this instant.
    pub fn await_it(self) {
        NOW.set(NOW.get().max(self.0));
    }

    /// Time since this instant.
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    /// Time between two instants, 0 if `earlier` is later.
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Time between two instants, 0 if `earlier` is later.
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }

    /// A later instant, unless it overflows.
    pub fn checked_add(&self, time: Duration) -> Option<Self> {
        self.0.checked_add(time).map(Self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(time))
    }
}

/// The error of a `tokio` future that timed out.
#[derive(Debug)]
pub struct Elapsed;

/// Runs a future with the time limit of `tokio`, which may expire at any moment if timeouts occur.
///
/// # Errors
/// Returns [`Elapsed`] if the time limit expired.
pub async fn timeout_at<F: Future>(until: Instant, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    poll_fn(move |context| {
        if let Poll::Ready(done) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(done));
        }
        if timeouts() == Timeouts::Never {
            return Poll::Pending;
        }
        if is_chosen() {
            until.await_it();
            return Poll::Ready(Err(Elapsed));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}
