//! Lines of the form `name: value`: records, settings, the headers of a mail.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::sentences::{self, WRAPPED_COLUMNS_MIN};

/// Limits on a name.
struct Limits {
    chars: usize,
    words: usize,
}

/// Limits on the first line, which might be prose.
const FIRST: Limits = Limits { chars: 40, words: 4 };
/// Limits on later lines, since table columns can have long names.
const FURTHER: Limits = Limits { chars: 80, words: 10 };

/// Marks in a name besides letters and digits.
const MARKS: &str = " ._-/()&'%€$£\":?#+°²³";
/// Further marks in a name that several records repeat, and marks that may begin it.
const RARE_MARKS: &str = "\
    \u{20}._-/()&'%€$£\"?#+°²³,;[]=<>*@~§×\u{2264}\u{2265}\u{2013}\u{2014}\u{2018}\u{2019}\u{201C}\
    \u{201D}";
const FIRST_MARKS: &str = "\"(%€$£°§";
/// Marks of a bound, which begin a name before a digit.
const BOUND_MARKS: [char; 4] = ['<', '>', '\u{2264}', '\u{2265}'];

/// Minimum number of words in a value that may be a sentence.
const PROSE_WORDS_MIN: usize = 3;

/// A line with a name and a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyedLine {
    pub(crate) key: String,
    /// The value at the end of the line; may be empty if deeper lines follow.
    pub(crate) value: String,
    pub(crate) indent: usize,
}

/// The keyed lines at the start of `lines`, each given with its indent, up to the first line that
/// is not keyed. Empty if the first one is not, or if they are likely prose: a single line whose
/// name no program would use or that goes on with a sentence, or sentences after a word amid other
/// sentences. `before` is the line above the first, `names` are the [`repeated_names`] of the text.
pub(crate) fn run<'t>(
    before: &str,
    lines: impl Iterator<Item = (usize, &'t str)>,
    names: &BTreeSet<&str>,
) -> Vec<KeyedLine> {
    let mut run: Vec<KeyedLine> = Vec::new();
    let mut behind = "";
    for (indent, content) in lines {
        let limits = if run.is_empty() { &FIRST } else { &FURTHER };
        let Some(line) = keyed_line(indent, content, limits, names) else {
            behind = content;
            break;
        };
        run.push(line);
    }
    // "To bring:" announces the text below it unless deeper lines follow.
    while run.last().is_some_and(|last| last.value.is_empty() && !is_identifier(&last.key)) {
        behind = "";
        run.pop();
    }
    let tells = |line: &KeyedLine| is_prose(&line.value);
    let is_long = |line: &KeyedLine| line.is_long() && !names.contains(line.key.as_str());
    let are_prose = || run.iter().all(tells) || run.iter().any(|line| tells(line) && is_long(line));
    match run.as_slice() {
        [one] if !is_identifier(&one.key) || one.value.is_empty() || is_title(one) => Vec::new(),
        [one] if are_notes(one) => Vec::new(),
        // A line of prose that goes on with the one above, or that the next one goes on with.
        [one] if is_wrapped(before) && one.key.starts_with(char::is_lowercase) => Vec::new(),
        [_] if behind.starts_with(char::is_lowercase) => Vec::new(),
        [_, ..] if (is_prose(before) || is_prose(behind)) && are_prose() => Vec::new(),
        [] | [_, ..] => run,
    }
}

impl KeyedLine {
    /// Whether its name is longer than in most records.
    fn is_long(&self) -> bool {
        self.key.chars().count() > FIRST.chars || self.key.split(' ').count() > FIRST.words
    }
}

/// Whether a line was ended by wrapping, within a sentence.
fn is_wrapped(line: &str) -> bool {
    sentences::columns(line) >= WRAPPED_COLUMNS_MIN && !sentences::is_ended(line)
}

/// Whether a text is a sentence or the end of one.
fn is_prose(text: &str) -> bool {
    sentences::is_ended(text) && text.split_whitespace().count() >= PROSE_WORDS_MIN
}

