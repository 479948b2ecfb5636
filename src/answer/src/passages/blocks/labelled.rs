//! Lines that begin with a word and a number, as items of minutes do: "Item 3: it is mended".

use super::{Form, Parser};

/// Lines in a row that begin with a word and a number are items.
const LABELLED_ITEMS_MIN: usize = 2;
/// Words of such a line behind its colon: a record has shorter values.
const LABELLED_WORDS_MIN: usize = 3;

impl Parser<'_> {
    /// The lines, each with the next one, that begin with one word and a number that grows, "item
    /// 1: the key is found"; none where there is one alone.
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

/// The word and the number with which a line begins that goes on in words: "Item 3: it is mended".
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
        let found = blocks(text);
        let units: Vec<_> = found.units.iter().filter(|unit| !unit.is_lead).collect();
        let kinds: Vec<Kind> = units.iter().map(|unit| unit.kind).collect();
        assert_eq!(kinds, [Kind::Item, Kind::Item, Kind::Record]);
        assert_eq!(&text[units[1].bytes.clone()], "item 4: it was sold for 900 EUR.");
        assert_eq!(found.sections[units[1].section], ["To the minutes of 3 May"]);
    }
}
