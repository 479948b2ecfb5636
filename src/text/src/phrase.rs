//! Phrases: rows in which terms stand directly one behind the other.

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, InvertedIndexReader, TERMINATED, Term};

use crate::TextError;
use crate::mask::has;

/// An opened phrase: its terms with their distance from the first, rarest first.
pub(super) struct Phrase {
    terms: Vec<(u32, SegmentPostings)>,
}

impl Phrase {
    /// None if one of the terms is not in the index at all.
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
        Ok(Some(Self { terms }))
    }

    /// Calls `each` with every row (of the mask, if any) that holds the phrase, and how often.
    pub(super) fn for_each(mut self, mask: Option<&[u64]>, mut each: impl FnMut(u32, u32)) {
        let Some(((first_distance, rarest), others)) = self.terms.split_first_mut() else { return };
        let (mut starts, mut positions) = (Vec::new(), Vec::new());
        let mut row = rarest.doc();
        while row != TERMINATED {
            let is_candidate = mask.is_none_or(|bits| has(bits, row));
            if is_candidate && others.iter_mut().all(|(_, term)| reaches(term, row)) {
                rarest.positions(&mut starts);
                // Start of the phrase; a position too small for that is none.
                starts.retain_mut(|start| match start.checked_sub(*first_distance) {
                    Some(begin) => {
                        *start = begin;
                        true
                    }
                    None => false,
                });
                for (distance, term) in others.iter_mut() {
                    if starts.is_empty() {
                        break;
                    }
                    term.positions(&mut positions);
                    starts.retain(|start| positions.binary_search(&(start + *distance)).is_ok());
                }
                if !starts.is_empty() {
                    each(row, starts.len() as u32);
                }
            }
            row = rarest.advance();
        }
    }
}

fn reaches(term: &mut SegmentPostings, row: u32) -> bool {
    term.doc() == row || (term.doc() < row && term.seek(row) == row)
}
