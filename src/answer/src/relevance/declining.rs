//! Reasons against an answer: the question names something missing from the passage and its text,
//! or asks for a kind of thing that is not there.
//!
//! A name, a code or a year of the question must occur in the passage, its headings, its chunk or
//! the title of its source; otherwise the passage is about something else. Names only count in
//! English questions, because other languages capitalise more words.

use std::collections::{BTreeMap, BTreeSet};

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::{Cell, Kind};
use crate::passages::candidates::{Candidate, Shape};
use crate::question::condition::unbound;
use crate::question::named::{CODE_MALUS, Named, is_acronym_of, names, written};
use crate::question::openers::asking;
use crate::question::scales::is_like;
use crate::question::wish::{Question, last_of};
use crate::relevance::absences::{Absences, Holds};
use crate::relevance::counts::{PREPOSITIONS, counted_terms, counted_words, counts};
use crate::relevance::stocks::tells_stock;
use crate::rows::keys::Keys;
use crate::text::terms::{is_common, terms};
use crate::text::values::{days, has_day_of_month, quantities};
use crate::text::words::{self, Asked, contains, entries, is_entry, is_interrogative, spaced};
use lodestone_text::HybridQuery;

/// Confidence lost by a row with none of the question's names: it is about another thing, unless
/// rows are compared.
const ROW_NAME_MALUS: f32 = 0.35;
/// Confidence lost by a row without the day asked for, if it has another one.
const ROW_DAY_MALUS: f32 = 0.35;
/// Confidence lost for a missing year if the chunk tells no year: the document may be of that year.
const UNTOLD_YEAR_MALUS: f32 = 0.25;

/// Confidence lost if the attribute asked for is not named, as in "the salary of Ada". Texts
/// replace verbs, as in "when does Ada retire", less often than nouns.
const ATTRIBUTE_MALUS: f32 = 0.15;
const DOING_MALUS: f32 = 0.25;
/// Confidence lost if the things to be counted are not named: larger for a row, which would name
/// them, than for sentences, which may use other words.
const ROW_COUNT_MALUS: f32 = 0.35;
const COUNT_MALUS: f32 = 0.1;

/// Openings before an attribute.
const OPENINGS: &str = "what is the |what was the |what's the |what are the |what were the ";
/// Maximum number of words in an attribute, including those before its noun.
const ATTRIBUTE_WORDS_MAX: usize = 5;
/// Nouns that an answer shows rather than names.
const UNSAID: &str = "\
    name|names|kind|type|sort|number|amount|reason|purpose|difference|order|time|date|day|year|\
    month|place|location|way|meaning|definition|procedure|process|rule|rules|policy|price|cost|\
    fee|address|email|phone|extension|title|role|status|deadline|limit|maximum|minimum|most|least|\
    best|main|first|last|next|result|results|steps|requirements|consequence|problem|cause|point|\
    percentage|age|length|height|weight|depth|size|colour|color|temperature|capital|origin|aim|\
    goal|idea|theory|effect|effects|term|word|full|original|total|average";
/// Openings of a question for a name, and the confidence lost if a passage holds none.
const NAMINGS: &str = "\
    what is the name of|what was the name of|what's the name of|whats the name of|name of|\
    what are the names of|what were the names of";
const NAMELESS_MALUS: f32 = 0.4;
/// Words before a name that need not be capitalised.
const CALLED: &str = "known as|called|named|termed|titled|entitled|dubbed";
/// Openings before a subject and its verb: "what does Ada earn".
const DOINGS: &str = "what does |what do |how much does |how much do ";
/// Verbs that an answer shows rather than names, and the maximum number of words in the subject.
const SAID_VERBS: &str = "\
    do|mean|cost|look|say|contain|include|offer|need|have|get|want|happen|stand|like|work|use|take|\
    weigh|measure|pay|charge|it|for|about|of|in|on|to|with";
const DOER_WORDS_MAX: usize = 3;
/// Verbs after the kind of thing asked for.
const KIND_VERBS: &str = "is|was|has|had|does|did|do|can|will|must|should|may|got|gets|gave|made";
/// Openings before a person and a verb that the answer repeats: "when does Ada retire".
const DOINGS_OF_SOMEBODY: &str = "\
    when does |when did |when will |where does |where did |where will |how often does |why did |\
    why does ";
/// Number of characters in the ending of a file's name.
const FILE_ENDING: std::ops::RangeInclusive<usize> = 2..=5;

