//! Phrases: rows in which terms are directly adjacent.

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, InvertedIndexReader, TERMINATED, Term};

use crate::TextError;
use crate::mask::Window;

/// An open phrase: its terms with their distance from the first one, rarest first.
#[derive(Clone)]
pub(super) struct Phrase {
    rarest: (u32, SegmentPostings),
    others: Vec<(u32, SegmentPostings)>,
    starts: Vec<u32>,
    positions: Vec<u32>,
}

impl Phrase {
    /// Opens a phrase; `None` if it has no terms or one of them is not in the index.
    pub(super) fn open(
        index: &InvertedIndexReader,
        phrase: impl Iterator<Item = Term>,
    ) -> Result<Option<Self>, TextError> {
        let mut terms = Vec::new();
        for (distance, term) in (0_u32..).zip(phrase) {
            let option = IndexRecordOption::WithFreqsAndPositions;
            let postings = index.read_postings(&term, option).map_err(TextError::damaged)?;
            let Some(postings) = postings else { return Ok(None) };
            terms.push((distance, postings));
        }
        terms.sort_by_key(|(_, postings)| postings.doc_freq());
        let mut others = terms.into_iter();
        let Some(rarest) = others.next() else { return Ok(None) };
        let (starts, positions) = (Vec::new(), Vec::new());
        Ok(Some(Self { rarest, others: others.collect(), starts, positions }))
    }

    /// The next row that may contain the phrase; [`TERMINATED`] at the end.
    pub(super) fn row(&self) -> u32 {
        self.rarest.1.doc()
    }

    /// Upper bound of the number of rows that contain the phrase.
    pub(super) fn rows_max(&self) -> u32 {
        self.rarest.1.doc_freq()
    }

    /// Calls `each` with the position and number of occurrences for every row of the window that
    /// contains the phrase, and advances past the window.
    pub(super) fn each_in(&mut self, window: &Window, mut each: impl FnMut(u32, u32)) {
        let mut row = self.row();
        if row < window.start() {
            row = self.rarest.1.seek(window.start());
        }
        while row < window.end() && row != TERMINATED {
            let place = row.wrapping_sub(window.start());
            if window.has(place) && self.others.iter_mut().all(|(_, term)| reaches(term, row)) {
                let count = self.count();
                if count > 0 {
                    each(place, count);
                }
            }
            row = self.rarest.1.advance();
        }
    }

    /// Counts the occurrences of the phrase in the row that all terms are positioned at.
    fn count(&mut self) -> u32 {
        let Self { rarest: (distance, rarest), others, starts, positions } = self;
        rarest.positions(starts);
        // Start of the phrase; a position too small for that is no occurrence.
        starts.retain_mut(|start| match start.checked_sub(*distance) {
            Some(begin) => {
                *start = begin;
                true
            }
            None => false,
        });
        for (distance, term) in others {
            if starts.is_empty() {
                break;
            }
            term.positions(positions);
            starts.retain(|start| positions.binary_search(&(start + *distance)).is_ok());
        }
        starts.len() as u32
    }
}

fn reaches(term: &mut SegmentPostings, row: u32) -> bool {
    term.doc() == row || (term.doc() < row && term.seek(row) == row)
}
