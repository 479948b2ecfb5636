//! Watches the process that writes, from a node that follows it.

use std::time::Duration;

use super::Follower;
use crate::ComponentState;
use crate::nodes::writer_at;
use lodestone_fetch::Forwarder;

/// Interval between probes of the writing process.
const LOOK: Duration = Duration::from_secs(1);
/// Number of consecutive failed probes before the writing process counts as lost.
const FAILURES: u32 = 2;

impl Follower {
    /// The state of this node, for operators and load balancers. The node is unusable only if it
    /// may not answer by itself and there is no writing process to forward requests to.
    pub(crate) fn problem(&self) -> Option<ComponentState> {
        let state = self.catalog.follow_state()?;
        let is_current = self.catalog.require_current().is_ok();
        let is_writer_away = self.writer.current().unusable_for().is_some();
        Some(match (state.is_waited_for && is_current, is_writer_away) {
            (true, false) if state.is_later => ComponentState::Degraded(LATER),
            (true, false) => return None,
            (true, true) => ComponentState::Degraded(
                "the writer is unreachable or is not the one followed: searches continue",
            ),
            (false, true) => ComponentState::Unusable(
                "this node cannot answer on its own, and the writer is unreachable or is not the \
                 one followed: see the server log",
            ),
            (false, false) if state.is_later => ComponentState::Degraded(LATER),
            (false, false) if !state.is_waited_for => ComponentState::Degraded(
                "the writer was started without --with-query-nodes: requests are forwarded to it",
            ),
            (false, false) => ComponentState::Degraded(
                "the bucket is unreachable, so this node's state may be stale: requests are \
                 forwarded to the writer",
            ),
        })
    }

    /// Probes the writing process until the end.
    pub(super) fn watch_writer(&self) {
        let (mut failures, mut is_told) = (0, false);
        loop {
            match self.find_writer() {
                Ok(()) => {
                    if is_told {
                        let writer = self.writer.current().base();
                        tracing::info!(writer, "the writer is reachable again");
                    }
                    (failures, is_told) = (0, false);
                    self.writer.current().note(None);
                }
                Err(problem) => {
                    failures += 1;
                    if failures >= FAILURES {
                        if !is_told {
                            tracing::warn!(%problem, "no requests are forwarded to the writer");
                        }
                        is_told = true;
                        self.writer.current().note(Some(problem));
                    }
                }
            }
            if self.pause(LOOK) {
                return;
            }
        }
    }

    pub(super) fn find_writer(&self) -> Result<(), String> {
        self.writer.find(|way| self.look_for_writer(way))
    }

    /// Checks that the process at an address is the one that this node follows; an error says why
    /// not.
    fn look_for_writer(&self, way: &Forwarder) -> Result<(), String> {
        let name = writer_at(way)?;
        let is_followed = || self.catalog.follow_state().is_some_and(|state| state.writer == name);
        // It may have taken over just now, or be of a later release, which cannot be followed.
        if is_followed()
            || self.catalog.catch_up().is_ok() && is_followed()
            || self.catalog.is_written_by(name).unwrap_or(false)
        {
            way.note_name(name.to_string());
            return Ok(());
        }
        let base = way.base();
        Err(format!("{base} does not write the data that this node follows"))
    }
}

const LATER: &str =
    "the writer is of a later release: requests are forwarded to it until this node is upgraded";
