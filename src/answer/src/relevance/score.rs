//! Scores: how relevant a passage is to a question, and whether it answers it.
//!
//! In two stages, for the model is slow: the words of all passages are compared with those of the
//! question, and the best of them are compared by their vectors too.

use std::collections::{BTreeMap, BTreeSet};

use crate::passages::blocks::Cell;
use crate::passages::candidates::{Candidate, Shape};
use crate::question::extremes;
use crate::question::measures::Measure;
use crate::question::named::tells_year;
use crate::question::phrases::{MEANS, MONEY, OPEN, SUMS};
use crate::question::wish::Question;
use crate::relevance::declining::{Demands, lacks_kind};
use crate::relevance::form::{
    END_BONUS, EXCLUDED_MALUS, KIND_BONUS, form, is_of_deeds, tells_end, value_if,
};
use crate::relevance::siblings::{SIBLING_MALUS, Siblings};
use crate::relevance::synonyms::Lens;
use crate::relevance::weights::{Weights, light_terms, terms_of_ranges, wanted_terms};
use crate::rows::evaluate::{columns, has_number_of, tells_amount};
use crate::rows::keys::Keys;
use crate::rows::marks::{self, Marks};
use crate::rows::states::tells_state;
use crate::text::opposites::{OPPOSITE_MALUS, Opposites};
use crate::text::terms::terms;
use crate::text::values::has_money;
use crate::text::words::{contains, holds, is_entry, spaced};
use crate::versions::editions::Editions;
use lodestone_types::RetrievedChunk;

/// Features of one candidate. All are 0 to 1, the cosine -1 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Score {
    /// Cosine of question and passage; 0 where they were not compared.
    pub(crate) cosine: f32,
    /// Cosine of question and chunk, where the search has told it; else that of the passage.
    pub(crate) nearness: Option<f32>,
    /// Share of the question's terms in the passage, rare ones counting more; those in the headings
    /// above it count half.
    pub(crate) overlap: f32,
    /// The share in the passage alone.
    pub(crate) own: f32,
    /// Share of the question's terms in the whole chunk and the title of its source.
    pub(crate) coverage: f32,
    /// Score of the chunk beside the best one's.
    pub(crate) chunk: f32,
    /// Bonus for the form that the question wants, malus for what is seldom an answer.
    pub(crate) form: f32,
    /// Bonus for values by which the question means this row; part of the form.
    pub(crate) keyed: f32,
    /// Confidence that is lost for a name of the question that neither the passage nor its chunk
    /// nor its title holds.
    pub(crate) missing: f32,
    /// Whether it is a row of the things whose number is asked for.
    pub(crate) is_counted: bool,
    /// Whether a number or a time is asked for and none is there.
    pub(crate) lacks_kind: bool,
    /// The measure that is asked for, where it holds no value of it.
    pub(crate) lacks_measure: Option<Measure>,
    /// Whether it is a row or record that was compared.
    pub(crate) has_values: bool,
    /// The reader's certainty that it answers, 0 to 1, where it was read.
    pub(crate) verdict: Option<f32>,
}

// Weights found on the 1,190 questions each of XQuAD in English, German and Chinese, the right
// paragraph among the other four of its article. The curve is flat: any overlap from 0.5 to 1.0
// gives the same answers within a point, so the values stay below the best for these questions,
// which borrow more words from their paragraphs than people do.
const OVERLAP_WEIGHT: f32 = 0.6;
const COVERAGE_WEIGHT: f32 = 0.3;
const CHUNK_WEIGHT: f32 = 0.2;
/// Confidence that a passage loses without any amount where one is asked for, beside what it loses
/// for the measure.
const AMOUNTLESS_MALUS: f32 = 0.2;
/// Weight of what the reader says where a question asks for a thing, and of any other: it is better
/// at telling who and when than at whether. Chosen on 1,387 questions to twelve collections, where
/// the first passage is right for .612 (.606 with .2 for all); from .3 to .8 it is for as many, and
/// the less it weighs the more the rules hold.
const VERDICT_WEIGHT_OF_THING: f32 = 0.4;
const VERDICT_WEIGHT: f32 = 0.2;
/// Logit of the reader beyond which it is sure.
const LOGIT_MAX: f32 = 6.0;
/// Share of a term that stands in the headings above a passage and not in it.
const CONTEXT_SHARE: f32 = 0.5;
/// Weight of the chunk's cosine where the passage has none yet.
const NEARNESS_WEIGHT: f32 = 0.5;
/// Share of the cosine of its chunk that a row has at least.
const ROW_SHARE: f32 = 0.9;
/// A passage that stands beside the chunks that were found.
const BESIDE_SHARE: f32 = 0.9;

