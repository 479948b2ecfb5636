//! Passages that contradict each other by giving different numbers for one thing. The later
//! document takes precedence.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Kind;
use crate::passages::candidates::{Candidate, Shape};
use crate::selection::choose::Choice;
use crate::text::numbers::number_of;
use crate::text::terms::{is_common, terms};
use crate::text::values::{Day, days, quantities};
use crate::text::words::{contains, entries, is_entry, spaced};

/// Number of words after a number among which its unit is sought: "five working days".
const UNIT_WORDS: usize = 2;

/// Words before the number of a calendar week, and the unit that such numbers get.
const WEEKS: &str = "week|kw|woche|semaine|semana";
const NUMBER_OF_WEEK: &str = "number of a week";

/// Maximum drop in similarity to the question, and minimum confidence, of a passage from a later
/// document that contradicts the first one.
const LATER_DROP_MAX: f32 = 0.1;
const LATER_CONFIDENCE_MIN: f32 = 0.8;
/// Maximum drop in similarity of a later passage that holds all the question's words that the first
/// one holds.
const SAME_WORDS_DROP_MAX: f32 = 0.3;
/// Minimum share of the question's terms that these words make up.
const SAME_SHARE_MIN: f32 = 0.5;
/// Minimum share of the question's terms in a passage that one which contradicts it has too.
const CONTRADICTED_SHARE_MIN: f32 = 0.5;
/// Maximum drop in similarity of a sentence that marks the number of the first passage as
/// superseded.
pub(super) const REPLACING_DROP_MAX: f32 = 0.4;
/// Words before a number that no longer holds, and the minimum number of its digits.
const OLD: &str = "\
    so far|until now|up to now|previously|instead of|formerly|up from|down from|still say|\
    still says|still states|no longer|and not|bisher|statt|nicht mehr|jusqu'ici|au lieu de|\
    hasta ahora|en lugar de";
const OLD_DIGITS_MIN: usize = 2;
/// Phrases that move or change a value, words before its old and its new state ("postponed from 3
/// May to 9 June"), word limits of both, and articles skipped before the new one.
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
/// The word of a denial, the marks that must precede it, the number of words examined after it, and
/// the minimum number of letters in a name.
const DENYING: &str = "not ";
const BEFORE_DENYING: &[&str] = &[", ", "(", " and "];
/// Words after what is denied.
const BEHIND_DENIED: &str = "as|like|because|but|which|that|any|wie|weil|comme|parce|como|porque";
const DENIED_WORDS_MAX: usize = 5;
const NAME_CHARS_MIN: usize = 4;
/// Words that mark a statement as new or changed.
const NEW: &str = "\
    from now on|no longer|any more|instead of|so far|until now|up to now|previously|as of|\
    with effect from|changed to|changes to|raised to|lowered to|reduced to|increased to|goes up|\
    goes down|rises to|falls to|moved to|postponed to|put off to|brought forward to|decided|\
    decision|ab sofort|künftig|bisher|nicht mehr|statt|beschlossen|désormais|jusqu'ici|au lieu de|\
    décidé|hasta ahora|en lugar de|ya no|decidido";

impl Choice<'_> {
    /// A passage of a later document that is about as close to the question and contradicts the
    /// first one.
    pub(crate) fn later(&self, first: usize) -> Option<usize> {
        let one = self.candidate(first);
        if self.question.compares {
            return None;
        }
        if let Some(right) = self.put_right(first).or_else(|| self.of_addendum(first)) {
            return Some(right);
        }
        let of_first = &self.matches.own[first];
        self.best(|at| {
            // A few shared terms occur in many passages; only a large share of them shows that the
            // same thing is meant.
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
            // A row of a plan may be denied by any text: its dates are not those of its writing.
            let is_of_plan = one.has_values() && self.denies(at, first);
            let is_later = (is_of_plan
                || self.editions.is_later(self.candidate(at).hit, one.hit)
                || self.moves(at, first))
                && self.scores[at].cosine >= self.scores[first].cosine - drop
                && self.scores[at].confidence(&self.evidence) >= LATER_CONFIDENCE_MIN;
            is_later.then(|| self.relevance(at))
        })
    }

    /// Whether a sentence of another text denies something that the other passage states: "1 May,
    /// not 1 April".
    pub(crate) fn denies(&self, at: usize, other: usize) -> bool {
        let (one, two) = (self.candidate(at), self.candidate(other));
        let held = two.shown();
        let held: Vec<&str> = bare_words(&held).collect();
        one.stretch != two.stretch
            && is_prose(one)
            && !self.matches.own[at].is_disjoint(&self.matches.own[other])
            && denied(&one.shown()).iter().any(|told| tells_all(&held, told))
    }

    /// Whether a sentence of another text, not dated before the other's, says that the value stated
    /// there has been moved or changed: "postponed from 3 May to 9 June".
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

    /// Whether the first passage shows that the other one no longer holds.
    pub(crate) fn overtakes(&self, first: usize, other: usize) -> bool {
        let hits = (self.candidate(first).hit, self.candidate(other).hit);
        let is_later = self.editions.is_later(hits.0, hits.1)
            && (self.contradicts(first, other) || self.denies(first, other));
        is_later || self.moves(first, other)
    }

    /// Whether a sentence of another text says that the other's statement has changed: it covers
    /// the same part of the question and presents a number as new.
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

    /// Whether a sentence of another text gives a number of the other passage as the former one:
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

    /// Whether rows of two texts describe the same thing: they have the same column names and the
    /// same first value, apart from a mark such as "(new)".
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

    /// Whether sentences of two texts state different numbers on what the question asks.
    pub(crate) fn contradicts(&self, at: usize, other: usize) -> bool {
        let (one, two) = (self.candidate(at), self.candidate(other));
        // One word in common is no sign that both are about the same thing.
        let shares = || {
            let (weights, own) = (&self.matches.weights, &self.matches.own);
            let both = weights.share(own[at].intersection(&own[other]));
            both > 0.0 && both >= CONTRADICTED_SHARE_MIN * weights.share(own[other].iter())
        };
        one.stretch != two.stretch
            && is_prose(one)
            && is_prose(two)
            && shares()
            && contradict(&one.shown(), &two.shown())
    }
}

