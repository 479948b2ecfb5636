//! Words of an index that are similar to a word of a query: equal except for diacritics, misspelt,
//! or beginning with it. They are found in the segment's dictionary at query time, so the index
//! stores nothing for them.
//!
//! The dictionary is a byte automaton (`dictionary`), which is traversed together with a table of
//! edit distances (`pattern`). Once all edits are used up, only the few letters that continue
//! without an edit are looked up: most branches of a traversal are dead ends, all the more so the
//! more rows of other scopes an index holds.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use tantivy::Term;

use crate::dictionary::Dictionary;
use crate::error::caught;
use crate::index::OpenField;
use crate::mask::RowMask;
use crate::pattern::{Likeness, Pattern, SIMILAR_MAX, Similar, SimilarWords};
use crate::postings::Cursor;
use crate::query::WordQuery;
use crate::schema::Field;
use crate::{TextError, TextIndex};

/// Maximum number of dictionary words collected and looked up per query word, nearest first.
pub(super) const LISTED_MAX: usize = 4096;
/// Maximum number of them for all words of one query in a segment: some 50 ms. Each word has an
/// equal share.
const LISTED_OF_QUERY_MAX: usize = 1 << 14;
/// Maximum dictionary bytes read in a segment for all words of one query: some 10 ms. Each word has
/// an equal share.
pub(super) const STEPS_MAX: u32 = 1 << 18;

impl TextIndex {
    /// Finds the words of rows in `scope` (`None`: all rows) that are similar to those of the
    /// query: for each the nearest, then those in most rows of the scope. Words of other scopes
    /// change this only if a word has very many similar ones, or the query very many words: the
    /// farthest in the whole dictionary are omitted then.
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
            let most = (LISTED_OF_QUERY_MAX / patterns.len().max(1)).min(LISTED_MAX);
            let mut found = Vec::new();
            for (clause, pattern) in patterns {
                let mut similar = Vec::new();
                let mut steps = steps;
                for (word, likeness) in listed(&field.dictionary, &pattern, most, &mut steps) {
                    let term = Term::from_field_text(Field::Words.column(), &word);
                    let rows = field.postings.doc_freq(&term).map_err(TextError::damaged)?;
                    similar.push(Similar { clause, word, likeness, rows: u64::from(rows) });
                }
                found.extend(best(field, &mask, similar)?);
            }
            Ok(SimilarWords(found))
        })
    }
}

/// Selects the nearest words, and of equally near ones those in most rows of the mask. `similar`
/// has their rows in all scopes. Words of other scopes must not take the places of those in this
/// one, nor pass for its written form.
fn best(
    field: &OpenField,
    mask: &RowMask<'_>,
    mut similar: Vec<Similar>,
) -> Result<Vec<Similar>, TextError> {
    similar.sort_by(|a, b| a.order().cmp(&b.order()));
    // A word without rivals only has to occur.
    let enough = if similar.len() == 1 { 1 } else { u64::MAX };
    let mut found: Vec<Similar> = Vec::new();
    for mut word in similar {
        // The rows in all scopes are an upper bound: no later word can be better.
        let last = found.get(SIMILAR_MAX - 1);
        if last.is_some_and(|last| last.order() < word.order()) {
            break;
        }
        if !mask.is_all() {
            word.rows = rows_in(field, &word.word, mask, enough)?;
        }
        if word.rows > 0 {
            let at = found.partition_point(|other| other.order() < word.order());
            found.insert(at, word);
            found.truncate(SIMILAR_MAX);
        }
    }
    Ok(found)
}

/// The word of a pattern, whether or not it occurs, and the dictionary words similar to it. If
/// there are more than `most`, the farthest are omitted: the words that begin with a prefix that
/// has edits are a large share of a dictionary.
pub(super) fn listed(
    dictionary: &Dictionary,
    pattern: &Pattern,
    most: usize,
    steps: &mut u32,
) -> BTreeMap<String, Likeness> {
    let mut found = BTreeMap::from([(pattern.word.clone(), Likeness::WRITTEN)]);
    for stage in pattern.stages() {
        if found.len() >= most {
            break;
        }
        dictionary.walk(&stage, steps, |word, likeness| {
            found.entry(word.to_owned()).or_insert(likeness);
            found.len() < most
        });
    }
    found
}

/// Counts the rows of the mask that contain a word as written, at least the first `enough`.
pub(super) fn rows_in(
    field: &OpenField,
    word: &str,
    mask: &RowMask<'_>,
    enough: u64,
) -> Result<u64, TextError> {
    let cursor = Cursor::open(field, Field::Words, &[word.to_owned()], mask)?;
    Ok(cursor.map_or(0, |cursor| cursor.count(mask, enough)))
}
