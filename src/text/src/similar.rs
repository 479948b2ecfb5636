//! Words of an index that are similar to a word of a query: equal but for diacritics, misspelt, or
//! beginning with it. They are found in the dictionary of the segment when the query is asked, so
//! the index holds nothing for it.
//!
//! The dictionary is an automaton over bytes (`dictionary`); it is walked together with a table of
//! edit distances (`pattern`). Where all edits are spent, only the few letters that go on without
//! one are looked up in the dictionary: most of what a walk meets are ways that end there, and the
//! more rows of others an index holds, the more.

use roaring::RoaringBitmap;
use tantivy::Term;

use crate::error::caught;
use crate::mask::RowMask;
use crate::pattern::{SIMILAR_MAX, Similar, SimilarWords};
use crate::postings::Cursor;
use crate::query::WordQuery;
use crate::schema::Field;
use crate::{TextError, TextIndex};

/// Words of a dictionary that are looked at for one word of a query before the nearest are taken.
const LISTED_MAX: usize = 4096;
/// Bytes of the dictionary of a segment that are read for all words of one query: some 10 ms. Each
/// word has an equal share of them.
pub(super) const STEPS_MAX: u32 = 1 << 18;

impl TextIndex {
    /// The words of rows in `scope` (None: all rows) that are similar to those of the query. Of a
    /// word with very many, and of a query with very many words, some are left out.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if the dictionary or postings cannot be read.
    pub fn similar(
        &self,
        query: &WordQuery,
        scope: Option<&RoaringBitmap>,
    ) -> Result<SimilarWords, TextError> {
        caught(|| {
            let mask = RowMask::new(self.rows(), scope);
            let Some(field) = self.field(Field::Words).filter(|_| mask.count() > 0) else {
                return Ok(SimilarWords::default());
            };
            let patterns = query.patterns();
            let steps = STEPS_MAX / patterns.len().max(1) as u32;
            let mut found = Vec::new();
            for (clause, pattern) in patterns {
                let mut similar = Vec::new();
                field.dictionary.walk(&pattern, steps, |word, likeness| {
                    similar.push(Similar { clause, word: word.to_owned(), likeness, rows: 0 });
                    similar.len() < LISTED_MAX
                });
                for word in &mut similar {
                    let term = Term::from_field_text(Field::Words.column(), &word.word);
                    let rows = field.postings.doc_freq(&term).map_err(TextError::damaged)?;
                    word.rows = u64::from(rows);
                }
                similar.sort_by_key(|word| (word.likeness, std::cmp::Reverse(word.rows)));
                similar.truncate(SIMILAR_MAX);
                let is_alone = similar.iter().all(|word| word.word == pattern.word);
                if !mask.is_all() && !is_alone {
                    for word in &mut similar {
                        let terms = std::slice::from_ref(&word.word);
                        let cursor = Cursor::open(field, Field::Words, terms, &mask)?;
                        word.rows = cursor.map_or(0, |cursor| cursor.count(&mask));
                    }
                    similar.retain(|word| word.rows > 0);
                }
                found.extend(similar);
            }
            Ok(SimilarWords(found))
        })
    }
}
