//! Text around a passage without which it says something else, or nothing: the heading
//! "Forbidden" above an item, the version above a change, the vote after a decision.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::Reader;
use crate::passages::blocks::{Kind, Unit};
use crate::text::sentences::announces;
use crate::text::shown;
use crate::text::values::days;
use crate::text::words::{EDITIONS, contains, entries, is_entry, spaced};

/// Words of headings that say that what stands below is not so, not done or not allowed.
const AGAINST: &str = "\
    not|never|cannot|can't|don't|mustn't|avoid|forbidden|prohibited|banned|excluded|\
    exclusion|exclusions|exception|exceptions|excepted|except|exempt|exempted|exemptions|removed|\
    deprecated|discontinued|withdrawn|dropped|rejected|declined|refused|cancelled|canceled|\
    abolished|obsolete|unsupported|invalid|\
    nicht|nie|niemals|kein|keine|verboten|untersagt|unzulässig|ausgeschlossen|ausschlüsse|\
    ausnahmen|ausgenommen|entfernt|entfällt|abgelehnt|\
    pas|jamais|interdit|interdits|interdite|interdites|exclu|exclus|exclue|exclues|exclusions|\
    sauf|supprimé|supprimés|refusé|refusés|\
    nunca|prohibido|prohibidos|prohibida|prohibidas|excluido|excluidos|excluida|excluidas|\
    exclusiones|excepciones|excepto|salvo|eliminado|eliminados|rechazado|rechazados";
/// Words that deny only at the start of a heading: "No entry for", but "Invoice no. 12" and
/// "Prices without VAT".
const DENYING_FIRST: &str = "no|without|sin|sans|ohne";
/// Words of headings that say in which sense what stands below is meant.
const IN_FAVOUR: &str = "\
    allowed|permitted|tolerated|covered|included|supported|accepted|required|mandatory|optional|\
    recommended|planned|proposed|erlaubt|gestattet|versichert|inbegriffen|enthalten|empfohlen|\
    geplant|autorisé|autorisés|permis|compris|obligatoire|facultatif|recommandé|permitido|\
    incluido|obligatorio|opcional|recomendado";
/// Words between an edition and its day, in a heading that consists of them.
const OF: &str = "of|from|vom";
/// Verbs whose presence shows that a sentence says by itself what is so.
const VERBS: &str = "\
    is|are|was|were|be|been|has|have|had|do|does|did|must|may|can|will|shall|should|could|would|\
    need|needs|isn't|aren't|don't|can't|ist|sind|war|waren|wird|werden|darf|dürfen|muss|müssen|\
    kann|können|hat|haben|soll|sollen|est|sont|peut|peuvent|doit|doivent|ont|sera|son|está|están|\
    puede|pueden|debe|deben|hay|será";
/// Words that begin questions which yes or no does not answer.
const OPEN: &str = "\
    what|what's|which|who|when|where|why|how|was|welche|welches|wer|wann|wo|warum|que|quel|quels|\
    quelles|qu'est|qué|cuál|cuáles|quién";
/// Maximum number of characters in a heading that is shown with what stands below it.
const HEADING_CHARS_MAX: usize = 120;
/// Marks before a comment that explains the settings below it.
const COMMENT_MARKS: [char; 2] = [';', ' '];
/// Words of a vote, and the maximum number of words in a sentence that only tells one.
const VOTES: &str = "\
    in favour|in favor|against|abstention|abstentions|abstained|dafür|dagegen|enthaltung|\
    enthaltungen|pour|contre|a favor|en contra|abstenciones|abstención";
const VOTE_WORDS_MAX: usize = 14;

/// A heading that an answer shows before a passage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Above {
    /// The heading, without number and colon.
    pub(crate) text: String,
    /// Whether it is only a version or a day.
    pub(crate) is_edition: bool,
    /// The chunk that holds it and its characters there, if it was read.
    pub(crate) place: Option<(usize, Range<usize>)>,
}

