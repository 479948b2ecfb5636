//! Scores: how relevant a passage is to a question, as input to ranking and to the decision whether
//! it answers.
//!
//! Scoring has two stages because the model is slow: all passages are compared with the question by
//! their words, then the best of them also by their vectors.

use std::collections::{BTreeMap, BTreeSet};

use crate::passages::blocks::Cell;
use crate::passages::candidates::{Candidate, Shape};
use crate::question::extremes;
use crate::question::measures::Measure;
use crate::question::named::{CODE_MALUS, tells_year};
use crate::question::phrases::{MEANS, MONEY, OPEN, SUMS};
use crate::question::wish::Question;
use crate::relevance::declining::Demands;
use crate::relevance::form::{
    END_BONUS, EXCLUDED_MALUS, KIND_BONUS, form, is_of_deeds, lacks_kind, tells_end, value_if,
};
use crate::relevance::owners::{OTHER_OWNER_MALUS, Owners};
use crate::relevance::siblings::{SIBLING_MALUS, Siblings};
use crate::relevance::synonyms::{Lens, is_version};
use crate::relevance::weights::{Weights, light_terms, terms_of_ranges, wanted_terms};
use crate::rows::evaluate::{columns, has_number_of, tells_amount};
use crate::rows::keys::{Keys, has_other_number};
use crate::rows::marks::{self, Marks};
use crate::rows::states::tells_state;
use crate::text::opposites::{OPPOSITE_MALUS, Opposites};
use crate::text::terms::terms;
use crate::text::values::{has_money, measure};
use crate::text::words::{Asked, holds, is_entry};
use crate::versions::editions::Editions;
use lodestone_types::RetrievedChunk;

/// Features of one candidate. Each is from 0 to 1 unless noted; cosines are from -1 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Score {
    /// Cosine of question and passage; 0 if they were not compared.
    pub(crate) cosine: f32,
    /// Cosine of question and chunk, if the search reported it; otherwise the passage's counts.
    pub(crate) nearness: Option<f32>,
    /// Weighted share of the question's terms in the passage, rare ones weighing more; terms in the
    /// headings above it count half.
    pub(crate) overlap: f32,
    /// The share in the passage alone, without the headings.
    pub(crate) own: f32,
    /// Weighted share of the question's terms in the whole chunk and the title of its source.
    pub(crate) coverage: f32,
    /// Score of the chunk relative to that of the best chunk.
    pub(crate) chunk: f32,
    /// Bonus for the form that the question asks for, minus penalties for forms that seldom answer.
    pub(crate) form: f32,
    /// Bonus for values by which the question identifies this row; included in `form`.
    pub(crate) keyed: f32,
    /// Confidence lost because a name from the question occurs nowhere in the passage, its chunk or
    /// its title; or because the passage states the opposite, no amount, or is about a sibling.
    pub(crate) missing: f32,
    /// Whether it is a row of the things that the question counts.
    pub(crate) is_counted: bool,
    /// Whether the question asks for a number or a time and the passage has none.
    pub(crate) lacks_kind: bool,
    /// Whether the question asks for somebody and the passage names nobody.
    pub(crate) lacks_person: bool,
    /// The measure that the question asks for, if the passage has no value of it.
    pub(crate) lacks_measure: Option<Measure>,
    /// Whether it is a row or record that was compared by vectors.
    pub(crate) has_values: bool,
    /// The reader's certainty that the passage answers, from 0 to 1, if it was read.
    pub(crate) verdict: Option<f32>,
}

// Weights found on the 1,190 questions of XQuAD in each of English, German and Chinese, with the
// right paragraph among the other four of its article. The optimum is flat: any overlap weight from
// 0.5 to 1.0 gives the same answers within one point. The weights are below the optimum for these
// questions, which borrow more words from their paragraphs than people do.
const OVERLAP_WEIGHT: f32 = 0.6;
const COVERAGE_WEIGHT: f32 = 0.3;
const CHUNK_WEIGHT: f32 = 0.2;
/// Loss of confidence of a passage without any amount if one is asked for, in addition to the loss
/// for the measure.
const AMOUNTLESS_MALUS: f32 = 0.2;
/// Weights of the reader's opinion for questions that ask for a thing and for all others: it is
/// better at who and when than at whether. Chosen on 1,387 questions of twelve collections, where
/// the first passage is right for 0.612 (0.606 with 0.2 for all). Any weight from 0.3 to 0.8 gives
/// as many; a smaller one leaves more of the decision to the rules.
const VERDICT_WEIGHT_OF_THING: f32 = 0.4;
const VERDICT_WEIGHT: f32 = 0.2;
/// The reader's logit at which its opinion is saturated.
const LOGIT_MAX: f32 = 6.0;
/// Factor for a term that occurs in the headings above a passage but not in it.
const CONTEXT_SHARE: f32 = 0.5;
/// Weight of the chunk's cosine while the passage has none of its own.
const NEARNESS_WEIGHT: f32 = 0.5;
/// Minimum cosine of a row, as a share of its chunk's.
const ROW_SHARE: f32 = 0.9;
/// Factor for a passage from a neighbour of the retrieved chunks.
const BESIDE_SHARE: f32 = 0.9;

