//! Passages that contradict each other: they tell different numbers of one thing. The later
//! document goes before the earlier one.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Kind;
use crate::passages::candidates::{Candidate, Shape, said_in};
use crate::selection::choose::Choice;
use crate::text::terms::{is_common, terms};
use crate::text::values::{Day, days, quantities};
use crate::text::words::{contains, denies, entries, is_entry, number_of, spaced};
use crate::versions::amendments::{PARTS, part_number};

/// Words behind a number among which stands what it counts: "five working days".
const UNIT_WORDS: usize = 2;

/// Words before the number of a week of the year, and what stands for them.
const WEEKS: &str = "week|kw|woche|semaine|semana";
const NUMBER_OF_WEEK: &str = "number of a week";

/// A passage of a later document, which contradicts the first one, is this much less like the
/// question at most, and as sure as this.
const LATER_DROP_MAX: f32 = 0.1;
const LATER_CONFIDENCE_MIN: f32 = 0.8;
/// Largest loss of relevance of a later passage that holds all words of the question that the first
/// one holds.
const SAME_WORDS_DROP_MAX: f32 = 0.3;
/// Share of the question's terms that these words are at least.
const SAME_SHARE_MIN: f32 = 0.5;
/// Largest loss of relevance of a sentence that gives the number of the first passage as the former
/// one.
const REPLACING_DROP_MAX: f32 = 0.4;
/// Words before a number that holds no more, and digits of it at least.
const OLD: &str = "\
    so far|until now|up to now|previously|instead of|formerly|up from|down from|still say|\
    still says|still states|no longer|and not|bisher|statt|nicht mehr|jusqu'ici|au lieu de|\
    hasta ahora|en lugar de";
const OLD_DIGITS_MIN: usize = 2;
/// Phrases with which a text moves or changes a value, and words before the value of before and the
/// new one: "postponed from 3 May to 9 June"; words of the former, and articles before the latter.
const MOVED: &str = "\
    postponed|moved|moves|shifted|delayed|rescheduled|brought forward|put off|put back|pushed back|\
    raised|raises|increased|increases|lowered|lowers|reduced|reduces|cut from|changed|changes|\
    extended|shortened|rises|rose|falls|fell|goes up|goes down|went up|went down|up from|\
    down from|verschoben|verlegt|erhöht|angehoben|gesenkt|\
    reduziert|gekürzt|geändert|verlängert|steigt|sinkt|reporté|reportée|repoussé|repoussée|avancé|\
    avancée|porté|portée|augmenté|augmentée|réduit|réduite|passe|passé|aplazado|aplazada|elevado|\
    elevada|aumentado|aumentada|reducido|reducida|cambiado|pasa|sube|baja";
const FROM: &str = "from|von|vom|de|du|des|del";
const TO: &str = "to|auf|zu|zum|à|au|aux|a|al";
const OLD_WORDS_MAX: usize = 6;
const NEW_WORDS_MAX: usize = 2;
const ARTICLES: &str = "the|den|der|das|le|la|el";
/// The word that denies something, and marks before it; words that are looked at behind it; letters
/// of a name.
const DENYING: &str = "not ";
const BEFORE_DENYING: &[&str] = &[", ", "(", " and "];
const DENIED_WORDS_MAX: usize = 5;
const NAME_CHARS_MIN: usize = 4;
/// Words that announce corrections of minutes.
const CORRECTIONS: &str = "\
    correction|corrections|corrected|amendment|amendments|to the minutes|to the last minutes|\
    berichtigung|berichtigungen|korrektur|korrekturen|zum protokoll|rectification|rectifications|\
    au procès verbal|corrección|correcciones|rectificación|al acta";
/// Words with which a text tells that something is not as before.
const NEW: &str = "\
    from now on|no longer|any more|instead of|so far|until now|up to now|previously|as of|\
    with effect from|changed to|changes to|raised to|lowered to|reduced to|increased to|goes up|\
    goes down|rises to|falls to|moved to|postponed to|put off to|brought forward to|decided|\
    decision|ab sofort|künftig|bisher|nicht mehr|statt|beschlossen|désormais|jusqu'ici|au lieu de|\
    décidé|hasta ahora|en lugar de|ya no|decidido";

