//! Checks whether the sources that an answer cites support it.
//!
//! A sentence counts as supported if the shown text of its source holds most of its terms, rare or
//! common, or has a passage that is close in meaning. Neither test notices a wrong detail in an
//! otherwise correct sentence: the check finds citations of the wrong source and invented
//! sentences, not every error.
//!
//! If no cited sentence is supported, the check cannot discriminate (for instance because the
//! answer and its sources are in different languages), and the marks stay.

use std::collections::{BTreeMap, BTreeSet};

use crate::generate::marks::{Mark, MarkedText};
use crate::relevance::score::dot;
use crate::sources::AnswerSource;
use crate::text::sentences::sentences;
use crate::text::terms::question_terms;
use lodestone_embed::{EmbedError, Embedder, Lane};
use lodestone_text::HybridQuery;
use lodestone_types::{RequestContext, RetrievedChunk};

// Examined with sentences of generated answers to a collection of questions about code: 28 with the
// chunks they were written from, 28 with chunks of another project, 13 with the chunk next to the
// right one; 27, 0 and 3 of them count as supported. The sample is small, so the values lean
// towards keeping marks.
/// Share of a sentence's terms that its source must hold.
const OVERLAP_MIN: f32 = 0.5;
/// Cosine with a passage of the source that makes up for a smaller share.
const COSINE_MIN: f32 = 0.45;
/// Share of the terms required in any case: by meaning alone, every sentence about a subject is
/// close to every other.
const OVERLAP_FLOOR: f32 = 0.2;
/// Maximum number of sentences checked; the rest of a longer answer is trusted.
const SENTENCES_MAX: usize = 40;
/// Maximum number of passages of the sources that are compared with the sentences.
const PASSAGES_MAX: usize = 160;

/// A mark whose source does not support its sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doubt {
    /// Index among the marks of the text.
    pub(super) mark: usize,
    /// The sentence that the mark belongs to, in bytes of the plain text.
    pub(super) sentence: std::ops::Range<usize>,
    /// Whether no cited sentence of the answer is supported.
    pub(super) is_general: bool,
}

/// A sentence together with a source that it cites.
struct Claim<'a> {
    mark: usize,
    number: usize,
    sentence: std::ops::Range<usize>,
    text: &'a str,
    overlap: f32,
}

/// Returns the unsupported marks. `shown` are the indices of the chunks shown to the generator.
pub(super) fn doubts(
    embedder: &dyn Embedder,
    context: &RequestContext,
    marked: &MarkedText,
    sources: &[AnswerSource],
    chunks: &[RetrievedChunk],
    shown: &[usize],
) -> Result<Vec<Doubt>, EmbedError> {
    let texts = texts_of(marked, sources, chunks, shown);
    let mut claims = claims(marked, &texts);
    let total = claims.len();
    claims.retain(|claim| claim.overlap < OVERLAP_MIN);
    if !claims.is_empty() {
        let near = nearness(embedder, context, &claims, &texts)?;
        let is_near = |claim: &Claim<'_>| {
            near.get(&(claim.sentence.start, claim.number)).is_some_and(|near| *near >= COSINE_MIN)
        };
        claims.retain(|claim| !is_near(claim) || claim.overlap < OVERLAP_FLOOR);
    }
    let is_general = claims.len() == total;
    let doubt = |claim: Claim<'_>| Doubt { mark: claim.mark, sentence: claim.sentence, is_general };
    Ok(claims.into_iter().map(doubt).collect())
}

/// The shown chunks of each cited source.
fn texts_of<'c>(
    marked: &MarkedText,
    sources: &[AnswerSource],
    chunks: &'c [RetrievedChunk],
    shown: &[usize],
) -> BTreeMap<usize, Vec<&'c str>> {
    let cited: BTreeSet<usize> = marked.marks.iter().map(|mark| mark.number).collect();
    let text_of = |number: usize| -> Vec<&'c str> {
        let of_source = sources[number - 1].chunks.iter().filter(|chunk| shown.contains(chunk));
        of_source.map(|chunk| chunks[*chunk].text.as_str()).collect()
    };
    cited.into_iter().map(|number| (number, text_of(number))).collect()
}

