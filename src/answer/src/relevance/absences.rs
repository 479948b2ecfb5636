//! Absences: what a question asks for is mentioned nowhere in or around a passage.
//!
//! A passage may answer in other words, so that each rule needs more than a missing word: a number
//! of other things where some are counted, a day without a year where it is asked when a house was
//! built, no word for any office where a director is asked for, a row that has nothing of the
//! question but a name.

use std::collections::{BTreeMap, BTreeSet};

use crate::passages::blocks::{Cell, Kind};
use crate::passages::candidates::{Candidate, Shape};
use crate::question::measures::Measure;
use crate::question::named::Named;
use crate::question::wish::{Question, Wanted};
use crate::relevance::outcomes::Outcomes;
use crate::relevance::priced::priced;
use crate::relevance::weights::matter;
use crate::text::terms::{is_common, terms};
use crate::text::values::quantities;
use crate::text::words::{Asked, begins_with, contains_any, is_entry, spaced};
use lodestone_text::HybridQuery;

/// Confidence lost by a passage in which something is absent.
const ABSENT_MALUS: f32 = 0.35;
/// Words for units: "how many days of leave" counts leave.
const UNITS: &str = "\
    second|seconds|minute|minutes|hour|hours|day|days|night|nights|week|weeks|month|months|year|\
    years|time|times|mile|miles|kilometre|kilometres|kilometer|kilometers|metre|metres|meter|\
    meters|foot|feet|inch|inches|degree|degrees|percent|point|points|litre|litres|liter|liters|\
    gram|grams|kilogram|kilograms|kilo|kilos|tonne|tonnes|ton|tons|pound|pounds|euro|euros|dollar|\
    dollars|square|cubic|piece|pieces|copy|copies|unit|units|item|items";
/// Words for people who are counted without a noun: "there are 40 of us".
const PEOPLE: &str = "\
    people|person|persons|staff|members|us|we|they|team|men|women|headcount|workforce|heads|jobs";
/// Nouns for people, who are counted under many: "how many pupils" by "24 children".
const NAMES_OF_PEOPLE: &str = "\
    adult|adults|applicant|applicants|attendee|attendees|child|children|client|clients|colleague|\
    colleagues|customer|customers|employee|employees|guest|guests|inhabitant|inhabitants|kid|kids|\
    learner|learners|occupant|occupants|participant|participants|passenger|passengers|patient|\
    patients|player|players|pupil|pupils|resident|residents|student|students|tenant|tenants|user|\
    users|visitor|visitors|volunteer|volunteers|worker|workers";
/// Minimum number of letters at which two words with the same beginning are related: "employ",
/// "employees".
const RELATED_MIN: usize = 5;

/// Openings of a question for the holder of an office, and the offices.
const HOLDERS: &str = "who is the|who's the|who is our|who's our|who was the";
const OFFICES: &str = "\
    ceo|cfo|cto|coo|cio|managing director|chief executive|president|chairman|chairwoman|\
    chairperson|treasurer|mayor|headmaster|headmistress|headteacher";
/// Words that may stand for an office, or tell who holds one.
const OF_OFFICE: &str = "\
    head|heads|headed|lead|leads|led|leader|run|runs|ran|manage|manages|managed|manager|management|\
    director|directors|chief|executive|officer|founder|founders|founded|owner|owners|owns|charge|\
    responsible|chair|chairs|chaired|preside|presides|president|appointed|elected|successor|\
    succeeds|succeeded|post|position|role|office|partner|boss|principal|board|signed|name|\
    treasury|finance|finances|accounts";

/// Verbs for the making of something, at the end of a question when it was made, and words of a
/// text that tells such a time.
const MADE: &str = "built|constructed|erected|founded|established";
const TELLS_MAKING: &str = "\
    built|build|builds|building|construction|constructed|erected|erection|founded|foundation|\
    founder|founders|established|establishment|completed|completion|opened|opening|inaugurated|\
    dates|dating|dated|century|centuries|year|years|ago|age|old|since|war|started|began|created|\
    finished|ready|handed over|put up|went up|set up";

const YEAR_DIGITS: usize = 4;

