//! Splits the text of a chunk into sentences, with their positions.
//!
//! Uses rules instead of UAX #29, which breaks after "Dr." and at every line end of hard-wrapped
//! prose, and looks ahead without bound. One pass over the lines finds the blocks, and one pass
//! over each block of prose finds the ends of its sentences.

use std::ops::Range;

use crate::text::notes::mark_len;
use crate::text::stops::{goes_over, is_end};
use lodestone_text::chunk::marks::{is_closer, is_wide_end};

/// Maximum number of characters in a sentence; a longer one is split, between words if possible.
pub const SENTENCE_CHARS_MAX: usize = 400;

/// Minimum width, in columns, of a line that may have been ended by wrapping. Wide characters count
/// two columns.
pub(crate) const WRAPPED_COLUMNS_MIN: usize = 45;
/// Maximum width, in columns, of a line that is taken for a heading because no sentence ends in it.
const HEADING_COLUMNS_MAX: usize = 80;
/// Maximum width, in columns, of an opening in bold that is not a sentence of its own.
const BOLD_OPENING_COLUMNS_MAX: usize = 45;
/// Maximum number of words in a first sentence that is the topic of a numbered item.
const TOPIC_WORDS_MAX: usize = 4;

/// Kind of a sentence, judged by its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Running text.
    Prose,
    /// Announces the text below it: a heading, a question, a line ending in a colon.
    Lead,
    /// An item of a list, a row of a table, a line of code.
    Line,
    /// A line of the form `name: value`, as in records.
    Field,
}

/// A sentence of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Byte range in the text, without surrounding white space and leading list or heading marks.
    pub bytes: Range<usize>,
    /// Range in the text like `bytes`, in Unicode characters.
    pub chars: Range<usize>,
    /// Kind of the sentence.
    pub shape: Shape,
}

/// Splits a text into sentences, ascending and without overlap, each with a letter or digit.
pub fn sentences(text: &str) -> Vec<Sentence> {
    let mut cutter = Cutter { text, found: Vec::new(), block: None };
    let mut is_fenced = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at + line.len() - line.trim_start().len();
        let range = start..(at + line.trim_end().len()).max(start);
        let content = line.trim();
        at += line.len();
        if content.is_empty() {
            cutter.flush();
        } else if content.starts_with("```") || content.starts_with("~~~") {
            cutter.flush();
            is_fenced = !is_fenced;
        } else if is_fenced || is_code_or_table(line, content) {
            cutter.flush();
            cutter.push_bounded(range, Shape::Line);
        } else {
            cutter.line(range, content);
        }
    }
    cutter.flush();
    cutter.finish()
}

/// A run of lines that may continue.
struct Block {
    range: Range<usize>,
    last_line: Range<usize>,
    lines: usize,
    shape: Shape,
}

struct Cutter<'t> {
    text: &'t str,
    found: Vec<(Range<usize>, Shape)>,
    block: Option<Block>,
}

