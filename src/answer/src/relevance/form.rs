//! Form: signs for and against a passage other than the words it shares with the question.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::{Cell, Form, Kind};
use crate::passages::candidates::{Candidate, Shape};
use crate::question::definitions::defines;
use crate::question::phrases::ENDED;
use crate::question::phrases::{LESSONS, MEANS, SUMS};
use crate::question::wish::{Question, Wanted};
use crate::relevance::agents::{AGENT_BONUS, has_agent};
use crate::relevance::causes::{is_labelled_cause, tells_cause};
use crate::relevance::denials::{asks_denied, denies, is_below_denial};
use crate::relevance::stated::states_each;
use crate::relevance::suppositions::supposes;
use crate::rows::ranges::{is_out_of_range, span_holds};
use crate::text::terms::terms;
use crate::text::values::{days, has_money};
use crate::text::words::{self, Asked, contains, entries, holds, is_entry, spaced, tells_negation};
use crate::versions::editions::Editions;
use lodestone_types::RetrievedChunk;

/// Bonus for a passage that holds the kind of thing asked for.
pub(crate) const KIND_BONUS: f32 = 0.1;
/// A heading without text below it is a poor answer.
const LEAD_MALUS: f32 = 0.35;
/// Malus for quoted mail, which is older than the mail that answers it.
const QUOTED_MALUS: f32 = 0.3;
/// A statement that the next sentence denies is a poor answer.
const DENIED_MALUS: f32 = 0.4;
/// A register entry ended by another one should only answer if nothing else does.
const ENDED_ENTRY_MALUS: f32 = 0.8;
/// The header of a mail or of a document only answers questions about the mail or document.
const MAIL_HEAD_MALUS: f32 = 0.4;
/// A record of something that is over should answer a question about the present only as a last
/// resort.
const ENDED_MALUS: f32 = 0.3;
/// A sentence that merely says where to find the answer should only answer as a last resort.
const POINTER_MALUS: f32 = 0.6;
/// Malus for a row that states no cause, if one is asked for.
const CAUSELESS_MALUS: f32 = 0.3;
/// A line of a log or of code should only answer as a last resort.
const LINE_MALUS: f32 = 0.05;
/// Malus for a line of JSON if it is asked what something is.
const DATA_MALUS: f32 = 0.3;
/// Bonus for the first passage below a heading that names the steps asked for.
const BELOW_BONUS: f32 = 0.1;
/// Malus for a sentence that supposes what the question asks how to do.
const SUPPOSED_MALUS: f32 = 0.15;
/// A passage in exactly the form asked for gains as much as for a sixth of the question's terms.
const FORM_BONUS: f32 = 0.1;
/// Bonus for a passage that states a negation, or has one above it, if one is asked for. "Why could
/// he not get in" asks for a cause instead.
const NEGATION_BONUS: f32 = 0.2;
/// Bonus that puts a whole list or procedure, if asked for, ahead of each of its items.
const WHOLE_BONUS: f32 = 0.25;
/// Malus for a whole list of something else.
const WHOLE_MALUS: f32 = 0.5;
/// Bonus for a passage with the day something ends, if that is asked for.
pub(crate) const END_BONUS: f32 = 0.3;
/// Maximum number of words between such a day and the word for the end.
const END_WORDS_MAX: usize = 2;
/// Malus for a passage on the thing that the question asks for others than.
pub(crate) const EXCLUDED_MALUS: f32 = 0.4;
/// A row whose range does not contain the number asked for is about something else.
const RANGE_MALUS: f32 = 0.5;

/// Names of the lines in a mail header, and of the two that only mails have.
const MAIL_HEAD: &str = "\
    from|to|cc|bcc|subject|date|sent|reply to|von|an|betreff|datum|gesendet|de|à|objet|envoyé|para|\
    asunto|fecha|enviado";
const MAIL_SUBJECT: &str = "subject|betreff|objet|asunto";
const MAIL_SENT: &str = "sent|gesendet|envoyé|enviado";
/// Names of fields at the top of a document, which describe the document.
const FRONT_FIELDS: &str = "\
    date|date of incident|date of report|date of meeting|incident date|report date|author|authors|\
    written by|report by|reported by|prepared by|checked by|reviewed by|approved by|compiled by|\
    recorded by|minutes by|minutes taken by|edition|version|revision|last edited|last changed|\
    last updated|updated|corrected on|printed|document|document no|report no|page|pages|\
    distribution|copies to|datum|verfasser|autor|verfasst von|erstellt von|geprüft von|stand|\
    fassung|auteur|rédigé par|version du|fecha|redactado por|versión";

/// Characters that begin a line of JSON.
const JSON: [char; 3] = ['"', '{', '['];
/// Characters before a command that is typed into a terminal.
const PROMPT: &str = "$ ";