/// Everything that a question demands of a passage.
pub(crate) struct Demands {
    names: BTreeMap<String, Named>,
    /// The naming words of the last question, in lower case.
    written: Vec<String>,
    /// The terms of its days.
    days: Vec<String>,
    attribute: Option<(String, f32)>,
    counted: Vec<String>,
    /// The unit that is counted, if it is one: "kilos".
    unit: Option<String>,
    /// The words of the last question.
    words: String,
    /// The terms of the last question.
    asked: BTreeSet<String>,
    /// The question in lower case, if it asks for a name.
    naming: Option<String>,
    is_of_list: bool,
    compares: bool,
    absences: Absences,
}

impl Demands {
    /// Determines the demands of a question.
    pub(crate) fn of(question: &Question) -> Self {
        let text = &question.text;
        // A bound such as "before 2020" need not occur in the text.
        let has_bounds = !question.conditions.is_empty() && last_of(text).len() == text.len();
        let mut names = match has_bounds {
            true => names(&unbound(text, &question.conditions)),
            false => names(text),
        };
        // "Who besides Ada": an exclusion need not occur in the text.
        names.retain(|term, _| !question.excluded.contains(term));
        let days = question.days.iter().filter(|_| !has_bounds);
        let counted = counted_words(last_of(text));
        Self {
            absences: Absences::of(question, &counted, &names),
            written: written(last_of(text), &names),
            names,
            days: days.filter_map(|day| day.terms().into_iter().next()).collect(),
            attribute: attribute(last_of(text)),
            counted: counted_terms(&counted),
            unit: counted.into_iter().next().filter(|word| is_like(word, word)),
            words: spaced(last_of(text)),
            asked: terms(last_of(text)),
            naming: entries(NAMINGS)
                .any(|opening| question.last().to_lowercase().starts_with(opening))
                .then(|| question.lower.clone()),
            is_of_list: question.is_of_list,
            compares: question.compares,
        }
    }

    /// Whether a text has a quantity in a unit like the one counted: "60 kg" for "how many kilos".
    fn has_unit(&self, text: &str) -> bool {
        let is_one = |unit: &String| quantities(text).iter().any(|one| is_like(unit, &one.unit));
        self.unit.as_ref().is_some_and(is_one)
    }

    /// Whether a row has a number in a column that the question names: "Tables: 32" for "how many
    /// people sit at tables".
    fn names_number(&self, row: &[Cell]) -> bool {
        let is_one = |cell: &Cell| {
            let name = cell.name.replace('_', " ");
            // "Members on 30 Sep 2025": the day says when they were counted.
            let end = days(&name).first().map_or(name.len(), |(bytes, _)| bytes.start);
            let name = terms(&name[..end]);
            cell.value.parse::<f64>().is_ok() && !name.is_empty() && name.is_subset(&self.asked)
        };
        row.len() > 1 && row.iter().any(is_one)
    }

    /// Whether a text contains a name of the question with a capital letter or in the name of a
    /// file; true if the question has no names.
    fn is_named_in(&self, text: &str) -> bool {
        if self.written.is_empty() {
            return true;
        }
        let bare = |word: &str| word.split(['\'', '\u{2019}']).next().map(str::to_lowercase);
        let is_one = |word: &str| {
            bare(word).is_some_and(|word| self.written.contains(&word))
                || is_acronym_of(word, &self.written)
        };
        let mut names = text.unicode_words().filter(|word| word.starts_with(char::is_uppercase));
        let files = text.split_whitespace().filter(|token| is_file(token));
        let mut parts = files.flat_map(|file| file.split(|c: char| !c.is_alphanumeric()));
        names.any(is_one) || parts.any(is_one)
    }

    /// Whether a row is one of the things counted: by a value that several rows share, or by the
    /// names `above` it. In the latter case the row must also hold more of the question in its
    /// `own` values, unless the question is about the whole list.
    pub(crate) fn are_counted(
        &self,
        passage: &Candidate,
        own: &BTreeSet<String>,
        above: &BTreeSet<String>,
        keys: &Keys,
    ) -> bool {
        let is_thing = |term: &String| self.counted.contains(term);
        let is_kind = |cell: &Cell| {
            let said = terms(&cell.value);
            !said.is_empty() && said.iter().all(is_thing) && keys.rows(passage, cell) > 1
        };
        let is_one =
            || above.iter().any(is_thing) && (self.is_of_list || !own.iter().all(is_thing));
        passage.cells.len() > 1
            && (passage.cells.iter().any(is_kind) || is_one())
            && !counts(&self.counted, self.without_number(&passage.cells), "")
    }