impl Cutter<'_> {
    /// Takes a line of prose, of a list or of a heading.
    fn line(&mut self, range: Range<usize>, content: &str) {
        let (marker, shape) = marker(content);
        if let Some(block) = &mut self.block
            && shape == Shape::Prose
            && goes_on(&self.text[block.last_line.clone()], content)
        {
            block.range.end = range.end;
            block.last_line = range;
            block.lines += 1;
            return;
        }
        self.flush();
        let range = range.start + marker..range.end;
        if shape == Shape::Lead {
            self.push_bounded(range, shape);
        } else {
            self.block = Some(Block { range: range.clone(), last_line: range, lines: 1, shape });
        }
    }

    /// Splits the open block into sentences and closes it.
    fn flush(&mut self) {
        let Some(block) = self.block.take() else { return };
        let content = &self.text[block.range.clone()];
        if block.lines == 1
            && block.shape == Shape::Prose
            && !is_ended(content)
            && !is_labelled(content)
            && columns(content) <= HEADING_COLUMNS_MAX
        {
            self.found.push((block.range, Shape::Lead));
            return;
        }
        let pieces = pieces(content);
        let shape = match (is_labelled(content), pieces.len()) {
            (true, 1) => Shape::Field,
            (true, _) => Shape::Line,
            (false, _) => block.shape,
        };
        for piece in pieces {
            let range = block.range.start + piece.start..block.range.start + piece.end;
            let is_lead = announces(&self.text[range.clone()]);
            self.push_bounded(range, if is_lead { Shape::Lead } else { shape });
        }
    }

    fn push_bounded(&mut self, range: Range<usize>, shape: Shape) {
        let pieces = bounded(self.text, range, SENTENCE_CHARS_MAX);
        self.found.extend(pieces.into_iter().map(|piece| (piece, shape)));
    }

    fn finish(self) -> Vec<Sentence> {
        let (mut bytes_done, mut chars_done) = (0, 0);
        let mut sentences = Vec::with_capacity(self.found.len());
        for (range, shape) in self.found {
            let piece = &self.text[range.clone()];
            if !piece.contains(char::is_alphanumeric) {
                continue;
            }
            let start = range.start + piece.len() - piece.trim_start().len();
            let end = range.start + piece.trim_end().len();
            let first = chars_done + self.text[bytes_done..start].chars().count();
            let last = first + self.text[start..end].chars().count();
            (bytes_done, chars_done) = (end, last);
            sentences.push(Sentence { bytes: start..end, chars: first..last, shape });
        }
        sentences
    }
}

/// Splits a range into pieces of at most `chars_max` characters, after a semicolon or comma in the
/// second half if there is one, else between words if possible.
pub(crate) fn bounded(text: &str, range: Range<usize>, chars_max: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut rest = range;
    while let Some((limit, _)) = text[rest.clone()].char_indices().nth(chars_max) {
        let head = &text[rest.start..rest.start + limit];
        let is_late = |at: &usize| *at >= limit / 2;
        let mut marks = ["; ", ", "].into_iter().map(|mark| head.rfind(mark).filter(is_late));
        let clause = marks.find_map(|at| at.map(|at| at + 1));
        let between = clause.or_else(|| head.rfind(char::is_whitespace).filter(is_late));
        let cut = rest.start + between.unwrap_or(limit);
        pieces.push(rest.start..cut);
        rest.start = cut;
    }
    pieces.push(rest);
    pieces
}

/// Whether a text ends like a sentence.
pub(crate) fn is_ended(text: &str) -> bool {
    text.trim_end_matches(is_closer).ends_with(is_end)
}

/// Whether a sentence announces what follows: a question, or one that ends with a colon.
pub(crate) fn announces(sentence: &str) -> bool {
    let words = sentence.trim_end().trim_end_matches(is_closer);
    words.ends_with(['?', '\u{FF1F}', '\u{61F}', ':', '\u{FF1A}'])
}

/// Length in bytes of the mark that makes a line a list item, 0 for a number, which belongs to the
/// item. `None` if the line is not an item.
pub(crate) fn item_mark(content: &str) -> Option<usize> {
    match marker(content) {
        (bytes, Shape::Line) => Some(bytes),
        _ => None,
    }
}

fn is_code_or_table(line: &str, content: &str) -> bool {
    let is_indented = line.starts_with('\t') || line.starts_with("    ");
    content.starts_with('|')
        || content.contains('\t')
        || (content.ends_with([';', '{', '}']) && content.contains(['(', '=', '{', '}']))
        || (is_indented && content.contains(['=', '(', '{', '<']))
}

/// Length in bytes of the mark at the start of a line, and the kind of line it makes.
fn marker(content: &str) -> (usize, Shape) {
    let hashes = content.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&hashes) && content[hashes..].starts_with(' ') {
        return (hashes + 1, Shape::Lead);
    }
    for mark in ["- ", "* ", "+ ", "\u{2022} ", "\u{2013} "] {
        if content.starts_with(mark) {
            return (mark.len(), Shape::Line);
        }
    }
    let digits = content.bytes().take_while(u8::is_ascii_digit).count();
    let is_numbered = (1..=3).contains(&digits)
        && [". ", ") "].iter().any(|end| content[digits..].starts_with(end));
    let is_lettered =
        content.starts_with(|c: char| c.is_ascii_lowercase()) && content[1..].starts_with(") ");
    if is_numbered || is_lettered { (0, Shape::Line) } else { (0, Shape::Prose) }
}

