//! Dates among the tokens of a sentence.

use crate::tokens::{Form, Token};
use crate::words;

/// Month names in German, Spanish, French and Russian that differ from the English ones.
const FOREIGN_MONTHS: &[&str] = &[
    "januar", "enero", "janvier", "января", "februar", "febrero", "février", "февраля", "märz",
    "marzo", "mars", "марта", "abril", "avril", "апреля", "mai", "mayo", "мая", "juni", "junio",
    "juin", "июня", "juli", "julio", "juillet", "июля", "agosto", "août", "августа", "septiembre",
    "septembre", "сентября", "oktober", "octubre", "octobre", "октября", "noviembre", "novembre",
    "ноября", "dezember", "diciembre", "décembre", "декабря",
];

/// Returns the end of the date that starts at token `at`, if there is one. A year by itself is not
/// a date, since most four-digit numbers are not years, unless the preceding word implies it.
///
/// "3 May 1950", "3. Mai", "May 3, 1950", "May 1950", "2024-05-03", "12/31/2024", "in 1950".
pub(super) fn date_at(text: &str, tokens: &[Token], at: usize) -> Option<usize> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text(text));
    match tokens[at].form {
        Form::Number if is_written_out(word(at)) => Some(at + 1),
        Form::Number if is_day(word(at)) => {
            let month = if matches!(word(at + 1), "." | "of" | "de") { at + 2 } else { at + 1 };
            if !is_month(word(month)) {
                return None;
            }
            let year = if matches!(word(month + 1), "," | "de") { month + 2 } else { month + 1 };
            Some(if is_year(word(year)) { year + 1 } else { month + 1 })
        }
        Form::Number if is_year(word(at)) => {
            let before = if at == 0 { "" } else { word(at - 1) };
            let announces = [
                "in", "In", "since", "Since", "until", "by", "By", "from", "From", "of", "to",
                "between", "during", "after", "before", "around", "en", "im", "and", "year", "em",
                "born", "the", "The", "a", "A", "в",
            ]
            .contains(&before);
            let is_enclosed = before == "(" && !word(at + 1).starts_with(char::is_alphanumeric);
            let ends_span = matches!(before, "-" | "\u{2013}" | "\u{2014}")
                && is_year(word(at.saturating_sub(2)));
            let is_amount = tokens.get(at + 1).is_some_and(|next| {
                next.form == Form::Lower
                    && !next.senses.is_grammar()
                    && next.text(text).ends_with('s')
            });
            ((announces || ends_span || is_enclosed) && !is_amount).then_some(at + 1)
        }
        // For texts entirely in lower case.
        Form::Lower if words::is_month(word(at)) && is_year(word(at + 1)) => Some(at + 2),
        Form::Capital if is_month(word(at)) => {
            let has_day = is_day(word(at + 1));
            let behind = if has_day { at + 2 } else { at + 1 };
            let year = if word(behind) == "," { behind + 1 } else { behind };
            match (is_year(word(year)), has_day) {
                (true, _) => Some(year + 1),
                (false, true) => Some(behind),
                (false, false) => None,
            }
        }
        _ => None,
    }
}

/// Whether the word is a month; includes the shortest forms, which are also names and verbs ("Mar",
/// "Dec").
fn is_month(word: &str) -> bool {
    let folded = word.to_lowercase();
    words::is_month(&folded) || FOREIGN_MONTHS.contains(&&*folded)
}

/// Whether the word is a day of the month, with or without an ordinal suffix.
fn is_day(word: &str) -> bool {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_ordinal = matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th");
    is_ordinal && digits.parse().is_ok_and(|day: u8| (1..=31).contains(&day))
}

fn is_year(word: &str) -> bool {
    let is_number = word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    is_number && ("1000".."2100").contains(&word)
}

/// Whether the word is a numeric date: "2024-05-03", "12/31/2024", "31.12.2024".
fn is_written_out(word: &str) -> bool {
    let Some(separator) = word.chars().find(|c| !c.is_ascii_digit()) else { return false };
    if !matches!(separator, '-' | '/' | '.') {
        return false;
    }
    let [first, middle, last] = word.split(separator).collect::<Vec<_>>()[..] else { return false };
    let is_day = |part: &str| is_day(part) && part.len() <= 2;
    let is_short_year = |part: &str| part.len() == 2 && part.parse::<u8>().is_ok();
    let ends_in_year = is_year(last) || separator == '/' && is_short_year(last);
    is_day(middle) && (is_year(first) && is_day(last) || is_day(first) && ends_in_year)
}
