//! A check whether the cited sources of an answer support it.
//!
//! A cited sentence is supported when most of its terms, rare ones or not, stand in the shown text
//! of the source, or when it is near in meaning to a passage there. Neither sees a wrong detail in
//! a sentence that is otherwise right: this finds citations of the wrong source and sentences made
//! up from nothing, not every error.
//!
//! If no cited sentence is supported, nothing is told apart (an answer in another language than
//! its sources looks like that), and the marks are left.

use std::collections::{BTreeMap, BTreeSet};

use crate::generate::marks::{Mark, MarkedText};
use crate::relevance::score::dot;
use crate::sources::AnswerSource;
use crate::text::sentences::sentences;
use crate::text::terms::question_terms;
use lodestone_embed::{EmbedError, Embedder, Lane};
use lodestone_text::HybridQuery;
use lodestone_types::{RequestContext, RetrievedChunk};

// Looked at on sentences of the written answers of a collection of questions about code: 28 with
// the chunks that they were written from, 28 with chunks of another project, 13 with the chunk
// beside the right one; 27, 0 and 3 count as supported. Few, so the values lean to leaving marks.
/// Share of the terms of a sentence that must stand in its source.
const OVERLAP_MIN: f32 = 0.5;
/// Cosine with a passage of the source that makes up for fewer terms.
const COSINE_MIN: f32 = 0.45;
/// Terms that must be shared in any case where the meaning decides: one sentence about a subject
/// is near to every other.
const OVERLAP_FLOOR: f32 = 0.2;
/// Sentences that are looked at; longer answers are believed from there on.
const SENTENCES_MAX: usize = 40;
/// Passages of the sources that are compared with them at most.
const PASSAGES_MAX: usize = 160;

/// A mark that its source does not support.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doubt {
    /// Position in the marks of the text.
    pub(super) mark: usize,
    /// The sentence before it, in bytes of the plain text.
    pub(super) sentence: std::ops::Range<usize>,
    /// Whether nothing at all in the answer is supported.
    pub(super) is_general: bool,
}

/// A sentence and a source that it cites.
struct Claim<'a> {
    mark: usize,
    number: usize,
    sentence: std::ops::Range<usize>,
    text: &'a str,
    overlap: f32,
}

/// The marks that are in doubt. `shown` are positions of the chunks that the model has seen.
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

/// The shown text of each source that is cited.
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
    // A model that repeats itself writes thousands of marks behind one sentence.
    let mut overlaps = BTreeMap::new();
    let mut claims = Vec::new();
    let (mut seen, mut before) = (0, 0);
    for (mark, Mark { at, number }) in marked.marks.iter().enumerate() {
        // A mark belongs to the sentence that has begun before it, wherever its full stop is.
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

/// The share of the terms of a sentence that its source has.
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

/// The highest cosine of each sentence, by its start, with a passage of each source.
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