impl Choice<'_> {
    /// A passage of a later document that is as near to the question and contradicts the first one.
    pub(crate) fn later(&self, first: usize) -> Option<usize> {
        let one = self.candidate(first);
        if self.question.compares {
            return None;
        }
        if let Some(right) = self.put_right(first) {
            return Some(right);
        }
        let of_first = &self.matches.own[first];
        self.best(|at| {
            // The same few words tell of the same thing in many passages.
            let is_of_same = self.scores[first].own >= SAME_SHARE_MIN
                && of_first.is_subset(&self.matches.own[at]);
            let drop = match () {
                () if self.replaces_number(at, first)
                    || self.denies(at, first)
                    || self.moves(at, first) =>
                {
                    REPLACING_DROP_MAX
                }
                () if is_of_same && self.contradicts(at, first) => SAME_WORDS_DROP_MAX,
                () if self.contradicts(at, first)
                    || self.changes(at, first)
                    || self.is_same_row(at, first) =>
                {
                    LATER_DROP_MAX
                }
                () => return None,
            };
            // The days of a plan are not those on which it was written.
            let is_of_plan = one.has_values() && self.denies(at, first);
            let is_later = (is_of_plan
                || self.editions.is_later(self.candidate(at).hit, one.hit)
                || self.moves(at, first))
                && self.scores[at].cosine >= self.scores[first].cosine - drop
                && self.scores[at].confidence(&self.evidence) >= LATER_CONFIDENCE_MIN;
            is_later.then(|| self.relevance(at))
        })
    }

    /// The passage that puts the first one right: the message behind it, a later one that takes
    /// back what was said of the same, or the item of later minutes that corrects the item of its
    /// number.
    pub(crate) fn put_right(&self, first: usize) -> Option<usize> {
        let (one, of_first) = (self.candidate(first), &self.matches.own[first]);
        let is_behind = |at: usize| {
            let other = self.candidate(at);
            let is_next = || one.is_put_right && other.unit == one.unit + 1;
            let is_of_same = || {
                one.shape == Shape::Unit(Kind::Line)
                    && !of_first.is_empty()
                    && of_first.is_subset(&self.matches.own[at])
                    && denies(said_in(Kind::Line, &other.shown()))
            };
            other.is_beside(one)
                && other.units == 1
                && other.unit > one.unit
                && (is_next() || is_of_same())
        };
        let number = part_number(&one.shown());
        let is_right = |at: &usize| {
            let other = self.candidate(*at);
            is_behind(*at)
                || (matches!(other.shape, Shape::Unit(_))
                    && number.as_ref().is_some_and(|number| names_item(&other.shown(), number))
                    && self.editions.is_later(other.hit, one.hit)
                    && self.is_correction(*at))
        };
        (0..self.reading.candidates.len()).find(is_right)
    }

    /// Whether an item announces corrections, or stands below words that do.
    fn is_correction(&self, at: usize) -> bool {
        let one = self.candidate(at);
        let tells = |text: &str| entries(CORRECTIONS).any(|word| contains(&spaced(text), word));
        let all = &self.reading.candidates;
        let before = all.iter().take(at).rev().take_while(|other| other.stretch == one.stretch);
        let mut before = before.skip_while(|other| item_number(&other.shown()).is_some());
        [&one.lead, &one.heading, &one.shown()].into_iter().any(|text| tells(text))
            || before.next().is_some_and(|other| tells(&other.shown()))
    }

    /// Whether a sentence of another text says that something that the other one tells is not so:
    /// "1 May, not 1 April".
    pub(crate) fn denies(&self, at: usize, other: usize) -> bool {
        let (one, two) = (self.candidate(at), self.candidate(other));
        let held = two.shown();
        let held: Vec<&str> = bare_words(&held).collect();
        one.stretch != two.stretch
            && is_prose(one)
            && !self.matches.own[at].is_disjoint(&self.matches.own[other])
            && denied(&one.shown()).iter().any(|told| tells_all(&held, told))
    }

    /// Whether a sentence of another text, which is not of an earlier day, says that the value that
    /// the other one tells has been moved or changed: "postponed from 3 May to 9 June".
    fn moves(&self, at: usize, other: usize) -> bool {
        let (one, two) = (self.candidate(at), self.candidate(other));
        let held = two.shown();
        one.stretch != two.stretch
            && is_prose(one)
            && !self.matches.own[at].is_disjoint(&self.matches.own[other])
            && self.editions.may_follow(one.hit, two.hit)
            && changed_values(&one.shown())
                .iter()
                .any(|(old, new)| tells_value(&held, old) && !tells_value(&held, new))
    }

    /// Whether the first passage says that what another one does holds no more.
    pub(crate) fn overtakes(&self, first: usize, other: usize) -> bool {
        let hits = (self.candidate(first).hit, self.candidate(other).hit);
        let is_later = self.editions.is_later(hits.0, hits.1)
            && (self.contradicts(first, other) || self.denies(first, other));
        is_later || self.moves(first, other)
    }

    /// Whether a sentence of another text says that what the other one tells has changed: it is of
    /// the same part of the question, and tells a number as new.
    fn changes(&self, at: usize, other: usize) -> bool {
        let (one, two) = (self.candidate(at), self.candidate(other));
        let (own, held) = (&self.matches.own[at], &self.matches.own[other]);
        let is_of_same = !held.is_empty() && held.iter().all(|term| own.contains(term));
        let text = one.shown();
        one.stretch != two.stretch
            && is_prose(one)
            && !two.is_lead
            && matches!(two.shape, Shape::Unit(_))
            && is_of_same
            && is_new(&spaced(&text))
            && text.contains(|c: char| c.is_ascii_digit())
            && two.shown().contains(|c: char| c.is_ascii_digit())
    }

    /// Whether a sentence of another text tells a number of the other one as the one of before:
    /// "17 % (so far 14)".
    fn replaces_number(&self, at: usize, other: usize) -> bool {
        let (one, two) = (self.candidate(at), self.candidate(other));
        let digits =
            |number: &&str| number.chars().filter(char::is_ascii_digit).count() >= OLD_DIGITS_MIN;
        let text = one.shown().to_lowercase();
        let mut old = entries(OLD).filter_map(|phrase| {
            let (_, behind) = text.split_once(&format!("{phrase} "))?;
            bare_words(behind).next()
        });
        let held = two.shown();
        one.stretch != two.stretch
            && is_prose(one)
            && old.any(|old| digits(&old) && bare_words(&held).any(|word| word == old))
    }

    /// Whether two rows of different texts are the same row: under the same names, with the same
    /// first value, but for a mark such as "(new)".
    fn is_same_row(&self, at: usize, other: usize) -> bool {
        let (one, two) = (self.candidate(at), self.candidate(other));
        let names = |one: &Candidate| -> Vec<String> {
            one.cells.iter().map(|cell| cell.name.to_lowercase()).collect()
        };
        let key = |one: &Candidate| one.cells.first().map(|cell| terms(&cell.value));
        let is_within = |(own, other): (BTreeSet<String>, BTreeSet<String>)| {
            !other.is_empty() && other.is_subset(&own)
        };
        let of = |at: usize| &self.matches.own[at] | &self.matches.above[at];
        one.stretch != two.stretch
            && two.cells.len() > 1
            && of(other).is_subset(&of(at))
            && names(one) == names(two)
            && key(one).zip(key(two)).is_some_and(is_within)
    }

    /// Whether two sentences of different texts say different numbers on what the question asks.
    pub(crate) fn contradicts(&self, at: usize, other: usize) -> bool {
        let (one, two) = (self.candidate(at), self.candidate(other));
        let shares = || !self.matches.own[at].is_disjoint(&self.matches.own[other]);
        one.stretch != two.stretch
            && is_prose(one)
            && is_prose(two)
            && shares()
            && contradict(&one.shown(), &two.shown())
    }
}

