//! The vectors of one call, collected while its caller waits.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::EmbedError;
use lodestone_types::{CollectionId, RequestContext};

/// The vectors of one call to `embed`, collected until all are there.
#[derive(Debug)]
pub(super) struct Reply {
    context: RequestContext,
    progress: Mutex<Progress>,
    is_settled: Condvar,
}

#[derive(Debug)]
struct Progress {
    /// Those that are computed. An empty one is a result too: of a text that a sparse model gives
    /// no token.
    vectors: Vec<Option<Vec<f32>>>,
    missing: usize,
    error: Option<EmbedError>,
}

impl Reply {
    /// A reply of `count` vectors, all of them missing, for a request.
    pub fn new(context: &RequestContext, count: usize) -> Arc<Self> {
        let progress = Progress { vectors: vec![None; count], missing: count, error: None };
        let context = context.clone();
        Arc::new(Self { context, progress: Mutex::new(progress), is_settled: Condvar::new() })
    }

    /// The request.
    pub fn context(&self) -> &RequestContext {
        &self.context
    }

    /// The tenant whose call it is.
    pub fn owner(&self) -> Option<CollectionId> {
        self.context.tenant()
    }

    /// Puts one vector in its place.
    pub fn fulfil(&self, index: usize, vector: Vec<f32>) {
        let mut progress = self.progress.lock();
        debug_assert!(progress.vectors[index].is_none());
        progress.vectors[index] = Some(vector);
        progress.missing -= 1;
        if progress.missing == 0 {
            self.is_settled.notify_all();
        }
    }

    /// Ends the call with `error`; the first error stays.
    pub fn fail(&self, error: &EmbedError) {
        let mut progress = self.progress.lock();
        progress.error.get_or_insert_with(|| error.clone());
        self.is_settled.notify_all();
    }

    /// Whether the call goes on.
    ///
    /// # Errors
    /// The error that ended it; [`EmbedError::Stopped`] where its request is over.
    pub fn check(&self) -> Result<(), EmbedError> {
        match &self.progress.lock().error {
            Some(error) => Err(error.clone()),
            None => Ok(self.context.check()?),
        }
    }

    /// Waits for all vectors, the first error, or the end of the request's time.
    pub fn wait(&self) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.wait_until(None)
    }

    /// Waits as [`Self::wait`] does, but no longer than `until`: then the vectors before the first
    /// missing one are returned.
    pub fn wait_until(&self, until: Option<Instant>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let ends = [until, self.context.deadline()].into_iter().flatten().min();
        let mut progress = self.progress.lock();
        while progress.missing > 0 {
            if let Some(error) = &progress.error {
                return Err(error.clone());
            }
            // A cancellation fails the call; here the time alone is looked at.
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
        // What is computed at the moment still comes, to the places behind.
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
        // Batches that were under way come later, and nobody minds.
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