/// The names before values in lines of several paragraphs. They are columns of records, so they may
/// be longer and hold more marks than other names: "Price per month, yearly contract".
pub(crate) fn repeated_names<'t>(lines: impl Iterator<Item = &'t str>) -> BTreeSet<&'t str> {
    let (mut first, mut repeated) = (BTreeMap::new(), BTreeSet::new());
    let mut paragraph = 0;
    for line in lines {
        paragraph += usize::from(line.is_empty());
        let Some((name, _)) = line.split_once(": ") else { continue };
        let begins = name.starts_with(|c: char| c.is_alphanumeric() || FIRST_MARKS.contains(c))
            || is_bound(name);
        if begins
            && name.contains(char::is_alphabetic)
            && is_name(name, &FURTHER, RARE_MARKS)
            && *first.entry(name).or_insert(paragraph) != paragraph
        {
            repeated.insert(name);
        }
    }
    repeated
}

/// Whether a name begins with the mark of a bound and a digit: "< 5 kg", but not "> said Ada".
fn is_bound(name: &str) -> bool {
    let bound = name.strip_prefix(BOUND_MARKS).map(str::trim_start);
    bound.is_some_and(|bound| bound.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a text is a name within the limits, of letters, digits and the given marks.
fn is_name(text: &str, limits: &Limits, marks: &str) -> bool {
    text.chars().count() <= limits.chars
        && text.split(' ').count() <= limits.words
        && text.chars().all(|c| c.is_alphanumeric() || marks.contains(c))
        && sentences::pieces(text).len() == 1
}

fn keyed_line(
    indent: usize,
    content: &str,
    limits: &Limits,
    names: &BTreeSet<&str>,
) -> Option<KeyedLine> {
    let (key, value) = match content.split_once(": ") {
        Some((key, value)) if value.trim().starts_with('#') => (key, ""),
        Some((key, value)) => (key, value.trim()),
        None => match content.strip_suffix(':') {
            Some(key) => (key, ""),
            None => match content.split_once(" = ") {
                Some((key, value)) => (key, value.trim()),
                None => {
                    // A comment may follow the name of a section.
                    let (key, comment) = content.split_once(':')?;
                    let is_comment = comment.trim_start().starts_with('#');
                    (is_comment && !key.contains(' ')).then_some((key, ""))?
                }
            },
        },
    };
    let is_key = || {
        key.starts_with(|c: char| c.is_alphanumeric() || c == '"') && is_name(key, limits, MARKS)
    };
    (names.contains(key) || is_key()).then(|| KeyedLine {
        key: key.trim_matches('"').to_owned(),
        value: value.to_owned(),
        indent,
    })
}

/// Whether a line is a title in capitals that contains a colon: "X-RAY: RULES FOR EVERYONE".
fn is_title(line: &KeyedLine) -> bool {
    let is_capital = |word: &str| {
        word.chars().filter(|c| c.is_alphabetic()).count() > 1 && !word.contains(char::is_lowercase)
    };
    let mut words = line.value.split_whitespace();
    is_capital(&line.key) && words.by_ref().take(2).filter(|word| is_capital(word)).count() == 2
}

/// Whether a line is prose beginning with a code: "K-11: it was worn. K-12: a hose had burst."
fn are_notes(line: &KeyedLine) -> bool {
    let has_digit = line.key.contains(|c: char| c.is_ascii_digit());
    has_digit && is_prose(&line.value) && sentences::pieces(&line.value).len() > 1
}

/// Whether a name looks like an identifier: one word, in lower case or with inner marks.
fn is_identifier(key: &str) -> bool {
    !key.contains(' ') && (key.contains(['_', '.', '-']) || key.chars().all(char::is_lowercase))
}

/// Whether the lines are settings: some have no value of their own, or are indented below the
/// first.
pub(crate) fn are_settings(run: &[KeyedLine]) -> bool {
    run.iter().any(|line| line.value.is_empty() || line.indent > run[0].indent)
}

/// The last part of a dotted name such as `suppliers.phone`.
pub(crate) fn leaf(key: &str) -> &str {
    let leaf = key.rsplit('.').next().unwrap_or(key);
    if key.contains(' ') || leaf.is_empty() { key } else { leaf }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let lines = text.lines().map(|line| (line.len() - line.trim_start().len(), line.trim()));
        let names = repeated_names(text.lines().map(str::trim));
        run("", lines, &names).into_iter().map(|line| line.key).collect()
    }

    #[test]
    fn names_that_records_repeat_may_hold_any_marks() {
        let names =
            ["Name of the boat or of its trailer", "Berth, in summer", "Beam [m]", "% paid"];
        let record = |value: &str| names.map(|name| format!("{name}: {value}")).join("\n");
        let two = format!("{}\n\n{}", record("12"), record("40"));
        assert_eq!(keys(&two), names);
        assert!(keys(&record("12")).is_empty(), "a single one may be prose");
        let last = record("7").replacen(": 7", ": It is paid for.", 1);
        let noted = format!("{two}\n\n{last}\nThe rest is laid up.");
        let repeated = repeated_names(noted.lines());
        let lines = || noted.lines().skip(10).map(|line| (0, line));
        assert_eq!(run("", lines(), &repeated).len(), 4);
        assert!(run("", lines(), &BTreeSet::new()).is_empty());
        let loads = ["< 1 t", "1 - 3 t", "> 3 t", "\u{2265} 9 t"];
        let record = |value: &str| loads.map(|name| format!("{name}: {value}")).join("\n");
        let two = format!("van: A\n{}\n\nvan: B\n{}", record("12"), record("40"));
        assert_eq!(keys(&two)[1..], loads);
        let quoted = "van: A\n> From: Ada\n\n> From: Bo\n";
        assert_eq!(keys(quoted), ["van"], "a mark of quotation is no bound");
        let talk = "Holm, Ada: the boat is in.\nTarn, Bo: good.\nHolm, Ada: it leaks.";
        assert!(keys(talk).is_empty(), "one paragraph");
        let notes = "room: 4\nDear Ada, please note: it is wet.\n\nMind this, all: it is wet.";
        assert_eq!(keys(notes), ["room"]);
    }

    #[test]
    fn a_line_within_a_sentence_is_no_setting() {
        let before = "The server is stopped first. Its data directory contains";
        let none = BTreeSet::new();
        assert!(run(before, [(0, "everything: keys, jobs.")].into_iter(), &none).is_empty());
        let one = run("Pumps in the east", [(0, "as_of: 2025-04-01")].into_iter(), &none);
        assert_eq!(one.len(), 1);
    }

    #[test]
    fn names_and_prose_are_told_apart() {
        assert_eq!(keys("Name: Ada\nRoom: 12\nThat is all."), ["Name", "Room"]);
        assert_eq!(keys("server:\n  port: 80 # x\nother = 2"), ["server", "port", "other"]);
        assert_eq!(keys("as_of: 2025-04-01"), ["as_of"]);
        let short = ["No.", "Max. guests", "Price (incl. VAT)", "Ref. no."];
        let lines: Vec<String> = short.iter().map(|name| format!("{name}: 1")).collect();
        assert_eq!(keys(&lines.join("\n")), short);
        assert!(keys("It was late. Then: nobody.\nAda: she left.").is_empty());
        let rota = "from: 9 June\nto: 16 June\non call (Mon 06:00 to Mon 06:00): Ada";
        assert_eq!(keys(rota)[2], "on call (Mon 06:00 to Mon 06:00)");
        assert_eq!(keys("alarm: 7\nline stops?: yes\nfirst: lock")[1], "line stops?");
        assert!(keys("Discussion: it was long.").is_empty());
        assert!(keys("He said, on his way home: no.").is_empty());
        assert!(keys("The steps are:").is_empty());
        assert!(keys("prefix: it holds the lock for a minute and\nthen ends.").is_empty());
        assert!(
            keys("Note: the lathe is used after a talk.\nThe key is with the porter.").is_empty()
        );
        assert_eq!(
            keys("Room: 12\nNote: the lathe is loose, ask.\nIt is with Ada now."),
            ["Room", "Note"]
        );
        let two = "Time: 2 hours\nPlease mind what is said at the door: no dogs in the hall.\n\
                   The door is locked at nine.";
        assert!(keys(two).is_empty());
        assert!(keys("Time: 2 hours\nBring with you:").is_empty());
        assert_eq!(
            keys("Problem: the pump is too hot.\nCure: let it cool for an hour."),
            ["Problem", "Cure"]
        );
        assert!(keys("X-RAY: RULES FOR EVERYONE  Ada, 2026").is_empty());
        assert_eq!(keys("X-MODE: AUTO"), ["X-MODE"]);
        assert!(keys("K-1: a hose had burst. K-2: the lamp was out.").is_empty());
        assert_eq!(keys("K-1: a hose had burst"), ["K-1"]);
    }

    #[test]
    fn the_last_part_of_a_name_is_its_leaf() {
        assert_eq!((leaf("suppliers.phone"), leaf("St. Mary")), ("phone", "St. Mary"));
    }
}
