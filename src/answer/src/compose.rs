//! Composes an answer with its citations from the chosen sentences.

use std::ops::Range;

use crate::passages::candidates::Part;
use crate::selection::foreign::Strength;
use crate::sources::{AnswerSource, grouped};
use crate::text::shown::{ABSTENTION, unmarked};
use crate::translation::Language;
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
    /// Whether it tells what several editions of one document say.
    pub has_conflict: bool,
    /// Language of its passages, where it is another than the question's.
    pub language: Option<Language>,
    /// Strength of its first passage, or of the best one where it is abstained.
    pub strength: Strength,
}

/// The origin of one passage of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The `n` of `[n]`: position in the sources, from 1.
    pub number: usize,
    /// Position in the chunks that were given, from 0; those beside the found ones follow them.
    pub chunk: usize,
    /// The passage as the answer has it.
    pub sentence: String,
    /// Its Unicode characters in the answer.
    pub answer_chars: Range<usize>,
    /// Its Unicode characters in the chunk's text; where a border of chunks cuts it, the larger
    /// part. The text there differs from the passage in white space, in marks of emphasis and of
    /// footnotes, in the brackets of numbers, in what stands between the values of a row or record,
    /// and in what is taken from the head.
    pub chunk_chars: Range<usize>,
    /// The line that names the values of the passage: the header of a table, or the setting that
    /// it stands under. Its chunk, and its characters there.
    pub head: Option<(usize, Range<usize>)>,
    /// The characters of the passage in the text of its source.
    pub document_chars: Range<usize>,
}

/// Order in which the sources of an answer are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceOrder {
    /// Cited ones first, by their first use.
    ByUse,
    /// By their best chunk: for an answer whose sources are told before it.
    ByRelevance,
}

/// Puts the chosen passages together in their order. None chosen is an abstention. The `sources`
/// are those of the first `hits` chunks, and the other chunks are of them too. The text
/// begins with what is `told` of all of them together.
pub(crate) fn compose(
    question: &str,
    chunks: &[&RetrievedChunk],
    hits: usize,
    (chosen, told): (&[&Part], Option<&str>),
    order: SourceOrder,
) -> Answer {
    let cited: Vec<usize> = match order {
        SourceOrder::ByUse => chosen.iter().map(|part| part.chunk).collect(),
        SourceOrder::ByRelevance => Vec::new(),
    };
    let mut sources = grouped(question, chunks, hits, &cited);
    if chosen.is_empty() {
        let text = ABSTENTION.to_owned();
        return Answer {
            text,
            citations: Vec::new(),
            sources,
            is_abstained: true,
            has_conflict: false,
            language: None,
            strength: Strength::default(),
        };
    }
    let number_of = |part: &Part| {
        let own = &chunks[part.chunk].source;
        let is_own = |source: &AnswerSource| {
            source.source.id == own.id && source.source.sub_tenant == own.sub_tenant
        };
        1 + sources.iter().position(is_own).expect("every chunk has its source")
    };
    let mut text = told.map_or(String::new(), unmarked);
    let mut chars = text.chars().count();
    let mut citations = Vec::with_capacity(chosen.len());
    for part in chosen {
        if !text.is_empty() {
            text.push(' ');
            chars += 1;
        }
        let number = number_of(part);
        let end = chars + part.shown.chars().count();
        text.push_str(&part.shown);
        citations.push(Citation {
            number,
            chunk: part.chunk,
            sentence: part.shown.clone(),
            answer_chars: chars..end,
            chunk_chars: part.chars.clone(),
            head: part.head.clone(),
            document_chars: part.document_chars.clone(),
        });
        let mark = format!(" [{number}]");
        chars = end + mark.len();
        text.push_str(&mark);
    }
    for citation in &citations {
        sources[citation.number - 1].is_cited = true;
    }
    Answer {
        text,
        citations,
        sources,
        is_abstained: false,
        has_conflict: false,
        language: None,
        strength: Strength::default(),
    }
}
