//! Orders the requests to an embedding server: queries before answers before documents.
//!
//! The server has a queue of its own, which knows nothing of these lanes. While queries or answers
//! are in flight, at most one document request is sent along with them, and none starts while a
//! query or an answer waits here.

use std::time::{Duration, Instant};

use lodestone_embed::{EmbedError, Lane};
use lodestone_types::RequestContext;
use parking_lot::{Condvar, Mutex};

/// Maximum number of query requests in flight.
const QUERIES_MAX: usize = 32;
/// Maximum number of answer requests in flight.
const ANSWERS_MAX: usize = 8;
/// Maximum number of document requests in flight when nothing else is.
const DOCUMENTS_MAX: usize = 4;
/// Interval at which a waiting request checks whether it is still wanted.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Admits requests by lane.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: [usize; 3],
    waiting: [usize; 3],
    is_closed: bool,
}

/// A request in flight; its slot is freed on drop.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    gate: &'a Gate,
    lane: Lane,
}

impl State {
    fn may_pass(&self, lane: Lane) -> bool {
        let under_way = |lane: Lane| self.under_way[lane as usize];
        let before = under_way(Lane::Query) + under_way(Lane::Answer);
        let waits = |lane: Lane| self.waiting[lane as usize] > 0;
        match lane {
            Lane::Query => under_way(lane) < QUERIES_MAX,
            Lane::Answer => under_way(lane) < ANSWERS_MAX && !waits(Lane::Query),
            Lane::Bulk => {
                let most = if before > 0 { 1 } else { DOCUMENTS_MAX };
                under_way(lane) < most && !waits(Lane::Query) && !waits(Lane::Answer)
            }
        }
    }
}

impl Gate {
    /// Waits until a request may be sent.
    ///
    /// # Errors
    /// [`EmbedError::Closed`]; [`EmbedError::Stopped`] if the request was canceled or ran out of
    /// time.
    pub fn enter(&self, lane: Lane, context: &RequestContext) -> Result<Permit<'_>, EmbedError> {
        let mut state = self.state.lock();
        state.waiting[lane as usize] += 1;
        let passed = loop {
            if state.is_closed {
                break Err(EmbedError::Closed);
            }
            if let Err(stopped) = context.check() {
                break Err(stopped.into());
            }
            // A request must not block itself.
            state.waiting[lane as usize] -= 1;
            let may_pass = state.may_pass(lane);
            state.waiting[lane as usize] += 1;
            if may_pass {
                break Ok(());
            }
            self.changed.wait_for(&mut state, LOOK_AGAIN);
        };
        state.waiting[lane as usize] -= 1;
        passed?;
        state.under_way[lane as usize] += 1;
        Ok(Permit { gate: self, lane })
    }

    /// Waits for `time`, but no longer than until the gate closes or the request ends.
    ///
    /// # Errors
    /// See [`Self::enter`].
    pub fn pause(&self, time: Duration, context: &RequestContext) -> Result<(), EmbedError> {
        let until = Instant::now() + time;
        loop {
            self.check(context)?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let mut state = self.state.lock();
            if !state.is_closed {
                self.changed.wait_for(&mut state, left.min(LOOK_AGAIN));
            }
        }
    }

    /// Checks that the gate is open and the request still wanted.
    ///
    /// # Errors
    /// See [`Self::enter`].
    pub fn check(&self, context: &RequestContext) -> Result<(), EmbedError> {
        match self.state.lock().is_closed {
            true => Err(EmbedError::Closed),
            false => Ok(context.check()?),
        }
    }

    /// Fails all current and future waits.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.gate.state.lock().under_way[self.lane as usize] -= 1;
        self.gate.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_stand_back_for_queries() {
        let (gate, context) = (Gate::default(), RequestContext::default());
        let enter = |lane| gate.enter(lane, &context).unwrap();
        let documents: Vec<_> = (0..DOCUMENTS_MAX).map(|_| enter(Lane::Bulk)).collect();
        assert!(!gate.state.lock().may_pass(Lane::Bulk), "a bound on each lane");
        let query = enter(Lane::Query);
        drop(documents);
        let one = enter(Lane::Bulk);
        assert!(!gate.state.lock().may_pass(Lane::Bulk), "one beside a query");
        drop((query, one));
        gate.state.lock().waiting[Lane::Query as usize] = 1;
        assert!(!gate.state.lock().may_pass(Lane::Bulk), "none before one that waits");
        gate.close();
        assert_eq!(gate.enter(Lane::Bulk, &context).unwrap_err(), EmbedError::Closed);
        assert_eq!(gate.pause(Duration::MAX / 4, &context).unwrap_err(), EmbedError::Closed);
    }

    #[test]
    fn a_wait_ends_with_its_request() {
        let gate = Gate::default();
        gate.state.lock().under_way[Lane::Query as usize] = QUERIES_MAX;
        let context = RequestContext::with_limit(Duration::from_millis(1));
        let ended = gate.enter(Lane::Query, &context).unwrap_err();
        assert!(matches!(ended, EmbedError::Stopped(_)), "{ended}");
        assert_eq!(gate.state.lock().waiting, [0; 3]);
    }
}
