//! A fair queue of requests: a bounded number runs at once, and the owners of waiting requests are
//! served round-robin. However many requests one owner has queued, at most one of them goes before
//! the next request of another owner.
//!
//! An owner is a tenant's collection or an API key. Expensive requests (answers, searches with a
//! reranker, page rendering) have queues of their own, apart from the slots of `admission`: each
//! keeps a CPU core busy for about a third of a second, whereas a search takes milliseconds, so
//! only as many run as there are cores.
//!
//! If the queue is full, the newest request of the owner with the most waiting requests is refused.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use crate::error::{ApiError, Condition};
use lodestone_types::{RequestContext, Stopped};

/// Seconds that a refused client should wait before retrying.
const RETRY_SECONDS: u32 = 1;

/// A queue that serves owners of type `K` round-robin. Clones share the queue.
#[derive(Debug, Clone)]
pub struct FairQueue<K>(Arc<Shared<K>>);

#[derive(Debug)]
struct Shared<K> {
    running_max: usize,
    waiting_max: usize,
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K> {
    running: usize,
    waiting: usize,
    /// Owners in service order, each with its waiting requests, of which there is at least one.
    ring: VecDeque<(K, VecDeque<oneshot::Sender<RunPermit<K>>>)>,
}

/// Permission to run; passed to the next waiting request when dropped.
#[derive(Debug)]
pub struct RunPermit<K>(FairQueue<K>);

impl<K: PartialEq> FairQueue<K> {
    /// Creates a queue in which `running_max` requests run at once and `waiting_max` wait.
    pub fn new(running_max: usize, waiting_max: usize) -> Self {
        let running_max = running_max.max(1);
        let state = Mutex::new(State { running: 0, waiting: 0, ring: VecDeque::new() });
        Self(Arc::new(Shared { running_max, waiting_max, state }))
    }

    /// Waits for a permit for a request of `owner`, at most until the deadline in `context`.
    ///
    /// # Errors
    /// 503 if the queue is full or the deadline has passed.
    pub async fn enter(
        &self,
        context: &RequestContext,
        owner: K,
    ) -> Result<RunPermit<K>, ApiError> {
        let given = {
            let mut state = self.0.state.lock();
            if state.running < self.0.running_max {
                state.running += 1;
                return Ok(RunPermit(Self(Arc::clone(&self.0))));
            }
            let (giving, given) = oneshot::channel();
            state.wait(owner, giving, self.0.waiting_max);
            given
        };
        let given = async { given.await.map_err(|_| overloaded()) };
        until_deadline(context, given).await
    }
}

impl<K> Drop for RunPermit<K> {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.0.state.lock();
            let next = state.next();
            if next.is_none() {
                state.running -= 1;
            }
            next
        };
        if let Some(next) = next {
            // If the receiver was cancelled in the meantime, the returned permit is dropped, which
            // passes it on.
            drop(next.send(RunPermit(FairQueue(Arc::clone(&self.0.0)))));
        }
    }
}

impl<K> State<K> {
    /// Queues a request. If too many wait, refuses the newest request of the owner with the most.
    fn wait(&mut self, owner: K, giving: oneshot::Sender<RunPermit<K>>, waiting_max: usize)
    where
        K: PartialEq,
    {
        match self.ring.iter_mut().find(|(other, _)| *other == owner) {
            Some((_, waiting)) => waiting.push_back(giving),
            None => self.ring.push_back((owner, VecDeque::from([giving]))),
        }
        self.waiting += 1;
        if self.waiting > waiting_max {
            self.retain_present();
        }
        if self.waiting > waiting_max {
            let most = self.ring.iter_mut().max_by_key(|(_, waiting)| waiting.len());
            most.and_then(|(_, waiting)| waiting.pop_back());
            self.waiting -= 1;
            self.ring.retain(|(_, waiting)| !waiting.is_empty());
        }
    }

    fn retain_present(&mut self) {
        for (_, waiting) in &mut self.ring {
            waiting.retain(|giving| !giving.is_closed());
        }
        self.ring.retain(|(_, waiting)| !waiting.is_empty());
        self.waiting = self.ring.iter().map(|(_, waiting)| waiting.len()).sum();
    }

