//! A reading that requests without a key share, so that however many ask, it occupies one thread
//! and is taken rarely.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::error::ApiError;
use crate::routes::off_thread;

/// The last reading and its time.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    age_max: Duration,
    last: Arc<Mutex<Option<(Instant, T)>>>,
}

impl<T: Clone + Send + 'static> Recent<T> {
    /// Creates a reading that is given out for `age_max`; none has been taken yet.
    pub fn new(age_max: Duration) -> Self {
        Self { age_max, last: Arc::default() }
    }

    /// Returns the last reading if it is recent; otherwise takes one with `take` on a blocking
    /// thread, while other callers wait for it without a thread.
    ///
    /// # Errors
    /// As `take`, whose error is not kept, and 500 if it panicked.
    pub async fn get(
        &self,
        take: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let mut last = Arc::clone(&self.last).lock_owned().await;
        if let Some((at, reading)) = &*last
            && at.elapsed() < self.age_max
        {
            return Ok(reading.clone());
        }
        // The lock moves into the work, which continues even after its client has disconnected.
        off_thread(move || {
            let reading = take()?;
            *last = Some((Instant::now(), reading.clone()));
            Ok(reading)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use futures_util::FutureExt;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    /// Goal: callers that give up while a reading hangs leave no further threads behind.
    #[tokio::test]
    async fn one_reading_is_taken_for_all() {
        let recent = Recent::new(Duration::from_secs(3600));
        let begun = Arc::new(AtomicUsize::new(0));
        let (tell, go_on) = channel::<()>();
        let mut go_on = Some(go_on);
        let mut reading = || {
            let (begun, go_on) = (Arc::clone(&begun), go_on.take());
            recent.get(move || {
                if let Some(go_on) = go_on {
                    go_on.recv_timeout(Duration::from_secs(60)).unwrap();
                }
                Ok(begun.fetch_add(1, Ordering::SeqCst))
            })
        };
        for _ in 0..3 {
            assert!(reading().now_or_never().is_none(), "the first one hangs");
        }
        tell.send(()).unwrap();
        for _ in 0..2 {
            assert_eq!(reading().await.unwrap(), 0);
        }
    }
}