    /// The values of a row without the first one if that is a number of its own, because the
    /// question does not use the name of its column: "ticket: 4502" for "how many tickets".
    fn without_number<'r>(&self, row: &'r [Cell]) -> &'r [Cell] {
        let [first, rest @ ..] = row else { return row };
        let name = first.name.replace('_', " ");
        let is_of_thing = terms(&name).iter().any(|term| self.counted.contains(term));
        let is_own = is_of_thing && !contains(&self.words, spaced(&name).trim());
        if is_own && !rest.is_empty() { rest } else { row }
    }

    /// The confidence that a passage loses for missing things. `is_held` tells whether a term
    /// occurs in the passage, above it or in its chunk, `is_met` also accepts a synonym; only names
    /// among the `wanted` terms count, and no passage has the `unmet` ones.
    /// Rows that are counted themselves need no number, and a text that states no year may be of
    /// any.
    pub(crate) fn missing(
        &self,
        (wanted, unmet): (&BTreeSet<String>, &BTreeSet<String>),
        (is_held, is_met): (Holds<'_>, Holds<'_>),
        (passage, above): (&Candidate, &str),
        (is_counted, tells_year): (bool, bool),
    ) -> f32 {
        // A row without any of the names gains nothing from names in other rows of its chunk.
        let is_row = passage.cells.len() > 1;
        let row = is_row.then(|| format!("{above}\n{}", passage.shown()));
        let is_named = row.as_ref().is_none_or(|row| self.is_named_in(row));
        let is_held = |term: &String| match (&row, self.names.get(term)) {
            (Some(_), Some(Named::Name)) => is_named && is_held(term),
            (Some(row), Some(Named::Year)) => row.contains(term.as_str()),
            (Some(row), Some(Named::Ordinal)) => is_held(term) || has_day_of_month(row, term),
            _ => is_held(term),
        };
        let names = self.names.iter().filter(|(name, _)| wanted.contains(*name));
        let has_name = names.clone().any(|(name, named)| *named == Named::Name && is_held(name));
        // Of two things that are compared, each row is about one.
        let is_side = self.compares && is_row && has_name;
        let lost = names.clone().filter(|(name, named)| {
            // If the question names several years or codes, each passage may be about one.
            let is_other = |(name, other): (&String, &Named)| other == *named && is_held(name);
            let is_lost = match named {
                Named::Name => !is_side,
                _ => !names.clone().any(is_other),
            };
            !is_held(name) && is_lost
        });
        let is_of_another = passage.has_values() && !has_name && !self.compares;
        let lost = lost.map(|(_, named)| match named {
            Named::Name if is_of_another => ROW_NAME_MALUS,
            Named::Year if !is_row && !tells_year => UNTOLD_YEAR_MALUS,
            // Tables spell ordinals alike, so a row with another floor is about another floor.
            Named::Ordinal if is_row => CODE_MALUS,
            _ => named.malus(),
        });
        let mut missing = lost.fold(0.0_f32, f32::max);
        if let Some((_, malus)) = self.attribute.as_ref().filter(|(noun, _)| !is_held(noun)) {
            missing = missing.max(*malus);
        }
        let lacks_day = row.as_ref().is_some_and(|row| {
            !self.days.is_empty() && !days(row).is_empty() && !self.days.iter().any(&is_held)
        });
        if lacks_day && !self.compares {
            missing = missing.max(ROW_DAY_MALUS);
        }
        let has_name = |asked: &String| {
            let shown = passage.shown();
            let said = spaced(&shown);
            words::holds(Asked::Person, &shown, asked)
                || entries(CALLED).any(|word| contains(&said, word))
        };
        if self.naming.as_ref().is_some_and(|asked| !has_name(asked)) {
            missing = missing.max(NAMELESS_MALUS);
        }
        missing = missing.max(self.absences.loss((is_met, unmet), passage, above));
        let is_counted = is_counted
            || self.counted.is_empty()
            || self.names_number(&passage.cells)
            || self.has_unit(&passage.shown())
            || tells_stock(&passage.cells, &self.counted)
            || counts(&self.counted, self.without_number(&passage.cells), &passage.shown());
        missing
            + match passage.shape {
                // A setting names its number in its own words.
                Shape::Unit(Kind::Field) => 0.0,
                _ if is_counted => 0.0,
                Shape::Unit(Kind::Row | Kind::Record) => ROW_COUNT_MALUS,
                _ => COUNT_MALUS,
            }
    }
}

/// Whether a word is the name of a file, which is often in lower case: "plan-tarn.pdf".
fn is_file(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(_, ending)| {
        FILE_ENDING.contains(&ending.len()) && ending.bytes().all(|c| c.is_ascii_alphanumeric())
    })
}