/// Whether a list item, given with its mark, may follow another: it has the same mark, or the next
/// number.
pub(crate) fn follows(before: &str, item: &str) -> bool {
    let number = |content: &str| -> Option<u32> {
        content.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let first = |content: &str| content.chars().next();
    match (number(before), number(item)) {
        (Some(one), Some(other)) => other == one + 1,
        (None, None) => {
            item_mark(item).is_some_and(|mark| mark > 0) && first(before) == first(item)
        }
        _ => false,
    }
}

/// Words that no sentence ends with.
const OPEN_ENDS: &str = "\
    the|a|an|of|to|from|and|or|at|by|with|for|than|into|per|between|until|der|die|das|den|dem|ein|\
    eine|und|oder|von|mit|bei|zum|zur|bis|de|du|des|le|la|les|et|ou|el|los|las|del|y";

/// Whether a line of prose continues the one before it.
pub(crate) fn goes_on(before: &str, line: &str) -> bool {
    let is_small = line.chars().next().is_some_and(char::is_lowercase);
    let last = before.rsplit(' ').next().unwrap_or_default();
    let is_open = before.contains(' ') && OPEN_ENDS.split('|').any(|word| word == last);
    is_small || is_open || (columns(before) >= WRAPPED_COLUMNS_MIN && !is_labelled(line))
}

/// Whether a text begins with a short name and a colon, like the lines of a record.
pub(crate) fn is_labelled(text: &str) -> bool {
    let Some((label, value)) = text.split_once(':') else { return false };
    value.starts_with(' ') && label.len() <= 40 && label.split(' ').count() <= 3
}

/// Width of a text in columns; wide characters count twice.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| if (c as u32) < 0x2E80 { 1 } else { 2 }).sum()
}

/// The ranges of the sentences of a block; together they cover the block.
pub(crate) fn pieces(block: &str) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut ended: Option<char> = None;
    let mut is_spaced = false;
    let mut word_start = 0;
    let mut stop_word = 0..0;
    let mut mark_end = 0;
    for (at, c) in block.char_indices() {
        if at < mark_end {
            continue;
        }
        if c.is_whitespace() {
            is_spaced = true;
            continue;
        }
        if ended.is_some() && closing_mark(&block[at..], is_spaced) > 0 {
            mark_end = at + closing_mark(&block[at..], is_spaced);
            continue;
        }
        let is_next = match ended {
            None => false,
            Some(end) if is_wide_end(end) => !is_closer(c) && !is_wide_end(c),
            Some('.') => {
                is_spaced && !c.is_lowercase() && !goes_over(&block[stop_word.clone()], block, at)
            }
            Some(_) => is_spaced && !c.is_lowercase(),
        };
        if is_next && !is_bold_opening(&block[start..at]) {
            pieces.push(start..at);
            start = at;
        }
        if is_spaced || is_next {
            word_start = at;
            ended = None;
        }
        is_spaced = false;
        if is_end(c) {
            (ended, stop_word) = (Some(c), word_start..at);
        } else if !is_closer(c) {
            ended = None;
        }
    }
    pieces.push(start..block.len());
    pieces
}

/// Whether a piece consists of short bold text, after an item's number at most: `**Quiet.**` and
/// `1. **Quiet.**` name the topic of the sentence after them.
fn is_bold_opening(piece: &str) -> bool {
    bold(behind_number(piece).trim_end()).is_some()
}

/// An item without its number: "1. Quiet" is "Quiet".
fn behind_number(item: &str) -> &str {
    let rest = item.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < item.len();
    if is_numbered { rest.trim_start_matches(['.', ')']).trim_start() } else { item }
}

