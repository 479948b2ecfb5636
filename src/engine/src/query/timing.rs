//! Times of the stages of a search.

use std::time::Instant;

use crate::query::Timings;
use crate::stage::stage;

/// A stage of a search.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Embed,
    Semantic,
    Keyword,
    Fuse,
    Rerank,
    Graph,
}

impl Timings {
    /// Runs a stage, adds its time, and records it in the trace of the request.
    pub(super) fn time<T>(&mut self, part: Part, run: impl FnOnce() -> T) -> T {
        let (slot, _stage) = match part {
            Part::Embed => (&mut self.embed, stage!("embed")),
            Part::Semantic => (&mut self.semantic, stage!("semantic")),
            Part::Keyword => (&mut self.keyword, stage!("keyword")),
            Part::Fuse => (&mut self.fuse, stage!("fuse")),
            Part::Rerank => (&mut self.rerank, stage!("rerank")),
            Part::Graph => (&mut self.graph, stage!("graph")),
        };
        let begun = Instant::now();
        let value = run();
        *slot += millis(begun);
        value
    }
}

/// Milliseconds since a point in time.
pub(super) fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
