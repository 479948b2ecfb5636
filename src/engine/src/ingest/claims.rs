//! Triplets that a generator adds to the graphs of chunks, if the operator enables that.
//!
//! ```text
//! sources, by rule -> batches of a source's chunks -> GraphReader -> graph::claims::merge
//!                       while there is time; otherwise the graph by rule remains
//! ```
//! No error here fails a document. One claim is delayed by at most [`CLAIM_TIME_MAX`] plus one call
//! ([`CALL_TIME_MAX`]). After [`FAILURES_MAX`] consecutive failures, the generator is not called
//! for [`REST_MILLIS`]. Chunks that were left to the rules are logged and counted. Chunks of two
//! sources never share a request, so a hostile text can only spoil the reply about itself. Sources
//! that are rebuilt after damage get the graph by rule.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::ingest::Ingest;
use lodestone_graph::RowGraph;
use lodestone_graph::claims::{self, Added, ChunkText, Request};
use lodestone_storage::segment::NewSource;
use lodestone_types::Timestamp;

/// Time limit of all calls for one claim.
const CLAIM_TIME_MAX: Duration = Duration::from_secs(120);
/// Time limit of one call.
const CALL_TIME_MAX: Duration = Duration::from_secs(30);
/// Consecutive failures after which the generator is not called for a while.
const FAILURES_MAX: u32 = 2;
/// Duration of that pause.
const REST_MILLIS: u64 = 60_000;

/// A language model that extracts graphs from passages. Blocking.
pub trait GraphReader: Send + Sync + fmt::Debug {
    /// Returns the model's reply within `time_max`.
    ///
    /// # Errors
    /// The reason why there is no reply, for the log.
    fn reply(&self, request: &Request, time_max: Duration) -> Result<String, String>;

    /// Ends the calls in progress; later calls end at once.
    fn end(&self);
}

/// Counts of the calls to the generator since the start, and of their outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClaimCounts {
    /// Calls.
    pub calls: u64,
    /// Calls that failed, timed out or returned an unreadable reply.
    pub failures: u64,
    /// Chunks that only have their graph by rule although the generator was enabled.
    pub chunks_by_rule: u64,
    /// Triplets added by the generator.
    pub triplets: u64,
    /// Statements of the generator that no text supports.
    pub refused: u64,
}

/// The counters, and the state of the pause after failures.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    /// Consecutive failed calls, over all claims.
    failures_in_row: AtomicU32,
    /// Time in milliseconds until which the generator is not called.
    rests_until: AtomicU64,
    calls: AtomicU64,
    failures: AtomicU64,
    chunks_by_rule: AtomicU64,
    triplets: AtomicU64,
    refused: AtomicU64,
}

/// The calls for one claim.
struct Round {
    ends: Timestamp,
    chunks_by_rule: usize,
    problem: Option<String>,
}

impl Ingest {
    /// Lets the generator, if there is one, add to the graphs of sources.
    pub(super) fn add_claims(&self, sources: &mut [NewSource]) {
        let Some(reader) = self.graph_reader.as_deref() else { return };
        let mut round = Round {
            ends: self.clock.now().plus_millis(CLAIM_TIME_MAX.as_millis() as u64),
            chunks_by_rule: 0,
            problem: None,
        };
        for source in sources {
            let sizes: Vec<usize> = source.rows.iter().map(|row| row.text.len()).collect();
            for batch in claims::batches(&sizes) {
                self.read_batch(reader, source, batch, &mut round);
            }
        }
        let chunks = round.chunks_by_rule;
        self.claimed.chunks_by_rule.fetch_add(chunks as u64, Ordering::Relaxed);
        if let Some(problem) = round.problem {
            tracing::warn!(chunks, problem, "graph extraction of some chunks fell back to rules");
        }
    }

    fn read_batch(
        &self,
        reader: &dyn GraphReader,
        source: &mut NewSource,
        batch: std::ops::Range<usize>,
        round: &mut Round,
    ) {
        let now = self.clock.now();
        let left = round.ends.0.saturating_sub(now.0);
        let is_resting = now.0 < self.claimed.rests_until.load(Ordering::Relaxed);
        if is_resting || left == 0 || self.stopping.is_set() {
            let problem = if is_resting { "it failed recently" } else { "out of time" };
            round.chunks_by_rule += batch.len();
            round.problem.get_or_insert_with(|| problem.to_owned());
            return;
        }
        let rows = &mut source.rows[batch];
        let mut graphs: Vec<RowGraph> =
            rows.iter_mut().map(|row| std::mem::take(&mut row.graph)).collect();
        let title = source.title_text.as_str();
        let passages: Vec<ChunkText<'_>> =
            rows.iter().map(|row| ChunkText { title, text: &row.text }).collect();
        let request = claims::request(&*self.ids, &passages);
        let time_max = CALL_TIME_MAX.min(Duration::from_millis(left));
        let added = reader.reply(&request, time_max).and_then(|reply| {
            let added = claims::merge(&reply, &passages, &mut graphs);
            added.ok_or_else(|| "its reply is not in the requested format".to_owned())
        });
        for (row, graph) in rows.iter_mut().zip(graphs) {
            row.graph = graph;
        }
        self.claimed.note(&added, self.clock.now());
        if let Err(problem) = added {
            round.chunks_by_rule += rows.len();
            round.problem = Some(problem);
        }
    }

    /// Counts of the calls to the generator, and of their outcomes.
    pub fn claim_counts(&self) -> ClaimCounts {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let Claimed {
            failures_in_row: _,
            rests_until: _,
            calls,
            failures,
            chunks_by_rule,
            triplets,
            refused,
        } = &self.claimed;
        ClaimCounts {
            calls: count(calls),
            failures: count(failures),
            chunks_by_rule: count(chunks_by_rule),
            triplets: count(triplets),
            refused: count(refused),
        }
    }
}

impl Claimed {
    fn note(&self, added: &Result<Added, String>, now: Timestamp) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match added {
            Ok(Added { entities: _, triplets, refused }) => {
                self.failures_in_row.store(0, Ordering::Relaxed);
                self.triplets.fetch_add(*triplets as u64, Ordering::Relaxed);
                self.refused.fetch_add(*refused as u64, Ordering::Relaxed);
            }
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                // The counter is not reset, so after a pause one more failure starts the next.
                if self.failures_in_row.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES_MAX {
                    let until = now.plus_millis(REST_MILLIS);
                    self.rests_until.store(until.0, Ordering::Relaxed);
                }
            }
        }
    }
}
