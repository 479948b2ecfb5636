//! Matches dictionary words against a word of a query, letter by letter.
//!
//! Computes a table of edit distances (Damerau-Levenshtein, with each adjacent pair swapped at most
//! once), keeping only the cells that can still become small. Letters are compared without
//! diacritics.

use std::cmp::Reverse;

use crate::normal::{fold_marks, without_marks};

/// Maximum number of similar words per word: the nearest ones, then the most frequent.
pub(super) const SIMILAR_MAX: usize = 64;
/// Maximum letters of a word matched with edits or as a prefix; longer words are matched exactly.
const LETTERS_MAX: usize = 64;

/// Maximum number of edits.
const EDITS_MAX: usize = 2;
/// Cells kept per row of the table: those at most [`EDITS_MAX`] off the diagonal.
const CELLS: usize = 2 * EDITS_MAX + 1;
/// A distance beyond any limit.
const FAR: u8 = u8::MAX / 2;

/// Distance of a word from the requested one; lower is nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Likeness {
    /// Number of edits, ignoring diacritics.
    edits: u8,
    /// Whether the word continues beyond the requested prefix.
    is_longer: bool,
    /// Whether the word differs in diacritics.
    is_folded: bool,
}

impl Likeness {
    /// The word as written.
    pub(super) const WRITTEN: Self = Self { edits: 0, is_longer: false, is_folded: false };

    /// Factor of the score. One occurrence of a word as written contributes .53 of its idf in a row
    /// of mean length and .34 in one four times as long, and any number of occurrences at most 1:
    /// with factors up to .3, rows with the word as written rank first.
    pub(super) fn factor(self) -> f32 {
        match (self.edits, self.is_longer, self.is_folded) {
            (0, false, false) => 1.0,
            (0, false, true) => 0.3,
            (0, true, _) => 0.25,
            (1, ..) => 0.2,
            _ => 0.1,
        }
    }
}

/// A word similar to a word of a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Similar {
    pub(super) clause: usize,
    pub(super) word: String,
    pub(super) likeness: Likeness,
    /// Number of rows in scope that contain it.
    pub(super) rows: u64,
}

impl Similar {
    /// Sort key: nearer words come first, then those in more rows.
    pub(super) fn order(&self) -> (Likeness, Reverse<u64>, &str) {
        (self.likeness, Reverse(self.rows), &self.word)
    }
}

/// The words of a segment that are similar to those of a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SimilarWords(pub(super) Vec<Similar>);

/// The set of words that count as similar to one word.
#[derive(Clone)]
pub(super) struct Pattern {
    pub(super) word: String,
    folded: Vec<char>,
    /// One bit for each ASCII letter in the word.
    ascii: u128,
    /// Whether it contains a letter that is neither Latin nor a sign used in Latin words.
    is_beyond_latin: bool,
    edits: usize,
    is_prefix: bool,
    /// Whether only words with the same first letter are wanted.
    keeps_first: bool,
}

impl Pattern {
    pub(super) fn new(word: &str, edits: u8, is_prefix: bool) -> Self {
        let folded: Vec<char> = fold_marks(word).chars().collect();
        let is_short = folded.len() <= LETTERS_MAX;
        Self {
            word: word.to_owned(),
            edits: if is_short { usize::from(edits).min(EDITS_MAX) } else { 0 },
            is_prefix: is_prefix && is_short,
            ascii: folded.iter().filter(|c| c.is_ascii()).fold(0, |all, c| all | 1 << *c as u32),
            is_beyond_latin: folded.iter().any(|c| *c as u32 >= 0x370),
            folded,
            keeps_first: false,
        }
    }

    /// The pattern without most of the words that begin with another letter.
    pub(super) fn keeping_first(self) -> Self {
        Self { keeps_first: true, ..self }
    }

    /// The pattern with ever more edits up to its own, each time first for whole words and then, if
    /// prefixes count, for those too. Nearer words thus match earlier.
    pub(super) fn stages(&self) -> impl Iterator<Item = Self> {
        let kinds: &[bool] = match self.is_prefix {
            true => &[false, true],
            false => &[false],
        };
        (0..=self.edits).flat_map(move |edits| {
            kinds.iter().map(move |is_prefix| Self { edits, is_prefix: *is_prefix, ..self.clone() })
        })
    }

