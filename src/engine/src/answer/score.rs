//! Scores: how relevant a sentence is to a question, and whether it answers it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::answer::candidates::Candidate;
use crate::answer::sources::question_terms;
use crate::answer::words::{asked, holds};
use lodestone_text::HybridQuery;
use lodestone_types::RetrievedChunk;

/// Features of one candidate. All are 0 to 1, the cosine -1 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Score {
    /// Cosine of question and sentence.
    pub(super) cosine: f32,
    /// Cosine of question and chunk, where the search has told it; else that of the sentence.
    pub(super) nearness: f32,
    /// Share of the question's terms in the sentence, rare ones counting more.
    pub(super) overlap: f32,
    /// The same share over the whole chunk and the title of its source.
    pub(super) coverage: f32,
    /// Score of the chunk beside the best one's.
    pub(super) chunk: f32,
    /// Whether it holds something of the kind that is asked for.
    pub(super) is_kind: bool,
    /// Whether it only announces text.
    pub(super) is_lead: bool,
}

// Weights found on the 1,190 questions each of XQuAD in English, German and Chinese, the right
// paragraph among the other four of its article. The curve is flat: any overlap from 0.5 to 1.0
// gives the same answers within a point, so the values stay below the best for these questions,
// which borrow more words from their paragraphs than people do.
const OVERLAP_WEIGHT: f32 = 0.6;
const COVERAGE_WEIGHT: f32 = 0.3;
const CHUNK_WEIGHT: f32 = 0.2;
const KIND_BONUS: f32 = 0.1;
/// A heading that nothing stands below is a poor answer.
const LEAD_MALUS: f32 = 0.2;
/// The first character behind the blocks of Latin letters.
const LATIN_END: u32 = 0x250;

impl Score {
    /// The relevance by which candidates are ordered.
    pub(super) fn relevance(&self) -> f32 {
        self.cosine
            + OVERLAP_WEIGHT * self.overlap
            + COVERAGE_WEIGHT * self.coverage
            + CHUNK_WEIGHT * self.chunk
            + if self.is_kind { KIND_BONUS } else { 0.0 }
            - if self.is_lead { LEAD_MALUS } else { 0.0 }
    }

    /// Confidence that it answers: at least 1 where there is an answer. Other chunks count only
    /// through the weights of the terms.
    pub(super) fn confidence(&self, evidence: &Evidence) -> f32 {
        // A sentence says little without the text and the title that it stands in.
        let found = evidence.cosine * (self.cosine + self.nearness) / 2.0
            + evidence.overlap * self.overlap
            + evidence.coverage * self.coverage;
        found / evidence.needed
    }
}

/// Evidence for an answer: weights of the features, and the sum that they must reach.
///
/// Chosen on 1,825 questions to eleven collections, with their documents, without them, and
/// out of other collections (`benches/runs/2026-11-22-2core-xeon/answers.md`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Evidence {
    cosine: f32,
    overlap: f32,
    coverage: f32,
    needed: f32,
}

/// The meaning decides; terms tell near misses from answers.
const OF_LATIN: Evidence = Evidence { cosine: 1.0, overlap: 0.1, coverage: 0.4, needed: 0.5 };
/// A model of English finds everything alike that is written in another script; there the terms
/// have to carry more.
const OF_FOREIGN: Evidence = Evidence { cosine: 0.5, overlap: 0.3, coverage: 0.5, needed: 0.43 };

impl Evidence {
    /// The evidence that a question needs.
    pub(super) fn needed_for(question: &str) -> Self {
        let letters = question.chars().filter(|c| c.is_alphabetic());
        let foreign = letters.clone().filter(|c| *c as u32 >= LATIN_END).count();
        if foreign * 2 > letters.count() { OF_FOREIGN } else { OF_LATIN }
    }
}

/// Scores of all candidates; `vectors` belong to them, in their order.
pub(super) fn scores(
    question: &str,
    question_vector: &[f32],
    candidates: &[Candidate],
    vectors: &[Vec<f32>],
    chunks: &[RetrievedChunk],
) -> Vec<Score> {
    let sets: Vec<BTreeSet<String>> =
        candidates.iter().map(|candidate| terms(&candidate.compared)).collect();
    let weights = Weights::new(&question_terms(question), &sets);
    let best = chunks.iter().map(|chunk| chunk.score).fold(0.0_f32, f32::max);
    let mut coverage: BTreeMap<usize, f32> = BTreeMap::new();
    let lower = question.to_lowercase();
    let asked = asked(question);
    let mut scores = Vec::with_capacity(candidates.len());
    for ((candidate, set), vector) in candidates.iter().zip(&sets).zip(vectors) {
        let chunk = &chunks[candidate.chunk];
        let coverage = *coverage.entry(candidate.chunk).or_insert_with(|| {
            weights.share(&terms(&format!("{}\n{}", chunk.source.title, chunk.text)))
        });
        let cosine = dot(question_vector, vector);
        scores.push(Score {
            cosine,
            nearness: chunk.parts.cosine.unwrap_or(cosine),
            overlap: weights.share(set),
            coverage,
            chunk: if best > 0.0 { (chunk.score / best).clamp(0.0, 1.0) } else { 0.0 },
            is_kind: holds(asked, &candidate.shown, &lower),
            is_lead: candidate.is_lead,
        });
    }
    scores
}

/// The cosine of two vectors of length 1.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The analysed terms of a text. A query keeps at most 256 of them, so long texts go in pieces.
fn terms(text: &str) -> BTreeSet<String> {
    let mut set = BTreeSet::new();
    for line in crate::answer::sentences::sentences(text) {
        set.extend(HybridQuery::analyse(&text[line.bytes]).terms().iter().cloned());
    }
    set
}

/// The question's terms with their weights: what stands in every sentence tells little.
struct Weights {
    terms: Vec<(String, f32)>,
    sum: f32,
}

impl Weights {
    fn new(query: &HybridQuery, sets: &[BTreeSet<String>]) -> Self {
        let total = sets.len() as f32;
        let weighted = query.terms().iter().map(|term| {
            let holding = sets.iter().filter(|set| set.contains(term)).count() as f32;
            // The inverse document frequency of BM25, over the candidates.
            let weight = (1.0 + (total - holding + 0.5) / (holding + 0.5)).ln();
            (term.clone(), weight)
        });
        let terms: Vec<_> = weighted.collect();
        let sum = terms.iter().map(|(_, weight)| weight).sum();
        Self { terms, sum }
    }

    fn share(&self, set: &BTreeSet<String>) -> f32 {
        if self.sum <= 0.0 {
            return 0.0;
        }
        let held = self.terms.iter().filter(|(term, _)| set.contains(term));
        held.map(|(_, weight)| weight).sum::<f32>() / self.sum
    }
}