const CAUSE_WORDS: &str = "\
    because|due to|since|reason|caused|cause|causes|therefore|as a result|owing to|so that|\
    thanks to|weil|da|grund|ursache|wegen|deshalb|denn|aufgrund|parce que|car|en raison|à cause|\
    motif|raison|grâce à|porque|debido|causa|motivo|a causa|ya que";

/// Labels before the sentence that tells a cause.
pub(crate) const CAUSE_LABELS: &str = "\
    cause|causes|root cause|reason|reasons|why|why it happened|why it could happen|\
    how it happened|how it could happen|how could it happen|why did it happen|what caused it|\
    ursache|ursachen|grund|wie es dazu kam|motif|raison|causa|motivo";

impl Score {
    /// The relevance by what the words tell, by which candidates are chosen for the model.
    pub(crate) fn first(&self) -> f32 {
        let nearness = self.nearness.unwrap_or(0.0);
        NEARNESS_WEIGHT * nearness + self.relevance() - self.cosine
    }

    /// Sets the cosine of question and passage. A row or record is no sentence, and like none: its
    /// chunk speaks for it.
    pub(crate) fn compare(&mut self, cosine: f32, has_values: bool) {
        let around = self.nearness.filter(|_| has_values).map_or(cosine, |near| near * ROW_SHARE);
        self.cosine = cosine.max(around);
        self.has_values = has_values;
    }

    /// The relevance by which candidates are ordered.
    pub(crate) fn relevance(&self) -> f32 {
        self.cosine
            + OVERLAP_WEIGHT * self.overlap
            + COVERAGE_WEIGHT * self.coverage
            + CHUNK_WEIGHT * self.chunk
            + self.form
    }

    /// The relevance by which the first passage of an answer to a question is chosen.
    pub(crate) fn judged(&self, question: &Question) -> f32 {
        let weight = if question.asks_for_thing { VERDICT_WEIGHT_OF_THING } else { VERDICT_WEIGHT };
        self.relevance() + weight * self.opinion()
    }

    /// The reader's opinion, from -1, surely not, to 1; 0 where it was not asked.
    pub(crate) fn opinion(&self) -> f32 {
        let Some(sure) = self.verdict else { return 0.0 };
        // An infinite logit is cut like any other.
        ((sure / (1.0 - sure)).ln() / LOGIT_MAX).clamp(-1.0, 1.0)
    }
}

/// The terms of each candidate that the question has too, with their weights.
pub(crate) struct Matches {
    pub(crate) weights: Weights,
    /// Of the passage with what announces it; of a whole list, of what stands above it.
    pub(crate) own: Vec<BTreeSet<String>>,
    /// Of the headings above it, the names of its values and the title.
    pub(crate) above: Vec<BTreeSet<String>>,
    /// The marks that the question asks for in each table, by its text and its group.
    pub(crate) marks: BTreeMap<(usize, usize), Marks>,
}

/// The terms that tell of each candidate: in its values or its text, by a range, by an amount.
fn said_by(
    question: &Question,
    lens: &Lens<'_>,
    candidates: &[Candidate],
    marks: &BTreeMap<(usize, usize), Marks>,
) -> Vec<BTreeSet<String>> {
    let money = terms(&MONEY.replace('|', " "));
    let mut totals = terms(&format!("{SUMS}|{MEANS}").replace('|', " "));
    totals.retain(|term| lens.wanted.contains(term));
    let (mut open, mut stated) = (BTreeSet::new(), BTreeSet::new());
    if question.selects_open() {
        open = terms(&OPEN.replace('|', " "));
        stated.extend(candidates.iter().filter(|one| tells_state(&one.cells)).map(group));
    }
    let bounds: Vec<BTreeSet<String>> = question
        .conditions
        .iter()
        .map(|bound| terms(&question.last()[bound.bytes.clone()]))
        .collect();
    let said = candidates.iter().map(|candidate| {
        let mut said = lens.in_text(&values_of(candidate));
        said.extend(terms_of_ranges(question, candidate));
        // An amount of money says that something costs it.
        if question.is_of_money && has_money(&candidate.shown()) {
            said.extend(money.intersection(lens.wanted).cloned());
        }
        if candidate.has_values() && stated.contains(&group(candidate)) {
            said.extend(open.intersection(lens.wanted).cloned());
        }
        if question.total.is_some() && has_number_of(&candidate.cells, lens.wanted) {
            said.extend(totals.iter().cloned());
        }
        if candidate.has_values() {
            said.extend(terms_of_columns(question, &bounds, &candidate.cells, lens.wanted));
            let marked = marks.get(&group(candidate)).into_iter().flat_map(|marks| &marks.terms);
            said.extend(marked.filter(|term| lens.wanted.contains(*term)).cloned());
        }
        said
    });
    said.collect()
}