impl Reader<'_> {
    /// The headings without which a unit would be misunderstood, outermost first.
    pub(super) fn needed_above(&self, unit: &Unit) -> Vec<Above> {
        let path = &self.blocks.sections[unit.section];
        let lead = unit.lead.clone().map_or("", |lead| &self.stretch.text[lead]);
        let own = &self.stretch.text[unit.bytes.clone()];
        let found = match unit.kind {
            Kind::Item => of_item(path, lead),
            Kind::Sentence => against(path, lead).filter(|_| !holds_any(own, VERBS)),
            Kind::Row if is_divided(unit) => Some(vec![lead]),
            Kind::Row => against(path, lead),
            Kind::Record | Kind::Field => comment(path).or_else(|| against(path, lead)),
            Kind::Line => None,
        };
        let above = |heading: &str| {
            let text = bare(&shown::shown(heading, self.has_marks)).to_owned();
            let place = match &unit.lead {
                Some(bytes) if heading == lead => self.place_of(bytes),
                _ => self.place_above(heading, unit.bytes.start),
            };
            Above { text, is_edition: is_edition(heading), place }
        };
        found.unwrap_or_default().into_iter().map(above).collect()
    }

    /// The place of the last line before a byte that ends with a heading.
    fn place_above(&self, heading: &str, end: usize) -> Option<(usize, Range<usize>)> {
        let text = &self.stretch.text;
        let start = text[..end].rfind(&format!("{heading}\n"))?;
        self.place_of(&(start..start + heading.len()))
    }

    fn place_of(&self, bytes: &Range<usize>) -> Option<(usize, Range<usize>)> {
        let chars = self.offsets.chars(&self.stretch.text, bytes);
        self.stretch.place(&chars).map(|placed| (placed.chunk, placed.in_chunk))
    }
}

/// Whether a row is announced by a line within its table.
fn is_divided(unit: &Unit) -> bool {
    let has_names = unit.cells.iter().any(|cell| !cell.name.is_empty());
    let is_inside =
        |lead: &Range<usize>| unit.head.as_ref().is_none_or(|head| lead.start > head.end);
    has_names && unit.lead.as_ref().is_some_and(is_inside)
}

/// The headings that a list item needs: a version or day, and one that says in which sense the
/// items below it are meant.
fn of_item<'t>(path: &'t [String], lead: &'t str) -> Option<Vec<&'t str>> {
    let edition = path.iter().rposition(|heading| is_edition(heading));
    let sense = in_sense(path, lead, |heading| is_against(heading) || is_in_favour(heading));
    let Some(edition) = edition else { return sense };
    // "Added", "Fixed": the part of a version that a change belongs to.
    let part = || path[edition + 1..].last().map(|part| vec![part.as_str()]);
    let below = sense.or_else(part).unwrap_or_default();
    Some([path[edition].as_str()].into_iter().chain(below).collect())
}

fn against<'t>(path: &'t [String], lead: &'t str) -> Option<Vec<&'t str>> {
    in_sense(path, lead, is_against)
}

/// The announcement of a passage if it says in which sense the passage is meant; else the nearest
/// heading if that does, and an announcement between both, which may turn the sense again. A
/// question does not, and what stands below one answers it.
fn in_sense<'t>(
    path: &'t [String],
    lead: &'t str,
    is_one: impl Fn(&str) -> bool,
) -> Option<Vec<&'t str>> {
    let nearest = path.last().map_or("", String::as_str);
    let asks = |text: &str| text.trim_end().ends_with(['?', '\u{FF1F}']);
    let is_short = |text: &str| text.chars().count() <= HEADING_CHARS_MAX;
    let is_fit = |text: &str| !asks(text) && is_short(text) && is_one(text);
    if is_fit(lead) {
        return Some(vec![lead]);
    }
    match announces(lead) {
        _ if !is_fit(nearest) => None,
        false => Some(vec![nearest]),
        true => (is_short(lead) && !asks(lead)).then(|| vec![nearest, lead]),
    }
}

/// The comment right above settings, which the parser takes for their heading.
fn comment(path: &[String]) -> Option<Vec<&str>> {
    let nearest = path.last()?;
    let is_one = nearest.starts_with("; ") && nearest.chars().count() <= HEADING_CHARS_MAX;
    is_one.then(|| vec![nearest.as_str()])
}

fn is_against(heading: &str) -> bool {
    let said = bare(heading);
    let first = said.unicode_words().next().unwrap_or_default();
    holds_any(said, AGAINST) || is_entry(DENYING_FIRST, first)
}

fn is_in_favour(heading: &str) -> bool {
    holds_any(heading, IN_FAVOUR)
}

/// Whether a text holds a word of a list.
fn holds_any(text: &str, list: &str) -> bool {
    text.unicode_words().any(|word| is_entry(list, word))
}

/// Whether a heading consists of a version or a day: "4.3.0 - 2026-10-07", "Release v2.1".
pub(crate) fn is_edition(heading: &str) -> bool {
    let (versions, rest): (Vec<&str>, Vec<&str>) =
        words_of(heading).partition(|word| is_version(word));
    let mut rest = rest.join(" ");
    let days = days(&rest);
    for (bytes, _) in days.iter().rev() {
        rest.replace_range(bytes.clone(), " ");
    }
    let mut words = rest.unicode_words();
    (!versions.is_empty() || !days.is_empty())
        && words.all(|word| is_entry(EDITIONS, word) || is_entry(OF, word))
}

