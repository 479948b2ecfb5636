//! The sources of chunks, each once.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::text::snippet::snippet;
use crate::text::terms::question_terms;
use lodestone_types::limits::SNIPPET_CHARS;
use lodestone_types::{RetrievedChunk, SourceRecord};

/// A source of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSource {
    /// Its record.
    pub source: Arc<SourceRecord>,
    /// Positions of its chunks in those that were given, ascending.
    pub chunks: Vec<usize>,
    /// Score of its best chunk.
    pub score: f32,
    /// Whether an extracted answer cites it.
    pub is_cited: bool,
    /// Snippet of the chunk that is cited first, or else of its best one.
    pub snippet: String,
}

/// The sources of the chunks, which are given best first, in the order of their best chunks.
/// For a request that wants no answer.
pub fn sources_only(question: &str, chunks: &[RetrievedChunk]) -> Vec<AnswerSource> {
    let chunks: Vec<&RetrievedChunk> = chunks.iter().collect();
    grouped(question, &chunks, chunks.len(), &[])
}

/// The sources of the first `hits` chunks: those of the `cited` chunks in that order, then the
/// others as the chunks come. Chunks behind the first `hits` give their snippet only.
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