/// The table or the records that a row is of.
fn group(candidate: &Candidate) -> (usize, usize) {
    (candidate.stretch, candidate.group)
}

/// The terms of the question, out of the `wanted` ones, that the columns of a row meet: those of
/// its bounds, and the word for an extreme.
fn terms_of_columns(
    question: &Question,
    bounds: &[BTreeSet<String>],
    row: &[Cell],
    wanted: &BTreeSet<String>,
) -> BTreeSet<String> {
    let bounds = question.conditions.iter().zip(bounds).filter(|(bound, _)| bound.is_of(row));
    let mut met: BTreeSet<String> = bounds.flat_map(|(_, terms)| terms).cloned().collect();
    if let Some(quality) = question.quality.filter(|one| !one.columns(&columns(&[row])).is_empty())
    {
        met.extend(quality.superlatives().flat_map(terms));
    }
    let wants_amount = question.extreme.is_some() && question.quality.is_none();
    if wants_amount && tells_amount(row) && !question.of_amounts().is_empty() {
        met.extend(extremes::words().flat_map(terms));
    }
    met.retain(|term| wanted.contains(term));
    met
}

/// The terms by which each candidate is found: of a list or table as a whole those above it, of
/// anything else those that it says.
fn own_terms(
    lens: &Lens<'_>,
    candidates: &[Candidate],
    said: &[BTreeSet<String>],
    above: &[BTreeSet<String>],
) -> Vec<BTreeSet<String>> {
    let own = |(candidate, (said, above)): (&Candidate, (&BTreeSet<String>, &BTreeSet<String>))| {
        match candidate.shape {
            Shape::Unit(_) => {
                let lead = lens.known(&lens.in_text(&candidate.lead));
                said.union(&lead).cloned().collect()
            }
            Shape::Whole(_) => above.clone(),
        }
    };
    candidates.iter().zip(said.iter().zip(above)).map(own).collect()
}

/// The terms that tell in what stands above each candidate. "What we change" is of measures.
fn terms_above(
    question: &Question,
    lens: &Lens<'_>,
    candidates: &[Candidate],
    names: &[String],
) -> Vec<BTreeSet<String>> {
    let deeds = question.noun.as_deref().map(terms).unwrap_or_default();
    let of_one = |(names, candidate): (&String, &Candidate)| {
        let mut above = lens.in_text(names);
        if is_of_deeds(question, candidate) {
            above.extend(deeds.iter().cloned());
        }
        above
    };
    names.iter().zip(candidates).map(of_one).collect()
}

