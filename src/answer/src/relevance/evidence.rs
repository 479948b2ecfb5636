//! Evidence: decides whether a passage answers the question.

use crate::question::wish::Question;
use crate::relevance::score::Score;
use crate::text::words::LATIN_END;

impl Score {
    /// Confidence that the passage answers the question; an answer needs at least 1. The other
    /// chunks have an influence only through the weights of the terms.
    pub(crate) fn confidence(&self, evidence: &Evidence) -> f32 {
        // A sentence alone says little without its surroundings and title, so the chunk's cosine
        // counts.
        let nearness = self.nearness.unwrap_or(self.cosine);
        let mut found = evidence.cosine * evidence.cosines(self.cosine, nearness)
            + evidence.overlap * self.overlap
            + evidence.coverage * self.coverage;
        // The right row is no answer if it lacks the value that is asked for.
        if !(self.lacks_kind || self.lacks_measure.is_some() || self.missing > 0.0) {
            found += self.keyed;
        }
        found -= self.missing;
        // A row of the counted things does not state their number, so the reader cannot judge it.
        if self.verdict.is_some() && !self.is_counted {
            // A missing value stays missing, however much the passage looks like an answer.
            let lacks = self.missing > 0.0 || self.lacks_kind || self.lacks_measure.is_some();
            let doubt = if self.has_values { DOUBT_OF_OTHERS } else { evidence.doubt };
            found += match self.opinion() - doubt {
                less if less < 0.0 && self.lacks_person => NO_WEIGHT * less - MISSING_KIND_MALUS,
                less if less < 0.0 => NO_WEIGHT * less,
                _ if lacks => 0.0,
                more => YES_WEIGHT * more,
            };
        }
        if self.lacks_kind {
            found -= MISSING_KIND_MALUS;
        }
        found -= match self.lacks_measure {
            None => 0.0,
            Some(measure) if measure.is_irreplaceable() => MISSING_QUANTITY_MALUS,
            Some(_) => MISSING_MEASURE_MALUS,
        };
        found / evidence.needed
    }
}

/// The weights of the features, and the weighted sum that an answer must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Evidence {
    cosine: f32,
    overlap: f32,
    coverage: f32,
    needed: f32,
    is_foreign: bool,
    /// The reader's opinion on a sentence that leaves the confidence unchanged.
    doubt: f32,
}

/// For questions in Latin script. Meaning decides; terms tell near misses from answers.
///
/// Chosen among a dozen formulas on 1,190 English questions of XQuAD, each with its paragraph, with
/// the other paragraphs of its article, and without the article; on 484 questions of seven other
/// collections; and on judged questions about office documents. For the last, the greater of the
/// two cosines serves as well as their mean, and declines fewer questions in people's own words.
const OF_LATIN: Evidence = Evidence {
    cosine: 1.0,
    overlap: 0.3,
    coverage: 0.2,
    needed: 0.56,
    is_foreign: false,
    doubt: DOUBT_OF_OTHERS,
};
/// For questions in other scripts. An English model finds all texts in another script alike, so the
/// terms have to carry more. Chosen on 1,825 questions of eleven collections
/// (`benches/runs/2026-11-22-2core-xeon/answers.md`).
const OF_FOREIGN: Evidence = Evidence {
    cosine: 0.5,
    overlap: 0.3,
    coverage: 0.5,
    needed: 0.43,
    is_foreign: true,
    doubt: DOUBT_OF_OTHERS,
};
/// Weights of the reader's opinion against and for a passage, and the opinion that changes nothing.
/// Chosen on 1,510 questions of twelve collections: 0.96 of those answered correctly stay so, where
/// 0.95 did, and 0.32 of those without an answer are answered, where 0.49 were. The reader is
/// better at recognising what is no answer: with a weight of 0.6 for a passage, 0.14 of the XQuAD
/// questions whose articles are absent are answered; with 0.15, 0.07.
const NO_WEIGHT: f32 = 0.8;
const YES_WEIGHT: f32 = 0.15;
const DOUBT: f32 = -0.4;
/// The neutral opinion on rows, and for questions that do not ask for a thing. On 2,003 questions
/// of sixteen collections it declines nine more of those answered wrongly, two that have no answer,
/// and none of those answered correctly; applied to sentences and questions that ask for a thing,
/// it would also decline seven answered correctly.
const DOUBT_OF_OTHERS: f32 = -0.3;
/// Loss of confidence if a number or a time is asked for and the passage has none, or somebody, and
/// the reader denies that a passage that names nobody answers.
const MISSING_KIND_MALUS: f32 = 0.15;
/// Loss of confidence if a measure is asked for and the passage has no value of it.
const MISSING_MEASURE_MALUS: f32 = 0.25;
/// Loss of confidence if that measure is a quantity that nothing else can stand in for.
const MISSING_QUANTITY_MALUS: f32 = 0.4;

impl Evidence {
    fn cosines(&self, of_passage: f32, of_chunk: f32) -> f32 {
        match self.is_foreign {
            true => (of_passage + of_chunk) / 2.0,
            false => of_passage.max(of_chunk),
        }
    }

    /// The evidence that an answer to the question needs.
    pub(crate) fn needed_for(question: &Question) -> Self {
        let doubt = if question.asks_for_thing { DOUBT } else { DOUBT_OF_OTHERS };
        let is_latin = Self::is_of_latin(&question.text);
        Self { doubt, ..if is_latin { OF_LATIN } else { OF_FOREIGN } }
    }

    /// Whether at least half of the question's letters are Latin.
    pub(crate) fn is_of_latin(question: &str) -> bool {
        let letters = question.chars().filter(|c| c.is_alphabetic());
        let foreign = letters.clone().filter(|c| *c as u32 >= LATIN_END).count();
        foreign * 2 <= letters.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_is_believed_sooner_of_rows_and_where_no_thing_is_asked_for() {
        let sentence = Score {
            cosine: 0.4,
            nearness: None,
            overlap: 0.39,
            own: 0.4,
            coverage: 0.4,
            chunk: 1.0,
            form: 0.0,
            keyed: 0.0,
            missing: 0.0,
            is_counted: false,
            lacks_kind: false,
            lacks_person: false,
            lacks_measure: None,
            has_values: false,
            // Gives an opinion of -0.35.
            verdict: Some(0.109),
        };
        let row = Score { has_values: true, ..sentence };
        let confidence = |score: Score, question: &str| {
            score.confidence(&Evidence::needed_for(&Question::new(question)))
        };
        let (thing, other) = ("Who keeps the keys?", "May I keep the keys?");
        assert!(confidence(sentence, thing) > 1.0 && confidence(row, thing) < 1.0);
        assert!(confidence(sentence, other) < 1.0);
        let unread = Score { verdict: None, ..row };
        assert!(confidence(unread, thing) > 1.0);
        let denied = Score { verdict: Some(0.05), ..sentence };
        let of_nobody = Score { lacks_person: true, ..denied };
        assert!(confidence(of_nobody, thing) < confidence(denied, thing));
        let counted = Score { is_counted: true, ..row };
        assert!(confidence(counted, thing) > 1.0);
    }
}