/// Byte range of the short words that open an item or paragraph and name the topic of all its
/// sentences: in bold, before a colon or, for numbered items, a short first sentence.
/// `1. **Quiet.** From ten on.`, "2 Sauna: It is mended.", "3. New oven. Two offers came."
pub(crate) fn topic(text: &str, is_item: bool) -> Option<Range<usize>> {
    let start = text.len() - behind_number(text).len();
    let bare = &text[start..];
    let in_bold = || {
        let mark = ["**", "__"].into_iter().find(|mark| bare.starts_with(mark))?;
        let end = 2 * mark.len() + bare[mark.len()..].find(mark)?;
        bold(&bare[..end]).map(|_| end)
    };
    let label = || is_labelled(bare).then(|| bare.find(':')).flatten();
    let few = || {
        let first = pieces(bare).into_iter().next().filter(|first| first.end < bare.len())?;
        let is_short = bare[first.clone()].split_whitespace().count() <= TOPIC_WORDS_MAX;
        (is_item && start > 0 && is_short).then_some(first.end)
    };
    in_bold().or_else(label).or_else(few).map(|end| start..start + end)
}

/// The content of a text that is short and entirely in bold.
pub(crate) fn bold(text: &str) -> Option<&str> {
    let inside = ["**", "__"].into_iter().find_map(|mark| {
        text.strip_prefix(mark)?.strip_suffix(mark).filter(|inside| !inside.contains(mark))
    });
    inside.filter(|inside| columns(inside) <= BOLD_OPENING_COLUMNS_MAX)
}

