//! Composes an answer with its citations from the chosen sentences.

use std::ops::Range;

use crate::answer::ABSTENTION;
use crate::answer::candidates::Candidate;
use crate::answer::notes;
use crate::answer::snippet::folded;
use crate::answer::sources::{AnswerSource, grouped};
use lodestone_types::RetrievedChunk;

/// An answer and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The text, with `[n]` behind each sentence; [`ABSTENTION`] when nothing answers.
    pub text: String,
    /// One for each `[n]` of the text, in its order.
    pub citations: Vec<Citation>,
    /// The sources of all chunks, each once; see [`SourceOrder`].
    pub sources: Vec<AnswerSource>,
    /// Whether nothing in the chunks answers.
    pub is_abstained: bool,
}

/// The origin of one passage of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The `n` of `[n]`: position in the sources, from 1.
    pub number: usize,
    /// Position in the chunks that were given, from 0.
    pub chunk: usize,
    /// The passage as the answer has it.
    pub sentence: String,
    /// Its Unicode characters in the answer.
    pub answer_chars: Range<usize>,
    /// Its Unicode characters in the chunk's text. The text there differs from the passage in
    /// white space, in marks of footnotes, in the brackets of numbers, in what stands between the
    /// values of a row or record, and in what is taken from the head.
    pub chunk_chars: Range<usize>,
    /// The line of the chunk that names the values of the passage, in Unicode characters: the
    /// header of a table, or the first field of a long record.
    pub head_chars: Option<Range<usize>>,
}

/// Order in which the sources of an answer are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceOrder {
    /// Cited ones first, by their first use.
    ByUse,
    /// By their best chunk: for an answer whose sources are told before it.
    ByRelevance,
}

/// Puts the chosen candidates, best first, together: sources by their number, inside a source in
/// the order of the document. None chosen is an abstention.
pub(super) fn compose(
    question: &str,
    chunks: &[RetrievedChunk],
    chosen: &[&Candidate],
    order: SourceOrder,
) -> Answer {
    let cited: Vec<usize> = match order {
        SourceOrder::ByUse => chosen.iter().map(|candidate| candidate.chunk).collect(),
        SourceOrder::ByRelevance => Vec::new(),
    };
    let sources = grouped(question, chunks, &cited);
    if chosen.is_empty() {
        let text = ABSTENTION.to_owned();
        return Answer { text, citations: Vec::new(), sources, is_abstained: true };
    }
    let number_of = |candidate: &Candidate| {
        let holds = |source: &AnswerSource| source.chunks.contains(&candidate.chunk);
        1 + sources.iter().position(holds).expect("every chunk has its source")
    };
    let mut ordered: Vec<(usize, usize, &Candidate)> = Vec::new();
    for candidate in chosen {
        let chunk_start = chunks[candidate.chunk].place.document_start as usize;
        ordered.push((number_of(candidate), chunk_start + candidate.chars.start, *candidate));
    }
    // Stable: what stands at one place keeps the order of its relevance.
    ordered.sort_by_key(|(number, place, candidate)| {
        (*number, *place, chunks[candidate.chunk].index, candidate.chars.start)
    });
    let mut text = String::new();
    let mut chars = 0;
    let mut citations = Vec::with_capacity(ordered.len());
    for (number, _, candidate) in ordered {
        if !text.is_empty() {
            text.push(' ');
            chars += 1;
        }
        let end = chars + candidate.shown.chars().count();
        text.push_str(&candidate.shown);
        citations.push(Citation {
            number,
            chunk: candidate.chunk,
            sentence: candidate.shown.clone(),
            answer_chars: chars..end,
            chunk_chars: candidate.chars.clone(),
            head_chars: candidate.head_chars.clone(),
        });
        let mark = format!(" [{number}]");
        chars = end + mark.len();
        text.push_str(&mark);
    }
    Answer { text, citations, sources, is_abstained: false }
}

/// A passage as an answer shows it: white space folded, and without marks of its own, be they
/// those of footnotes in a text that `has_marks`.
pub(super) fn shown(passage: &str, has_marks: bool) -> String {
    unmarked(&notes::without(&folded(passage), has_marks))
}

/// A text whose brackets that hold nothing but numbers are turned to parentheses, for they would
/// be taken for citations of an answer.
pub(super) fn unmarked(passage: &str) -> String {
    let mut shown = String::with_capacity(passage.len());
    let mut is_open = false;
    for (at, c) in passage.char_indices() {
        match c {
            '[' if holds_numbers(&passage[at + 1..]) => {
                is_open = true;
                shown.push('(');
            }
            ']' if is_open => {
                is_open = false;
                shown.push(')');
            }
            _ => shown.push(c),
        }
    }
    shown
}

/// Whether nothing but numbers and what separates them stands before the next closing bracket.
fn holds_numbers(text: &str) -> bool {
    let Some((inside, _)) = text.split_once(']') else { return false };
    let is_part =
        |c: char| c.is_numeric() || matches!(c, ' ' | ',' | ';' | '-' | '\u{2013}' | '^' | '#');
    inside.contains(char::is_numeric) && inside.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_citation_marks_are_neutral() {
        assert_eq!(
            shown("As shown [3],\n\n see [4, 5] and [6–8].", false),
            "As shown (3), see (4, 5) and (6–8)."
        );
        assert_eq!(shown("a[i] [note 3] [[7]] [] [x]", false), "a[i] [note 3] [(7)] [] [x]");
        assert_eq!(shown("[3[4]", false), "[3(4)");
    }
}
