//! Turns of requests: a bounded number runs at once, and the next is one of another owner where one
//! waits. However many one owner asks for, another waits for one of them at most.
//!
//! The owners of expensive requests (answers, searches with a reranker, drawings of pages) are
//! collections. One of them keeps a core busy for a third of a second, where a search takes
//! milliseconds: as many run at once as there are cores, outside of the slots of
//! [`crate::admission`], which other reads use meanwhile.
//!
//! When the queue is full, the newest of the owner with the most is refused.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use crate::error::{ApiError, Condition};
use lodestone_types::{RequestContext, Stopped};

/// Seconds after which a refused client should try again.
const RETRY_SECONDS: u32 = 1;

/// The turns of a server. Clones share them.
#[derive(Debug, Clone)]
pub struct Turns<K>(Arc<Shared<K>>);

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
    /// Owners in the order of their turns, each with those who wait, none of them with nobody.
    ring: VecDeque<(K, VecDeque<oneshot::Sender<Turn<K>>>)>,
}

/// The right to run; passed on when dropped.
#[derive(Debug)]
pub struct Turn<K>(Turns<K>);

impl<K: PartialEq> Turns<K> {
    /// Turns for `running_max` at once, and `waiting_max` that wait.
    pub fn new(running_max: usize, waiting_max: usize) -> Self {
        let running_max = running_max.max(1);
        let state = Mutex::new(State { running: 0, waiting: 0, ring: VecDeque::new() });
        Self(Arc::new(Shared { running_max, waiting_max, state }))
    }

    /// Waits for a turn of an owner, until the request is over.
    ///
    /// # Errors
    /// 503 where the queue is full or the time is over.
    pub async fn enter(&self, context: &RequestContext, owner: K) -> Result<Turn<K>, ApiError> {
        let given = {
            let mut state = self.0.state.lock();
            if state.running < self.0.running_max {
                state.running += 1;
                return Ok(Turn(Self(Arc::clone(&self.0))));
            }
            let (giving, given) = oneshot::channel();
            state.wait(owner, giving, self.0.waiting_max);
            given
        };
        let given = async { given.await.map_err(|_| overloaded()) };
        until_deadline(context, given).await
    }
}

impl<K> Drop for Turn<K> {
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
            // One that has left in this moment drops the turn, which passes it on.
            drop(next.send(Turn(Turns(Arc::clone(&self.0.0)))));
        }
    }
}

impl<K> State<K> {
    /// Adds one who waits; where there are too many, the newest of the owner with the most goes.
    fn wait(&mut self, owner: K, giving: oneshot::Sender<Turn<K>>, waiting_max: usize)
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

    /// The one whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<Turn<K>>> {
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

/// Waits for `answer` until the request is over.
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
    let message = "too many requests of this kind are running and waiting";
    ApiError::new(Condition::Unavailable, "overloaded", message).with_retry_after(RETRY_SECONDS)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::time::timeout;

    use super::*;

    type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Turn<u8>, ApiError>> + 'a>>;

    /// One who waits for a turn; asked once, so that it stands in the queue.
    fn waiting<'a>(turns: &'a Turns<u8>, context: &'a RequestContext, number: u8) -> Waiting<'a> {
        let mut waiting: Waiting<'_> = Box::pin(turns.enter(context, number));
        assert!((&mut waiting).now_or_never().is_none());
        waiting
    }

    #[tokio::test]
    async fn the_next_is_one_of_another_tenant() {
        let (turns, context) = (Turns::new(2, 1000), RequestContext::default());
        let mut running = VecDeque::new();
        for _ in 0..2 {
            running.push_back(turns.enter(&context, 1).await.unwrap());
        }
        let mut many: Vec<_> = (0..64).map(|_| waiting(&turns, &context, 1)).collect();
        let mut other = waiting(&turns, &context, 2);
        let mut served = 0;
        // Two turns end: one goes to each tenant.
        for _ in 0..2 {
            drop(running.pop_front());
            many.retain_mut(|one| match one.now_or_never() {
                Some(turn) => {
                    running.push_back(turn.unwrap());
                    served += 1;
                    false
                }
                None => true,
            });
        }
        assert_eq!(served, 1);
        drop((&mut other).now_or_never().expect("the second turn").unwrap());
    }

    #[tokio::test]
    async fn a_turn_of_one_who_left_goes_on() {
        let (turns, context) = (Turns::new(1, 1000), RequestContext::default());
        let running = turns.enter(&context, 1).await.unwrap();
        let (left, given) = (waiting(&turns, &context, 1), waiting(&turns, &context, 2));
        let mut stays = waiting(&turns, &context, 1);
        drop(left);
        drop(running);
        assert!((&mut stays).now_or_never().is_none());
        // It has been given its turn and leaves without having looked.
        drop(given);
        drop((&mut stays).now_or_never().expect("its turn").unwrap());
        assert_eq!(turns.0.state.lock().running, 0);
        drop(turns.enter(&context, 1).await.unwrap());
    }

    #[tokio::test]
    async fn a_full_queue_refuses_the_tenant_with_the_most() {
        let (turns, context) = (Turns::new(1, 3), RequestContext::default());
        let _running = turns.enter(&context, 1).await.unwrap();
        let mut many: Vec<_> = (0..3).map(|_| waiting(&turns, &context, 1)).collect();
        let _other = waiting(&turns, &context, 2);
        let refused = many.pop().unwrap().now_or_never().expect("an answer").unwrap_err();
        assert_eq!((refused.condition(), refused.reason()), (Condition::Unavailable, "overloaded"));
        assert!(many.iter_mut().all(|one| one.now_or_never().is_none()));
        // Those who have left take no place.
        many.clear();
        let _others = [waiting(&turns, &context, 3), waiting(&turns, &context, 3)];
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_time_of_the_request() {
        let (turns, context) = (Turns::new(1, 3), RequestContext::default());
        let _running = turns.enter(&context, 1).await.unwrap();
        let limit = Duration::from_millis(5);
        let context = RequestContext::with_limit(limit);
        let waited = timeout(Duration::from_secs(60), turns.enter(&context, 2)).await;
        let refused = waited.expect("the wait ends").unwrap_err();
        assert_eq!(refused.reason(), "deadline_exceeded");
    }
}
