//! Lines that begin with a word and a number, like items of minutes: "Item 3: it is mended".

use super::{Form, Parser};

/// Minimum number of consecutive lines of this form that count as items.
const LABELLED_ITEMS_MIN: usize = 2;
/// Minimum number of words after the colon of such a line; values of records are shorter.
const LABELLED_WORDS_MIN: usize = 3;

impl Parser<'_> {
    /// The consecutive lines that begin with the same word and an increasing number, "item 1: the
    /// key is found"; empty for a single line.
    pub(super) fn labelled(&self, at: usize) -> Vec<usize> {
        let label = |line: usize| labelled_number(self.lines.get(line)?.content);
        let Some((word, mut last)) = label(at) else { return Vec::new() };
        let mut lines = vec![at];
        while let Some((next, number)) = label(at + lines.len())
            && next == word
            && number > last
        {
            last = number;
            lines.push(at + lines.len());
        }
        if lines.len() < LABELLED_ITEMS_MIN { Vec::new() } else { lines }
    }

    pub(super) fn labelled_list(&mut self, at: usize) {
        let group = self.begin(Form::List);
        self.found.groups[group].is_numbered = true;
        for line in self.labelled(at) {
            self.push_item(self.lines[line].bytes.clone());
        }
        self.lead = None;
    }
}

/// The word and number at the start of a line that goes on in words: "Item 3: it is mended".
fn labelled_number(content: &str) -> Option<(String, usize)> {
    let (label, text) = content.split_once(": ")?;
    let (word, number) = label.split_once(' ')?;
    let is_word = !word.is_empty() && word.chars().all(char::is_alphabetic);
    let is_text = text.split_whitespace().count() >= LABELLED_WORDS_MIN;
    let number = number.parse().ok().filter(|_| is_word && is_text)?;
    Some((word.to_lowercase(), number))
}

#[cfg(test)]
mod tests {
    use crate::passages::blocks::{Kind, blocks};

    #[test]
    fn lines_with_a_word_and_a_number_are_items() {
        let text = "To the minutes of 3 May\n item 1: the boat is blue, not red.\n \
            item 4: it was sold for 900 EUR.\n\nRoom 1: Ada\nRoom 2: Bo\n";
        let found = blocks(text, None);
        let units: Vec<_> = found.units.iter().filter(|unit| !unit.is_lead).collect();
        let kinds: Vec<Kind> = units.iter().map(|unit| unit.kind).collect();
        assert_eq!(kinds, [Kind::Item, Kind::Item, Kind::Record]);
        assert_eq!(&text[units[1].bytes.clone()], "item 4: it was sold for 900 EUR.");
        assert_eq!(found.sections[units[1].section], ["To the minutes of 3 May"]);
    }
}
