//! Look-ups in the strings of a section, and in its titles.

use std::cmp::Ordering;
use std::ops::Range;

/// All strings, ascending. They are compared as bytes, whose order is that of the text: decoding
/// would cost more than the look-up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strings<'a> {
    pub(super) starts: &'a [u32],
    pub(super) text: &'a [u8],
}

impl<'a> Strings<'a> {
    pub(super) fn bytes(self, id: u32) -> &'a [u8] {
        let id = id as usize;
        &self.text[self.starts[id] as usize..self.starts[id + 1] as usize]
    }

    pub(super) fn find(self, text: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.starts.len() as u32 - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.bytes(middle).cmp(text.as_bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// Sources of one segment by the keys of their titles, ascending.
#[derive(Debug, Clone, Copy)]
pub struct Titles<'a> {
    pub(super) strings: Strings<'a>,
    pub(super) keys: &'a [u32],
    pub(super) sources: &'a [u32],
}

impl<'a> Titles<'a> {
    /// Those whose key is this word or begins with it. Most words of a text begin none, and where
    /// one does few titles are left among which runs of words are looked up.
    #[must_use]
    pub fn beginning(self, word: &str) -> Self {
        // Blank sorts before every letter and digit, so the word alone and the word with others
        // behind it come first among what begins with its letters.
        let range = equal(self.keys, |key| match self.strings.bytes(*key) {
            key if key < word.as_bytes() => Ordering::Less,
            key => match key.strip_prefix(word.as_bytes()) {
                Some([] | [b' ', ..]) => Ordering::Equal,
                _ => Ordering::Greater,
            },
        });
        self.part(range)
    }

    /// The sources whose title has that key, ascending.
    pub fn sources(self, key: &str) -> &'a [u32] {
        self.part(equal(self.keys, |other| self.strings.bytes(*other).cmp(key.as_bytes()))).sources
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.keys.is_empty()
    }

    fn part(self, range: Range<usize>) -> Self {
        Self { keys: &self.keys[range.clone()], sources: &self.sources[range], ..self }
    }
}

/// The range of sorted keys that are equal to what is looked for.
pub(super) fn equal(keys: &[u32], order: impl Fn(&u32) -> Ordering) -> Range<usize> {
    let first = keys.partition_point(|key| order(key).is_lt());
    let rest = &keys[first..];
    let is_there = rest.first().is_some_and(|key| order(key).is_eq());
    let count = if is_there { rest.partition_point(|key| order(key).is_eq()) } else { 0 };
    first..first + count
}
