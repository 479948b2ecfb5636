//! Groups chunks by source.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::text::snippet::snippet;
use crate::text::terms::question_terms;
use lodestone_types::limits::SNIPPET_CHARS;
use lodestone_types::{RetrievedChunk, SourceRecord};

/// A source of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSource {
    /// Record of the source.
    pub source: Arc<SourceRecord>,
    /// Positions of the source's chunks among those given, ascending.
    pub chunks: Vec<usize>,
    /// Score of the best chunk of the source.
    pub score: f32,
    /// Whether an extractive answer cites the source.
    pub is_cited: bool,
    /// Snippet of the first cited chunk, else of the best one.
    pub snippet: String,
}

/// Returns the sources of chunks that are given best first, ordered by their best chunks. For
/// requests that want no answer.
pub fn sources_only(question: &str, chunks: &[RetrievedChunk]) -> Vec<AnswerSource> {
    let chunks: Vec<&RetrievedChunk> = chunks.iter().collect();
    grouped(question, &chunks, chunks.len(), &[])
}

/// Returns the sources of the first `hits` chunks: those of the `cited` chunks first, in that
/// order, then the others in the order of the chunks. Chunks after the first `hits` contribute only
/// snippets and scores.
pub(crate) fn grouped(
    question: &str,
    chunks: &[&RetrievedChunk],
    hits: usize,
    cited: &[usize],
) -> Vec<AnswerSource> {
    let query = question_terms(question);
    let mut found: Vec<AnswerSource> = Vec::new();
    let mut positions: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for position in cited.iter().copied().chain(0..hits) {
        let chunk = chunks[position];
        let key = (chunk.source.sub_tenant.as_str(), chunk.source.id.as_str());
        let at = *positions.entry(key).or_insert_with(|| {
            found.push(AnswerSource {
                source: Arc::clone(&chunk.source),
                chunks: Vec::new(),
                score: chunk.score,
                is_cited: false,
                snippet: snippet(&query, &chunk.text, SNIPPET_CHARS),
            });
            found.len() - 1
        });
        let source = &mut found[at];
        source.score = source.score.max(chunk.score);
        if position < hits {
            source.chunks.push(position);
        }
    }
    for source in &mut found {
        source.chunks.sort_unstable();
        source.chunks.dedup();
    }
    found
}