/// The term of the attribute that a question asks for ("the salary of Ada", "Ada's salary"), and
/// the confidence lost without it. Nouns that answers seldom repeat do not count.
fn attribute(question: &str) -> Option<(String, f32)> {
    let plain = |text: &str| text.to_lowercase().replace('\u{2019}', "'");
    // "I dislike my neighbour's manners. Who decides?" does not ask for manners.
    let (text, asked) = (plain(question), plain(asking(question)));
    let of_owner = || {
        let (before, behind) = asked.split_once("'s ")?;
        let owner = before.unicode_words().next_back()?;
        // "It's", "what's": a verb instead of an owner.
        let is_verb = is_interrogative(owner) || words::is_reference(owner) || owner == "there";
        (!is_verb).then(|| behind.unicode_words().next()).flatten()
    };
    let of_thing = || {
        let opening = OPENINGS.split('|').find_map(|opening| text.strip_prefix(opening))?;
        let mut words = opening.unicode_words().take(ATTRIBUTE_WORDS_MAX + 1);
        let mut before = words.next()?;
        for word in words {
            // "The longest film I can send by mail": the verb's object is not the attribute.
            if is_interrogative(before) {
                return None;
            }
            if PREPOSITIONS.split('|').any(|other| other == word) {
                return Some(before).filter(|noun| !is_common(noun));
            }
            before = word;
        }
        None
    };
    let of_doer = || {
        let doing = DOINGS.split('|').find_map(|opening| text.strip_prefix(opening))?;
        let mut words: Vec<&str> = doing.unicode_words().collect();
        let verb = words.pop()?;
        let is_said = !SAID_VERBS.split('|').any(|other| other == verb);
        ((1..=DOER_WORDS_MAX).contains(&words.len()) && is_said).then_some(verb)
    };
    // Only for people: the opening and leaving of things are worded in many ways.
    let of_somebody = || {
        let opening = DOINGS_OF_SOMEBODY.split('|').find(|opening| text.starts_with(opening))?;
        let words: Vec<&str> = question.get(opening.len()..)?.unicode_words().collect();
        let (verb, doer) = words.split_last()?;
        let is_name = |word: &&str| word.starts_with(char::is_uppercase);
        let is_somebody = (1..=DOER_WORDS_MAX).contains(&doer.len()) && doer.iter().all(is_name);
        let verb = text.unicode_words().next_back().filter(|last| *last == verb.to_lowercase())?;
        (is_somebody && !SAID_VERBS.split('|').any(|other| other == verb)).then_some(verb)
    };
    // "Which bank has our loan": an answer would name the kind.
    let of_kind = || {
        let mut words = text.unicode_words();
        let asks = matches!(words.next()?, "which" | "what");
        let (noun, verb) = (words.next()?, words.next()?);
        (asks && is_entry(KIND_VERBS, verb)).then_some(noun)
    };
    let noun = of_thing().or_else(of_kind).or_else(of_owner);
    let doing = || of_doer().or_else(of_somebody).map(|verb| (verb, DOING_MALUS));
    let (noun, malus) = noun.map(|noun| (noun, ATTRIBUTE_MALUS)).or_else(doing)?;
    let is_said = !UNSAID.split('|').any(|other| other == noun);
    let term = HybridQuery::analyse(noun).terms().first().cloned();
    term.filter(|_| is_said).map(|term| (term, malus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noun_that_is_asked_of_something_is_seen() {
        let of = |question| attribute(question).map(|(noun, _)| noun);
        assert_eq!(
            attribute("What is Ada's salary?"),
            Some(("salari".to_owned(), ATTRIBUTE_MALUS))
        );
        assert_eq!(attribute("What does Ada earn?"), Some(("earn".to_owned(), DOING_MALUS)));
        assert_eq!(of("What is Dr Solheim's salary?").as_deref(), Some("salari"));
        assert_eq!(of("What is the password of the office network?").as_deref(), Some("password"));
        assert_eq!(of("What is the name of the harbour master?"), None, "a name is shown");
        assert_eq!(of("What's the order of things?"), None);
        assert_eq!(of("I dislike my neighbour's manners at night. Who decides?"), None);
        assert_eq!(of("I have a cold boat, which lamps must I not light?"), None);
        assert_eq!(of("What is the longest film I can send by mail?"), None);
        assert_eq!(of("What is the smallest gap allowed between two boats?"), None);
        assert_eq!(of("Where does it stand when it's hot?"), None);
        assert_eq!(of("what does Ada Solheim earn?").as_deref(), Some("earn"));
        assert_eq!(of("When does Ada Solheim retire?").as_deref(), Some("retir"));
        assert_eq!(of("When does the hall open?"), None, "hours are shown");
        assert_eq!(of("What does the lift cost?"), None, "an amount is shown");
    }
}