    /// Removes and returns the next waiting request that has not been cancelled.
    fn next(&mut self) -> Option<oneshot::Sender<RunPermit<K>>> {
        loop {
            let (owner, mut waiting) = self.ring.pop_front()?;
            let next = waiting.pop_front();
            if !waiting.is_empty() {
                self.ring.push_back((owner, waiting));
            }
            self.waiting -= 1;
            if next.as_ref().is_some_and(|giving| !giving.is_closed()) {
                return next;
            }
        }
    }
}

/// Waits for `answer`, at most until the deadline in `context`.
async fn until_deadline<T>(
    context: &RequestContext,
    answer: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let Some(until) = context.deadline() else { return answer.await };
    match timeout_at(until.into(), answer).await {
        Ok(answer) => answer,
        Err(_) => Err(context.check().err().unwrap_or(Stopped::ClientGone).into()),
    }
}

fn overloaded() -> ApiError {
    let message = "too many requests of this kind are running or waiting";
    ApiError::new(Condition::Unavailable, "overloaded", message).with_retry_after(RETRY_SECONDS)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::time::timeout;

    use super::*;

    type Waiting<'a> = Pin<Box<dyn Future<Output = Result<RunPermit<u8>, ApiError>> + 'a>>;

    /// A request that waits for a permit, polled once so that it is in the queue.
    fn waiting<'a>(
        queue: &'a FairQueue<u8>,
        context: &'a RequestContext,
        number: u8,
    ) -> Waiting<'a> {
        let mut waiting: Waiting<'_> = Box::pin(queue.enter(context, number));
        assert!((&mut waiting).now_or_never().is_none());
        waiting
    }

    #[tokio::test]
    async fn the_next_is_one_of_another_tenant() {
        let (queue, context) = (FairQueue::new(2, 1000), RequestContext::default());
        let mut running = VecDeque::new();
        for _ in 0..2 {
            running.push_back(queue.enter(&context, 1).await.unwrap());
        }
        let mut many: Vec<_> = (0..64).map(|_| waiting(&queue, &context, 1)).collect();
        let mut other = waiting(&queue, &context, 2);
        let mut served = 0;
        // Two permits are released, and each tenant receives one.
        for _ in 0..2 {
            drop(running.pop_front());
            many.retain_mut(|one| match one.now_or_never() {
                Some(permit) => {
                    running.push_back(permit.unwrap());
                    served += 1;
                    false
                }
                None => true,
            });
        }
        assert_eq!(served, 1);
        drop((&mut other).now_or_never().expect("the second permit").unwrap());
    }

    #[tokio::test]
    async fn a_permit_of_a_cancelled_request_goes_on() {
        let (queue, context) = (FairQueue::new(1, 1000), RequestContext::default());
        let running = queue.enter(&context, 1).await.unwrap();
        let (left, given) = (waiting(&queue, &context, 1), waiting(&queue, &context, 2));
        let mut stays = waiting(&queue, &context, 1);
        drop(left);
        drop(running);
        assert!((&mut stays).now_or_never().is_none());
        // It has received its permit, and is cancelled before it is polled.
        drop(given);
        drop((&mut stays).now_or_never().expect("its permit").unwrap());
        assert_eq!(queue.0.state.lock().running, 0);
        drop(queue.enter(&context, 1).await.unwrap());
    }

    #[tokio::test]
    async fn a_full_queue_refuses_the_tenant_with_the_most() {
        let (queue, context) = (FairQueue::new(1, 3), RequestContext::default());
        let _running = queue.enter(&context, 1).await.unwrap();
        let mut many: Vec<_> = (0..3).map(|_| waiting(&queue, &context, 1)).collect();
        let _other = waiting(&queue, &context, 2);
        let refused = many.pop().unwrap().now_or_never().expect("an answer").unwrap_err();
        assert_eq!((refused.condition(), refused.reason()), (Condition::Unavailable, "overloaded"));
        assert!(many.iter_mut().all(|one| one.now_or_never().is_none()));
        // Cancelled requests do not count towards the limit.
        many.clear();
        let _others = [waiting(&queue, &context, 3), waiting(&queue, &context, 3)];
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_time_of_the_request() {
        let (queue, context) = (FairQueue::new(1, 3), RequestContext::default());
        let _running = queue.enter(&context, 1).await.unwrap();
        let limit = Duration::from_millis(5);
        let context = RequestContext::with_limit(limit);
        let waited = timeout(Duration::from_secs(60), queue.enter(&context, 2)).await;
        let refused = waited.expect("the wait ends").unwrap_err();
        assert_eq!(refused.reason(), "deadline_exceeded");
    }
}
