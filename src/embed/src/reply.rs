//! The vectors of one call, collected while its caller waits.

use std::sync::Arc;

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
    vectors: Vec<Vec<f32>>,
    missing: usize,
    error: Option<EmbedError>,
}

impl Reply {
    /// A reply of `count` vectors, all of them missing, for a request.
    pub fn new(context: &RequestContext, count: usize) -> Arc<Self> {
        let progress = Progress { vectors: vec![Vec::new(); count], missing: count, error: None };
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
        debug_assert!(progress.vectors[index].is_empty());
        progress.vectors[index] = vector;
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
        let mut progress = self.progress.lock();
        while progress.missing > 0 {
            if let Some(error) = &progress.error {
                return Err(error.clone());
            }
            // A cancellation fails the call; here the time alone is looked at.
            let is_over = match self.context.deadline() {
                Some(until) => self.is_settled.wait_until(&mut progress, until).timed_out(),
                None => {
                    self.is_settled.wait(&mut progress);
                    false
                }
            };
            if is_over && progress.missing > 0 {
                self.context.check()?;
            }
        }
        Ok(std::mem::take(&mut progress.vectors))
    }
}