/// The words that a text denies: "1 April" in "from 1 May, not 1 April".
pub(super) fn denied(text: &str) -> Vec<Vec<&str>> {
    let lower = text.to_ascii_lowercase();
    let behind = lower.match_indices(DENYING).filter_map(|(at, word)| {
        let rest = Some(&text[at + word.len()..])
            .filter(|_| BEFORE_DENYING.iter().any(|mark| text[..at].ends_with(mark)))?;
        let is_digit = |at: usize| rest.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
        // The comma of "8,700" ends nothing.
        let ends = rest.match_indices([',', '.', ';', ':', '(', ')', '\n']);
        let mut ends = ends.filter(|(at, _)| !(is_digit(at.wrapping_sub(1)) && is_digit(at + 1)));
        let phrase = &rest[..ends.next().map_or(rest.len(), |(at, _)| at)];
        let words = bare_words(phrase).take_while(|word| !is_entry(BEHIND_DENIED, word));
        Some(words.take(DENIED_WORDS_MAX).collect())
    });
    behind.collect()
}

/// The former values stated in a text, with the words of the new ones: "1.9" and "2.1 million" in
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

/// Whether a text states a value: its day, or all of its significant words.
fn tells_value(held: &str, value: &str) -> bool {
    let is_same = |one: Day, other: Day| (one.month, one.day) == (other.month, other.day);
    if let Some((_, old)) = days(value).into_iter().next() {
        return days(held).into_iter().any(|(_, day)| is_same(day, old));
    }
    let held: Vec<String> = bare_words(held).map(str::to_lowercase).collect();
    let mut tells = value.split(' ').map(str::to_lowercase).filter(|word| !is_common(word));
    tells.all(|word| held.contains(&word))
}

/// Whether the words of a text state what another text denies: all significant words if these
/// include numbers, else one of its names.
pub(super) fn tells_all(held: &[&str], denied: &[&str]) -> bool {
    let is_number = |word: &&&str| number_of(&word.to_lowercase()).is_some();
    let is_name = |word: &&&str| {
        word.starts_with(char::is_uppercase) && word.chars().count() >= NAME_CHARS_MIN
    };
    let numbers: Vec<&&str> = denied.iter().filter(is_number).collect();
    let mut names = denied.iter().filter(is_name);
    match numbers.is_empty() {
        true => names.any(|name| held.contains(name)),
        // The month of a date, or the unit of an amount, shows which number is meant.
        false => denied.iter().filter(|word| !is_common(word)).all(|word| held.contains(word)),
    }
}

fn is_prose(one: &Candidate) -> bool {
    matches!(one.shape, Shape::Unit(Kind::Sentence | Kind::Item)) && !one.is_lead
}

/// Whether a text made by [`spaced`] marks something as new.
fn is_new(spaced: &str) -> bool {
    entries(NEW).any(|phrase| contains(spaced, phrase))
}

/// The words of a text, split at white space and stripped of punctuation at their ends: "9:30",
/// "14".
pub(super) fn bare_words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// A number with its units: the words after it in lower case, a sign, or the kind of things it
/// numbers.
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
    // Units that are signs instead of words.
    let signed = quantities(text).into_iter().filter(|one| one.unit.contains(['%', '\u{B0}']));
    let signed = signed.map(|one| Figure { value: one.value, units: vec![one.unit] });
    let weeks = words.windows(2).filter(|two| is_entry(WEEKS, &two[0]));
    let weeks = weeks.filter_map(|two| number_of(&two[1]));
    let weeks = weeks.map(|value| Figure { value, units: vec![NUMBER_OF_WEEK.to_owned()] });
    (0..words.len()).filter_map(figure).chain(signed).chain(weeks).collect()
}

/// Whether two passages give different numbers for one thing: some unit has numbers in both, and
/// none of them in common.
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
    fn denied_words_end_where_a_clause_begins() {
        let told = |text| denied(text).into_iter().next().unwrap_or_default().join(" ");
        assert_eq!(told("The mast cost 9,400, not 8,700 as planned."), "8,700");
        assert_eq!(told("Next: 9 May, Loft (NOT Red Hall)."), "Red Hall");
        assert_eq!(told("It opens on 1 May, not 1 April."), "1 April");
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
