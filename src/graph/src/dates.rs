//! Dates among the tokens of a sentence.

use crate::tokens::{Form, Token};
use crate::words;

/// Where the date ends that begins at token `at`, if one does: a year alone does not, because
/// most numbers of four digits are none, unless a word before says so.
///
/// "3 May 1950", "3. Mai", "May 3, 1950", "May 1950", "2024-05-03", "12/31/2024", "in 1950".
pub(super) fn date_at(text: &str, tokens: &[Token], at: usize) -> Option<usize> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text(text));
    match tokens[at].form {
        Form::Number if is_written_out(word(at)) => Some(at + 1),
        Form::Number if day(word(at)).is_some() => {
            let month = if matches!(word(at + 1), "." | "of" | "de") { at + 2 } else { at + 1 };
            month_at(word(month))?;
            let year = if matches!(word(month + 1), "," | "de") { month + 2 } else { month + 1 };
            Some(if is_year(word(year)) { year + 1 } else { month + 1 })
        }
        Form::Number if is_year(word(at)) => {
            let before = if at == 0 { "" } else { word(at - 1) };
            let announces = matches!(
                before,
                "in" | "In"
                    | "since"
                    | "Since"
                    | "until"
                    | "by"
                    | "By"
                    | "from"
                    | "From"
                    | "of"
                    | "to"
                    | "between"
                    | "during"
                    | "after"
                    | "before"
                    | "around"
                    | "en"
                    | "im"
                    | "and"
                    | "year"
                    | "em"
                    | "born"
                    | "the"
                    | "The"
                    | "a"
                    | "A"
                    | "в"
            );
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
        // Texts all in lower case.
        Form::Lower if words::month(word(at)).is_some() && is_year(word(at + 1)) => Some(at + 2),
        Form::Capital if month_at(word(at)).is_some() => {
            let has_day = day(word(at + 1)).is_some();
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

/// A month with a capital; the shortest forms of names and verbs ("Mar", "Dec") count as well.
fn month_at(word: &str) -> Option<u8> {
    let first = word.chars().next()?;
    if !first.is_alphabetic() {
        return None;
    }
    let folded = word.to_lowercase();
    words::month(&folded).or_else(|| foreign_month(&folded))
}

/// Months of German, Spanish, French and Russian that differ from the English ones.
fn foreign_month(word: &str) -> Option<u8> {
    const STEMS: [&[&str]; 12] = [
        &["januar", "enero", "janvier", "января"],
        &["februar", "febrero", "février", "февраля"],
        &["märz", "marzo", "mars", "марта"],
        &["abril", "avril", "апреля"],
        &["mai", "mayo", "мая"],
        &["juni", "junio", "juin", "июня"],
        &["juli", "julio", "juillet", "июля"],
        &["agosto", "août", "августа"],
        &["septiembre", "septembre", "сентября"],
        &["oktober", "octubre", "octobre", "октября"],
        &["noviembre", "novembre", "ноября"],
        &["dezember", "diciembre", "décembre", "декабря"],
    ];
    STEMS.iter().position(|names| names.contains(&word)).map(|at| at as u8 + 1)
}

fn day(word: &str) -> Option<u8> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_ordinal = matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th");
    let day: u8 = digits.parse().ok()?;
    (is_ordinal && (1..=31).contains(&day)).then_some(day)
}

fn is_year(word: &str) -> bool {
    let is_number = word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    is_number && ("1000".."2100").contains(&word)
}

/// "2024-05-03", "12/31/2024", "31.12.2024".
fn is_written_out(word: &str) -> bool {
    let Some(separator) = word.chars().find(|c| !c.is_ascii_digit()) else { return false };
    if !matches!(separator, '-' | '/' | '.') {
        return false;
    }
    let mut parts = word.split(separator);
    let (Some(first), Some(middle), Some(last), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_day = |part: &str| day(part).is_some() && part.len() <= 2;
    let is_short_year = |part: &str| part.len() == 2 && part.parse::<u8>().is_ok();
    let ends_in_year = is_year(last) || separator == '/' && is_short_year(last);
    is_day(middle) && (is_year(first) && is_day(last) || is_day(first) && ends_in_year)
}
