//! The slow query log: reports how long each part of a slow search or answer took, without the
//! question or any names.

use std::time::Instant;

use crate::qna::Grounds;
use crate::query::{Retrieved, Timings};
use crate::{Engine, TenantAccess};

impl Engine {
    fn is_slow(&self, total_ms: f64) -> bool {
        self.settings.watch.slow_query_millis.is_some_and(|least| total_ms >= least as f64)
    }

    /// Logs a search that exceeded the threshold, with the times of its parts.
    pub(super) fn tell_slow_search(&self, access: &TenantAccess, found: &Retrieved) {
        let Timings { embed, semantic, keyword, fuse, rerank, graph, total } = found.timings;
        if !self.is_slow(total) {
            return;
        }
        let paths: Vec<&str> = found.effort.paths.iter().map(|path| path.as_str()).collect();
        tracing::warn!(
            target: "lodestone_slow_query",
            operation = "retrieve", total_ms = total, embed_ms = embed, semantic_ms = semantic,
            keyword_ms = keyword, fuse_ms = fuse, rerank_ms = rerank, graph_ms = graph,
            candidates = found.candidates.fused, chunks = found.chunks.len(),
            is_filtered = found.is_filtered, paths = paths.join(","),
            collection = %access.tenant.collection, "slow query"
        );
    }

    /// Logs an answer that exceeded the threshold, with the times of its search and of its text.
    pub(super) fn tell_slow_answer(
        &self,
        access: &TenantAccess,
        grounds: &Grounds,
        answer_ms: f64,
        total_ms: f64,
    ) {
        if self.is_slow(total_ms) {
            tracing::warn!(
                target: "lodestone_slow_query",
                operation = "qna", total_ms, answer_ms, search_ms = grounds.retrieved.timings.total,
                chunks = grounds.retrieved.chunks.len(), collection = %access.tenant.collection,
                "slow query"
            );
        }
    }

    /// Logs any other operation that exceeded the threshold.
    pub(super) fn tell_slow(&self, access: &TenantAccess, operation: &str, since: Instant) {
        let total_ms = since.elapsed().as_secs_f64() * 1e3;
        if self.is_slow(total_ms) {
            let collection = &access.tenant.collection;
            tracing::warn!(
                target: "lodestone_slow_query", operation, total_ms, %collection, "slow query"
            );
        }
    }
}