fn claims<'a>(marked: &'a MarkedText, texts: &BTreeMap<usize, Vec<&str>>) -> Vec<Claim<'a>> {
    let sentences = sentences(&marked.plain);
    let terms: BTreeMap<usize, BTreeSet<String>> =
        texts.iter().map(|(number, texts)| (*number, terms(texts))).collect();
    // Computed once per sentence and source: a model that repeats itself can write thousands of
    // marks after one sentence.
    let mut overlaps = BTreeMap::new();
    let mut claims = Vec::new();
    let (mut seen, mut before) = (0, 0);
    for (mark, Mark { at, number }) in marked.marks.iter().enumerate() {
        // A mark belongs to the sentence that begins before it, whether its full stop precedes or
        // follows.
        let piece = marked.plain[seen..*at].trim_end().len();
        before = if piece > 0 { seen + piece } else { before };
        seen = *at;
        let position = sentences.partition_point(|sentence| sentence.bytes.start < before);
        let Some(sentence) = position.checked_sub(1).map(|at| &sentences[at]) else { continue };
        if position > SENTENCES_MAX {
            break;
        }
        let text = &marked.plain[sentence.bytes.clone()];
        let of_sentence = || overlap(text, &terms[number]);
        let overlap = *overlaps.entry((position, *number)).or_insert_with(of_sentence);
        let sentence = sentence.bytes.clone();
        claims.push(Claim { mark, number: *number, sentence, text, overlap });
    }
    claims
}

/// The share of the sentence's terms that the source holds; 1 for a sentence without terms.
fn overlap(text: &str, held: &BTreeSet<String>) -> f32 {
    let wanted = question_terms(text);
    let wanted = wanted.terms();
    let found = wanted.iter().filter(|term| held.contains(*term)).count();
    if wanted.is_empty() { 1.0 } else { found as f32 / wanted.len() as f32 }
}

fn terms(texts: &[&str]) -> BTreeSet<String> {
    let mut set = BTreeSet::new();
    for text in texts {
        for sentence in sentences(text) {
            set.extend(HybridQuery::analyse(&text[sentence.bytes]).terms().iter().cloned());
        }
    }
    set
}

/// The highest cosine between each sentence, identified by its start, and the passages of each
/// source number.
fn nearness(
    embedder: &dyn Embedder,
    context: &RequestContext,
    claims: &[Claim<'_>],
    texts: &BTreeMap<usize, Vec<&str>>,
) -> Result<BTreeMap<(usize, usize), f32>, EmbedError> {
    let cited: BTreeSet<usize> = claims.iter().map(|claim| claim.number).collect();
    let mut passages: Vec<(usize, &str)> = Vec::new();
    for number in cited {
        for text in &texts[&number] {
            let found = sentences(text).into_iter().map(|sentence| &text[sentence.bytes]);
            passages.extend(found.map(|passage| (number, passage)));
        }
    }
    passages.truncate(PASSAGES_MAX);
    let said: BTreeMap<usize, &str> =
        claims.iter().map(|claim| (claim.sentence.start, claim.text)).collect();
    let all = said.values().chain(passages.iter().map(|(_, passage)| passage));
    let vectors = embedder.embed_within(
        Lane::Answer,
        context,
        all.map(|text| (*text).to_owned()).collect(),
    )?;
    let (vectors, found) = vectors.split_at(said.len());
    let mut near = BTreeMap::new();
    for (start, vector) in said.keys().zip(vectors) {
        for ((number, _), other) in passages.iter().zip(found) {
            let highest = near.entry((*start, *number)).or_insert(-1.0_f32);
            *highest = highest.max(dot(vector, other));
        }
    }
    Ok(near)
}