impl Score {
    /// The relevance by words alone, which selects the candidates for the model.
    pub(crate) fn first(&self) -> f32 {
        let nearness = self.nearness.unwrap_or(0.0);
        NEARNESS_WEIGHT * nearness + self.relevance() - self.cosine
    }

    /// Sets the cosine of question and passage. A row or record is unlike any sentence, so it gets
    /// at least a share of its chunk's cosine.
    pub(crate) fn compare(&mut self, cosine: f32, has_values: bool) {
        let around = self.nearness.filter(|_| has_values).map_or(cosine, |near| near * ROW_SHARE);
        self.cosine = cosine.max(around);
        self.has_values = has_values;
    }

    /// The relevance by which candidates are ranked.
    pub(crate) fn relevance(&self) -> f32 {
        self.cosine
            + OVERLAP_WEIGHT * self.overlap
            + COVERAGE_WEIGHT * self.coverage
            + CHUNK_WEIGHT * self.chunk
            + self.form
    }

    /// The relevance that decides the first passage of an answer, including the reader's opinion.
    pub(crate) fn judged(&self, question: &Question) -> f32 {
        let weight = if question.asks_for_thing { VERDICT_WEIGHT_OF_THING } else { VERDICT_WEIGHT };
        self.relevance() + weight * self.opinion()
    }

    /// The reader's opinion, from -1 (surely no answer) to 1; 0 if it has not read the passage.
    pub(crate) fn opinion(&self) -> f32 {
        let Some(sure) = self.verdict else { return 0.0 };
        // The clamp also covers the infinite logits of 0 and 1.
        ((sure / (1.0 - sure)).ln() / LOGIT_MAX).clamp(-1.0, 1.0)
    }
}

/// The question's terms that occur in each candidate, with their weights.
pub(crate) struct Matches {
    pub(crate) weights: Weights,
    /// Terms in the passage and the text that announces it; for a whole list, in the text above it.
    pub(crate) own: Vec<BTreeSet<String>>,
    /// Terms in the headings above it, the names of its values and the title.
    pub(crate) above: Vec<BTreeSet<String>>,
    /// The marks that the question asks for in each table, by the indices of its text and its
    /// group.
    pub(crate) marks: BTreeMap<(usize, usize), Marks>,
}