/// Length in bytes of the footnote mark after the end of a sentence, to which it belongs. After a
/// space it is 0 if the mark begins the next sentence: "[3] shows".
fn closing_mark(text: &str, is_spaced: bool) -> usize {
    let length = mark_len(text);
    let goes_on = text[length..].trim_start().starts_with(char::is_lowercase);
    if is_spaced && goes_on { 0 } else { length }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|sentence| &text[sentence.bytes]).collect()
    }

    #[test]
    fn topics_open_items() {
        let of = |text: &'static str| topic(text, true).map(|bytes| text[bytes].trim_end());
        assert_eq!(of("1. **New oven.** Two offers."), Some("**New oven.**"));
        assert_eq!(of("2 Sauna: It is mended."), Some("Sauna"));
        assert_eq!(of("**Quiet** from ten on."), Some("**Quiet**"));
        assert_eq!(of("3. New oven. Two offers came."), Some("New oven."));
        assert_eq!(of("3. The new oven comes in May. Two offers came."), None);
        assert_eq!(of("Ring the office. Then wait."), None);
        assert_eq!(
            cut("1. **New oven.** Two offers. It comes."),
            ["1. **New oven.** Two offers.", "It comes."]
        );
    }

    #[test]
    fn full_stops_inside_sentences_do_not_cut() {
        for one in [
            "Dr. Smith met J. K. Rowling in the U.S. Army museum, e.g. on Mondays.",
            "It weighs 3.5 kg, see Fig. 3 and No. 7 of vol. 2.",
            "Am 3. Oktober war Feiertag.",
            "He said \"Stop! now\" and left.",
            "Acme Inc. Vienna sold pumps to Smith & Co. Limited before 5 p.m. Monday.",
            "The court decided Brown v. Board of Education (c. 1954) in one week.",
            "Lease no. AB-2031-7, signed with Art. G7 and No. X2 of 4 May.",
            "On Jan. 5 she met Martin Luther King Jr. Day planners near Mt. Rainier.",
        ] {
            assert_eq!(cut(one), [one]);
        }
    }

    #[test]
    fn words_in_bold_that_open_a_paragraph_stay_with_what_they_name() {
        assert_eq!(
            cut("**Quiet.** 22:00 to 6:00. Radios off."),
            ["**Quiet.** 22:00 to 6:00.", "Radios off."]
        );
        let sentence = "**The whole of the committee resigned on the fourth of May.** It was late.";
        assert_eq!(cut(sentence).len(), 2);
        assert_eq!(cut("**Yes.** No. **Both.**").len(), 2);
    }

    #[test]
    fn long_sentences_are_cut_behind_a_mark_where_one_is_late_enough() {
        let words = |count: usize| "word ".repeat(count);
        let text =
            format!("{}early, {}late; {}, tail {}", words(30), words(40), words(3), words(5));
        assert_eq!(cut(&text)[1], format!("{}, tail {}", words(3), words(5)).trim());
        let text = format!("{}, {}, tail {}", words(1), words(70), words(20));
        assert!(cut(&text)[0].ends_with("word ,"), "{:?}", cut(&text));
        let text = format!("{}, {}", words(1), words(100));
        assert!(cut(&text)[0].ends_with("word") && cut(&text)[0].len() > 390, "{:?}", cut(&text));
    }

    #[test]
    fn sentences_end_at_their_marks() {
        assert_eq!(cut("One ends. Two \"ends.\" Three?"), ["One ends.", "Two \"ends.\"", "Three?"]);
        assert_eq!(cut("Built in 1999. The end."), ["Built in 1999.", "The end."]);
        assert_eq!(cut("In the U.S. The army."), ["In the U.S.", "The army."]);
        assert_eq!(cut("Bought by Acme Inc. It paid."), ["Bought by Acme Inc.", "It paid."]);
        assert_eq!(cut("It was an “A.” An end.").len(), 2);
        assert_eq!(
            cut("塔高三百米。建于1889年！真的吗？"),
            ["塔高三百米。", "建于1889年！", "真的吗？"]
        );
        assert_eq!(cut("यह एक है। दूसरा है।"), ["यह एक है।", "दूसरा है।"]);
    }

    #[test]
    fn lines_end_where_they_were_not_wrapped() {
        let wrapped = "A sentence that is wrapped by hand at some column\nGoes on here. Next one.";
        assert_eq!(cut(wrapped).len(), 2);
        assert_eq!(
            cut("# Opening hours\nMon to Fri.\n- one\n- two\n  goes on"),
            ["Opening hours", "Mon to Fri.", "one", "two\n  goes on"]
        );
        assert_eq!(cut("Name: Ada\nBorn: 1815"), ["Name: Ada", "Born: 1815"]);
        assert_eq!(
            cut("```\nlet a = 1;\nlet b. C\n```\nText. More."),
            ["let a = 1;", "let b. C", "Text.", "More."]
        );
        assert_eq!(cut("1. Open the door.\n2. Go in."), ["1. Open the door.", "2. Go in."]);
    }

    #[test]
    fn marks_of_footnotes_belong_to_the_sentence_before() {
        assert_eq!(
            cut("It opened in 1889.[12] It closed.[13][note 2] So did \"it.\"¹ End."),
            ["It opened in 1889.[12]", "It closed.[13][note 2]", "So did \"it.\"¹", "End."]
        );
        assert_eq!(cut("It grows. [4] It falls."), ["It grows. [4]", "It falls."]);
        assert_eq!(cut("It grows. [4] shows how."), ["It grows.", "[4] shows how."]);
    }

    #[test]
    fn shapes_are_seen() {
        let shapes: Vec<_> = sentences("Title\n\nIs it? Yes, it is.\n\n- item\n\nThe steps are:")
            .into_iter()
            .map(|sentence| sentence.shape)
            .collect();
        assert_eq!(shapes, [Shape::Lead, Shape::Lead, Shape::Prose, Shape::Line, Shape::Lead]);
    }

    proptest! {
        #[test]
        fn places_are_true_and_bounded(
            text in "([\\PC\n.]{0,80}|([A-C”.\\[1\\]]{1,3} ){0,20}|[a-zA-Z.?! \n#-]{0,900})"
        ) {
            let mut end = 0;
            for sentence in sentences(&text) {
                prop_assert!(sentence.bytes.start >= end);
                end = sentence.bytes.end;
                let piece = &text[sentence.bytes.clone()];
                prop_assert_eq!(piece.trim(), piece);
                let chars: String =
                    text.chars().skip(sentence.chars.start).take(sentence.chars.len()).collect();
                prop_assert_eq!(piece, chars);
                prop_assert!(sentence.chars.len() <= SENTENCE_CHARS_MAX);
                prop_assert!(piece.contains(char::is_alphanumeric));
            }
        }

        #[test]
        fn no_letter_is_lost(text in "[a-zA-Z.?! \n|-]{0,300}") {
            let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
            let kept: usize = cut(&text).into_iter().map(letters).sum();
            prop_assert_eq!(kept, letters(&text));
        }
    }
}