    /// The state before the first letter of a word.
    pub(super) fn start(&self) -> State {
        let mut row = [FAR; CELLS];
        for letters in 0..=self.folded.len().min(EDITS_MAX) {
            row[EDITS_MAX + letters] = letters as u8;
        }
        let before = [FAR; CELLS];
        let (last, begun) = (None, None);
        State { read: 0, row, before, last, begun, code: 0, missing: 0, is_dead: false }
    }

    /// Likeness of a word that has been read completely; `None` if it is not similar.
    pub(super) fn likeness(&self, state: &State, word: &str) -> Option<Likeness> {
        if state.is_dead || state.missing > 0 {
            return None;
        }
        let whole = self.distance(state).filter(|edits| usize::from(*edits) <= self.edits);
        let edits = whole.or(state.begun)?;
        let is_longer = whole.is_none();
        let is_folded = word != self.word && edits == 0 && !is_longer;
        Some(Likeness { edits, is_longer, is_folded })
    }

    /// Whether words that continue from a state can be similar.
    pub(super) fn goes_on(&self, state: &State) -> bool {
        !state.is_dead && (state.begun.is_some() || state.least_edits() <= self.edits)
    }

    /// Whether any letter may follow.
    fn has_edits(&self, state: &State) -> bool {
        state.begun.is_some() || state.least_edits() < self.edits
    }

    /// The bytes with which similar words can continue from a state.
    pub(super) fn ways(&self, state: &State) -> Ways {
        let is_kept = self.keeps_first && state.read == 0;
        if state.missing > 0 || self.has_edits(state) && !is_kept {
            return Ways::All;
        }
        let mut some = Letters::default();
        let mut may_be = |at: usize| self.folded.get(at).into_iter().for_each(|c| some.add(*c));
        for cell in 0..CELLS {
            // Number of letters of the pattern up to this cell.
            let Some(letters) = (state.read + cell).checked_sub(EDITS_MAX) else { continue };
            if usize::from(state.row[cell]) <= self.edits {
                may_be(letters);
            }
            // Both letters of a swapped pair; the later one has been read.
            let is_later = state.last.is_some() && self.folded.get(letters).copied() == state.last;
            if is_later && letters > 0 && usize::from(state.before[cell]) < self.edits {
                may_be(letters - 1);
            }
        }
        Ways::Some(some)
    }

    /// Edit distance between the letters read and the whole word.
    fn distance(&self, state: &State) -> Option<u8> {
        let cell = (self.folded.len() + EDITS_MAX).checked_sub(state.read)?;
        state.row.get(cell).copied()
    }

    /// Whether a byte is an ASCII letter that the word does not contain: all such letters lead from
    /// one state to equal states, except for the letter itself.
    pub(super) fn is_foreign(&self, state: &State, byte: u8) -> bool {
        state.missing == 0 && byte.is_ascii() && self.ascii >> byte & 1 == 0
    }

    /// The state after one more byte of a word.
    pub(super) fn next(&self, state: &State, byte: u8) -> State {
        let mut next = state.clone();
        if next.missing == 0 && byte.is_ascii() {
            self.read(&mut next, char::from(byte));
            return next;
        }
        if next.missing == 0 {
            let Some(missing) = (match byte {
                0xC2..=0xDF => Some(1),
                0xE0..=0xEF => Some(2),
                0xF0..=0xF4 => Some(3),
                _ => None,
            }) else {
                next.is_dead = true;
                return next;
            };
            // Signs of another script are not tried at all: they are not misspellings in this one.
            next.is_dead |= !self.may_begin(byte)
                || is_greek_or_cyrillic(byte) && !self.is_beyond_latin && !self.has_edits(state);
            next.missing = missing;
            next.code = u32::from(byte) & (0x7F >> (missing + 1));
        } else {
            next.missing -= 1;
            next.code = next.code << 6 | u32::from(byte & 0x3F);
        }
        if next.missing == 0 && !next.is_dead {
            match char::from_u32(next.code) {
                Some(c) => without_marks(c, |letter| self.read(&mut next, letter)),
                None => next.is_dead = true,
            }
        }
        next
    }

    /// Whether a letter that begins with this byte can equal one of the word's: it has the same
    /// first byte, or may be a letter with a mark of Latin, Greek, Cyrillic, Hebrew or Arabic.
    fn may_begin(&self, byte: u8) -> bool {
        let is_same = |c: &char| c.encode_utf8(&mut [0; 4]).as_bytes()[0] == byte;
        matches!(byte, 0xC3..=0xC9 | 0xCC..=0xD2 | 0xD6..=0xD9 | 0xE1)
            || self.folded.iter().any(is_same)
            || self.word.chars().any(|c| is_same(&c))
    }

