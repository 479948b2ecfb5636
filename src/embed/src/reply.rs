//! Collects the vectors of one call while its caller waits.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::EmbedError;
use lodestone_types::{CollectionId, RequestContext};

/// The vectors of one call to `embed`, collected until all have arrived.
#[derive(Debug)]
pub(super) struct Reply {
    context: RequestContext,
    progress: Mutex<Progress>,
    is_settled: Condvar,
}

#[derive(Debug)]
struct Progress {
    /// Computed vectors. An empty one is a result too: a sparse model may find no token for a text.
    vectors: Vec<Option<Vec<f32>>>,
    missing: usize,
    error: Option<EmbedError>,
}

impl Reply {
    /// Creates a reply for a request that is still missing all `count` vectors.
    pub fn new(context: &RequestContext, count: usize) -> Arc<Self> {
        let progress = Progress { vectors: vec![None; count], missing: count, error: None };
        let context = context.clone();
        Arc::new(Self { context, progress: Mutex::new(progress), is_settled: Condvar::new() })
    }

    /// Returns the context of the request.
    pub fn context(&self) -> &RequestContext {
        &self.context
    }

    /// Returns the tenant that made the call.
    pub fn owner(&self) -> Option<CollectionId> {
        self.context.tenant()
    }

    /// Stores the vector of text `index`.
    pub fn fulfil(&self, index: usize, vector: Vec<f32>) {
        let mut progress = self.progress.lock();
        debug_assert!(progress.vectors[index].is_none());
        progress.vectors[index] = Some(vector);
        progress.missing -= 1;
        if progress.missing == 0 {
            self.is_settled.notify_all();
        }
    }

    /// Fails the call with `error`, unless it already failed; the first error is kept.
    pub fn fail(&self, error: &EmbedError) {
        let mut progress = self.progress.lock();
        progress.error.get_or_insert_with(|| error.clone());
        self.is_settled.notify_all();
    }

    /// Checks that the call is still wanted.
    ///
    /// # Errors
    /// The error that ended it, or [`EmbedError::Stopped`] if its request is over.
    pub fn check(&self) -> Result<(), EmbedError> {
        match &self.progress.lock().error {
            Some(error) => Err(error.clone()),
            None => Ok(self.context.check()?),
        }
    }

    /// Waits for all vectors, the first error, or the deadline of the request.
    pub fn wait(&self) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.wait_until(None)
    }

    /// Waits like [`Self::wait`], but at most until `until`; then returns the vectors that precede
    /// the first missing one.
    pub fn wait_until(&self, until: Option<Instant>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let ends = [until, self.context.deadline()].into_iter().flatten().min();
        let mut progress = self.progress.lock();
        while progress.missing > 0 {
            if let Some(error) = &progress.error {
                return Err(error.clone());
            }
            // Cancellation fails the call through its hook, so only time is checked here.
            let is_over = match ends {
                Some(end) => self.is_settled.wait_until(&mut progress, end).timed_out(),
                None => {
                    self.is_settled.wait(&mut progress);
                    false
                }
            };
            if is_over && progress.missing > 0 {
                self.context.check()?;
                if until.is_some_and(|until| Instant::now() >= until) {
                    break;
                }
            }
        }
        // Vectors still being computed arrive after this, at later positions.
        Ok(progress.vectors.iter_mut().map_while(Option::take).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_there_in_time_is_told_up_to_the_first_that_is_missing() {
        let reply = Reply::new(&RequestContext::with_limit(Duration::from_secs(3600)), 4);
        for index in [3, 0] {
            reply.fulfil(index, vec![index as f32]);
        }
        let now = Some(Instant::now());
        assert_eq!(reply.wait_until(now), Ok(vec![vec![0.0]]));
        // Batches in progress may still deliver vectors, which is harmless.
        reply.fulfil(1, vec![1.0]);
        reply.fulfil(2, vec![2.0]);
        let nothing = Reply::new(&RequestContext::default(), 1);
        assert_eq!(nothing.wait_until(now), Ok(Vec::new()));
        let late = Reply::new(&RequestContext::with_limit(Duration::ZERO), 1);
        assert!(matches!(late.wait_until(now), Err(EmbedError::Stopped(_))));
        let whole = Reply::new(&RequestContext::default(), 1);
        whole.fulfil(0, vec![5.0]);
        assert_eq!(whole.wait_until(now), Ok(vec![vec![5.0]]));
    }

    #[test]
    fn a_vector_without_entries_takes_its_place_among_others() {
        let reply = Reply::new(&RequestContext::default(), 3);
        let vectors = [vec![1.0, 0.5], vec![], vec![3.0, 0.25]];
        vectors.iter().enumerate().for_each(|(index, vector)| reply.fulfil(index, vector.clone()));
        assert_eq!(reply.wait(), Ok(vectors.to_vec()));
    }
}
