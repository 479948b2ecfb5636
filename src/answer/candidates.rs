//! The sentences that may answer: those of the best chunks, each once.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::answer::compose::shown;
use crate::answer::sentences::{Sentence, Shape, sentences};
use crate::answer::words::begins_with_reference;
use crate::types::RetrievedChunk;

/// Chunks that are read; later ones add more time than truth.
const CHUNKS_MAX: usize = 8;
/// Sentences that are compared with the question. Bounds the work of one answer: at some 30
/// tokens each, two batches of the model.
const CANDIDATES_MAX: usize = 120;
/// Characters of a sentence, with the one that it was widened to, at most.
const PASSAGE_CHARS_MAX: usize = 600;

/// A sentence that may answer, widened to the one before it where it points there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    /// Position in the chunks given.
    pub(super) chunk: usize,
    /// Its characters in the chunk's text.
    pub(super) chars: Range<usize>,
    /// As an answer shows it.
    pub(super) shown: String,
    /// What is compared with the question: with the lead above it.
    pub(super) compared: String,
    /// Whether it announces text instead of being it.
    pub(super) is_lead: bool,
}

impl Candidate {
    /// Whether one says what the other does: a sentence stands by itself and, where the next one
    /// points back at it, before that one too.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        let overlaps = self.chars.start < other.chars.end && other.chars.start < self.chars.end;
        (self.chunk == other.chunk && overlaps)
            || self.shown.contains(&other.shown)
            || other.shown.contains(&self.shown)
    }
}

/// The candidates, in the order of the chunks and of the sentences in them.
pub(super) fn candidates(chunks: &[RetrievedChunk]) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for (position, chunk) in chunks.iter().enumerate().take(CHUNKS_MAX) {
        of_chunk(position, &chunk.text, &mut found);
    }
    let mut kept = distinct(found, chunks);
    kept.truncate(CANDIDATES_MAX);
    kept
}

fn of_chunk(position: usize, text: &str, found: &mut Vec<Candidate>) {
    let sentences = sentences(text);
    let mut lead: Option<&Sentence> = None;
    for (at, sentence) in sentences.iter().enumerate() {
        let next = sentences.get(at + 1);
        if sentence.shape == Shape::Lead && next.is_some_and(|next| next.shape != Shape::Lead) {
            lead = Some(sentence);
            continue;
        }
        let before = at.checked_sub(1).map(|at| &sentences[at]);
        let widened = before.filter(|before| {
            begins_with_reference(&text[sentence.bytes.clone()])
                && before.shape != Shape::Line
                && sentence.chars.end - before.chars.start <= PASSAGE_CHARS_MAX
        });
        let first = widened.unwrap_or(sentence);
        let shown = shown(&text[first.bytes.start..sentence.bytes.end]);
        let compared = match lead {
            Some(lead) if lead.bytes.end <= first.bytes.start => {
                format!("{} {shown}", &text[lead.bytes.clone()])
            }
            _ => shown.clone(),
        };
        found.push(Candidate {
            chunk: position,
            chars: first.chars.start..sentence.chars.end,
            shown,
            compared,
            is_lead: sentence.shape == Shape::Lead,
        });
        // A lead speaks for all items of a list, and for one sentence of prose.
        if sentence.shape != Shape::Line {
            lead = None;
        }
    }
}

/// Drops sentences that are said already: equal ones, and pieces of another one of the same
/// source, which the overlap of chunks leaves at their borders.
fn distinct(found: Vec<Candidate>, chunks: &[RetrievedChunk]) -> Vec<Candidate> {
    let folded: Vec<String> = found.iter().map(|one| one.shown.to_lowercase()).collect();
    let mut seen = BTreeSet::new();
    let is_same_source = |a: usize, b: usize| {
        let (a, b) = (&chunks[found[a].chunk].source, &chunks[found[b].chunk].source);
        a.id == b.id && a.sub_tenant == b.sub_tenant
    };
    let is_piece = |at: usize| {
        folded.iter().enumerate().any(|(other, text)| {
            found[other].chunk != found[at].chunk
                && text.len() > folded[at].len()
                && is_same_source(at, other)
                && (text.starts_with(&folded[at]) || text.ends_with(&folded[at]))
        })
    };
    let keep: Vec<bool> =
        (0..found.len()).map(|at| seen.insert(&folded[at]) && !is_piece(at)).collect();
    found.into_iter().zip(keep).filter_map(|(one, keep)| keep.then_some(one)).collect()
}