    /// Reads one more letter of a dictionary word by computing the next row of the table.
    fn read(&self, state: &mut State, c: char) {
        let mut row = [FAR; CELLS];
        let read = state.read + 1;
        // Cells farther off the diagonal than the permitted edits cannot be near enough.
        for cell in EDITS_MAX - self.edits..=EDITS_MAX + self.edits {
            // Number of letters of the pattern up to this cell.
            let Some(letters) = (read + cell).checked_sub(EDITS_MAX) else { continue };
            if letters > self.folded.len() {
                break;
            }
            let mut least = FAR;
            if letters > 0 {
                let letter = self.folded[letters - 1];
                least = state.row[cell] + u8::from(letter != c);
                if letters > 1 && state.last == Some(letter) && self.folded[letters - 2] == c {
                    least = least.min(state.before[cell] + 1);
                }
            }
            if let Some(above) = state.row.get(cell + 1) {
                least = least.min(above + 1);
            }
            if let Some(left) = cell.checked_sub(1) {
                least = least.min(row[left] + 1);
            }
            row[cell] = least.min(FAR);
        }
        (state.before, state.row) = (state.row, row);
        (state.read, state.last) = (read, Some(c));
        if self.is_prefix
            && let Some(distance) = self.distance(state)
            && usize::from(distance) <= self.edits
        {
            state.begun = Some(state.begun.map_or(distance, |begun| begun.min(distance)));
        }
    }
}

/// Whether a byte starts letters between U+0380 and U+04BF.
fn is_greek_or_cyrillic(byte: u8) -> bool {
    matches!(byte, 0xCE..=0xD2)
}

/// State after reading part of a dictionary word.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// Number of letters read, without marks.
    read: usize,
    row: [u8; CELLS],
    before: [u8; CELLS],
    last: Option<char>,
    /// Smallest distance of a prefix, if prefixes count and one is near enough.
    begun: Option<u8>,
    /// Code point so far of a multi-byte letter.
    code: u32,
    missing: u8,
    is_dead: bool,
}

impl State {
    fn least_edits(&self) -> usize {
        usize::from(self.row.iter().min().copied().unwrap_or(FAR))
    }
}

/// Maximum number of letters in [`Letters`]: two per cell of a row.
const WAYS_MAX: usize = 2 * CELLS;

/// The bytes with which a word may continue.
#[derive(Clone)]
pub(super) enum Ways {
    /// Any byte.
    All,
    /// These ASCII letters, and all non-ASCII bytes.
    Some(Letters),
}

/// A small ascending set of ASCII letters.
#[derive(Clone, Default)]
pub(super) struct Letters {
    letters: [u8; WAYS_MAX],
    count: usize,
}

