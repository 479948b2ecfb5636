//! Texts that wait for the model, and their order. Plain data: the queue locks it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::EmbedError;

/// The vectors of one call to `embed`, collected until all are there.
#[derive(Debug)]
pub(super) struct Reply {
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
    /// A reply of `count` vectors, all of them missing.
    pub fn new(count: usize) -> Arc<Self> {
        let progress = Progress { vectors: vec![Vec::new(); count], missing: count, error: None };
        Arc::new(Self { progress: Mutex::new(progress), is_settled: Condvar::new() })
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

    /// The error that ended the call already, if one did.
    pub fn error(&self) -> Option<EmbedError> {
        self.progress.lock().error.clone()
    }

    /// Waits for all vectors or the first error.
    pub fn wait(&self) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut progress = self.progress.lock();
        while progress.missing > 0 && progress.error.is_none() {
            self.is_settled.wait(&mut progress);
        }
        match progress.error.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut progress.vectors)),
        }
    }
}

/// A text that waits: its tokens, and the reply that its vector goes to.
#[derive(Debug)]
pub(super) struct QueuedText {
    pub ids: Vec<u32>,
    pub reply: Arc<Reply>,
    pub index: usize,
}

/// Waiting texts of one call, in their order. Never empty while in the ring.
#[derive(Debug)]
struct Submission {
    reply: Arc<Reply>,
    passages: VecDeque<QueuedText>,
    tokens: usize,
}

/// One lane: a ring of submissions that take turns, one passage a turn.
#[derive(Debug, Default)]
pub(super) struct LaneQueue {
    ring: VecDeque<Submission>,
    tokens: usize,
}

impl LaneQueue {
    /// Tokens that wait in the lane.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Tokens of the call behind `reply` that wait in the lane.
    pub fn tokens_of(&self, reply: &Arc<Reply>) -> usize {
        self.find(reply).map_or(0, |at| self.ring[at].tokens)
    }

    /// Appends passages of one call; a call that waits already keeps its turn.
    pub fn push(&mut self, reply: &Arc<Reply>, passages: Vec<QueuedText>) {
        let tokens: usize = passages.iter().map(|passage| passage.ids.len()).sum();
        if passages.is_empty() {
            return;
        }
        self.tokens += tokens;
        if let Some(at) = self.find(reply) {
            self.ring[at].passages.extend(passages);
            self.ring[at].tokens += tokens;
        } else {
            let passages = passages.into();
            self.ring.push_back(Submission { reply: Arc::clone(reply), passages, tokens });
        }
    }

    /// The next batch: turn by turn over all waiting calls, until `budget` tokens are full; at
    /// least one passage where one waits.
    pub fn take(&mut self, budget: usize) -> Vec<QueuedText> {
        let mut batch = Vec::new();
        let mut filled = 0;
        while let Some(mut submission) = self.ring.pop_front() {
            let next = submission.passages.front().map_or(0, |passage| passage.ids.len());
            if !batch.is_empty() && filled + next > budget {
                self.ring.push_front(submission);
                break;
            }
            let passage = submission.passages.pop_front().expect("a submission is never empty");
            filled += next;
            self.tokens -= next;
            submission.tokens -= next;
            batch.push(passage);
            if !submission.passages.is_empty() {
                self.ring.push_back(submission);
            }
        }
        batch
    }

    /// Drops the waiting texts of the call behind `reply`.
    pub fn forget(&mut self, reply: &Arc<Reply>) {
        if let Some(at) = self.find(reply) {
            let dropped = self.ring.remove(at).expect("found just now");
            self.tokens -= dropped.tokens;
        }
    }

    /// Empties the lane and returns the calls that waited there.
    pub fn drain(&mut self) -> Vec<Arc<Reply>> {
        self.tokens = 0;
        self.ring.drain(..).map(|submission| submission.reply).collect()
    }

    fn find(&self, reply: &Arc<Reply>) -> Option<usize> {
        self.ring.iter().position(|submission| Arc::ptr_eq(&submission.reply, reply))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passages(reply: &Arc<Reply>, count: usize, tokens: usize) -> Vec<QueuedText> {
        let passage = |index| QueuedText { ids: vec![0; tokens], reply: Arc::clone(reply), index };
        (0..count).map(passage).collect()
    }

    #[test]
    fn callers_take_turns_within_the_budget() {
        let (large, small) = (Reply::new(50), Reply::new(2));
        let mut lane = LaneQueue::default();
        lane.push(&large, passages(&large, 50, 10));
        lane.push(&small, passages(&small, 2, 10));
        assert_eq!((lane.tokens(), lane.tokens_of(&small)), (520, 20));

        let batch = lane.take(60);
        let from_small = batch.iter().filter(|p| Arc::ptr_eq(&p.reply, &small)).count();
        assert_eq!((batch.len(), from_small), (6, 2));
        let order: Vec<usize> =
            batch.iter().filter(|p| Arc::ptr_eq(&p.reply, &large)).map(|p| p.index).collect();
        assert_eq!(order, [0, 1, 2, 3]);
        assert_eq!((lane.tokens(), lane.tokens_of(&small)), (460, 0));
    }

    #[test]
    fn a_passage_above_the_budget_goes_alone() {
        let reply = Reply::new(2);
        let mut lane = LaneQueue::default();
        lane.push(&reply, passages(&reply, 2, 100));
        assert_eq!(lane.take(10).len(), 1);
        assert_eq!(lane.take(10).len(), 1);
        assert!(lane.take(10).is_empty());
        assert_eq!(lane.tokens(), 0);
    }

    #[test]
    fn forgotten_calls_leave_no_tokens_behind() {
        let (first, second) = (Reply::new(3), Reply::new(3));
        let mut lane = LaneQueue::default();
        lane.push(&first, passages(&first, 3, 5));
        lane.push(&second, passages(&second, 3, 7));
        lane.forget(&first);
        assert_eq!(lane.tokens(), 21);
        assert_eq!(lane.drain().len(), 1);
        assert_eq!(lane.tokens(), 0);
    }
}