/// Whether a question asks what is not so, and a heading says the same of what stands below it:
/// "What can't I do with it?" above "What you cannot do".
pub(crate) fn is_asked_against(question: &str, heading: &str) -> bool {
    let first = question.unicode_words().next().unwrap_or_default();
    is_entry(OPEN, first) && holds_any(question, AGAINST) && is_against(heading)
}

/// Whether a question names the version that a heading consists of, or its day if it has none.
pub(crate) fn names_edition(question: &str, heading: &str) -> bool {
    let mut versions = words_of(heading).filter(|word| is_version(word)).peekable();
    if versions.peek().is_some() {
        return versions.any(|version| words_of(question).any(|word| word == version));
    }
    let asked = days(question);
    days(heading).iter().any(|(_, day)| asked.iter().any(|(_, other)| day.terms() == other.terms()))
}

/// The words of a text, which may hold dots.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "[](),;:?!".contains(c));
    words.map(|word| word.trim_end_matches('.')).filter(|word| !word.is_empty())
}

/// Whether a word is a version: "4.3.0", "v2.1".
pub(crate) fn is_version(word: &str) -> bool {
    let number = word.strip_prefix(['v', 'V']).unwrap_or(word);
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    number.contains('.') && number.split('.').all(is_part)
}

/// A heading without its number, the mark of a comment, and its colon.
fn bare(heading: &str) -> &str {
    let trimmed = heading.trim().trim_start_matches(COMMENT_MARKS).trim_end_matches(':').trim_end();
    if is_edition(trimmed) {
        return trimmed;
    }
    let behind = trimmed.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ')');
    match behind.strip_prefix(' ') {
        Some(words) if words.starts_with(char::is_uppercase) => words,
        _ => trimmed,
    }
}

/// Whether a sentence only tells how a vote ended: "39 in favour, 5 against."
pub(crate) fn is_vote(sentence: &str) -> bool {
    let said = spaced(sentence);
    sentence.starts_with(|c: char| c.is_ascii_digit())
        && said.split_whitespace().count() <= VOTE_WORDS_MAX
        && entries(VOTES).filter(|words| contains(&said, words)).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_of_versions_and_days_are_seen() {
        for heading in ["4.3.0 - 2026-10-07", "Release v2.1", "[1.2.0] (3 May 2025)", "3 May 2025"]
        {
            assert!(is_edition(heading), "{heading}");
        }
        for heading in ["4.3 Boilers", "Version history", "Minutes of 3 May", "4. Removed", "2"] {
            assert!(!is_edition(heading), "{heading}");
        }
    }

    /// Goal: the place of the line that divides a table is in the table, not where a line before it
    /// ends in the same words.
    #[test]
    fn the_place_of_a_divider_is_in_its_table() {
        use crate::passages::candidates::read;
        use lodestone_types::RequestContext;
        let text = "All about SOFT\n\nOur cheeses.\n\n| Cheese | Weeks | Price |\n|---|---|---|\n\
            | SOFT | | |\n| Brie | 4 | 9 |\n| HARD | | |\n| Gouda | 20 | 12 |\n";
        let one = crate::testing::chunk("dairy", 0, text, 0.6);
        let reading = read(&RequestContext::default(), &[&one], (1, 1), |_| true).unwrap();
        let row = reading.candidates.iter().find(|one| one.shown().contains("Brie")).unwrap();
        let place = row.parts[0].above[0].place.clone();
        let start = text.find("| SOFT").unwrap() + 2;
        assert_eq!(place, Some((0, start..start + 4)));
    }

    #[test]
    fn headings_that_turn_what_is_below_are_seen() {
        for heading in
            ["4 What may not be burnt", "Exceptions:", "No entry for", "Nicht versichert"]
        {
            assert!(is_against(heading), "{heading}");
        }
        for heading in ["Invoice no. 12", "Opening hours", "Notes on kilns"] {
            assert!(!is_against(heading), "{heading}");
        }
    }

    #[test]
    fn votes_are_seen() {
        assert!(is_vote("12 in favour, 3 against, 1 abstention."));
        assert!(!is_vote("12 boats sail against the wind."));
        assert!(!is_vote("The motion was carried, 12 in favour and 3 against."));
    }
}