/// Names of columns with telephone numbers; other numbers look alike.
const PHONES: &str = "\
    tel|phone|telephone|mobile|cell|ext|extension|telefon|handy|durchwahl|téléphone|portable|\
    teléfono|móvil";

/// Minimum number of words that a row must have none of.
const MATTER_MIN: usize = 2;

/// Tells whether a passage has a term.
pub(crate) type Holds<'a> = &'a dyn Fn(&String) -> bool;

/// Things that a question asks for and a passage may lack.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    /// The terms of the things counted, apart from units.
    counted: BTreeSet<String>,
    counts_people: bool,
    asks_office: bool,
    asks_making: bool,
    outcomes: Outcomes,
    /// The terms of the question besides its names, if a row must have some of them.
    matter: BTreeSet<String>,
    /// The terms of its names.
    names: BTreeSet<String>,
    measure: Option<Measure>,
    /// The terms of the thing whose price it asks for.
    priced: BTreeSet<String>,
    /// All terms of the question.
    asked: BTreeSet<String>,
}

impl Absences {
    /// Finds what a passage must mention; `counted` holds the words of the things counted, `named`
    /// the names, codes and years of the question.
    pub(crate) fn of(
        question: &Question,
        counted: &[String],
        named: &BTreeMap<String, Named>,
    ) -> Self {
        let asked = spaced(question.last());
        let is_thing = |word: &&String| !is_entry(UNITS, word) && !is_common(word);
        // "How many voted" counts people, whom a text need not name.
        let has_plural = counted.first().is_some_and(|word| word.ends_with('s'));
        // "Who decides how many berths are let" asks for no number.
        let asks_number = question.asked == Asked::Number && asked.contains(" how many ");
        let counts_things = has_plural && asks_number;
        let things = counted.iter().filter(|_| counts_things).filter(is_thing);
        let begins = |list| begins_with(&asked, list);
        let last = asked.split_whitespace().next_back().unwrap_or_default();
        let is_plain = matches!(question.wanted, Wanted::Fact)
            && !question.is_computed()
            && !question.is_of_list;
        let names = named.iter().filter(|(_, kind)| **kind == Named::Name);
        let names: BTreeSet<String> = names.map(|(name, _)| name.clone()).collect();
        let mut matter = matter(question);
        matter.retain(|term| is_plain && !named.contains_key(term) && is_word(term));
        Self {
            counts_people: counted.iter().any(|word| is_entry(NAMES_OF_PEOPLE, word)),
            counted: things.flat_map(|word| HybridQuery::analyse(word).terms().to_vec()).collect(),
            asks_office: begins(HOLDERS) && contains_any(&asked, OFFICES),
            asks_making: question.asked == Asked::Date
                && begins("when was|when were")
                && is_entry(MADE, last),
            outcomes: Outcomes::of(question),
            priced: priced(question.last())
                .filter(|noun| is_plain && question.is_of_money && !is_common(noun))
                .map(|noun| HybridQuery::analyse(&noun).terms().iter().cloned().collect())
                .unwrap_or_default(),
            matter,
            names,
            measure: question.measure,
            asked: terms(question.last()),
        }
    }