/// Scores of all candidates by their words.
pub(crate) fn by_words(
    question: &Question,
    candidates: &[Candidate],
    chunks: &[&RetrievedChunk],
    editions: &Editions,
) -> (Vec<Score>, Matches) {
    let (wanted, marks) = (wanted_terms(question), marks::of_tables(question, candidates));
    let mut lens = Lens::of(&question.text, &wanted, chunks);
    let said = said_by(question, &lens, candidates, &marks);
    let names: Vec<String> =
        candidates.iter().map(|candidate| names_above(candidate, chunks[candidate.hit])).collect();
    let above = terms_above(question, &lens, candidates, &names);
    // Others stand for words of the question that no passage has.
    let met: BTreeSet<&String> = said.iter().chain(&above).flatten().collect();
    let mut unmet = wanted.clone();
    unmet.retain(|term| !met.contains(term));
    lens.keep_for(&unmet);
    let known = |all: Vec<BTreeSet<String>>| -> Vec<BTreeSet<String>> {
        all.iter().map(|told| lens.known(told)).collect()
    };
    let (said, above) = (known(said), known(above));
    let own = own_terms(&lens, candidates, &said, &above);
    let single = candidates.iter().zip(&own).filter(|(one, _)| matches!(one.shape, Shape::Unit(_)));
    let best = chunks.iter().map(|chunk| chunk.score).fold(0.0_f32, f32::max);
    let mut of_chunk: BTreeMap<usize, (BTreeSet<String>, bool)> = BTreeMap::new();
    let (demands, opposites) = (Demands::of(question), Opposites::of(question.last()));
    let siblings = Siblings::of(question.last(), candidates);
    let (keys, light) = (Keys::of(question, candidates), light_terms(question));
    let weights = Weights::new(&wanted, &light, single.map(|(_, own)| own));
    let mut scores = Vec::with_capacity(candidates.len());
    for (at, candidate) in candidates.iter().enumerate() {
        let (chunk, own) = (chunks[candidate.hit], &own[at]);
        let is_unit = matches!(candidate.shape, Shape::Unit(_));
        let context = if is_unit { &above[at] } else { &said[at] };
        let with_context = weights.share(own.union(context));
        let alone = weights.share(own.iter());
        let (around, tells_year) = &*of_chunk.entry(candidate.hit).or_insert_with(|| {
            let text = format!("{}\n{}", chunk.source.title, chunk.text);
            (lens.known(&lens.in_text(&text)), tells_year(&text))
        });
        let coverage = weights.share(around.iter()).max(with_context);
        // What a question demands is there in its own words.
        let is_met = |name: &String| [around, own, context].iter().any(|held| held.contains(name));
        let is_held = |name: &String| is_met(name) && !unmet.contains(name);
        let is_counted = demands.are_counted(candidate, own, context, &keys);
        let (passage, told) = ((candidate, names[at].as_str()), (is_counted, *tells_year));
        let missing = demands.missing(&wanted, &is_held, passage, told);
        let lacks_measure =
            question.measure.filter(|measure| !measure.is_in(candidate, &names[at]));
        let wrong = wrong_kind(question, candidate, &opposites, lacks_measure);
        let sibling = value_if(siblings.have(candidate, own), SIBLING_MALUS);
        let missing = missing.max(wrong).max(sibling);
        let holds_kind = holds(question.asked, &candidate.shown(), &question.lower);
        let beside = if candidate.is_hit { 1.0 } else { BESIDE_SHARE };
        let chunk_score = value_if(best > 0.0, (chunk.score / best).clamp(0.0, 1.0));
        let ends = value_if(question.asks_end && tells_end(&candidate.shown()), END_BONUS);
        let keyed = keys.bonus(question, candidate, &wanted) + ends;
        scores.push(Score {
            cosine: 0.0,
            nearness: chunk.parts.cosine.map(|cosine| cosine * beside),
            overlap: alone + CONTEXT_SHARE * (with_context - alone),
            own: alone,
            coverage,
            chunk: chunk_score * beside,
            form: form(question, candidate, (&above[at], chunk), editions) + keyed
                - value_if(!question.others_than.is_disjoint(own), EXCLUDED_MALUS)
                - value_if(lacks_measure.is_some(), KIND_BONUS)
                - sibling,
            keyed,
            missing,
            is_counted,
            lacks_kind: !is_counted && lacks_kind(question, holds_kind, &candidate.shown()),
            lacks_measure,
            has_values: false,
            verdict: None,
        });
    }
    (scores, Matches { weights, own, above, marks })
}

/// The confidence that a passage loses which says the opposite, or tells no amount where one is
/// asked for.
fn wrong_kind(
    question: &Question,
    candidate: &Candidate,
    opposites: &Opposites,
    lacks_measure: Option<Measure>,
) -> f32 {
    let shown = candidate.shown();
    let is_opposite = match candidate.cells.first() {
        // The first value of a row says what it is of.
        Some(key) => opposites.are_in_key(&key.value),
        None => opposites.are_in(&shown),
    };
    let is_amountless =
        question.asks_amount && lacks_measure.is_some_and(|one| !one.may_be_told_by(&shown));
    value_if(is_opposite, OPPOSITE_MALUS).max(value_if(is_amountless, AMOUNTLESS_MALUS))
}

/// The words of a passage: of a row its values, for all rows have the same names.
fn values_of(candidate: &Candidate) -> String {
    match candidate.cells.as_slice() {
        [] => candidate.shown(),
        [one] => format!("{} {}", one.name, one.value),
        cells => cells.iter().map(|cell| cell.value.as_str()).collect::<Vec<_>>().join("\n"),
    }
}

/// The words above a passage: headings, the names of its values, the title.
fn names_above(candidate: &Candidate, chunk: &RetrievedChunk) -> String {
    let names = candidate.cells.iter().map(|cell| cell.name.as_str());
    let above = [candidate.context.as_str(), &candidate.lead, &chunk.source.title];
    above.into_iter().chain(names).collect::<Vec<_>>().join("\n")
}

/// Whether a word for a cause stands in the text.
pub(crate) fn tells_cause(text: &str) -> bool {
    let text = spaced(text);
    CAUSE_WORDS.split('|').any(|words| contains(&text, words))
}

/// Whether a word for a cause stands before the text as its label: "Cause. A cable", "Reason: it
/// rained".
pub(crate) fn is_labelled_cause(text: &str) -> bool {
    text.split_once(['.', ':']).is_some_and(|(label, rest)| {
        let label = label.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        rest.contains(char::is_alphabetic) && is_entry(CAUSE_LABELS, &label)
    })
}

/// The cosine of two vectors of length 1.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
