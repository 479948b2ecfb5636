//! A fair queue of requests: a bounded number runs at once, and the owners of waiting requests are
//! served round-robin. However many requests one owner has queued, at most one of them goes before
//! the next request of another owner.
//!
//! An owner is a tenant's collection or an API key. Expensive requests (answers without a generator
//! or in its place, searches with a reranker, page rendering) have queues of their own, apart from
//! the slots of `admission`: each keeps a CPU core busy for about a third of a second, whereas a
//! search takes milliseconds, so only as many run as there are cores.
//!
//! A queue may keep places free: an owner then gets a place only while it holds fewer than are
//! free. One owner alone gets half of the places, the next half of the rest, and so on. Requests
//! that all wait for the same thing, such as the lock of one collection or an answer of the
//! generator, thus never take the last places.
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
pub struct FairQueue<K: QueueOwner>(Arc<Shared<K>>);

/// The party that requests are queued under.
pub trait QueueOwner: Clone + PartialEq {}

impl<K: Clone + PartialEq> QueueOwner for K {}

#[derive(Debug)]
struct Shared<K: QueueOwner> {
    waiting_max: usize,
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K: QueueOwner> {
    running_max: usize,
    /// Whether places are kept free for owners that hold fewer.
    keeps_free: bool,
    /// Number of running requests of each owner that has any.
    held: Vec<(K, usize)>,
    running: usize,
    waiting: usize,
    /// Owners in service order, each with its waiting requests, of which there is at least one.
    ring: VecDeque<(K, VecDeque<oneshot::Sender<RunPermit<K>>>)>,
}

/// Permission to run; passed to the next waiting request when dropped.
#[derive(Debug)]
pub struct RunPermit<K: QueueOwner> {
    queue: FairQueue<K>,
    owner: K,
}

impl<K: QueueOwner> FairQueue<K> {
    /// Creates a queue in which `running_max` requests run at once and `waiting_max` wait.
    pub fn new(running_max: usize, waiting_max: usize) -> Self {
        Self::with(running_max, waiting_max, false)
    }

    /// Creates a queue like [`Self::new`] that keeps places free.
    pub fn keeping_free(running_max: usize, waiting_max: usize) -> Self {
        Self::with(running_max, waiting_max, true)
    }

    fn with(running_max: usize, waiting_max: usize, keeps_free: bool) -> Self {
        let running_max = running_max.max(1);
        let (held, running, waiting, ring) = Default::default();
        let state = State { running_max, keeps_free, held, running, waiting, ring };
        Self(Arc::new(Shared { waiting_max, state: Mutex::new(state) }))
    }

    /// The permit of a request of `owner` that was counted as running.
    fn permit(&self, owner: K) -> RunPermit<K> {
        RunPermit { queue: Self(Arc::clone(&self.0)), owner }
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
            if state.begin(&owner) {
                return Ok(self.permit(owner));
            }
            let (giving, given) = oneshot::channel();
            state.wait(owner, giving, self.0.waiting_max);
            given
        };
        let given = async { given.await.map_err(|_| overloaded()) };
        until_deadline(context, given).await
    }
}

impl<K: QueueOwner> Drop for RunPermit<K> {
    fn drop(&mut self) {
        self.queue.0.state.lock().end(&self.owner);
        // More than one request may run now: the owner of this one holds fewer places than before.
        loop {
            let next = self.queue.0.state.lock().next();
            let Some((owner, next)) = next else { return };
            // If the receiver was cancelled in the meantime, the returned permit is dropped, which
            // passes it on.
            drop(next.send(self.queue.permit(owner)));
        }
    }
}

impl<K: QueueOwner> State<K> {
    /// Whether a further request of `owner` may run.
    fn admits(&self, owner: &K) -> bool {
        let held = self.held.iter().find(|(other, _)| other == owner).map_or(0, |(_, held)| *held);
        let free = self.running_max - self.running;
        free > 0 && (!self.keeps_free || held < free)
    }

    /// Counts a request of `owner` as running, if it may run.
    fn begin(&mut self, owner: &K) -> bool {
        if !self.admits(owner) {
            return false;
        }
        self.running += 1;
        match self.held.iter_mut().find(|(other, _)| other == owner) {
            Some((_, held)) => *held += 1,
            None => self.held.push((owner.clone(), 1)),
        }
        true
    }

    /// Counts a request of `owner` as ended.
    fn end(&mut self, owner: &K) {
        self.running -= 1;
        if let Some((_, held)) = self.held.iter_mut().find(|(other, _)| other == owner) {
            *held -= 1;
        }
        self.held.retain(|(_, held)| *held > 0);
    }

    /// Queues a request. If too many wait, refuses the newest request of the owner with the most.
    fn wait(&mut self, owner: K, giving: oneshot::Sender<RunPermit<K>>, waiting_max: usize) {
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

    /// Removes the next waiting request that may run and has not been cancelled, and counts it as
    /// running. Returns it with its owner.
    fn next(&mut self) -> Option<(K, oneshot::Sender<RunPermit<K>>)> {
        loop {
            let at = (0..self.ring.len()).find(|at| self.admits(&self.ring[*at].0))?;
            let (owner, mut waiting) = self.ring.remove(at)?;
            let next = waiting.pop_front();
            if !waiting.is_empty() {
                self.ring.push_back((owner.clone(), waiting));
            }
            self.waiting -= 1;
            if let Some(next) = next.filter(|giving| !giving.is_closed()) {
                self.begin(&owner);
                return Some((owner, next));
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

    /// Goal: requests of one owner that do not end leave places for every other one, in a queue
    /// that keeps some free; the places that they give back go to whoever waits.
    #[tokio::test]
    async fn owners_whose_requests_hang_leave_places_for_others() {
        let (queue, context) = (FairQueue::keeping_free(8, 1000), RequestContext::default());
        let mut running: Vec<RunPermit<u8>> = Vec::new();
        let mut hanging = Vec::new();
        for (owner, places) in [(1, 4), (2, 2), (3, 1)] {
            for _ in 0..places {
                running.push(queue.enter(&context, owner).await.unwrap());
            }
            hanging.extend((0..3).map(|_| waiting(&queue, &context, owner)));
        }
        for other in 4..=9 {
            drop(queue.enter(&context, other).await.unwrap());
        }
        assert!(hanging.iter_mut().all(|one| one.now_or_never().is_none()));
        // Each place that is given back goes to an owner that holds fewer than are free.
        drop(running.drain(..5));
        let served = hanging.iter_mut().filter_map(|one| one.now_or_never());
        let served: Vec<_> = served.map(Result::unwrap).collect();
        assert_eq!(served.iter().map(|permit| permit.owner).collect::<Vec<_>>(), [1, 1, 2, 3]);
        assert_eq!(queue.0.state.lock().running, 6);
        drop((running, served, hanging));
        assert_eq!(queue.0.state.lock().running, 0);
        assert!(queue.0.state.lock().held.is_empty());
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