    /// The confidence that a passage loses. `is_met` tells whether it, the text above it or its
    /// chunk has a term of the question or a synonym, `unmet` holds the terms that no passage has.
    pub(crate) fn loss(
        &self,
        (is_met, unmet): (Holds<'_>, &BTreeSet<String>),
        passage: &Candidate,
        above: &str,
    ) -> f32 {
        let shown = passage.shown();
        let is_prose = passage.cells.is_empty() && matches!(passage.shape, Shape::Unit(_));
        let lacks =
            || self.lacks_counted(is_met, unmet, &shown, above) || self.lacks_office(&shown, above);
        let is_absent = (is_prose && (lacks() || self.outcomes.are_absent(&shown, above)))
            || (self.asks_making && !tells_making(&shown, above))
            || self.lacks_matter(is_met, passage, above)
            || self.lacks_priced(is_met, unmet, passage, above);
        if is_absent { ABSENT_MALUS } else { 0.0 }
    }

    /// Whether a sentence states a number, but the things counted are mentioned nowhere.
    fn lacks_counted(
        &self,
        is_met: Holds<'_>,
        unmet: &BTreeSet<String>,
        shown: &str,
        above: &str,
    ) -> bool {
        let tells_people = contains_any(&spaced(shown), PEOPLE)
            || (self.counts_people && contains_any(&spaced(shown), NAMES_OF_PEOPLE));
        !self.counted.is_empty()
            && self.counted.iter().all(|term| unmet.contains(term) && !is_met(term))
            && !quantities(shown).is_empty()
            && !tells_people
            && !are_related(&self.counted, &format!("{shown}\n{above}"))
    }

    /// Whether the price of a thing is asked for that is mentioned nowhere, and a row has the price
    /// of another thing. A row whose key the question names is about it: "Single" in a list of
    /// prices without the word "room".
    fn lacks_priced(
        &self,
        is_met: Holds<'_>,
        unmet: &BTreeSet<String>,
        passage: &Candidate,
        above: &str,
    ) -> bool {
        let is_named = |key: &str| {
            let key = terms(key);
            !key.is_empty() && key.is_subset(&self.asked)
        };
        !self.priced.is_empty()
            && matches!(passage.shape, Shape::Unit(Kind::Row | Kind::Record))
            && passage.cells.len() > 1
            && !is_named(&passage.cells[0].value)
            && self.priced.iter().all(|term| unmet.contains(term) && !is_met(term))
            && !are_related(&self.priced, &format!("{}\n{above}", passage.shown()))
    }

    /// Whether an office is asked for and a sentence names none.
    fn lacks_office(&self, shown: &str, above: &str) -> bool {
        let tells = |text: &str| {
            let said = spaced(text);
            contains_any(&said, OFFICES) || contains_any(&said, OF_OFFICE)
        };
        // "Treasurer: Ada Tarn", and anything else behind a label.
        self.asks_office && !shown.contains(':') && !tells(shown) && !tells(above)
    }

    /// Whether a row that merely mentions a name has nothing else of the question, in words or as
    /// the kind of value asked for. A row that begins with the name is about it, and may answer in
    /// any words.
    fn lacks_matter(&self, is_met: Holds<'_>, passage: &Candidate, above: &str) -> bool {
        self.matter.len() >= MATTER_MIN
            && !self.names.is_empty()
            && matches!(passage.shape, Shape::Unit(Kind::Row | Kind::Record))
            && passage.cells.len() > 1
            && terms(&passage.cells[0].value).is_disjoint(&self.names)
            && !self.matter.iter().any(is_met)
            && !self.measure.is_some_and(|measure| has_value(measure, passage, above))
            && !are_related(&self.matter, &format!("{}\n{above}", passage.shown()))
    }
}

/// Whether a row has a value of a measure.
fn has_value(measure: Measure, row: &Candidate, above: &str) -> bool {
    let is_phone = |cell: &Cell| contains_any(&spaced(&cell.name), PHONES);
    measure.is_in(row, above) && (measure != Measure::Phone || row.cells.iter().any(is_phone))
}

/// Whether a term is a word, not a number or a day.
fn is_word(term: &str) -> bool {
    term.chars().all(char::is_alphabetic)
}

/// Whether a text tells when something was made: by a year, or by a word for it, which may also be
/// that of the question in the text above.
fn tells_making(text: &str, above: &str) -> bool {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    numbers.any(|number| number.len() == YEAR_DIGITS)
        || contains_any(&spaced(text), TELLS_MAKING)
        || contains_any(&spaced(above), MADE)
}

/// Whether a text has a word that begins as one of the terms does, or contains it.
fn are_related(asked: &BTreeSet<String>, text: &str) -> bool {
    let said = terms(text);
    let is_one = |asked: &String| {
        let begin: String = asked.chars().take(RELATED_MIN).collect();
        let is_long = begin.chars().count() == RELATED_MIN;
        said.iter()
            .any(|term| (is_long && term.starts_with(&begin)) || term.contains(asked.as_str()))
    };
    asked.iter().any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_making_of_something_is_told_by_a_year_or_a_word() {
        assert!(tells_making("Quay House: 1924", ""));
        assert!(tells_making("The boathouse was finished on 3 May.", ""));
        assert!(tells_making("Quay House: 3 May", "When the houses were built"));
        assert!(!tells_making("The painters come on 3 May.", "Visits of 2026"));
    }
}