/// The number of the item that a correction is of: "item 6: it costs 36 EUR".
fn item_number(text: &str) -> Option<String> {
    let first = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let is_named = first.starts_with(char::is_alphabetic);
    part_number(first).filter(|_| is_named)
}

/// Whether a text speaks of the item of a number: "correction to item 6: it costs 36 EUR".
fn names_item(text: &str, number: &str) -> bool {
    let words: Vec<String> = bare_words(text).map(str::to_lowercase).collect();
    words.windows(2).any(|two| is_entry(PARTS, &two[0]) && two[1] == number)
}

/// The words that a text says are not so: "1 April" of "from 1 May, not 1 April".
fn denied(text: &str) -> Vec<Vec<&str>> {
    let behind = text.match_indices(DENYING).filter_map(|(at, word)| {
        let rest = Some(&text[at + word.len()..])
            .filter(|_| BEFORE_DENYING.iter().any(|mark| text[..at].ends_with(mark)))?;
        let phrase = rest.split([',', '.', ';', ':', '(', ')', '\n']).next()?;
        Some(bare_words(phrase).take(DENIED_WORDS_MAX).collect())
    });
    behind.collect()
}

/// The values of before that a text tells and the words of the new ones: "1.9" and "2.1 million" of
/// "raised from 1.9 to 2.1 million".
fn changed_values(text: &str) -> Vec<(String, String)> {
    let words: Vec<&str> = bare_words(text).filter(|word| !word.is_empty()).collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let said = spaced(text);
    if !entries(MOVED).any(|phrase| contains(&said, phrase)) {
        return Vec::new();
    }
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let value = |from: usize| {
        let mut ends = from + 2..words.len().min(from + 2 + OLD_WORDS_MAX);
        let to = ends.find(|at| is_entry(TO, &lower[*at]))?;
        let is_article = |word: &&&str| is_entry(ARTICLES, word);
        let behind = words[to + 1..].iter().skip_while(is_article).take(NEW_WORDS_MAX);
        let new: Vec<&str> = behind.copied().collect();
        let old = words[from + 1..to].join(" ");
        let are_values = has_digit(&old) && new.first().is_some_and(|word| has_digit(word));
        are_values.then(|| (old, new.join(" ")))
    };
    (0..words.len()).filter(|at| is_entry(FROM, &lower[*at])).filter_map(value).collect()
}