/// The terms that each candidate expresses: in its values or its text, by a range or an amount.
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
    let mut names: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for one in candidates.iter().filter(|one| matches!(one.shape, Shape::Unit(_))) {
        for cell in &one.cells {
            *names.entry(name_of(one, cell)).or_default() += 1;
        }
    }
    let said = candidates.iter().map(|candidate| {
        let mut said = lens.in_text(&values_of(candidate));
        // Rows share the names of their columns; a name that occurs once says what its value is.
        let own_names = candidate.cells.iter().filter(|cell| {
            cell.name.contains(['_', ' ']) && names.get(&name_of(candidate, cell)) == Some(&1)
        });
        said.extend(own_names.flat_map(|cell| lens.in_text(&cell.name.replace('_', " "))));
        said.extend(terms_of_ranges(question, candidate));
        // An amount of money implies that something costs that much.
        let pays = |cell: &Cell| {
            let name = cell.name.to_lowercase();
            measure(&cell.value).is_some()
                && name.split([' ', '_']).any(|word| is_entry(MONEY, word))
        };
        let is_paid = || has_money(&candidate.shown()) || candidate.cells.iter().any(pays);
        if question.is_of_money && is_paid() {
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

/// The name of a value in a text.
fn name_of<'c>(candidate: &Candidate, cell: &'c Cell) -> (usize, &'c str) {
    (candidate.stretch, cell.name.as_str())
}

/// Identifies the table or the records that a row belongs to.
fn group(candidate: &Candidate) -> (usize, usize) {
    (candidate.stretch, candidate.group)
}

/// The `wanted` terms of the question that the columns of a row satisfy: those of its bounds, and
/// the word for an extreme.
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

/// The terms by which each candidate is matched: those above it for a whole list or table, its own
/// for anything else.
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

/// The terms in the text above each candidate; "What we change" above it stands for measures.
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

/// Scores all candidates by their words.
pub(crate) fn by_words(
    question: &Question,
    candidates: &[Candidate],
    chunks: &[&RetrievedChunk],
    editions: &Editions,
) -> (Vec<Score>, Matches) {
    let (wanted, marks) = (wanted_terms(question), marks::of_tables(question, candidates));
    let mut lens = Lens::of(&question.text, &wanted, chunks);
    let said = said_by(question, &lens, candidates, &marks);
    let above = |one: &Candidate| one.above(&chunks[one.hit].source.title);
    let names: Vec<String> = candidates.iter().map(above).collect();
    let above = terms_above(question, &lens, candidates, &names);
    // Synonyms serve only for terms of the question that no passage has.
    let met: BTreeSet<&String> = said.iter().chain(&above).flatten().collect();
    let mut unmet = wanted.clone();
    unmet.retain(|term| !met.contains(term));
    lens.keep_for(&unmet);
    let known = |all: &[BTreeSet<String>]| all.iter().map(|told| lens.known(told)).collect();
    let (said, above): (Vec<_>, Vec<_>) = (known(&said), known(&above));
    let own = own_terms(&lens, candidates, &said, &above);
    let single = candidates.iter().zip(&own).filter(|(one, _)| matches!(one.shape, Shape::Unit(_)));
    let best = chunks.iter().map(|chunk| chunk.score).fold(0.0_f32, f32::max);
    let mut of_chunk: BTreeMap<usize, (BTreeSet<String>, bool)> = BTreeMap::new();
    let (demands, opposites) = (Demands::of(question), Opposites::of(question.last()));
    let siblings = Siblings::of(question.last(), candidates);
    let mut owners = Owners::of(question, candidates, chunks);
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
        // A demand of the question must be met in its own words, not by a synonym.
        let is_met = |name: &String| [around, own, context].iter().any(|held| held.contains(name));
        let is_held = |name: &String| is_met(name) && (!unmet.contains(name) || is_version(name));
        let is_counted = demands.are_counted(candidate, own, context, &keys);
        let (passage, told) = ((candidate, names[at].as_str()), (is_counted, *tells_year));
        let missing = demands.missing((&wanted, &unmet), (&is_held, &is_met), passage, told);
        let lacks_measure = question.measure.filter(|one| !one.is_in(candidate, &names[at]));
        let wrong = wrong_kind(question, candidate, &opposites, lacks_measure);
        let of_other = value_if(owners.are_others(candidate, &names[at]), OTHER_OWNER_MALUS);
        let sibling = value_if(siblings.have(candidate, own), SIBLING_MALUS).max(of_other);
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
            missing: missing.max(wrong).max(sibling),
            is_counted,
            lacks_kind: !is_counted && lacks_kind(question, holds_kind, &candidate.shown()),
            lacks_person: question.asked == Asked::Person && !candidate.has_values() && !holds_kind,
            lacks_measure,
            has_values: false,
            verdict: None,
        });
    }
    (scores, Matches { weights, own, above, marks })
}

/// The confidence that a passage loses if it states the opposite, another number in the column that
/// the question names, or no amount where one is asked for.
fn wrong_kind(
    question: &Question,
    candidate: &Candidate,
    opposites: &Opposites,
    lacks_measure: Option<Measure>,
) -> f32 {
    if has_other_number(question, candidate) {
        return CODE_MALUS;
    }
    let shown = candidate.shown();
    let is_opposite = opposites.are_qualifiers_in(&shown)
        || match candidate.cells.first() {
            // The first value of a row says what the row is about.
            Some(key) => opposites.are_in_key(&key.value),
            None => opposites.are_in(&shown),
        };
    let is_amountless =
        question.asks_amount && lacks_measure.is_some_and(|one| !one.may_be_told_by(&shown));
    value_if(is_opposite, OPPOSITE_MALUS).max(value_if(is_amountless, AMOUNTLESS_MALUS))
}

/// The words of a passage; for a row only its values, because all rows share the names.
fn values_of(candidate: &Candidate) -> String {
    match candidate.cells.as_slice() {
        [] => candidate.shown(),
        [one] => format!("{} {}", one.name, one.value),
        cells => cells.iter().map(|cell| cell.value.as_str()).collect::<Vec<_>>().join("\n"),
    }
}

/// The dot product of two vectors; their cosine if both have length 1.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
