//! Look-ups in the strings of a section, and in its titles.

use std::cmp::Ordering;
use std::ops::Range;

/// All strings, ascending. They are compared as bytes, which order like the text: decoding would
/// cost more than the look-up.
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

/// Sources of one segment, ordered by the keys of their titles.
#[derive(Debug, Clone, Copy)]
pub struct Titles<'a> {
    pub(super) strings: Strings<'a>,
    pub(super) keys: &'a [u32],
    pub(super) sources: &'a [u32],
    /// The first bytes of every [`LANDMARK_TITLES`]th key, starting with the first; empty for a
    /// subset of the titles.
    pub(super) landmarks: &'a [u64],
}

/// Number of titles from one landmark to the next.
const LANDMARK_TITLES: usize = 32;

/// Computes the landmarks of sorted keys. Searching them first avoids touching the strings, which
/// are scattered across memory.
pub(super) fn landmarks(strings: Strings<'_>, keys: &[u32]) -> Box<[u64]> {
    keys.iter().step_by(LANDMARK_TITLES).map(|key| first_bytes(strings.bytes(*key))).collect()
}

/// Converts up to eight leading bytes of a text to a number that preserves order.
fn first_bytes(text: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let count = text.len().min(8);
    bytes[..count].copy_from_slice(&text[..count]);
    u64::from_be_bytes(bytes)
}

impl<'a> Titles<'a> {
    /// Narrows the titles to those whose key is this word or starts with it. Most words of a text
    /// start no title; if one does, runs of words only need to be looked up among the few titles
    /// left.
    #[must_use]
    pub fn beginning(self, word: &str) -> Self {
        // A space sorts before every letter and digit, so the word alone, and followed by others,
        // come first among the keys that start with its letters.
        let near = self.near(word);
        let range = equal(&self.keys[near.clone()], |key| match self.strings.bytes(*key) {
            key if key < word.as_bytes() => Ordering::Less,
            key => match key.strip_prefix(word.as_bytes()) {
                Some([] | [b' ', ..]) => Ordering::Equal,
                _ => Ordering::Greater,
            },
        });
        self.part(near.start + range.start..near.start + range.end)
    }

    /// Returns a range of positions that covers all keys starting with a word.
    fn near(self, word: &str) -> Range<usize> {
        let first = first_bytes(word.as_bytes());
        // The greatest number of a text that starts with the word.
        let last = first | u64::MAX.checked_shr(8 * word.len().min(8) as u32).unwrap_or(0);
        let before = self.landmarks.partition_point(|landmark| *landmark < first);
        let within = self.landmarks[before..].partition_point(|landmark| *landmark <= last);
        let end = match self.landmarks.len() == before + within {
            true => self.keys.len(),
            false => (before + within) * LANDMARK_TITLES,
        };
        before.saturating_sub(1) * LANDMARK_TITLES..end
    }

    /// The sources whose title has this key, in ascending order.
    pub fn sources(self, key: &str) -> &'a [u32] {
        self.part(equal(self.keys, |other| self.strings.bytes(*other).cmp(key.as_bytes()))).sources
    }

    /// Whether there are no titles.
    pub fn is_empty(self) -> bool {
        self.keys.is_empty()
    }

    fn part(self, range: Range<usize>) -> Self {
        let (keys, sources) = (&self.keys[range.clone()], &self.sources[range]);
        Self { keys, sources, landmarks: &[], ..self }
    }
}

/// The range of sorted keys that compare equal under `order`.
pub(super) fn equal(keys: &[u32], order: impl Fn(&u32) -> Ordering) -> Range<usize> {
    let first = keys.partition_point(|key| order(key).is_lt());
    let rest = &keys[first..];
    let is_there = rest.first().is_some_and(|key| order(key).is_eq());
    let count = if is_there { rest.partition_point(|key| order(key).is_eq()) } else { 0 };
    first..first + count
}