/// Whether a text tells a value: its day, or all of its words that tell.
fn tells_value(held: &str, value: &str) -> bool {
    let is_same = |one: Day, other: Day| (one.month, one.day) == (other.month, other.day);
    if let Some((_, old)) = days(value).into_iter().next() {
        return days(held).into_iter().any(|(_, day)| is_same(day, old));
    }
    let held: Vec<String> = bare_words(held).map(str::to_lowercase).collect();
    let mut tells = value.split(' ').map(str::to_lowercase).filter(|word| !is_common(word));
    tells.all(|word| held.contains(&word))
}

/// Whether a text of these words tells what another one denies: all its numbers, or one of its
/// names where it has none.
fn tells_all(held: &[&str], denied: &[&str]) -> bool {
    let is_number = |word: &&&str| number_of(&word.to_lowercase()).is_some();
    let is_name = |word: &&&str| {
        word.starts_with(char::is_uppercase) && word.chars().count() >= NAME_CHARS_MIN
    };
    let numbers: Vec<&&str> = denied.iter().filter(is_number).collect();
    let mut names = denied.iter().filter(is_name);
    match numbers.is_empty() {
        true => names.any(|name| held.contains(name)),
        // The month of a day, and the unit of an amount, say which number is meant.
        false => denied.iter().filter(|word| !is_common(word)).all(|word| held.contains(word)),
    }
}

fn is_prose(one: &Candidate) -> bool {
    matches!(one.shape, Shape::Unit(Kind::Sentence | Kind::Item)) && !one.is_lead
}

