//! Full stops: those that end a sentence, and those that do not.

use unicode_segmentation::UnicodeSegmentation;

use lodestone_text::chunk::marks::is_wide_end;

/// Abbreviations that never end a sentence, in lower case.
const NEVER_LAST: &[&str] = &[
    "dr", "mr", "mrs", "ms", "prof", "st", "vs", "e.g", "i.e", "al", "cf", "ca", "approx", "gen",
    "sen", "rep", "gov", "lt", "col", "sgt", "hr", "bzw", "z.b", "d.h", "u.a", "sr", "sra", "mme",
    "bspw", "vgl", "capt", "cmdr", "rev", "hon", "messrs", "mt", "ft", "viz", "incl", "excl",
    "ggf", "evtl", "inkl", "mlle", "p.ej", "v", "ref", "refs",
];
/// Abbreviations that do not end a sentence if a number follows.
const BEFORE_NUMBER: &[&str] = &[
    "no", "nos", "nr", "fig", "figs", "eq", "vol", "p", "pp", "art", "sec", "ch", "abs", "ver",
    "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "tab",
    "sect", "para", "app", "tel", "ext", "rs", "bd", "kap", "nº", "n°", "c", "max", "min", "mon",
    "tue", "tues", "wed", "thu", "thurs", "fri", "sat", "sun", "ed", "edn", "éd", "aufl", "ausg",
];
/// Abbreviations that do not end a sentence before a code either: "no. CL-118".
const BEFORE_CODE: &[&str] = &["no", "nos", "nr", "art", "nº", "n°"];
/// Abbreviations that may end a sentence, but do so only if the next word is one of [`OPENERS`].
const SELDOM_LAST: &[&str] = &[
    "inc", "ltd", "co", "corp", "jr", "bros", "dept", "univ", "assn", "ph.d", "a.m", "p.m", "llc",
    "plc",
];
const GERMAN_AFTER_ORDINAL: &[&str] = &[
    "Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober",
    "November", "Dezember", "Jahrhundert", "Jahrhunderts",
];
/// Words that begin a sentence and are hardly ever capitalised inside one.
const OPENERS: &[&str] = &[
    "The", "A", "An", "In", "It", "He", "She", "They", "This", "These", "On", "At", "We", "But",
    "His", "Her", "Its", "Their", "After", "Before", "When", "As", "However", "For", "From",
    "There", "That", "Those", "By", "With", "Since", "While", "You", "I", "If", "To", "And",
];

/// Maximum number of bytes after a full stop that are searched for the next word.
const NEXT_WORD_BYTES_MAX: usize = 256;

/// Whether the sentence continues past a full stop after `word`; the text continues at `next`.
pub(crate) fn goes_over(word: &str, block: &str, next: usize) -> bool {
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let after = &block[next..];
    let after = &after[..after.floor_char_boundary(NEXT_WORD_BYTES_MAX)];
    let next_word = after.unicode_words().next().unwrap_or_default();
    let lower = word.to_lowercase();
    let is_number = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    if is_number {
        let opens_item = block.trim_start().starts_with(word) && word.len() <= 3;
        return opens_item && block[..next].trim().len() == word.len() + 1
            || (word.len() <= 2 && GERMAN_AFTER_ORDINAL.contains(&next_word));
    }
    let mut letters = word.chars();
    let is_initial = letters.next().is_some_and(char::is_uppercase) && letters.next().is_none();
    // "U.S. Army" continues the sentence; "in the U.S. The army" begins a new one.
    let is_dotted = word.contains('.') && word.split('.').all(|part| part.chars().count() == 1);
    // In "A. Smith", the "A" does not open a sentence.
    let is_abbreviated = after.split_once(next_word).is_some_and(|(_, rest)| rest.starts_with('.'));
    let is_opener = OPENERS.contains(&next_word) && !is_abbreviated;
    // The "Z." of "Z. B.", and a street before its number.
    let is_first_of_two = lower.chars().count() == 1 && next_word.chars().count() == 1;
    let is_street = lower.ends_with("str") && after.starts_with(char::is_numeric);
    let is_code = || {
        let mut token = after.split_whitespace().next().unwrap_or_default().chars();
        token.next().is_some_and(char::is_uppercase) && token.any(|c| c.is_ascii_digit())
    };
    (is_initial && !is_opener)
        || (is_first_of_two && is_abbreviated)
        || is_street
        || NEVER_LAST.contains(&lower.as_str())
        || ((is_dotted || SELDOM_LAST.contains(&lower.as_str())) && !is_opener)
        || (BEFORE_NUMBER.contains(&lower.as_str()) && after.starts_with(char::is_numeric))
        || (BEFORE_CODE.contains(&lower.as_str()) && is_code())
}

/// Whether the character ends a sentence.
pub(crate) fn is_end(c: char) -> bool {
    is_wide_end(c)
        || matches!(
            c,
            '.' | '!'
                | '?'
                | '\u{2026}'
                | '\u{964}'
                | '\u{965}'
                | '\u{61F}'
                | '\u{6D4}'
                | '\u{589}'
                | '\u{1362}'
        )
}
