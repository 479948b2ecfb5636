//! The words of an index: whether a word occurs, and which words share a prefix.

use roaring::RoaringBitmap;

use crate::error::caught;
use crate::mask::RowMask;
use crate::pattern::{Likeness, Pattern};
use crate::schema::Field;
use crate::similar::{LISTED_MAX, listed, rows_in};
use crate::{HybridQuery, TextError, TextIndex};

/// Maximum dictionary words read per word wanted of a scope: the others are of rows outside it.
const READ_PER_WANTED: usize = 16;
/// Steps taken by looking a word up in a scope, which takes as long as reading so many bytes.
const LOOK_UP_STEPS: u32 = 64;

impl TextIndex {
    /// Counts the rows of `scope` (`None`: all rows) that contain a word in some inflection; for a
    /// word of several parts, those that contain its most frequent part.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read.
    pub fn rows_with(&self, word: &str, scope: Option<&RoaringBitmap>) -> Result<u64, TextError> {
        let counts = self.term_counts(&HybridQuery::analyse(word), scope)?;
        Ok(counts.0.into_iter().max().unwrap_or(0))
    }

    /// Calls `each` with the first `most` dictionary words that begin with `beginning` and occur in
    /// rows of `scope` (`None`: all rows), in lower case and ascending order. If very many of the
    /// words occur only outside the scope, some are omitted. Counts down `left` by each word read,
    /// whichever scope it is of, and stops at 0.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if the dictionary or postings cannot be read.
    pub fn words_from(
        &self,
        beginning: &str,
        scope: Option<&RoaringBitmap>,
        most: usize,
        left: &mut usize,
        mut each: impl FnMut(&str),
    ) -> Result<(), TextError> {
        caught(|| {
            let mask = RowMask::new(self.rows(), scope);
            let Some(field) = self.field(Field::Words).filter(|_| mask.count() > 0) else {
                return Ok(());
            };
            let words = field.postings.terms().range().ge(beginning.as_bytes()).into_stream();
            let mut words = words.map_err(TextError::damaged)?;
            let (mut read, mut wanted) = (most.saturating_mul(READ_PER_WANTED), most);
            while read > 0 && wanted > 0 && *left > 0 {
                if !words.advance() || !words.key().starts_with(beginning.as_bytes()) {
                    break;
                }
                (read, *left) = (read - 1, *left - 1);
                let Ok(word) = std::str::from_utf8(words.key()) else { continue };
                if !mask.is_all() && rows_in(field, word, &mask, 1)? == 0 {
                    continue;
                }
                wanted -= 1;
                each(word);
            }
            Ok(())
        })
    }