/// Words in the names of columns that hold people, and the number of words in a full name.
const PERSON_COLUMNS: &str = "\
    name|who|person|by|from|owner|keeper|lead|leader|head|manager|contact|responsible|author|\
    deputy|with|tutor|driver|host|staff|employee|member|wer|leitung|zuständig|verantwortlich|\
    nom|qui|responsable|nombre|quién|encargado";
const NAME_WORDS: std::ops::RangeInclusive<usize> = 2..=4;

/// Phrases of a sentence that refers the reader elsewhere, words for such places, and the maximum
/// number of words in such a sentence.
const POINTERS: &str = "\
    is in the|are in the|is in our|are in our|named in|listed in|is found in|are found in|see the|\
    given in|is shown in|are shown in|set out in|steht in|stehen in|siehe|figure dans|\
    figurent dans|voir|está en|están en|figura en|figuran en|véase";
const ELSEWHERE: &str = "\
    list|table|register|manual|handbook|annex|appendix|section|chapter|file|folder|sheet|matrix|\
    schedule|page|document|contract|agreement|statutes|policy|liste|tabelle|verzeichnis|handbuch|\
    anhang|abschnitt|kapitel|blatt|vertrag|satzung|tableau|registre|annexe|feuille|contrat|statuts|\
    lista|tabla|registro|anexo|hoja|contrato|estatutos";
const POINTER_WORDS_MAX: usize = 12;

/// Nouns for measures taken after an event, and headings above them.
pub(crate) const DEED_NOUNS: &str = "\
    measures|actions|changes|consequences|improvements|lessons|remedies|tasks|duties|steps|\
    massnahmen|maßnahmen|aufgaben|mesures|tâches|medidas|acciones|tareas";
const DEED_HEADINGS: &str = "\
    what we change|what we changed|what changes|what we do|what we did|what we will do|\
    what to do|what was done|what is done|done|\
    what follows|what happens next|action|actions|measures|corrective actions|follow up|\
    consequences|lessons|lessons learned|next steps|improvements|to do|maßnahmen|mesures|medidas|\
    acciones";

/// The headings that remain if lessons are asked for, because these are not yet deeds.
const LESSON_HEADINGS: &str = "\
    lessons|lessons learned|lessons learnt|what we learned|what we learnt|conclusions|takeaways|\
    what we change|what changes|what we will do|what follows|improvements|lehren|leçons|lecciones";

/// Phrases for a former state.
const ONCE: &str = "\
    last year's|of last year|used to be|used to cost|letztes jahr noch|\
    l'année dernière encore|el año pasado todavía";
/// Words before the day on which something ends.
const ENDS: &str = "\
    until|till|to|ends|end|ending|expires|expired|through|bis|endet|ende|jusqu'au|au|expire|hasta|\
    al|vence|termina";

/// The value if a condition holds, else 0.
pub(crate) fn value_if(holds: bool, value: f32) -> f32 {
    if holds { value } else { 0.0 }
}

