//! The sources of chunks: each once, with what a listing of them shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::answer::snippet::snippet;
use crate::answer::words::matter;
use lodestone_text::HybridQuery;
use lodestone_types::limits::SNIPPET_CHARS;
use lodestone_types::{PageRef, RetrievedChunk, SourceRecord};

/// A source of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSource {
    /// Its record.
    pub source: Arc<SourceRecord>,
    /// Positions of its chunks in those that were given, ascending.
    pub chunks: Vec<usize>,
    /// Pages on which its chunks begin, ascending, each once; 1 for formats without pages, none
    /// for slides and sheets.
    pub pages: Vec<u32>,
    /// Score of its best chunk.
    pub score: f32,
    /// The telling part of the chunk that is cited first, or else of its best one.
    pub snippet: String,
}

/// The sources of the chunks, which are given best first, in the order of their best chunks.
/// For a request that wants no answer.
pub fn sources_only(question: &str, chunks: &[RetrievedChunk]) -> Vec<AnswerSource> {
    grouped(question, chunks, &[])
}

/// What a text that answers the question should hold: its terms without the question words.
/// For snippets and highlights.
pub fn question_terms(question: &str) -> HybridQuery {
    HybridQuery::analyse(&matter(question))
}

/// The sources: those of the `cited` chunks in that order, then the others as the chunks come.
pub(super) fn grouped(
    question: &str,
    chunks: &[RetrievedChunk],
    cited: &[usize],
) -> Vec<AnswerSource> {
    let query = question_terms(question);
    let mut found: Vec<AnswerSource> = Vec::new();
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for position in cited.iter().copied().chain(0..chunks.len()) {
        let chunk = &chunks[position];
        let key = (chunk.source.sub_tenant.as_str(), chunk.source.id.as_str());
        let at = *places.entry(key).or_insert_with(|| {
            found.push(AnswerSource {
                source: Arc::clone(&chunk.source),
                chunks: Vec::new(),
                pages: Vec::new(),
                score: chunk.score,
                snippet: snippet(&query, &chunk.text, SNIPPET_CHARS),
            });
            found.len() - 1
        });
        let source = &mut found[at];
        source.score = source.score.max(chunk.score);
        source.chunks.push(position);
        source.pages.extend(match chunk.place.page {
            PageRef::Whole => Some(1),
            PageRef::Page(number) => Some(number),
            PageRef::Slide(_) | PageRef::Sheet(_) => None,
        });
    }
    for source in &mut found {
        source.chunks.sort_unstable();
        source.chunks.dedup();
        source.pages.sort_unstable();
        source.pages.dedup();
    }
    found
}