impl Letters {
    /// Adds an ASCII letter; at most [`WAYS_MAX`] in total. Ignores other letters.
    pub(super) fn add(&mut self, letter: char) {
        let Some(byte) = u8::try_from(letter).ok().filter(u8::is_ascii) else { return };
        let place = self.letters[..self.count].partition_point(|other| *other < byte);
        if place == self.count || self.letters[place] != byte {
            self.letters.copy_within(place..self.count, place + 1);
            self.letters[place] = byte;
            self.count += 1;
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<u8> {
        self.letters[..self.count].get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dictionary::Dictionary;
    use crate::similar::STEPS_MAX;

    fn likeness(asked: &str, edits: u8, is_prefix: bool, word: &str) -> Option<Likeness> {
        let pattern = Pattern::new(asked, edits, is_prefix);
        let state = word.bytes().fold(pattern.start(), |state, byte| pattern.next(&state, byte));
        pattern.likeness(&state, word)
    }

    fn edits(asked: &str, word: &str) -> Option<u8> {
        likeness(asked, 2, false, word).map(|likeness| likeness.edits)
    }

    #[test]
    fn edits_are_counted_and_swapped_letters_are_one() {
        assert_eq!(edits("boundary", "boundary"), Some(0));
        assert_eq!(edits("boundary", "bondary"), Some(1));
        assert_eq!(edits("boundary", "bounndary"), Some(1));
        assert_eq!(edits("boundary", "bounadry"), Some(1));
        assert_eq!(edits("boundary", "obundray"), Some(2));
        assert_eq!(edits("boundary", "bundry"), Some(2));
        assert_eq!(edits("boundary", "laundry"), None);
        assert_eq!(edits("москва", "масква"), Some(1));
        assert_eq!(edits("ab", ""), Some(2));
        assert_eq!(edits("", "ab"), Some(2));
    }

    #[test]
    fn diacritics_are_no_edits() {
        let folded = Some(Likeness { edits: 0, is_longer: false, is_folded: true });
        for (asked, word) in [
            ("cafe", "café"),
            ("café", "cafe"),
            ("smorrebrod", "smørrebrød"),
            ("łódź", "lodz"),
            ("oeuvre", "œuvre"),
            ("елка", "ёлка"),
            ("αθηνα", "αθήνα"),
        ] {
            assert_eq!(likeness(asked, 0, false, word), folded, "{asked} {word}");
        }
        assert_eq!(likeness("cafe", 0, false, "cafés"), None);
        assert_eq!(likeness("हिन्दी", 0, false, "हन्द"), None, "vowel signs are letters");
    }

    #[test]
    fn a_prefix_goes_on() {
        let longer = |edits| Some(Likeness { edits, is_longer: true, is_folded: false });
        assert_eq!(likeness("cof", 0, true, "coffee"), longer(0));
        assert_eq!(likeness("cof", 0, true, "coot"), None);
        assert_eq!(likeness("coff", 1, true, "cofeine"), longer(1));
        assert_eq!(likeness("cafe", 0, true, "caféteria"), longer(0));
        assert_eq!(likeness("cof", 0, false, "coffee"), None);
    }

    /// Words of few letters, so that the words of one test are similar: two scripts, with marks.
    const WORD: &str = "[abcéжё]{0,2}[abdé]{0,4}[aсжη]{0,2}";

    /// Edit distance between two words, computed with the full table.
    fn distance(a: &[char], b: &[char]) -> usize {
        let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
        for (at, one) in a.iter().enumerate() {
            let mut row = vec![at + 1];
            for (other_at, other) in b.iter().enumerate() {
                let changed = rows[at][other_at] + usize::from(one != other);
                let mut least = changed.min(rows[at][other_at + 1] + 1).min(row[other_at] + 1);
                let (before, other_before) = (at.wrapping_sub(1), other_at.wrapping_sub(1));
                if a.get(before) == Some(other) && b.get(other_before) == Some(one) {
                    least = least.min(rows[before][other_before] + 1);
                }
                row.push(least);
            }
            rows.push(row);
        }
        rows[a.len()][b.len()]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Goal: between words without marks, edits agree with the full table.
        #[test]
        fn edits_are_those_of_the_whole_table(asked in WORD, word in WORD, most in 0_u8..3) {
            let folded = |word: &str| fold_marks(word).chars().collect::<Vec<char>>();
            let wanted = distance(&folded(&asked), &folded(&word));
            let found = likeness(&asked, most, false, &word).map(|likeness| likeness.edits);
            let wanted = u8::try_from(wanted).ok().filter(|edits| *edits <= most);
            prop_assert_eq!(found, wanted);
        }

        /// Goal: the traversal finds exactly the similar words of a dictionary, in order.
        #[test]
        fn the_walk_finds_what_a_look_at_every_word_finds(
            words in prop::collection::btree_set(WORD, 0..60),
            asked in WORD,
            edits in 0_u8..3,
            is_prefix in any::<bool>(),
        ) {
            let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
            let asked = if asked.is_empty() { "a".to_owned() } else { asked };
            let edits = edits.min(asked.chars().count() as u8 - 1);
            let pattern = Pattern::new(&asked, edits, is_prefix);
            let (mut found, mut steps) = (Vec::new(), STEPS_MAX);
            Dictionary::of_words(&words).walk(&pattern, &mut steps, |word, likeness| {
                found.push((word.to_owned(), likeness));
                true
            });
            let likeness = |word: &String| likeness(&asked, edits, is_prefix, word);
            let similar = |word: &String| Some((word.clone(), likeness(word)?));
            prop_assert_eq!(&found, &words.iter().filter_map(similar).collect::<Vec<_>>());
            let begins = |word: &str| word.chars().next() == asked.chars().next();
            let (mut kept, first) = (Vec::new(), pattern.keeping_first());
            Dictionary::of_words(&words).walk(&first, &mut steps, |word, likeness| {
                if begins(word) {
                    kept.push((word.to_owned(), likeness));
                }
                true
            });
            found.retain(|(word, _)| begins(word));
            prop_assert_eq!(kept, found);
        }
    }
}