/// The part of a candidate's relevance that comes from its form.
pub(crate) fn form(
    question: &Question,
    candidate: &Candidate,
    (above, chunk): (&BTreeSet<String>, &RetrievedChunk),
    editions: &Editions,
) -> f32 {
    let shown = candidate.shown();
    let mut form = -value_if(is_quoted_mail(candidate, chunk), QUOTED_MALUS);
    let is_head = is_poor_head(question, candidate) || is_front_matter(question, candidate);
    form -= value_if(is_head, MAIL_HEAD_MALUS);
    let holds_kind = match question.asked {
        Asked::Person if candidate.has_values() => {
            candidate.cells.iter().any(|cell| tells_somebody(cell, &question.lower))
        }
        asked => holds(asked, &shown, &question.lower),
    };
    if holds_kind {
        form += KIND_BONUS;
    }
    if candidate.is_lead {
        form -= LEAD_MALUS;
    }
    if candidate.is_denied && !question.is_negated {
        form -= DENIED_MALUS;
    }
    if candidate.is_ended && !question.wants_of_before(&shown) {
        form -= ENDED_ENTRY_MALUS;
    }
    let is_past = |cell: &Cell| question.asked != Asked::Date && editions.is_over(cell);
    let is_over = || {
        let mut cells = candidate.cells.iter();
        editions.is_of_past_year(&candidate.cells)
            || cells.any(|cell| is_ended(&cell.value) || is_past(cell))
    };
    if !question.is_of_past && candidate.cells.len() > 1 && is_over() {
        form -= ENDED_MALUS;
    }
    form += of_words(question, candidate, &shown);
    form += value_if(has_agent(question, candidate), AGENT_BONUS);
    form -= value_if(is_poor_line(question, candidate, &shown), LINE_MALUS);
    let is_data = || candidate.shape == Shape::Unit(Kind::Line) && shown.starts_with(JSON);
    form -= value_if(question.thing.is_some() && is_data(), DATA_MALUS);
    form += value_if(is_below_its_name(question, candidate), BELOW_BONUS);
    form -= value_if(supposes(question, &shown), SUPPOSED_MALUS);
    let tells_why = || is_labelled_cause(&shown) || tells_cause(&shown);
    if question.wanted == Wanted::Cause && candidate.has_values() && !tells_why() {
        form -= CAUSELESS_MALUS;
    }
    if matches!(candidate.shape, Shape::Whole(Form::List | Form::Table)) {
        // A list must be of the kind named above it.
        let noun = question.noun.as_deref().map(terms);
        let is_of_noun = noun.is_none_or(|noun| !noun.is_disjoint(above))
            || is_of_deeds(question, candidate)
            || states_each(question, candidate);
        // "What must I not bring?" is not answered by a list of everything one must bring.
        let is_of_other = asks_denied(question) && !denies(candidate);
        form += if is_of_noun && !is_of_other { WHOLE_BONUS } else { -WHOLE_MALUS };
    }
    let defined = || question.thing.as_ref().is_some_and(|thing| defines(&shown, thing));
    form += value_if(candidate.cells.len() < 2 && !candidate.is_lead && defined(), FORM_BONUS);
    let is_headed = || !asks_denied(question) && tells_negation(&candidate.heading);
    let denies = || tells_negation(&shown) || is_below_denial(candidate) || is_headed();
    if question.is_negated && question.wanted != Wanted::Cause && denies() {
        form += NEGATION_BONUS;
    }
    if question.quantities.iter().any(|one| is_out_of_range(&candidate.cells, one)) {
        form -= RANGE_MALUS;
    }
    if question.days.iter().any(|day| span_holds(&candidate.cells, *day) == Some(false)) {
        form -= RANGE_MALUS;
    }
    form
}

/// Whether a question for a number or a time finds none in the passage. `holds_kind` tells whether
/// the passage holds the kind of thing asked for.
pub(crate) fn lacks_kind(question: &Question, holds_kind: bool, passage: &str) -> bool {
    match question.asked {
        Asked::Number => !holds_kind,
        Asked::Date if words::wants_weekday(&question.lower) => !holds_kind,
        Asked::Date => !holds_kind && !words::tells_time(passage),
        Asked::Person | Asked::Other => false,
    }
}

/// Whether a passage is the first one below a heading whose words are all in a question for steps.
fn is_below_its_name(question: &Question, candidate: &Candidate) -> bool {
    let named = || {
        let heading = terms(&candidate.heading);
        !heading.is_empty() && heading.is_subset(&terms(question.last()))
    };
    let is_first = candidate.opens_section && matches!(candidate.shape, Shape::Unit(_));
    question.wanted == Wanted::Steps && is_first && named()
}

/// Whether a passage is a line of a log, a chat or code other than the command for the steps asked
/// for.
fn is_poor_line(question: &Question, candidate: &Candidate, shown: &str) -> bool {
    let is_command = question.wanted == Wanted::Steps && shown.starts_with(PROMPT);
    candidate.shape == Shape::Unit(Kind::Line) && !is_command
}

/// The part that comes from words and phrases in the passage.
fn of_words(question: &Question, candidate: &Candidate, shown: &str) -> f32 {
    let said = spaced(shown);
    let has = |list: &str| entries(list).any(|phrase| contains(&said, phrase));
    let is_text = candidate.cells.is_empty();
    let is_of_money = question.is_of_money && has_money(shown);
    let is_total = question.total.is_some() && (has(SUMS) || has(MEANS));
    let is_once = is_text && !question.is_of_past && has(ONCE);
    let is_pointer = is_text && !question.asks_where && points_elsewhere(shown);
    value_if(is_of_money, KIND_BONUS) + value_if(is_total, KIND_BONUS)
        - value_if(is_once, ENDED_MALUS)
        - value_if(is_pointer, POINTER_MALUS)
}

/// Whether a passage is below a heading for measures taken, if these are asked for.
pub(crate) fn is_of_deeds(question: &Question, candidate: &Candidate) -> bool {
    let asks = || question.noun.as_deref().is_some_and(|noun| is_entry(DEED_NOUNS, noun));
    let heading = spaced(&candidate.heading);
    let headings = match question.noun.as_deref() {
        Some(LESSONS) => LESSON_HEADINGS,
        _ => DEED_HEADINGS,
    };
    asks() && entries(headings).any(|phrase| contains(&heading, phrase))
}

/// Whether a value says that its record has ended: "ended 2025-04-30".
fn is_ended(value: &str) -> bool {
    value.unicode_words().next().is_some_and(|first| is_entry(ENDED, first))
}

