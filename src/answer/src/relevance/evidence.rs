//! Evidence: whether a passage answers.

use crate::question::wish::Question;
use crate::relevance::score::Score;
use crate::text::words::LATIN_END;

impl Score {
    /// Confidence that it answers: at least 1 where there is an answer. Other chunks count only
    /// through the weights of the terms.
    pub(crate) fn confidence(&self, evidence: &Evidence) -> f32 {
        // A sentence says little without the text and the title that it stands in.
        let nearness = self.nearness.unwrap_or(self.cosine);
        let mut found = evidence.cosine * evidence.cosines(self.cosine, nearness)
            + evidence.overlap * self.overlap
            + evidence.coverage * self.coverage;
        // The right row is no answer without the value that is asked for.
        if !(self.lacks_kind || self.lacks_measure.is_some() || self.missing > 0.0) {
            found += self.keyed;
        }
        found -= self.missing;
        // One of the things that are counted does not tell their number by itself.
        if self.verdict.is_some() && !self.is_counted {
            // What is not there is not there, however much a passage looks like an answer.
            let lacks = self.missing > 0.0 || self.lacks_kind || self.lacks_measure.is_some();
            let doubt = if self.has_values { DOUBT_OF_OTHERS } else { evidence.doubt };
            found += match self.opinion() - doubt {
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

/// Evidence for an answer: weights of the features, and the sum that they must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Evidence {
    cosine: f32,
    overlap: f32,
    coverage: f32,
    needed: f32,
    is_foreign: bool,
    /// The verdict of the reader on a sentence at which it changes nothing.
    doubt: f32,
}

/// The meaning decides; terms tell near misses from answers.
///
/// Chosen among a dozen formulas on 1,190 questions to XQuAD in English with their paragraph, with
/// the other paragraphs of its article, and without the article; on 484 questions of seven other
/// collections; and on judged questions to office documents. There the greater of both cosines
/// serves as well as their mean and declines fewer questions in the words of people.
const OF_LATIN: Evidence = Evidence {
    cosine: 1.0,
    overlap: 0.3,
    coverage: 0.2,
    needed: 0.56,
    is_foreign: false,
    doubt: DOUBT_OF_OTHERS,
};
/// A model of English finds everything alike that is written in another script; there the terms
/// have to carry more. Chosen on 1,825 questions to eleven collections
/// (`benches/runs/2026-11-22-2core-xeon/answers.md`).
const OF_FOREIGN: Evidence = Evidence {
    cosine: 0.5,
    overlap: 0.3,
    coverage: 0.5,
    needed: 0.43,
    is_foreign: true,
    doubt: DOUBT_OF_OTHERS,
};
/// Weights of what the reader says for and against a passage, and what it says where it changes
/// nothing. Chosen on 1,510 questions to twelve collections: of those that are answered rightly .96
/// stay so where .95 were, and of those that nothing answers .32 are answered where .49 were. It
/// sees better what is no answer than what is one: with more weight for a passage more questions of
/// XQuAD are answered whose articles are not there, .14 with .6 where .07 are with .15.
const NO_WEIGHT: f32 = 0.8;
const YES_WEIGHT: f32 = 0.15;
const DOUBT: f32 = -0.4;
/// Doubt about rows, and where no thing is asked for: of 2,003 questions to sixteen collections
/// this declines nine more of those answered wrongly and two that nothing answers, and none of
/// those answered rightly; of sentences for a thing it would decline seven of these, too.
const DOUBT_OF_OTHERS: f32 = -0.3;
/// Confidence that is lost where a number or a time is asked for and none is there.
const MISSING_KIND_MALUS: f32 = 0.15;
/// Confidence that is lost where a measure is named and a text has no value of it.
const MISSING_MEASURE_MALUS: f32 = 0.25;
/// Confidence that is lost where a quantity is named for which nothing else can stand.
const MISSING_QUANTITY_MALUS: f32 = 0.4;

impl Evidence {
    fn cosines(&self, of_passage: f32, of_chunk: f32) -> f32 {
        match self.is_foreign {
            true => (of_passage + of_chunk) / 2.0,
            false => of_passage.max(of_chunk),
        }
    }

    /// The evidence that a question needs.
    pub(crate) fn needed_for(question: &Question) -> Self {
        let doubt = if question.asks_for_thing { DOUBT } else { DOUBT_OF_OTHERS };
        let is_latin = Self::is_of_latin(&question.text);
        Self { doubt, ..if is_latin { OF_LATIN } else { OF_FOREIGN } }
    }

    /// Whether half of the letters of a question or more are Latin ones.
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
            lacks_measure: None,
            has_values: false,
            // An opinion of -0.35.
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
        let counted = Score { is_counted: true, ..row };
        assert!(confidence(counted, thing) > 1.0);
    }
}
