//! Queues of texts that wait for the model, and the order in which they are served. Plain data;
//! `queue` holds it behind a lock.
//!
//! ```text
//! lane   round robin over tenants, then over the calls of a tenant, one text per turn
//! lanes  queries, then answers, then documents; answers cannot starve documents
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::Lane;
use crate::forward::BatchPolicy;
use crate::reply::Reply;
use lodestone_types::CollectionId;

/// Maximum number of consecutive batches of answers while documents are waiting.
const ANSWERS_IN_A_ROW: usize = 4;

/// A waiting text: its token ids, and the reply that receives its vector.
#[derive(Debug)]
pub(super) struct QueuedText {
    pub ids: Vec<u32>,
    pub reply: Arc<Reply>,
    pub index: usize,
    /// Time at which it was queued.
    pub since: Instant,
}

impl QueuedText {
    /// Creates a text that starts waiting now.
    pub fn new(ids: Vec<u32>, reply: &Arc<Reply>, index: usize) -> Self {
        Self { ids, reply: Arc::clone(reply), index, since: Instant::now() }
    }
}

/// Waiting texts of one call, in order. Never empty while in the ring.
#[derive(Debug)]
struct Submission {
    reply: Arc<Reply>,
    passages: VecDeque<QueuedText>,
    tokens: usize,
}

/// Waiting calls of one tenant. Never empty while in the ring.
#[derive(Debug)]
struct Owned {
    owner: Option<CollectionId>,
    calls: VecDeque<Submission>,
    tokens: usize,
}

/// One lane: a ring of tenants that take turns, each with a ring of its calls.
#[derive(Debug, Default)]
pub(super) struct LaneQueue {
    ring: VecDeque<Owned>,
    tokens: usize,
}

impl LaneQueue {
    /// Returns the number of tokens waiting in the lane.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Returns the number of tokens of one tenant waiting in the lane.
    pub fn tokens_of_owner(&self, owner: Option<CollectionId>) -> usize {
        self.ring.iter().find(|owned| owned.owner == owner).map_or(0, |owned| owned.tokens)
    }

    /// Returns the number of tokens of the call of `reply` waiting in the lane.
    pub fn tokens_of(&self, reply: &Arc<Reply>) -> usize {
        self.find(reply).map_or(0, |(at, call)| self.ring[at].calls[call].tokens)
    }

    /// Appends passages of one call. A call that already waits keeps its turn.
    pub fn push(&mut self, reply: &Arc<Reply>, passages: Vec<QueuedText>) {
        let tokens: usize = passages.iter().map(|passage| passage.ids.len()).sum();
        if passages.is_empty() {
            return;
        }
        let owner = reply.owner();
        let at = self.ring.iter().position(|owned| owned.owner == owner).unwrap_or_else(|| {
            self.ring.push_back(Owned { owner, calls: VecDeque::new(), tokens: 0 });
            self.ring.len() - 1
        });
        let owned = &mut self.ring[at];
        self.tokens += tokens;
        owned.tokens += tokens;
        match owned.calls.iter_mut().find(|call| Arc::ptr_eq(&call.reply, reply)) {
            Some(call) => {
                call.passages.extend(passages);
                call.tokens += tokens;
            }
            None => {
                let passages = passages.into();
                owned.calls.push_back(Submission { reply: Arc::clone(reply), passages, tokens });
            }
        }
    }

    /// Takes the next batch, one passage per turn over all waiting tenants and their calls, up to
    /// `budget` tokens. Takes at least one passage if any is waiting.
    pub fn take(&mut self, budget: usize) -> Vec<QueuedText> {
        let mut batch = Vec::new();
        let mut filled = 0;
        while let Some(owned) = self.ring.front_mut() {
            let call = owned.calls.front_mut().expect("a tenant in the ring has a call");
            let next = call.passages.front().map_or(0, |passage| passage.ids.len());
            if !batch.is_empty() && filled + next > budget {
                break;
            }
            filled += next;
            self.tokens -= next;
            owned.tokens -= next;
            call.tokens -= next;
            batch.push(call.passages.pop_front().expect("a call in the ring has a passage"));
            let is_done = call.passages.is_empty();
            owned.calls.rotate_left(1);
            if is_done {
                owned.calls.pop_back();
            }
            let is_done = owned.calls.is_empty();
            self.ring.rotate_left(1);
            if is_done {
                self.ring.pop_back();
            }
        }
        batch
    }

    /// Drops the waiting texts of the call of `reply`.
    pub fn forget(&mut self, reply: &Arc<Reply>) {
        let Some((at, call)) = self.find(reply) else { return };
        let owned = &mut self.ring[at];
        let dropped = owned.calls.remove(call).expect("found just now");
        owned.tokens -= dropped.tokens;
        self.tokens -= dropped.tokens;
        if owned.calls.is_empty() {
            self.ring.remove(at);
        }
    }

