//! Composes an answer with its citations from the chosen sentences.

use std::ops::Range;

use crate::passages::candidates::Part;
use crate::passages::candidates::context::{Above, is_asked_against, names_edition};
use crate::question::wish::last_of;
use crate::selection::foreign::Strength;
use crate::sources::{AnswerSource, grouped};
use crate::text::shown::{ABSTENTION, unmarked};
use crate::translation::Language;
use lodestone_types::RetrievedChunk;

/// An answer with its citations and sources.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The text, with `[n]` after each passage; [`ABSTENTION`] if nothing answers.
    pub text: String,
    /// One citation for each `[n]` of the text, in order.
    pub citations: Vec<Citation>,
    /// The sources of all chunks, each once; see [`SourceOrder`].
    pub sources: Vec<AnswerSource>,
    /// Whether nothing in the chunks answers the question.
    pub is_abstained: bool,
    /// Whether the answer reports differing statements of several editions of a document.
    pub has_conflict: bool,
    /// Language of the passages, if it differs from the question's.
    pub language: Option<Language>,
    /// Strength of the first passage; for an abstention, that of the best candidate.
    pub strength: Strength,
}

/// The origin of one passage of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The `n` of `[n]`: the position among the sources, counted from 1.
    pub number: usize,
    /// Position among the given chunks, from 0. Neighbouring chunks that were read in addition come
    /// after the retrieved ones.
    pub chunk: usize,
    /// The passage as shown in the answer.
    pub sentence: String,
    /// Range of the passage in the answer, in Unicode characters.
    pub answer_chars: Range<usize>,
    /// Range of the passage in the chunk's text, in Unicode characters; if a chunk boundary cuts
    /// the passage, the range of the larger part. The chunk's text may differ from the passage in
    /// white space, emphasis, footnote and quote marks, brackets around numbers, separators between
    /// the values of a row or record, and text taken over from the head and from headings.
    pub chunk_chars: Range<usize>,
    /// The line that names the values of the passage: the header of a table, or the setting above
    /// it; else the nearest heading shown with the passage. Given as the chunk and the range of
    /// characters in it.
    pub head: Option<(usize, Range<usize>)>,
    /// Range of the passage in the text of its source, in Unicode characters.
    pub document_chars: Range<usize>,
}

/// Order in which the sources of an answer are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceOrder {
    /// Cited sources first, by first use.
    ByUse,
    /// By best chunk: for answers whose sources are announced before the text.
    ByRelevance,
}

/// Builds the answer from the chosen passages, in their order; an empty choice gives an abstention.
/// The `sources` are those of the first `hits` chunks; all further chunks belong to these sources
/// too. The text begins with `told`, a statement about all passages together. A passage follows the
/// headings that it needs, unless those of the passage before it are the same.
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
    for (at, part) in chosen.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| chosen[before]);
        let (sentence, head) = below_headings(question, part, before);
        if !text.is_empty() {
            text.push(' ');
            chars += 1;
        }
        let number = number_of(part);
        let end = chars + sentence.chars().count();
        text.push_str(&sentence);
        citations.push(Citation {
            number,
            chunk: part.chunk,
            sentence,
            answer_chars: chars..end,
            chunk_chars: part.chars.clone(),
            head,
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

/// The text of a passage behind the headings that it needs, and the line named with it. Headings of
/// the passage before, and those that the question repeats, are not shown again.
fn below_headings(
    question: &str,
    part: &Part,
    before: Option<&Part>,
) -> (String, Option<(usize, Range<usize>)>) {
    let is_told =
        before.is_some_and(|before| (before.chunk, &before.above) == (part.chunk, &part.above));
    let asked = last_of(question);
    let is_said = |one: &Above| match one.is_edition {
        true => names_edition(question, &one.text),
        false => is_asked_against(asked, &one.text),
    };
    let is_shown = |one: &&Above| !is_told && !is_said(one);
    let above: Vec<&Above> = part.above.iter().filter(is_shown).collect();
    let Some(nearest) = above.last() else { return (part.shown.clone(), part.head.clone()) };
    let texts: Vec<&str> = above.iter().map(|one| one.text.as_str()).collect();
    let head = part.head.clone().or_else(|| nearest.place.clone());
    (format!("{}: {}", texts.join(", "), part.shown), head)
}
