//! The words of an index: whether a word occurs, and which words share a prefix.

use roaring::RoaringBitmap;

use crate::error::caught;
use crate::schema::Field;
use crate::{HybridQuery, TextError, TextIndex};

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

    /// Calls `each` with the first `most` dictionary words that begin with `beginning`, in lower
    /// case and ascending order. Includes words of rows outside any scope.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if the dictionary cannot be read.
    pub fn words_from(
        &self,
        beginning: &str,
        most: usize,
        mut each: impl FnMut(&str),
    ) -> Result<(), TextError> {
        caught(|| {
            let Some(field) = self.field(Field::Words) else { return Ok(()) };
            let words = field.postings.terms().range().ge(beginning.as_bytes()).into_stream();
            let mut words = words.map_err(TextError::damaged)?;
            for _ in 0..most {
                if !words.advance() || !words.key().starts_with(beginning.as_bytes()) {
                    break;
                }
                if let Ok(word) = std::str::from_utf8(words.key()) {
                    each(word);
                }
            }
            Ok(())
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
            index.words_from(beginning, most, |word| words.push(word.to_owned())).unwrap();
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
}