/// Whether a value of a row is a person whom the lower-case question does not name, judged by the
/// column's name or by capitalised words.
fn tells_somebody(cell: &Cell, question: &str) -> bool {
    let column = spaced(&cell.name.replace('_', " "));
    let name = cell.value.split(['<', '(', ',']).next().unwrap_or_default();
    let words: Vec<&str> = name.split_whitespace().collect();
    let is_name = |word: &&str| {
        let is_part = |c: char| c.is_alphabetic() || matches!(c, '.' | '-' | '\'' | '\u{2019}');
        word.starts_with(char::is_uppercase) && word.chars().all(is_part)
    };
    let is_new = !question.contains(&name.trim().to_lowercase());
    let is_named = || entries(PERSON_COLUMNS).any(|word| contains(&column, word));
    let is_full = || NAME_WORDS.contains(&words.len()) && words.iter().all(is_name);
    is_new && words.first().is_some_and(is_name) && (is_named() || is_full())
}

/// Whether a text states the day on which something ends.
pub(crate) fn tells_end(text: &str) -> bool {
    days(text).into_iter().any(|(bytes, _)| {
        let mut before = text[..bytes.start].unicode_words().rev().take(END_WORDS_MAX);
        before.any(|word| is_entry(ENDS, word))
    })
}

/// Whether a short sentence refers the reader elsewhere: "Fees are in the price list."
fn points_elsewhere(text: &str) -> bool {
    let said = spaced(text);
    let words = said.split_whitespace().count();
    words <= POINTER_WORDS_MAX
        && !text.contains(|c: char| c.is_ascii_digit())
        && entries(POINTERS).any(|phrase| contains(&said, phrase))
        && entries(ELSEWHERE).any(|word| contains(&said, word))
}

/// Whether a passage is the head of a mail without anything that the question may ask for: a head
/// without a subject tells who wrote and when, and nothing else.
fn is_poor_head(question: &Question, candidate: &Candidate) -> bool {
    let mut names = candidate.cells.iter().map(|cell| cell.name.to_lowercase());
    let asks_of_head = matches!(question.asked, Asked::Person | Asked::Date);
    !question.is_of_mail
        && is_of_mail_head(candidate)
        && (!asks_of_head || names.any(|name| is_entry(MAIL_SUBJECT, &name)))
}

/// Whether a passage consists only of fields that describe its document, none of which the question
/// may ask for.
fn is_front_matter(question: &Question, candidate: &Candidate) -> bool {
    let names = || candidate.cells.iter().map(|cell| spaced(&cell.name.replace('_', " ")));
    let asks_of_it = matches!(question.asked, Asked::Person | Asked::Date);
    !asks_of_it
        && candidate.cells.len() > 1
        && names().all(|name| is_entry(FRONT_FIELDS, name.trim()))
        && !names().any(|name| contains(&spaced(question.last()), name.trim()))
}

/// Whether a passage consists only of mail header lines.
pub(crate) fn is_of_mail_head(candidate: &Candidate) -> bool {
    let mut names = candidate.cells.iter().map(|cell| cell.name.to_lowercase());
    let has_address = candidate.cells.iter().any(|cell| cell.value.contains('@'));
    let is_of_mail = |name: &String| is_entry(MAIL_SUBJECT, name) || is_entry(MAIL_SENT, name);
    candidate.cells.len() > 1
        && (has_address || names.clone().any(|name| is_of_mail(&name)))
        && names.all(|name| is_entry(MAIL_HEAD, &name))
}

/// Whether a passage in a mail is quoted from an earlier one.
fn is_quoted_mail(candidate: &Candidate, chunk: &RetrievedChunk) -> bool {
    let name = chunk.source.filename.to_lowercase();
    let is_mail = [".eml", ".msg", ".mbox"].iter().any(|end| name.ends_with(end));
    is_mail && {
        let part = &candidate.parts[0];
        let before = chunk.text.chars().take(part.chars.start).collect::<String>();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_mark = |text: &str| text.trim_start().starts_with(['>', '|']);
        is_mark(&part.shown) || (part.chunk == candidate.hit && is_mark(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_time_that_is_asked_for_must_be_there() {
        let of = |question: &str, holds, text| lacks_kind(&Question::new(question), holds, text);
        let (number, date) = ("How many halls are there?", "When does it open?");
        assert!(of(number, false, ""));
        assert!(!of(number, true, ""));
        assert!(!of("Why?", false, ""));
        assert!(of(date, false, "The hall is behind the chapel, ring 999."));
        assert!(of("Which day of the week is it open?", false, "Every morning."));
        for text in ["As soon as the bell rings.", "From 6.30 pm.", "Jeden Tag", "春天"] {
            assert!(!of(date, false, text), "{text}");
        }
    }
}