    /// Returns the other words of rows in `scope` (`None`: all rows) that begin with the first
    /// letter of `word` and are at most `edits` (0 to 2) edits from it, nearest first. Diacritics
    /// are no edits.
    ///
    /// Counts down `steps` by 1 for each byte read of the dictionary, which takes at most half of
    /// them, and by 64 for each word looked up in the scope. At 0 the farthest words are omitted.
    /// Words of other scopes are not returned, but take steps too.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if the dictionary or postings cannot be read.
    pub fn words_near(
        &self,
        word: &str,
        edits: u8,
        scope: Option<&RoaringBitmap>,
        steps: &mut u32,
    ) -> Result<Vec<String>, TextError> {
        caught(|| {
            let mask = RowMask::new(self.rows(), scope);
            let Some(field) = self.field(Field::Words).filter(|_| mask.count() > 0) else {
                return Ok(Vec::new());
            };
            let pattern = Pattern::new(word, edits, false).keeping_first();
            let mut half = *steps / 2;
            *steps -= half;
            let all = listed(&field.dictionary, &pattern, LISTED_MAX, &mut half);
            *steps += half;
            let first = word.chars().next();
            let is_near = |other: &str| other != word && other.chars().next() == first;
            let near = all.into_iter().filter(|(other, _)| is_near(other));
            let mut near: Vec<(String, Likeness)> = near.collect();
            near.sort_by_key(|(_, likeness)| *likeness);
            if mask.is_all() {
                return Ok(near.into_iter().map(|(other, _)| other).collect());
            }
            let mut found = Vec::new();
            for (other, _) in near {
                let Some(left) = steps.checked_sub(LOOK_UP_STEPS) else { break };
                *steps = left;
                if rows_in(field, &other, &mask, 1)? > 0 {
                    found.push(other);
                }
            }
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RowText, TextIndexBuilder};

    #[test]
    fn words_are_listed_and_counted() {
        let mut builder = TextIndexBuilder::new();
        for body in ["Fridges and alarms", "The fridge: an alarm", "Éclairs, fish"] {
            builder.add_row(&RowText { title: "", body, context: "", searchable: "" }).unwrap();
        }
        let index = TextIndex::open(builder.finish().unwrap().to_vec().unwrap()).unwrap();
        let from = |beginning, most| {
            let mut words = Vec::new();
            let each = |word: &str| words.push(word.to_owned());
            index.words_from(beginning, None, most, &mut 99, each).unwrap();
            words
        };
        assert_eq!(from("f", 9), ["fish", "fridge", "fridges"]);
        assert_eq!(from("f", 1), ["fish"]);
        assert_eq!(from("frid", 9), ["fridge", "fridges"]);
        assert_eq!(from("é", 9), ["éclairs"]);
        assert_eq!(from("z", 9), [""; 0]);
        assert_eq!(index.rows_with("fridge", None).unwrap(), 2);
        assert_eq!(index.rows_with("frige", None).unwrap(), 0);
        let last = RoaringBitmap::from_iter([2]);
        assert_eq!(index.rows_with("fridge", Some(&last)).unwrap(), 0);
    }

    #[test]
    fn near_words_are_those_of_the_scope() {
        let mut builder = TextIndexBuilder::new();
        for body in ["fridges fridgy bridgs", "fridge frost fr\u{EF}dge"] {
            builder.add_row(&RowText { body, ..RowText::default() }).unwrap();
        }
        let index = TextIndex::open(builder.finish().unwrap().to_vec().unwrap()).unwrap();
        let (own, none) = (RoaringBitmap::from_iter([1]), RoaringBitmap::new());
        let of = |word, edits, scope, mut steps| {
            let found = index.words_near(word, edits, scope, &mut steps).unwrap();
            (found, steps)
        };
        let (all, left) = of("fridgs", 1, None, 10_000);
        assert_eq!(all, ["fridge", "fridges", "fridgy", "fr\u{EF}dge"]);
        assert!(left < 10_000);
        let (found, left_of_scope) = of("fridgs", 1, Some(&own), 10_000);
        assert_eq!(found, ["fridge", "fr\u{EF}dge"]);
        assert_eq!(left_of_scope, left - 4 * LOOK_UP_STEPS, "words of other scopes count");
        assert_eq!(of("fridgge", 2, Some(&own), 10_000).0, found);
        assert_eq!(of("fridge", 1, Some(&own), 10_000).0, ["fr\u{EF}dge"], "not the word itself");
        let few = 2 * (10_000 - left) + LOOK_UP_STEPS;
        assert_eq!(of("fridgs", 1, Some(&own), few).0, ["fridge"], "all read, one looked up");
        assert_eq!(of("fridgs", 1, Some(&own), 0).0, [""; 0]);
        assert_eq!(of("fridgs", 1, Some(&none), 10_000).0, [""; 0]);
    }

    #[test]
    fn words_outside_the_scope_are_not_listed_and_take_no_places() {
        let mut builder = TextIndexBuilder::new();
        let letter = |n: u8| char::from(b'a' + n);
        let others = (0..300_u16).map(|n| [n / 26, n % 26].map(|n| letter(n as u8)));
        let others: String = others.map(|[a, b]| format!("fish{a}{b} ")).collect();
        for body in [others.as_str(), "fridge fishzz", "frost"] {
            builder.add_row(&RowText { body, ..RowText::default() }).unwrap();
        }
        let index = TextIndex::open(builder.finish().unwrap().to_vec().unwrap()).unwrap();
        let of = |scope: &[u32], most| {
            let (scope, mut words) = (RoaringBitmap::from_iter(scope), Vec::new());
            let each = |word: &str| words.push(word.to_owned());
            index.words_from("f", Some(&scope), most, &mut 999, each).unwrap();
            words
        };
        assert_eq!(of(&[1, 2], 256), ["fishzz", "fridge", "frost"]);
        assert_eq!(of(&[1, 2], 20), ["fishzz", "fridge", "frost"]);
        assert_eq!(of(&[2], 256), ["frost"]);
        assert_eq!(of(&[0], 2), ["fishaa", "fishab"]);
        assert_eq!(of(&[1, 2], 1), [""; 0], "after sixteen others");
        assert_eq!(of(&[], 256), [""; 0]);
        let (own, mut words, mut left) = (RoaringBitmap::from_iter([1]), Vec::new(), 302);
        for _ in 0..2 {
            let each = |word: &str| words.push(word.to_owned());
            index.words_from("f", Some(&own), 256, &mut left, each).unwrap();
        }
        assert_eq!((words.join(" ").as_str(), left), ("fishzz fridge", 0), "not read twice");
    }
}