    /// Empties the lane and returns the calls that were waiting there.
    pub fn drain(&mut self) -> Vec<Arc<Reply>> {
        self.tokens = 0;
        self.ring.drain(..).flat_map(|owned| owned.calls).map(|call| call.reply).collect()
    }

    /// Finds a waiting call: the position of its tenant in the ring, and of the call within the
    /// tenant.
    fn find(&self, reply: &Arc<Reply>) -> Option<(usize, usize)> {
        let at = self.ring.iter().position(|owned| owned.owner == reply.owner())?;
        let mut calls = self.ring[at].calls.iter();
        Some((at, calls.position(|call| Arc::ptr_eq(&call.reply, reply))?))
    }
}

/// All lanes, and the state of the workers that serve them.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub query: LaneQueue,
    pub answer: LaneQueue,
    pub bulk: LaneQueue,
    /// Consecutive batches of answers taken while documents were waiting.
    answers_in_a_row: usize,
    /// Workers running a batch from [`Self::next`], as opposed to one from [`Self::between`].
    busy: usize,
    /// Busy workers whose batch comes from the bulk lane.
    busy_with_bulk: usize,
}

impl Lanes {
    /// Returns the queue of a lane.
    pub fn of(&mut self, lane: Lane) -> &mut LaneQueue {
        match lane {
            Lane::Query => &mut self.query,
            Lane::Answer => &mut self.answer,
            Lane::Bulk => &mut self.bulk,
        }
    }

    /// Takes the next batch for an idle worker, one of `workers`: of queries, otherwise answers,
    /// otherwise documents; documents precede answers after [`ANSWERS_IN_A_ROW`] batches of
    /// answers.
    pub fn next(&mut self, policy: BatchPolicy, workers: usize) -> Option<(Lane, Vec<QueuedText>)> {
        let is_bulk_due = self.answers_in_a_row >= ANSWERS_IN_A_ROW;
        let order = match is_bulk_due {
            true => [Lane::Query, Lane::Bulk, Lane::Answer],
            false => [Lane::Query, Lane::Answer, Lane::Bulk],
        };
        let taken = order.into_iter().find_map(|lane| {
            let batch = match lane {
                Lane::Query | Lane::Answer => self.of(lane).take(policy.share),
                Lane::Bulk => self.bulk_batch(policy, workers),
            };
            (!batch.is_empty()).then_some((lane, batch))
        })?;
        match taken.0 {
            Lane::Query => {}
            Lane::Answer if self.bulk.tokens() > 0 => self.answers_in_a_row += 1,
            Lane::Answer | Lane::Bulk => self.answers_in_a_row = 0,
        }
        self.busy += 1;
        self.busy_with_bulk += usize::from(taken.0 == Lane::Bulk);
        Some(taken)
    }

    /// Takes a batch to run during a pause of a batch of `lane`: queries during answers; queries,
    /// otherwise answers, during documents.
    pub fn between(&mut self, lane: Lane, policy: BatchPolicy) -> Option<(Lane, Vec<QueuedText>)> {
        let served: &[Lane] = match lane {
            Lane::Query => &[],
            Lane::Answer => &[Lane::Query],
            Lane::Bulk => &[Lane::Query, Lane::Answer],
        };
        served.iter().find_map(|lane| {
            let batch = self.of(*lane).take(policy.share);
            (!batch.is_empty()).then_some((*lane, batch))
        })
    }

    /// Records the end of a batch from [`Self::next`]. Returns whether documents are waiting that
    /// the batch may have held up.
    pub fn ended(&mut self, lane: Lane) -> bool {
        let bulk = usize::from(lane == Lane::Bulk);
        self.busy -= 1;
        self.busy_with_bulk -= bulk;
        bulk > 0 && self.bulk.tokens() > 0
    }

    /// Drops the waiting texts of the call of `reply`.
    pub fn forget(&mut self, reply: &Arc<Reply>) {
        for lane in Lane::ALL {
            self.of(lane).forget(reply);
        }
    }

    /// Empties all lanes and returns the calls that were waiting.
    pub fn drain(&mut self) -> Vec<Arc<Reply>> {
        Lane::ALL.into_iter().flat_map(|lane| self.of(lane).drain()).collect()
    }

    fn bulk_batch(&mut self, policy: BatchPolicy, workers: usize) -> Vec<QueuedText> {
        if self.busy_with_bulk >= policy.workers.max(1) {
            return Vec::new();
        }
        // No more workers count as idle than the policy admits to bulk batches.
        let barred = workers.saturating_sub(policy.workers);
        let busy = self.busy.max(self.busy_with_bulk + barred);
        let idle = workers.saturating_sub(busy).max(1);
        let share = self.bulk.tokens().div_ceil(idle).max(policy.share);
        self.bulk.take(share.min(policy.batch))
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