/// Whether a text made by [`spaced`] tells something as new.
fn is_new(spaced: &str) -> bool {
    entries(NEW).any(|phrase| contains(spaced, phrase))
}

/// The words of a text between white space, without other marks at their ends: "9:30", "14".
fn bare_words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// A number and the words behind it, in lower case, or what it numbers.
struct Figure {
    value: f64,
    units: Vec<String>,
}

fn figures(text: &str) -> Vec<Figure> {
    let words: Vec<String> = text.unicode_words().map(str::to_lowercase).collect();
    let figure = |at: usize| {
        let value = number_of(&words[at])?;
        let behind = words[at + 1..].iter().take_while(|word| number_of(word).is_none());
        let units = behind.take(UNIT_WORDS).filter(|word| !is_common(word));
        let units: Vec<String> = units.cloned().collect();
        (!units.is_empty()).then_some(Figure { value, units })
    };
    // Units that are no words.
    let signed = quantities(text).into_iter().filter(|one| one.unit.contains(['%', '\u{B0}']));
    let signed = signed.map(|one| Figure { value: one.value, units: vec![one.unit] });
    let weeks = words.windows(2).filter(|two| is_entry(WEEKS, &two[0]));
    let weeks = weeks.filter_map(|two| number_of(&two[1]));
    let weeks = weeks.map(|value| Figure { value, units: vec![NUMBER_OF_WEEK.to_owned()] });
    (0..words.len()).filter_map(figure).chain(signed).chain(weeks).collect()
}

/// Whether two passages give different numbers of one thing: some word stands behind a number in
/// both, and behind no number that both have.
fn contradict(one: &str, other: &str) -> bool {
    let (one, other) = (figures(one), figures(other));
    let values = |of: &[Figure], unit: &String| -> Vec<f64> {
        of.iter().filter(|figure| figure.units.contains(unit)).map(|figure| figure.value).collect()
    };
    let mut units = one.iter().flat_map(|figure| &figure.units);
    units.any(|unit| {
        let (a, b) = (values(&one, unit), values(&other, unit));
        !b.is_empty() && !a.iter().any(|value| b.contains(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_before_are_told() {
        for (text, old) in [
            ("The fair is postponed from 18 May to 8 June 2026.", Some("18 May")),
            ("Rent: raised from 1.9 to 2.1 million EUR.", Some("1.9")),
            ("Die Messe wird vom 18. Mai auf den 8. Juni verschoben.", Some("18 Mai")),
            ("Le loyer passe de 620 euros à 680 euros.", Some("620 euros")),
            ("The shop moved from Tarn to Lumo.", None),
            ("It is open from 9 to 17.", None),
            ("Goods are raised from the cellar.", None),
        ] {
            let changed = changed_values(text);
            assert_eq!(changed.first().map(|(old, _)| old.as_str()), old, "{text}");
        }
        let rises = changed_values("The packet rises from 2 to 3 GB a week.");
        assert_eq!(rises, [("2".to_owned(), "3 GB".to_owned())]);
        assert!(tells_value("On 18.05.2026 it opens.", "18 May"));
        assert!(tells_value("Budget: 1.9 million.", "1.9") && !tells_value("2.1 million", "1.9"));
    }

    #[test]
    fn different_numbers_of_one_thing_contradict() {
        assert!(contradict("Reported within 3 working days.", "Tell us within five working days."));
        assert!(contradict("Speed is 15 km/h in all yards.", "Not faster than 10 km/h from May."));
        assert!(contradict("We pay 9.00 euro per kilogram.", "Our liability is 11.50 euro."));
        assert!(contradict("It comes in calendar week 12.", "One week later, week 14."));
        assert!(!contradict("It lasts a week.", "It comes in week 14."));
        assert!(!contradict("It takes 10 minutes.", "Up to 10 minutes are paid."));
        assert!(!contradict("It takes 10 minutes.", "It costs 15 euro."));
        assert!(!contradict("Kept since 3 March.", "In force for the whole site."));
    }
}
